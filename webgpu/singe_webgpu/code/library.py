"""WGSL functions for what WGSL's built-in functions do not guarantee: NaN, saturation, int64, large arguments.

LIBRARY is one WGSL text whose items are separated by blank lines. A shader contains the items that its code calls, and
the items that those call. An int64 is a vec2<u32>: low half, high half.

WGSL rejects constant expressions that evaluate to NaN or infinity, so they are made from bits that the compiler cannot
evaluate. NaN is detected by its bits, since compilers may assume that comparisons never see one. Subnormal numbers may
be flushed to zero, as WGSL allows; on such devices they compare equal to zero.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Final

from singe_gpu.code.narrow_floats import CONVERSIONS

LIBRARY: Final = """
var<private> nan_bits: u32 = 0x7fc00000u;

var<private> inf_bits: u32 = 0x7f800000u;

fn nan() -> f32 { return bitcast<f32>(nan_bits); }

fn inf() -> f32 { return bitcast<f32>(inf_bits); }

fn is_nan(x: f32) -> bool { return (bitcast<u32>(x) & 0x7fffffffu) > 0x7f800000u; }

fn max_f32(a: f32, b: f32) -> f32 { return select(select(max(a, b), b, is_nan(b)), a, is_nan(a)); }

fn min_f32(a: f32, b: f32) -> f32 { return select(select(min(a, b), b, is_nan(b)), a, is_nan(a)); }

fn max_number(a: f32, number: f32) -> f32 { return select(max(a, number), a, is_nan(a)); }

fn min_number(a: f32, number: f32) -> f32 { return select(min(a, number), a, is_nan(a)); }

fn are_nan(x: vec4<f32>) -> vec4<bool> {
  return (bitcast<vec4<u32>>(x) & vec4<u32>(0x7fffffffu)) > vec4<u32>(0x7f800000u);
}

fn max_f32s(a: vec4<f32>, b: vec4<f32>) -> vec4<f32> {
  return select(select(max(a, b), b, are_nan(b)), a, are_nan(a));
}

fn min_f32s(a: vec4<f32>, b: vec4<f32>) -> vec4<f32> {
  return select(select(min(a, b), b, are_nan(b)), a, are_nan(a));
}

fn max_numbers(a: vec4<f32>, number: vec4<f32>) -> vec4<f32> { return select(max(a, number), a, are_nan(a)); }

fn min_numbers(a: vec4<f32>, number: vec4<f32>) -> vec4<f32> { return select(min(a, number), a, are_nan(a)); }

fn eq_f32(a: f32, b: f32) -> bool { return a == b && !is_nan(a) && !is_nan(b); }

fn lt_f32(a: f32, b: f32) -> bool { return a < b && !is_nan(a) && !is_nan(b); }

fn le_f32(a: f32, b: f32) -> bool { return a <= b && !is_nan(a) && !is_nan(b); }

fn half_of(pair: u32, index: i32) -> f32 { return unpack2x16float(pair >> (16u * (u32(index) & 1u))).x; }

fn four_halves(pairs: vec2<u32>) -> vec4<f32> { return vec4<f32>(unpack2x16float(pairs.x), unpack2x16float(pairs.y)); }

fn four_bfloats(bits: vec4<u32>) -> vec4<f32> { return bitcast<vec4<f32>>(bits << vec4<u32>(16u)); }

fn four_bytes(word: i32) -> vec4<i32> {
  return (vec4<i32>(word) << vec4<u32>(24u, 16u, 8u, 0u)) >> vec4<u32>(24u);
}

fn four_unsigned_bytes(word: u32) -> vec4<i32> {
  return vec4<i32>((vec4<u32>(word) >> vec4<u32>(0u, 8u, 16u, 24u)) & vec4<u32>(255u));
}

fn packed_bytes(x: vec4<i32>) -> u32 {
  let bytes = vec4<u32>(x & vec4<i32>(255i)) << vec4<u32>(0u, 8u, 16u, 24u);
  return bytes.x | bytes.y | bytes.z | bytes.w;
}

