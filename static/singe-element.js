/**
 * The elements `<singe-model src="./model/">` and `<singe-task src="./detect/">`: a model, or a task, in a page, without writing JavaScript.
 *
 * Contract: importing this module defines both. `<singe-model>` accepts a file, chosen or dropped, for a model of pictures, and shows
 * the five most probable classes; for other models it shows that it is ready. `model` is a promise of the model, `run(inputs)` runs it.
 * `<singe-task>` accepts what its task takes: a picture, or with `kind` a video or a camera, a sound, or a text, and shows it with the
 * answer; `task` is a promise of the task, `ask(source)` asks it. Attributes of both: `src`, a bundle's folder; `device`. Events of both and their details: `progress` (as of
 * `onProgress`), `load` (the model, the task), `result` (the outputs, the answer), `error` (a SingeError). A new `src` or `device` loads
 * again; removing the element frees the model. They set no style attributes, so a strict policy allows them.
 */

/** @import { Input, LoadOptions, Model, Output, PictureSource, Task, TaskAnswer, TaskSettings, TaskSource, Transcript } from "./types/public.d.ts" */
/** @import * as tasks from "./singe-tasks.js" */

import { SingeError, load } from "./singe.js";
import { SourceElement, found, make } from "./elements/singe-element-source.js";
import { folderOf } from "./loading/singe-files.js";

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

/** @extends {SourceElement<Model>} */
export class SingeModelElement extends SourceElement {
  /** @internal */
  static observedAttributes = ["src", "device", "worker"];
  /** @type {HTMLLabelElement} */
  #drop;
  /** @type {string[] | undefined} */
  #labels;

  constructor() {
    const file = make("input", { type: "file", accept: "image/*" });
    const drop = make("label", { hidden: true }, "A picture: choose one, or drop it here", file);
    super(drop);
    this.#drop = drop;
    this.takes(file, drop, (picture, isLate) => this.#take(picture, isLate));
  }

  /**
   * A promise of the model that `src` names.
   * @returns {Promise<Model>}
   */
  get model() {
    return this.opened;
  }

  /**
   * Run the model; the outputs are also the detail of the event `result`.
   * @param {Record<string, Input>} inputs
   * @returns {Promise<Record<string, Output>>}
   */
  async run(inputs) {
    const outputs = await (await this.model).run(inputs);
    this.tell("result", outputs);
    return outputs;
  }

  /**
   * @internal
   * @param {string} src
   * @param {LoadOptions} options
   */
  open(src, options) {
    return load(src, { ...options, worker: this.hasAttribute("worker") });
  }

  /**
   * @internal
   * @param {Model} model
   * @param {string} src
   * @param {AbortSignal} signal
   */
  async ready(model, src, signal) {
    const labels = model.labels ? await labelsOf(model, src, signal) : undefined;
    if (signal.aborted) return "";
    this.#labels = labels;
    this.#drop.hidden = !model.image;
    return `${model.name}: ready on ${model.device}.`;
  }

  /**
   * @internal
   * @param {Model} model
   */
  close(model) {
    model.dispose();
  }

  /** @internal */
  clear() {
    this.#drop.hidden = true;
  }

  /**
   * @param {File} picture
   * @param {() => boolean} isLate
   */
  async #take(picture, isLate) {
    const [{ classes }, model] = await Promise.all([import("./singe-tasks.js"), this.model]);
    const start = performance.now();
    const outputs = await model.run({ [String(model.image?.input)]: picture });
    if (isLate()) return;
    this.tell("result", outputs);
    const time = performance.now() - start;
    this.#show(outputs[model.outputs[0].name], classes);
    this.say(`${time.toFixed(0)} ms on ${model.device}.`);
  }

