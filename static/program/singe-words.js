/**
 * The words of a program: what a run does, a flat list of integers in groups.
 *
 * A group is a head, the count of the words that follow, and these. A distance counts from the head. Buffers are indices
 * into the program's list.
 *
 *     k ≥ 0   buffers…, sizes…       call kernel k
 *     COPY    to, from, bytes
 *     JUMP    distance
 *     UNLESS  distance, buffer       jump unless its first element is true
 *     LOOP    distance, count, left  left = count; jump if that is 0
 *     AGAIN   distance               decrement the word before the jump's target, a LOOP's left; jump unless it is 0
 *     STOP    number                 a host, bind or check stop, which the runner carries out itself
 *
 * Contract: `checkWords` lets through what ends, names what is there, and finds every size before it is needed. In a file
 * the words that depend on sizes are 0, and a LOOP's count is an index into `counts`: Plan of singe-plan.js sets them.
 */

/** @import { Dim, Program, ProgramBuffer, ProgramPart, Row, Stop, Unchecked } from "../types/program.d.ts" */

import { IS, check, isDim, namesIn, need, sizeName } from "./singe-format.js";

export const [COPY, JUMP, UNLESS, LOOP, AGAIN, STOP] = [-1, -2, -3, -4, -5, -6];

/** How many words follow the count in a group that is no call, by the head without its sign. */
const LENGTHS = [0, 3, 1, 2, 3, 1, 1];

/**
 * The positions of the groups, each that of its head.
 * @param {number[]} words
 */
export function headsOf(words) {
  const heads = [];
  for (let at = 0; at < words.length; at += 2 + words[at + 1]) heads.push(at);
  return heads;
}

/**
 * Where the words are that are buffers, in the group at a word: from, to.
 * @param {Pick<Program, "kernels">} program
 * @param {number[]} words
 * @param {number} at
 */
export function portsAt({ kernels }, words, at) {
  const head = words[at];
  if (head >= 0) return [at + 2, at + 2 + kernels[head].ports];
  return head === COPY ? [at + 2, at + 4] : head === UNLESS ? [at + 3, at + 4] : [at, at];
}

/** @param {(value: Unchecked) => boolean} is */
export const orNull = (is) => ({ [is.name]: (/** @type {Unchecked} */ value) => value === null || is(value) })[is.name];

const dimension = (/** @type {Unchecked} */ dim) => isDim(dim);

/**
 * A stop's kind ↦ its fields.
 * @type {Record<string, Record<string, Row>>}
 */
const STOPS = {
  host: { op: IS.text, attrs: IS.object, inputs: [IS.count], outputs: [IS.count] },
  bind: { size: IS.text, buffer: orNull(IS.count), dim: orNull(IS.dimension) },
  check: { dim: dimension, text: IS.text },
};

/**
 * Check the fields of words, counts and stops; the sizes that the stops find.
 * @param {ProgramPart} program
 * @returns {Set<string>}
 */
export function checkStops({ words, counts, stops, buffers }) {
  need(
    words.every((word) => word === (word | 0)),
    "words are not all integers of 32 bits",
  );
  check(counts, [dimension], "counts");
  /** @type {Set<string>} */
  const found = new Set();
  stops.forEach((stop, k) => {
    const what = `stops[${k}]`;
    need(IS.text(stop.do) && Object.hasOwn(STOPS, stop.do), `${what} does ${JSON.stringify(stop.do)}`);
    check(stop, STOPS[stop.do], what);
    buffersOf(stop).forEach((i) => need(buffers[i], `${what} names buffer ${i} of ${buffers.length}`));
    if (stop.do === "host") need(stop.outputs.length > 0, `${what} writes nothing`);
    if (stop.do === "bind") {
      need((stop.buffer === null) !== (stop.dim === null), `${what} binds ${stop.size} to a buffer and to a dimension, or to neither`);
      if (stop.buffer !== null) checkFirst(buffers, stop.buffer, ["int32", "int64"], `${what} binds ${stop.size} to buffer ${stop.buffer}`);
    }
    need(dimsOf(stop).every(dimension), `${what} has a size that is no dimension`);
    sizesFound(stop, buffers).forEach((name) => found.add(name));
  });
  return found;
}

/**
 * The buffers that a stop names.
 * @param {Stop} stop
 */
