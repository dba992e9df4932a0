/**
 * The filters and tests of Jinja that templates of conversations use, as closed tables.
 *
 * Contract: a filter takes the interpreter, the value, and the arguments; a test the value and the arguments.
 */

import { TEXT_METHODS, checked, lengthOf, splitLines, strip } from "./singe-language-methods.js";
import { Undefined, asJson, inOrder, isEqual, isTrue, kindOf, refuse, refuseLong, shown } from "./singe-language-values.js";

/** @import { Named, Value } from "./singe-language-values.js" */
/** @typedef {{ deepItem(value: Value, path: Value, otherwise?: Value): Value, filtered(value: Value, name: string, plain: Value[], named: Named): Value, tested(value: Value, name: string, given: Value[]): boolean, charge(items: number): void }} Run */
/** @typedef {(run: Run, value: Value, plain: Value[], named: Named) => Value} Filter */

/**
 * What a loop goes through.
 * @param {Value} value
 * @returns {Value[]}
 */
export function listed(value) {
  if (Array.isArray(value)) return value;
  if (typeof value === "string") return Array.from(value);
  if (value instanceof Map) return [...value.keys()];
  if (value instanceof Undefined) return [];
  throw refuse(`goes through ${kindOf(value)}, expected a list, a text or a dict`);
}
/** @param {Value} value */
const listedIfTrue = (value) => (isTrue(value) ? listed(value) : []);
/** @param {Value} value */
const textOf = (value) => {
  if (typeof value !== "string") throw refuse(`takes ${kindOf(value)} for a text`);
  return value;
};
/** @param {Value} value */
export const isNumber = (value) => typeof value === "number" || typeof value === "boolean";
/** @param {Value} value */
const number = (value) => {
  if (!isNumber(value)) throw refuse(`takes ${kindOf(value)} for a number`);
  return Number(value);
};
/** @param {Value} value */
const dict = (value) => {
  if (!(value instanceof Map)) throw refuse(`takes ${kindOf(value)} for a dict`);
  return value;
};
/** @param {Value} value */
const length = (value) => {
  if (value instanceof Undefined) return 0;
  if (typeof value !== "string" && !Array.isArray(value) && !(value instanceof Map)) throw refuse(`asks for the length of ${kindOf(value)}`);
  return lengthOf(value);
};
/**
 * @param {string} operator
 * @param {Value} a
 * @param {Value} b
 */
export function compared(operator, a, b) {
  if (operator === "==" || operator === "!=") return isEqual(a, b) === (operator === "==");
  if (!(isNumber(a) && isNumber(b)) && !(typeof a === "string" && typeof b === "string")) throw refuse(`compares ${kindOf(a)} with ${kindOf(b)} by ${operator}`);
  const order = inOrder(a, b);
  return { "<": order < 0, "<=": order <= 0, ">": order > 0, ">=": order >= 0 }[operator] ?? false;
}
/**
 * @param {Value} among
 * @param {Value} value
 */
export function contains(among, value) {
  if (typeof among === "string") return among.includes(textOf(value));
  if (among instanceof Map) return among.has(value);
  return listed(among).some((item) => isEqual(item, value));
}
/** @param {Value[]} values */
const endOf = (values, at = 0) => (values.length ? values.at(at) : new Undefined("an element of an empty list"));
/**
 * @param {Value[]} keys
 * @param {boolean} reverse
 * @param {boolean} cased
 */
function order(keys, reverse, cased) {
  const used = keys.map((key) => (typeof key === "string" && !cased ? key.toLowerCase() : key));
  if (!used.every((key) => typeof key === "string") && !used.every(isNumber)) throw refuse("sorts other things than texts, or numbers");
  return used.map((_, at) => at).sort((a, b) => (reverse ? inOrder(used[b], used[a]) : inOrder(used[a], used[b])));
}
/** @type {(run: Run, value: Value, reverse?: Value, cased?: Value, attribute?: Value) => Value[]} */
function sort(run, value, reverse = false, cased = false, attribute = null) {
  const values = listed(value);
  const keys = attribute === null ? values : values.map((item) => run.deepItem(item, attribute));
  return order(keys, isTrue(reverse), isTrue(cased)).map((at) => values[at]);
}
/**
 * @param {string} name
 * @param {string} parameters
 * @param {(value: Value, ...given: Value[]) => Value} call
 * @returns {Filter}
 */
const simple = (name, parameters, call) => {
  const bound = checked(name, parameters, call);
  return (_, value, plain, named) => bound(value, plain, named);
};
/**
 * @param {string} name
 * @param {string} parameters
 * @param {(run: Run, value: Value, ...given: Value[]) => Value} call
 * @returns {Filter}
 */
const running = (name, parameters, call) => (run, value, plain, named) => checked(name, parameters, (v, ...given) => call(run, v, ...given))(value, plain, named);
/**
 * @param {string} name
 * @returns {Filter}
 */
