/**
 * One model on each backend of a browser: through singe.js in this page, or through Singe's Python in a worker.
 *
 * `findReasons` says, before anything is loaded, why a backend is missing here. `Engines.open` returns an Engine, the
 * same one each time; after a failure it may be called again. An Engine has `load`, the milliseconds until its first
 * run was done, and `run(data, shape)`: a Float32Array in, `{ data, ms }` out, with the first output and the time of
 * the run. Python is fetched when an Engine first needs it.
 */

import { load } from "../singe.js";

/** A module that uses SIMD. */
const SIMD = Uint8Array.of(0, 97, 115, 109, 1, 0, 0, 0, 1, 4, 1, 96, 0, 0, 3, 2, 1, 0, 10, 9, 1, 7, 0, 65, 0, 253, 15, 26, 11);
/** The folder with Python's files. */
export const PYTHON = new URL("../python/", import.meta.url);

/** For each backend, and for `python`: why it is missing here, or "". */
export async function findReasons() {
  const [python, wasm, webgpu] = await Promise.all([reasonAgainstPython(), reasonAgainstWasm(), reasonAgainstWebGpu()]);
  return { python, numpy: python, wasm, webgpu };
}

async function reasonAgainstPython() {
  if (typeof WebAssembly !== "object") return "this browser has no WebAssembly";
  const ask = (method) => fetch(new URL("start.js", PYTHON), { method });
  try {
    // Offline, the service worker answers only GET.
    const { ok } = await ask("HEAD").catch(() => ask("GET"));
    return ok ? "" : "this site was built without Python";
  } catch {
    return "Python cannot be fetched: there is no network";
  }
}

async function reasonAgainstWebGpu() {
  if (!navigator.gpu) {
    return isSecureContext ? "this browser has no WebGPU" : "WebGPU needs a page from https or from this machine";
  }
  try {
    return (await navigator.gpu.requestAdapter()) ? "" : "the browser has WebGPU, but found no GPU for it";
  } catch (error) {
    return `the browser refuses WebGPU: ${error.message}`;
  }
}

async function reasonAgainstWasm() {
  if (typeof WebAssembly !== "object") return "this browser has no WebAssembly";
  return WebAssembly.validate(SIMD) ? "" : "this browser's WebAssembly has no SIMD";
}

export class Engines {
  #bundle;
  #record;
  #shape;
  #opened = new Map();

  /**
   * bundle: the folder of the exported model; record: the name of the same model's record among Python's files; shape:
   * that of the input, or a promise of it.
   */
  constructor({ bundle, record, shape }) {
    this.#bundle = bundle;
    this.#shape = shape;
    this.#record = new URL(record, PYTHON).href;
  }

  open(backend, throughPython, onProgress) {
    const key = `${backend} ${throughPython}`;
    if (!this.#opened.has(key)) {
      const opening = this.#open(backend, throughPython, onProgress);
      opening.catch(() => this.#opened.delete(key));
      this.#opened.set(key, opening);
    }
    return this.#opened.get(key);
  }

  async #open(backend, throughPython, onProgress) {
    const start = performance.now();
    const run = throughPython
      ? await (await import("./python.js")).openInPython(PYTHON, this.#record, backend, onProgress)
      : await openHere(this.#bundle, backend, onProgress);
    const shape = await this.#shape;
    await run(new Float32Array(shape.reduce((a, b) => a * b)), shape);
    return { run, load: performance.now() - start };
  }
}

async function openHere(bundle, device, onProgress) {
  const model = await load(bundle, { device, onProgress });
  return async (data, shape) => {
    const begun = performance.now();
    const outputs = await model.run({ [model.inputs[0].name]: { data, shape } });
    return { ms: performance.now() - begun, data: outputs[model.outputs[0].name].data };
  };
}
