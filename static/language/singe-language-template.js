/**
 * The text of a conversation, as a model's own template writes it, in Jinja's language.
 *
 * Contract: `new ChatTemplate(source, bos, eos).render(messages, { tools, addGenerationPrompt, extra })`. A template is a
 * program from a file: it sees values of JSON and the functions of closed tables, ends after a bounded number
 * of steps, and fails with SingeErrors: "format" for the template, "input" for messages that it refuses.
 */

import { SingeError } from "../program/singe-format.js";
import { Interpreter } from "./singe-language-interpreter.js";
import { parseTemplate } from "./singe-language-parser.js";
import { withObjects } from "./singe-language-tools.js";
import { Callable, Space, fromCaller, refuse } from "./singe-language-values.js";

/** @import { Node } from "./singe-language-parser.js" */
/** @import { Named, Value } from "./singe-language-values.js" */

const DAYS = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];
const MONTHS = ["January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December"];
/**
 * @param {number} value
 * @param {number} [width]
 */
const padded = (value, width = 2) => String(value).padStart(width, "0");
/** @type {Record<string, (time: Date) => string>} */
const DIRECTIVES = {
  "%": () => "%",
  A: (time) => DAYS[time.getDay()],
  B: (time) => MONTHS[time.getMonth()],
  H: (time) => padded(time.getHours()),
  I: (time) => padded(time.getHours() % 12 || 12),
  M: (time) => padded(time.getMinutes()),
  S: (time) => padded(time.getSeconds()),
  Y: (time) => padded(time.getFullYear(), 4),
  a: (time) => DAYS[time.getDay()].slice(0, 3),
  b: (time) => MONTHS[time.getMonth()].slice(0, 3),
  d: (time) => padded(time.getDate()),
  j: (time) => padded(Math.round((Date.UTC(time.getFullYear(), time.getMonth(), time.getDate()) - Date.UTC(time.getFullYear(), 0, 1)) / 864e5) + 1, 3),
  m: (time) => padded(time.getMonth() + 1),
  p: (time) => (time.getHours() < 12 ? "AM" : "PM"),
  y: (time) => padded(time.getFullYear() % 100),
};

/** @param {string} pattern */
function now(pattern) {
  const time = new Date();
  const wrong = () => refuse(`asks for the time as ${JSON.stringify(pattern.slice(0, 60))}`);
  if (pattern.length > 100) throw wrong();
  return pattern.replace(/%(-?)(.?)/gsu, (_, short, letter) => {
    if (!Object.hasOwn(DIRECTIVES, letter)) throw wrong();
    const text = DIRECTIVES[letter](time);
    return short ? text.replace(/^0+(?=.)/, "") : text;
  });
}

/** @param {Value[]} plain */
const oneText = (plain) => {
  if (plain.length !== 1 || typeof plain[0] !== "string") throw refuse("calls a function with other arguments than a text");
  return plain[0];
};

/** @type {Record<string, (plain: Value[], named: Named) => Value>} The functions that every template may call. */
const GLOBALS = {
  range(plain, named) {
    const [first, stop, step = 1] = plain.length === 1 ? [0, plain[0]] : plain;
    if (Object.keys(named).length || plain.length < 1 || plain.length > 3 || !plain.every((v) => Number.isInteger(v)) || !step) {
      throw refuse("calls range with other arguments than one to three whole numbers");
    }
    const count = Math.max(0, Math.ceil((stop - first) / step));
    if (count > 100_000) throw refuse(`asks for ${count} numbers, expected at most 100000`);
    return Array.from({ length: count }, (_, at) => first + step * at);
  },
  namespace: (plain, named) => new Space(new Map([...(plain[0] instanceof Map ? plain[0] : []), ...Object.entries(named)])),
  dict: (_, named) => new Map(Object.entries(named)),
  raise_exception(plain) {
    throw new SingeError("input", `the model's template refuses these messages: ${oneText(plain).slice(0, 1000)}`);
  },
  strftime_now: (plain) => now(oneText(plain)),
};

/**
 * What a function gives; that it went too deep is said as an error of the template.
 * @template T
 * @param {() => T} act
 */
function guarded(act) {
  try {
    return act();
  } catch (error) {
    if (error instanceof RangeError) throw refuse("is nested too deeply");
    throw error;
  }
}

export class ChatTemplate {
  /**
   * @param {string} source
   * @param {string} [bosToken]
   * @param {string} [eosToken]
   */
  constructor(source, bosToken = "", eosToken = "") {
    this.bosToken = bosToken;
    this.eosToken = eosToken;
    this.nodes = guarded(() => parseTemplate(source));
  }

  /**
   * The text of messages (`{ role, content }`), with the beginning of an answer (`addGenerationPrompt`). `extra` are names that the
   * template knows, such as `enable_thinking`.
   * @param {unknown[]} messages
   * @param {{ tools?: unknown[] | null, addGenerationPrompt?: boolean, extra?: Record<string, unknown> }} [options]
   */
  render(messages, { tools = null, addGenerationPrompt = true, extra = {} } = {}) {
    const values = {
      bos_token: this.bosToken,
      eos_token: this.eosToken,
      documents: null,
      ...extra,
      messages: withObjects(messages),
      tools,
      add_generation_prompt: addGenerationPrompt,
    };
    const names = new Map(Object.entries(GLOBALS).map(([name, call]) => [name, /** @type {Value} */ (new Callable(call))]));
    for (const [name, value] of Object.entries(values)) names.set(name, fromCaller(value, name));
    return guarded(() => new Interpreter(names).run(this.nodes));
  }
}
