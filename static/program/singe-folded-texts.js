/**
 * The modules of a bundle, in which lines that were there before are references.
 *
 * Contract: `unfoldedTexts(texts)` gives the whole texts; core/singe/program/folded_texts.py says what references are. What is no text
 * stays as it is, for who checks the modules.
 */

import { SingeError } from "./singe-format.js";

const MOST_CHARACTERS = 2 ** 27;
const MOST_LINES = 2 ** 22;
const REFERENCE = /^=(\d{1,9})([,+])(\d{1,9})$/;
const NUMBERS = /(\d+)/;

/**
 * @param {Record<string, string>} texts
 * @returns {Record<string, string>}
 */
export function unfoldedTexts(texts) {
  /** @type {string[]} */
  const lines = [];
  let room = MOST_CHARACTERS;
  const whole = (/** @type {string} */ text) => {
    const start = lines.length;
    for (const line of text.split("\n")) {
      const [, times, kind, place] = REFERENCE.exec(line) ?? [];
      const [count, at] = [Number(times ?? 1), Number(place)];
      const isThere = !times || (kind === "," ? at < lines.length : at > 0 && 2 * at <= lines.length);
      if (!isThere) throw refused(`${line} has no such lines before it`);
      if (times && lines.length + count > MOST_LINES) throw refused(`they have more than ${MOST_LINES} lines`);
      for (let k = 0; k < count; k++) {
        const { length } = lines;
        const one = !times ? line : kind === "," ? lines[at + k] : next(lines[length - 2 * at], lines[length - at]);
        lines.push(one);
        if ((room -= one.length + 1) < 0) throw refused(`they have more than ${MOST_CHARACTERS} characters`);
      }
    }
    return lines.slice(start).join("\n");
  };
  return Object.fromEntries(Object.entries(texts ?? {}).map(([name, text]) => [name, typeof text === "string" ? whole(text) : text]));
}

/** @param {string} text */
const refused = (text) => new SingeError("format", `the bundle's modules: ${text}`);

/**
 * The line that goes on from two: each number takes the same step again.
 * @param {string} first
 * @param {string} second
 */
function next(first, second) {
  const [parts, others] = [first, second].map((line) => line.split(NUMBERS));
  const stepped = others.map((part, k) => (part === parts[k] ? part : k % 2 ? 2 * Number(part) - Number(parts[k]) : -1));
  if (parts.length !== others.length || stepped.some((part) => typeof part === "number" && !(part >= 0 && Number.isSafeInteger(part)))) {
    throw refused(`no line goes on from ${first.slice(0, 80)} and ${second.slice(0, 80)}`);
  }
  return stepped.join("");
}
