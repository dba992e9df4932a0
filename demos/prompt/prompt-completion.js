/**
 * Completion in the prompt's entry: Tab after a name asks for the names that it may become, and shows them in a list.
 *
 * Contract: while the list is open, the arrows choose, Enter and Tab take what is chosen, Escape closes it, and typing
 * narrows it. The focus stays in the entry, and a screen reader hears the choice (aria-activedescendant); the list may have
 * the focus, too, and then has the same keys. Tab indents at the beginning of a block's line; elsewhere, and after Escape, it
 * leaves the entry as it does everywhere.
 */

import { after, before, insert } from "./prompt-entry.js";

const INDENT = "    ";
const NAME = /[\w.]$/;
const [entry, list, told, button] = ["input", "names", "names-told", "complete"].map((id) => document.getElementById(`python-${id}`));
let names = [];
let stem = "";
let chosen = 0;
let leaving = false;
let ask;

/** `request(source)` asks for completions, which `showCompletions` receives; it is false if nobody can be asked now. */
export function completeBy(request) {
  ask = request;
}

export function showCompletions({ source, stem: begun, names: found }) {
  if (source !== before() || document.activeElement !== entry) return; // what was typed since then is another question
  const common = found.reduce(shared, found[0] ?? begun);
  if (common.length > begun.length) insert(common.slice(begun.length));
  if (found.length < 2) {
    close();
    told.textContent = found.length ? common : `No name begins with ${begun || "nothing"} here.`;
    return;
  }
  [names, stem] = [found, common];
  open();
  told.textContent = `${names.length} names. The arrows choose, Enter takes one.`;
}

function shared(one, other) {
  let length = 0;
  while (length < one.length && one[length] === other[length]) length += 1;
  return one.slice(0, length);
}

function open() {
  list.replaceChildren(...names.map(option));
  list.hidden = false;
  list.scrollTop = 0;
  choose(0);
  list.scrollIntoView({ block: "nearest" });
}

function option(name, k) {
  const item = Object.assign(document.createElement("li"), { id: `python-name-${k}`, textContent: name });
  item.setAttribute("role", "option");
  item.addEventListener("pointerdown", (event) => event.preventDefault()); // the focus stays in the entry
  item.addEventListener("click", () => take(k));
  return item;
}

function choose(k) {
  list.children[chosen]?.removeAttribute("aria-selected");
  chosen = (k + names.length) % names.length;
  list.children[chosen].setAttribute("aria-selected", "true");
  list.children[chosen].scrollIntoView({ block: "nearest" });
  for (const place of [entry, list]) place.setAttribute("aria-activedescendant", `python-name-${chosen}`);
}

function take(k) {
  entry.focus();
  insert(names[k], stem.length);
  told.textContent = names[k];
  close();
}

function close() {
  list.hidden = true;
  list.replaceChildren();
  for (const place of [entry, list]) place.removeAttribute("aria-activedescendant");
  names = [];
}

/** Keep the names that begin with what is typed now. */
function narrow() {
  const typed = /\w*$/.exec(before())[0];
  const kept = typed.startsWith(stem) ? names.filter((name) => name.startsWith(typed)) : [];
  if (!kept.length) return close();
  [names, stem] = [kept, typed];
  open();
}

const LIST = {
  ArrowDown: () => choose(chosen + 1),
  ArrowUp: () => choose(chosen - 1),
  Enter: () => take(chosen),
  Tab: () => take(chosen),
  Escape() {
    entry.focus();
    close();
  },
};

/** What Tab does here; undefined if it leaves the entry. */
function tab() {
  if (NAME.test(before()) && !/^\w/.test(after())) return () => ask(before());
  return /\n[ ]*$/.test(before()) ? () => insert(INDENT) : undefined;
}

function press(event) {
  if (event.isComposing || event.ctrlKey || event.altKey || event.metaKey || event.shiftKey) return;
  const act = names.length ? LIST[event.key] : event.key === "Tab" && !leaving ? tab() : undefined;
  leaving = event.key === "Escape" && !names.length;
  if (!act || act() === false) return;
  event.preventDefault();
  event.stopImmediatePropagation();
}

for (const place of [entry, list]) {
  place.addEventListener("keydown", press);
  place.addEventListener("blur", ({ relatedTarget }) => [entry, list].includes(relatedTarget) || close());
}
entry.addEventListener("input", () => names.length && narrow());
button.addEventListener("pointerdown", (event) => event.preventDefault());
button.addEventListener("click", () => {
  entry.focus();
  ask(before());
});
