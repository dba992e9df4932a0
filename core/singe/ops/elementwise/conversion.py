"""Elements as another type."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...dtypes import ALL, FLOATS, STORED, DType
from ...ir import scalar
from ...ir.scalar import Expr, clip
from .._reference import elementwise as reference
from .._row import Elementwise, register


def _cast(x: Expr, *, to: DType, saturate: bool = True) -> Expr:
    """saturate: a number beyond the range of a float of 8 bits or less becomes the largest, not infinity or NaN."""
    value = scalar.cast(x, scalar.COMPUTE[to])
    return clip(value, -to.most, to.most) if saturate and to.is_float and to in STORED else value


def _cast_vjp(b: Any, g: Any, inputs: Sequence[Any], y: Any, to: DType, saturate: bool = True) -> list[Any]:
    (x,) = inputs
    return [b.cast(g, to=x.dtype) if x.dtype in FLOATS else None]


register(
    Elementwise(name="cast", body=_cast, gives="to", reference=reference.cast, vjp=_cast_vjp, dtypes=ALL),
)  # fmt: skip
