/**
 * The methods of texts, dicts and lists that a template may call: closed tables, since values have no other attributes.
 *
 * Contract: a method takes the value, the arguments, and those with names. `checked` binds arguments; lengths and indices of
 * texts count characters, as Python's do. Methods that change a value are left out, as in Jinja's immutable sandbox.
 */

import { isEqual, kindOf, refuse, refuseLong, shown } from "./singe-language-values.js";

/** @import { Named, Value } from "./singe-language-values.js" */

/** @type {Record<string, [(value: Value) => boolean, string]>} Letters of the parameters below. */
const TYPES = {
  s: [(v) => typeof v === "string", "a text"],
  n: [(v) => typeof v === "string" || v === null, "a text or none"],
  i: [(v) => Number.isInteger(v) || typeof v === "boolean", "a whole number"],
  o: [(v) => Number.isInteger(v) || v === null, "a whole number or none"],
  w: [(v) => Number.isInteger(v) || typeof v === "string", "a whole number or a text"],
  b: [(v) => typeof v === "boolean", "true or false"],
  l: [(v) => Array.isArray(v), "a list"],
  t: [(v) => typeof v === "string" || (Array.isArray(v) && v.every((s) => typeof s === "string")), "a text or a list of texts"],
  a: [() => true, "a value"],
};

/**
 * A function whose arguments are bound by place or name: `parameters` are words such as "old:s count:i?", where a letter is a
 * type of TYPES, and ? marks what may be missing.
 * @param {string} name
 * @param {string} parameters
 * @param {(value: Value, ...given: Value[]) => Value} call
 * @returns {(value: Value, plain: Value[], named: Named) => Value}
 */
export function checked(name, parameters, call) {
  const slots = parameters ? parameters.split(" ").map((word) => word.split(":")) : [];
  return (value, plain, named) => {
    const names = slots.map(([key]) => key);
    if (plain.length > slots.length || Object.keys(named).some((key) => !names.slice(plain.length).includes(key))) {
      throw refuse(`calls ${name} with other arguments than ${names.join(", ") || "none"}`);
    }
    const given = slots.map(([key, [type, optional]], at) => {
      const argument = at < plain.length ? plain[at] : Object.hasOwn(named, key) ? named[key] : undefined;
      if (argument === undefined ? !optional : !TYPES[type][0](argument))
        throw refuse(`calls ${name} with ${shown(argument ?? "nothing").slice(0, 60)} as ${key}, expected ${TYPES[type][1]}`);
      return argument;
    });
    return call(value, ...given);
  };
}

const SPACES = "[\\t-\\r\\x1c-\\x20\\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000]";
const LEFT = new RegExp(`^${SPACES}+`);
const RIGHT = new RegExp(SPACES);
/**
 * @param {string} text
 * @param {string | null} [chars]
 */
export function strip(text, chars = null, left = true, right = true) {
  if (chars === null) {
    let end = text.length;
    while (right && end && RIGHT.test(text[end - 1])) end--;
    return left ? text.slice(0, end).replace(LEFT, "") : text.slice(0, end);
  }
  const [all, given] = [Array.from(text), new Set(chars)];
  let [start, end] = [0, all.length];
  while (left && start < end && given.has(all[start])) start++;
  while (right && end > start && given.has(all[end - 1])) end--;
  return all.slice(start, end).join("");
}

/**
 * @param {string} text
 * @param {string | null} [separator]
 */
function split(text, separator = null, most = -1, fromEnd = false) {
  if (separator === "") throw refuse("splits a text at an empty one");
  if (separator === null) {
    const pieces = strip(text).split(new RegExp(`(${SPACES}+)`));
    if (pieces[0] === "") return [];
    const cut = most < 0 ? pieces.length : 2 * most;
    const words = pieces.filter((_, at) => at % 2 === 0);
    if (pieces.length <= cut + 1) return words;
    if (fromEnd) return [text.slice(0, text.length - strip(text, null, true, false).length) + pieces.slice(0, pieces.length - cut).join(""), ...words.slice(words.length - most)];
    return [...words.slice(0, most), pieces.slice(cut).join("") + text.slice(strip(text, null, false).length)];
  }
  const parts = text.split(separator);
  if (most < 0 || parts.length <= most + 1) return parts;
  const cut = fromEnd ? parts.length - most : most;
  return fromEnd ? [parts.slice(0, cut).join(separator), ...parts.slice(cut)] : [...parts.slice(0, cut), parts.slice(cut).join(separator)];
}

/**
 * @param {string} text
 * @param {string} old
 * @param {string} content
 */
