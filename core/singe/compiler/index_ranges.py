"""Which integers among a graph's inputs it uses as indices as they are given, with the range that they must be in.

An input counts if only casts that keep each number, one slice, and changes of shape lie between it and the node that indexes;
indices that are computed are the device's, and follow its rule (ops/movement/indices.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, NamedTuple, TypeAlias

from ..dtypes import int32, int64
from ..graph import ORIGINS, Graph, Node
from ..ops.folds.losses import IGNORED
from ..program.ranges import IndexRange
from ..shapes import Dim, show

SHAPING: Final = ("reshape", "transpose", "expand", "stop_gradient")
"""Rows that change the shape at most."""


def passes_on(n: Node) -> bool:
    """Whether a node gives integers of its first input as they are, all or a slice of them: such nodes may lie between an input
    and what indexes by it, and between the input and a slice only casts."""
    if n.op not in (*SHAPING, "slice", "cast") or not (n.dtype.is_int and n.inputs[0].dtype.is_int):
        return False
    if n.op != "cast" or (n.inputs[0].dtype, n.dtype) == (
        int64,
        int32,
    ):  # an index beyond 32 bits is one beyond its axis
        return True
    (least, most), (low, high) = n.inputs[0].dtype.limits, n.dtype.limits
    return low <= least and most <= high


class Use(NamedTuple):
    """Indices that a node uses, and from where to where they run; see Range."""

    indices: Node
    least: Dim
    most: Dim
    text: str
    ignored: int | None = None


Uses: TypeAlias = Callable[..., Iterator[Use]]


def _along(what: str, index: int) -> Uses:
    """Indices of one axis of the first input."""

    def uses(n: Node, axis: int, **_: Any) -> Iterator[Use]:
        shape = n.inputs[0].shape
        axis %= len(shape)
        yield Use(n.inputs[index], -shape[axis], shape[axis] - 1, f"{what}: axis {axis} of {show(shape)}")

    return uses


def _places(index: int) -> Uses:
    """Coordinates in the first input, of one axis, or put together of those of each."""

    def uses(n: Node, batch: int = 0, **_: Any) -> Iterator[Use]:
        whole = n.inputs[index]
        joined = whole.op == "concat" and whole.attrs["axis"] % len(whole.shape) == len(whole.shape) - 1
        columns = whole.inputs if joined else (whole,)
        if all(x.shape[-1] == 1 for x in columns):
            for x, d in zip(columns, n.inputs[0].shape[batch:], strict=False):
                yield Use(x, -d, d - 1, f"index: an axis of {d}")

    return uses


def _classes(n: Node, ignore_index: int = IGNORED, **_: Any) -> Iterator[Use]:
    shape = n.inputs[0].shape
    yield Use(n.inputs[1], 0, shape[1] - 1, f"{n.op}: a class of {show(shape)}", ignore_index)


INDEXING: Final[Mapping[str, Uses]] = {
    "gather": _along("index", 1),
    "gather_elements": _along("gather", 1),
    "scatter_elements": _along("scatter", 2),
    "scatter_elements_reduce": _along("scatter", 2),
    "gather_nd": _places(1),
    "scatter_nd": _places(2),
    "scatter_nd_reduce": _places(2),
    "nll_loss": _classes,
    "cross_entropy": _classes,
}
"""The rows that index ↦ how."""


def uses(n: Node) -> Iterator[Use]:
    """The indices that a node uses."""
    return INDEXING[n.op](n, **n.attrs) if n.op in INDEXING else iter(())


class _Place(NamedTuple):
    """The elements of a node: an input, or a part of it. whole: whether the node has the input's axes."""

    input: int
    part: tuple[tuple[Dim, int, Dim], ...] | None
    is_whole: bool


def input_ranges(graph: Graph) -> tuple[IndexRange, ...]:
    """The ranges of a graph's inputs, each once. A constant that is out of range is refused here."""
    places = {x: _Place(k, None, True) for k, x in enumerate(graph.inputs) if x.dtype.numpy.kind in "iu"}
    found: dict[IndexRange, IndexRange] = {}
    for r in _ranges(graph.nodes, places):
        found.setdefault(replace(r, text=""), r)
    return tuple(r for r in found.values() if r.sizes <= graph.symbols)


def _ranges(nodes: Sequence[Node], places: dict[Node, _Place]) -> Iterator[IndexRange]:
    """The ranges of inputs that nodes, in their order, index by."""
    for n in nodes:
        first = places.get(n.inputs[0]) if n.inputs else None
        if first is not None and passes_on(n):
            if n.op == "cast":
                places[n] = first
            elif n.op != "slice":
                places[n] = first._replace(is_whole=False)
            elif first.is_whole:
                axes = zip(n.attrs["starts"], n.attrs["steps"], n.attrs["sizes"], strict=True)
                places[n] = _Place(first.input, tuple(axes), False)
        for use in uses(n):
            value = use.indices.value
            text = f"{ORIGINS[n].taken}{use.text}" if n in ORIGINS else use.text
            if value is not None and value.dtype.kind in "iu":
                own = IndexRange(0, None, use.least, use.most, use.ignored, text)
                if not own.sizes:
                    own.check(value, {})
            elif place := places.get(use.indices):
                yield IndexRange(place.input, place.part, use.least, use.most, use.ignored, text)
