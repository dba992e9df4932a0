/**
 * Outputs in the caller's arrays: allocating a large array takes longer than filling it.
 *
 * Contract: `arraysFor(found, given)` checks the caller's `outputs`, if not "data", against the outputs of the run,
 * [{ name, dtype, count }], and returns an array for each, or undefined where a new one is needed. `filled(answers, given)`
 * returns the outputs by name, in those arrays.
 */

import { checkNames } from "./singe-arguments.js";
import { ARRAYS, SingeError } from "./singe-format.js";

/** What the caller passed for each output, or undefined. */
export function inOrder(names, given, expected) {
  if (Object(given) !== given) throw new SingeError("input", `outputs: got ${JSON.stringify(given)}, expected ${expected}`);
  return names.map((name) => (Object.hasOwn(given, name) ? given[name] : undefined));
}

export const holdsArrays = (given) => Object.values(Object(given)).some(ArrayBuffer.isView);

export function arraysFor(found, given) {
  const names = found.map(({ name }) => name);
  const expected = '"data" or { name: array } (GPU buffers are for "webgpu", not in a worker)';
  return inOrder(names, given, expected).map((array, k) => {
    const { name, dtype, count } = found[k];
    const wanted = ARRAYS[dtype].name;
    if (array === undefined || (array instanceof ARRAYS[dtype] && array.length === count)) return array;
    const got = ArrayBuffer.isView(array) ? `${array.constructor.name} of ${array.length}` : (array?.constructor?.name ?? array);
    throw new SingeError("input", `output ${JSON.stringify(name)}: got ${got}, expected ${wanted} (${dtype}) of ${count} elements`);
  });
}

export async function filled(answers, given) {
  if (Object(given) === given) await checkNames(given, Object.keys(answers), "output", "this model gives");
  const found = Object.entries(answers).map(([name, { dtype, data }]) => ({ name, dtype, count: data.length }));
  const arrays = arraysFor(found, given);
  Object.values(answers).forEach((answer, k) => {
    if (!arrays[k]) return;
    arrays[k].set(answer.data);
    answer.data = arrays[k];
  });
  return answers;
}
