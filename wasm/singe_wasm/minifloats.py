"""Functions between float32 and the floats that engines lack, but for float16: bfloat16 and float8.

A float8 is a number of few bits as dtypes.py codes it. Widening moves its exponent and mantissa to where float32 has
them and multiplies by what the biases differ by; narrowing rounds to nearest even, and what is too large becomes
infinity or NaN.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from singe.extension import STORED, Coding

from .encode import Body, Function, f32, i32, ops

_NAN: Final = 0x7FC00000
_INFINITY: Final = 0x7F800000


def _float_to_bfloat16() -> Function:
    """A float as bfloat16's bits."""
    body = Body(["f32"], ["i32"])
    bits = body.local("i32")
    body.get(0)
    body.op("i32.reinterpret_f32")
    body.tee(bits)
    body.add(i32(16) + ops("i32.shr_u") + i32(0x8000) + ops("i32.and") + i32(_NAN >> 16) + ops("i32.or"))
    body.get(bits)
    body.get(bits)
    body.add(i32(16) + ops("i32.shr_u") + i32(1) + ops("i32.and i32.add") + i32(0x7FFF) + ops("i32.add"))
    body.add(i32(16) + ops("i32.shr_u"))
    body.get(0, 0)
    body.op("f32.ne", "select")
    return body.finish()


def _to_float(c: Coding) -> Function:
    """The code of a float8 (an i32) as a float."""
    body = Body(["i32"], ["f32"])
    code = 0
    if not c.signed:  # a power of two; the least is no normal float
        body.add(i32(_NAN))
        body.get(code)
        body.add(i32(23) + ops("i32.shl") + i32(1 << 22))
        body.get(code)
        body.add(ops("select"))
        body.get(code)
        body.add(i32(c.nan) + ops("i32.eq select f32.reinterpret_i32"))
        return body.finish()
    body.get(code)
    body.add(i32(0x7F) + ops("i32.and") + i32(23 - c.mantissa) + ops("i32.shl f32.reinterpret_i32"))
    body.add(f32(2.0 ** (127 - c.bias)) + ops("f32.mul i32.reinterpret_f32"))
    if c.infinity is not None:
        body.add(i32(_INFINITY))
        body.get(code)
        body.add(i32(0x7F) + ops("i32.and") + i32(c.infinity) + ops("i32.ne select"))
    body.add(i32(_NAN))
    body.get(code)
    if not c.signed_zero:
        body.add(i32(c.nan) + ops("i32.ne"))
    else:
        body.add(i32(0x7F) + ops("i32.and") + i32(c.most if c.infinity is None else c.infinity) + ops("i32.le_u"))
    body.op("select")
    body.get(code)
    body.add(i32(0x80) + ops("i32.and") + i32(24) + ops("i32.shl i32.or f32.reinterpret_i32"))
    return body.finish()


def _from_float(c: Coding) -> Function:
    """A float as the code of a float8."""
    body = Body(["f32"], ["i32"])
    size, code = body.local("i32"), body.local("i32")
    body.get(0)
    body.add(ops("i32.reinterpret_f32") + i32(0x7FFFFFFF) + ops("i32.and"))
    body.set(size)
    body.add(i32(c.nan))
    body.get(size)
    body.add(i32(_INFINITY) + ops("i32.gt_u"))
    if not c.signed:
        body.get(0)
        body.add(f32(0) + ops("f32.lt i32.or"))
    body.add(b"\x0d\x00")  # leave the function with NaN's code
    body.op("drop")
    shift = 23 - c.mantissa
    body.get(size)
    if c.mantissa:  # of two equally near the even one; of powers of two the larger
        body.get(size)
        body.add(i32(shift) + ops("i32.shr_u") + i32(1) + ops("i32.and i32.add"))
    body.add(i32((1 << shift - 1) - bool(c.mantissa)) + ops("i32.add") + i32(shift) + ops("i32.shr_u"))
    body.add(i32(127 - c.bias << c.mantissa) + ops("i32.sub"))
    body.set(code)
    body.get(size)
    body.add(i32(127 + c.least_power + (not c.subnormals) << 23) + ops("i32.lt_u"))
    with body.when():
        body.get(size)
        if c.subnormals:  # the sum's last place is the smallest number
            least = 2.0 ** (c.least_power - c.mantissa + 23)
            body.add(ops("f32.reinterpret_i32") + f32(least) + ops("f32.add i32.reinterpret_f32"))
            body.add(f32(least) + ops("i32.reinterpret_f32 i32.sub"))
        else:
            body.add(i32(3 << 21) + ops("i32.ge_u"))
        body.set(code)
    body.add(i32(c.overflow))
    body.get(code, code)
    body.add(i32(c.most) + ops("i32.gt_s select"))
    if c.signed:
        body.tee(code)
        body.get(0)
        body.add(ops("i32.reinterpret_f32") + i32(24) + ops("i32.shr_u") + i32(0x80) + ops("i32.and"))
        if not c.signed_zero:
            body.add(i32(0))
            body.get(code)
            body.op("select")
        body.op("i32.or")
    return body.finish()


MINIFLOATS: Final[Mapping[str, Function]] = {
    "float_to_bfloat16": _float_to_bfloat16(),
    **{f"{d}_to_float": _to_float(d.coding) for d in STORED if d.coding},
    **{f"float_to_{d}": _from_float(d.coding) for d in STORED if d.coding},
}
