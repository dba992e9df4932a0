"""The row cdist: distances between the rows of two matrices.

Differences are squared and summed, not taken from products of the rows, so that small distances are exact."""

from __future__ import annotations

from typing import Any

from ...dtypes import FLOATS
from ...errors import ShapeError
from ...shapes import same, show
from ..kinds import Composite, as_dtype, register


def _cdist(b: Any, x: Any, y: Any, *, squared: bool = False) -> Any:
    if len(x.shape) < 2 or len(y.shape) < 2 or not same(x.shape[-1], y.shape[-1], "cdist"):
        raise ShapeError(f"cdist: got {show(x.shape)} and {show(y.shape)}, expected rows of one length")
    kind = x.dtype
    x, y = (as_dtype(b, v, v.dtype.compute) for v in (x, y))
    x = b.reshape(x, shape=(*x.shape[:-1], 1, x.shape[-1]))
    y = b.reshape(y, shape=(*y.shape[:-2], 1, *y.shape[-2:]))
    apart = b.sub(x, y)
    total = b.reduce_sum(b.mul(apart, apart), axes=(len(apart.shape) - 1,))
    total = b.reshape(total, shape=apart.shape[:-1])
    if not squared:  # at 0 the root has no gradient: there the gradient is 0
        zero, one = b.const(0, total.dtype), b.const(1, total.dtype)
        nothing = b.equal(total, zero)
        total = b.where(nothing, zero, b.sqrt(b.where(nothing, one, total)))
    return as_dtype(b, total, kind)


register(
    Composite(name="cdist", doc="the distance of each row of the first matrix to each of the second, or its square", dtypes=FLOATS,
              lower=_cdist, tolerance=64, floor=1e-5),
)  # fmt: skip
