/**
 * The log of the prompt: what was typed, what Python said.
 *
 * Contract: its length is limited: the oldest goes. Long output is folded when its source has ended: its beginning and its
 * end stay, the lines between them are in a <details> that says how many they are.
 */

import { drawings } from "./prompt-drawings.js";

const log = document.getElementById("python-log");
/** The most characters in the log, and in one of its elements. */
const LIMIT = 100_000;
const PIECE = 4000;
/** Output of more rows than MOST is folded, all but the first and the last; a row has at most WIDTH characters. */
const MOST = 40;
const FIRST = 20;
const LAST = 10;
const WIDTH = 200;
const ROW = new RegExp(`[^\\n]{1,${WIDTH}}\\n?|\\n`, "g");

let kept = 0;

function block(text, kind = "") {
  return Object.assign(document.createElement("pre"), { className: kind, textContent: text });
}

function showEnd() {
  log.scrollTop = log.scrollHeight;
}

/** Add a text; `kind` is "" for output, or "asked", "failed", "said". */
export function write(text, kind = "") {
  const last = log.lastElementChild;
  if (kind === "" && last?.className === "" && last.textContent.length < PIECE) last.append(text);
  else log.append(block(text, kind));
  kept += text.length;
  while (kept > LIMIT && log.children.length > 1) {
    kept -= log.firstChild.textContent.length;
    log.firstChild.remove();
  }
  showEnd();
}

/** Fold the output at the log's end if it is long. */
export function fold() {
  const parts = [];
  for (let part = log.lastElementChild; part?.className === ""; part = part.previousElementSibling) parts.unshift(part);
  const rows = parts.map((part) => part.textContent).join("").match(ROW) ?? [];
  if (rows.length <= MOST) return;
  const middle = document.createElement("details");
  middle.className = "fold";
  const count = rows.length - FIRST - LAST;
  middle.append(Object.assign(document.createElement("summary"), { textContent: `${count} more lines` }), block(rows.slice(FIRST, -LAST).join("")));
  parts[0].textContent = rows.slice(0, FIRST).join("");
  parts[0].after(middle, block(rows.slice(-LAST).join("")));
  for (const part of parts.slice(1)) part.remove();
  showEnd();
}

/** Add the drawings of a value that describes itself by HTML. */
export function draw(html) {
  for (const drawing of drawings(html)) {
    const place = Object.assign(document.createElement("div"), { className: "drawing" });
    place.append(drawing);
    log.append(place);
  }
  showEnd();
}

log.addEventListener("load", showEnd, { capture: true }); // a picture has its height once it is decoded