export function replace(text, old, content, count = -1) {
  if (!old) throw refuse("replaces an empty text");
  const parts = split(text, old, count);
  refuseLong(text.length + (parts.length - 1) * content.length);
  return parts.join(content);
}

/**
 * @param {string} text
 * @param {Value[]} items
 */
function join(text, items) {
  const wrong = items.find((item) => typeof item !== "string");
  if (wrong !== undefined) throw refuse(`joins ${kindOf(wrong)}, expected texts`);
  refuseLong(items.reduce((sum, item) => sum + item.length, text.length * items.length));
  return items.join(text);
}

/** @param {string} text */
export const isPlain = (text) => !/[\ud800-\udfff]/.test(text);
/** @param {Value} value the length as Python counts it */
export const lengthOf = (value) => (typeof value === "string" ? (isPlain(value) ? value.length : Array.from(value).length) : value instanceof Map ? value.size : value.length);

/**
 * A part of a text or list, as Python's slices.
 * @param {string | Value[]} value
 * @param {number | null} start
 * @param {number | null} stop
 * @param {number | null} step
 */
export function slice(value, start = null, stop = null, step = null) {
  const items = typeof value === "string" && !isPlain(value) ? Array.from(value) : value;
  const by = step ?? 1;
  const count = items.length;
  /** @param {number} at */
  const clamped = (at) => Math.min(Math.max(at < 0 ? at + count : at, by < 0 ? -1 : 0), by < 0 ? count - 1 : count);
  const from = start === null ? (by < 0 ? count - 1 : 0) : clamped(start);
  const to = stop === null ? (by < 0 ? -1 : count) : clamped(stop);
  if (by === 1) {
    const part = items.slice(from, Math.max(from, to));
    return typeof value === "string" && Array.isArray(part) ? part.join("") : part;
  }
  const part = [];
  for (let at = from; by > 0 ? at < to : at > to; at += by) part.push(items[at]);
  return typeof value === "string" ? part.join("") : part;
}

/** @param {string} word */
const capital = (word) => word.replace(/^./su, (c) => c.toUpperCase());
/** @param {string} text */
export const capitalize = (text) => capital(text.toLowerCase());
/**
 * @param {string} text
 * @param {number} at in code units
 */
const place = (text, at) => (at < 0 || isPlain(text) ? at : Array.from(text.slice(0, at)).length);
/**
 * @param {(text: string, sub: string) => Value} find
 * @returns {(text: string, sub: string, start?: number, end?: number) => Value}
 */
const within =
  (find) =>
  (text, sub, start = 0, end = undefined) => {
    const found = find(/** @type {string} */ (slice(text, start, end ?? null)), sub);
    return typeof found === "number" && found >= 0 && find !== countOf ? found + (start < 0 ? Math.max(0, start + lengthOf(text)) : start) : found;
  };
/** @type {(text: string, sub: string) => number} */
const countOf = (text, sub) => (sub ? text.split(sub).length - 1 : lengthOf(text) + 1);
/**
 * @param {(text: string, part: string) => boolean} test
 * @returns {(text: string, part: string | string[], start?: number, end?: number) => boolean}
 */
const affixed =
  (test) =>
  (text, part, start = 0, end = undefined) => {
    const inner = /** @type {string} */ (slice(text, start, end ?? null));
    return (Array.isArray(part) ? part : [part]).some((p) => test(inner, p));
  };
/**
 * @param {string} text
 * @param {Value[]} plain
 * @param {Named} named
 */
function format(text, plain, named) {
  let next = 0;
  let length = 0;
  return text.replace(/\{\{|\}\}|\{(\w*)\}|[{}]/gu, (whole, key) => {
    if (whole === "{{" || whole === "}}") return whole[0];
    const name = key === "" ? String(next++) : key;
    const value = key === undefined ? undefined : /^\d+$/.test(name) ? plain[Number(name)] : Object.hasOwn(named, name) ? named[name] : undefined;
    if (typeof value !== "string" && !Number.isInteger(value)) throw refuse(`formats by ${whole}, expected {} or {name} and a text or a number for it`);
    refuseLong((length += String(value).length));
    return String(value);
  });
}