const method = (name) => (_, value, plain, named) => TEXT_METHODS[name](shown(value), plain, named);
/**
 * @param {boolean} wanted
 * @param {boolean} byAttribute
 * @returns {Filter}
 */
const chosen = (wanted, byAttribute) => (run, value, plain) => {
  if (byAttribute && !plain.length) throw refuse("selects by an attribute without naming it");
  const rest = byAttribute ? plain.slice(1) : plain;
  return listedIfTrue(value).filter((item) => {
    const subject = byAttribute ? run.deepItem(item, plain[0]) : item;
    return (rest.length ? run.tested(subject, textOf(rest[0]), rest.slice(1)) : isTrue(subject)) === wanted;
  });
};
/** @type {(value: Value, otherwise?: Value, boolean?: Value) => Value} */
const orDefault = (value, otherwise = "", boolean = false) => (value instanceof Undefined || (isTrue(boolean) && !isTrue(value)) ? otherwise : value);
/** @type {(value: Value, otherwise?: Value, base?: number) => Value} */
const whole = (value, otherwise = 0, base = 10) => {
  const text = typeof value === "string" ? strip(value) : "";
  const digits = base === 10 ? /^[+-]?\d{1,16}$/ : /^[+-]?[0-9a-zA-Z]{1,16}$/;
  const found = isNumber(value)
    ? Math.trunc(Number(value))
    : digits.test(text)
      ? Number.parseInt(text, base)
      : /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(text)
        ? Math.trunc(Number(text))
        : Number.NaN;
  return Number.isSafeInteger(found) ? found : otherwise;
};
/** @type {(value: Value, precision?: number, way?: string) => number} */
const round = (value, precision = 0, way = "common") => {
  if (!["common", "ceil", "floor"].includes(way) || precision < 0 || precision > 15) throw refuse(`rounds by ${way} to ${precision} digits`);
  const scaled = number(value) * 10 ** precision;
  if (way !== "common") return Math[/** @type {"ceil" | "floor"} */ (way)](scaled) / 10 ** precision;
  const down = Math.floor(scaled);
  const even = scaled - down === 0.5 ? down + (down % 2 ? 1 : 0) : Math.round(scaled);
  return even / 10 ** precision;
};
/** @type {(value: Value, width?: number | string, first?: boolean, blank?: boolean) => string} */
const indent = (value, width = 4, first = false, blank = false) => {
  const space = typeof width === "string" ? width : " ".repeat(Math.min(Math.max(width, 0), 1000));
  const text = shown(value);
  refuseLong(text.length + space.length * text.split("\n").length);
  const [start, ...rest] = splitLines(`${text}\n`);
  return [(first ? space : "") + start, ...rest.map((line) => (line || blank ? space + line : line))].join("\n");
};
/** @type {Record<string, string>} */
const ENTITIES = { "&": "&amp;", "<": "&lt;", ">": "&gt;", "'": "&#39;", '"': "&#34;" };
/** @param {Value} value */
const escaped = (value) => {
  refuseLong(6 * shown(value).length);
  return shown(value).replace(/[&<>'"]/g, (c) => ENTITIES[c]);
};
/** @param {Value} value */
const title = (value) =>
  shown(value).replace(/[^-({[<\s]+/gu, (word) => word.replace(/^./su, (c) => c.toUpperCase()).replace(/^(.)(.*)$/su, (_, c, rest) => c + rest.toLowerCase()));
/** @type {Filter} */
const map = (run, value, plain, named) => {
  if (!plain.length && Object.hasOwn(named, "attribute")) return listedIfTrue(value).map((item) => run.deepItem(item, named.attribute, named.default ?? null));
  if (!plain.length) throw refuse("maps without a filter");
  return listedIfTrue(value).map((item) => run.filtered(item, textOf(plain[0]), plain.slice(1), named));
};
/** @param {number} at */
const extreme =
  (at) =>
  /** @type {Filter} */
  (run, value, _, named) =>
    endOf(sort(run, value, false, false, named.attribute ?? null), at);

/** @type {Record<string, Filter>} */
export const FILTERS = {
  abs: simple("abs", "", (value) => Math.abs(number(value))),
  capitalize: method("capitalize"),
  count: simple("count", "", length),
  d: simple("d", "default_value:a? boolean:a?", orDefault),
  default: simple("default", "default_value:a? boolean:a?", orDefault),
  dictsort: simple("dictsort", "case_sensitive:b? by:s? reverse:b?", (value, cased = false, by = "key", reverse = false) => {
    const items = [...dict(value)];
    const keys = items.map((pair) => pair[by === "key" ? 0 : 1]);
    return order(keys, reverse, cased).map((at) => items[at]);
  }),
  e: simple("e", "", escaped),
  escape: simple("escape", "", escaped),
  first: simple("first", "", (value) => endOf(listed(value))),
  float: simple("float", "default:a?", (value, otherwise = 0) => {
    const found = typeof value === "string" ? (strip(value) ? Number(strip(value)) : Number.NaN) : isNumber(value) ? Number(value) : Number.NaN;
    return Number.isNaN(found) ? otherwise : found;
  }),
  indent: simple("indent", "width:w? first:b? blank:b?", indent),
  int: simple("int", "default:a? base:i?", whole),
  items: simple("items", "", (value) => (value instanceof Undefined ? [] : [...dict(value)])),
  join: running("join", "d:a? attribute:a?", (run, value, separator = "", attribute = null) => {
    const items = listed(value).map((item) => shown(attribute === null ? item : run.deepItem(item, attribute)));
    refuseLong(items.reduce((sum, item) => sum + item.length, shown(separator).length * items.length));
    return items.join(shown(separator));
  }),
  last: simple("last", "", (value) => endOf(listed(value), -1)),
  length: simple("length", "", length),
  list: simple("list", "", (value) => [...listed(value)]),
  lower: method("lower"),
  map,
  max: extreme(-1),
  min: extreme(0),
  reject: chosen(false, false),
  rejectattr: chosen(false, true),
  replace: method("replace"),
  reverse: simple("reverse", "", (value) => (typeof value === "string" ? Array.from(value).reverse().join("") : listed(value).toReversed())),
  round: simple("round", "precision:i? method:s?", round),
  safe: simple("safe", "", shown),
  select: chosen(true, false),
  selectattr: chosen(true, true),
  sort: running("sort", "reverse:a? case_sensitive:a? attribute:a?", sort),
  string: simple("string", "", shown),
  sum: running("sum", "attribute:a? start:a?", (run, value, attribute = null, start = 0) =>
    listed(value).reduce((total, item) => total + number(attribute === null ? item : run.deepItem(item, attribute)), number(start)),
  ),
  title: simple("title", "", title),
  tojson: simple("tojson", "ensure_ascii:b? indent:o? separators:a? sort_keys:b?", (value, ascii = false, by = null, separators = null, sortKeys = false) => {
    if (by !== null && (by < 0 || by > 16)) throw refuse(`indents JSON by ${by}`);
    if (separators !== null) throw refuse("writes JSON with separators of its own, which Singe does not");
    return asJson(value, { indent: by, ascii, sort: sortKeys });
  }),
  trim: simple("trim", "chars:n?", (value, chars = null) => strip(shown(value), chars)),
  unique: running("unique", "case_sensitive:a? attribute:a?", (run, value, cased = false, attribute = null) => {
    /** @type {Value[]} */
    const seen = [];
    return listed(value).filter((item) => {
      run.charge(seen.length);
      const found = attribute === null ? item : run.deepItem(item, attribute);
      const key = typeof found === "string" && !isTrue(cased) ? found.toLowerCase() : found;
      if (seen.some((other) => isEqual(other, key))) return false;
      seen.push(key);
      return true;
    });
  }),
  upper: method("upper"),
  wordcount: simple("wordcount", "", (value) => (strip(shown(value)) ? strip(shown(value)).split(/\s+/u).length : 0)),
};

/**
 * @param {Value} value
 * @param {Value} by
 */
const remainder = (value, by) => {
  if (!Number.isInteger(value) || !Number.isInteger(by) || !by) throw refuse("divides what is no whole number, or by zero");
  return ((value % by) + by) % by;
};
/** @param {string} operator */
const by = (operator) => (/** @type {Value} */ value, /** @type {Value} */ other) => compared(operator, value, other);
/** @param {Value} value */
const isSequence = (value) => typeof value === "string" || Array.isArray(value) || value instanceof Map || value instanceof Undefined;

/** @type {Record<string, (value: Value, other?: Value) => boolean>} The tests; those with an argument have two parameters. */
export const TESTS = {
  boolean: (value) => typeof value === "boolean",
  defined: (value) => !(value instanceof Undefined),
  divisibleby: (value, other) => remainder(value, other) === 0,
  eq: by("=="),
  equalto: by("=="),
  even: (value) => remainder(value, 2) === 0,
  false: (value) => value === false,
  float: (value) => typeof value === "number" && !Number.isInteger(value),
  ge: by(">="),
  greaterthan: by(">"),
  gt: by(">"),
  in: (value, other) => contains(other, value),
  integer: (value) => Number.isInteger(value),
  iterable: isSequence,
  le: by("<="),
  lessthan: by("<"),
  lower: (value) => TEXT_METHODS.islower(shown(value), [], {}),
  lt: by("<"),
  mapping: (value) => value instanceof Map,
  ne: by("!="),
  none: (value) => value === null,
  number: isNumber,
  odd: (value) => remainder(value, 2) === 1,
  sequence: isSequence,
  string: (value) => typeof value === "string",
  true: (value) => value === true,
  undefined: (value) => value instanceof Undefined,
  upper: (value) => TEXT_METHODS.isupper(shown(value), [], {}),
};
