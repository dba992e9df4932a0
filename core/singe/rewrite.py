"""Graph in, equal Graph out: lowered to primitive rows, constants folded, simplified, laid out channels-last.

`rewrite` makes every node anew through `Rewriter.make`, which applies the rules of RULES to it until none fits, so that
whatever a rule builds is simplified in turn, and one pass over the graph is enough. Equal nodes are one by the Builder's
interning; what no output reaches is gone. A rule that would duplicate work asks how often a node is used.

Layout. A convolution works on channels-last data between two transposes. Transposes sink towards the outputs through
everything that does not care about the order of axes, until they meet their inverse or can be read as a reshape.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias

import numpy as np

from ._shape import Dim, Shape, axes_of, product
from .graph import Builder, Graph, Node, evaluate
from .ops import Elementwise, find_row
from .ops.move import inverse

Rule: TypeAlias = "Callable[[Rewriter, Node], Node | None]"

GROWTH: Final = 4
"""A constant is not folded where the result is this many times larger than what it is made of, as with expand."""
SMALL: Final = 1 << 16
"""Bytes up to which growth does not matter."""


def rewrite(graph: Graph) -> Graph:
    """See the module's docstring."""
    return Rewriter(graph).run()


class Rewriter:
    """One pass: a Builder whose nodes come out simplified."""

    def __init__(self, graph: Graph) -> None:
        self.builder = Builder()
        self._graph = graph
        self._made: dict[Node, Node] = {}
        self._uses: dict[Node, int] = {}

    def run(self) -> Graph:
        done: dict[Node, Node] = {}
        outputs = tuple(self._lowered(x, done) for x in self._graph.outputs)
        counted = Graph(self._graph.inputs, outputs, self._graph.output_names)
        self._uses = {n: len(users) for n, users in counted.users.items()}
        final: dict[Node, Node] = {}
        for n in counted.nodes:
            given = tuple(final[x] for x in n.inputs)
            new = n if n.row is None else self.make(n.row.name if n.row.name in RULES else n.row, *given, **n.attrs)
            final[n] = new
            # A node that now stands for several old ones is used as often as all of them together.
            self._uses[new] = self._uses.get(new, 0) + self._uses.get(n, 0) if new is not n else self._uses.get(n, 0)
        return Graph(self._graph.inputs, tuple(final[x] for x in outputs), self._graph.output_names)

    def _lowered(self, root: Node, done: dict[Node, Node]) -> Node:
        """The node made of primitive rows."""
        stack = [root]
        while stack:
            n = stack[-1]
            if n in done:
                stack.pop()
                continue
            below = (n.lowered,) if n.lowered is not None else n.inputs
            waiting = [x for x in below if x not in done]
            if waiting:
                stack += waiting
                continue
            if n.lowered is not None:
                done[n] = done[n.lowered]
            elif n.row is None:
                done[n] = self.builder.const(n.value, n.dtype) if n.value is not None else n
            else:
                done[n] = self.builder.apply(n.row, *(done[x] for x in n.inputs), **n.attrs)
            stack.pop()
        return done[root]

    def make(self, row: Any, *inputs: Node, **attrs: Any) -> Node:
        """A node of a row (or its name), simplified."""
        n = self.builder.apply(find_row(row) if isinstance(row, str) else row, *inputs, **attrs)
        found = self._made.get(n)
        if found is None:
            found = self._made[n] = self._simplified(n)
        return found

    def _simplified(self, n: Node) -> Node:
        if n.lowered is not None:
            return self._relowered(n.lowered)
        folded = self._folded(n)
        if folded is not None:
            return folded
        assert n.row is not None
        for rule in (*RULES.get(n.row.name, ()), *(ELEMENTWISE if isinstance(n.row, Elementwise) else ())):
            found = rule(self, n)
            if found is not None and found is not n:
                return found
        return n

    def _relowered(self, n: Node) -> Node:
        """A composite that a rule used: its parts, each simplified."""
        if n.lowered is not None:
            return self._relowered(n.lowered)
        return n if n.row is None or n in self._made else self.make(n.row, *(self._relowered(x) for x in n.inputs), **n.attrs)

    def _folded(self, n: Node) -> Node | None:
        if not all(x.is_const for x in n.inputs) or any(not isinstance(d, int) for d in n.shape):
            return None
        values = [x.value for x in n.inputs if x.value is not None]
        size = int(np.prod([d for d in n.shape if isinstance(d, int)], dtype=np.float64)) * n.dtype.size
        if size > max(SMALL, GROWTH * sum(v.nbytes for v in values)):
            return None
        return self.const(np.asarray(evaluate(n, values), order="C"), n)

    def const(self, value: Any, like: Node) -> Node:
        return self.builder.const(value, like.dtype)

    def used_once(self, n: Node) -> bool:
        return self._uses.get(n, 1) <= 1


