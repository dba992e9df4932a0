"""Conversions between float32 and bfloat16 or narrower floats, which engines lack. (library.py has those of float16.)
Rounding to them, and to float16, of four floats.

dtypes.py defines their codes. Widening moves exponent and mantissa to their positions in float32, and multiplies
by a power of two for the difference of the biases; narrowing rounds to nearest even, and values that are too large become
infinity, NaN or the largest number.
"""

from __future__ import annotations

from functools import partial
from typing import Final

import numpy as np

from singe.extension import DTYPES, STORED, Coding, DType

from .encode import Body, Function, FunctionWriters
from .values import F32, I32, F32x4, I32x4, select
from .writer import Writer

_NAN: Final = 0x7FC00000
_INFINITY: Final = 0x7F800000


def _float_to_bfloat16() -> Function:
    """A float as bfloat16's bits."""
    w, x = Writer(Body(["f32"], ["i32"])), F32(number=0)
    bits = w.i32(x.bits())
    nan = bits >> 16 & 0x8000 | _NAN >> 16
    rounded = bits + (bits >> 16 & 1) + 0x7FFF >> 16
    return w.finish(select(x.differs(x), nan, rounded))


def _to_float(c: Coding) -> Function:
    """The code of a narrow float (an i32) as a float."""
    w, code = Writer(Body(["i32"], ["f32"])), I32(number=0)
    if not c.signed:  # a power of two; the least one is a subnormal float
        return w.finish(select(code.equals(c.nan), _NAN, select(code, code << 23, 1 << 22)).as_f32())
    magnitude = code & c.sign - 1
    bits = ((magnitude << 23 - c.mantissa).as_f32() * 2.0 ** (127 - c.bias)).bits()
    if c.infinity is not None:
        bits = select(magnitude.differs(c.infinity), bits, _INFINITY)
    sign = (code & c.sign) << 32 - c.bits
    if c.finite:
        return w.finish((bits | sign).as_f32())
    most = c.most if c.infinity is None else c.infinity
    is_number = magnitude.below(most + 1) if c.signed_zero else code.differs(c.nan)
    return w.finish((select(is_number, bits, _NAN) | sign).as_f32())


def _from_float(c: Coding) -> Function:
    """A float as the code of a narrow float."""
    w, x = Writer(Body(["f32"], ["i32"])), F32(number=0)
    size = w.i32(x.bits() & 0x7FFFFFFF)
    not_coded = size.above(_INFINITY) if c.signed else size.above(_INFINITY) | (x < 0.0)
    with w.when(not_coded):
        w.leave(I32.of(c.nan))
    shift = 23 - c.mantissa
    # Ties go to even; between powers of two, to the larger.
    half = size + (size >> shift & 1) + ((1 << shift - 1) - 1) if c.mantissa else size + (1 << shift - 1)
    code = w.i32((half >> shift) - (127 - c.bias << c.mantissa))
    with w.when(size.below(127 + c.least_power + (not c.subnormals) << 23)):
        if c.subnormals:  # the sum's last place is the smallest number
            least = 2.0 ** (c.least_power - c.mantissa + 23)
            w.set(code, (size.as_f32() + least).bits() - F32.of(least).bits())
        else:
            w.set(code, size.above((3 << 21) - 1))
    w.set(code, select(code > c.most, c.overflow, code))
    if not c.signed:
        return w.finish(code)
    sign = x.bits() >> 32 - c.bits & c.sign
    return w.finish(code | (sign if c.signed_zero else select(code, sign, 0)))


def _bits(number: float) -> int:
    return int(np.float32(number).view(np.int32))


def _rounded(d: DType) -> Function:
    """Four floats, each as the nearest number of a narrower type."""
    c = d.coding
    assert c is not None
    w, x = Writer(Body(["v128"], ["v128"])), F32x4(number=0)
    size, shift = w.i32x4(x.integers() & 0x7FFFFFFF), 23 - c.mantissa
    half = size + ((size >> shift) & 1) + ((1 << shift - 1) - 1) if c.mantissa else size + (1 << shift - 1)
    value = w.i32x4(half & -1 << shift)
    if c.subnormals:  # the last place of a sum with `least` is the smallest number
        least = 2.0 ** (c.least_power - c.mantissa + 23)
        small = size.floats() + least - least
    else:
        small = size.above((3 << 21) - 1).choose(_constant(2.0 ** (c.least_power + 1)), _constant(2.0**c.least_power))
    is_normal = size.above((127 + c.least_power + (not c.subnormals) << 23) - 1)
    w.set(value, is_normal.choose(value.floats(), small).integers())
    w.set(value, value.above(_bits(d.most)).choose(_constant(d.beyond), value.floats()).integers())
    if c.signed:
        sign = w.i32x4(x.integers() & -1 << 31)
        if not c.signed_zero:
            w.set(sign, sign.with_("v128.and", value.above(0)))
        w.set(value, value | sign)
    wrong = size.above(_INFINITY) if c.signed else size.above(_INFINITY) | (x < 0.0)
    return w.finish(wrong.choose(_constant(d.wrong), value.floats()))


def _constant(number: float) -> F32x4:
    return I32x4.of(_bits(number)).floats()


NARROW: Final = tuple(d for d in DTYPES.values() if d.coding)
"""The floats narrower than float32."""
MINIFLOATS: Final[FunctionWriters] = {
    "float_to_bfloat16": _float_to_bfloat16,
    **{f"{d}_to_float": partial(_to_float, d.coding) for d in STORED if d.coding},
    **{f"float_to_{d}": partial(_from_float, d.coding) for d in STORED if d.coding},
    **{f"rounded_to_{d}": partial(_rounded, d) for d in NARROW},
}
