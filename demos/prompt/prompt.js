/**
 * The Python prompt of the front page: a log, an entry, and prompt-worker.js, where Python runs.
 *
 * Contract: it runs one statement or block at a time. Run becomes Stop while Python runs: that, and Ctrl+C, raise
 * KeyboardInterrupt, in computations only where the page shares memory. While input() waits, Run is Answer, and Stop is beside
 * it. "Restart" ends the worker, whatever it does, and starts a new one without the old definitions.
 */

import { completeBy, showCompletions } from "./prompt-completion.js";
import { inBlock, insert, insertLine, recall, remember, setEntry, sourceOf } from "./prompt-entry.js";
import { lineFor, onFiles } from "./prompt-files.js";
import { draw, fold, write } from "./prompt-log.js";
import { clearInterrupt, createShared, giveAnswer, interrupt } from "./prompt-shared.js";

const PHASES = { runtime: "CPython", numpy: "NumPy", singe: "Singe" };
const EXAMPLES = {
  Tensors: 'x = sg.tensor([[1.0, 2.0], [3.0, 4.0]], device="numpy")\n(x @ x).exp().numpy()',
  "A model on WebAssembly":
    'model = await sg.load_async("python/mnist.singe", device="wasm")\nprint(model)\nx = np.random.rand(1, 1, 28, 28).astype("float32")\nawait model.run_async(x)',
  "A picture": "y, x = np.mgrid[-1:1:128j, -1:1:128j]\nsg.tensor(np.sin(40 * x * y))",
  "Which devices": "sg.devices()",
};

const byId = (id) => document.getElementById(id);
const [start, restart, bar, input, run, stop] = ["start", "stop", "progress", "input", "run", "interrupt"].map((id) => byId(`python-${id}`));
/** Milliseconds after which Run becomes Stop, and after which a stop that had no effect is explained. */
const SOON = 300;
const PATIENCE = 3000;
const shared = createShared();
let asked = "";
let draft = "";
let worker;
/** A name of MODES. */
let mode = "none";
let timer;

export function startPython() {
  if (worker) return;
  start.hidden = true;
  restart.hidden = false;
  say("loading", "Starting Python …");
  enter("none");
  worker = new Worker(new URL("./prompt-worker.js", import.meta.url), { type: "module", name: "python" });
  worker.onmessage = ({ data }) => HEAR[data.what](data);
  worker.onerror = (event) => HEAR.failed({ message: event.message || "the worker with Python could not be started" });
}

/** Handles the worker's messages. */
const HEAR = {
  progress({ loaded, total, phase }) {
    bar.hidden = false;
    if (total) bar.value = loaded / total;
    else bar.removeAttribute("value");
    const share = total ? `: ${(loaded / 1e6).toFixed(1)} of ${(total / 1e6).toFixed(1)} MB` : "";
    say("loading", `Starting Python, ${PHASES[phase] ?? phase}${share}`);
  },
  started({ version }) {
    bar.hidden = true;
    for (const id of ["terminal", "python-help", "python-add"]) byId(id).hidden = false;
    write(`${version}\n`, "said");
    if (shared) worker.postMessage({ shared });
    rest();
    input.focus();
  },
  failed({ message, unsupported }) {
    end();
    start.hidden = false;
    restart.hidden = true;
    say(unsupported ? "unsupported" : "error", message);
  },
  accepted() {
    write(`${asked.replaceAll(/^/gm, "... ").replace("...", ">>>")}\n`, "asked");
    remember(asked);
    if (input.value.startsWith(asked)) setEntry(input.value.slice(asked.length).trimStart()); // what was typed since then stays
  },
  output: ({ text }) => write(text),
  incomplete() {
    rest();
    insertLine();
  },
  asks() {
    clearTimeout(timer);
    draft = input.value;
    setEntry("");
    enter("answer");
    say("running", "Python waits for your answer.");
  },
  answer({ text, failed, html }) {
    if (text && !failed) write(`${text}\n`);
    fold();
    if (failed) write(`${text}\n`, "failed");
    if (html) draw(html);
    rest();
  },
  kept({ name, bytes }) {
    const line = lineFor(name);
    write(`${name} (${size(bytes)}) is in Python's folder. To try it:\n    ${line}\n`, "said");
    if (mode !== "answer" && !input.value) setEntry(line);
    input.focus();
  },
  refused({ name, message }) {
    write(`${name} could not be read: ${message}\n`, "failed");
  },
  completions: showCompletions,
};

function size(bytes) {
  if (bytes < 1e3) return `${bytes} bytes`;
  return bytes < 1e6 ? `${(bytes / 1e3).toFixed(1)} kB` : `${(bytes / 1e6).toFixed(1)} MB`;
}

function say(state, text) {
  const status = byId("python-status");
  status.dataset.state = state;
  if (status.textContent !== text) status.textContent = text;
}

