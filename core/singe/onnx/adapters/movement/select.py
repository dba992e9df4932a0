"""Sorting, selection, scattering and running folds."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np

from ....dtypes import float32, int64
from ....graph import Node
from ....ops.movement.move import numbered
from ....shapes import Dim, axis_of, product, require, show
from .._call import ADAPTERS, Call, adapter
from ..elementwise.basic import cast
from .shapes import last


@adapter("TopK")
def _top_k(call: Call) -> list[Node]:
    x = call.x()
    axis = call.axis(-1, len(x.shape))
    k: Dim = call.attr("k", 0) if "k" in call.attributes else call.length(1, x.shape[axis])
    return list(call.b.top_k(x, axis=axis, k=k, largest=call.flag("largest", True)))


@adapter("NonZero")
def _nonzero(call: Call) -> Node:
    x = call.x()
    return call.b.nonzero(x if x.shape else call.b.reshape(x, shape=(1,)))


@adapter("Compress")
def _compress(call: Call) -> Node:
    x, b = call.x(), call.b
    if "axis" not in call.attributes:
        return b.compress(b.reshape(x, shape=(product(x.shape),)), call.x(1), axis=0)
    return b.compress(x, call.x(1), axis=call.axis(0, len(x.shape)))


@adapter("Unique")
def _unique(call: Call) -> list[Node]:
    x = call.x()
    axis = call.axis(0, len(x.shape)) if "axis" in call.attributes else None
    return list(call.b.unique(x, axis=axis, ordered=call.flag("sorted", True)))


@adapter("com.microsoft.Unique")
def _unique_unordered(call: Call) -> list[Node]:
    """The distinct elements in the order in which they occur, the place of each element among them, and counts."""
    values, _, places, counts = call.b.unique(call.x(), axis=None, ordered=False)
    return [values, places, counts]


@adapter("NonMaxSuppression")
def _non_max_suppression(call: Call) -> Node:
    b = call.b
    given = (
        call.maybe(2) or b.const(0, int64),
        call.maybe(3) or b.const(0.0, float32),
        call.maybe(4) or b.const(-np.inf, float32),
    )
    for what, x in zip(("max_output_boxes_per_class", "iou_threshold", "score_threshold"), given, strict=True):
        require(product(x.shape) - 1, f"{what} is empty, expected one number")
    return b.non_max_suppression(call.x(), call.x(1), *given, center=call.flag("center_point_box"))


# --- folds that keep every step --------------------------------------------------------------------------------------


def _running(row: str, unit: int, call: Call) -> Node:
    """A running fold. exclusive: each step excludes its own element, so it is the fold of the axis shifted by one."""
    b, x, backwards = call.b, call.x(), call.flag("reverse")
    if call.is_computed(1):
        moved, back = last(call, x, 1)
        axis = len(x.shape) - 1
    else:
        moved, back = x, None
        axis = axis_of(call.ints(1)[0], len(x.shape), call.op)
    if call.flag("exclusive"):
        none = (0,) * len(x.shape)
        one = tuple(int(i == axis) for i in range(len(x.shape)))
        longer = b.pad(
            moved, b.const(unit, x.dtype), before=none if backwards else one, after=one if backwards else none, mode="constant"
        )  # fmt: skip
        moved = b.slice(longer, starts=one if backwards else none, steps=(1,) * len(x.shape), sizes=moved.shape)
    y = getattr(b, row)(moved, axis=axis, reverse=backwards)
    return y if back is None else b.gather(b.reshape(y, shape=(product(x.shape),)), back, axis=0)


ADAPTERS["CumSum"] = partial(_running, "running_sum", 0)
ADAPTERS["CumProd"] = partial(_running, "running_prod", 1)


# --- places ----------------------------------------------------------------------------------------------------------


def _along(call: Call, x: Node, axis: int, rank: int) -> Node:
    """A vector reshaped to `rank` axes, along `axis`; the other axes have length 1."""
    if len(x.shape) != 1:
        raise call.fail(f"{x!r} in place of a vector")
    return call.b.reshape(x, shape=tuple(x.shape[0] if i == axis else 1 for i in range(rank)))


@adapter("Scatter", "ScatterElements")
def _scatter_elements(call: Call) -> Node:
    x, index, part, b = call.x(), call.x(1), call.x(2), call.b
    axis = call.axis(0, len(x.shape))
    reduction = call.attr("reduction", "none")
    if reduction == "none":
        return b.scatter_elements(x, part, index, axis=axis)
    return b.scatter_elements_reduce(x, part, index, axis=axis, reduction=reduction)


@adapter("ScatterND")
def _scatter_nd(call: Call) -> Node:
    x, index, part, b = call.x(), call.x(1), call.x(2), call.b
    reduction = call.attr("reduction", "none")
    for d in index.shape[-1:]:
        call.number(d, "how many axes the indices name")
    return (
        b.scatter_nd(x, part, index)
        if reduction == "none"
        else b.scatter_nd_reduce(x, part, index, reduction=reduction)
    )


@adapter("TensorScatter")
def _tensor_scatter(call: Call) -> Node:
    """A cache with an update written into it; each item of the batch has its own start."""
    x, part, starts, b = call.x(), call.x(1), call.maybe(2), call.b
    rank, mode = len(x.shape), call.attr("mode", "linear")
    axis = call.axis(-2, rank)
    if mode not in ("linear", "circular") or axis == 0 or len(part.shape) != rank:
        raise call.fail(f"mode {mode!r} along axis {axis} of {show(x.shape)} with the update {show(part.shape)}")
    index = _along(call, numbered(b, part.shape[axis], int64), axis, rank)
    if starts is not None:
        index = b.add(index, _along(call, cast(call, starts, int64), 0, rank))
    if mode == "circular":
        length = b.const(x.shape[axis], int64)
        index = b.where(b.less(index, length), index, b.sub(index, length))
    return b.scatter_elements(x, part, b.expand(index, shape=part.shape), axis=axis)


@adapter("ReverseSequence")
def _reverse_sequence(call: Call) -> Node:
    """For each item of the batch, the first elements are reversed, as many as its length says."""
    x, b = call.x(), call.b
    rank = len(x.shape)
    batch, time = (
        axis_of(call.attr("batch_axis", 1), rank, "batch_axis"),
        axis_of(call.attr("time_axis", 0), rank, "time_axis"),
    )
    if batch == time:
        raise call.fail(f"batch_axis and time_axis are both {batch}")
    perm = (batch, time, *(i for i in range(rank) if i not in (batch, time)))
    count, turns = x.shape[batch], x.shape[time]
    lengths = _along(call, cast(call, call.x(1), int64), 0, 2)
    place = _along(call, numbered(b, turns, int64), 1, 2)
    place = b.where(b.less(place, lengths), b.sub(b.sub(lengths, b.const(1, int64)), place), place)
    place = b.add(place, b.mul(_along(call, numbered(b, count, int64), 0, 2), b.const(turns, int64)))
    moved = b.transpose(x, perm=perm)
    rows = b.gather(b.reshape(moved, shape=(count * turns, *moved.shape[2:])), place, axis=0)
    return b.transpose(rows, perm=tuple(perm.index(i) for i in range(rank)))


@adapter("OneHot")
def _one_hot(call: Call) -> Node:
    index, values, b = call.x(), call.x(2), call.b
    depth = replace(call, inputs=(index, cast(call, call.x(1), int64))).length(1)  # the depth may have any number type
    rank = len(index.shape) + 1
    axis = call.axis(-1, rank)
    index = cast(call, index, int64)
    index = b.where(b.less(index, b.const(0, int64)), b.add(index, b.const(depth, int64)), index)
    index = b.reshape(index, shape=(*index.shape[:axis], 1, *index.shape[axis:]))
    off, on = (b.reshape(b.slice(values, starts=(k,), steps=(1,), sizes=(1,)), shape=()) for k in range(2))
    return b.where(b.equal(index, _along(call, numbered(b, depth, int64), axis, rank)), on, off)