  /**
   * The most probable classes, where the output is one row of scores.
   * @param {Output} output
   * @param {typeof tasks.classes} classes
   */
  #show(output, classes) {
    const isRow = /^(u?int|float(16|32|64))/.test(output.dtype) && output.data.length === Math.max(...output.shape);
    const likeliest = isRow ? classes(output, { labels: this.#labels }) : [];
    this.list.replaceChildren(...likeliest.map(({ label, probability }) => found(label, probability)));
  }
}

/** What a task's element takes: the text of its field or button, the files of the field, and the media of the tasks that take it. */
const KINDS = {
  picture: { text: "A picture: choose one, or drop it here", accept: "image/*", media: ["picture"] },
  video: { text: "A video: choose one, or drop it here", accept: "video/*", media: ["picture"] },
  camera: { text: "Start the camera", accept: "", media: ["picture"] },
  sound: { text: "A sound: choose one, or drop it here", accept: "audio/*", media: ["sound", "hearing", "moonshine"] },
  text: { text: "A text", accept: "", media: ["text", "speech", "translating"] },
};
const LISTED = 10;
/** Attributes that are settings of a call: what makes a value of the text. */
const lines = (/** @type {string} */ text) =>
  text
    .split("\n")
    .map((line) => line.trim())
    .filter(Boolean);
const isOn = (/** @type {string} */ text) => text !== "false";
const SETTINGS = {
  ...{ top: Number, threshold: Number, speed: Number, beams: Number },
  ...{ prompt: String, hypothesis: String, language: String, src_lang: String, tgt_lang: String },
  ...{ labels: lines, documents: lines, words: isOn },
};

/** @typedef {Extract<TaskAnswer, readonly any[]>[number]} Item */

/**
 * An item of an answer, with its time, its class or who speaks, where it has them.
 * @param {Item} one
 * @param {string} [shown]
 */
function told(one, shown) {
  const name = "label" in one ? one.label : "speaker" in one ? `Speaker ${one.speaker + 1}` : "";
  const text = "text" in one ? one.text : "";
  const time = "at" in one ? `${one.at.toFixed(2)} s` : "end" in one && !text ? `${one.start.toFixed(2)} to ${one.end.toFixed(2)} s` : "";
  const what = [name, text, time].filter(Boolean).join(": ");
  return "score" in one ? found(what, one.score, shown) : found(what, 1, "");
}

/**
 * All that is said, and its parts with their times.
 * @param {Transcript} answer
 */
const written = ({ text, chunks }) => [
  make("li", { textContent: text }),
  ...chunks.map((one) => found(`${one.start.toFixed(2)} to ${one.end.toFixed(2)} s: ${one.text.trim()}`, one.score)),
];

/** @param {Task} task */
const mediumOf = ({ info }) => /** @type {{ medium?: string } | undefined} */ (info.preparation)?.medium ?? "picture";

/** @extends {SourceElement<Task>} */
export class SingeTaskElement extends SourceElement {
  /** @internal */
  static observedAttributes = ["src", "device", "kind"];
  #file = make("input", { type: "file" });
  #text = make("span");
  #drop = make("label", { hidden: true }, this.#text, this.#file);
  #camera = make("button", { type: "button", hidden: true, textContent: KINDS.camera.text });
  #field = make("textarea", { rows: 3 });
  #form = make("form", { hidden: true }, make("label", {}, KINDS.text.text, this.#field), make("button", { textContent: "Answer" }));
  #sound = make("audio", { hidden: true, controls: true, ariaLabel: "the answer" });
  #canvas = make("canvas", { hidden: true, role: "img", ariaLabel: "the picture, with the answer on it" });
  /** @type {(() => void) | undefined} What ends a video. */
  #end;

  constructor() {
    super();
    /** @type {ShadowRoot} */ (this.shadowRoot).prepend(this.#drop, this.#camera, this.#form, this.#canvas, this.#sound);
    this.takes(this.#file, this.#drop, (file, isLate) => this.#take(file, isLate));
    this.#form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.attempt(async (isLate) => void (await this.#answered(this.#field.value, isLate)));
    });
    this.#camera.addEventListener("click", () => (this.#end ? this.#end() : this.#start()));
  }

