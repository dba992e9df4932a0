"""Narrow floats as functions in kernel text: the bits of one to an f32 and back, for dialects without such types."""

from __future__ import annotations

from typing import Final

from singe.extension import STORED, Coding, float16


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
"""Functions in kernel text, each by itself: `f32_of_float8_e4m3fn(code)` and `float8_e4m3fn_of_f32(x)`, for all of STORED."""
