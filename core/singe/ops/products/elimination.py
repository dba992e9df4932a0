"""Rows over square matrices by Gaussian elimination with pivots: det and inverse. Axes before the last two are batches.

Small matrices are eliminated by as many steps one after the other, larger ones by a loop.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from ...dtypes import FLOATS, int32
from ...errors import ShapeError
from ...shapes import product, same, show
from ..control import repeated
from ..kinds import Composite, as_dtype, matrix_transpose, register
from ..movement.move import numbered_along

MOST_STEPS: Final = 6
"""The most rows of a matrix that is eliminated without a loop."""
Turn = Callable[[Any, Any, Any], "tuple[Any, Any]"]


def _square(x: Any, what: str) -> None:
    if len(x.shape) < 2 or not same(x.shape[-1], x.shape[-2], what):
        raise ShapeError(f"{what}: got {show(x.shape)}, expected square matrices in the last two axes")


def _swapped(b: Any, k: Any, x: Any) -> tuple[Any, Any, Any]:
    """The matrices (batch, rows, columns) with row k and the row below it of the largest element in column k exchanged;
    that row (batch, 1, columns); and whether it is another row (batch, 1, 1)."""
    batch, rows, columns = x.shape
    numbers = numbered_along(b, x.shape, 1)
    size = b.where(b.less(numbers, k), b.const(-1, x.dtype), b.abs(b.gather(x, b.reshape(k, shape=(1,)), axis=2)))
    largest = b.equal(size, b.reduce_max(size, axes=(1,)))
    place = b.reduce_min(b.where(largest, numbers, b.const(rows, int32)), axes=(1,))
    best = b.gather_elements(x, b.expand(place, shape=(batch, 1, columns)), axis=1)
    here = b.gather(x, b.reshape(k, shape=(1,)), axis=1)
    moved = b.where(b.equal(numbers, k), best, b.where(b.equal(numbers, place), here, x))
    return moved, best, b.logical_not(b.equal(place, k))


def _det_turn(b: Any, k: Any, x: Any, total: Any) -> tuple[Any, Any]:
    """Column k is made zero below the diagonal; the product of the pivots, and of a sign for each exchange of rows."""
    x, row, other = _swapped(b, k, x)
    at = b.reshape(k, shape=(1,))
    pivot = b.gather(row, at, axis=2)
    zero, one = b.const(0, x.dtype), b.const(1, x.dtype)
    numbers = numbered_along(b, x.shape, 1)
    factor = b.div(b.gather(x, at, axis=2), b.where(b.equal(pivot, zero), one, pivot))
    x = b.sub(x, b.mul(b.where(b.greater(numbers, k), factor, zero), row))
    return x, b.mul(total, b.mul(pivot, b.where(other, b.const(-1, x.dtype), one)))


def _inverse_turn(b: Any, k: Any, x: Any, total: Any) -> tuple[Any, Any]:
    """Column k becomes that of the unit matrix."""
    x, row, _ = _swapped(b, k, x)
    at = b.reshape(k, shape=(1,))
    row = b.div(row, b.gather(row, at, axis=2))
    numbers = numbered_along(b, x.shape, 1)
    return b.where(b.equal(numbers, k), row, b.sub(x, b.mul(b.gather(x, at, axis=2), row))), total


def _eliminated(b: Any, x: Any, turn: Callable[..., tuple[Any, Any]]) -> tuple[Any, Any]:
    """The matrices (batch, rows, columns) after a turn for each row, and what the turns have made of ones."""
    batch, rows, _ = x.shape
    total = b.expand(b.const(1, x.dtype), shape=(batch, 1, 1))
    if isinstance(rows, int) and rows <= MOST_STEPS:
        for k in range(rows):
            x, total = turn(b, b.const(k, int32), x, total)
        return x, total

    def step(carried: Sequence[Any], _: Sequence[Any]) -> Sequence[Any]:
        k, *state = carried
        return b.add(k, b.const(1, int32)), *turn(b, k, *state)

    _, x, total = repeated(b, rows, [b.const(0, int32), x, total], [], step)
    return x, total


def _det(b: Any, x: Any) -> Any:
    _square(x, "det")
    batch, n = x.shape[:-2], x.shape[-1]
    wide = b.reshape(as_dtype(b, x, x.dtype.compute), shape=(product(batch), n, n))
    _, total = _eliminated(b, wide, _det_turn)
    return as_dtype(b, b.reshape(total, shape=batch), x.dtype)


def _det_vjp(b: Any, g: Any, inputs: Sequence[Any], y: Any) -> list[Any]:
    (x,) = inputs
    scale = b.reshape(b.mul(g, y), shape=(*y.shape, 1, 1))
    return [b.mul(scale, matrix_transpose(b, b.inverse(x)))]


def _inverse(b: Any, x: Any) -> Any:
    _square(x, "inverse")
    n, kind = x.shape[-1], x.dtype
    wide = b.reshape(as_dtype(b, x, kind.compute), shape=(product(x.shape[:-2]), n, n))
    row, column = (numbered_along(b, (n, n), axis) for axis in (0, 1))
    unit = b.expand(b.cast(b.equal(row, column), to=wide.dtype), shape=wide.shape)
    both, _ = _eliminated(b, b.concat(wide, unit, axis=2), _inverse_turn)
    found = b.slice(both, starts=(0, 0, n), steps=(1, 1, 1), sizes=wide.shape)
    return as_dtype(b, b.reshape(found, shape=x.shape), kind)


def _inverse_vjp(b: Any, g: Any, inputs: Sequence[Any], y: Any) -> list[Any]:
    turned = matrix_transpose(b, y)
    return [b.neg(b.dot(b.dot(turned, g), turned))]


register(
    Composite(name="det", doc="the determinant of each matrix in the last two axes", onnx="Det", dtypes=FLOATS, lower=_det,
              vjp=_det_vjp, tolerance=256, floor=1e-4),
    Composite(name="inverse", doc="the inverse of each matrix in the last two axes; that of a singular one is not finite",
              onnx="com.microsoft.Inverse", dtypes=FLOATS, lower=_inverse, vjp=_inverse_vjp,
              tolerance=256, floor=1e-4),
)  # fmt: skip
