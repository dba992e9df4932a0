/**
 * The patterns by which tokenizers cut text, a closed table: core/singe/language/tokenizing/patterns.py has the same.
 *
 * Contract: `known(pattern)` is a pattern of a file, if it is of the table, else a SingeError "format": what a file says is never
 * compiled unseen. `inJavaScript(pattern)` writes it as a RegExp. `cutter(pattern, behavior, invert)` is a function that cuts a
 * text at its matches.
 */

import { SingeError } from "../program/singe-format.js";

const CONTRACTIONS = "(?i:'s|'t|'re|'ve|'m|'ll|'d)";
const SPACES = String.raw`\s*[\r\n]+|\s+(?!\S)|\s+`;
export const GPT2 = String.raw`'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`;
const LLAMA3 = String.raw`${CONTRACTIONS}|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|${SPACES}`;
const QWEN35 = String.raw`${CONTRACTIONS}|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|${SPACES}`;
const BEFORE = String.raw`[^\r\n\p{L}\p{N}]?`;
const UPPER = String.raw`[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]`;
const LOWER = String.raw`[\p{Ll}\p{Lm}\p{Lo}\p{M}]`;
/**
 * Words cut where capitals begin, as in GPT-4o.
 * @param {string} end
 * @param {string} digits
 */
const cased = (end, digits) => String.raw`${BEFORE}${UPPER}*${LOWER}+${end}|${BEFORE}${UPPER}+${LOWER}*${end}|${digits}| ?[^\s\p{L}\p{N}]+[\r\n/]*|${SPACES}`;
const SYMBOLS = `[!"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_\`{|}~]`;
const CLIP = String.raw`'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+`;

export const KNOWN = new Set([
  GPT2,
  LLAMA3,
  LLAMA3.replace("{1,3}", ""),
  QWEN35,
  cased(`${CONTRACTIONS}?`, "\\p{N}{1,3}"),
  cased("", "\\p{N}"),
  String.raw`\p{N}`,
  String.raw`\p{N}{1,3}`,
  "[一-龥\u3040-ゟ゠-ヿ]+",
  String.raw`${SYMBOLS}[A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|${SPACES}`,
  String.raw`[\r\n]`,
  String.raw`\s?\p{L}+`,
  String.raw`\s?\p{P}+`,
  "[一-龥\u0800-一가-\ud7ff]+",
  LLAMA3.replace("{1,3}", "+"),
  "[\\p{P}\\$\\+<=>\\^~\\|`]+",
  "[0-9][0-9][0-9]",
  CLIP,
  String.raw`<\|startoftext\|>|<\|endoftext\|>|${CLIP}`,
  " {2,}",
  String.raw`\s+`,
  String.raw`\n+`,
  String.raw`[^\n]+|[\n]+`,
]);

/**
 * @param {string} pattern
 */
export function known(pattern) {
  const written = pattern.replaceAll("\r", "\\r").replaceAll("\n", "\\n");
  if (KNOWN.has(written)) return written;
  throw new SingeError("format", `the pattern ${JSON.stringify(pattern.slice(0, 300))} of a tokenizer is none of the ${KNOWN.size} that Singe knows`);
}

/** What \s means: Unicode's White_Space; JavaScript's has a mark of byte order, and lacks U+0085. */
export const SPACE = String.raw`\t-\r \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000`;
const PARTS = /\\[pP]\{\w+\}|\\s|\\S|\\.|\[\^?|\]|[^[\]\\]+/gu;

/** @param {string} text */
export const quoted = (text) => text.replace(/[\\^$.*+?()[\]{}|/-]/gu, "\\$&");

/**
 * @param {string} pattern
 * @param {string} [flags]
 */
export function inJavaScript(pattern, flags = "gu") {
  let inside = false;
  const written = pattern.replaceAll(CONTRACTIONS, "(?:'(?:[sSſ]|[tTmMdD]|[rRvV][eE]|[lL][lL]))").replace(PARTS, (part) => {
    if (part[0] === "[") inside = true;
    else if (part === "]") inside = false;
    else if (part === "\\s") return inside ? SPACE : `[${SPACE}]`;
    else if (part === "\\S") return `[^${SPACE}]`;
    else if (/^\\["'#%&,:;<=>@`~! ]$/u.test(part)) return part[1];
    return part;
  });
  return new RegExp(written, flags);
}

/** @typedef {[start: number, end: number, matched: boolean]} Span */
/** @type {Record<string, (spans: Span[]) => [number, number][]>} What becomes of matches, by the names of `tokenizer.json`. */
const BEHAVIORS = {
  Isolated: (spans) => spans.map(([start, end]) => [start, end]),
  Removed: (spans) => spans.filter((span) => !span[2]).map(([start, end]) => [start, end]),
  MergedWithPrevious(spans) {
    /** @type {[number, number][]} */
    const merged = [];
    let previous = false;
    for (const [start, end, matched] of spans) {
      if (matched && merged.length && !previous) merged[merged.length - 1][1] = end;
      else merged.push([start, end]);
      previous = matched;
    }
    return merged;
  },
  MergedWithNext(spans) {
    /** @type {[number, number][]} */
    const merged = [];
    let following = false;
    for (const [start, end, matched] of spans.toReversed()) {
      if (matched && merged.length && !following) merged[merged.length - 1][0] = start;
      else merged.push([start, end]);
      following = matched;
    }
    return merged.reverse();
  },
  Contiguous(spans) {
    /** @type {[number, number, boolean][]} */
    const merged = [];
    for (const [start, end, matched] of spans) {
      const last = merged.at(-1);
      if (last && last[2] === matched) last[1] = end;
      else merged.push([start, end, matched]);
    }
    return merged.map(([start, end]) => [start, end]);
  },
};

/**
 * @param {string} pattern of ours, or of the table
 * @param {string} [behavior]
 * @param {boolean} [invert]
 * @returns {(text: string) => string[]}
 */
export function cutter(pattern, behavior = "Isolated", invert = false) {
  if (!Object.hasOwn(BEHAVIORS, behavior)) {
    throw new SingeError("format", `the behavior ${JSON.stringify(behavior)} of a pre-tokenizer, expected one of ${Object.keys(BEHAVIORS).join(", ")}`);
  }
  const compiled = inJavaScript(pattern);
  const join = BEHAVIORS[behavior];
  /** @param {string} text */
  const spansOf = (text) => {
    /** @type {Span[]} */
    const spans = [];
    let at = 0;
    for (const match of text.matchAll(compiled)) {
      const end = match.index + match[0].length;
      if (match.index === end) continue;
      if (at < match.index) spans.push([at, match.index, invert]);
      spans.push([match.index, end, !invert]);
      at = end;
    }
    if (at < text.length) spans.push([at, text.length, invert]);
    return spans;
  };
  return (text) => {
    if (behavior === "Isolated") {
      const pieces = text.match(compiled) ?? [];
      let length = 0;
      for (const piece of pieces) length += piece.length;
      if (length === text.length) return pieces;
    }
    return join(spansOf(text)).map(([start, end]) => text.slice(start, end));
  };
}
