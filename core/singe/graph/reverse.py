"""Gradients of nodes that own graphs, as nodes of the same kind.

The gradient of an `if` is an `if` over the gradients of its branches. That of a loop is two loops. The first makes the
turns again and saves the values that a turn's gradient needs: the carried values, and products, which take long to
compute again. The second goes through the turns backwards. It carries the adjoints of the carried values, and the sums
over turns of the gradients of the captured values. If only a run knows the number of turns, one more loop counts them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Final, TypeAlias

from ..dtypes import FLOATS, int64
from ..errors import CompileError
from ..ops import ROWS
from ..ops.control import open_dimensions
from ..shapes import Dim, repeating, symbols
from .builder import Builder
from .graph import Graph
from .node import Node, below, dependents, parts, postorder
from .transform import rebuild

SAVED: Final = frozenset(("dot", "conv_last", "dot_blocks", "sort", "top_k"))
"""The rows whose results in each turn are saved rather than computed again."""
Gradient: TypeAlias = Callable[..., list[Node]]
"""The function `gradient`, which gradients.py hands down."""


def region_gradients(
    b: Builder, gradient: Gradient, n: Node, output_gradients: Sequence[Node | None], wanted: Sequence[bool]
) -> list[Node | None]:
    """The gradients of a node's inputs where they are wanted, from those of its results."""
    found: list[Node | None] = [None] * len(n.inputs)
    if any(wanted) and any(g is not None for g in output_gradients):
        for k, g in (_of_if if n.op == "if" else _of_loop)(b, gradient, n, output_gradients, wanted):
            found[k] = g
    return found


def _of_if(
    b: Builder, gradient: Gradient, n: Node, output_gradients: Sequence[Node | None], wanted: Sequence[bool]
) -> Iterable[tuple[int, Node]]:
    results = [k for k, g in enumerate(output_gradients) if g is not None]
    places = [k for k, w in enumerate(wanted) if w]
    branches = {}
    for name in ("then", "otherwise"):
        branch: Graph = n.attrs[name]
        outputs = tuple(branch.outputs[k] for k in results)
        if any(symbols(y.shape) & branch.own_size_nodes.keys() for y in outputs):
            raise CompileError("if: a result whose size only a run of its branch finds has no gradient")
        adjoints = tuple(b.input("adjoint", y.shape, y.dtype) for y in outputs)
        by = [branch.inputs[k - 1] for k in places]  # input 0 of the node is the condition
        found = gradient(_over(branch, outputs), b, adjoints, by)
        branches[name] = _region(b, branch, (*branch.inputs, *adjoints), found)
    made = b.node(ROWS["if"], *n.inputs, *(output_gradients[k] for k in results), **branches)
    return zip(places, b.results_of(made), strict=True)


def _of_loop(
    b: Builder, gradient: Gradient, n: Node, output_gradients: Sequence[Node | None], wanted: Sequence[bool]
) -> Iterable[tuple[int, Node]]:
    body, carried, start = n.attrs["body"], n.attrs["carried"], int(n.attrs["conditional"])
    inputs, wanted = n.inputs[start:], wanted[start:]
    captured = [k for k in range(carried, len(inputs)) if wanted[k]]
    live = _live(body, carried, [k for k in range(len(inputs)) if wanted[k]])
    for k in live:
        _check(body, k, inputs[k])
    count = n.attrs.get("count")
    if start or count is None:
        count = _counted(b, n)
    with repeating(count):
        adjoints = [b.input("adjoint", body.inputs[k].shape, body.inputs[k].dtype) for k in live]
        sums = {body.inputs[k]: b.input("sum", body.inputs[k].shape, body.inputs[k].dtype) for k in captured}
        outputs = tuple(body.outputs[k + 1] for k in live)
        by = [body.inputs[k] for k in (*live, *captured)]
        slopes = gradient(_over(body, outputs), b, adjoints, by, sums)
    needed = _needed(body, carried, slopes)
    for m in needed:
        if m in body.inputs:
            _check(body, body.inputs.index(m), inputs[body.inputs.index(m)])
    saved = _saved(b, body, carried, inputs, count, needed)

    with repeating(count):
        turn = b.input("turn", (), int64)
        buffers = [b.input("saved", x.shape, x.dtype) for x in saved]
        values = {m: b.gather(x, turn, axis=0) for m, x in zip(needed, buffers, strict=True)}
        backward = rebuild(_over(body, slopes), b, lambda b, n, output_gradients: None, values)
        before = (turn, *adjoints, *sums.values())
        after = (b.const(True), b.sub(turn, b.const(1)), *backward.outputs)
        region = _region(b, backward, (*before, *buffers, *body.inputs[carried:]), after)
    first = [output_gradients[k] or _zeros(b, inputs[k]) for k in live]
    none = [_zeros(b, inputs[k]) for k in captured]
    last = b.sub(b.const(count), b.const(1))
    made = b.node(
        ROWS["loop"], last, *first, *none, *saved, *inputs[carried:],
        body=region, carried=len(before), conditional=False, count=count,
    )  # fmt: skip
    _, *found = b.results_of(made)
    places = (*live, *captured)
    return [(k + start, g) for k, g in zip(places, found, strict=True) if wanted[k]]