# --- small rules -----------------------------------------------------------------------------------------------------


def _is(n: Node, row: str) -> bool:
    return n.row is not None and n.row.name == row


def _scalar(n: Node) -> Any:
    """The number that a constant of one element holds, or None."""
    v = n.value
    return v.reshape(-1)[0].item() if v is not None and v.size == 1 and v.dtype != object else None


def _neutral(value: float, both: bool) -> Rule:
    """x ∘ value is x, where no broadcasting happens; `both`: also value ∘ x."""

    def rule(r: Rewriter, n: Node) -> Node | None:
        a, b = n.inputs
        if _scalar(b) == value and a.shape == n.shape:
            return a
        return b if both and _scalar(a) == value and b.shape == n.shape else None

    return rule


def _reshape(r: Rewriter, n: Node) -> Node | None:
    (x,) = n.inputs
    if x.shape == n.shape:
        return x
    return r.make("reshape", x.inputs[0], shape=n.shape) if _is(x, "reshape") else None


def _transpose(r: Rewriter, n: Node) -> Node | None:
    (x,) = n.inputs
    perm = n.attrs["perm"]
    if perm == tuple(range(len(perm))):
        return x
    if _is(x, "transpose"):
        return r.make("transpose", x.inputs[0], perm=tuple(x.attrs["perm"][p] for p in perm))
    long = [p for p in perm if x.shape[p] != 1]
    if long == sorted(long):  # only axes of length 1 change places
        return r.make("reshape", x, shape=n.shape)
    if _is(x, "reshape"):
        return _through_reshape_up(r, n, x)
    return None


def _through_reshape_up(r: Rewriter, n: Node, x: Node) -> Node | None:
    """transpose(reshape(transpose(y))) where the reshape only added or dropped axes of length 1: one transpose."""
    y = x.inputs[0]
    long = tuple(d for d in x.shape if d != 1)
    if not _is(y, "transpose") or long != tuple(d for d in y.shape if d != 1) or len(set(map(str, long))) != len(long):
        return None
    source = y.inputs[0]
    order = [d for d in n.shape if d != 1]
    perm = tuple(next(i for i, e in enumerate(source.shape) if e == d) for d in order)
    rest = tuple(i for i, e in enumerate(source.shape) if e == 1)
    return r.make("reshape", r.make("transpose", source, perm=(*perm, *rest)), shape=n.shape)


def _expand(r: Rewriter, n: Node) -> Node | None:
    (x,) = n.inputs
    if x.shape == n.shape:
        return x
    return r.make("expand", x.inputs[0], shape=n.shape) if _is(x, "expand") else None


def _slice(r: Rewriter, n: Node) -> Node | None:
    (x,) = n.inputs
    if n.shape == x.shape and all(s == 1 for s in n.attrs["steps"]):
        return x
    if _is(x, "slice"):  # a slice of a slice
        inner = x.attrs
        starts = tuple(a + b * s for a, b, s in zip(inner["starts"], n.attrs["starts"], inner["steps"], strict=True))
        steps = tuple(a * b for a, b in zip(inner["steps"], n.attrs["steps"], strict=True))
        return r.make("slice", x.inputs[0], starts=starts, steps=steps, sizes=n.attrs["sizes"])
    return None


def _pad(r: Rewriter, n: Node) -> Node | None:
    x, fill = n.inputs
    if not any((*n.attrs["before"], *n.attrs["after"])):
        return x
    if _is(x, "pad") and x.attrs["mode"] == n.attrs["mode"] == "constant" and x.inputs[1] is fill:
        before, after = (tuple(a + b for a, b in zip(x.attrs[k], n.attrs[k], strict=True)) for k in ("before", "after"))
        return r.make("pad", x.inputs[0], fill, before=before, after=after, mode="constant")
    return None


