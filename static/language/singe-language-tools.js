/**
 * Calls of tools: what a model's text must look like to be one, and what it says, in OpenAI's shape.
 *
 * Contract: `callReader(template, tools)` reads a text that comes in parts: `feed(text)` gives what is certain to be no call,
 * `finish()` what is left at the end, or the calls that it was. A format is a row, chosen by the text of the model's chat template;
 * every model may also write a call as plain JSON, as do those whose mark is a special token, which is no text. What does not parse, or
 * calls no tool that the model was told of, stays text. As core/singe/language/templating/tool_calls.py.
 */

/** @import { ToolCall } from "../types/public.d.ts" */
/** @typedef {any} Json */

import { SingeError } from "../program/singe-format.js";

/** How models call the object with a call's arguments. */
const ARGUMENTS = ["arguments", "parameters"];
/** What may stand between calls. */
const SEPARATORS = " \t\r\n,;";
/** What is in a template that writes calls so, which is also the mark before JSON, one call or a list; and the mark after it. The last is every model's. */
const FORMATS = [
  ["<tool_call>", "</tool_call>"],
  ["[TOOL_CALLS]", ""],
  ["<|python_tag|>", ""],
  ["", ""],
];

/**
 * @param {string} template
 * @param {readonly object[]} tools
 */
export function callReader(template, tools) {
  const names = toolNames(tools);
  const [mark, end] = /** @type {string[]} */ (FORMATS.find(([told]) => template.includes(told)));
  let waiting = "";
  let isCall = false;
  let hasBegun = false;
  return {
    /** @param {string} text */
    feed(text) {
      waiting += text;
      const begin = waiting.trimStart();
      if (!hasBegun && begin) [hasBegun, isCall] = [true, "{[".includes(begin[0])];
      if (isCall || !hasBegun) return "";
      let at = mark ? waiting.indexOf(mark) : -1;
      isCall = at >= 0;
      if (!isCall) {
        let partial = Math.min(Math.max(mark.length - 1, 0), waiting.length);
        while (partial && !waiting.endsWith(mark.slice(0, partial))) partial--;
        at = waiting.length - partial;
      }
      const certain = waiting.slice(0, at);
      waiting = waiting.slice(at);
      return certain;
    },
    finish() {
      const calls = isCall ? callsOf(waiting.trim(), mark, end, names) : [];
      return { rest: calls.length ? "" : waiting, calls };
    },
  };
}

/**
 * The calls of which a text consists; none if it has anything else.
 * @param {string} text
 * @param {string} mark
 * @param {string} end
 * @param {ReadonlySet<string>} names
 */
function callsOf(text, mark, end, names) {
  /** @type {ToolCall[]} */
  const found = [];
  for (let at = 0; at < text.length; ) {
    if (mark && text.startsWith(mark, at)) at += mark.length;
    at = past(text, at);
    const close = endOfValue(text, at);
    /** @type {Json} */
    let value;
    try {
      value = JSON.parse(text.slice(at, close), finite);
    } catch {
      return [];
    }
    const calls = (Array.isArray(value) ? value : [value]).map((item) => callOf(item, names));
    if (!calls.length || calls.includes(undefined)) return [];
    found.push(.../** @type {ToolCall[]} */ (calls));
    at = past(text, close);
    if (end && text.startsWith(end, at)) at = past(text, at + end.length);
  }
  return found;
}

/**
 * JavaScript has no numbers beyond these, and would write null.
 * @param {string} _
 * @param {Json} value
 */
function finite(_, value) {
  if (typeof value === "number" && !Number.isFinite(value)) throw new SyntaxError("a number is too large");
  return value;
}

/**
 * @param {Json} value
 * @param {ReadonlySet<string>} names
 * @returns {ToolCall | undefined}
 */
function callOf(value, names) {
  const name = isObject(value) ? value.name : undefined;
  const key = ARGUMENTS.find((one) => isObject(value?.[one]));
  if (!names.has(name) || !key) return undefined;
  // Nine letters and digits, which templates of Mistral ask for.
  const id = Array.from(crypto.getRandomValues(new Uint8Array(5)), (byte) => byte.toString(16).padStart(2, "0")).join("");
  return { id: id.slice(0, 9), type: "function", function: { name, arguments: JSON.stringify(value[key]) } };
}

/**
 * Where the object or list ends that begins here; the text's end if it does not.
 * @param {string} text
 * @param {number} start
 */
function endOfValue(text, start) {
  let depth = 0;
  let isText = false;
  for (let at = start; at < text.length; at++) {
    const sign = text[at];
    if (isText) {
      if (sign === "\\") at++;
      else isText = sign !== '"';
    } else if (sign === '"') isText = true;
    else if (sign === "{" || sign === "[") depth++;
    else if ((sign === "}" || sign === "]") && !--depth) return at + 1;
  }
  return text.length;
}

/**
 * The place of the first character from here on that separates nothing.
 * @param {string} text
 * @param {number} at
 */
function past(text, at) {
  while (at < text.length && SEPARATORS.includes(text[at])) at++;
  return at;
}

/** @param {Json} value */
const isObject = (value) => typeof value === "object" && value !== null && !Array.isArray(value);

/**
 * The names of functions that are described in OpenAI's shape, with or without what is around a function.
 * @param {readonly object[]} tools
 */
function toolNames(tools) {
  const names = Array.isArray(tools) ? tools.map((tool) => (tool?.function ?? tool)?.name) : [undefined];
  const wrong = names.findIndex((name) => typeof name !== "string" || !name);
  if (wrong < 0) return new Set(names);
  const shape = '[{ type: "function", function: { name, description, parameters } }]';
  throw new SingeError("input", `tools: got ${String(JSON.stringify(Array.isArray(tools) ? tools[wrong] : tools)).slice(0, 80)}, expected a list of functions: ${shape}`);
}

/**
 * Messages whose calls have their arguments as objects, which templates write as JSON; clients send them as JSON texts.
 * @param {readonly Json[]} messages
 */
export const withObjects = (messages) => messages.map((message) => (Array.isArray(message?.tool_calls) ? { ...message, tool_calls: message.tool_calls.map(withObject) } : message));

/** @param {Json} call */
function withObject(call) {
  const text = call?.function?.arguments;
  if (typeof text !== "string") return call;
  try {
    return { ...call, function: { ...call.function, arguments: JSON.parse(text) } };
  } catch {
    return call;
  }
}