def _live(body: Graph, carried: int, wanted: Sequence[int]) -> list[int]:
    """The carried values that change with the inputs of these numbers, in any turn."""
    order = postorder(body.outputs[1:], below)
    live = {k for k in wanted if k < carried}
    while True:
        moved = dependents(order, [body.inputs[k] for k in live | {*wanted}])
        more = live | {k for k, y in enumerate(body.outputs[1:]) if y in moved and y.dtype in FLOATS}
        if more == live:
            return sorted(live)
        live = more


def _check(body: Graph, k: int, first: Node) -> None:
    before, after = body.inputs[k].shape, body.outputs[k + 1].shape
    if open_dimensions(first.shape, before, after):
        raise CompileError(
            f"loop: carried value {k} changes its shape, {first.shape} at first and {after} after a turn: the loop has no "
            "gradient; carry a tensor of the final size, and write a part of it in each turn"
        )


def _needed(body: Graph, carried: int, slopes: Sequence[Node]) -> list[Node]:
    """The values of a turn from which its gradients are computed, besides captured values and the adjoints."""
    leaves, inner = set(body.inputs[:carried]), set(body.nodes)
    moved = dependents(postorder(body.outputs, below), leaves)

    def kept(m: Node) -> bool:
        if m in leaves:
            return True
        saved = m.op in SAVED or any(p.op in SAVED for p in parts(m))
        return (
            saved and len(m.results) == 1 and m in inner | moved and not symbols(m.shape) & body.own_size_nodes.keys()
        )

    return [m for m in postorder(slopes, lambda m: () if kept(m) else m.inputs) if kept(m)]


def _saved(
    b: Builder, body: Graph, carried: int, inputs: Sequence[Node], count: Dim, needed: Sequence[Node]
) -> list[Node]:
    """The values of all turns, each along a new first axis."""
    if not needed:
        return []
    with repeating(count):
        turn = b.input("turn", (), int64)
        buffers = [b.input("saved", (count, *m.shape), m.dtype) for m in needed]
        written = [
            b.update_slice(x, b.reshape(m, shape=(1, *m.shape)), turn, *[b.const(0)] * len(m.shape))
            for x, m in zip(buffers, needed, strict=True)
        ]
        after = (b.const(True), b.add(turn, b.const(1)), *written, *body.outputs[1:])
        region = _region(b, body, (turn, *buffers, *body.inputs), after)
    rooms = [_zeros(b, x) for x in buffers]
    made = b.node(
        ROWS["loop"], b.const(0), *rooms, *inputs,
        body=region, carried=1 + len(rooms) + carried, conditional=False, count=count,
    )  # fmt: skip
    return list(b.results_of(made)[1 : 1 + len(rooms)])


def _counted(b: Builder, n: Node) -> Dim:
    """The number of turns that a loop makes in a run."""
    body, carried = n.attrs["body"], n.attrs["carried"]
    conditions, inputs = n.inputs[: int(n.attrs["conditional"])], n.inputs[int(n.attrs["conditional"]) :]
    with repeating(n.attrs.get("count")):
        turn = b.input("turn", (), int64)
        after = (body.outputs[0], b.add(turn, b.const(1)), *body.outputs[1:])
        region = _region(b, body, (turn, *body.inputs), after)
    made = b.node(
        ROWS["loop"], *conditions, b.const(0), *inputs,
        body=region, carried=1 + carried, conditional=bool(conditions), count=n.attrs.get("count"),
    )  # fmt: skip
    return b.size_of(b.results_of(made)[0])


def _over(graph: Graph, outputs: Sequence[Node]) -> Graph:
    return replace(graph, outputs=tuple(outputs), output_names=("",) * len(outputs))


def _region(b: Builder, like: Graph, inputs: Sequence[Node], outputs: Sequence[Node]) -> Graph:
    """A region with the sizes and checks of another of which it has nodes."""
    made = b.graph(inputs, outputs, like.checks)
    return replace(made, size_nodes={**like.size_nodes, **made.size_nodes})


def _zeros(b: Builder, like: Node) -> Node:
    return b.expand(b.const(0, like.dtype), shape=like.shape)
