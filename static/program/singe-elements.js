/**
 * Elements of arrays in a form to compute with: 16-bit floats as numbers, integers of any width as numbers, and back.
 */

/** @import { DType, TypedArray } from "../types/public.d.ts" */
/** @import { ElementArray, HostArray, HostInput } from "../types/program.d.ts" */

/** @typedef {ElementArray<number>} Numbers */

const word = new Uint32Array(1);
const float = new Float32Array(word.buffer);

/** @param {number} bits */
function fromHalf(bits) {
  const [sign, exponent, rest] = [bits & 0x8000 ? -1 : 1, (bits >> 10) & 31, bits & 1023];
  if (exponent === 31) return rest ? NaN : sign * Infinity;
  return sign * (exponent ? (1 + rest / 1024) * 2 ** (exponent - 15) : rest * 2 ** -24);
}

/**
 * The nearest, ties to even.
 * @param {number} value
 */
function toHalf(value) {
  float[0] = value;
  const sign = (word[0] >>> 16) & 0x8000;
  const bits = word[0] & 0x7fffffff;
  if (bits > 0x7f800000) return sign | 0x7e00;
  if (bits >= 0x477ff000) return sign | 0x7c00;
  if (bits >= 0x38800000) return sign | ((bits - 0x38000000 + 0xfff + ((bits >>> 13) & 1)) >>> 13);
  const steps = Math.abs(float[0]) * 2 ** 24;
  const below = Math.floor(steps);
  const up = steps - below > 0.5 || (steps - below === 0.5 && below % 2 === 1);
  return sign | (below + (up ? 1 : 0));
}

/**
 * bfloat16 is the upper half of a float32.
 * @param {number} bits
 */
function fromUpper(bits) {
  word[0] = bits << 16;
  return float[0];
}

/** @param {number} value */
function toUpper(value) {
  float[0] = value;
  return value !== value ? (word[0] >>> 16) | 0x40 : (word[0] + 0x7fff + ((word[0] >>> 16) & 1)) >>> 16;
}

/** @type {Record<string, [(bits: number) => number, (value: number) => number]>} */
const HALVES = { float16: [fromHalf, toHalf], bfloat16: [fromUpper, toUpper] };

/**
 * Elements in a form to compute with: 16-bit floats as float32.
 * @param {Pick<HostInput, "data" | "dtype">} x
 * @returns {Numbers}
 */
export const wide = ({ data, dtype }) => /** @type {Numbers} */ (HALVES[dtype] ? Float32Array.from(/** @type {Uint16Array} */ (data), HALVES[dtype][0]) : data);
/**
 * @param {Numbers} data
 * @param {DType} dtype
 * @returns {TypedArray}
 */
export const narrow = (data, dtype) => /** @type {TypedArray} */ (HALVES[dtype] ? Uint16Array.from(data, HALVES[dtype][1]) : data);
/**
 * A value as an element of that type would hold it.
 * @param {number} value
 * @param {DType} dtype
 */
export const rounded = (value, dtype) => (HALVES[dtype] ? HALVES[dtype][0](HALVES[dtype][1](value)) : value);
/**
 * @param {Pick<HostArray, "data">} x
 * @returns {number[]}
 */
export const numbers = ({ data }) => Array.from(data, Number);
/** @param {ArrayLike<number>} values */
export const longs = (values) => BigInt64Array.from(values, BigInt);
/** @param {number} n */
export const range = (n) => Array.from({ length: n }, (_, k) => k);