fn pair_of(x: f32, y: f32) -> u32 { return half_bits(x) | (half_bits(y) << 16u); }

fn half_bits(x: f32) -> u32 {
  // To the nearest, ties to even: of pack2x16float the rounding is open, and so are numbers too large.
  let size = bitcast<u32>(x) & 0x7fffffffu;
  let small = u32(round(bitcast<f32>(min(size, 0x38800000u)) * 16777216.0f));
  let normal = ((size + 0xfffu + ((size >> 13u) & 1u)) >> 13u) - 0x1c000u;
  let finite = select(normal, small, size < 0x38800000u);
  let bits = select(select(finite, 0x7c00u, size >= 0x477ff000u), 0x7e00u, size > 0x7f800000u);
  return bits | ((bitcast<u32>(x) >> 16u) & 0x8000u);
}

fn div_near(a: f32, b: f32) -> f32 {
  // Devices divide to within 2.5 units in the last place: what is left over gives the nearest number, so that ties are rounded as ties.
  // It is computed in integers, as a multiple of the last places: compilers reorder sums of floats, and fma may round its product.
  let near = a / b;
  let parts = vec3<u32>(bitcast<u32>(a), bitcast<u32>(b), bitcast<u32>(near));
  let powers = (parts >> vec3<u32>(23u)) & vec3<u32>(0xffu);
  let digits = (parts & vec3<u32>(0x7fffffu)) | vec3<u32>(0x800000u);
  let shift = powers.x + 150u - powers.y - powers.z;
  let left = bitcast<i32>((digits.x << (shift & 31u)) - digits.y * digits.z);
  // Below a power of two the last places are half as large.
  let twice = select(2i * left, 4i * left, left < 0i && digits.z == 0x800000u);
  let unit = bitcast<i32>(digits.y);
  let steps = i32(twice > unit) + i32(twice > 3i * unit) - i32(twice < -unit) - i32(twice < -3i * unit);
  let normal = all(powers - vec3<u32>(1u) < vec3<u32>(254u));
  return select(near, bitcast<f32>(bitcast<i32>(near) + steps), normal);
}

fn div_f32(a: f32, b: f32) -> f32 {
  let scale = select(1.0f, 0.25f, abs(b) > 8.507059e37f);
  return div_near(a * scale, b * scale);
}

fn over_zero(a: f32) -> f32 {
  let signed = bitcast<f32>((bitcast<u32>(a) & 0x80000000u) | inf_bits);
  return select(signed, nan(), a == 0.0f || is_nan(a));
}

fn sqrt_f32(x: f32) -> f32 { return select(select(sqrt(x), nan(), x < 0.0f), x, is_nan(x)); }

fn exp_f32(x: f32) -> f32 {
  return select(select(exp(clamp(x, -110.0f, 88.8f)), inf(), x > 88.8f), x, is_nan(x));
}

fn log_f32(x: f32) -> f32 {
  // Devices flush numbers below the normal ones to zero: those are multiples of 2^-149 and are taken as such.
  let bits = bitcast<u32>(x);
  if ((bits & 0x7fffffffu) == 0u) { return -inf(); }
  if (bits > inf_bits) { return nan(); }
  if (bits < 0x00800000u) { return log(f32(bits)) - 103.278931f; }
  if (bits - 0x3f3504f3u < 0x00800000u) {
    // From √½ to √2 devices are right to so many digits behind the point, and few of the number.
    let s = (x - 1.0f) / (x + 1.0f);
    let z = s * s;
    return 2.0f * (s + s * (z * (0.333333333f + z * (0.2f + z * (0.142857143f + z * 0.111111111f)))));
  }
  return select(log(x), x, bits == inf_bits);
}

fn tanh_f32(x: f32) -> f32 {
  let a = min(abs(x), 10.0f);
  let z = a * a;
  let high = z * (0.0206390888f + z * -0.00570498873f);
  let small = a + a * (z * (-0.333332819f + z * (0.133314422f + z * (-0.0537397155f + high))));
  let large = 1.0f - 2.0f / (exp(2.0f * a) + 1.0f);
  let size = bitcast<u32>(select(large, small, a < 0.625f));
  return select(bitcast<f32>(size | (bitcast<u32>(x) & 0x80000000u)), x, is_nan(x));
}

