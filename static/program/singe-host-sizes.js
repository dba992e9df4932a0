/**
 * Ops of the host whose results are sizes and places that a run computed: they are checked, and given as empty arrays or indices.
 *
 * Contract: as that of singe-host.js, whose table has them.
 */

/** @import { HostArray, HostInput } from "../types/program.d.ts" */

import { longs, numbers, range, wide } from "./singe-elements.js";
import { SingeError } from "./singe-format.js";

/**
 * Sizes are given as empty arrays of these lengths.
 * @param {number[]} sizes
 * @returns {HostArray[]}
 */
const empty = (sizes) => sizes.map((n) => ({ data: new Uint8Array(0), shape: [n, 0] }));
/** @param {number[]} list */
const product = (list) => list.reduce((all, n) => all * n, 1);
/** @param {number[]} list */
const shown = (list) => `(${list.join(", ")})`;

/**
 * Check numbers that a run computed; the text says what they are, and what was expected.
 * @param {boolean} isSo
 * @param {string} what
 * @param {string} text
 */
function must(isSo, what, text) {
  if (!isSo) throw new SingeError("input", `${what}: ${text}`);
}

/**
 * @param {HostInput[]} inputs
 * @param {{ what: string, total?: number | null, most?: number | null }} attrs
 */
export function sizes([x], { what, total = null, most = null }) {
  const found = numbers(x);
  const isWithin = (/** @type {number} */ n) => n >= 0 && n <= (most ?? n);
  must(found.every(isWithin), what, `got ${shown(found)}, expected ${most === null ? "no number below 0" : `numbers from 0 to ${most}`}`);
  const sum = found.reduce((all, n) => all + n, 0);
  must(sum === (total ?? sum), what, `the parts ${shown(found)} make ${sum}, expected ${total}`);
  return empty(found);
}

/** @param {HostInput[]} inputs */
export function signedSizes([x]) {
  return empty(numbers(x).flatMap((n) => [Math.max(n, 0), Math.max(-n, 0)]));
}

/**
 * @param {HostInput[]} inputs
 * @param {{ what: string, shape: number[], allow_zero: boolean }} attrs
 */
export function reshaped([x], { what, shape, allow_zero: allowZero }) {
  const asked = numbers(x);
  const found = allowZero ? asked : asked.map((n, k) => (n === 0 ? shape[k] : n));
  const open = found.indexOf(-1);
  const count = product(shape);
  if (open >= 0 && found.lastIndexOf(-1) === open) found[open] = Math.floor(count / -product(found)) || 0;
  const fits = found.every((n) => n >= 0) && product(found) === count;
  must(fits, what, `${shown(shape)} has ${count} elements, and cannot take the shape ${shown(asked)}`);
  return empty(found);
}

/**
 * @param {HostInput[]} inputs
 * @param {{ what: string, shape: number[] }} attrs
 */
export function expanded([x], { what, shape }) {
  const asked = numbers(x);
  const found = range(Math.max(asked.length, shape.length)).map((k) => {
    const [n, d] = [asked, shape].map((list) => /** @type {number} */ (list.at(-1 - k)));
    const sides = [k < asked.length ? n : 1, k < shape.length ? d : 1];
    must(sides[0] >= 0 && (sides[0] === sides[1] || sides.includes(1)), what, `${shown(shape)} does not broadcast with ${shown(asked)}`);
    return sides[0] === 1 ? sides[1] : sides[0];
  });
  return empty(found.reverse());
}

/**
 * How many numbers there are from a start to a limit by a step.
 * @param {HostInput[]} inputs
 * @param {{ what: string }} attrs
 */
export function rangeSize([start, limit, step], { what }) {
  const [first, last, by] = [start, limit, step].map((x) => Number(wide(x)[0]));
  const count = Math.ceil((last - first) / by);
  must(Number.isFinite(count), what, `from ${first} to ${last} by ${by} has no end`);
  return empty([Math.max(0, count)]);
}

/**
 * The axes that an input names, among `rank`.
 * @param {HostInput} x
 * @param {number} rank
 * @param {string} what
 */
function named(x, rank, what) {
  const found = numbers(x).map((axis) => (axis < 0 ? axis + rank : axis));
  must(
    found.every((axis) => axis >= 0 && axis < rank),
    what,
    `the axes ${shown(numbers(x))} of rank ${rank}`,
  );
  must(new Set(found).size === found.length, what, `the axes ${shown(found)} name one axis twice`);
  return found;
}

/**
 * @param {HostInput[]} inputs
 * @param {{ what: string, shape: number[], change: "added" | "kept" | "dropped" | "removed" }} attrs
 */
export function axesSizes([axes], { what, shape, change }) {
  const rank = shape.length + (change === "added" ? axes.data.length : 0);
  const found = named(axes, rank, what);
  const rest = shape.values();
  if (change === "added") return empty(range(rank).map((k) => /** @type {number} */ (found.includes(k) ? 1 : rest.next().value)));
  must(change === "kept" || found.every((k) => shape[k] === 1), what, `the axes ${shown(found)} of ${shown(shape)} are not all of length 1`);
  if (change === "dropped") return empty(shape.filter((_, k) => !found.includes(k)));
  return empty(shape.map((n, k) => (found.includes(k) ? 1 : n)));
}

/**
 * Flat indices that move some axes to the end, and those that move them back.
 * @param {HostInput[]} inputs
 * @param {{ what: string, shape: number[] }} attrs
 * @returns {HostArray[]}
 */
export function movedLast([axes], { what, shape }) {
  const last = named(axes, shape.length, what);
  const perm = [...range(shape.length).filter((k) => !last.includes(k)), ...last];
  const steps = shape.map((_, k) => product(shape.slice(k + 1)));
  const moved = perm.map((k) => shape[k]);
  const count = product(shape);
  const [there, back] = [new BigInt64Array(count), new BigInt64Array(count)];
  for (let n = 0; n < count; n++) {
    let [at, rest] = [0, n];
    for (let k = moved.length - 1; k >= 0; k--) {
      at += (rest % moved[k]) * steps[perm[k]];
      rest = Math.floor(rest / moved[k]);
    }
    there[n] = BigInt(at);
    back[at] = BigInt(n);
  }
  return [
    { data: there, shape: moved },
    { data: back, shape },
  ];
}

const FAR = 1e9;

/**
 * The indices along some axes that a slice selects.
 * @param {HostInput[]} inputs
 * @param {{ what: string, shape: number[], cuts: number[] }} attrs
 * @returns {HostArray[]}
 */
export function slicePlaces([starts, ends, axes, steps], { what, shape, cuts }) {
  const found = named(axes, shape.length, what);
  const [from, to, by] = [starts, ends, steps].map(numbers);
  return cuts.map((axis) => {
    const d = shape[axis];
    const k = found.indexOf(axis);
    const [start, end, step] = k < 0 ? [0, d, 1] : [from[k], to[k], by[k]];
    must(step !== 0, what, "a step is 0");
    const [low, high] = step > 0 ? [0, d] : [-1, d - 1];
    const [one, other] = [start, end].map((v) => (v >= FAR ? d : v < 0 && v > -FAR ? v + d : v));
    const first = Math.min(Math.max(one, 0), high);
    const last = Math.min(Math.max(other, low), high);
    const count = d ? Math.max(Math.ceil((last - first) / step), 0) : 0;
    return { data: longs(range(count).map((n) => first + step * n)), shape: [count] };
  });
}