const buffersOf = (stop) => (stop.do === "host" ? [...stop.inputs, ...stop.outputs] : stop.do === "bind" && stop.buffer !== null ? [stop.buffer] : []);

/**
 * The dimensions that a stop needs, those in attributes included.
 * @param {Stop} stop
 * @returns {Dim[]}
 */
function dimsOf(stop) {
  /** @type {(value: Unchecked) => Dim[]} */
  const inAttribute = (value) => (Array.isArray(value) ? value.flatMap(inAttribute) : value?.size ? [value.size] : []);
  if (stop.do === "host") return inAttribute(Object.values(stop.attrs));
  return stop.dim === null ? [] : [stop.dim];
}

/**
 * The sizes that a stop finds, those that the inputs give among them.
 * @param {Stop} stop
 * @param {ProgramBuffer[]} buffers
 */
function sizesFound(stop, buffers) {
  if (stop.do === "bind") return [stop.size];
  const names = stop.do === "host" ? stop.outputs.flatMap((i) => buffers[i].shape.map(sizeName)) : [];
  return names.filter((name) => name !== undefined);
}

/**
 * Check that a buffer has a first element of one of these types.
 * @param {ProgramBuffer[]} buffers
 * @param {number} i
 * @param {string[]} kinds
 * @param {string} what
 */
function checkFirst(buffers, i, kinds, what) {
  need(kinds.includes(buffers[i].dtype) && takenBy(buffers[i]) !== 0, `${what}, expected one of ${kinds.join(" or ")} that is not empty`);
}

/**
 * The bytes of a buffer; NaN if they depend on sizes.
 * @param {Pick<ProgramBuffer, "shape" | "size">} buffer
 */
export const takenBy = ({ shape, size }) => shape.reduce((/** @type {number} */ product, d) => product * (typeof d === "number" ? d : NaN), size);

/** @param {number} at */
const groupAt = (at) => `the group at word ${at}`;

/**
 * Check that every group is whole, and names what is there; the positions of the groups.
 * @param {ProgramPart} program
 */
function checkGroups(program) {
  const { words, kernels, buffers, counts, stops } = program;
  /** @type {Set<number>} */
  const heads = new Set();
  for (let at = 0; at < words.length; at += 2 + words[at + 1]) {
    const what = groupAt(at);
    const [head, count] = words.slice(at, at + 2);
    const rest = words.slice(at + 2, at + 2 + count);
    const kernel = kernels[head];
    const length = kernel ? kernel.ports + kernel.sizes.length : LENGTHS[-head];
    need(count >= 0 && rest.length === count, `${what} is not complete`);
    need(length, `word ${at} is ${head}, expected one of ${kernels.length} kernels`);
    need(count === length, `${what} has ${count} words, expected ${length}`);
    const [from, to] = portsAt(program, words, at);
    for (let k = from; k < to; k++) need(buffers[words[k]], `${what} names buffer ${words[k]} of ${buffers.length}`);
    if (head === LOOP) need(counts[rest[1]] !== undefined, `${what} has count ${rest[1]} of ${counts.length}`);
    if (head === STOP) need(stops[rest[0]], `${what} is stop ${rest[0]} of ${stops.length}`);
    const later = head >= COPY ? rest.slice(to - at - 2) : head === LOOP ? rest.slice(2) : [];
    need(!later.some(Boolean), `${what} has ${later} where a run sets a word, expected 0`);
    heads.add(at);
  }
  return heads;
}

/**
 * Check the words of a program, at the end of whose run its outputs' sizes are known. given: the sizes that its inputs give.
 * @param {ProgramPart} program
 * @param {Set<string | undefined>} given
 */