fn sine(x: f32, quarters: i32) -> f32 {
  // The sine of x + quarters of a turn. The quarter turn is taken off in four parts of which the first three have
  // eight bits, so that their products with up to 16 bits are exact: good to arguments of 1e5.
  let turns = round(x * 0.636619772f);
  let reduced = ((x - turns * 1.5703125f) - turns * 4.825592041015625e-4f) - turns * 1.26659870147705078125e-6f;
  let r = clamp(reduced - turns * 9.920935796805404e-10f, -0.8f, 0.8f);
  let z = r * r;
  let odd = r + r * (z * (-0.166666546f + z * (0.00833216087f + z * -0.000195152959f)));
  let even = 1.0f - 0.5f * z + z * (z * (0.0416666457f + z * (-0.00138873163f + z * 0.0000244331571f)));
  let quarter = i32(clamp(turns, -1e9f, 1e9f)) + quarters;
  let size = select(odd, even, (quarter & 1i) == 1i);
  let signed = select(size, -size, (quarter & 2i) == 2i);
  // A small number is its own sine; so is a zero of either sign.
  let value = select(signed, x, quarters == 0i && abs(x) < 2.44140625e-4f);
  return select(value, nan(), (bitcast<u32>(x) & 0x7fffffffu) >= 0x7f800000u);
}

fn rem_f32(a: f32, b: f32) -> f32 {
  // Long division of the mantissas, one bit a turn: exact.
  let sign = bitcast<u32>(a) & 0x80000000u;
  var x = bitcast<u32>(a) & 0x7fffffffu;
  var y = bitcast<u32>(b) & 0x7fffffffu;
  if (x >= 0x7f800000u || y > 0x7f800000u || y == 0u) { return nan(); }
  if (x < y) { return a; }
  var power = i32(x >> 23u);
  var least = i32(y >> 23u);
  if (power == 0i) {
    let shift = countLeadingZeros(x) - 8u;
    x <<= shift;
    power = 1i - i32(shift);
  } else {
    x = (x & 0x7fffffu) | 0x800000u;
  }
  if (least == 0i) {
    let shift = countLeadingZeros(y) - 8u;
    y <<= shift;
    least = 1i - i32(shift);
  } else {
    y = (y & 0x7fffffu) | 0x800000u;
  }
  for (; power > least; power--) {
    if (x >= y) { x -= y; }
    x <<= 1u;
  }
  if (x >= y) { x -= y; }
  if (x == 0u) { return bitcast<f32>(sign); }
  let shift = countLeadingZeros(x) - 8u;
  x <<= shift;
  power -= i32(shift);
  if (power > 0i) {
    x = (x - 0x800000u) | (u32(power) << 23u);
  } else {
    x >>= u32(1i - power);
  }
  return bitcast<f32>(x | sign);
}

fn bool_of_f32(x: f32) -> bool { return (bitcast<u32>(x) & 0x7fffffffu) != 0u; }

fn i32_of_f32(x: f32) -> i32 {
  if (is_nan(x)) { return 0i; }
  if (x >= 2147483648.0f) { return 2147483647i; }
  if (x <= -2147483648.0f) { return i32(-2147483647 - 1); }
  return i32(x);
}

fn i32s_of_f32s(x: vec4<f32>) -> vec4<i32> {
  return vec4<i32>(i32_of_f32(x.x), i32_of_f32(x.y), i32_of_f32(x.z), i32_of_f32(x.w));
}

fn u32_of_f32(x: f32) -> u32 {
  if (is_nan(x) || x <= 0.0f) { return 0u; }
  return select(u32(min(x, 4294967040.0f)), 0xffffffffu, x >= 4294967296.0f);
}

fn rem_i32(a: i32, b: i32) -> i32 { return a - (a / b) * b; }

fn add_i64(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
  let low = a.x + b.x;
  return vec2<u32>(low, a.y + b.y + select(0u, 1u, low < a.x));
}

