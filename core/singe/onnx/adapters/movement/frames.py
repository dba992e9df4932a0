"""Ops that cut, pad and put together: CenterCropPad, Col2Im, MaxUnpool."""

from __future__ import annotations

from ....graph import Node
from ....shapes import Dim, axis_of, dim_max, dim_min, floordiv, product, same, show
from .._call import Call, adapter
from ..products.windows import each_of
from .shapes import slice_axes


@adapter("CenterCropPad")
def _center_crop_pad(call: Call) -> Node:
    """The middle of a longer axis; zeros around a shorter one."""
    x, wanted, b = call.x(), call.lengths(call.dims(1)), call.b
    rank = len(x.shape)
    named = call.items("axes", int)
    axes = tuple(range(rank)) if named is None else tuple(axis_of(a, rank, "CenterCropPad") for a in named)
    if len(axes) != len(wanted) or len(set(axes)) != len(axes):
        raise call.fail(f"the lengths {show(wanted)} for the axes {axes} of {show(x.shape)}")
    cuts: dict[int, tuple[Dim, int, Dim]] = {}
    before: list[Dim] = [0] * rank
    after: list[Dim] = [0] * rank
    for axis, length in zip(axes, wanted, strict=True):
        d = x.shape[axis]
        cuts[axis] = (floordiv(dim_max(d - length, 0), 2), 1, dim_min(d, length))
        more = dim_max(length - d, 0)
        before[axis] = floordiv(more, 2)
        after[axis] = more - before[axis]
    x = slice_axes(b, x, cuts)
    if not any((*before, *after)):
        return x
    return b.pad(x, b.const(0, x.dtype), before=tuple(before), after=tuple(after), mode="constant")


@adapter("Col2Im")
def _col_to_im(call: Call) -> Node:
    """Windows of a picture, in columns, added at their places: one axis after the other."""
    x, image, window, b = call.x(), call.lengths(call.dims(1)), call.ints(2), call.b
    axes = len(image)
    if len(x.shape) != 3 or len(window) != axes or min(window, default=0) < 1:
        raise call.fail(
            f"{show(x.shape)} as windows {window} of {show(image)}; expected three axes, and as many lengths"
        )
    steps, dilations = each_of(call, "strides", axes, 1, 1), each_of(call, "dilations", axes, 1, 1)
    pads = each_of(call, "pads", 2 * axes, 0, 0)
    padded = [d + lo + hi for d, lo, hi in zip(image, pads, pads[axes:], strict=False)]
    counts = [floordiv(d - r * (k - 1) - 1, s) + 1 for d, k, s, r in zip(padded, window, steps, dilations, strict=True)]
    x = b.reshape(x, shape=(x.shape[0], floordiv(x.shape[1], product(window)), *window, *counts))
    for k in reversed(range(axes)):
        rank = len(x.shape)
        x = b.transpose(x, perm=(*(i for i in range(rank) if i != 2 + k), 2 + k))
        x = b.overlap_add(x, axis=2 + 2 * k, length=padded[k], step=steps[k], dilation=dilations[k])
    return slice_axes(b, x, {2 + k: (pads[k], 1, image[k]) for k in range(axes)})


@adapter("MaxUnpool")
def _max_unpool(call: Call) -> Node:
    """Elements put where a pool took them from; the indices count in a result of the default shape, which zeros extend."""
    x, index, b = call.x(), call.x(1), call.b
    spaces = len(x.shape) - 2
    fits = len(index.shape) == len(x.shape) and all(
        same(a, c, "MaxUnpool") for a, c in zip(x.shape, index.shape, strict=True)
    )
    if spaces < 1 or not fits:
        raise call.fail(
            f"{show(x.shape)} with the indices {show(index.shape)}; expected equal shapes with spatial axes"
        )
    kernel, steps = each_of(call, "kernel_shape", spaces, 1, 1), each_of(call, "strides", spaces, 1, 1)
    pads = each_of(call, "pads", 2 * spaces, 0, 0)
    space = [
        (d - 1) * s + k - lo - hi
        for d, k, s, lo, hi in zip(x.shape[2:], kernel, steps, pads, pads[spaces:], strict=False)
    ]
    shape = call.lengths((*x.shape[:2], *space))
    zeros = b.expand(b.const(0, x.dtype), shape=(product(shape),))
    flat, places = (b.reshape(v, shape=(product(x.shape),)) for v in (x, index))
    y = b.reshape(b.scatter_elements(zeros, flat, places, axis=0), shape=shape)
    if call.maybe(2) is None:
        return y
    wanted = call.dims(2)
    if len(wanted) != len(shape):
        raise call.fail(f"output_shape is {show(wanted)}; expected {len(shape)} lengths")
    after = tuple(more - d for more, d in zip(wanted, shape, strict=True))
    return b.pad(y, b.const(0, y.dtype), before=(0,) * len(shape), after=after, mode="constant")
