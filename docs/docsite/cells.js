/**
 * Cells: the blocks of Python of a page become a notebook. Python runs in a worker, which starts at the first press of Run.
 *
 * Contract: the blocks of a page share their names. Run runs a cell, after those before it that have not run. While
 * Python runs, the button stops it: a KeyboardInterrupt, so that all names stay. Where that has no effect, and where the page
 * is not isolated, the worker ends, and with it all names. Values that describe themselves by HTML are drawn. The worker
 * and the modules beside it are those of the demos' prompt, in the folder that `data-python` names.
 */

const { root, python } = document.documentElement.dataset;
const PHASES = { runtime: "CPython", numpy: "NumPy", singe: "Singe" };
/** The most characters of output that a cell shows. */
const LIMIT = 20_000;
/** Milliseconds after which a stop that had no effect is explained. */
const PATIENCE = 3000;
/** The memory of prompt-shared.js, without room for answers: input() is refused. */
const shared = globalThis.crossOriginIsolated ? new SharedArrayBuffer(1) : undefined;

const cells = [...document.querySelectorAll("pre.cell")].map(prepare);
const address = (name) => new URL(`${root}${python}${name}`, location.href).href;
let worker, ready, hear, interrupted, timer;
/** Functions of the prompt, once Python has started. */
let drawings, interrupt, clearInterrupt;

function prepare(pre, number) {
  const code = pre.firstElementChild;
  code.contentEditable = "plaintext-only";
  for (const [name, value] of Object.entries({ role: "textbox", "aria-multiline": "true", "aria-label": `Cell ${number + 1}`, spellcheck: "false" }))
    code.setAttribute(name, value);
  const run = Object.assign(document.createElement("button"), { type: "button", className: "run", textContent: "Run" });
  run.setAttribute("aria-label", `Run cell ${number + 1}`);
  const status = Object.assign(document.createElement("p"), { className: "cell-status" });
  status.setAttribute("role", "status");
  const output = Object.assign(document.createElement("pre"), { className: "output", hidden: true, tabIndex: 0 });
  const bar = Object.assign(document.createElement("div"), { className: "cell-bar" });
  bar.append(run, status);
  const drawn = Object.assign(document.createElement("div"), { className: "drawn" });
  pre.after(bar, output, drawn);
  const cell = { number, code, run, status, output, drawn, done: false };
  run.addEventListener("click", () => (run.dataset.running ? stop(cell) : runTo(cell)));
  code.addEventListener("input", () => (cell.done = false));
  code.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
    event.preventDefault();
    if (!run.disabled && !run.dataset.running) runTo(cell);
  });
  return cell;
}

async function runTo(last) {
  const due = cells.slice(0, last.number + 1).filter((cell) => cell === last || !cell.done);
  for (const { run } of cells) run.disabled = true;
  for (const cell of due) {
    Object.assign(cell.run, { disabled: false, textContent: "Stop" }).dataset.running = "yes";
    const failed = await carryOut(cell).catch((error) => error.message);
    clearTimeout(timer);
    delete cell.run.dataset.running;
    Object.assign(cell.run, { disabled: true, textContent: "Run" });
    cell.done = !failed;
    say(cell, failed ?? "");
    if (failed) break;
  }
  for (const { run } of cells) run.disabled = false;
}

/** Runs one cell; the answer is a text for its status if that failed. */
async function carryOut(cell) {
  await start((text) => say(cell, text));
  interrupted = false;
  if (shared) clearInterrupt(shared);
  say(cell, "Running …");
  Object.assign(cell.output, { textContent: "", hidden: true });
  cell.drawn.replaceChildren();
  worker.postMessage({ source: `${cell.code.textContent.trimEnd()}\n` });
  const show = (text) => Object.assign(cell.output, { textContent: (cell.output.textContent + text).slice(-LIMIT), hidden: false });
  return new Promise((resolve, reject) => {
    hear = {
      accepted() {},
      output: ({ text }) => show(text),
      incomplete: () => resolve("The cell ends in the middle of a statement."),
      answer({ text, failed, html }) {
        if (text) show(`${text}\n`);
        if (html) cell.drawn.append(...drawings(html));
        resolve(failed ? (interrupted ? "Stopped." : "The cell failed.") : undefined);
      },
      failed: ({ message }) => reject(new Error(message)),
    };
  });
}

function start(tell) {
  ready ??= begin(tell).catch((error) => {
    end();
    throw error;
  });
  return ready;
}

async function begin(tell) {
  tell("Starting Python …");
  const started = new Promise((resolve, reject) => {
    hear = {
      progress({ loaded, total, phase }) {
        const share = total ? `: ${(loaded / 1e6).toFixed(1)} of ${(total / 1e6).toFixed(1)} MB` : "";
        tell(`Starting Python, ${PHASES[phase] ?? phase}${share}`);
      },
      started() {
        if (shared) worker.postMessage({ shared });
        resolve();
      },
      failed: ({ message }) => reject(new Error(message)),
    };
    worker = new Worker(address("prompt-worker.js"), { type: "module", name: "cells" });
    worker.onmessage = ({ data }) => hear[data.what]?.(data);
    worker.onerror = (event) => hear.failed({ message: event.message || "The worker with Python could not be started." });
  });
  const modules = ["prompt-drawings.js", "prompt-shared.js"].map((name) => import(address(name)));
  [{ drawings }, { clearInterrupt, interrupt }] = await Promise.all([...modules, started]);
}

/** Interrupt Python; end it if that was tried before, if it cannot be done here, and while Python starts. */
function stop(cell) {
  if (shared && hear.answer && !interrupted) {
    interrupted = true;
    interrupt(shared);
    worker.postMessage({ interrupt: true });
    say(cell, "Stopping …");
    timer = setTimeout(say, PATIENCE, cell, "Python has not stopped: it may be in one long call. Stop again ends it, with the names of all cells.");
    return;
  }
  const { failed } = hear;
  end();
  failed({ message: "Stopped; the names of all cells are gone." });
}

function end() {
  worker?.terminate();
  worker = ready = undefined;
  for (const cell of cells) cell.done = false;
}

function say({ status }, text) {
  if (status.textContent !== text) status.textContent = text;
}