def _concat(r: Rewriter, n: Node) -> Node | None:
    axis = n.attrs["axis"] % len(n.shape)
    kept = [x for x in n.inputs if x.shape[axis] != 0]
    if len(kept) == 1:
        return kept[0]
    return r.make("concat", *kept, axis=axis) if 0 < len(kept) < len(n.inputs) or axis != n.attrs["axis"] else None


def _reduce(r: Rewriter, n: Node) -> Node | None:
    (x,) = n.inputs
    axes = axes_of(n.attrs["axes"], len(x.shape), n.op)
    kept = tuple(a for a in axes if x.shape[a] != 1)
    if not kept:
        return x
    return r.make(n.row, x, axes=kept) if kept != n.attrs["axes"] else None


def _cast(r: Rewriter, n: Node) -> Node | None:
    (x,) = n.inputs
    return x if x.dtype is n.dtype else None


def _unbroadcast(r: Rewriter, n: Node) -> Node | None:
    """An elementwise op broadcasts by itself: an expand before it does nothing unless it makes the shape."""
    for i, x in enumerate(n.inputs):
        if _is(x, "expand"):
            others = [y for k, y in enumerate(n.inputs) if k != i]
            bare = [*n.inputs[:i], x.inputs[0], *n.inputs[i + 1 :]]
            if others and _meets([y.shape for y in bare], n.shape):
                return r.make(n.row, *bare, **n.attrs)
    return None


def _meets(shapes: Sequence[Shape], shape: Shape) -> bool:
    rank = max(map(len, shapes))
    return rank == len(shape) and all(any(len(s) >= rank - a and s[a - rank] == d for s in shapes) for a, d in enumerate(shape) if d != 1)


# --- constants into contractions -------------------------------------------------------------------------------------


def _channel_factor(c: Node, n: Node) -> np.ndarray | None:
    """A constant that varies along the last axis only, as a vector (or a scalar)."""
    if not n.shape or c.value is None or c.value.dtype == object or any(d != 1 for d in c.shape[:-1]):
        return None
    last = n.shape[-1]
    return c.value.reshape(-1) if c.value.size in (1, last) else None


def _contraction(x: Node) -> bool:
    return (_is(x, "dot") or _is(x, "conv_last")) and x.inputs[1].is_const


def _scale_contraction(r: Rewriter, n: Node) -> Node | None:
    """A product with a constant per channel goes into the constant weights (batch norm after a convolution)."""
    for x, c in (n.inputs, n.inputs[::-1]):
        factor = _channel_factor(c, n)
        if factor is None or x.shape != n.shape or not r.used_once(x) or not n.dtype.is_float:
            continue
        if _contraction(x):
            weights = x.inputs[1].value
            assert weights is not None
            scaled = r.const(weights * factor.astype(weights.dtype), x.inputs[1])
            return r.make(x.row, x.inputs[0], scaled, **x.attrs)
        if _is(x, "add"):
            for y, shift in (x.inputs, x.inputs[::-1]):
                if _channel_factor(shift, n) is not None and _contraction(y) and r.used_once(y):
                    return r.make("add", r.make("mul", y, c), r.make("mul", shift, c))
    return None


def _join_shifts(r: Rewriter, n: Node) -> Node | None:
    """(x + constant) + constant is x + constant."""
    for x, c in (n.inputs, n.inputs[::-1]):
        if not (c.is_const and _is(x, "add") and r.used_once(x) and n.dtype.is_float and c.value is not None and c.value.dtype != object):
            continue
        for y, shift in (x.inputs, x.inputs[::-1]):
            if shift.is_const and y.shape == n.shape and shift.value is not None and shift.value.dtype != object:
                return r.make("add", y, r.make("add", shift, c))
    return None


def _sub_constant(r: Rewriter, n: Node) -> Node | None:
    x, c = n.inputs
    return r.make("add", x, r.make("neg", c)) if c.is_const and n.dtype.is_float and _contraction_below(x) else None


def _div_constant(r: Rewriter, n: Node) -> Node | None:
    x, c = n.inputs
    return r.make("mul", x, r.make("reciprocal", c)) if c.is_const and n.dtype.is_float and _contraction_below(x) else None


def _contraction_below(x: Node) -> bool:
    return _contraction(x) or (_is(x, "add") and any(map(_contraction, x.inputs)))