/** @type {Record<string, (value: Value, plain: Value[], named: Named) => Value>} */
export const TEXT_METHODS = {
  format,
  ...Object.fromEntries(
    /** @type {[string, string, (text: string, ...given: Value[]) => Value][]} */ ([
      ["capitalize", "", capitalize],
      ["count", "sub:s start:i? end:i?", within(countOf)],
      ["endswith", "suffix:t start:i? end:i?", affixed((text, part) => text.endsWith(part))],
      ["find", "sub:s start:i? end:i?", within((text, sub) => place(text, text.indexOf(sub)))],
      ["isalnum", "", (text) => /^[\p{L}\p{N}]+$/u.test(text)],
      ["isalpha", "", (text) => /^\p{L}+$/u.test(text)],
      ["isdigit", "", (text) => /^[\p{Nd}²³¹⁰⁴-⁹₀-₉]+$/u.test(text)],
      ["islower", "", (text) => text === text.toLowerCase() && text !== text.toUpperCase()],
      ["isspace", "", (text) => text !== "" && strip(text) === ""],
      ["isupper", "", (text) => text === text.toUpperCase() && text !== text.toLowerCase()],
      ["join", "iterable:l", join],
      ["lower", "", (text) => text.toLowerCase()],
      ["lstrip", "chars:n?", (text, chars) => strip(text, chars, true, false)],
      ["partition", "sep:s", (text, sep) => (split(text, sep, 1).length > 1 ? [...split(text, sep, 1).slice(0, 1), sep, split(text, sep, 1)[1]] : [text, "", ""])],
      ["removeprefix", "prefix:s", (text, prefix) => (text.startsWith(prefix) ? text.slice(prefix.length) : text)],
      ["removesuffix", "suffix:s", (text, suffix) => (suffix && text.endsWith(suffix) ? text.slice(0, -suffix.length) : text)],
      ["replace", "old:s new:s count:i?", replace],
      ["rfind", "sub:s start:i? end:i?", within((text, sub) => place(text, text.lastIndexOf(sub)))],
      ["rpartition", "sep:s", (text, sep) => (split(text, sep, 1, true).length > 1 ? [split(text, sep, 1, true)[0], sep, split(text, sep, 1, true)[1]] : ["", "", text])],
      ["rsplit", "sep:n? maxsplit:i?", (text, sep, most) => split(text, sep, most, true)],
      ["rstrip", "chars:n?", (text, chars) => strip(text, chars, false)],
      ["split", "sep:n? maxsplit:i?", (text, sep, most) => split(text, sep, most)],
      ["splitlines", "keepends:b?", splitLines],
      ["startswith", "prefix:t start:i? end:i?", affixed((text, part) => text.startsWith(part))],
      ["strip", "chars:n?", (text, chars) => strip(text, chars)],
      ["title", "", (text) => text.replace(/\p{L}+/gu, capitalize)],
      ["upper", "", (text) => text.toUpperCase()],
    ]).map(([name, parameters, call]) => [name, checked(name, parameters, call)]),
  ),
};

/** @param {string} text */
export function splitLines(text, keep = false) {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: Python ends lines at them
  const found = text.match(/[^\n\r\v\f\x1c-\x1e\x85\u2028\u2029]*(?:\r\n|[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]|$)/gu) ?? [];
  if (found.at(-1) === "") found.pop();
  // biome-ignore lint/suspicious/noControlCharactersInRegex: Python ends lines at them
  return keep ? found : found.map((line) => line.replace(/(?:\r\n|[\n\r\v\f\x1c-\x1e\x85\u2028\u2029])$/u, ""));
}

/** @type {Record<string, (value: Value, plain: Value[], named: Named) => Value>} */
export const DICT_METHODS = Object.fromEntries(
  /** @type {[string, string, (values: Map<Value, Value>, ...given: Value[]) => Value][]} */ ([
    ["copy", "", (values) => new Map(values)],
    ["get", "key:a default:a?", (values, key, otherwise = null) => (values.has(key) ? values.get(key) : otherwise)],
    ["items", "", (values) => Array.from(values, ([key, value]) => [key, value])],
    ["keys", "", (values) => [...values.keys()]],
    ["values", "", (values) => [...values.values()]],
  ]).map(([name, parameters, call]) => [name, checked(name, parameters, call)]),
);
/** Methods of dicts that are not there, and hide keys of their names, as in Jinja's sandbox. */
export const CHANGING_METHODS = ["clear", "fromkeys", "pop", "popitem", "setdefault", "update"];
/** @type {Record<string, (value: Value, plain: Value[], named: Named) => Value>} */
export const LIST_METHODS = {
  count: checked("count", "value:a", (values, value) => values.filter((/** @type {Value} */ item) => isEqual(item, value)).length),
  index: checked("index", "value:a", (values, value) => {
    const at = values.findIndex((/** @type {Value} */ item) => isEqual(item, value));
    if (at < 0) throw refuse(`asks for the index of ${kindOf(value)} that is not in a list`);
    return at;
  }),
};