/**
 * The prompt while there is no Python, or not yet; while it waits for a source; while it runs one, and after a moment of
 * that; while input() waits. What Run says and whether it works, whether Python is busy, and what the entry is called.
 */
const MODES = {
  none: { label: "Run", works: false, busy: false, entry: "Python to run", sign: ">>>" },
  run: { label: "Run", works: true, busy: false, entry: "Python to run", sign: ">>>" },
  wait: { label: "Run", works: false, busy: true, entry: "Python to run", sign: ">>>" },
  stop: { label: "Stop", works: true, busy: true, entry: "Python to run", sign: ">>>" },
  answer: { label: "Answer", works: true, busy: true, entry: "Your answer", sign: "?" },
};

function enter(next) {
  if (mode === "answer") setEntry(draft);
  mode = next;
  const { label, works, entry, sign } = MODES[mode];
  run.textContent = label;
  run.disabled = !works;
  stop.hidden = mode !== "answer";
  byId("python-complete").hidden = mode !== "run";
  byId("python-entry").textContent = entry;
  byId("python-sign").textContent = sign;
}

function rest() {
  clearTimeout(timer);
  enter("run");
  if (shared) clearInterrupt(shared);
  say("ready", "Python is ready.");
}

/** Python runs; after a moment it can be stopped. */
function wait() {
  enter("wait");
  say("running", "Python is running …");
  timer = setTimeout(enter, SOON, "stop");
}

function end() {
  if (worker) worker.onmessage = worker.onerror = null; // its last messages may still arrive
  worker?.terminate();
  worker = undefined;
  clearTimeout(timer);
  enter("none");
  bar.hidden = byId("python-add").hidden = true;
}

/** Run the entry's text; the worker answers, or says that the statement is not finished. */
function submit() {
  const source = input.value.trimEnd();
  if (!source.trim()) return;
  asked = source;
  wait();
  worker.postMessage({ source });
}

function answer() {
  const text = input.value;
  try {
    giveAnswer(shared, text);
  } catch (error) {
    return say("running", error.message);
  }
  write(`${text}\n`);
  return wait();
}

function interruptPython() {
  interruptOnce();
  say("running", "Stopping …");
  const why = shared ? "It may be in one long call" : "This page shares no memory, so a computation cannot be interrupted";
  const again = () => {
    say("running", `Python has not stopped. ${why}; Restart ends it, with all that was defined.`);
    interruptOnce(); // what ran at that moment, such as a finalizer, may have swallowed the last one
    timer = setTimeout(again, PATIENCE);
  };
  clearTimeout(timer);
  timer = setTimeout(again, PATIENCE);
}

function interruptOnce() {
  if (shared) interrupt(shared);
  worker.postMessage({ interrupt: true });
}

/** What Enter and the button do, by mode. */
const SUBMIT = { none() {}, run: submit, wait() {}, stop() {}, answer };

input.addEventListener("keydown", (event) => {
  if (event.isComposing || event.ctrlKey || event.altKey || event.metaKey) return;
  if (event.key === "Enter") {
    event.preventDefault();
    if (mode !== "answer" && (event.shiftKey || inBlock())) insertLine();
    else SUBMIT[mode]();
  } else if (!event.shiftKey && ((event.key === "ArrowUp" && recall(-1)) || (event.key === "ArrowDown" && recall(1)))) {
    event.preventDefault();
  }
});
input.addEventListener("paste", (event) => {
  const source = mode === "answer" ? undefined : sourceOf(event.clipboardData.getData("text/plain"));
  if (source === undefined) return;
  event.preventDefault();
  insert(source);
});
byId("python-form").addEventListener("submit", (event) => {
  event.preventDefault();
  if (mode === "stop") interruptPython();
  else SUBMIT[mode]();
  input.focus();
});
stop.addEventListener("click", () => {
  interruptPython();
  input.focus();
});
restart.addEventListener("click", () => {
  end();
  write("Stopped; what was defined is gone.\n", "said");
  startPython();
});
byId("terminal").addEventListener("keydown", (event) => {
  const selected = input.selectionStart !== input.selectionEnd || !getSelection().isCollapsed;
  if (event.key !== "c" || !event.ctrlKey || event.shiftKey || event.altKey || !MODES[mode].busy || selected) return;
  event.preventDefault();
  interruptPython();
});
completeBy((source) => {
  if (mode !== "run") return false;
  worker.postMessage({ complete: source });
  return true;
});
onFiles((file) => {
  if (!worker) return write(`${file.name} was not added: Python does not run. Start it, then add the file again.\n`, "failed");
  if (mode !== "run") write(`${file.name} waits until Python has ${mode === "none" ? "started" : "ended what it runs"}.\n`, "said");
  return worker.postMessage({ file });
});
for (const [name, source] of Object.entries(EXAMPLES)) {
  const button = Object.assign(document.createElement("button"), { type: "button", textContent: name });
  button.addEventListener("click", () => {
    setEntry(source);
    input.focus();
  });
  byId("python-examples").append(button);
}
