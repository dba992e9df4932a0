/** The page that goes on writing: when the text rests, a language model gives the next words, which a key takes. */

import { load } from "../chat/model/singe.js";
import { NAMES, say, showProgress } from "../shared/panel.js";

const PAUSE = 250;
const REACH = 2000;
const FOLDER = "../chat/model/";
const IDS = ["text", "written", "ahead", "told", "take", "other", "backend", "most", "progress"];
const { text, written, ahead, told, take, other, backend, most, progress } = Object.fromEntries(IDS.map((id) => [id, document.getElementById(id)]));

let model;
let turn = 0;
let timer;
let stopping;

/** Show words behind the text; none: let them go. */
function offer(words) {
  written.textContent = text.value;
  ahead.textContent = words;
  // A last line that is empty has no height of its own.
  if (!words && text.value.endsWith("\n")) ahead.textContent = "\u200b";
  take.disabled = other.disabled = !words;
}

/** The end of the text that the model reads: its beginning moves in steps, so that what was read stays read. */
const read = (whole) => whole.slice(Math.max(0, Math.ceil(whole.length / (REACH / 2)) - 2) * (REACH / 2));

/** The model stops, and goes on when the text has rested. */
function rest() {
  clearTimeout(timer);
  stopping?.abort();
  offer("");
  if (model && text.value.trim() && text.selectionEnd === text.value.length) timer = setTimeout(goOn, PAUSE);
}

async function goOn(temperature = 0) {
  stopping?.abort();
  const { signal } = (stopping = new AbortController());
  const used = model;
  say("running", "Reading …");
  try {
    const maxTokens = Math.max(1, Math.min(64, most.valueAsNumber || 1));
    const answer = used.generate(read(text.value), { maxTokens, temperature, repeatPenalty: 1.1, signal });
    let words = "";
    for await (const part of answer) {
      if (signal.aborted) return;
      words += part;
      // The words of one line: the first may be preceded by an end of line.
      offer(words.trimStart() ? words.replace(/(\S[^\n]*)\n[^]*$/, "$1") : words);
      if (/\S[^\n]*\n/.test(words)) break;
    }
    if (signal.aborted) return;
    told.textContent = ahead.textContent;
    ready(`${answer.tokensPerSecond.toFixed(1)} tokens a second, ${answer.usage.reusedTokens} of ${answer.usage.promptTokens} were read before.`);
  } catch (error) {
    if (!signal.aborted && used === model) say("error", `${error.message}.`);
  }
}

function taken() {
  if (take.disabled) return;
  text.setRangeText(ahead.textContent, text.value.length, text.value.length, "end");
  text.focus();
  rest();
}

async function open(device) {
  const own = ++turn;
  const before = model;
  model = undefined;
  rest();
  say("loading", "Loading …");
  try {
    await before?.dispose();
    const found = await load(FOLDER, { device, onProgress: (news) => own === turn && showProgress(news) });
    if (own !== turn) return found.dispose();
    model = found;
    ready();
    rest();
  } catch (error) {
    if (own === turn) say("error", `${error.message}.`);
  } finally {
    if (own === turn) progress.hidden = true;
  }
}

const ready = (text = "") => say("ready", `${model.name.replace(/\.gguf$/, "")} on ${NAMES[model.device] ?? model.device}. ${text}`);

text.addEventListener("input", rest);
text.addEventListener("keydown", (event) => {
  if (event.key === "Tab" && !event.shiftKey && !take.disabled) {
    event.preventDefault();
    taken();
  } else if (event.key === "Escape") {
    clearTimeout(timer);
    stopping?.abort();
    offer("");
  }
});
take.addEventListener("click", taken);
other.addEventListener("click", () => {
  offer("");
  goOn(1);
});
most.addEventListener("change", rest);
backend.addEventListener("change", () => open(backend.value));

offer("");
const manifest = await fetch(`${FOLDER}model.json`)
  .then((response) => response.json())
  .catch(() => undefined);
const known = Object.keys(manifest?.targets ?? {});
for (const name of known.length === 1 ? known : ["auto", ...known]) backend.add(new Option(NAMES[name] ?? name, name));
text.setSelectionRange(text.value.length, text.value.length);
open(backend.value);
