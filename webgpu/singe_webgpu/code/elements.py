"""How WGSL stores element types in device memory and loads their values: one row for each dtype that shaders compute.

WGSL has no elements of fewer than 32 bits except f16, so bool and integers of 2 to 16 bits take a word each: an i32 with
their sign, or a u32. Constant integers are packed; see shader.py. bfloat16 and narrower floats are stored as their bits;
CONVERSIONS are the functions between these bits and f32, for the library. float64 and complex numbers are not supported.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from singe.extension import (
    STORED,
    Coding,
    DType,
    bfloat16,
    bool_,
    float16,
    float32,
    int8,
    int16,
    int32,
    int64,
    uint8,
    uint16,
    uint32,
    uint64,
)
from singe_gpu.dialect import Element


def element_size(dtype: DType) -> int:
    """Bytes of one element in device memory: WGSL has no bytes, so elements of fewer than four bytes take four."""
    return dtype.wide.itemsize


def _narrow(d: DType) -> Element:
    if d.kind == "int":
        return Element("i32", store=f"(({{0}} << {32 - d.bits}u) >> {32 - d.bits}u)")
    return Element("u32", "bitcast<i32>({0})", f"(bitcast<u32>({{0}}) & {d.limits[1]}u)")


ELEMENTS: Final[Mapping[DType, Element]] = {
    bool_: Element("u32", "({0} != 0u)", "select(0u, 1u, {0})"),
    **{d: _narrow(d) for d in (int8, uint8, int16, uint16, *STORED) if d.is_int},
    int32: Element("i32", vectors=True),
    uint32: Element("u32", vectors=True),
    int64: Element("vec2<u32>"),
    uint64: Element("vec2<u32>"),
    **{d: Element("u32", f"f32_of_{d}({{0}})", f"{d}_of_f32({{0}})") for d in STORED if d.is_float},
    float16: Element("f16", "f32({0})", "f16({0})", vectors=True),
    bfloat16: Element("u32", "bitcast<f32>({0} << 16u)", "bfloat16_of_f32({0})"),
    float32: Element("f32", vectors=True),
}


def _power(exponent: int) -> str:
    """2 to a power as a literal, by its bits."""
    return f"bitcast<f32>({127 + exponent << 23}u)"


def _widen(name: str, c: Coding | None) -> str:
    """The bits of a narrow float to f32; by sums of exponents, since devices may flush subnormal numbers to zero."""
    assert c is not None
    if not c.signed:
        number = f"bitcast<f32>(select(code << 23u, {1 << 22}u, code == 0u))"
        return f"fn f32_of_{name}(code: u32) -> f32 {{ return select({number}, nan(), code == {c.nan}u); }}"
    if c.finite:
        wrong, infinite = "false", None
    elif c.signed_zero:
        wrong, infinite = f"size > {c.most if c.infinity is None else c.infinity}u", c.infinity
    else:
        wrong, infinite = f"code == {c.nan}u", None
    finite = "number" if infinite is None else f"select(number, inf(), size == {infinite}u)"
    return f"""fn f32_of_{name}(code: u32) -> f32 {{
  let size = code & {c.sign - 1}u;
  let normal = bitcast<f32>((size << {23 - c.mantissa}u) + {127 - c.bias << 23}u);
  let small = f32(size) * {_power(c.least_power - c.mantissa)};
  let number = select(normal, small, size < {1 << c.mantissa}u);
  let whole = select({finite}, nan(), {wrong});
  return select(whole, -whole, (code & {c.sign}u) != 0u);
}}"""


def _narrowing(name: str, c: Coding) -> str:
    """An f32 to the bits of the nearest narrow float, ties to even; among powers of two, ties to the larger."""
    shift = 23 - c.mantissa
    tie = f" + ((size >> {shift}u) & 1u)" if c.mantissa else ""
    least = 127 + c.least_power + (not c.subnormals) << 23
    if c.subnormals:
        small = f"u32(round(bitcast<f32>(min(size, {least}u)) * {_power(c.mantissa - c.least_power)}))"
    else:
        small = f"select(0u, 1u, size >= {3 << 21}u)"
    signed = f"code | ((bitcast<u32>(x) >> {32 - c.bits}u) & {c.sign}u)" if c.signed else "code"
    if c.signed and not c.signed_zero:
        signed = f"select({signed}, 0u, code == 0u)"
    wrong = f"size > {0x7F800000}u" + ("" if c.signed else " || x < 0.0f")
    return f"""fn {name}_of_f32(x: f32) -> u32 {{
  let size = bitcast<u32>(x) & 0x7fffffffu;
  let normal = ((size + {(1 << shift - 1) - bool(c.mantissa)}u{tie}) >> {shift}u) - {127 - c.bias << c.mantissa}u;
  let finite = select(normal, {small}, size < {least}u);
  let code = select(finite, {c.overflow}u, finite > {c.most}u);
  return select({signed}, {c.nan}u, {wrong});
}}"""


CONVERSIONS: Final = (
    """fn bfloat16_of_f32(x: f32) -> u32 {
  let bits = bitcast<u32>(x);
  let rounded = (bits + 0x7fffu + ((bits >> 16u) & 1u)) >> 16u;
  return select(rounded, (bits >> 16u) | 0x7fc0u, (bits & 0x7fffffffu) > 0x7f800000u);
}""",
    *(write(d.name, d.coding) for d in STORED if d.coding for write in (_widen, _narrowing)),
    _widen(float16.name, float16.coding),
)
"""WGSL functions, each a text."""
ROUNDINGS: Final = {
    float16: "f32_of_float16(half_bits({0}))",
    **{d: e.load.format(e.store) for d, e in ELEMENTS.items() if d.is_float and d not in (float16, float32)},
}
"""Narrower float → an f32 rounded to it, by its bits: WGSL leaves open how a conversion to f16 rounds."""
