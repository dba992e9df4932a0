/**
 * Grammars over the bytes of UTF-8: expressions of ranges of bytes, which rules name so that they may contain themselves.
 *
 * Contract: what both regular expressions and JSON schemas become, as core/singe/language/constraints has it in Python.
 */

/**
 * One byte, from the first to the last; all of some parts, one after the other; any one of some, of which there may be none; a part so
 * often; what a rule matches.
 * @typedef {{ first: number, last: number } | { all: Expression[] } | { any: Expression[] } | { part: Expression, least: number, most: number } | { rule: string }} Expression
 */
/** @typedef {[number, number]} CodeRange */

const MAX_CODE = 0x10ffff;
/** The last characters of one length in UTF-8, and the last before halves of surrogate pairs. */
const ENDS = [0x7f, 0x7ff, 0xd7ff, 0xffff, MAX_CODE];
const ENCODER = new TextEncoder();

/** @type {CodeRange[]} */
export const ALL = [[0, MAX_CODE]];

/**
 * This text.
 * @param {string} literal
 * @returns {Expression}
 */
export const text = (literal) => ({ all: Array.from(ENCODER.encode(literal), (byte) => ({ first: byte, last: byte })) });

/**
 * The expression or nothing.
 * @param {Expression} part
 * @returns {Expression}
 */
export const optional = (part) => ({ part, least: 0, most: 1 });

/**
 * One character of these ranges.
 * @param {readonly CodeRange[]} ranges
 * @returns {Expression}
 */
export const characters = (ranges) => ({ any: merged(ranges).flatMap(([first, last]) => sequences(first, last)) });

/**
 * The same characters in ranges that are in order and apart.
 * @param {readonly CodeRange[]} ranges
 */
function merged(ranges) {
  /** @type {CodeRange[]} */
  const found = [];
  const ordered = ranges.filter(([first, last]) => first <= last).sort((a, b) => a[0] - b[0] || a[1] - b[1]);
  for (const [first, last] of ordered) {
    const latest = found.at(-1);
    if (latest && first <= latest[1] + 1) latest[1] = Math.max(latest[1], last);
    else found.push([first, last]);
  }
  return found;
}

/**
 * All other characters.
 * @param {readonly CodeRange[]} ranges
 */
export function complement(ranges) {
  /** @type {CodeRange[]} */
  const found = [];
  let at = 0;
  for (const [first, last] of merged(ranges)) {
    found.push([at, first - 1]);
    at = last + 1;
  }
  return merged([...found, [at, MAX_CODE]]);
}

/**
 * Sequences of ranges of bytes for a range of characters, without halves of surrogate pairs.
 * @param {number} first
 * @param {number} last
 */
function sequences(first, last) {
  /** @type {Expression[]} */
  const found = [];
  let start = 0;
  for (const end of ENDS) {
    const [low, high] = [Math.max(first, start), Math.min(last, end)];
    if (low <= high) addSameLength(found, low, high);
    start = end === 0xd7ff ? 0xe000 : end + 1;
  }
  return found;
}

/**
 * @param {Expression[]} found
 * @param {number} first
 * @param {number} last
 */
function addSameLength(found, first, last) {
  const [low, high] = [utf8(first), utf8(last)];
  for (let at = 1; at < low.length; at++) {
    const rest = (1 << (6 * (low.length - at))) - 1; // of the bytes from there on
    if ((first & ~rest) === (last & ~rest)) continue;
    const cut = first & rest ? first | rest : (last & rest) !== rest ? (last & ~rest) - 1 : last;
    if (cut === last) continue;
    addSameLength(found, first, cut);
    addSameLength(found, cut + 1, last);
    return;
  }
  found.push({ all: low.map((byte, at) => ({ first: byte, last: high[at] })) });
}

/** @param {number} code */
function utf8(code) {
  if (code < 0x80) return [code];
  const length = code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
  const bytes = Array.from({ length }, (_, at) => 0x80 | ((code >> (6 * (length - 1 - at))) & 0x3f));
  bytes[0] |= (0xf00 >> length) & 0xff;
  return bytes;
}