  /**
   * A promise of the task that `src` names.
   * @returns {Promise<Task>}
   */
  get task() {
    return this.opened;
  }

  /**
   * Ask the task, and show the answer, which is also the detail of the event `result`.
   * @param {TaskSource} source
   * @returns {Promise<TaskAnswer>}
   */
  async ask(source) {
    const turn = ++this.turn;
    this.#end?.();
    return this.#answered(source, () => turn !== this.turn);
  }

  get #settings() {
    /** @type {TaskSettings} */
    const settings = {};
    for (const [name, read] of Object.entries(SETTINGS)) {
      const given = this.getAttribute(name);
      if (given !== null) Object.assign(settings, { [name]: read(given) });
    }
    return settings;
  }

  /**
   * @internal
   * @param {string} src
   * @param {LoadOptions} options
   */
  async open(src, options) {
    const kind = this.getAttribute("kind");
    if (kind !== null && !Object.hasOwn(KINDS, kind)) {
      throw new SingeError("input", `<singe-task>: kind: got ${JSON.stringify(kind)}, expected ${Object.keys(KINDS).join(", ")}`);
    }
    const { task } = await import("./singe-tasks.js");
    return task(src, options);
  }

  /**
   * @internal
   * @param {Task} task
   */
  async ready(task) {
    const medium = mediumOf(task);
    const fitting = Object.entries(KINDS).filter(([, { media }]) => media.includes(medium));
    const kind = this.getAttribute("kind") ?? fitting[0]?.[0];
    const own = fitting.find(([name]) => name === kind)?.[1];
    if (!fitting.length) throw new SingeError("input", `<singe-task>: the task ${task.info.kind} is not one that it shows; call it by task() of singe-tasks.js`);
    if (!own) throw new SingeError("input", `<singe-task>: kind: got ${JSON.stringify(kind)}, and the task takes ${fitting.map(([name]) => name).join(", ")}`);
    if (own.accept) [this.#text.textContent, this.#file.accept] = [own.text, own.accept];
    this.#camera.hidden = kind !== "camera";
    this.#form.hidden = kind !== "text";
    this.#drop.hidden = !(this.#camera.hidden && this.#form.hidden);
    return `${task.model.name}: ready on ${task.model.device}.`;
  }

  /**
   * @internal
   * @param {Task} task
   */
  close(task) {
    task.close();
  }

  /** @internal */
  clear() {
    this.#end?.();
    this.#drop.hidden = this.#camera.hidden = this.#form.hidden = this.#canvas.hidden = true;
    this.#play();
  }

  /**
   * @param {File} file
   * @param {() => boolean} isLate
   */
  async #take(file, isLate) {
    this.#end?.();
    if (!file.type.startsWith("video/")) {
      await this.#answered(file, isLate);
      return;
    }
    const src = URL.createObjectURL(file);
    await this.#follow({ src }, isLate, () => URL.revokeObjectURL(src));
  }

  /**
   * @param {TaskSource} source
   * @param {() => boolean} isLate
   */
  async #answered(source, isLate) {
    const task = await this.task;
    if (mediumOf(task) !== "picture") return this.#told(task, source, isLate);
    const { fetched } = await import("./tasks/singe-task-runner.js");
    const picture = await fetched(/** @type {PictureSource | string} */ (source));
    const start = performance.now();
    const answer = await task(picture, this.#settings);
    const time = performance.now() - start;
    if (isLate()) return answer;
    const bitmap = await createImageBitmap(picture, { imageOrientation: "from-image" });
    this.#show(task, answer, bitmap);
    bitmap.close();
    this.say(`${time.toFixed(0)} ms on ${task.model.device}.`);
    return answer;
  }

