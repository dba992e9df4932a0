/**
 * The part that both demo pages share: choice of backend and language, progress of loading, times.
 *
 * Contract: the page has elements with the ids in `IDS`. `panel.engine` is the chosen backend's Engine once it is ready,
 * and undefined before; `onReady()` is called for each new one. Missing choices are disabled and show the reason.
 */

import { findReasons } from "./engines.js";

const IDS = ["backend", "python", "reasons", "status", "progress", "time", "load"];
const NAMES = { numpy: "NumPy", wasm: "WebAssembly", webgpu: "WebGPU" };
const PHASES = {
  download: "Downloading",
  compile: "Preparing the kernels",
  runtime: "Python",
  numpy: "NumPy",
  singe: "Singe",
  model: "Loading the model into Python",
};

export const milliseconds = (ms) => `${ms < 10 ? ms.toFixed(2) : ms < 100 ? ms.toFixed(1) : Math.round(ms)} ms`;

const megabytes = (bytes) => (bytes / 1e6).toFixed(bytes < 1e7 ? 2 : 1);

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

/** Probabilities; other values are treated as logits. */
export function probabilities(values) {
  const sum = values.reduce((a, b) => a + b, 0);
  if (values.every((v) => v >= 0 && v <= 1) && Math.abs(sum - 1) < 1e-3) return Float64Array.from(values);
  const most = values.reduce((a, b) => Math.max(a, b), -Infinity);
  const powers = Float64Array.from(values, (v) => Math.exp(v - most));
  const total = powers.reduce((a, b) => a + b, 0);
  return powers.map((p) => p / total);
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
    this.say("loading", `Loading ${this.name}${this.python.checked ? " in Python" : ""} …`);
    const chosen = this.#chosen; // a backend that is chosen again while it loads continues to report progress
    const onProgress = (progress) => chosen === this.#chosen && this.#show(progress);
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

  /** Write a text only if it changed, so that screen readers announce it once. */
  say(state, text = this.status.textContent) {
    this.status.dataset.state = state;
    if (text !== this.status.textContent) this.status.textContent = text;
  }

  ready() {
    this.say("ready", `${this.name} is ready${this.python.checked ? ", in Python" : ""}.`);
  }

  /** Show an error; the page continues. */
  fail(error) {
    this.say("error", error?.message || String(error));
  }

  took(ms) {
    this.time.dataset.value = ms;
    this.time.textContent = milliseconds(ms);
  }

  #show({ loaded, total, phase }) {
    const [text, bar] = this.progress.children;
    this.progress.hidden = phase === "ready";
    this.progress.dataset.loaded = loaded;
    this.progress.dataset.total = total;
    text.textContent = total ? `${PHASES[phase] ?? phase}: ${megabytes(loaded)} of ${megabytes(total)} MB` : (PHASES[phase] ?? phase);
    if (total) bar.value = loaded / total;
    else bar.removeAttribute("value");
  }

  /** Disable missing choices, and leave a backend that is no longer available. */
  #disable(reasons) {
    this.#reasons = reasons;
    const options = [...this.backend.options];
    for (const option of options) {
      option.disabled = Boolean(reasons[option.value]);
      option.title = reasons[option.value];
    }
    this.python.disabled ||= Boolean(reasons.python);
    this.python.closest("label").title = reasons.python;
    this.reasons.replaceChildren(
      ...options
        .filter((option) => option.disabled)
        .map((option) => Object.assign(document.createElement("li"), { textContent: `${NAMES[option.value]}: ${option.title}.` })),
    );
    if (!this.backend.selectedOptions[0].disabled) return;
    const usable = options.findLast((option) => !option.disabled);
    if (usable) {
      this.backend.value = usable.value;
      this.choose();
    } else {
      this.#turn++;
      this.backend.disabled = true;
      this.say("unsupported", "This browser cannot run the model: it needs WebAssembly with SIMD, or WebGPU.");
    }
  }
}