fn sub_i64(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
  return vec2<u32>(a.x - b.x, a.y - b.y - select(0u, 1u, a.x < b.x));
}

fn neg_i64(a: vec2<u32>) -> vec2<u32> {
  let low = ~a.x + 1u;
  return vec2<u32>(low, ~a.y + select(0u, 1u, low == 0u));
}

fn abs_i64(a: vec2<u32>) -> vec2<u32> { return select(a, neg_i64(a), (a.y >> 31u) == 1u); }

fn mul_i64(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
  let a0 = a.x & 0xffffu;
  let a1 = a.x >> 16u;
  let b0 = b.x & 0xffffu;
  let b1 = b.x >> 16u;
  let middle = a1 * b0 + ((a0 * b0) >> 16u);
  let other = a0 * b1 + (middle & 0xffffu);
  let high = a1 * b1 + (middle >> 16u) + (other >> 16u);
  return vec2<u32>(a.x * b.x, high + a.x * b.y + a.y * b.x);
}

fn eq_i64(a: vec2<u32>, b: vec2<u32>) -> bool { return a.x == b.x && a.y == b.y; }

fn lt_u64(a: vec2<u32>, b: vec2<u32>) -> bool { return a.y < b.y || (a.y == b.y && a.x < b.x); }

fn lt_i64(a: vec2<u32>, b: vec2<u32>) -> bool {
  return bitcast<i32>(a.y) < bitcast<i32>(b.y) || (a.y == b.y && a.x < b.x);
}

fn le_i64(a: vec2<u32>, b: vec2<u32>) -> bool { return !lt_i64(b, a); }

