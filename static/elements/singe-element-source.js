/**
 * What the elements `<singe-model>` and `<singe-task>` share.
 *
 * Contract: a class that extends SourceElement says what it opens (`open`), shows when that is ready (`ready`), and frees it (`close`,
 * `clear`); it is asked to whenever the element is placed, removed, or has other attributes. See singe-element.js for attributes and events.
 */

/** @import { LoadOptions, Model } from "../types/public.d.ts" */

import { SingeError } from "../program/singe-format.js";

const STYLE = `
:host { display: block; font: inherit; }
:host([hidden]) { display: none; }
label { display: block; padding: 1rem; border: 2px dashed color-mix(in srgb, currentColor 40%, transparent); border-radius: 0.5rem; }
label.over { border-style: solid; }
textarea { display: block; box-sizing: border-box; width: 100%; margin: 0.5rem 0; font: inherit; }
audio { display: block; width: 100%; margin-top: 0.75rem; }
input { display: block; margin-top: 0.5rem; max-width: 100%; font: inherit; }
button { padding: 0.5rem 1rem; min-height: 2.75rem; font: inherit; }
canvas { display: block; max-width: 100%; margin-top: 0.75rem; }
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
export const make = (tag, properties = {}, ...children) => {
  const element = document.createElement(tag);
  Object.assign(element, properties);
  element.append(...children);
  return element;
};

/**
 * A list's item: what was found, how likely it is, and a bar of that.
 * @param {string} label
 * @param {number} score
 * @param {string} [shown] the score in words, where it is no part of a whole
 */
export const found = (label, score, shown = `${(100 * score).toFixed(1)} %`) =>
  make("li", {}, make("span", { textContent: label }), make("span", { textContent: shown }), make("meter", { value: score, ariaLabel: label }));

/**
 * What both elements do: load what `src` names, say how it goes, take files, free what is not needed any more.
 * @template T
 */
export class SourceElement extends HTMLElement {
  #status = make("p", { role: "status" });
  /** @type {Promise<T> | undefined} */
  #opened;
  /** @type {AbortController | undefined} */
  #stop;
  #placed = false;
  /** @internal How often it was asked: of two answers, the one to the later question is shown. */
  turn = 0;
  /** @internal */
  list = make("ol", { ariaLabel: "what was found" });

  /**
   * @internal
   * @param {(Node | string)[]} above
   */
  constructor(...above) {
    super();
    const root = this.attachShadow({ mode: "open" });
    const sheet = new CSSStyleSheet();
    sheet.replaceSync(STYLE);
    root.adoptedStyleSheets = [sheet];
    root.append(...above, this.#status, this.list);
  }

  /**
   * @internal
   * @returns {Promise<T>}
   */
  get opened() {
    return this.#opened ?? Promise.reject(new SingeError("input", `<${this.localName}> has no src, or is not in a page`));
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
   * What `src` names.
   * @internal
   * @abstract
   * @param {string} _src
   * @param {LoadOptions} _options
   * @returns {Promise<T>}
   */
  open(_src, _options) {
    throw new Error("abstract");
  }

  /**
   * Show that it is ready; what it says is the status.
   * @internal
   * @abstract
   * @param {T} _opened
   * @param {string} _src
   * @param {AbortSignal} _signal
   * @returns {Promise<string>}
   */
  async ready(_opened, _src, _signal) {
    throw new Error("abstract");
  }

  /**
   * Free what was opened.
   * @internal
   * @abstract
   * @param {T} _opened
   */
  close(_opened) {
    throw new Error("abstract");
  }

  /** Hide what needs something opened. @internal @abstract */
  clear() {
    throw new Error("abstract");
  }

  /**
   * @internal
   * @param {string} type
   * @param {unknown} detail
   */
  tell(type, detail) {
    this.dispatchEvent(new CustomEvent(type, { detail }));
  }

  /**
   * @internal
   * @param {string} text
   */
  say(text) {
    if (this.#status.textContent !== text) this.#status.textContent = text;
  }

  /**
   * @internal
   * @param {Error} error
   */
  fail(error) {
    this.say(error.message);
    this.tell("error", error);
  }

  /**
   * Do what was asked for, and say what fails; only the answer to the latest is shown: an earlier one may take longer.
   * @internal
   * @param {(isLate: () => boolean) => Promise<void>} work
   */
  async attempt(work) {
    const turn = ++this.turn;
    const isLate = () => turn !== this.turn;
    try {
      this.say("Running …");
      await work(isLate);
    } catch (error) {
      if (isLate()) return;
      this.list.replaceChildren();
      this.fail(/** @type {Error} */ (error));
    }
  }

  /**
   * A field for files, chosen or dropped.
   * @internal
   * @param {HTMLInputElement} file
   * @param {HTMLElement} label
   * @param {(file: File, isLate: () => boolean) => Promise<void>} take
   */
  takes(file, label, take) {
    const taken = (/** @type {File | undefined} */ given) => given && this.attempt((isLate) => take(given, isLate));
    file.addEventListener("change", () => taken(file.files?.[0]));
    label.addEventListener("dragover", (event) => (event.preventDefault(), label.classList.add("over")));
    label.addEventListener("dragleave", () => label.classList.remove("over"));
    label.addEventListener("drop", (event) => {
      event.preventDefault();
      label.classList.remove("over");
      taken(event.dataTransfer?.files[0]);
    });
  }

  #free() {
    this.#stop?.abort();
    this.#opened?.then((opened) => this.close(opened)).catch(() => {});
    this.#opened = undefined;
    this.turn++;
    this.clear();
    this.list.replaceChildren();
  }

  #load() {
    this.#free();
    const src = this.getAttribute("src");
    if (src === null) return;
    const { signal } = (this.#stop = new AbortController());
    const opened = this.open(src, {
      device: /** @type {Model["device"] | null} */ (this.getAttribute("device")) || "auto",
      signal,
      onProgress: (progress) => {
        if (signal.aborted) return;
        const { phase, loaded, total, compiled, kernels } = progress;
        const say = (/** @type {string} */ what, /** @type {number} */ part) => this.say(`${what}: ${Math.round(100 * part) || 0} %`);
        if (phase === "download") say("Loading", loaded / total);
        if (phase === "compile") say("Compiling", compiled / kernels);
        this.tell("progress", progress);
      },
    });
    this.#opened = opened;
    const tell = async () => {
      const ready = await opened;
      if (signal.aborted) return;
      const text = await this.ready(ready, src, signal);
      if (signal.aborted) return;
      this.say(text);
      this.tell("load", ready);
    };
    tell().catch((error) => !signal.aborted && this.fail(error));
  }
}
