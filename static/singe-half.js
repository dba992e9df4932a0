/**
 * Elements that a device stores wider: float16 as float32, smaller integers as 32 bits.
 *
 * Contract: `fromHalf` and `toHalf` agree with IEEE 754, ties to even; every NaN becomes one.
 */

import { ARRAYS } from "./singe-format.js";

/** What a device stores for the values of a typed array. */
export const widen = (data, { dtype }) =>
  dtype === "float16" ? Float32Array.from(data, fromHalf) : Uint32Array.from(data);

/** The values of which a device stored so many at a place. */
export const narrow = (dtype, buffer, at, count) =>
  dtype === "float16"
    ? ARRAYS[dtype].from(new Float32Array(buffer, at, count), toHalf)
    : ARRAYS[dtype].from(new Uint32Array(buffer, at, count));

/** The number that the 16 bits of a float16 mean. */
export function fromHalf(bits) {
  const sign = bits & 0x8000 ? -1 : 1;
  const exponent = (bits >> 10) & 31;
  const fraction = bits & 1023;
  if (exponent === 31) return fraction ? NaN : sign * Infinity;
  return sign * (exponent ? 2 ** (exponent - 15) * (1 + fraction / 1024) : 2 ** -14 * (fraction / 1024));
}

/** The 16 bits of the float16 that is nearest to a number, of two the even one. */
export function toHalf(value) {
  const sign = value < 0 || Object.is(value, -0) ? 0x8000 : 0;
  const size = Math.abs(value);
  if (Number.isNaN(value)) return 0x7e00;
  if (size >= 65520) return sign | 0x7c00;
  const exponent = Math.max(-14, Math.floor(Math.log2(size)));
  const steps = roundEven(size / 2 ** (exponent - 10));
  return sign | (steps < 1024 ? steps : ((exponent + 15) << 10) + (steps - 1024));
}

function roundEven(x) {
  const low = Math.floor(x);
  const rest = x - low;
  return rest > 0.5 || (rest === 0.5 && low % 2 === 1) ? low + 1 : low;
}