def _pad_into_conv(r: Rewriter, n: Node) -> Node | None:
    """Zeros around a convolution's input are its own padding."""
    x = n.inputs[0]
    if not (_is(x, "pad") and x.attrs["mode"] == "constant" and _scalar(x.inputs[1]) == 0):
        return None
    before, after = x.attrs["before"], x.attrs["after"]
    if before[0] or before[-1] or after[0] or after[-1] or not all(isinstance(p, int) for p in (*before, *after)):
        return None
    attrs = dict(n.attrs)
    attrs["before"] = tuple(a + b for a, b in zip(attrs["before"], before[1:-1], strict=True))
    attrs["after"] = tuple(a + b for a, b in zip(attrs["after"], after[1:-1], strict=True))
    return r.make("conv_last", x.inputs[0], n.inputs[1], **attrs)


def _reorder_rows(r: Rewriter, n: Node) -> Node | None:
    """dot(reshape(transpose(x)), constant), the reshape joining all axes but the first: reorder the constant's rows."""
    a, w = n.inputs
    if not (_is(a, "reshape") and _is(a.inputs[0], "transpose") and w.value is not None and w.value.ndim == 2):
        return None
    t = a.inputs[0]
    perm = t.attrs["perm"]
    if perm[0] != 0 or len(a.shape) != 2 or a.shape[0] != t.shape[0] or not all(isinstance(d, int) for d in t.shape[1:]):
        return None
    order = inverse([p - 1 for p in perm[1:]])
    rows = w.value.reshape(*t.shape[1:], -1).transpose(*order, len(order))
    x = r.make("reshape", t.inputs[0], shape=a.shape)
    return r.make("dot", x, r.const(np.ascontiguousarray(rows.reshape(w.value.shape)), w))


# --- layout: transposes sink -----------------------------------------------------------------------------------------


def _sink_elementwise(r: Rewriter, n: Node) -> Node | None:
    """f(transpose(x), …) is transpose(f(x, …)), if the other inputs can follow at no cost."""
    perm = next((x.attrs["perm"] for x in n.inputs if _is(x, "transpose") and x.shape == n.shape), None)
    if perm is None:
        return None
    back = inverse(perm)
    given: list[Node] = []
    gain = 0
    for x in n.inputs:
        if _is(x, "transpose") and x.attrs["perm"] == perm:
            given.append(x.inputs[0])
            gain += 1
            continue
        if len(x.shape) < len(perm):
            x = r.make("reshape", x, shape=(*(1,) * (len(perm) - len(x.shape)), *x.shape)) if x.shape else x
        moved = r.make("transpose", x, perm=back) if x.shape else x
        gain -= _is(moved, "transpose")  # neither a constant, nor a reshape, nor met by its inverse
        given.append(moved)
    return r.make("transpose", r.make(n.row, *given, **n.attrs), perm=perm) if gain > 0 else None


def _sink_reshape_elementwise(r: Rewriter, n: Node) -> Node | None:
    """f(reshape(x), scalars) is reshape(f(x, scalars))."""
    large = [x for x in n.inputs if x.shape and not (x.is_const and all(d == 1 for d in x.shape))]
    if len(large) != 1 or not _is(large[0], "reshape") or large[0].shape != n.shape or not large[0].inputs[0].shape:
        return None
    given = [x.inputs[0] if x is large[0] else r.make("reshape", x, shape=()) for x in n.inputs]
    return r.make("reshape", r.make(n.row, *given, **n.attrs), shape=n.shape)


def _sink_first(move: Callable[[Mapping[str, Any], Sequence[int]], dict[str, Any]]) -> Rule:
    """op(transpose(x), …) is transpose(op'(x, …)), `move` giving the attributes of op'."""

    def rule(r: Rewriter, n: Node) -> Node | None:
        x = n.inputs[0]
        if not _is(x, "transpose"):
            return None
        perm = x.attrs["perm"]
        return r.make("transpose", r.make(n.row, x.inputs[0], *n.inputs[1:], **move(n.attrs, perm)), perm=perm)

    return rule


def _axes_moved(attrs: Mapping[str, Any], perm: Sequence[int]) -> dict[str, Any]:
    return {"axes": tuple(sorted(perm[a] for a in attrs["axes"]))}


