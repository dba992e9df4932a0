"""Reductions: ONNX's axes (an attribute in old versions, an input in new ones), which are kept or dropped, and the ops
before and after the reduction."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final, NamedTuple

import numpy as np

from ....dtypes import bool_, float32, uint8
from ....graph import Builder, Node
from ....shapes import Shape, axes_of
from .._call import ADAPTERS, Call
from ..elementwise.basic import cast
from ..movement.shapes import last


class Recipe(NamedTuple):
    """A reduction: `before` on the input, then `row`, then `after`."""

    row: str
    before: Callable[[Builder, Node], Node] | None = None
    after: Callable[[Builder, Node], Node] | None = None


def _square(b: Builder, x: Node) -> Node:
    return b.mul(x, x)


RECIPES: Final = {
    "ReduceSum": Recipe("reduce_sum"),
    "ReduceProd": Recipe("reduce_prod"),
    "ReduceMax": Recipe("reduce_max"),
    "ReduceMin": Recipe("reduce_min"),
    "ReduceMean": Recipe("reduce_mean"),
    "ReduceL1": Recipe("reduce_sum", before=lambda b, x: b.abs(x)),
    "ReduceL2": Recipe("reduce_sum", before=_square, after=lambda b, x: b.sqrt(x)),
    "ReduceSumSquare": Recipe("reduce_sum", before=_square),
    "ReduceLogSum": Recipe("reduce_sum", after=lambda b, x: b.log(x)),
}


def _operand(call: Call) -> tuple[Node, tuple[int, ...], Shape]:
    """The input, the axes to fold, and the shape of the result. If the node names no axes, all are folded, or none with
    noop_with_empty_axes. Axes that a run computes are moved behind the others."""
    x, kept = call.x(), call.flag("keepdims", True)
    rank = len(x.shape)
    if call.is_found("axes", 1) and (count := len(call.elements(call.vector(1)))):
        moved, _ = last(call, x, 1)
        shape = call.found("axes_sizes", call.vector(1), shape=x.shape, change="kept") if kept else moved.shape[:-count]
        return moved, tuple(range(rank - count, rank)), shape
    empty = call.maybe(1) is not None and call.x(1).shape == (0,)
    asked = None if empty else call.numbers("axes", 1)
    axes = axes_of(asked, rank, "reduce") if asked else () if call.flag("noop_with_empty_axes") else tuple(range(rank))
    return x, axes, tuple(1 if i in axes else d for i, d in enumerate(x.shape) if kept or i not in axes)


def _reduce(recipe: Recipe, call: Call) -> Node:
    b = call.b
    x, axes, shape = _operand(call)
    y = b.cast(x, to=uint8) if x.dtype is bool_ else x
    y = recipe.before(b, y) if recipe.before else y
    y = getattr(b, recipe.row)(y, axes=axes) if axes else y
    if recipe.after:
        kind = y.dtype
        y = cast(call, recipe.after(b, cast(call, y, float32) if kind.is_int else y), kind)
    y = b.cast(y, to=bool_) if x.dtype is bool_ else y
    return y if y.shape == shape else b.reshape(y, shape=shape)


def _log_sum_exp(call: Call) -> Node:
    """log Σ eˣ. The largest element, unless it is infinite, is subtracted first, so that no exponential overflows."""
    b = call.b
    x, axes, shape = _operand(call)
    if not axes:
        return x
    top = b.reduce_max(x, axes=axes)
    top = b.where(b.equal(b.abs(top), b.const(np.inf, x.dtype)), b.const(0, x.dtype), top)
    y = b.add(b.log(b.reduce_sum(b.exp(b.sub(x, top)), axes=axes)), top)
    return y if y.shape == shape else b.reshape(y, shape=shape)


ADAPTERS.update({op: partial(_reduce, recipe) for op, recipe in RECIPES.items()})
ADAPTERS["ReduceLogSumExp"] = _log_sum_exp
