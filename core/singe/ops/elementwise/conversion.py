"""Elements as another type."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from ...dtypes import ALL, DTYPES, FLOATS, INTS, STORED, DType, bool_, float32, float64, names
from ...errors import DTypeError
from ...ir import scalar
from ...ir.scalar import Expr, clip
from ...late_dataclass import dataclass
from ..kinds import Attrs, Elementwise, register

WHOLE: Final = (bool_, *INTS, *(d for d in STORED if d.is_int), float32, float64)
"""The types that are computed with all of their bits: not the floats that are widened."""


def _cast(x: Expr, *, to: DType, saturate: bool = True) -> Expr:
    """saturate: a number beyond the range of a float of 8 bits or less becomes the largest, not infinity or NaN."""
    value = scalar.cast(x, to.compute)
    return scalar.rounded(clip(value, -to.most, to.most) if saturate and to.is_float and to in STORED else value, to)


def _cast_vjp(b: Any, g: Any, inputs: Sequence[Any], y: Any, to: DType, saturate: bool = True) -> list[Any]:
    (x,) = inputs
    return [b.cast(g, to=x.dtype) if x.dtype in FLOATS else None]


@dataclass(frozen=True, kw_only=True, eq=False)
class _BitCast(Elementwise):
    """A row that gives the attribute `to`, which must be as wide as the input."""

    def result(self, dtypes: Sequence[DType], attrs: Attrs) -> DType:
        (given,), to = dtypes, attrs["to"]
        if to not in self.dtypes or to.bits != given.bits:
            wide = [d for d in self.dtypes if d.bits == given.bits]
            raise DTypeError(f"bit_cast: from {given} to {to}; expected one of {names(wide)}")
        return to


def _bit_cast(x: Expr, *, to: DType) -> Expr:
    whole = scalar.bits(x) if x.dtype.is_float else x
    return (
        scalar.of_bits(scalar.cast(whole, DTYPES[f"int{to.bits}"])) if to.is_float else scalar.cast(whole, to.compute)
    )


register(
    Elementwise(name="cast", doc="the same numbers in another dtype",
        body=_cast, result_type="to", vjp=_cast_vjp, dtypes=ALL),
    _BitCast(name="bit_cast", doc="the same bits read as another dtype of the same size",
        no_gradient="the bits of a number are no function that has a slope",
        body=_bit_cast, result_type="to", dtypes=WHOLE),
)  # fmt: skip
