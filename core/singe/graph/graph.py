"""Graph: frozen nodes (row, inputs, attributes) with dtypes and shapes, and the Builder that makes them.

A node is made once: the Builder interns by row, inputs and attributes, so equal computations are one node. Constants
are nodes with a value; a small integer constant may hold Sizes (an object array), so that shape arithmetic on symbolic
dimensions is plain constant folding. A Composite's node carries its lowering, built beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np

from .. import shapes
from ..dtypes import FLOATS, DType, dtype, int64
from ..errors import CompileError, DTypeError
from ..ops import ROWS, Composite, Elementwise, Row, elementwise_vjp
from ..ops._row import narrow
from ..shapes import Shape, Size, show

MAX_ELEMENTS: Final = 2**31 - 1
"""Elements of a tensor at most, as far as files may ask for it."""
INTERNED_BYTES: Final = 4096
"""Constants up to this size are interned by content; larger ones by identity."""


class Node:
    """A value: what computes it (`row` with `attrs` over `inputs`), or an input (`name`), or a constant (`value`)."""

    __slots__ = ("__weakref__", "attrs", "dtype", "inputs", "lowered", "name", "row", "shape", "value")

    def __init__(
        self, row: Row | None, inputs: tuple[Node, ...], attrs: Mapping[str, Any], shape: Shape, kind: DType,
        *, name: str = "", value: np.ndarray | None = None, lowered: Node | None = None,
    ) -> None:  # fmt: skip
        self.row: Final = row
        self.inputs: Final = inputs
        self.attrs: Final = attrs
        self.shape: Final = shape
        self.dtype: Final = kind
        self.name: Final = name
        self.value: Final = value
        self.lowered: Final = lowered

    @property
    def is_const(self) -> bool:
        return self.value is not None

    @property
    def is_input(self) -> bool:
        return self.row is None and self.value is None

    @property
    def op(self) -> str:
        return self.row.name if self.row else "const" if self.is_const else "input"

    def __repr__(self) -> str:
        return f"{self.op}{show(self.shape)}:{self.dtype}"


class Builder:
    """Makes nodes. Every row is a method: `b.exp(x)`, `b.transpose(x, perm=(1, 0))`."""

    def __init__(self) -> None:
        self._nodes: dict[Any, Node] = {}
        self._values: dict[Node, np.ndarray | None] = {}

    def input(self, name: str, shape: Sequence[Any], kind: DType) -> Node:
        return Node(None, (), {}, tuple(shape), kind, name=name)

    def const(self, value: Any, kind: DType | None = None) -> Node:
        """A constant from a number, a Size, or an array; numbers default to float32, int64 or bool."""
        if isinstance(value, Size):
            array = np.empty((), object)
            array[()] = value
        elif isinstance(value, np.ndarray):
            array = value
        else:
            natural = np.asarray(value)
            array = (
                natural
                if natural.dtype == object
                else natural.astype(
                    np.float32 if natural.dtype.kind == "f" else bool if natural.dtype.kind == "b" else np.int64
                )
            )
        if array.dtype == object:
            array = narrow(array, np.dtype(np.int64))
        if array.dtype == object:
            return self._intern(
                ("symbols", kind, array.shape, tuple(array.ravel())),
                lambda: Node(None, (), {}, array.shape, kind or int64, value=array),
            )
        if kind is not None and array.dtype != kind.numpy:
            with np.errstate(over="ignore"):
                array = array.astype(kind.numpy)
        kind = dtype(array.dtype)
        key = ("const", kind, array.shape, array.tobytes()) if array.nbytes <= INTERNED_BYTES else ("const", id(array))
        return self._intern(key, lambda: Node(None, (), {}, array.shape, kind, value=array))

    def shape_of(self, x: Node) -> Node:
        """The shape as an int64 vector, symbolic dimensions included."""
        array = np.empty(len(x.shape), object)
        array[:] = x.shape
        return self.const(array)

    def apply(self, row: Row, *inputs: Node, **attrs: Any) -> Node:
        """The node of a row over inputs; equal nodes are one."""
        attrs = {k: _frozen(v) for k, v in attrs.items() if v is not None}
        given = tuple(x for x in inputs if x is not None)
        if isinstance(row, Composite):
            row.check_dtypes(given[:1])

            def make() -> Node:
                lowered = row.lower(self, *inputs, **attrs)
                return Node(row, given, attrs, lowered.shape, lowered.dtype, lowered=lowered)
        else:

            def make() -> Node:
                shape, kind = row.infer(given, attrs)
                return Node(row, given, attrs, tuple(shape), kind)

        return self._intern((row.name, inputs, tuple(sorted(attrs.items()))), make)

    def _intern(self, key: Any, make: Callable[[], Node]) -> Node:
        found = self._nodes.get(key)
        if found is None:
            found = self._nodes[key] = make()
        return found

    def __getattr__(self, name: str) -> Callable[..., Node]:
        row = ROWS.get(name)
        if row is None:
            raise AttributeError(f"there is no op named {name!r}")
        return lambda *inputs, **attrs: self.apply(row, *inputs, **attrs)

    def value_of(self, x: Node) -> np.ndarray | None:
        """The value of a node that depends on constants alone, or None."""
        if x.value is not None:
            return x.value
        if x not in self._values:
            for n in postorder([x]):
                if n not in self._values:
                    self._values[n] = n.value if n.is_const else None if n.is_input else self._evaluate(n)
        return self._values[x]

    def _evaluate(self, n: Node) -> np.ndarray | None:
        if n.lowered is not None:
            return self.value_of(n.lowered)
        values = [self._values.get(x) if x in self._values else x.value for x in n.inputs]
        if any(v is None for v in values):
            return None
        return evaluate(n, values)  # pyright: ignore[reportArgumentType]

    def vjp(self, y: Node, x: Node, g: Node) -> Node:
        """The gradient that x gets from y's gradient g, y being made of x in one step."""
        return self.gradients(y, g)[y.inputs.index(x)] or self.expand(self.const(0, x.dtype), shape=x.shape)  # pyright: ignore[reportReturnType]

    def gradients(self, y: Node, g: Node) -> Sequence[Node | None]:
        """The gradient of each input of a node, from the node's."""
        row = y.row
        if isinstance(row, Elementwise) and row.vjp is None:
            return elementwise_vjp(self, row, g, y.inputs, y.attrs)
        if row is None or row.vjp is None:
            raise CompileError(f"{y.op} has no gradient")
        return row.vjp(self, g, y.inputs, y, **y.attrs)


