/**
 * The texts that a search looks through, and their vectors: core/singe/tasks/text/index.py.
 *
 * Contract: `readIndex(info, file)` gives what travels with a task, null if nothing does; `nearest(index, query, options)` the numbers of the
 * texts that are most alike, and the cosines.
 */

/** @import { TaskInfo } from "../types/public.d.ts" */
/** @import { TaskFile } from "./singe-task-runner.js" */
/** @typedef {{ texts: string[], width: number, table: Float32Array, bits: Uint32Array }} TextIndex bits: the signs of each vector, in words */

import { SingeError } from "../program/singe-format.js";

export const VECTORS = "index.bin";
export const TEXTS = "index.json";
/** Of more texts, only those are compared whose signs agree with the query's in most places. */
const LARGE = 20_000;
const [MAX_TEXTS, MAX_WIDTH] = [1 << 24, (1 << 16) - 1];

/**
 * @param {string[]} texts
 * @param {number} width
 * @param {Float32Array} table
 * @returns {TextIndex}
 */
export function indexOf(texts, width, table) {
  const words = Math.ceil(width / 32);
  const bits = new Uint32Array(texts.length > LARGE ? words * texts.length : 0);
  for (let k = 0; bits.length && k < texts.length; k++) signsOf(table, k * width, width, bits, k * words);
  return { texts, width, table, bits };
}

/**
 * @param {Float32Array} from
 * @param {number} at
 * @param {number} width
 * @param {Uint32Array} bits
 * @param {number} to
 */
function signsOf(from, at, width, bits, to) {
  for (let i = 0; i < width; i++) if (from[at + i] > 0) bits[to + (i >> 5)] |= 1 << (i & 31);
}

const notIndex = (/** @type {string} */ why) => new SingeError("format", `${TEXTS}: not the index of a search: ${why}; make it once more`);

/**
 * @param {TaskInfo} info
 * @param {TaskFile} file
 * @returns {Promise<TextIndex | null>}
 */
export async function readIndex(info, file) {
  if (!info.files?.[TEXTS] && !info.files?.[VECTORS]) return null;
  const read = file(TEXTS, "values").catch((error) => {
    throw error.code === "format" ? notIndex(error.message) : error;
  });
  const [facts, data] = await Promise.all([read, file(VECTORS)]);
  const { texts, codes, dimensions: width } = Object(facts);
  const isList = Array.isArray(texts) && texts.length <= MAX_TEXTS && texts.every((text) => typeof text === "string");
  const count = isList ? texts.length : 0;
  const expected = codes === "float32" ? 4 * count * width : codes === "int8" ? count * (width + 4) : Number.NaN;
  if (!isList || !Number.isInteger(width) || width < 1 || width > MAX_WIDTH || data.length !== expected)
    throw notIndex("its texts, codes or dimensions, or the bytes of their vectors, are not what they should be");
  const bytes = data.slice().buffer; // so that its numbers begin where they may
  if (codes === "float32") return indexOf(texts, width, new Float32Array(bytes));
  const scales = new Float32Array(bytes, 0, count);
  const numbers = new Int8Array(bytes, 4 * count);
  return indexOf(
    texts,
    width,
    Float32Array.from(numbers, (x, i) => x * scales[Math.floor(i / width)]),
  );
}

/**
 * @param {TextIndex} index
 * @param {Float32Array} query
 * @param {{ top: number, reach: number, among: readonly number[] | null }} options
 */
export function nearest({ texts, width, table, bits }, query, { top, reach, among }) {
  let rows = among ? Int32Array.from(new Set(among)).sort() : Int32Array.from({ length: texts.length }, (_, k) => k);
  if (reach && rows.length > Math.max(LARGE, reach)) rows = agreeing(rows, bits, query, Math.max(reach, top));
  const scores = new Float32Array(rows.length);
  rows.forEach((row, k) => {
    let sum = 0;
    for (let i = 0, at = row * width; i < width; i++) sum += table[at + i] * query[i];
    scores[k] = sum;
  });
  const order = Array.from(rows.keys()).sort((a, b) => scores[b] - scores[a] || rows[a] - rows[b]);
  return order.slice(0, top).map((k) => ({ index: rows[k], score: scores[k] }));
}

/**
 * The rows whose signs agree with the query's in most places, in their order.
 * @param {Int32Array} rows
 * @param {Uint32Array} bits
 * @param {Float32Array} query
 * @param {number} count
 */
function agreeing(rows, bits, query, count) {
  const words = Math.ceil(query.length / 32);
  const own = new Uint32Array(words);
  signsOf(query, 0, query.length, own, 0);
  const apart = new Uint16Array(rows.length);
  const many = new Uint32Array(query.length + 1);
  for (let k = 0; k < rows.length; k++) {
    let sum = 0;
    for (let w = 0, at = rows[k] * words; w < words; w++) sum += onesOf(bits[at + w] ^ own[w]);
    apart[k] = sum;
    many[sum]++;
  }
  let limit = 0;
  for (let sum = many[0]; sum < count && limit < query.length; sum += many[++limit]);
  const near = rows.filter((_, k) => apart[k] < limit);
  const equal = rows.filter((_, k) => apart[k] === limit).slice(0, count - near.length);
  return Int32Array.from([...near, ...equal]).sort();
}

/**
 * How many bits of a word are 1.
 * @param {number} word
 */
function onesOf(word) {
  word -= (word >>> 1) & 0x55555555;
  word = (word & 0x33333333) + ((word >>> 2) & 0x33333333);
  return (((word + (word >>> 4)) & 0x0f0f0f0f) * 0x01010101) >>> 24;
}
