"""Reductions: ONNX's axes (an attribute once, an input now), the axes dropped or kept, what is done before and after."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final, NamedTuple

import numpy as np

from ...dtypes import bool_, uint8
from ...graph import Builder, Node
from ...shapes import axes_of
from ._call import ADAPTERS, Call


class Recipe(NamedTuple):
    """A reduction: `row` over what `before` makes of the input, then `after`."""

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


def _axes(call: Call, x: Node) -> tuple[int, ...]:
    """The axes to fold; all of them where none are named, unless the node says otherwise."""
    asked = call.numbers("axes", 1)
    if asked:
        return axes_of(asked, len(x.shape), "reduce")
    return () if call.flag("noop_with_empty_axes") else tuple(range(len(x.shape)))


def _without(call: Call, x: Node, axes: tuple[int, ...]) -> Node:
    """x as it is, or with its folded axes dropped."""
    if call.flag("keepdims", True):
        return x
    return call.b.reshape(x, shape=tuple(d for i, d in enumerate(x.shape) if i not in axes))


def _reduce(recipe: Recipe, call: Call) -> Node:
    b, x = call.b, call.x()
    axes = _axes(call, x)
    y = b.cast(x, to=uint8) if x.dtype is bool_ else x
    y = recipe.before(b, y) if recipe.before else y
    y = getattr(b, recipe.row)(y, axes=axes) if axes else y
    y = recipe.after(b, y) if recipe.after else y
    return _without(call, b.cast(y, to=bool_) if x.dtype is bool_ else y, axes)


def _log_sum_exp(call: Call) -> Node:
    """With the largest taken out, so that no exponential overflows; an infinite one stays in."""
    b, x = call.b, call.x()
    axes = _axes(call, x)
    if not axes:
        return x
    top = b.reduce_max(x, axes=axes)
    top = b.where(b.equal(b.abs(top), b.const(np.inf, x.dtype)), b.const(0, x.dtype), top)
    return _without(call, b.add(b.log(b.reduce_sum(b.exp(b.sub(x, top)), axes=axes)), top), axes)


ADAPTERS.update({op: partial(_reduce, recipe) for op, recipe in RECIPES.items()})
ADAPTERS["ReduceLogSumExp"] = _log_sum_exp
