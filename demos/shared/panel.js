/**
 * The part that demo pages share: choice of backend and language, state, progress of loading, times.
 *
 * Contract: the page has elements with the ids `status`, `progress`, `backend` and `reasons`; for a Panel also with the others
 * in `IDS`. `panel.engine` is the chosen backend's Engine once it is ready, and undefined before; `onReady()` is called for
 * each new one. Missing choices are disabled and show the reason.
 */

import { findReasons } from "./engines.js";

const IDS = ["backend", "python", "progress", "time", "load"];
export const NAMES = { numpy: "NumPy", wasm: "WebAssembly", webgpu: "WebGPU" };
const PHASES = {
  download: "Downloading",
  compile: "Preparing the kernels",
  runtime: "Python",
  numpy: "NumPy",
  singe: "Singe",
  model: "Loading the model into Python",
  step: "Preparing the step in Python",
  images: "The images",
};

export const milliseconds = (ms) => `${ms < 10 ? ms.toFixed(2) : ms < 100 ? ms.toFixed(1) : Math.round(ms)} ms`;

const megabytes = (bytes) => (bytes / 1e6).toFixed(bytes < 1e7 ? 2 : 1);

/** Write the page's state; its text only if it changed, so that screen readers announce it once. */
export function say(state, text) {
  const status = document.getElementById("status");
  status.dataset.state = state;
  if (text !== undefined && text !== status.textContent) status.textContent = text;
}

/** Show how far loading is: phase, and bytes or kernels. */
export function showProgress({ loaded, total, phase, compiled, kernels }) {
  const progress = document.getElementById("progress");
  const [text, bar] = progress.children;
  progress.hidden = phase === "ready" || phase === "run";
  Object.assign(progress.dataset, { loaded, total });
  const bytes = total ? `${megabytes(loaded)} of ${megabytes(total)} MB` : loaded ? `${megabytes(loaded)} MB` : "";
  const amount = phase === "compile" ? `${compiled} of ${kernels}` : bytes;
  text.textContent = [PHASES[phase] ?? phase, amount].filter(Boolean).join(": ");
  if (total) bar.value = loaded / total;
  else bar.removeAttribute("value");
}

/** Disable the backends that are missing, and list why. */
export function showReasons(reasons) {
  const options = [...document.getElementById("backend").options];
  for (const option of options) {
    option.disabled = Boolean(reasons[option.value]);
    option.title = reasons[option.value];
  }
  const missing = options.filter((option) => option.disabled);
  const line = ({ value, title }) => Object.assign(document.createElement("li"), { textContent: `${NAMES[value]}: ${title}.` });
  document.getElementById("reasons").replaceChildren(...missing.map(line));
}

/** Runs `work`, and once more if it was requested meanwhile: never two at once, never more than one waiting. */
export function latest(work) {
  let running = false;
  let wanted = false;
  return async () => {
    wanted = true;
    if (running) return;
    running = true;
    try {
      while (wanted) {
        wanted = false;
        await work();
      }
    } finally {
      running = false;
    }
  };
}

export class Panel {
  engine;
  #engines;
  #onReady;
  #reasons = {};
  #turn = 0;
  #wish = false;

  constructor(engines, onReady) {
    for (const id of IDS) this[id] = document.getElementById(id);
    this.#engines = engines;
    this.#onReady = onReady;
    this.backend.addEventListener("change", () => this.choose());
    this.python.addEventListener("change", () => {
      this.#wish = this.python.checked;
      this.choose();
    });
    // The other choices can wait for the first answer: requesting a GPU takes long.
    this.choose().then(findReasons).then((reasons) => this.#disable(reasons));
  }

  /** What runs the model: JavaScript in this page, or Python in a worker. */
  get way() {
    return this.python.checked ? "Python" : "JavaScript";
  }

  get name() {
    return NAMES[this.backend.value];
  }

  get #chosen() {
    return `${this.backend.value} ${this.python.checked}`;
  }

  /** Open the chosen backend; an earlier one may finish opening in the background. */
  async choose() {
    const turn = ++this.#turn;
    const numpy = this.backend.value === "numpy";
    this.python.checked = numpy || this.#wish;
    this.python.disabled = numpy || Boolean(this.#reasons.python);
    this.engine = undefined;
    say("loading", `Loading ${this.name}${this.python.checked ? " in Python" : ""} …`);
    const chosen = this.#chosen; // a backend that is chosen again while it loads continues to report progress
    const onProgress = (progress) => chosen === this.#chosen && showProgress(progress);
    try {
      const engine = await this.#engines.open(this.backend.value, this.python.checked, onProgress);
      if (turn !== this.#turn) return;
      this.engine = engine;
      this.load.dataset.value = engine.load;
      this.load.textContent = milliseconds(engine.load);
      this.ready();
      performance.mark("first answer");
      await this.#onReady();
    } catch (error) {
      if (turn === this.#turn) this.fail(error);
    } finally {
      if (turn === this.#turn) this.progress.hidden = true;
    }
  }

  ready() {
    say("ready", `${this.name} is ready${this.python.checked ? ", in Python" : ""}.`);
  }

  /** Show an error; the page continues. */
  fail(error) {
    say("error", error?.message || String(error));
  }

  took(ms) {
    this.time.dataset.value = ms;
    this.time.textContent = milliseconds(ms);
  }

  /** Disable missing choices, and leave a backend that is no longer available. */
  #disable(reasons) {
    this.#reasons = reasons;
    showReasons(reasons);
    this.python.disabled ||= Boolean(reasons.python);
    this.python.closest("label").title = reasons.python;
    if (!this.backend.selectedOptions[0].disabled) return;
    const usable = [...this.backend.options].findLast((option) => !option.disabled);
    if (usable) {
      this.backend.value = usable.value;
      this.choose();
    } else {
      this.#turn++;
      this.backend.disabled = true;
      say("unsupported", "This browser cannot run the model: it needs WebAssembly with SIMD, or WebGPU.");
    }
  }
}
