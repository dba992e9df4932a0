/**
 * Outputs in the caller's arrays, and copies of inputs in memory that was used before: allocating a large array takes longer than filling it.
 *
 * Contract: `arraysFor(found, given)` checks the caller's `outputs`, if not "data", against the outputs of the run,
 * [{ name, dtype, count }], and returns an array for each, or undefined where a new one is needed. For a worker,
 * `roomFor(ports, given)` makes arrays of the same lengths, by name, or undefined if there are none: its run checks them
 * before it begins. `filled(answers, given)` returns the outputs by name, in the caller's arrays. `spares.copyOf(array)` copies an input.
 */

/** @import { DType, Port, TypedArray } from "../types/public.d.ts" */
/** @import { AnyElements, Answer, Unchecked } from "../types/program.d.ts" */

import { ARRAYS, SingeError, copyOf, textOf } from "./singe-format.js";

/**
 * What the caller passed for each output, or undefined.
 * @template T
 * @param {string[]} names
 * @param {string | Record<string, T>} given
 * @param {string} expected
 * @returns {(T | undefined)[]}
 */
export function inOrder(names, given, expected) {
  if (Array.isArray(given)) throw new SingeError("input", `outputs: got an array, expected ${expected}; all outputs come, by name: choose among them`);
  if (typeof given === "string" || Object(given) !== given) throw new SingeError("input", `outputs: got ${textOf(given)}, expected ${expected}`);
  return names.map((name) => (Object.hasOwn(given, name) ? given[name] : undefined));
}

/** @param {unknown} given */
export const holdsArrays = (given) => Object.values(Object(given)).some(ArrayBuffer.isView);

const EXPECTED = '"data" or { name: array } (GPU buffers are for "webgpu", not in a worker)';

/**
 * @param {string} name
 * @param {unknown} array
 * @param {string} expected
 */
const wrong = (name, array, expected) => {
  const got = ArrayBuffer.isView(array) ? `${array.constructor.name} of ${/** @type {TypedArray} */ (array).length}` : (array?.constructor?.name ?? textOf(array));
  return new SingeError("input", `output ${JSON.stringify(name)}: got ${got}, expected ${expected}`);
};

/**
 * @param {{ name: string, dtype: DType, count: number }[]} found
 * @param {string | Record<string, unknown>} given
 * @returns {(TypedArray | undefined)[]}
 */
export function arraysFor(found, given) {
  const names = found.map(({ name }) => name);
  return inOrder(names, given, EXPECTED).map((array, k) => {
    const { name, dtype, count } = found[k];
    if (array === undefined || (array instanceof ARRAYS[dtype] && array.length === count)) return array;
    throw wrong(name, array, `${ARRAYS[dtype].name} (${dtype}) of ${count} elements`);
  });
}

/**
 * @param {Port[]} ports
 * @param {string | Record<string, unknown>} given
 * @returns {Record<string, TypedArray | null> | undefined}
 */
export function roomFor(ports, given) {
  inOrder([], given, EXPECTED);
  const found = Object.entries(given).filter(([, array]) => array !== undefined);
  const room = found.map(([name, array]) => {
    const { dtype } = ports.find((port) => port.name === name) ?? {};
    if (!dtype) return [name, null]; // the worker refuses the name
    if (!(array instanceof ARRAYS[dtype])) throw wrong(name, array, `${ARRAYS[dtype].name} (${dtype})`);
    return [name, new ARRAYS[dtype](array.length)];
  });
  return room.length ? Object.fromEntries(room) : undefined;
}

/**
 * @param {Record<string, Answer>} answers
 * @param {string | Record<string, unknown>} given
 */
export function filled(answers, given) {
  const found = Object.entries(answers).map(([name, { dtype, data }]) => ({ name, dtype, count: /** @type {TypedArray} */ (data).length }));
  const arrays = arraysFor(found, given);
  Object.values(answers).forEach((answer, k) => {
    const array = arrays[k];
    if (!array) return;
    /** @type {AnyElements} */ (array).set(/** @type {AnyElements} */ (answer.data));
    answer.data = array;
  });
  return answers;
}

/** Memory that a worker gave back, for the next copy of its size. */
export const spares = {
  /** @type {ArrayBuffer | undefined} */
  memory: undefined,

  /**
   * The memory of an array of a run's inputs that is large enough to be given back.
   * @param {Unchecked} inputs
   * @returns {ArrayBuffer | undefined}
   */
  among: (inputs) =>
    Object.values(Object(inputs))
      .map((input) => (input?.data ?? input)?.buffer)
      .find((memory) => memory?.byteLength >= 1 << 16),

  /**
   * @template {TypedArray} T
   * @param {T} array
   * @returns {T}
   */
  copyOf(array) {
    const { memory } = this;
    if (array.byteLength !== memory?.byteLength) return copyOf(array);
    this.memory = undefined;
    const copy = new /** @type {Unchecked} */ (globalThis)[array[Symbol.toStringTag]](memory);
    copy.set(array);
    return copy;
  },
};
