"""Which integers among a graph's inputs it uses as indices as they are given, with the range that they must be in.

An input counts if only casts to integers, one slice, and changes of shape lie between it and the node that indexes; indices
that are computed are the device's, and follow its rule (ops/movement/indices.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, NamedTuple, TypeAlias

from ..graph import Graph, Node
from ..ops.folds.losses import IGNORED
from ..program.ranges import Range
from ..shapes import Dim, show

SAME: Final = ("reshape", "transpose", "expand", "stop_gradient")
"""Rows that change the shape at most."""


class Use(NamedTuple):
    """How a node indexes: by which of its inputs, from where to where; see Range."""

    operand: int
    least: Dim
    most: Dim
    text: str
    ignored: int | None = None


Uses: TypeAlias = Callable[..., "Use | None"]


def _along(what: str, index: int) -> Uses:
    """Indices of one axis of the first input."""

    def use(n: Node, axis: int, **_: Any) -> Use:
        shape = n.inputs[0].shape
        axis %= len(shape)
        return Use(index, -shape[axis], shape[axis] - 1, f"{what}: axis {axis} of {show(shape)}")

    return use


def _places(what: str, index: int) -> Uses:
    """Coordinates in the first input, if they are of one axis."""

    def use(n: Node, batch: int = 0, **_: Any) -> Use | None:
        d = n.inputs[0].shape[batch]
        one = n.inputs[index].shape[-1] == 1
        return Use(index, -d, d - 1, f"{what}: axis {batch} of {show(n.inputs[0].shape)}") if one else None

    return use


def _classes(n: Node, ignore_index: int = IGNORED, **_: Any) -> Use:
    classes = n.inputs[0].shape[1]
    return Use(1, 0, classes - 1, f"{n.op}: a class of {show(n.inputs[0].shape)}", ignore_index)


def _from_end(n: Node, **_: Any) -> Use | None:
    """where(i < 0, i + d, i), by which indices of several axes are counted from the start."""
    test, moved, i = n.inputs
    if (test.op, moved.op) != ("less", "add") or test.inputs[0] is not i or moved.inputs[0] is not i:
        return None
    zero, d = test.inputs[1], moved.inputs[1]
    while d.op == "cast":
        d = d.inputs[0]
    if zero.value is None or zero.value.size != 1 or zero.value.item() != 0 or d.value is None or d.value.size != 1:
        return None
    length = d.value.item()
    return Use(2, -length, length - 1, f"index: an axis of {length}")


INDEXING: Final[Mapping[str, Uses]] = {
    "gather": _along("index", 1),
    "gather_elements": _along("gather", 1),
    "scatter_elements": _along("scatter", 2),
    "scatter_elements_reduce": _along("scatter", 2),
    "gather_nd": _places("gather_nd", 1),
    "scatter_nd": _places("scatter_nd", 2),
    "scatter_nd_reduce": _places("scatter_nd", 2),
    "nll_loss": _classes,
    "cross_entropy": _classes,
    "where": _from_end,
}
"""The rows that index ↦ how."""


class _Origin(NamedTuple):
    """The elements of a node: an input, or a part of it. whole: whether the node has the input's axes."""

    input: int
    part: tuple[tuple[Dim, int, Dim], ...] | None
    whole: bool


def input_ranges(graph: Graph) -> tuple[Range, ...]:
    """The ranges of a graph's inputs, each once. A constant that is out of range is refused here."""
    origins = {x: _Origin(k, None, True) for k, x in enumerate(graph.inputs) if x.dtype.numpy.kind in "iu"}
    found: dict[Range, Range] = {}
    for r in _ranges(graph.nodes, origins):
        found.setdefault(replace(r, text=""), r)
    return tuple(r for r in found.values() if r.sizes <= graph.symbols)


def _ranges(nodes: Sequence[Node], origins: dict[Node, _Origin]) -> Iterator[Range]:
    """The ranges of inputs that nodes, in their order, index by."""
    for n in nodes:
        first = origins.get(n.inputs[0]) if n.inputs else None
        if first is not None and len(n.results) == 1 and n.dtype.is_int:
            if n.op == "cast":
                origins[n] = first
            elif n.op in SAME:
                origins[n] = first._replace(whole=False)
            elif n.op == "slice" and first.whole:
                axes = zip(n.attrs["starts"], n.attrs["steps"], n.attrs["sizes"], strict=True)
                origins[n] = _Origin(first.input, tuple(axes), False)
        use = INDEXING[n.op](n, **n.attrs) if n.op in INDEXING else None
        if use is None:
            continue
        index = n.inputs[use.operand]
        if index.value is not None and index.value.dtype.kind in "iu":
            own = Range(0, None, use.least, use.most, use.ignored, use.text)
            if not own.sizes:
                own.check(index.value, {})
        elif origin := origins.get(index):
            yield Range(origin.input, origin.part, use.least, use.most, use.ignored, use.text)