def _all_moved(attrs: Mapping[str, Any], perm: Sequence[int]) -> dict[str, Any]:
    """Attributes that name every axis, in the order of the input of the transpose."""
    back = inverse(perm)
    return {k: tuple(v[p] for p in back) if isinstance(v, tuple) else v for k, v in attrs.items()}


def _sink_concat(r: Rewriter, n: Node) -> Node | None:
    perms = {x.attrs["perm"] for x in n.inputs if _is(x, "transpose")}
    if len(perms) != 1:
        return None
    (perm,) = perms
    back = inverse(perm)
    given = [x.inputs[0] if _is(x, "transpose") else r.make("transpose", x, perm=back) for x in n.inputs]
    lost = sum(_is(g, "transpose") for x, g in zip(n.inputs, given, strict=True) if not _is(x, "transpose"))
    if lost * 2 >= len(n.inputs):
        return None
    return r.make("transpose", r.make("concat", *given, axis=perm[n.attrs["axis"] % len(perm)]), perm=perm)


def _sink_expand(r: Rewriter, n: Node) -> Node | None:
    x = n.inputs[0]
    if not _is(x, "transpose") or len(x.shape) != len(n.shape):
        return None
    perm = x.attrs["perm"]
    back = inverse(perm)
    return r.make("transpose", r.make("expand", x.inputs[0], shape=tuple(n.shape[p] for p in back)), perm=perm)


def _sink_reshape(r: Rewriter, n: Node) -> Node | None:
    """reshape(transpose(x)) is transpose(reshape(x)) where the reshape works on groups of axes that stay together."""
    t = n.inputs[0]
    if not _is(t, "transpose"):
        return None
    groups = _groups(t.shape, n.shape)
    if groups is None:
        return None
    perm = t.attrs["perm"]
    for before, _ in groups:
        sources = [perm[i] for i in before]
        if sources != list(range(sources[0], sources[0] + len(sources))):
            return None
    order = sorted(range(len(groups)), key=lambda g: perm[groups[g][0][0]])
    shape = tuple(n.shape[i] for g in order for i in groups[g][1])
    at: dict[int, int] = {}
    for g in order:
        for i in groups[g][1]:
            at[i] = len(at)
    return r.make("transpose", r.make("reshape", t.inputs[0], shape=shape), perm=tuple(at[i] for i in range(len(n.shape))))


def _groups(before: Shape, after: Shape) -> list[tuple[list[int], list[int]]] | None:
    """The axes of two shapes of equal size, cut into the smallest runs of equal product; None where they do not align."""
    groups: list[tuple[list[int], list[int]]] = []
    i = j = 0
    while i < len(before):
        left, right = [i], []
        a: Dim = before[i]
        b: Dim = 1
        i += 1
        while a != b:
            small = isinstance(a, int) and isinstance(b, int) and a < b or not isinstance(b, int)
            if small and i < len(before):
                a = a * before[i]
                left.append(i)
                i += 1
            elif j < len(after):
                b = b * after[j]
                right.append(j)
                j += 1
            else:
                return None
        while j < len(after) and after[j] == 1 and (i == len(before) or before[i] != 1):
            right.append(j)
            j += 1
        groups.append((left, right))
    return groups if j == len(after) and product(before) == product(after) else None


RULES: Final[Mapping[str, Sequence[Rule]]] = {
    "add": (_neutral(0, True), _join_shifts),
    "sub": (_neutral(0, False), _sub_constant),
    "mul": (_neutral(1, True), _scale_contraction),
    "div": (_neutral(1, False), _div_constant),
    "reshape": (_reshape, _sink_reshape),
    "transpose": (_transpose,),
    "expand": (_expand, _sink_expand),
    "slice": (_slice, _sink_first(_all_moved)),
    "pad": (_pad, _sink_first(_all_moved)),
    "concat": (_concat, _sink_concat),
    "cast": (_cast,),
    "max_pool": (_sink_first(_all_moved),),
    "pool_sum": (_sink_first(_all_moved),),
    "conv_last": (_pad_into_conv,),
    "dot": (_reorder_rows,),
    **{name: (_reduce, _sink_first(_axes_moved)) for name in ("reduce_sum", "reduce_max", "reduce_min", "reduce_prod")},
}
"""row ↦ what may be said of it more simply, tried in order."""

ELEMENTWISE: Final[Sequence[Rule]] = (_unbroadcast, _sink_elementwise, _sink_reshape_elementwise)
