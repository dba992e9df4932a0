/**
 * The element `<singe-model src="./model/">`: a model in a page, without writing JavaScript.
 *
 * Contract: importing this module defines the element. For a model of pictures it accepts a file, chosen or dropped, and
 * shows the five most probable classes; for other models it shows that it is ready. `model` is a promise of the model,
 * `run(inputs)` runs it. Attributes: `src`, a bundle's folder; `device`; `worker`. Events and their details: `progress`
 * (as of `onProgress`), `load` (the model), `result` (the outputs), `error` (a SingeError). A new `src` or `device` loads
 * again; removing the element frees the model. It sets no style attributes, so a strict policy allows it.
 */

/** @import { Input, Model, Output, TypedArray } from "./types/public.d.ts" */
/** @import * as tasks from "./singe-tasks.js" */

import { SingeError, load } from "./singe.js";
import { folderOf } from "./loading/singe-files.js";

const STYLE = `
:host { display: block; font: inherit; }
:host([hidden]) { display: none; }
label { display: block; padding: 1rem; border: 2px dashed color-mix(in srgb, currentColor 40%, transparent); border-radius: 0.5rem; }
label.over { border-style: solid; }
input { display: block; margin-top: 0.5rem; max-width: 100%; font: inherit; }
ol { list-style: none; margin: 0.75rem 0 0; padding: 0; }
li { display: grid; grid-template-columns: 1fr auto; gap: 0 0.75rem; margin-bottom: 0.4rem; overflow-wrap: anywhere; }
meter { grid-column: 1 / -1; width: 100%; }
p { margin: 0.5rem 0 0; }
[hidden] { display: none; }
`;

/**
 * @template {keyof HTMLElementTagNameMap} Tag
 * @param {Tag} tag
 * @param {Partial<HTMLElementTagNameMap[Tag]>} [properties]
 * @param {(Node | string)[]} children
 */
const make = (tag, properties = {}, ...children) => {
  const element = document.createElement(tag);
  Object.assign(element, properties);
  element.append(...children);
  return element;
};

/**
 * The names of the classes; undefined if they cannot be had, and classes then have numbers.
 * @param {Model} model
 * @param {string} src
 * @param {AbortSignal} signal
 * @returns {Promise<string[] | undefined>}
 */
async function labelsOf({ labels }, src, signal) {
  const folder = /** @type {URL} */ (folderOf(src));
  return fetch(new URL(labels + folder.search, folder), { signal })
    .then((answer) => (answer.ok ? answer.json() : undefined))
    .catch(() => undefined);
}

export class SingeModelElement extends HTMLElement {
  /** @internal */
  static observedAttributes = ["src", "device", "worker"];
  #file = make("input", { type: "file", accept: "image/*" });
  #drop = make("label", { hidden: true }, "A picture: choose one, or drop it here", this.#file);
  #status = make("p", { role: "status" });
  #bars = make("ol", { ariaLabel: "likeliest classes" });
  /** @type {Promise<Model> | undefined} */
  #model;
  /** @type {AbortController | undefined} */
  #stop;
  /** @type {string[] | undefined} */
  #labels;
  #turn = 0;
  #placed = false;

