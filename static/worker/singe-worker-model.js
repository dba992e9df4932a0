/**
 * The page's side of a model in a worker; singe-worker.js is the other.
 *
 * Contract: `loadInWorker(folder, options)` returns a model with the usual interface, or undefined if no worker can start
 * (forbidden by a policy; node). Inputs are copied when `run` is called, a large one into memory that a worker gave back; outputs
 * are transferred, or copied into the caller's arrays. GPU buffers cannot be passed. The worker ends with the model. If it dies, its
 * pending runs fail with the code "lost".
 */

/** @import { Input, LoadOptions, Model, Output, Port, Profile, Progress, State, TypedArray } from "../types/public.d.ts" */
/** @import { Answer, Unchecked, Wanted } from "../types/program.d.ts" */

/** @import * as made from "../program/singe-outputs.js" */

/** @typedef {{ outputs?: Wanted, signal?: AbortSignal }} RunOptions */
/** @typedef {Record<string, Input>} Inputs */
/** @typedef {Pick<Model, "name" | "image" | "labels" | "inputs" | "outputs" | "states">} Facts */

import { stateless, runWith } from "../program/singe-arguments.js";
import { SingeError } from "../program/singe-format.js";
import { spawn } from "../loading/singe-spawn.js";

/** Of singe-outputs.js, there when a model is: runs are sent in the order of the calls. */
let /** @type {typeof made.filled} */ filled, /** @type {typeof made.roomFor} */ roomFor, /** @type {typeof made.spares} */ spares;

/**
 * @param {URL} folder
 * @param {LoadOptions} options
 * @returns {Promise<Model | undefined>}
 */
export async function loadInWorker(folder, { onProgress, onDevice, signal, ...options }) {
  const aborted = () => new SingeError("aborted", "loading was aborted", /** @type {AbortSignal} */ (signal).reason);
  if (signal?.aborted) throw aborted();
  const link = await Link.start();
  if (!link) return undefined;
  const stop = () => link.end(aborted());
  signal?.addEventListener("abort", stop);
  if (signal?.aborted) stop();
  link.listeners = { progress: onProgress, device: onDevice };
  try {
    const loaded = link.call("load", { folder: folder.href, options });
    const [facts, outputs] = await Promise.all([loaded, import("../program/singe-outputs.js")]);
    ({ filled, roomFor, spares } = outputs);
    return /** @type {Model} */ (/** @type {unknown} */ (new RemoteModel(link, facts)));
  } catch (error) {
    link.end(/** @type {Error} */ (error));
    throw error;
  } finally {
    signal?.removeEventListener("abort", stop);
  }
}

class RemoteModel {
  worker = true;
  gpuDevice = undefined;
  /** @type {Port[]} */
  outputs = [];
  /** @type {State[]} */
  states = [];
  /** @type {Link} */
  #link;
  /** @type {Promise<void> | undefined} */
  #disposed;

  /**
   * @param {Link} link
   * @param {Facts} facts
   */
  constructor(link, facts) {
    this.#link = link;
    Object.assign(this, facts);
  }

  get device() {
    return this.#link.state.device;
  }

  /** As of the worker's last message, like `memory`. */
  get threads() {
    return this.#link.state.threads;
  }

  get software() {
    return this.#link.state.software;
  }

