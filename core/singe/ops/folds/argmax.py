"""The rows that find where the largest or the least element along an axis is. The axis is kept with length 1."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...dtypes import NUMBERS, int32, int64
from ...ir import scalar
from ...ir.arrays.adapter import Array, ArrayAdapter
from ...ir.kernel import IDENTITY
from ...ir.scalar import Expr, const, select
from ...shapes import Shape, axis_of, product, show
from ..kinds import WHOLE_RESULT, Composite, Folds, Nest, Read, Shaped, register
from ..movement.indices import check_room
from ..movement.move import numbered_along


def _shape(x: Shaped, axis: int, last: bool = False) -> Shape:
    axis = axis_of(axis, len(x.shape), "argmax")
    shape = _kept(x.shape, axis)
    text = f"argmax: axis {axis} of {show(x.shape)} is empty, so that no element is the largest"
    check_room(text, x.shape[axis], product(shape))
    return shape


def _kept(shape: Shape, axis: int) -> Shape:
    """The shape with the axis of length 1."""
    return tuple(1 if i == axis else d for i, d in enumerate(shape))


def _nest(word: str) -> Callable[..., Folds]:
    """The extreme value, then the first (or last) index at which it occurs. NaN is the extreme value if there is one."""

    def nest(coords: Sequence[Expr], read: Read, x: Shaped, axis: int, last: bool = False) -> Folds:
        axis = axis_of(axis, len(x.shape), "argmax")
        choose = "max" if last else "min"

        def element(inner: Sequence[Expr], _: Sequence[Expr]) -> Expr:
            return read(0, [inner[0] if i == axis else c for i, c in enumerate(coords)])

        def place(inner: Sequence[Expr], folded: Sequence[Expr]) -> Expr:
            v = element(inner, ())
            hit = scalar.eq(v, folded[0])
            hit = hit | scalar.isnan(v) if v.dtype.is_float else hit
            return select(hit, inner[0], const(IDENTITY[choose](int32), int32))

        return Folds((x.shape[axis],), [(word, element), (choose, place)], lambda a: scalar.cast(a[1], int64))

    return nest


def _evaluate(name: str) -> Callable[..., Array]:
    def evaluate(xp: ArrayAdapter, x: Array, axis: int, last: bool = False) -> Array:
        if 0 in x.shape:
            return xp.full([1 if i == axis % x.ndim else d for i, d in enumerate(x.shape)], 0, int64)
        wide = xp.cast(x, xp.dtype(x).compute)
        found = getattr(xp, name)(xp.flip(wide, axis=axis) if last else wide, axis=axis, keepdims=True)
        return xp.cast(x.shape[axis] - 1 - found if last else found, int64)

    return evaluate


def _hardmax(b: Any, x: Any, *, axis: int = -1) -> Any:
    axis = axis_of(axis, len(x.shape), "hardmax")
    if x.shape[axis] == 0:
        return x
    numbers = numbered_along(b, x.shape, axis, int64)
    return b.cast(b.equal(numbers, b.argmax(x, axis=axis)), to=x.dtype)


register(
    Nest(name="argmax", doc="the index of the largest element along an axis: the first, or the last, if several are equal",
        no_gradient=WHOLE_RESULT,
         shape=_shape, nest=_nest("max"), evaluate=_evaluate("argmax"), result_type=int64, dtypes=NUMBERS),
    Nest(name="argmin", doc="the index of the least element along an axis: the first, or the last, if several are equal",
        no_gradient=WHOLE_RESULT,
         shape=_shape, nest=_nest("min"), evaluate=_evaluate("argmin"), result_type=int64, dtypes=NUMBERS),
    Composite(name="hardmax", doc="1 at the first largest element along an axis, 0 elsewhere", lower=_hardmax,
              dtypes=NUMBERS),
)  # fmt: skip
