"""Node, and functions on nodes that need no Graph."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from .. import shapes
from ..dtypes import DType
from ..errors import CompileError
from ..ir.arrays.numpy import NUMPY_ARRAYS
from ..ops import Elementwise, Result, Row, View, narrow
from ..shapes import Shape, Size, show


class Node:
    """An op over other nodes (`row` with `attrs` over `inputs`), an input (`name`), or a constant (`value`).

    `results` has the shape and dtype of each value; `shape` and `dtype` exist if there is only one. Other nodes read
    a node of several results through nodes of the row "result". `lowered`: for a composite, the nodes that compute its
    results; otherwise empty.
    """

    __slots__ = ("__weakref__", "attrs", "dtype", "inputs", "lowered", "name", "results", "row", "shape", "value")

    def __init__(
        self, row: Row | None, inputs: tuple[Node, ...], attrs: Mapping[str, Any], results: tuple[tuple[Shape, DType], ...],
        *, name: str = "", value: np.ndarray | None = None, lowered: tuple[Node, ...] = (),
    ) -> None:  # fmt: skip
        self.row: Final = row
        self.inputs: Final = inputs
        self.attrs: Final = attrs
        self.results: Final = results
        if len(results) == 1:
            self.shape: Final[Shape] = results[0][0]
            self.dtype: Final[DType] = results[0][1]
        self.name: Final = name
        self.value: Final = value
        self.lowered: Final = lowered

    def __getattr__(self, name: str) -> Any:
        if name in ("shape", "dtype"):
            raise CompileError(
                f"{self.op} has {len(self.results)} results: ask one of its `result` nodes for its {name}"
            )
        raise AttributeError(name)

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
        return f"{self.op}{', '.join(f'{show(shape)}:{kind}' for shape, kind in self.results)}"


class Origin(NamedTuple):
    """Where a node comes from, for people. layer: such as "the layer 'encoder.embedding', Embedding"; line: of their code; argument:
    of the layer, which the node takes as indices. Those that are not known are empty."""

    layer: str
    line: str = ""
    argument: str = ""

    @property
    def of_gradient(self) -> Origin:
        """That of what is computed on the way back."""
        return self._replace(line=f"the gradient of {self.line}" if self.line else "the gradient")

    def __str__(self) -> str:
        """The end of a sentence about the node."""
        return f"{f'; in {self.layer}' if self.layer else ''}{f'; {self.line}' if self.line else ''}"

    @property
    def short(self) -> str:
        """The layer, or else the line."""
        return self.layer.removeprefix("the layer ") or self.line

    @property
    def taken(self) -> str:
        """The beginning of one about its indices."""
        return f"{self.layer}{f': its argument {self.argument!r}' if self.argument else ''}: " if self.layer else ""


ORIGINS: Final[WeakKeyDictionary[Node, Origin]] = WeakKeyDictionary()
"""Those of the nodes that index, and of all that are made within a `debug` block (runtime/debugging.py); and of the nodes that replace
these."""


def inherit(nodes: Iterable[Node], replaced: Node) -> None:
    """Nodes that are made for another come from where it does."""
    if replaced in ORIGINS:
        for n in nodes:
            ORIGINS.setdefault(n, ORIGINS[replaced])


def layers_of(nodes: Iterable[Node]) -> str:
    """The layers, or lines, from which nodes come."""
    return " + ".join(dict.fromkeys(ORIGINS[n].short for n in nodes if n in ORIGINS))


def leaf(shape: Sequence[Any], kind: DType, name: str = "", value: np.ndarray | None = None) -> Node:
    """A constant if `value` is given, otherwise an input."""
    return Node(None, (), {}, ((tuple(shape), kind),), name=name, value=value)


def evaluate_node(n: Node, values: Sequence[Any]) -> Any:
    """Evaluate one node over whole arrays: an array, or a tuple of arrays if the node has several results."""
    assert n.row is not None
    if isinstance(n.row, Elementwise) and any(v.dtype == object for v in values):
        return narrow(n.row.run_over_sizes(values, n.attrs), n.dtype.numpy)
    with np.errstate(all="ignore"):
        out = n.row.run(NUMPY_ARRAYS, values, n.attrs)
    if len(n.results) > 1:
        return out
    out = np.asarray(out)
    return narrow(out, n.dtype.numpy) if out.dtype == object else out


def postorder(roots: Iterable[Node], inputs_of: Callable[[Node], Sequence[Node]] = lambda n: n.inputs) -> list[Node]:
    """The roots and every node that they need, each once, inputs before users."""
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


def parts(n: Node) -> list[Node]:
    """The nodes of which a composite consists when all in it is lowered; its inputs are none of them."""
    return [
        m for m in postorder(n.lowered, lambda m: () if m in n.inputs else m.lowered or m.inputs) if m not in n.inputs
    ]


def dependents(order: Sequence[Node], by: Iterable[Node]) -> set[Node]:
    """The nodes of an order, inputs before users, that change with the nodes `by`; those included."""
    found = set(by)
    for n in order:
        if any(x in found for x in below(n)):
            found.add(n)
    return found


def below(n: Node) -> Sequence[Node]:
    """The nodes through which the gradient of a node is computed."""
    return n.lowered if differentiates_lowering(n) else n.inputs


def differentiates_lowering(n: Node) -> bool:
    """Whether the gradient is computed through the nodes that this node is lowered to."""
    maker = n.inputs[0] if isinstance(n.row, Result) else n
    return bool(n.lowered) and maker.row is not None and maker.row.vjp is None


def storage_of(n: Node) -> Node:
    """The node whose memory this node shares, such as that below a reshape."""
    while isinstance(n.row, View) and n.row.shares:
        n = n.inputs[0]
    return n


def symbols_of(n: Node) -> frozenset[str]:
    """The sizes that a node needs to be computed: those in its shapes, attributes and regions."""
    found = shapes.symbols([shape for shape, _ in n.results])
    if n.value is not None:
        return found | shapes.symbols(n.value.ravel().tolist()) if n.value.dtype == object else found
    return found | attribute_symbols(n)


def attribute_symbols(n: Node) -> frozenset[str]:
    """The sizes in a node's attributes, including the free sizes of its regions."""
    found: frozenset[str] = frozenset()
    for value in n.attrs.values():
        if isinstance(value, Size):
            found |= shapes.symbols(value)
        elif isinstance(value, tuple):
            found |= shapes.symbols(v for v in value if isinstance(v, (Size, tuple)))
        elif hasattr(value, "free"):
            found |= value.free
    return found
