/**
 * The values of templates, as Python has and prints them.
 *
 * Contract: texts, numbers, true, false and null are JavaScript's, a list is an Array, a dict a Map; besides there are Undefined,
 * Space (a namespace), Callable, and Loop. `fromCaller` copies what a caller gives, `shown` is what a value prints as. Numbers
 * without a fraction print as whole ones: JavaScript does not tell 2.0 from 2.
 */

import { SingeError } from "../program/singe-format.js";

/** @typedef {any} Value */
/** @typedef {Record<string, Value>} Named */

export const MAX_TEXT = 1 << 22;
const MAX_NESTING = 64;

export class Undefined {
  /** @param {string} name */
  constructor(name) {
    this.name = name;
  }
}
export class Space {
  /** @param {Map<string, Value>} fields */
  constructor(fields) {
    this.fields = fields;
  }
}
export class Callable {
  /** @param {(plain: Value[], named: Named) => Value} call */
  constructor(call) {
    this.call = call;
  }
}
export class Loop {
  /** @param {Record<string, () => Value>} fields */
  constructor(fields) {
    this.fields = fields;
  }
}

/** @param {string} text */
export const refuse = (text) => new SingeError("format", `a template ${text}`);

/**
 * @param {unknown} value
 * @param {string} place
 * @returns {Value}
 */
export function fromCaller(value, place, depth = 0) {
  if (depth > MAX_NESTING) throw new SingeError("input", `${place} is nested more than ${MAX_NESTING} deep`);
  if (value === null || value === undefined) return null;
  if (["string", "boolean", "number"].includes(typeof value)) return value;
  if (Array.isArray(value)) return value.map((item, at) => fromCaller(item, `${place}[${at}]`, depth + 1));
  if (typeof value === "object" && [Object.prototype, null].includes(Object.getPrototypeOf(value))) {
    return new Map(Object.entries(value).map(([key, item]) => [key, fromCaller(item, `${place}.${key}`, depth + 1)]));
  }
  throw new SingeError("input", `${place} is ${typeof value}, expected text, a number, true, false, null, an array or an object`);
}

/** @param {Value} value */
export function isTrue(value) {
  if (value instanceof Undefined) return false;
  if (Array.isArray(value)) return value.length > 0;
  return value instanceof Map ? value.size > 0 : Boolean(value);
}

/** @param {Value} value */
export function kindOf(value) {
  if (value instanceof Undefined) return `${JSON.stringify(value.name)}, which is not defined`;
  if (value === null) return "none";
  if (Array.isArray(value)) return "a list";
  if (value instanceof Map) return "a dict";
  const names = new Map([
    ["string", "a text"],
    ["boolean", "true or false"],
    ["number", "a number"],
  ]);
  return names.get(typeof value) ?? "a function, a namespace or a loop";
}

/**
 * A number as Python writes it.
 * @param {number} value
 */
function writtenNumber(value) {
  if (Number.isSafeInteger(value)) return String(value);
  if (!Number.isFinite(value)) return Number.isNaN(value) ? "nan" : value > 0 ? "inf" : "-inf";
  const [, exponent] = value.toExponential().split("e");
  if (Number(exponent) >= -4 && Number(exponent) < 16) return String(value);
  return value.toExponential().replace(/e([+-])(\d)$/, "e$10$2");
}

/**
 * A text as Python's repr.
 * @param {string} text
 */
function writtenText(text) {
  const quote = text.includes("'") && !text.includes('"') ? '"' : "'";
  const inner = text.replace(/[\\\n\r\t]|(?! )[\p{C}\p{Z}]/gu, (c) => {
    const named = { "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t" }[c];
    const code = /** @type {number} */ (c.codePointAt(0));
    const hex = code.toString(16);
    return named ?? (code < 256 ? `\\x${hex.padStart(2, "0")}` : code < 65536 ? `\\u${hex.padStart(4, "0")}` : `\\U${hex.padStart(8, "0")}`);
  });
  return quote + (quote === "'" ? inner.replaceAll("'", "\\'") : inner) + quote;
}

/**
 * @param {Value} value
 * @returns {string}
 */
