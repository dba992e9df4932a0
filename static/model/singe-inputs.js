/**
 * Inputs that are no typed arrays: lists of numbers, and pictures where the bundle says how they become the input.
 *
 * Contract: `elementsOf(inputs, program, image)` returns the inputs with typed arrays in place of these; the rest stays as
 * it is, and is checked later. What does not fit is a SingeError with the code "input". A bundle's page gets `ARRAYS` here.
 */

/** @import { DType, ImageFacts, Input, TypedArray } from "../types/public.d.ts" */
/** @import { ArrayClass, BoundInputs, Program, Unchecked } from "../types/program.d.ts" */

/** @typedef {(text: string) => SingeError} Refuse */
/** @typedef {ArrayLike<unknown> & { forEach(each: (x: unknown, k: number) => void): void }} Numbers */

import { ARRAYS, SingeError, byName, textOf } from "../program/singe-format.js";

export { ARRAYS };

const MOST_AXES = 64;

/**
 * @param {Record<string, Input>} inputs
 * @param {Program} program
 * @param {ImageFacts | null} image
 * @returns {Promise<BoundInputs>}
 */
export async function elementsOf(inputs, { inputs: numbers, buffers }, image) {
  const taken = numbers.map((i) => buffers[i]);
  checkNamed(
    inputs,
    taken.map(({ name }) => name),
  );
  /** @type {Record<string, Unchecked>} */
  const found = byName(inputs);
  for (const { name, dtype } of taken) {
    const value = found[name];
    const refuse = (/** @type {string} */ text) => new SingeError("input", `input ${JSON.stringify(name)}: ${text}`);
    if (Array.isArray(value)) found[name] = fromList(value, undefined, dtype, refuse);
    else if (Array.isArray(value?.data)) found[name] = { ...value, ...fromList(value.data, value.shape, dtype, refuse) };
    else if (isPicture(value)) found[name] = await fromPicture(value, image, name, dtype, refuse);
  }
  return found;
}

/**
 * Refuse what is not inputs by name, but one by itself or nothing.
 * @param {Unchecked} inputs
 * @param {string[]} names
 */
function checkNamed(inputs, names) {
  const kind = inputs?.constructor?.name;
  const isBare = Object(inputs) !== inputs || ArrayBuffer.isView(inputs) || Array.isArray(inputs) || isPicture(inputs) || kind === "GPUBuffer";
  if (!isBare && (names.includes("data") || inputs.data === undefined)) return;
  const named = names.map((name) => `${/^[a-z_]\w*$/i.test(name) ? name : JSON.stringify(name)}: data`).join(", ");
  const got = inputs === null ? "null" : (kind ?? typeof inputs);
  throw new SingeError("input", `inputs: got ${got}, this model takes them by name: pass { ${named} }`);
}

/** @param {unknown} value */
const isPicture = (value) => /^(Blob|File|Image|Video|HTML|Offscreen)/.test(String(value?.constructor?.name));

/**
 * @param {Unchecked} picture
 * @param {ImageFacts | null} image
 * @param {string} name
 * @param {DType} dtype
 * @param {Refuse} refuse
 */
async function fromPicture(picture, image, name, dtype, refuse) {
  if (image?.input !== name) {
    throw refuse("the bundle does not say how a picture becomes it: export with --size (and --mean, --std), or give its elements");
  }
  const { pictureToTensor } = await import("../singe-picture.js");
  const [[height, width], c] = [image.size, image.channels];
  const shape = image.layout === "nchw" ? [1, c, height, width] : [1, height, width, c];
  const pixels = await pictureToTensor(picture, image);
  return { data: dtype === "float32" ? pixels : arrayOf(wholeFor(dtype, pixels), dtype, refuse), shape };
}

/**
 * Pixels as numbers that the dtype has: whole ones within its limits, if it is one of integers.
 * @param {DType} dtype
 * @param {Float32Array} pixels
 * @returns {Numbers}
 */
function wholeFor(dtype, pixels) {
  const limits = limitsOf(dtype);
  if (!limits) return pixels;
  const least = Math.max(limits[0], Number.MIN_SAFE_INTEGER);
  const most = Math.min(limits[1] - 1, Number.MAX_SAFE_INTEGER);
  return Float64Array.from(pixels, (x) => Math.min(most, Math.max(least, Math.round(x))));
}

/**
 * A nested list has the shape of its nesting; a flat one is like a typed array.
 * @param {Unchecked[]} list
 * @param {readonly number[] | undefined} shape
 * @param {DType} dtype
 * @param {Refuse} refuse
 */
function fromList(list, shape, dtype, refuse) {
  /** @type {number[]} */
  const nesting = [];
  for (let /** @type {Unchecked} */ part = list; Array.isArray(part) && nesting.length <= MOST_AXES; part = part[0]) nesting.push(part.length);
  if (nesting.length > MOST_AXES) throw refuse("got a list that holds itself");
  /** @type {(part: Unchecked, nesting: number[]) => boolean} */
  const even = (part, [length, ...rest]) =>
    length === undefined ? !Array.isArray(part) : part.length === length && part.every((/** @type {Unchecked} */ inner) => even(inner, rest));
  if (!even(list, nesting)) throw refuse("got lists of several lengths");
  const data = arrayOf(list.flat(Infinity), dtype, refuse);
  return nesting.length > 1 ? { data, shape: shape ?? nesting } : { data, shape };
}

/**
 * Numbers as a typed array; one that is no element of this dtype is refused.
 * @param {Numbers} numbers
 * @param {DType} dtype
 * @param {Refuse} refuse
 * @returns {TypedArray}
 */
function arrayOf(numbers, dtype, refuse) {
  const limits = limitsOf(dtype);
  const isBool = dtype === "bool";
  if (!limits && !/^float(16|32|64)$/.test(dtype)) throw refuse(`${dtype} takes its bits, as ${ARRAYS[dtype].name}: no list and no picture`);
  const Elements = /** @type {ArrayClass | undefined} */ (dtype === "float16" ? globalThis.Float16Array : ARRAYS[dtype]);
  if (!Elements) throw refuse("float16 takes its bits, as Uint16Array: this engine has no Float16Array, for lists and pictures");
  const isWhole = (/** @type {unknown} */ x) => typeof x === "bigint" || Number.isSafeInteger(x) || (isBool && typeof x === "boolean");
  const fits = limits ? (/** @type {Unchecked} */ x) => isWhole(x) && x >= limits[0] && x < limits[1] : (/** @type {unknown} */ x) => typeof x === "number";
  /** @type {(x: Unchecked) => number | bigint} */
  const element = /^u?int64$/.test(dtype) ? BigInt : Number;
  const data = new Elements(numbers.length);
  numbers.forEach((x, k) => {
    if (!fits(x)) throw refuse(`got ${typeof x === "bigint" ? `${x}n` : textOf(x)} in a list, expected numbers for ${dtype}`);
    data[k] = element(x);
  });
  return data;
}

/**
 * The least integer of a dtype, and the one after its most; undefined if its elements are no integers.
 * @param {DType} dtype
 */
function limitsOf(dtype) {
  if (dtype === "bool") return [0, 2];
  const [, unsigned, bits] = /^(u?)int(\d+)$/.exec(dtype) ?? [];
  if (!bits) return undefined;
  const least = unsigned ? 0 : -(2 ** (Number(bits) - 1));
  return [least, least + 2 ** Number(bits)];
}
