/**
 * Regular expressions, which a whole text must match: characters, classes, groups, alternatives and counts.
 *
 * Contract: `regularExpression(pattern, allowed)` is what the pattern means: `expression`, and `anchored`, whether it has a ^ at the
 * start and a $ at the end. Other characters than those allowed are left out of it. What an automaton cannot do (references to groups,
 * looking around, boundaries of words) is refused by its name.
 */

import { SingeError } from "../../program/singe-format.js";
import { ALL, characters, complement } from "./singe-language-grammar.js";

/** @import { CodeRange, Expression } from "./singe-language-grammar.js" */

const MAX_LENGTH = 10_000;
const MAX_COUNT = 1000;
const MAX_NESTED = 50;
/** @type {CodeRange[]} */
const DIGIT = [[48, 57]];
/** @type {CodeRange[]} */
const WORD = [...DIGIT, [65, 90], [95, 95], [97, 122]];
/** @type {CodeRange[]} */
const SPACE = [[9, 13], [32, 32]]; // biome-ignore format: one line
const CLASSES = new Map(Object.entries({ d: DIGIT, w: WORD, s: SPACE, D: complement(DIGIT), W: complement(WORD), S: complement(SPACE) }));
const CONTROLS = new Map(Object.entries({ n: 10, r: 13, t: 9, f: 12, v: 11, 0: 0 }));
const HEX = new Map(Object.entries({ x: 2, u: 4 }));
/** @type {Record<string, [number, number]>} */
const COUNTS = { "*": [0, Infinity], "+": [1, Infinity], "?": [0, 1] };

/**
 * @param {string} pattern
 * @param {readonly CodeRange[]} [allowed]
 */
export function regularExpression(pattern, allowed = ALL) {
  const all = typeof pattern === "string" && pattern.length <= 2 * MAX_LENGTH ? Array.from(pattern) : null;
  if (!all || all.length > MAX_LENGTH) throw new SingeError("input", `regex: got ${String(pattern).slice(0, 40)}, expected a text of at most ${MAX_LENGTH} characters`);
  const start = all[0] === "^";
  const before = /\\*$/.exec(pattern.slice(0, -1));
  const end = pattern.endsWith("$") && (before?.[0].length ?? 0) % 2 === 0;
  const expression = new Reader(all.slice(Number(start), all.length - Number(end)), complement(allowed)).whole();
  return { expression, anchored: [start, end] };
}

class Reader {
  #signs;
  #forbidden;
  #at = 0;
  #depth = 0;

  /**
   * @param {string[]} signs
   * @param {CodeRange[]} forbidden
   */
  constructor(signs, forbidden) {
    this.#signs = signs;
    this.#forbidden = forbidden;
  }

  whole() {
    const found = this.#choice();
    if (this.#at < this.#signs.length) throw this.#fault("a ) without its (");
    return found;
  }

  /** @param {string} what */
  #fault(what) {
    return new SingeError("input", `regex ${JSON.stringify(this.#signs.join("")).slice(0, 80)}: ${what}, at character ${this.#at}; expected another pattern`);
  }