function written(value, depth = 0) {
  if (depth > MAX_NESTING) throw refuse(`prints a value that is nested more than ${MAX_NESTING} deep`);
  if (value === null) return "None";
  if (typeof value === "boolean") return value ? "True" : "False";
  if (typeof value === "number") return writtenNumber(value);
  if (typeof value === "string") return writtenText(value);
  if (Array.isArray(value)) return `[${value.map((item) => written(item, depth + 1)).join(", ")}]`;
  if (value instanceof Map) return `{${[...value].map(([k, v]) => `${written(k, depth + 1)}: ${written(v, depth + 1)}`).join(", ")}}`;
  if (value instanceof Undefined) return "Undefined";
  throw refuse(`prints ${kindOf(value)}, expected a value of JSON`);
}

/** @param {Value} value */
export const shown = (value) => (typeof value === "string" ? value : value instanceof Undefined ? "" : written(value));

/**
 * A value as Python's json.dumps writes it.
 * @param {Value} value
 * @param {{ indent: number | null, ascii: boolean, sort: boolean }} options
 * @returns {string}
 */
export function asJson(value, options, level = 1) {
  if (level > MAX_NESTING) throw refuse(`writes JSON that is nested more than ${MAX_NESTING} deep`);
  const { indent, ascii, sort } = options;
  if (value === null || typeof value === "boolean") return String(value);
  if (typeof value === "number") return { nan: "NaN", inf: "Infinity", "-inf": "-Infinity" }[writtenNumber(value)] ?? writtenNumber(value);
  if (typeof value === "string") {
    const text = JSON.stringify(value);
    return ascii ? text.replace(/[^\0-\x7e]/g, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`) : text;
  }
  const [separator, end] = indent === null ? [", ", ""] : [`,\n${" ".repeat(indent * level)}`, `\n${" ".repeat(indent * (level - 1))}`];
  const begin = indent === null ? "" : separator.slice(1);
  /**
   * @param {string[]} items
   * @param {string} brackets
   */
  const enclosed = (items, brackets) => (items.length ? brackets[0] + begin + items.join(separator) + end + brackets[1] : brackets);
  if (Array.isArray(value)) {
    return enclosed(
      value.map((item) => asJson(item, options, level + 1)),
      "[]",
    );
  }
  if (value instanceof Map) {
    const keys = [...value.keys()];
    if (sort) keys.sort(inOrder);
    return enclosed(
      keys.map((key) => `${asJson(typeof key === "string" ? key : written(key), options)}: ${asJson(value.get(key), options, level + 1)}`),
      "{}",
    );
  }
  throw refuse(`writes ${kindOf(value)} as JSON, which it is not`);
}

/**
 * The order of Python's texts, by code points, and of numbers.
 * @param {Value} a
 * @param {Value} b
 */
export function inOrder(a, b) {
  if (typeof a === "string" && typeof b === "string" && (/[\ud800-\udfff]/.test(a) || /[\ud800-\udfff]/.test(b))) {
    const [left, right] = [Array.from(a), Array.from(b)];
    const at = left.findIndex((c, i) => c !== right[i]);
    if (at < 0) return left.length - right.length;
    return at >= right.length ? 1 : /** @type {number} */ (left[at].codePointAt(0)) - /** @type {number} */ (right[at].codePointAt(0));
  }
  return a < b ? -1 : a > b ? 1 : 0;
}

/**
 * @param {Value} a
 * @param {Value} b
 * @returns {boolean}
 */
export function isEqual(a, b) {
  if (Array.isArray(a)) return Array.isArray(b) && a.length === b.length && a.every((item, at) => isEqual(item, b[at]));
  if (a instanceof Map) return b instanceof Map && a.size === b.size && [...a].every(([key, item]) => b.has(key) && isEqual(item, b.get(key)));
  if (a instanceof Undefined) return b instanceof Undefined;
  if (typeof a === "boolean" && typeof b === "number") return Number(a) === b;
  if (typeof a === "number" && typeof b === "boolean") return a === Number(b);
  return a === b;
}

/** @param {number} length */
export function refuseLong(length) {
  if (length > MAX_TEXT) throw refuse(`makes a text of ${length} characters, expected at most ${MAX_TEXT}`);
}
