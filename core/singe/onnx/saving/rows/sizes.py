"""The rows that turn numbers of a run into sizes: nothing is written for them but the arithmetic of the sizes that are used.

Singe checks these numbers in a run; in ONNX the op that uses them does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from ....dtypes import bool_, float32, int64
from ....graph import Node
from ....shapes import product, strides
from ..block import Block
from ..rules import Rule
from .folds import reduced

FAR: Final = 2**63 - 1
"""An end of a slice beyond every axis."""


def _numbers(w: Block, n: Node, k: int = 0) -> str:
    """Input k as a vector of int64."""
    x = n.inputs[k]
    return w.node("Reshape", w.cast(w.name(x), x.dtype, int64), w.vector([-1]))


def _one(w: Block, vector: str, k: int) -> str:
    return w.node("Gather", vector, w.vector([k]), axis=0)


def _sizes(w: Block, n: Node, k: int) -> str:
    return _one(w, _numbers(w, n), k)


def _signed(w: Block, n: Node, k: int) -> str:
    value = _one(w, _numbers(w, n), k // 2)
    return w.node("Max", w.node("Neg", value) if k % 2 else value, w.vector([0]))


def _reshaped(w: Block, n: Node, k: int) -> str:
    """0 copies an axis, and −1 is what is left."""
    asked, shape = _numbers(w, n), n.attrs["shape"]
    count = len(n.results)
    if not n.attrs["allow_zero"]:
        own = w.shape((*shape, *(0,) * count)[:count])
        asked = w.node("Where", w.node("Equal", asked, w.vector([0])), own, asked)
    is_rest = w.node("Equal", asked, w.vector([-1]))
    known = w.node("ReduceProd", w.node("Where", is_rest, w.vector([1]), asked), keepdims=1)
    total = w.node("ReduceProd", w.shape((1, *shape)), keepdims=1)
    rest = w.node("Div", total, w.node("Max", known, w.vector([1])))
    return _one(w, w.node("Where", is_rest, rest, asked), k)


def _expanded(w: Block, n: Node, k: int) -> str:
    shape, rank = tuple(n.attrs["shape"]), len(n.results)
    asked = _numbers(w, n)
    (length,) = n.inputs[0].shape or (1,)
    ones = rank - (length if isinstance(length, int) else rank)
    if ones:
        asked = w.node("Concat", w.vector([1] * ones), asked, axis=0)
    own = w.shape((1,) * (rank - len(shape)) + shape)
    return _one(w, w.node("Where", w.node("Equal", own, w.vector([1])), asked, own), k)


def _range(w: Block, n: Node, k: int) -> str:
    """The length of the range itself."""
    kind = n.inputs[0].dtype
    wide = kind if w.takes("Range", kind) else int64 if kind.is_int else float32
    ends = (w.node("Reshape", w.cast(w.name(x), x.dtype, wide), w.vector([])) for x in n.inputs)
    return w.node("Shape", w.node("Range", *ends))


def _axes(w: Block, n: Node, k: int) -> str:
    """A shape of which axes are made 1, dropped, or between which axes of 1 are added."""
    shape, change = n.attrs["shape"], n.attrs["change"]
    rank = len(n.results) if change == "added" else len(shape)
    axes = w.node("Mod", _numbers(w, n), w.vector([rank]))
    ones = w.node("Expand", w.vector([1]), w.node("Shape", axes))
    named = w.node("ScatterElements", w.vector([0] * rank), axes, ones, axis=0)
    is_named = w.node("Equal", named, w.vector([1]))
    if change == "dropped":
        return _one(w, w.node("Compress", w.shape(shape), w.node("Not", is_named), axis=0), k)
    own = w.shape(shape)
    if change == "added":
        before = w.node("CumSum", w.node("Sub", w.vector([1]), named), w.const(0))
        own = w.node(
            "Gather", w.shape((*shape, 1)), w.node("Max", w.node("Sub", before, w.vector([1])), w.vector([0])), axis=0
        )
    return _one(w, w.node("Where", is_named, w.vector([1]), own), k)


SIZES: Final[Mapping[str, Callable[[Block, Node, int], str]]] = {
    "axes_sizes": _axes, "expanded_sizes": _expanded, "range_size": _range, "reshaped_sizes": _reshaped, "signed_sizes": _signed, "sizes": _sizes,
}  # fmt: skip
"""A row ↦ the first dimension of its result k, as a vector of one int64."""


def _nothing(w: Block, n: Node, *_: str) -> tuple[str, ...]:
    """No values: only the sizes are used."""
    return ("",) * len(n.results)


def _places(w: Block, n: Node, *_: str) -> tuple[str, ...]:
    """The indices along each axis of a slice with computed ends: slices of 0, 1, 2, …"""
    shape = n.attrs["shape"]
    starts, ends, axes, steps = (_numbers(w, n, k) for k in range(4))
    axes = w.node("Mod", axes, w.vector([len(shape)]))
    found: list[str] = []
    for axis in n.attrs["cuts"]:
        here = w.cast(w.node("Equal", axes, w.vector([axis])), bool_, int64)
        absent = w.node("Sub", w.vector([1]), reduced(w, "ReduceSum", here, [0]))

        def own(values: str, otherwise: int, here: str = here, absent: str = absent) -> str:
            """The number of this axis; another one if it is not named."""
            named = reduced(w, "ReduceSum", w.node("Mul", values, here), [0])
            return w.node("Add", named, w.node("Mul", absent, w.vector([otherwise])))

        turns = w.node("Range", w.const(0), w.scalar(shape[axis]), w.const(1))
        found.append(w.node("Slice", turns, own(starts, 0), own(ends, FAR), w.vector([0]), own(steps, 1)))
    return tuple(found)


def _moved_last(w: Block, n: Node, *_: str) -> tuple[str, ...]:
    """The flat places of a transpose whose permutation a run computes: a sum of steps along each axis; and those of its inverse."""
    shape = n.attrs["shape"]
    rank = len(shape)
    axes = w.node("Mod", _numbers(w, n), w.vector([rank]))
    ones = w.node("Expand", w.vector([1]), w.node("Shape", axes))
    named = w.node("ScatterElements", w.vector([0] * rank), axes, ones, axis=0)
    others = w.node("Compress", w.vector(range(rank)), w.node("Equal", named, w.vector([0])), axis=0)
    perm = w.node("Concat", others, axes, axis=0)
    lengths = w.node("Gather", w.shape(shape), perm, axis=0)
    steps = w.node("Gather", w.shape(strides(shape)), perm, axis=0)
    there = ""
    for k in range(rank):
        turns = w.node("Range", w.const(0), w.node("Reshape", _one(w, lengths, k), w.vector([])), w.const(1))
        along = w.node(
            "Reshape", w.node("Mul", turns, _one(w, steps, k)), w.vector([-1 if i == k else 1 for i in range(rank)])
        )
        there = w.node("Add", there, along) if there else along
    flat, count = w.node("Reshape", there, w.vector([-1])), product(shape)
    turns = w.node("Range", w.const(0), w.scalar(count), w.const(1))
    back = w.node("ScatterElements", turns, flat, turns, axis=0)
    return there, w.reshape(back, shape)


RULES: Final[Mapping[str, Sequence[Rule]]] = {
    **dict.fromkeys(SIZES, (Rule(_nothing),)),
    "moved_last": (Rule(_moved_last, lambda w, n: len(n.attrs["shape"]) > 0),),
    "slice_places": (Rule(_places),),
}