export function checkWords(program, given) {
  const { words, counts, stops, outputs, buffers, kernels } = program;
  const heads = checkGroups(program);
  /** @type {Map<string, bigint>} */
  const bits = new Map(); // a set of sizes that no input gives is a number, with a bit for each: there may be thousands
  const bitOf = (/** @type {string} */ name) => bits.get(name) ?? bits.set(name, 1n << BigInt(bits.size)).get(name) ?? 0n;
  const setOf = (/** @type {string[]} */ names) => names.reduce((set, name) => (given.has(name) ? set : set | bitOf(name)), 0n);
  const sizesIn = (/** @type {Dim[]} */ dims) => setOf(dims.flatMap(namesIn));
  const ofBuffer = buffers.map(({ shape }) => sizesIn(shape));
  const ofKernel = kernels.map(({ sizes, variants }) => sizesIn([...sizes, ...variants.flatMap((v) => v.groups)]));
  /**
   * The sizes that are found, on all ways to this word; undefined behind a JUMP.
   * @type {bigint | undefined}
   */
  let known = 0n;
  const needs = (/** @type {bigint} */ sizes, /** @type {string} */ what) => {
    const missing = sizes & ~(known ?? 0n);
    if (missing) need(false, `${what} needs the size ${[...bits].find(([, bit]) => bit & missing)?.[0]} before it is found`);
  };
  /**
   * Where jumps ahead land ↦ what is known there, and the first of them.
   * @type {Map<number, { known: bigint, first: number }>}
   */
  const landings = new Map();
  const land = (/** @type {number} */ at, /** @type {number} */ target) => {
    need(target > at, `${groupAt(at)} jumps back`);
    need(heads.has(target) || target === words.length, `${groupAt(at)} jumps to word ${target}, where no group begins`);
    const other = landings.get(target);
    const here = known ?? 0n;
    landings.set(target, { known: other ? other.known & here : here, first: other?.first ?? at });
  };
  /**
   * The LOOPs around this word; and an UNLESS ↦ its target, the LOOP around it and what is known there.
   * @type {{ at: number, start: number, end: number, isOpen: boolean }[]}
   */
  const loops = [];
  /** @type {Map<number, { target: number, loop?: typeof loops[0], known: bigint }>} */
  const tops = new Map();
  for (const at of [...heads, words.length]) {
    const what = groupAt(at);
    const landing = landings.get(at);
    const loop = loops.at(-1);
    landings.delete(at);
    known = known !== undefined && landing ? known & landing.known : (known ?? landing?.known);
    need(known !== undefined, `${what} cannot be reached`);
    need(!loop || at < loop.end, `the turns of the loop at word ${loop?.at} do not end`);
    need(!loop || !landing || landing.first > loop.at, `a jump leads to word ${at}, into a loop at word ${loop?.at}`);
    if (at === words.length) break;
    const [head, count, distance] = words.slice(at, at + 3);
    const [behind, target] = [at + 2 + count, at + distance];
    const [from, to] = portsAt(program, words, at);
    for (let k = from; k < to; k++) needs(ofBuffer[words[k]], what);
    if (head >= 0) needs(ofKernel[head], what);
    else if (head === COPY) {
      const [target, source] = words.slice(from, to);
      const [room, taken] = [target, source].map((i) => takenBy(buffers[i]));
      need(!(taken > room), `a copy moves buffer ${source} of ${taken} bytes to buffer ${target} of ${room}`);
    } else if (head === UNLESS) {
      checkFirst(buffers, words[at + 3], ["bool"], `${what} has buffer ${words[at + 3]} for a condition`);
      land(at, target);
      tops.set(at, { target, loop, known });
    } else if (head === LOOP) {
      needs(sizesIn([counts[words[at + 3]]]), what);
      land(at, target);
      loops.push({ at, start: behind, end: target, isOpen: true });
    } else if (head === AGAIN) {
      need(loop && loop.start === target && loop.end === behind, `${what} does not count the turns of a loop that ends there`);
      loop.isOpen = false;
      loops.pop();
    } else if (head === JUMP) {
      const top = tops.get(target);
      if (distance > 0) land(at, target);
      else {
        need(top && top.target > at, `${what} jumps back to where no condition ends the turns`);
        need(!top.loop || top.loop.isOpen, `${what} jumps back into a loop`);
        needs(top.known, what);
      }
      known = undefined;
    } else {
      const stop = stops[distance];
      needs(sizesIn(dimsOf(stop)), what);
      (stop.do === "host" ? stop.inputs : buffersOf(stop)).forEach((i) => needs(ofBuffer[i], what));
      known |= setOf(sizesFound(stop, buffers));
      buffersOf(stop).forEach((i) => needs(ofBuffer[i], what));
    }
  }
  outputs.forEach((i, k) => needs(ofBuffer[i], `output ${k}`));
}
