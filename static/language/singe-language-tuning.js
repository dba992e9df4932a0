/**
 * Fine-tuning in a page: texts as examples for a step, and the file of what it learnt.
 *
 * Contract: `examplesOf(ids, length)` gives tokens, the labels that follow them, and a mask of those that count, for each part of a text.
 * `adapterFile(head, order, states)` gives a GGUF file of an adapter, for llama.cpp and `sg.language.load_adapter`, as a Blob; head: its
 * bytes before the numbers; order: the states that follow, each with the axes of its rows of which the last two are exchanged, or null.
 */

/** @import { TypedArray } from "../types/public.d.ts" */

import { SingeError, check } from "../program/singe-format.js";

const ALIGNMENT = 32;

/**
 * @param {number[]} ids
 * @param {number} length
 */
export function examplesOf(ids, length) {
  if (!Number.isInteger(length) || length < 1) throw new SingeError("input", `examples: got the length ${length}, expected a number of tokens from 1`);
  if (ids.length < 2) throw new SingeError("input", "examples: the text has no token that follows another one; give a longer one");
  const shape = [1, length];
  return Array.from({ length: Math.ceil((ids.length - 1) / length) }, (_, k) => {
    const part = ids.slice(k * length, (k + 1) * length + 1);
    const made = { tokens: { data: new Int32Array(length), shape }, labels: { data: new Int32Array(length), shape }, mask: { data: new Float32Array(length), shape } };
    made.tokens.data.set(part.slice(0, -1));
    made.labels.data.set(part.slice(1));
    made.mask.data.fill(1, 0, part.length - 1);
    return made;
  });
}

/**
 * @param {Uint8Array<ArrayBuffer>} head
 * @param {[string, number[] | null][]} order
 * @param {Readonly<Record<string, TypedArray>>} states
 */
export function adapterFile(head, order, states) {
  check(order, [[]], "language.adapter.states");
  const pieces = order.flatMap(([name, axes]) => {
    const data = states[name];
    if (!(data instanceof Float32Array)) throw new SingeError("input", `adapterFile: the states lack ${name}: give all that a step's session has of its model`);
    const held = axes ? turned(data, axes) : Float32Array.from(data);
    return [held, new Uint8Array(-held.byteLength & (ALIGNMENT - 1))];
  });
  return new Blob([head, ...pieces]);
}

/**
 * @param {Float32Array} data
 * @param {number[]} axes
 */
function turned(data, [heads, a, b]) {
  const row = data.length / (heads * a * b);
  const made = new Float32Array(data.length);
  for (let h = 0; h < heads; h++) {
    for (let i = 0; i < a; i++) {
      for (let j = 0; j < b; j++) {
        const from = ((h * a + i) * b + j) * row;
        made.set(data.subarray(from, from + row), ((h * b + j) * a + i) * row);
      }
    }
  }
  return made;
}