  get memory() {
    return { ...this.#link.state.memory };
  }

  /**
   * @param {Inputs} inputs
   * @param {RunOptions} [options]
   */
  async run(inputs, options) {
    if (this.#disposed) throw new SingeError("disposed", "the model was disposed of");
    return ran(inputs, options, this.outputs, (given, copies) => this.#link.call("run", given, copies));
  }

  /**
   * A step of training is a run.
   * @param {Inputs} batch
   * @param {RunOptions} [options]
   */
  async step(batch, options) {
    if (!this.states.length) throw stateless();
    return this.run(batch, options);
  }

  /**
   * Begin the random numbers of a seed.
   * @param {number | bigint} seed
   * @returns {Promise<void>}
   */
  async seed(seed) {
    if (this.#disposed) throw new SingeError("disposed", "the model was disposed of");
    return this.#link.call("seed", seed);
  }

  session() {
    if (this.#disposed) throw new SingeError("disposed", "the model was disposed of");
    if (!this.states.length) throw stateless();
    return new RemoteSession(this.#link, this);
  }

  /**
   * @param {Inputs} inputs
   * @param {{ seconds?: number }} [options]
   * @returns {Promise<Profile>}
   */
  async profile(inputs, options) {
    if (this.#disposed) throw new SingeError("disposed", "the model was disposed of");
    const { given, copies } = copiesOf(inputs);
    return this.#link.call("profile", { inputs: given, options }, copies);
  }

  /** Free everything, after pending runs. */
  dispose() {
    const gone = new SingeError("disposed", "the model was disposed of");
    this.#disposed ??= this.#link
      .call("dispose")
      .catch(() => {}) // a dead worker holds nothing
      .then(() => this.#link.end(gone));
    return this.#disposed;
  }
}

/** A session of the worker's, by a number that this side gives it. */
class RemoteSession {
  static #count = 0;
  #number = RemoteSession.#count++;
  /** @type {Link} */
  #link;
  /** @type {RemoteModel} */
  #model;
  /** @type {Promise<unknown> | undefined} */
  #disposed;

  /**
   * @param {Link} link
   * @param {RemoteModel} model
   */
  constructor(link, model) {
    this.#link = link;
    this.#model = model;
  }

  get states() {
    return structuredClone(this.#model.states);
  }

  /**
   * @param {string} method
   * @param {unknown[]} [given]
   * @param {Transferable[]} [transfer]
   */
  #call(method, given = [], transfer = []) {
    if (this.#disposed) throw new SingeError("disposed", "the session was disposed of");
    return this.#link.call("session", { number: this.#number, method, given }, transfer);
  }

  /**
   * @param {Inputs} batch
   * @param {RunOptions} [options]
   */
  step(batch, options) {
    return this.run(batch, options);
  }

  /**
   * @param {Inputs} inputs
   * @param {RunOptions} [options]
   */
  async run(inputs, options) {
    return ran(inputs, options, this.#model.outputs, (given, copies) => this.#call("run", given, copies));
  }

  async reset() {
    return this.#call("reset");
  }

  /** @param {string} name */
  async read(name) {
    return this.#call("read", [name]);
  }

  /** @param {number | bigint} seed */
  async seed(seed) {
    return this.#call("seed", [seed]);
  }

  /**
   * @param {string} name
   * @param {TypedArray} data
   */
  async write(name, data) {
    /** @type {Transferable[]} */
    const copies = [];
    return this.#call("write", [name, copied(data, copies)], copies);
  }

  copy() {
    const copy = new RemoteSession(this.#link, this.#model);
    this.#call("copy", [copy.#number]).catch(() => {}); // who uses it gets the error
    return copy;
  }

  dispose() {
    this.#disposed ??= this.#call("dispose").catch(() => {});
    return this.#disposed;
  }
}

/**
 * A run by `call(arguments, copies)`, with the outputs where the caller wants them.
 * @param {Inputs} inputs
 * @param {RunOptions | undefined} options
 * @param {Port[]} ports
 * @param {(given: unknown[], copies: Transferable[]) => Promise<Record<string, Answer>>} call
 */
async function ran(inputs, options, ports, call) {
  const { outputs = "data" } = options ?? {};
  const room = outputs === "data" ? undefined : roomFor(ports, outputs);
  const { given, copies } = copiesOf(inputs);
  for (const array of Object.values(room ?? {})) if (array) copies.push(/** @type {ArrayBuffer} */ (array.buffer));
  const answers = await runWith(options, () => call(room ? [given, { outputs: room }] : [given], copies));
  return room ? filled(answers, outputs) : answers;
}

/** @param {unknown} value */
const isObject = (value) => typeof value === "object" && value !== null;
/**
 * @param {object} object
 * @param {(value: unknown) => unknown} f
 */
const mapValues = (object, f) => Object.fromEntries(Object.entries(object).map(([name, value]) => [name, f(value)]));

/**
 * Copies of the inputs' arrays, and their memory to transfer.
 * @param {Inputs} inputs
 */
function copiesOf(inputs) {
  /** @type {Transferable[]} */
  const copies = [];
  const given = isObject(inputs) && !(/** @type {Unchecked} */ (inputs)[Symbol.iterator]) ? mapValues(inputs, (value) => copied(value, copies)) : inputs;
  return { given, copies };
}

/**
 * An input with its array copied; the memory is added to `copies`. The worker rejects invalid inputs.
 * @param {Unchecked} value
 * @param {Transferable[]} copies
 */
function copied(value, copies) {
  if (globalThis.ImageData && value instanceof ImageData) return value;
  if (/^(HTML(Image|Video|Canvas)Element|OffscreenCanvas)$/.test(String(value?.constructor?.name))) return drawn(value, copies);
  const bare = ArrayBuffer.isView(value);
  const data = bare ? value : value?.data;
  if (!ArrayBuffer.isView(data)) return value;
  let own;
  try {
    own = spares.copyOf(/** @type {TypedArray} */ (data));
  } catch {
    return value; // a DataView, or detached: refused later
  }
  copies.push(/** @type {ArrayBuffer} */ (own.buffer));
  return bare ? own : { ...value, data: own };
}

/**
 * What an element shows now, as a bitmap that goes to the worker: elements and canvases stay with their page.
 * @param {Unchecked} element
 * @param {Transferable[]} copies
 */
function drawn(element, copies) {
  const width = element.naturalWidth ?? element.videoWidth ?? element.width;
  const height = element.naturalHeight ?? element.videoHeight ?? element.height;
  if (!(width > 0 && height > 0)) throw new SingeError("input", `a picture: got a ${element.constructor.name} without pixels; wait until it is loaded`);
  const canvas = new OffscreenCanvas(width, height);
  /** @type {OffscreenCanvasRenderingContext2D} */ (canvas.getContext("2d")).drawImage(element, 0, 0, width, height);
  const bitmap = canvas.transferToImageBitmap();
  copies.push(bitmap);
  return bitmap;
}

/** A worker and its pending calls. */
class Link {
  /** @type {Pick<Model, "threads" | "software" | "memory"> & { device: Model["device"] | undefined }} */
  state = { device: undefined, threads: 1, software: false, memory: { gpu: 0, wasm: 0, js: 0 } };
  /** @type {Record<string, ((given: Unchecked) => void) | undefined>} */
  listeners = {};
  /** @type {Worker} */
  #worker;
  /** @type {Map<number, { done(value: Unchecked): void, fail(cause: unknown): void }>} */
  #waiting = new Map();
  #count = 0;
  /** @type {Error | undefined} */
  #ended;
  #unlock = new AbortController();

  /**
   * A link to a running worker, or undefined.
   * @returns {Promise<Link | undefined>}
   */
  static async start() {
    if (!globalThis.Worker) return undefined;
    try {
      const worker = spawn(() => new Worker(new URL("./singe-worker.js", import.meta.url), { type: "module" }));
      const name = await new Promise((done, fail) => {
        worker.onmessage = ({ data }) => done(data.started);
        worker.onerror = (event) => {
          event.preventDefault?.();
          fail(event);
        };
      });
      return new Link(worker, name);
    } catch {
      return undefined;
    }
  }

  /**
   * @param {Worker} worker
   * @param {string} lock
   */
  constructor(worker, lock) {
    this.#worker = worker;
    /** @type {(why?: string) => void} */
    const died = (why) => this.end(new SingeError("lost", `the worker ended${why ? `: ${why}` : ""}`));
    worker.onmessage = ({ data }) => this.#hear(data);
    worker.onerror = (event) => died(event.message);
    const { signal } = this.#unlock;
    if (lock) navigator.locks.request(lock, { signal }, () => died()).catch(() => {});
  }

  /**
   * @param {string} call
   * @param {unknown} [given]
   * @param {Transferable[]} [transfer]
   * @returns {Promise<Unchecked>}
   */
  call(call, given, transfer = []) {
    if (this.#ended) return Promise.reject(this.#ended);
    const id = this.#count++;
    return new Promise((done, fail) => {
      try {
        this.#worker.postMessage({ id, call, given }, transfer);
        this.#waiting.set(id, { done, fail });
      } catch (cause) {
        fail(new SingeError("input", `an input cannot be handed to the worker: ${/** @type {Error} */ (cause).message}`, cause));
      }
    });
  }

  /** @param {Unchecked} message */
  #hear({ id, value, error, state, spare, ...news }) {
    if (state) this.state = state;
    if (spare) spares.memory = spare;
    const { done, fail } = this.#waiting.get(id) ?? {};
    this.#waiting.delete(id);
    if (error) fail?.(error.name === "SingeError" ? new SingeError(error.code, error.message) : new Error(error.message));
    else done?.(value);
    try {
      for (const [what, given] of Object.entries(news)) this.listeners[what]?.(given);
    } catch (thrown) {
      if (news.progress) this.end(/** @type {Error} */ (thrown));
      else throw thrown;
    }
  }

  /**
   * End the worker; pending and later calls fail with `error`.
   * @param {Error} error
   */
  end(error) {
    if (this.#ended) return;
    this.#ended = error;
    this.#worker.terminate();
    this.#unlock.abort();
    this.state = { ...this.state, memory: { gpu: 0, wasm: 0, js: 0 } };
    this.#waiting.forEach(({ fail }) => fail(error));
    this.#waiting.clear();
  }
}
