/**
 * Where the tokens of a text stand in it, for any tokenizer: core/singe/language/tokenizing/offsets.py says how.
 *
 * Contract: `encoded(tokenizer, text)` gives the ids of a text without marks, and for each where it begins and ends, as indices of the string.
 */

/** @import { Tokenizer } from "./singe-language-tokenizer.js" */
/** @typedef {[begin: number, end: number]} Span */

/** So far ahead a character is looked for. */
const AHEAD = 64;
const CLUSTERS = /\P{M}\p{M}*|\p{M}+/gu;
const ENCODER = new TextEncoder();

/**
 * @param {Tokenizer} tokenizer
 * @param {string} text
 */
export function encoded(tokenizer, text) {
  /** @type {number[]} */
  const ids = [];
  /** @type {Span[]} */
  const spans = [];
  let start = 0;
  for (const { source, normalized, pieces } of tokenizer.parts(text)) {
    start = Math.max(start, text.indexOf(source, start));
    const places = placesOf(tokenizer, source, normalized);
    const whole = normalized.replaceAll("▁", " ");
    let at = 0;
    for (const [piece, own] of pieces) {
      const core = piece.replaceAll("▁", " ").trim();
      const found = whole.indexOf(core, at);
      const begin = Math.max(found, at);
      at = begin + (found >= 0 ? core.length : 0);
      const tokens = own.map((id) => tokenizer.bytes(id));
      for (const [a, b] of within(core, tokens)) {
        const [first, last] = [begin + a, Math.min(begin + b, places.length) - 1];
        spans.push(first <= last ? [start + places[first][0], start + places[last][1]] : [start, start]);
      }
      ids.push(...own);
    }
    start += source.length;
  }
  return { ids, spans };
}

/**
 * For each unit of the normalized text, what it was made of.
 * @param {Tokenizer} tokenizer
 * @param {string} source
 * @param {string} whole
 */
function placesOf(tokenizer, source, whole) {
  /** @type {Span[]} */
  const places = [];
  let lost = 0;
  const fill = (/** @type {number} */ count, /** @type {Span} */ place) => {
    for (let k = 0; k < count; k++) places.push(place);
  };
  for (const { 0: cluster, index } of source.matchAll(CLUSTERS)) {
    const made = tokenizer.normalized(cluster);
    if (!made) continue;
    const window = whole.slice(places.length, places.length + made.length + AHEAD);
    const found = window.indexOf(made);
    if (found < 0) continue;
    fill(found, [lost, index]);
    lost = index + cluster.length;
    fill(made.length, [index, lost]);
  }
  fill(whole.length - places.length, [lost, source.length]);
  return places;
}

/**
 * The units of each token in a piece.
 * @param {string} core
 * @param {Uint8Array[]} tokens
 * @returns {Span[]}
 */
function within(core, tokens) {
  const sizes = tokens.map((token, k) => (k ? token.length : token.length - leadingSpaces(token)));
  const data = ENCODER.encode(core);
  if (tokens.length === 1 || sizes.reduce((a, b) => a + b, 0) !== data.length) return tokens.map(() => [0, core.length]);
  let at = 0;
  return sizes.map((size) => {
    const [begin, end] = [unitsOf(data, at, false), unitsOf(data, at + size, true)];
    at += size;
    return [begin, end];
  });
}

/** @param {Uint8Array} token */
function leadingSpaces(token) {
  const first = token.findIndex((byte) => byte !== 32);
  return first < 0 ? token.length : first;
}

/**
 * The units of a string that so many of its bytes are; a character of which they are a part counts or not.
 * @param {Uint8Array} data
 * @param {number} count
 * @param {boolean} partsCount
 */
function unitsOf(data, count, partsCount) {
  const goesOn = (/** @type {number} */ at) => at < data.length && (data[at] & 0xc0) === 0x80;
  while (goesOn(count)) count += partsCount ? 1 : -1;
  return new TextDecoder("utf-8", { ignoreBOM: true }).decode(data.subarray(0, count)).length;
}