fn max_i64(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> { return select(a, b, lt_i64(a, b)); }

fn min_i64(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> { return select(a, b, lt_i64(b, a)); }

fn max_u64(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> { return select(a, b, lt_u64(a, b)); }

fn min_u64(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> { return select(a, b, lt_u64(b, a)); }

fn shl_i64(a: vec2<u32>, amount: vec2<u32>) -> vec2<u32> {
  let by = amount.x & 63u;
  if (by == 0u) { return a; }
  if (by >= 32u) { return vec2<u32>(0u, a.x << (by & 31u)); }
  return vec2<u32>(a.x << by, (a.y << by) | (a.x >> (32u - by)));
}

fn shr_i64(a: vec2<u32>, amount: vec2<u32>) -> vec2<u32> {
  let by = amount.x & 63u;
  let high = bitcast<i32>(a.y);
  if (by == 0u) { return a; }
  if (by >= 32u) { return vec2<u32>(bitcast<u32>(high >> (by & 31u)), bitcast<u32>(high >> 31u)); }
  return vec2<u32>((a.x >> by) | (a.y << (32u - by)), bitcast<u32>(high >> by));
}

fn shr_u64(a: vec2<u32>, amount: vec2<u32>) -> vec2<u32> {
  let by = amount.x & 63u;
  if (by == 0u) { return a; }
  if (by >= 32u) { return vec2<u32>(a.y >> (by & 31u), 0u); }
  return vec2<u32>((a.x >> by) | (a.y << (32u - by)), a.y >> by);
}

fn divide_u64(a: vec2<u32>, b: vec2<u32>) -> vec4<u32> {
  // Quotient and remainder; a zero divisor gives zeros.
  if ((b.x | b.y) == 0u) { return vec4<u32>(0u, 0u, 0u, 0u); }
  if ((a.y | b.y) == 0u) { return vec4<u32>(a.x / b.x, 0u, a.x % b.x, 0u); }
  var quotient = vec2<u32>(0u, 0u);
  var rest = vec2<u32>(0u, 0u);
  for (var bit = 0i; bit < 64i; bit++) {
    let index = u32(63i - bit);
    let next = select(a.x >> (index & 31u), a.y >> (index & 31u), index >= 32u) & 1u;
    let carry = rest.y >> 31u;
    rest = vec2<u32>((rest.x << 1u) | next, (rest.y << 1u) | (rest.x >> 31u));
    quotient = vec2<u32>(quotient.x << 1u, (quotient.y << 1u) | (quotient.x >> 31u));
    if (carry == 1u || !lt_u64(rest, b)) {
      rest = sub_i64(rest, b);
      quotient.x |= 1u;
    }
  }
  return vec4<u32>(quotient, rest);
}

fn div_i64(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
  let quotient = divide_u64(abs_i64(a), abs_i64(b)).xy;
  return select(quotient, neg_i64(quotient), ((a.y ^ b.y) >> 31u) == 1u);
}

fn rem_i64(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
  let rest = divide_u64(abs_i64(a), abs_i64(b)).zw;
  return select(rest, neg_i64(rest), (a.y >> 31u) == 1u);
}

fn bool_of_i64(a: vec2<u32>) -> bool { return (a.x | a.y) != 0u; }

fn i64_of_i32(a: i32) -> vec2<u32> { return vec2<u32>(bitcast<u32>(a), bitcast<u32>(a >> 31u)); }

fn whole_of_f32(x: f32) -> vec2<u32> {
  // Of the size of a number below 2^64.
  let bits = bitcast<u32>(x);
  let power = i32((bits >> 23u) & 255u) - 127i;
  if (power < 0i) { return vec2<u32>(0u, 0u); }
  let mantissa = vec2<u32>((bits & 0x7fffffu) | 0x800000u, 0u);
  let up = shl_i64(mantissa, vec2<u32>(u32(max(power - 23i, 0i)), 0u));
  return select(vec2<u32>(mantissa.x >> u32(clamp(23i - power, 0i, 23i)), 0u), up, power >= 23i);
}

fn i64_of_f32(x: f32) -> vec2<u32> {
  if (is_nan(x)) { return vec2<u32>(0u, 0u); }
  if (x >= 9223372036854775808.0f) { return vec2<u32>(0xffffffffu, 0x7fffffffu); }
  if (x <= -9223372036854775808.0f) { return vec2<u32>(0u, 0x80000000u); }
  let size = whole_of_f32(x);
  return select(size, neg_i64(size), (bitcast<u32>(x) >> 31u) == 1u);
}

fn u64_of_f32(x: f32) -> vec2<u32> {
  if (is_nan(x) || x <= 0.0f) { return vec2<u32>(0u, 0u); }
  if (x >= 18446744073709551616.0f) { return vec2<u32>(0xffffffffu, 0xffffffffu); }
  return whole_of_f32(x);
}

fn f32_of_u64(a: vec2<u32>) -> f32 {
  // The upper 32 bits, a lost bit kept as the lowest: rounding then is that of the whole.
  let shift = countLeadingZeros(a.y);
  if (shift == 32u) { return f32(a.x); }
  let whole = shl_i64(a, vec2<u32>(shift, 0u));
  return f32(whole.y | select(0u, 1u, whole.x != 0u)) * bitcast<f32>((127u + 32u - shift) << 23u);
}

fn f32_of_i64(a: vec2<u32>) -> f32 {
  let size = f32_of_u64(abs_i64(a));
  return select(size, -size, (a.y >> 31u) == 1u);
}
"""

_ITEMS: Final = {}
_NAME: Final = re.compile(r"[a-z]\w+")
for _item in (*LIBRARY.strip().split("\n\n"), *CONVERSIONS):
    _found = re.match(r"(?:fn |var<private> )(\w+)", _item)
    assert _found, _item
    _ITEMS[_found[1]] = _item


@cache
def _needs(name: str) -> frozenset[str]:
    """The item and all items that it calls, directly or not."""
    found = {name}
    for used in set(_NAME.findall(_ITEMS[name])) & _ITEMS.keys() - {name}:
        found |= _needs(used)
    return frozenset(found)


def used_by(text: str) -> str:
    """The items of the library that a WGSL text needs, in the library's order."""
    wanted: set[str] = set()
    for name in set(_NAME.findall(text)) & _ITEMS.keys():
        wanted |= _needs(name)
    return "\n\n".join(item for name, item in _ITEMS.items() if name in wanted)