  constructor() {
    super();
    const root = this.attachShadow({ mode: "open" });
    const sheet = new CSSStyleSheet();
    sheet.replaceSync(STYLE);
    root.adoptedStyleSheets = [sheet];
    root.append(this.#drop, this.#status, this.#bars);
    this.#file.addEventListener("change", () => this.#take(this.#file.files?.[0]));
    this.#drop.addEventListener("dragover", (event) => (event.preventDefault(), this.#drop.classList.add("over")));
    this.#drop.addEventListener("dragleave", () => this.#drop.classList.remove("over"));
    this.#drop.addEventListener("drop", (event) => {
      event.preventDefault();
      this.#drop.classList.remove("over");
      this.#take(event.dataTransfer?.files[0]);
    });
  }

  /**
   * A promise of the model that `src` names.
   * @returns {Promise<Model>}
   */
  get model() {
    return this.#model ?? Promise.reject(new SingeError("input", "<singe-model> has no src, or is not in a page"));
  }

  /** @internal */
  connectedCallback() {
    this.#placed = true;
    this.#load();
  }

  /** @internal */
  disconnectedCallback() {
    this.#placed = false;
    this.#free();
  }

  /**
   * For an element that is older than its definition, this is called for all attributes before it is connected.
   * @internal
   * @param {string} _name
   * @param {string | null} before
   * @param {string | null} after
   */
  attributeChangedCallback(_name, before, after) {
    if (this.#placed && before !== after) this.#load();
  }

  /**
   * Run the model; the outputs are also the detail of the event `result`.
   * @param {Record<string, Input>} inputs
   * @returns {Promise<Record<string, Output>>}
   */
  async run(inputs) {
    const outputs = await (await this.model).run(inputs);
    this.#tell("result", outputs);
    return outputs;
  }

  /**
   * @param {string} type
   * @param {unknown} detail
   */
  #tell(type, detail) {
    this.dispatchEvent(new CustomEvent(type, { detail }));
  }

  /** @param {string} text */
  #say(text) {
    this.#status.textContent = text;
  }

  /** @param {Error} error */
  #fail(error) {
    this.#say(error.message);
    this.#tell("error", error);
  }

  #free() {
    this.#stop?.abort();
    this.#model?.then((model) => model.dispose()).catch(() => {});
    this.#model = undefined;
    this.#turn++;
    this.#drop.hidden = true;
    this.#bars.replaceChildren();
  }

  #load() {
    this.#free();
    const src = this.getAttribute("src");
    if (src === null) return;
    const stop = (this.#stop = new AbortController());
    const model = load(src, {
      device: /** @type {Model["device"] | null} */ (this.getAttribute("device")) || "auto",
      worker: this.hasAttribute("worker"),
      signal: stop.signal,
      onProgress: (progress) => {
        if (stop.signal.aborted) return;
        const { phase, loaded, total, compiled, kernels } = progress;
        const say = (/** @type {string} */ what, /** @type {number} */ part) => this.#say(`${what}: ${Math.round(100 * part) || 0} %`);
        if (phase === "download") say("Loading", loaded / total);
        if (phase === "compile") say("Compiling", compiled / kernels);
        this.#tell("progress", progress);
      },
    });
    this.#model = model;
    model.then((ready) => this.#ready(ready, src, stop.signal)).catch((error) => !stop.signal.aborted && this.#fail(error));
  }

  /**
   * @param {Model} model
   * @param {string} src
   * @param {AbortSignal} signal
   */
  async #ready(model, src, signal) {
    if (signal.aborted) return;
    const labels = model.labels ? await labelsOf(model, src, signal) : undefined;
    if (signal.aborted) return;
    this.#labels = labels;
    this.#drop.hidden = !model.image;
    this.#say(`${model.name}: ready on ${model.device}.`);
    this.#tell("load", model);
  }

  /**
   * Only the latest picture is shown: an earlier one may take longer.
   * @param {File | undefined} file
   */
  async #take(file) {
    if (!file) return;
    const turn = ++this.#turn;
    const isLate = () => turn !== this.#turn;
    try {
      this.#say("Running …");
      const [{ classes }, model] = await Promise.all([import("./singe-tasks.js"), this.model]);
      const start = performance.now();
      const outputs = await model.run({ [String(model.image?.input)]: file });
      if (isLate()) return;
      this.#tell("result", outputs);
      const time = performance.now() - start;
      this.#show(outputs[model.outputs[0].name], classes);
      this.#say(`${time.toFixed(0)} ms on ${model.device}.`);
    } catch (error) {
      if (isLate()) return;
      this.#bars.replaceChildren();
      this.#fail(/** @type {Error} */ (error));
    }
  }

  /**
   * The most probable classes, where the output is one row of scores.
   * @param {Output} output
   * @param {typeof tasks.classes} classes
   */
  #show(output, classes) {
    const isRow = /^(u?int|float(16|32|64))/.test(output.dtype) && output.data.length === Math.max(...output.shape);
    const rows = (isRow ? classes(output, { labels: this.#labels }) : []).map(({ label, probability }) => {
      const percent = `${(100 * probability).toFixed(1)} %`;
      const bar = make("meter", { value: probability, ariaLabel: label });
      return make("li", {}, make("span", { textContent: label }), make("span", { textContent: percent }), bar);
    });
    this.#bars.replaceChildren(...rows);
  }
}

if (!customElements.get("singe-model")) customElements.define("singe-model", SingeModelElement);
