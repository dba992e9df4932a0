/**
 * The Python prompt of the front page: a log, an entry with history, and front-python-worker.js, where Python runs.
 *
 * Contract: it runs one statement or block at a time. Run becomes Stop while Python runs: that, and Ctrl+C, raise
 * KeyboardInterrupt, in computations only where the page is isolated. "Restart" ends the worker, whatever it does, and
 * starts a new one without the old definitions. The log's length is limited; the browser keeps the history.
 */

/** The most characters in the log, and in one of its elements. */
const LIMIT = 100_000;
const PIECE = 4000;
const PHASES = { runtime: "CPython", numpy: "NumPy", singe: "Singe" };
const EXAMPLES = {
  Tensors: 'x = sg.tensor([[1.0, 2.0], [3.0, 4.0]], device="numpy")\n(x @ x).exp().numpy()',
  "A model on WebAssembly":
    'model = await sg.load_async("python/mnist.singe", device="wasm")\nprint(model)\nx = np.random.rand(1, 1, 28, 28).astype("float32")\nawait model.run_async(x)',
  "Which devices": "sg.devices()",
};

const byId = (id) => document.getElementById(id);
const [start, stop, bar, log, input, run] = ["start", "stop", "progress", "log", "input", "run"].map((id) => byId(`python-${id}`));
/** Milliseconds after which Run becomes Stop, and after which a stop that had no effect is explained. */
const SOON = 300;
const PATIENCE = 3000;
const HISTORY = "singe: the prompt's history";
const REMEMBERED = 200;
const history = remembered();
const shared = globalThis.crossOriginIsolated ? new SharedArrayBuffer(1) : undefined;
let place = history.length;
let draft = "";
let asked = "";
let worker;
let busy = false;
let timer;
let kept = 0;

export function startPython() {
  if (worker) return;
  start.hidden = true;
  stop.hidden = false;
  say("loading", "Starting Python …");
  worker = new Worker(new URL("./front-python-worker.js", import.meta.url), { type: "module", name: "python" });
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
    byId("terminal").hidden = byId("python-help").hidden = false;
    write(`${version}\n`, "said");
    if (shared) worker.postMessage({ shared });
    rest();
    input.focus();
  },
  failed({ message, unsupported }) {
    end();
    start.hidden = false;
    stop.hidden = true;
    say(unsupported ? "unsupported" : "error", message);
  },
  accepted() {
    write(`${asked.replaceAll(/^/gm, "... ").replace("...", ">>>")}\n`, "asked");
    remember(asked);
    setEntry("");
  },
  output: ({ text }) => write(text, ""),
  incomplete() {
    rest();
    insertLine();
  },
  answer({ text, failed }) {
    if (text) write(`${text}\n`, failed ? "failed" : "");
    rest();
  },
};

function say(state, text) {
  const status = byId("python-status");
  status.dataset.state = state;
  if (status.textContent !== text) status.textContent = text;
}

/** The sources that were run, here and in earlier visits. */
function remembered() {
  try {
    return JSON.parse(localStorage.getItem(HISTORY) ?? "[]").filter((text) => typeof text === "string");
  } catch {
    return []; // storage is refused, or another version wrote it
  }
}

function remember(source) {
  if (history.at(-1) !== source) history.push(source);
  history.splice(0, history.length - REMEMBERED);
  place = history.length;
  try {
    localStorage.setItem(HISTORY, JSON.stringify(history));
  } catch {
    // it lasts as long as the page
  }
}

function idle() {
  busy = false;
  clearTimeout(timer);
  run.disabled = false;
  run.textContent = "Run";
  if (shared) new Uint8Array(shared)[0] = 0;
}

function rest() {
  idle();
  say("ready", "Python is ready.");
}

function end() {
  if (worker) worker.onmessage = worker.onerror = null; // its last messages may still arrive
  worker?.terminate();
  worker = undefined;
  idle();
  bar.hidden = true;
}

