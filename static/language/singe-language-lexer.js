/**
 * The source of a template as text, statements and expressions, these as tokens.
 *
 * Contract: `partsOf(source)` gives the parts in order, of a source whose lines end in \n. White space is as transformers has it:
 * `trim_blocks`, `lstrip_blocks`, and the marks - and +.
 */

import { SingeError } from "../program/singe-format.js";

/** @typedef {{ kind: string, value: string, line: number }} Token */
/** @typedef {{ kind: string, text: string, tokens: Token[], line: number }} Part */

export const MAX_SOURCE = 1 << 20;
const OPEN = /\{(?:%|\{|#)/g;
const RAW = /\{%[-+]?\s*raw\s*(?:-%\}\s*|%\})/y;
const END_RAW = /\{%([-+]?)\s*endraw\s*(?:(-%\})\s*|\+%\}|%\}\n?)/g;
const TOKEN =
  /\s+|(?<float>\d+(?:_\d+)*(?:\.\d+(?:_\d+)*(?:[eE][+-]?\d+)?|[eE][+-]?\d+))|(?<integer>\d+(?:_\d+)*)|(?<name>[\p{L}_][\p{L}\p{N}_]*)|(?<text>'[^'\\]*(?:\\.[^'\\]*)*'|"[^"\\]*(?:\\.[^"\\]*)*")|(?<operator>\*\*|\/\/|==|!=|<=|>=|[-+*/%~<>=()[\]{}.,:|])/suy;
/** @type {Record<string, RegExp>} */
const CLOSE = { "%": /([-+]?)%\}/y, "{": /([-+]?)\}\}/y };
/** @type {Record<string, string>} */
const ESCAPES = { "\n": "", n: "\n", t: "\t", r: "\r", "\\": "\\", "'": "'", '"': '"', a: "\x07", b: "\b", f: "\f", v: "\v" };
/** @type {Record<string, string>} */
const BRACKETS = { "(": ")", "[": "]", "{": "}" };

/**
 * @param {number} line
 * @param {string} text
 */
export const fault = (line, text) => new SingeError("format", `template, line ${line}: ${text}`);
/** @param {string} text */
const lines = (text) => text.split("\n").length - 1;

/**
 * @param {RegExp} pattern
 * @param {string} text
 * @param {number} at
 */
function matchAt(pattern, text, at) {
  pattern.lastIndex = at;
  return pattern.exec(text);
}

/**
 * @param {string} text
 * @param {number} line
 */
const unescaped = (text, line) =>
  text.slice(1, -1).replace(/\\(\n|x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|[0-7]{1,3}|.)/gsu, (whole, code) => {
    if (Object.hasOwn(ESCAPES, code)) return ESCAPES[code];
    if (code[0] >= "0" && code[0] <= "7") return String.fromCharCode(Number.parseInt(code, 8));
    if (code.length === 1) return whole;
    const number = Number.parseInt(code.slice(1), 16);
    if (number > 0x10ffff) throw fault(line, `${whole} is no character`);
    return String.fromCodePoint(number);
  });

/**
 * @param {string} text
 * @param {boolean} atLineStart
 */
function withoutIndent(text, atLineStart) {
  const start = text.lastIndexOf("\n") + 1;
  return (start || atLineStart) && !text.slice(start).trim() ? text.slice(0, start) : text;
}

/**
 * @param {string} source
 * @returns {Part[]}
 */
export function partsOf(source) {
  /** @type {Part[]} */
  const parts = [];
  /** @param {string} text */
  const put = (text, from = 0) => text && parts.push({ kind: "text", text, tokens: [], line: from });
  let [at, line, stripNext, atLineStart] = [0, 1, false, true];
  while (true) {
    const opening = matchAt(OPEN, source, at);
    let text = source.slice(at, opening ? opening.index : source.length);
    const before = line;
    line += lines(text);
    if (stripNext) text = text.trimStart();
    if (!opening) {
      put(text, before);
      return parts;
    }
    const kind = source[opening.index + 1];
    const start = opening.index + 2;
    let mark = source[start] ?? "";
    if (mark === "-") text = text.trimEnd();
    else if (kind !== "{" && mark !== "+") text = withoutIndent(text, atLineStart);
    put(text, before);
    const raw = matchAt(RAW, source, opening.index);
    if (raw) {
      const from = opening.index + raw[0].length;
      const ending = matchAt(END_RAW, source, from);
      if (!ending) throw fault(line, "raw is not ended by endraw");
      const inner = source.slice(from, ending.index);
      put(ending[1] === "-" ? inner.trimEnd() : ending[1] ? inner : withoutIndent(inner, false), line);
      at = ending.index + ending[0].length;
      stripNext = ending[2] !== undefined;
    } else if (kind === "#") {
      const close = source.indexOf("#}", start);
      if (close < 0) throw fault(line, "a comment is not ended by #}");
      mark = close > start ? source[close - 1] : "";
      stripNext = mark === "-";
      at = close + 2;
      if (mark !== "-" && mark !== "+" && source[at] === "\n") at++;
    } else {
      const found = tokensOf(source, start + Number(mark === "-" || mark === "+"), line, CLOSE[kind]);
      parts.push({ kind: kind === "%" ? "statement" : "expression", text: "", tokens: found.tokens, line });
      at = found.end;
      stripNext = found.mark === "-";
      if (kind === "%" && !found.mark && source[at] === "\n") at++;
    }
    line += lines(source.slice(opening.index, at));
    atLineStart = source[at - 1] === "\n";
  }
}

/**
 * @param {string} source
 * @param {number} at
 * @param {number} line
 * @param {RegExp} closing
 */
function tokensOf(source, at, line, closing) {
  /** @type {Token[]} */
  const tokens = [];
  /** @type {string[]} */
  const open = [];
  while (true) {
    if (!open.length) {
      const close = matchAt(closing, source, at);
      if (close) return { tokens, end: at + close[0].length, mark: close[1] };
    }
    const match = matchAt(TOKEN, source, at);
    if (!match) {
      const found = at < source.length ? JSON.stringify(source.slice(at, at + 10)) : "the end of the template";
      throw fault(line, `${found} in an expression, expected a name, a value or an operator`);
    }
    const text = match[0];
    const kind = Object.entries(match.groups ?? {}).find(([, value]) => value !== undefined)?.[0];
    if (kind) tokens.push({ kind, value: kind === "text" ? unescaped(text, line) : text, line });
    if (kind === "operator") {
      if (Object.hasOwn(BRACKETS, text)) open.push(BRACKETS[text]);
      else if (")]}".includes(text) && open.pop() !== text) throw fault(line, `${text} closes nothing`);
    }
    line += lines(text);
    at += text.length;
  }
}