  /**
   * Ask a task of texts or sounds.
   * @param {Task} task
   * @param {TaskSource} source
   * @param {() => boolean} isLate
   */
  async #told(task, source, isLate) {
    const start = performance.now();
    const answer = await task(source, this.#settings);
    const time = performance.now() - start;
    if (isLate()) return answer;
    if ("audio" in answer) {
      const { toWav } = await import("./singe-sound.js");
      this.#play(new Blob([toWav(answer.audio, answer.sample_rate)], { type: "audio/wav" }));
    }
    const isCosine = task.info.kind === "search";
    const items =
      "vector" in answer
        ? [make("li", { textContent: `A vector of ${answer.vector.length} numbers` })]
        : Array.isArray(answer)
          ? answer.map((one) => told(one, isCosine && "score" in one ? one.score.toFixed(3) : undefined))
          : "chunks" in answer
            ? written(answer)
            : "translation_text" in answer
              ? [make("li", { textContent: answer.translation_text })]
              : [];
    this.#list(task, items, answer);
    this.say(`${time.toFixed(0)} ms on ${task.model.device}.`);
    return answer;
  }

  /**
   * Let a sound be heard, or none any more.
   * @param {Blob} [sound]
   */
  #play(sound) {
    if (this.#sound.src) URL.revokeObjectURL(this.#sound.src);
    this.#sound.hidden = !sound;
    if (sound) this.#sound.src = URL.createObjectURL(sound);
    else this.#sound.removeAttribute("src");
  }

  async #start() {
    const turn = ++this.turn;
    try {
      const srcObject = await navigator.mediaDevices.getUserMedia({ video: { width: 640, height: 480 } });
      const end = () => {
        for (const track of srcObject.getTracks()) track.stop();
        this.#camera.textContent = KINDS.camera.text;
      };
      if (turn !== this.turn) return end();
      this.#camera.textContent = "Stop the camera";
      await this.#follow({ srcObject }, () => turn !== this.turn, end);
    } catch (error) {
      this.#end?.();
      this.fail(/** @type {Error} */ (error));
    }
  }

  /**
   * Answer for the frames of a video until it ends, or something else is asked.
   * @param {Partial<HTMLVideoElement>} source
   * @param {() => boolean} isLate
   * @param {() => void} ended
   */
  async #follow(source, isLate, ended) {
    const video = make("video", { muted: true, playsInline: true, ...source });
    let /** @type {{ stop(): void } | undefined} */ stream;
    const end = () => {
      stream?.stop();
      video.pause();
      ended();
      if (this.#end === end) this.#end = undefined;
    };
    this.#end = end;
    try {
      const task = await this.task;
      await video.play();
      if (isLate() || this.#end !== end) return;
      const following = task.stream(
        video,
        (answer, { milliseconds, frame }) => {
          this.#show(task, answer, frame);
          this.say(`${milliseconds.toFixed(0)} ms on ${task.model.device}.`);
        },
        this.#settings,
      );
      stream = following;
      await following.done;
    } finally {
      if (this.#end === end) end();
    }
  }

  /**
   * @param {Task} task
   * @param {TaskAnswer} answer
   * @param {ImageBitmap | VideoFrame} picture
   */
  #show(task, answer, picture) {
    const [width, height] = picture instanceof ImageBitmap ? [picture.width, picture.height] : [picture.displayWidth, picture.displayHeight];
    Object.assign(this.#canvas, { width, height, hidden: false });
    const context = /** @type {CanvasRenderingContext2D} */ (this.#canvas.getContext("2d"));
    context.drawImage(picture, 0, 0);
    task.draw(context, answer);
    this.#list(task, Array.isArray(answer) ? answer.map((one) => told(one)) : [], answer);
  }

  /**
   * @param {Task} task
   * @param {HTMLElement[]} items
   * @param {TaskAnswer} answer
   */
  #list(task, items, answer) {
    this.list.replaceChildren(...(task.info.kind === "ocr" ? items : items.slice(0, LISTED)));
    this.tell("result", answer);
  }
}

if (!customElements.get("singe-model")) customElements.define("singe-model", SingeModelElement);
if (!customElements.get("singe-task")) customElements.define("singe-task", SingeTaskElement);
