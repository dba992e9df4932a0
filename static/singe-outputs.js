/**
 * Outputs in arrays of the caller's: new memory for a large one takes the system longer than to fill it.
 *
 * Contract: `arraysFor(found, given)` checks what a caller gave as `outputs`, other than "data", against what a run gives,
 * [{ name, dtype, count }], and answers an array for each, undefined where a new one is to be made. `filled(answers, given)`
 * are answers by name, in those arrays.
 */

import { ARRAYS, SingeError } from "./singe-format.js";

/** What was given for each of the outputs, by their names; undefined where nothing was. */
export function inOrder(names, given, expected) {
  if (Object(given) !== given) throw new SingeError("input", `outputs: got ${JSON.stringify(given)}, expected ${expected}`);
  const unknown = Object.keys(given).find((name) => !names.includes(name));
  if (unknown !== undefined) {
    throw new SingeError("input", `unknown output ${JSON.stringify(unknown)}: this model gives ${names.join(", ")}`);
  }
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