def _frozen(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return tuple(map(_frozen, value))
    return value.item() if isinstance(value, (np.integer, np.floating, np.bool_)) else value


def evaluate(n: Node, values: Sequence[np.ndarray]) -> np.ndarray:
    """One node over whole arrays."""
    assert n.row is not None
    with np.errstate(all="ignore"):
        out = np.asarray(n.row.array(*values, **n.attrs))
    return narrow(out, n.dtype.numpy) if out.dtype == object else out


def postorder(roots: Iterable[Node], inputs_of: Callable[[Node], Sequence[Node]] = lambda n: n.inputs) -> list[Node]:
    """Every node below the roots once, inputs before users."""
    order: dict[Node, None] = {}
    stack = [(n, False) for n in reversed(list(roots))]
    opened: set[Node] = set()
    while stack:
        n, ready = stack.pop()
        if ready:
            order.setdefault(n)
        elif n not in opened:
            opened.add(n)
            stack.append((n, True))
            stack.extend((x, False) for x in reversed(inputs_of(n)) if x not in opened)
    return list(order)


def bare(n: Node) -> Node:
    """The node whose memory a node is: reshapes change no memory."""
    while n.row is not None and n.row.name == "reshape":
        n = n.inputs[0]
    return n


@dataclass(frozen=True, eq=False)
class Graph:
    """Named inputs and outputs; the nodes are what the outputs reach."""

    inputs: tuple[Node, ...]
    outputs: tuple[Node, ...]
    output_names: tuple[str, ...]

    @cached_property
    def nodes(self) -> list[Node]:
        return postorder(self.outputs)

    @cached_property
    def users(self) -> dict[Node, list[Node]]:
        """The nodes that read each node, once for each time they do."""
        out: dict[Node, list[Node]] = {n: [] for n in self.nodes}
        for n in self.nodes:
            for x in n.inputs:
                out[x].append(n)
        return out

    @property
    def symbols(self) -> frozenset[str]:
        return shapes.symbols([x.shape for x in self.inputs])

    def ops(self) -> dict[str, int]:
        """How many nodes of each op."""
        out: dict[str, int] = {}
        for n in self.nodes:
            if n.row is not None:
                out[n.op] = out.get(n.op, 0) + 1
        return dict(sorted(out.items(), key=lambda item: (-item[1], item[0])))


def rebuild(
    graph: Graph,
    builder: Builder,
    rule: Callable[[Builder, Node, tuple[Node, ...]], Node | None],
    inputs: Mapping[Node, Node] | None = None,
) -> Graph:
    """The graph made anew, inputs first: `rule(builder, node, new inputs)` gives a node's replacement, None keeps it."""
    done: dict[Node, Node] = dict(inputs or {})
    for n in graph.nodes:
        if n in done:
            continue
        given = tuple(done[x] for x in n.inputs)
        done[n] = rule(builder, n, given) or (n if n.row is None else builder.apply(n.row, *given, **n.attrs))
    return Graph(tuple(done.get(x, x) for x in graph.inputs), tuple(done[x] for x in graph.outputs), graph.output_names)


def specialise(graph: Graph, sizes: Mapping[str, int]) -> Graph:
    """The graph with numbers for some of its symbolic sizes, made anew so that every shape is inferred again."""
    builder = Builder()
    new = {x: builder.input(x.name, [shapes.evaluate(d, sizes) for d in x.shape], x.dtype) for x in graph.inputs}

    def fix(value: Any) -> Any:
        if isinstance(value, tuple):
            return tuple(map(fix, value))
        return shapes.evaluate(value, sizes) if isinstance(value, Size) else value

    def rule(b: Builder, n: Node, given: tuple[Node, ...]) -> Node | None:
        if n.value is not None:
            if n.value.dtype != object:
                return None
            array = np.empty(n.value.shape, object)
            array.ravel()[:] = [fix(v) for v in n.value.ravel()]
            return b.const(array, n.dtype)
        return b.apply(n.row, *given, **{k: fix(v) for k, v in n.attrs.items()}) if n.row else None

    return rebuild(graph, builder, rule, new)


def inline(graph: Graph, builder: Builder, nodes: Sequence[Node]) -> tuple[Node, ...]:
    """The graph's outputs with these nodes as its inputs; its symbolic sizes get the numbers that the nodes have."""
    pairs = [p for x, n in zip(graph.inputs, nodes, strict=True) for p in zip(x.shape, n.shape, strict=True)]
    sizes = {str(d): n for d, n in pairs if isinstance(d, Size) and isinstance(n, int)}
    made = specialise(graph, sizes) if sizes else graph
    return rebuild(made, builder, lambda b, n, given: None, dict(zip(made.inputs, nodes, strict=True))).outputs


def gradient(graph: Graph, builder: Builder, seeds: Sequence[Node], by: Sequence[Node]) -> list[Node]:
    """The gradients of Σ seed · output by some nodes, as nodes; zeros where nothing depends on them."""
    order = postorder(
        graph.outputs,
        lambda n: (n.lowered,) if n.lowered is not None and n.row is not None and n.row.vjp is None else n.inputs,
    )
    adjoint: dict[Node, Node] = {}

    def give(n: Node, g: Node | None) -> None:
        if g is not None and n.dtype in FLOATS:
            adjoint[n] = builder.add(adjoint[n], g) if n in adjoint else g

    for y, g in zip(graph.outputs, seeds, strict=True):
        if y.dtype not in FLOATS:
            raise DTypeError(f"gradient: an output is {y.dtype}, expected a float type")
        give(y, g)
    for n in reversed(order):
        g = adjoint.get(n)
        if g is None or n.row is None or n in by:
            continue
        if n.lowered is not None and n.row.vjp is None:
            give(n.lowered, g)
        else:
            for x, part in zip(n.inputs, builder.gradients(n, g), strict=True):
                give(x, part)
    return [adjoint.get(x) or builder.expand(builder.const(0, x.dtype), shape=x.shape) for x in by]
