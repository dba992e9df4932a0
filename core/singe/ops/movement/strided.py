"""Rows that read elements at steps: diagonals, and windows along an axis (unfold); and overlap_add, which undoes unfold
by adding what windows share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...dtypes import NUMBERS, int32, int64
from ...errors import ShapeError
from ...ir import affine, scalar
from ...ir.arrays.adapter import Array, ArrayAdapter
from ...ir.scalar import Expr, const, select, size
from ...shapes import Dim, Shape, axis_of, ceildiv, dim_max, dim_min, floordiv, require, show
from ..kinds import Folds, Nest, Read, Shaped, View, register
from .move import inverse, numbered
from .triangle import diagonals

# --- diagonal --------------------------------------------------------------------------------------------------------


def _pair(x: Shaped, axis1: int, axis2: int) -> tuple[int, int]:
    first, second = (axis_of(a, len(x.shape), "diagonal") for a in (axis1, axis2))
    if first == second:
        raise ShapeError(f"diagonal: axis1 and axis2 are both {first} of {show(x.shape)}")
    return first, second


def _diagonal_shape(x: Shaped, *, axis1: int = 0, axis2: int = 1, offset: int = 0) -> Shape:
    first, second = _pair(x, axis1, axis2)
    length = dim_max(dim_min(x.shape[first] - max(-offset, 0), x.shape[second] - max(offset, 0)), 0)
    return (*(d for i, d in enumerate(x.shape) if i not in (first, second)), length)


def _diagonal_value(
    coords: Sequence[Expr], read: Read, x: Shaped, *, axis1: int = 0, axis2: int = 1, offset: int = 0
) -> Expr:
    first, second = _pair(x, axis1, axis2)
    *others, along = coords
    rest = iter(others)
    along_axis = {first: along + max(-offset, 0), second: along + max(offset, 0)}
    return read(0, [along_axis[i] if i in along_axis else next(rest) for i in range(len(x.shape))])


def _diagonal_evaluate(xp: ArrayAdapter, x: Array, *, axis1: int = 0, axis2: int = 1, offset: int = 0) -> Array:
    first, second = _pair(x, axis1, axis2)
    length = max(min(x.shape[first] - max(-offset, 0), x.shape[second] - max(offset, 0)), 0)
    others = [i for i in range(x.ndim) if i not in (first, second)]
    places = xp.arange(length, int64)
    found = xp.at(xp.permute_dims(x, (first, second, *others)), [places + max(-offset, 0), places + max(offset, 0)])
    return xp.moveaxis(found, 0, -1)


def _diagonal_vjp(
    b: Any, g: Any, inputs: Sequence[Any], y: Any, *, axis1: int = 0, axis2: int = 1, offset: int = 0
) -> list[Any]:
    (x,) = inputs
    first, second = _pair(x, axis1, axis2)
    rows, columns = x.shape[first], x.shape[second]
    *others, length = y.shape
    if length == 0:
        return [b.expand(b.const(0, g.dtype), shape=x.shape)]
    at = b.clip(
        b.sub(numbered(b, rows), b.const(max(-offset, 0), int32)), b.const(0, int32), b.const(length - 1, int32)
    )
    g = b.reshape(b.gather(g, at, axis=len(others)), shape=(*others, rows, 1))
    hit = b.equal(diagonals(b, rows, columns), b.const(offset, int32))
    full = b.where(hit, g, b.const(0, g.dtype))
    rest = [i for i in range(len(x.shape)) if i not in (first, second)]
    return [b.transpose(full, perm=inverse((*rest, first, second)))]


# --- windows along an axis -------------------------------------------------------------------------------------------


def _reach(length: Dim, dilation: int) -> Dim:
    return (length - 1) * dilation + 1


def _check_steps(what: str, *values: Dim) -> None:
    for v in values:
        require(v - 1, f"{what}: length, step and dilation are {show(values)}, expected at least 1")


def _unfold_shape(x: Shaped, *, axis: int, length: Dim, step: Dim = 1, dilation: int = 1) -> Shape:
    axis = axis_of(axis, len(x.shape), "unfold")
    _check_steps("unfold", length, step, dilation)
    room = x.shape[axis] - _reach(length, dilation)
    require(room, f"unfold: axis {axis} of {show(x.shape)} is shorter than a window, {_reach(length, dilation)}")
    return (*x.shape[:axis], floordiv(room, step) + 1, *x.shape[axis + 1 :], length)


def _unfold_value(
    coords: Sequence[Expr], read: Read, x: Shaped, *, axis: int, length: Dim, step: Dim = 1, dilation: int = 1
) -> Expr:
    axis = axis_of(axis, len(x.shape), "unfold")
    *places, within = coords
    return read(0, [c * size(step) + within * dilation if i == axis else c for i, c in enumerate(places)])


def _unfold_evaluate(xp: ArrayAdapter, x: Array, *, axis: int, length: int, step: int = 1, dilation: int = 1) -> Array:
    axis %= x.ndim
    starts = xp.arange((x.shape[axis] - (length - 1) * dilation - 1) // step + 1, int64) * step
    windows = xp.take(x, starts[:, None] + xp.arange(length, int64) * dilation, axis=axis)
    return xp.moveaxis(windows, axis + 1, -1)


def _unfold_vjp(
    b: Any, g: Any, inputs: Sequence[Any], y: Any, *, axis: int, length: Dim, step: Dim = 1, dilation: int = 1
) -> list[Any]:
    (x,) = inputs
    axis = axis_of(axis, len(x.shape), "unfold")
    return [b.overlap_add(g, axis=axis, length=x.shape[axis], step=step, dilation=dilation)]


def _overlap_shape(x: Shaped, *, axis: int, length: Dim, step: Dim = 1, dilation: int = 1) -> Shape:
    axis = axis_of(axis, len(x.shape) - 1, "overlap_add")
    window = x.shape[-1]
    _check_steps("overlap_add", window, step, dilation)
    text = f"overlap_add: {show(x.shape)}: the windows along axis {axis} do not fit {length} elements"
    require(length - (x.shape[axis] - 1) * step - _reach(window, dilation), text)
    return (*x.shape[:axis], length, *x.shape[axis + 1 : -1])


def _overlap_nest(
    coords: Sequence[Expr], read: Read, x: Shaped, *, axis: int, length: Dim, step: Dim = 1, dilation: int = 1
) -> Folds:
    """Over the windows that may have an element, from the last that begins at or before it backwards."""
    axis = axis_of(axis, len(x.shape) - 1, "overlap_add")
    windows, window = x.shape[axis], x.shape[-1]

    def value(inner: Sequence[Expr], _: Sequence[Expr]) -> Expr:
        if 0 in x.shape:  # there is no element to read
            return const(0, x.dtype.compute)
        at = affine.index_div(coords[axis], step) - inner[0]
        within = coords[axis] - at * size(step)
        inside = (at >= 0) & (at < size(windows))
        if dilation > 1:
            inside = inside & scalar.eq(scalar.rem(within, const(dilation, int32)), 0)
            within = scalar.div(within, const(dilation, int32))
        inside = inside & (within < size(window))
        place = [affine.clamp(at, windows) if i == axis else c for i, c in enumerate(coords)]
        v = read(0, [*place, affine.clamp(within, window)])
        return select(inside, v, const(0, v.dtype))

    return Folds((ceildiv(_reach(window, dilation), step),), [("add", value)])


def _overlap_evaluate(xp: ArrayAdapter, x: Array, *, axis: int, length: int, step: int = 1, dilation: int = 1) -> Array:
    axis %= x.ndim - 1
    kind, wide = xp.dtype(x), xp.cast(x, xp.dtype(x).compute)
    out = xp.full((*x.shape[:axis], length, *x.shape[axis + 1 : -1]), 0, kind.compute)
    cut = [slice(0, d) for d in out.shape]
    for k in range(x.shape[-1]):
        first = k * dilation
        cut[axis] = slice(first, first + (x.shape[axis] - 1) * step + 1, step)
        out = xp.put(out, cut, wide[..., k], "add", over=True)
    return xp.cast(out, kind)


def _overlap_vjp(
    b: Any, g: Any, inputs: Sequence[Any], y: Any, *, axis: int, length: Dim, step: Dim = 1, dilation: int = 1
) -> list[Any]:
    (x,) = inputs
    axis = axis_of(axis, len(x.shape) - 1, "overlap_add")
    every = b.unfold(g, axis=axis, length=x.shape[-1], step=step, dilation=dilation)
    return [b.slice(every, starts=(0,) * len(x.shape), steps=(1,) * len(x.shape), sizes=x.shape)]


register(
    View(name="diagonal", doc="the elements with equal coordinates along two axes (axis2 − axis1 = offset), along a new last axis",
         shape=_diagonal_shape, value=_diagonal_value, vjp=_diagonal_vjp,
         evaluate=_diagonal_evaluate),
    View(name="unfold", doc="windows along an axis, which begin every `step` elements; their elements are along a new last axis",
         shape=_unfold_shape, value=_unfold_value, evaluate=_unfold_evaluate, vjp=_unfold_vjp),
    Nest(name="overlap_add", public=False, doc="windows along an axis, whose elements are along the last axis, added at their places: what undoes unfold",
         dtypes=NUMBERS, shape=_overlap_shape, nest=_overlap_nest, evaluate=_overlap_evaluate, vjp=_overlap_vjp,
         tolerance=32, floor=1e-5),
)  # fmt: skip