  #peek(ahead = 0) {
    return this.#signs[this.#at + ahead] ?? "";
  }

  #next() {
    const found = this.#peek();
    if (!found) throw this.#fault("it ends too early");
    this.#at++;
    return found;
  }

  /** @param {CodeRange[]} ranges */
  #characters(ranges) {
    return characters(complement([...complement(ranges), ...this.#forbidden]));
  }

  /** @returns {Expression} */
  #choice() {
    const parts = [this.#sequence()];
    while (this.#peek() === "|") {
      this.#at++;
      parts.push(this.#sequence());
    }
    return parts.length === 1 ? parts[0] : { any: parts };
  }

  /** @returns {Expression} */
  #sequence() {
    /** @type {Expression[]} */
    const all = [];
    while (!["", "|", ")"].includes(this.#peek())) all.push(this.#counted(this.#one()));
    return { all };
  }

  #one() {
    const sign = this.#next();
    if (sign === "(") return this.#group();
    if (sign === "[") return this.#characters(this.#set());
    if (sign === ".") return this.#characters(complement([[10, 10]]));
    if (sign === "\\") return this.#characters(this.#escape());
    if ("*+?{".includes(sign)) throw this.#fault(`${sign} with nothing before it`);
    if ("^$".includes(sign)) throw this.#fault(`${sign} inside of it, where only its ends may have one`);
    return this.#characters(one(sign));
  }

  #group() {
    if (++this.#depth > MAX_NESTED) throw this.#fault(`more than ${MAX_NESTED} groups in each other`);
    if (this.#peek() === "?") {
      if (this.#peek(1) !== ":") throw this.#fault(`the group (?${this.#peek(1)}, which is not supported but as (?:`);
      this.#at += 2;
    }
    const found = this.#choice();
    if (this.#next() !== ")") throw this.#fault("a ( without its )");
    this.#depth--;
    return found;
  }

  /** @param {Expression} part */
  #counted(part) {
    for (let sign = this.#peek(); sign && "*+?{".includes(sign); sign = this.#peek()) {
      this.#at++;
      const [least, most] = sign === "{" ? this.#count() : COUNTS[sign];
      if (this.#peek() === "?")
        this.#at++; // which of the texts is preferred is the model's to say
      else if (this.#peek() === "+") throw this.#fault("a count that gives nothing back, which is not supported");
      part = { part, least, most };
    }
    return part;
  }

  /** @returns {[number, number]} */
  #count() {
    const end = this.#signs.indexOf("}", this.#at);
    const inside = this.#signs.slice(this.#at, Math.max(end, 0)).join("");
    const found = /^(\d*)(,?)(\d*)$/.exec(inside);
    if (end < 0 || !found || !(found[1] || found[3])) throw this.#fault("a { that is no count; write \\{ for the character");
    this.#at = end + 1;
    const low = Number(found[1]);
    const high = found[2] ? (found[3] ? Number(found[3]) : Infinity) : low;
    if (Math.max(low, Number.isFinite(high) ? high : 0) > MAX_COUNT || high < low) {
      throw this.#fault(`the count {${inside.slice(0, 20)}}, which is not in order or above ${MAX_COUNT}`);
    }
    return [low, high];
  }

  /** @returns {CodeRange[]} */
  #escape() {
    const sign = this.#next();
    const found = CLASSES.get(sign);
    if (found) return found;
    const count = HEX.get(sign);
    if (count) {
      const digits = this.#signs.slice(this.#at, this.#at + count).join("");
      if (digits.length !== count || /[^\da-f]/i.test(digits)) throw this.#fault(`\\${sign} without ${count} digits`);
      this.#at += count;
      const code = Number.parseInt(digits, 16);
      return [[code, code]];
    }
    const code = CONTROLS.get(sign);
    if (code !== undefined) return [[code, code]];
    if (/[\p{L}\p{N}]/u.test(sign)) throw this.#fault(`\\${sign}, which is not supported`);
    return one(sign);
  }

  #set() {
    const negative = this.#peek() === "^";
    this.#at += Number(negative);
    /** @type {CodeRange[]} */
    const found = [];
    while (this.#peek() !== "]" || !found.length) {
      const first = this.#member();
      if (this.#peek() === "-" && !["]", ""].includes(this.#peek(1))) {
        this.#at++;
        const last = this.#member();
        if (first.length > 1 || last.length > 1 || first[0][0] > last[0][0]) throw this.#fault("a range of characters that is not in order");
        found.push([first[0][0], last[0][1]]);
      } else found.push(...first);
    }
    this.#at++;
    return negative ? complement(found) : found;
  }

  #member() {
    const sign = this.#next();
    return sign === "\\" ? this.#escape() : one(sign);
  }
}

/**
 * @param {string} sign
 * @returns {CodeRange[]}
 */
function one(sign) {
  const code = /** @type {number} */ (sign.codePointAt(0));
  return [[code, code]];
}
