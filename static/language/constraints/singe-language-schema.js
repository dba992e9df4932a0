/**
 * JSON schemas as grammars.
 *
 * Contract: `schemaRules(schema)` are the rules of a schema, of which the first is called ""; of `true` those of any JSON whose
 * outermost value is an object. A keyword that says nothing of the text (a title, a default) is not read; one that is not known is
 * refused by its name. Of what a schema leaves open, only a part is written: no properties that it does not name, and they are in its
 * order.
 */

import { SingeError } from "../../program/singe-format.js";
import { complement, optional, text } from "./singe-language-grammar.js";
import { regularExpression } from "./singe-language-regular.js";

/** @import { Expression } from "./singe-language-grammar.js" */
/** @typedef {any} Json */

/** Of an enum, or of properties, or of items and characters by count. */
const MAX_VALUES = 1000;
// biome-ignore format: one line
const ANNOTATIONS = new Set(["$schema", "$id", "$comment", "title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly", "$defs", "definitions"]);
/** Type ↦ its keywords. @type {Map<string, string[]>} */
const KEYWORDS = new Map([
  ["string", ["minLength", "maxLength", "pattern"]],
  ["array", ["items", "minItems", "maxItems"]],
  ["object", ["properties", "required", "additionalProperties"]],
  ["number", []],
  ["integer", []],
  ["boolean", []],
  ["null", []],
]);
/** Types that keywords tell. */
const TOLD = ["object", "array", "string"];
/** Each says all of a value, beside a type. */
const WHOLE = ["enum", "const", "anyOf", "$ref"];
/** Characters that a string of JSON has as they are. */
const PLAIN = complement([[0, 0x1f], [0x22, 0x22], [0x5c, 0x5c]]); // biome-ignore format: one line
/** Rules of regular expressions; no name of a schema begins with a space. */
const STARTING = {
  " ": "[ \\n\\t]{0,20}",
  " character": '[ !#-\\[\\]-\\x7f]|[^\\x00-\\x7f]|\\\\["\\\\/bfnrt]|\\\\u[0-9abcefABCEF][0-9a-fA-F]{3}|\\\\u[dD][0-7][0-9a-fA-F]{2}',
  " integer": "-?(0|[1-9][0-9]{0,15})",
  " number": "-?(0|[1-9][0-9]{0,15})(\\.[0-9]{1,16})?([eE][+-]?[0-9]{1,3})?",
};

/** @type {(rule: string) => Expression} */
const named = (rule) => ({ rule });
/** @type {(...all: Expression[]) => Expression} */
const following = (...all) => ({ all });
/** @type {(part: Expression, least?: number, most?: number) => Expression} */
const repeated = (part, least = 0, most = Infinity) => ({ part, least, most });
const SPACE = named(" ");
const COMMA = following(SPACE, text(","), SPACE);

/** @param {Json} value */
const isObject = (value) => typeof value === "object" && value !== null && !Array.isArray(value);
/** @param {Json} value */
const shown = (value) => (JSON.stringify(value) ?? String(value)).slice(0, 80);
/** @type {(found: Map<string, Json>, key: string, otherwise: Json) => Json} */
const entry = (found, key, otherwise) => (found.has(key) ? found.get(key) : otherwise);
/** @param {string} message */
const fault = (message) => new SingeError("input", message);

/** @param {Json} schema */
export const schemaRules = (schema) => new Rules(schema).rules;

class Rules {
  #root;

