/**
 * Outputs in the caller's arrays: allocating a large array takes longer than filling it.
 *
 * Contract: `arraysFor(found, given)` checks the caller's `outputs`, if not "data", against the outputs of the run,
 * [{ name, dtype, count }], and returns an array for each, or undefined where a new one is needed. For a worker,
 * `roomFor(ports, given)` makes arrays of the same lengths, by name, or undefined if there are none: its run checks them
 * before it begins. `filled(answers, given)` returns the outputs by name, in the caller's arrays.
 */

import { ARRAYS, SingeError, textOf } from "./singe-format.js";

/** What the caller passed for each output, or undefined. */
export function inOrder(names, given, expected) {
  if (Object(given) !== given) throw new SingeError("input", `outputs: got ${textOf(given)}, expected ${expected}`);
  return names.map((name) => (Object.hasOwn(given, name) ? given[name] : undefined));
}

export const holdsArrays = (given) => Object.values(Object(given)).some(ArrayBuffer.isView);

const EXPECTED = '"data" or { name: array } (GPU buffers are for "webgpu", not in a worker)';

const wrong = (name, array, expected) => {
  const got = ArrayBuffer.isView(array) ? `${array.constructor.name} of ${array.length}` : (array?.constructor?.name ?? textOf(array));
  return new SingeError("input", `output ${JSON.stringify(name)}: got ${got}, expected ${expected}`);
};

export function arraysFor(found, given) {
  const names = found.map(({ name }) => name);
  return inOrder(names, given, EXPECTED).map((array, k) => {
    const { name, dtype, count } = found[k];
    if (array === undefined || (array instanceof ARRAYS[dtype] && array.length === count)) return array;
    throw wrong(name, array, `${ARRAYS[dtype].name} (${dtype}) of ${count} elements`);
  });
}

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

export function filled(answers, given) {
  const found = Object.entries(answers).map(([name, { dtype, data }]) => ({ name, dtype, count: data.length }));
  const arrays = arraysFor(found, given);
  Object.values(answers).forEach((answer, k) => {
    if (!arrays[k]) return;
    arrays[k].set(answer.data);
    answer.data = arrays[k];
  });
  return answers;
}
