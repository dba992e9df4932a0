/**
 * The entry of the prompt: a text that grows with its lines, blocks that go on, and the history of what was run.
 *
 * Contract: the browser keeps the history; it is an array of texts, the newest last.
 */

const entry = document.getElementById("python-input");
const HISTORY = "singe: the prompt's history";
const REMEMBERED = 200;
const LINES = 12;
const SIGN = /^\s*(?:>>>|\.\.\.)(?: |$)(.*)/;
const history = remembered();
let place = history.length;
let draft = "";

export const before = () => entry.value.slice(0, entry.selectionStart);
export const after = () => entry.value.slice(entry.selectionEnd);

export function fit() {
  entry.rows = Math.min(LINES, entry.value.split("\n").length);
}

export function setEntry(text) {
  entry.value = text;
  fit();
  entry.setSelectionRange(text.length, text.length);
}

/** Put a text in place of the last `count` characters before the caret. */
export function insert(text, count = 0) {
  entry.setRangeText(text, entry.selectionStart - count, entry.selectionEnd, "end");
  fit();
}

/** Insert a new line at the caret, indented like the one before, and further after a colon. */
export function insertLine() {
  const line = before().slice(before().lastIndexOf("\n") + 1);
  insert(`\n${/^\s*/.exec(line)[0]}${/:\s*$/.test(line) ? "    " : ""}`);
}

/** Whether Enter continues a block: the caret is inside it, or after an indented line that is not blank. */
export function inBlock() {
  const last = entry.value.slice(entry.value.lastIndexOf("\n") + 1);
  return after().trim() !== "" || (entry.value.includes("\n") && /^\s+\S/.test(last));
}

/** The source in a session that was copied from a page or a terminal, with >>> before its lines; undefined if it is none. */
export function sourceOf(session) {
  if (!/^\s*>>> /.test(session)) return undefined;
  return session.split(/\r?\n/).map((line) => SIGN.exec(line)?.[1]).filter((line) => line !== undefined).join("\n");
}

/** The sources that were run, here and in earlier visits. */
function remembered() {
  try {
    return JSON.parse(localStorage.getItem(HISTORY) ?? "[]").filter((text) => typeof text === "string");
  } catch {
    return []; // storage is refused, or another version wrote it
  }
}

export function remember(source) {
  if (history.at(-1) !== source) history.push(source);
  history.splice(0, history.length - REMEMBERED);
  place = history.length;
  try {
    localStorage.setItem(HISTORY, JSON.stringify(history));
  } catch {
    // it lasts as long as the page
  }
}

/** Show the history's text `step` places further; false if there is none, or the caret has lines to go to. */
export function recall(step) {
  const found = place + step;
  if ((step < 0 ? before() : after()).includes("\n") || found < 0 || found > history.length) return false;
  if (place === history.length) draft = entry.value;
  place = found;
  setEntry(history[place] ?? draft);
  return true;
}

entry.addEventListener("input", fit);