function write(text, kind) {
  const last = log.lastElementChild;
  if (kind === "" && last?.className === "" && last.textContent.length < PIECE) last.append(text);
  else log.append(Object.assign(document.createElement("pre"), { className: kind, textContent: text }));
  kept += text.length;
  while (kept > LIMIT && log.children.length > 1) {
    kept -= log.firstChild.textContent.length;
    log.firstChild.remove();
  }
  log.scrollTop = log.scrollHeight;
}

/** Run the entry's text; the worker answers, or says that the statement is not finished. */
function submit() {
  const source = input.value.trimEnd();
  if (busy || !worker || !source.trim()) return;
  busy = true;
  run.disabled = true;
  say("running", "Python is running …");
  asked = source;
  worker.postMessage({ source });
  timer = setTimeout(() => {
    run.disabled = false;
    run.textContent = "Stop";
  }, SOON);
}

function interrupt() {
  if (!busy) return;
  if (shared) new Uint8Array(shared)[0] = 2;
  worker.postMessage({ interrupt: true });
  say("running", "Stopping …");
  clearTimeout(timer);
  const why = shared ? "It may be in one long call" : "This page is not isolated, so a computation cannot be interrupted";
  timer = setTimeout(() => say("running", `Python has not stopped. ${why}; Restart ends it, with all that was defined.`), PATIENCE);
}

function setEntry(text) {
  input.value = text;
  input.rows = Math.min(12, text.split("\n").length);
  input.setSelectionRange(text.length, text.length);
}

/** Insert a new line at the caret, indented like the one before, and further after a colon. */
function insertLine() {
  const before = input.value.slice(0, input.selectionStart);
  const line = before.slice(before.lastIndexOf("\n") + 1);
  const indent = /^\s*/.exec(line)[0] + (/:\s*$/.test(line) ? "    " : "");
  input.setRangeText(`\n${indent}`, input.selectionStart, input.selectionEnd, "end");
  input.rows = Math.min(12, input.value.split("\n").length);
}

/** Whether Enter continues a block: the caret is inside it, or after an indented line that is not blank. */
function inBlock() {
  const rest = input.value.slice(input.selectionEnd);
  const last = input.value.slice(input.value.lastIndexOf("\n") + 1);
  return rest.trim() !== "" || (input.value.includes("\n") && /^\s+\S/.test(last));
}

function recall(step) {
  if (place === history.length) draft = input.value;
  place += step;
  setEntry(history[place] ?? draft);
}

input.addEventListener("keydown", (event) => {
  if (event.isComposing || event.ctrlKey || event.altKey || event.metaKey) return;
  const before = input.value.slice(0, input.selectionStart);
  const after = input.value.slice(input.selectionEnd);
  if (event.key === "Enter") {
    event.preventDefault();
    if (event.shiftKey || inBlock()) insertLine();
    else submit();
  } else if (event.key === "ArrowUp" && !event.shiftKey && !before.includes("\n") && place > 0) {
    event.preventDefault();
    recall(-1);
  } else if (event.key === "ArrowDown" && !event.shiftKey && !after.includes("\n") && place < history.length) {
    event.preventDefault();
    recall(1);
  }
});
input.addEventListener("input", () => {
  input.rows = Math.min(12, input.value.split("\n").length);
});
byId("python-form").addEventListener("submit", (event) => {
  event.preventDefault();
  if (busy) interrupt();
  else submit();
  input.focus();
});
stop.addEventListener("click", () => {
  end();
  write("Stopped; what was defined is gone.\n", "said");
  startPython();
});
byId("terminal").addEventListener("keydown", (event) => {
  const selected = input.selectionStart !== input.selectionEnd || !getSelection().isCollapsed;
  if (event.key !== "c" || !event.ctrlKey || event.shiftKey || event.altKey || !busy || selected) return;
  event.preventDefault();
  interrupt();
});
for (const [name, source] of Object.entries(EXAMPLES)) {
  const button = Object.assign(document.createElement("button"), { type: "button", textContent: name });
  button.addEventListener("click", () => {
    setEntry(source);
    input.focus();
  });
  byId("python-examples").append(button);
}
