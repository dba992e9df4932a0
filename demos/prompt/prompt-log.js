/**
 * The log of the prompt: what was typed, what Python said.
 *
 * Contract: its length is limited: the oldest goes. Long output is folded when its source has ended: its beginning and its
 * end stay, the lines between them are in a <details> that says how many they are.
 */

import { drawings } from "./prompt-drawings.js";

const log = document.getElementById("python-log");
/** The most that the log holds, in characters, and the most in one of its elements of output. */
const LIMIT = 100_000;
const PIECE = 4000;
/** A drawing counts as this many characters, and one for each SMALLER of its HTML. */
const DRAWING = 1000;
const SMALLER = 100;
/** Output of more rows than MOST is folded, all but the first and the last; a row has at most WIDTH characters. */
const MOST = 40;
const FIRST = 20;
const LAST = 10;
const WIDTH = 200;
const ROW = new RegExp(`[^\\n]{1,${WIDTH}}\\n?|\\n`, "g");

/** The elements of the log ↦ what they count. */
const counts = new WeakMap();
let kept = 0;

function block(text, kind = "") {
  return Object.assign(document.createElement("pre"), { className: kind, textContent: text });
}

function showEnd() {
  log.scrollTop = log.scrollHeight;
}

function count(element, characters) {
  kept += characters - (counts.get(element) ?? 0);
  counts.set(element, characters);
}

function remove(element) {
  count(element, 0);
  element.remove();
}

/** Remove the oldest while there is too much. */
function limit() {
  while (kept > LIMIT && log.children.length > 1) remove(log.firstElementChild);
  showEnd();
}

/** Add a text; `kind` is "" for output, or "asked", "failed", "said". */
export function write(text, kind = "") {
  const last = log.lastElementChild;
  if (kind === "" && last?.className === "" && last.textContent.length < PIECE) last.append(text);
  else log.append(block(text, kind));
  count(log.lastElementChild, log.lastElementChild.textContent.length);
  limit();
}

/** Fold the output at the log's end if it is long. */
export function fold() {
  const parts = [];
  for (let part = log.lastElementChild; part?.className === ""; part = part.previousElementSibling) parts.unshift(part);
  const rows = parts.map((part) => part.textContent).join("").match(ROW) ?? [];
  if (rows.length <= MOST) return;
  const middle = document.createElement("details");
  middle.className = "fold";
  middle.append(Object.assign(document.createElement("summary"), { textContent: `${rows.length - FIRST - LAST} more lines` }), block(rows.slice(FIRST, -LAST).join("")));
  parts[0].textContent = rows.slice(0, FIRST).join("");
  parts.slice(1).forEach(remove);
  log.append(middle, block(rows.slice(-LAST).join("")));
  for (const part of [parts[0], middle, log.lastElementChild]) count(part, part.textContent.length);
  limit();
}

/** Add the drawings of a value that describes itself by HTML. */
export function draw(html) {
  const found = drawings(html);
  log.append(...found);
  for (const drawing of found) count(drawing, DRAWING + drawing.innerHTML.length / SMALLER);
  limit();
}

log.addEventListener("load", showEnd, { capture: true }); // a picture has its height once it is decoded