  /** @param {Json} schema */
  constructor(schema) {
    this.#root = schema;
    /** @type {Map<string, Expression>} */
    this.rules = new Map(Object.entries(STARTING).map(([name, pattern]) => [name, regularExpression(pattern).expression]));
    this.rules.set(" string", following(text('"'), repeated(named(" character")), text('"')));
    this.rules.set(" object", braced(pair(named(" string"), named(" value")), "{}"));
    this.rules.set(" array", braced(named(" value"), "[]"));
    this.rules.set(" value", { any: [...["string", "number", "object", "array"].map((kind) => named(` ${kind}`)), ...["true", "false", "null"].map(text)] });
    this.rules.set("", schema === true ? named(" object") : this.#value(schema, "schema"));
  }

  /**
   * @param {Json} schema
   * @param {string} at
   * @returns {Expression}
   */
  #value(schema, at) {
    if (schema === true || (isObject(schema) && !Object.keys(schema).length)) return named(" value");
    if (!isObject(schema)) throw fault(`${at}: got ${shown(schema)}, expected a JSON schema as an object`);
    const { type, ...rest } = schema;
    /** @type {Map<string, Json>} */
    const found = new Map(Object.entries(rest).filter(([key, value]) => value !== undefined && !ANNOTATIONS.has(key)));
    const whole = WHOLE.find((key) => found.has(key));
    if (whole !== undefined) {
      if (found.size > 1) throw fault(`${at}: ${[...found.keys()].map(shown).join(", ")} beside each other; give one of them`);
      return this.#whole(whole, found.get(whole), at);
    }
    const types = Array.isArray(type) ? type : [type ?? told(found, at)];
    if (!types.length || types.some((one) => !KEYWORDS.has(one))) throw fault(`${at}: the type ${shown(type)}, expected ${[...KEYWORDS.keys()].join(", ")}`);
    const known = new Set(types.flatMap((one) => KEYWORDS.get(one)));
    const strange = [...found.keys()].sort().find((key) => !known.has(key));
    if (strange !== undefined) throw fault(`${at}: the keyword ${shown(strange)} of ${types.join("/")} is not supported; leave it out`);
    const parts = types.map((one) => this.#typed(one, found, at));
    return parts.length === 1 ? parts[0] : { any: parts };
  }

  /**
   * @param {string} keyword
   * @param {Json} value
   * @param {string} at
   * @returns {Expression}
   */
  #whole(keyword, value, at) {
    if (keyword === "const") return literal(value, at);
    if (keyword === "$ref") return this.#reference(value, at);
    if (!Array.isArray(value) || !value.length || value.length > MAX_VALUES) throw fault(`${at}/${keyword}: got ${shown(value)}, expected a list of 1 to ${MAX_VALUES}`);
    return { any: value.map((item, place) => (keyword === "enum" ? literal(item, at) : this.#value(item, `${at}/anyOf/${place}`))) };
  }

  /**
   * A definition of the schema, as a rule.
   * @param {Json} name
   * @param {string} at
   */
  #reference(name, at) {
    if (typeof name !== "string" || !/^#($|\/\$defs\/|\/definitions\/)/.test(name)) throw fault(`${at}: the $ref ${shown(name)}, expected # or one that begins with #/$defs/`);
    if (!this.rules.has(name)) {
      let found = this.#root;
      for (const key of name.split("/").slice(1)) found = isObject(found) && Object.hasOwn(found, key) ? found[key] : undefined;
      if (found === undefined || found === null) throw fault(`${at}: the $ref ${shown(name)} leads nowhere; expected a name of $defs`);
      this.rules.set(name, { any: [] }); // while it is made, it may name itself
      this.rules.set(name, this.#value(found, name));
    }
    return named(name);
  }

  /**
   * @param {string} kind
   * @param {Map<string, Json>} found
   * @param {string} at
   * @returns {Expression}
   */
  #typed(kind, found, at) {
    if (kind === "string") return this.#string(found, at);
    if (kind === "object") return this.#object(found, at);
    if (kind === "boolean") return { any: [text("true"), text("false")] };
    if (kind === "null") return text("null");
    if (kind !== "array") return named(` ${kind}`);
    const [least, most] = bounds(found, "minItems", "maxItems", at);
    return braced(this.#value(entry(found, "items", true), `${at}/items`), "[]", least, most);
  }

  /**
   * @param {Map<string, Json>} found
   * @param {string} at
   * @returns {Expression}
   */
  #string(found, at) {
    const [least, most] = bounds(found, "minLength", "maxLength", at);
    const isOpen = !least && most === Infinity;
    if (!found.has("pattern")) return isOpen ? named(" string") : following(text('"'), repeated(named(" character"), least, most), text('"'));
    if (!isOpen) throw fault(`${at}: pattern and a length beside each other; give one of them`);
    const { expression, anchored } = regularExpression(found.get("pattern"), PLAIN);
    const [before, after] = anchored.map((is) => (is ? [] : [repeated(named(" character"))]));
    return following(text('"'), ...before, expression, ...after, text('"'));
  }

  /**
   * @param {Map<string, Json>} found
   * @param {string} at
   * @returns {Expression}
   */
  #object(found, at) {
    const [properties, required] = [entry(found, "properties", {}), entry(found, "required", [])];
    if (!isObject(properties) || Object.keys(properties).length > MAX_VALUES)
      throw fault(`${at}/properties: got ${shown(properties)}, expected an object of at most ${MAX_VALUES}`);
    const missing = Array.isArray(required) ? required.find((name) => typeof name !== "string" || !Object.hasOwn(properties, name)) : required;
    if (missing !== undefined) throw fault(`${at}/required: ${shown(missing)} is none of the properties; name these`);
    const names = Object.keys(properties);
    if (!names.length) {
      const others = entry(found, "additionalProperties", true);
      if (others === false) return braced({ any: [] }, "{}", 0, 0);
      return braced(pair(named(" string"), this.#value(others, at)), "{}");
    }
    const pairs = names.map((name) => {
      const rule = `${at}/${name}`;
      this.rules.set(rule, pair(literal(name, at), this.#value(properties[name], rule)));
      return { rule, isNeeded: required.includes(name) };
    });
    return following(text("{"), SPACE, this.#pairs(pairs, at), SPACE, text("}"));
  }

  /**
   * Pairs in order, with commas between them. A rule for each place: what may follow there, first or not.
   * @param {{ rule: string, isNeeded: boolean }[]} pairs
   * @param {string} at
   */
  #pairs(pairs, at) {
    let [rest, begun] = [following(), following()];
    for (let place = pairs.length - 1; place >= 0; place--) {
      const { rule, isNeeded } = pairs[place];
      const first = following(named(rule), rest);
      const further = following(COMMA, named(rule));
      const [restName, begunName] = [` rest ${place} of ${at}`, ` begun ${place} of ${at}`];
      this.rules.set(restName, following(isNeeded ? further : optional(further), rest));
      this.rules.set(begunName, isNeeded ? first : { any: [first, begun] });
      [rest, begun] = [named(restName), named(begunName)];
    }
    return begun;
  }
}

/**
 * The type, of the keywords.
 * @param {Map<string, Json>} found
 * @param {string} at
 */
function told(found, at) {
  const type = TOLD.find((kind) => KEYWORDS.get(kind)?.some((key) => found.has(key)));
  if (type === undefined) throw fault(`${at}: the keyword ${shown([...found.keys()].sort()[0])} is not supported; leave it out, or give a type`);
  return type;
}

/**
 * @param {Expression} name
 * @param {Expression} value
 */
const pair = (name, value) => following(name, SPACE, text(":"), SPACE, value);

/**
 * Parts between braces, with commas between them.
 * @param {Expression} part
 * @param {string} braces
 * @param {number} [least]
 * @param {number} [most]
 */
function braced(part, braces, least = 0, most = Infinity) {
  const several = following(part, repeated(following(COMMA, part), Math.max(least - 1, 0), Math.max(most - 1, 0)));
  const inside = most === 0 ? following() : least ? several : optional(several);
  return following(text(braces[0]), SPACE, inside, SPACE, text(braces[1]));
}

/**
 * A value as Python writes JSON.
 * @param {Json} value
 * @param {string} at
 * @returns {string}
 */
function written(value, at) {
  if (Array.isArray(value)) return `[${value.map((item) => written(item, at)).join(", ")}]`;
  if (isObject(value)) {
    const pairs = Object.entries(value).map(([name, item]) => `${JSON.stringify(name)}: ${written(item, at)}`);
    return `{${pairs.join(", ")}}`;
  }
  if (value !== null && !["string", "boolean"].includes(typeof value) && !Number.isFinite(value)) throw fault(`${at}: got ${shown(value)}, expected a value of JSON`);
  return JSON.stringify(value);
}

/**
 * @param {Json} value
 * @param {string} at
 */
const literal = (value, at) => text(written(value, at));

/**
 * @param {Map<string, Json>} found
 * @param {string} least
 * @param {string} most
 * @param {string} at
 * @returns {[number, number]}
 */
function bounds(found, least, most, at) {
  const [low, high] = [entry(found, least, 0), entry(found, most, Infinity)];
  for (const [name, count] of [
    [least, low],
    [most, high],
  ]) {
    if (found.has(name) && !(Number.isInteger(count) && count >= 0 && count <= MAX_VALUES))
      throw fault(`${at}/${name}: got ${shown(count)}, expected a number from 0 to ${MAX_VALUES}`);
  }
  if (high < low) throw fault(`${at}: ${least} is above ${most}; give less`);
  return [low, high];
}
