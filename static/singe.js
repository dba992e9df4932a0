/**
 * Singe's runner: a bundle that `singe export` wrote, run in a page, a worker or node, with no Python.
 *
 *     const model = await load("./model/");
 *     const { logits } = await model.run({ input: new Float32Array(784) });
 *     await model.dispose();
 *
 * Contract: `load` answers a model that is ready to run, or fails with a SingeError and holds nothing. A model's runs
 * follow each other in the order in which they were asked for, and each reads its inputs when its turn comes. See
 * singe.d.ts for the types and static/README.md for the format. The devices are loaded when they are chosen.
 */

import { Files } from "./singe-files.js";
import { ARRAYS, SingeError, VERSION, checkManifest, checkTarget, countOf, evaluate, showShape, sizeName } from "./singe-format.js";

export { SingeError, VERSION };

/** A device's name ↦ its module, and the target that its programs are for. */
const DEVICES = {
  wasm: { target: "wasm", module: () => import("./singe-wasm.js") },
  webgpu: { target: "wgsl", module: () => import("./singe-webgpu.js") },
};

/** Load the bundle in the folder `url`. */
export async function load(url, { device = "auto", threads = 0, onProgress, signal, gpuDevice } = {}) {
  if (device !== "auto" && !Object.hasOwn(DEVICES, device)) {
    throw new SingeError("input", `device: got ${JSON.stringify(device)}, expected "wasm", "webgpu" or "auto"`);
  }
  if (!Number.isInteger(threads) || threads < 0) throw new SingeError("input", `threads: got ${threads}`);
  const folder = folderOf(url);
  const files = new Files(folder, signal, onProgress);
  try {
    const manifest = checkManifest(await files.manifest("model.json"));
    const name = chooseDevice(device, manifest.targets);
    const target = manifest.targets[name];
    checkTarget(target, DEVICES[name].target);
    const { open } = await DEVICES[name].module();
    const opened = await open(target, files, gpuDevice);
    const reopen = () => open(target, new Files(folder));
    try {
      files.phase("ready");
    } catch (error) {
      opened.dispose();
      throw error;
    }
    return new Model(manifest, name, target.program, opened, gpuDevice ? undefined : reopen);
  } finally {
    files.stop();
  }
}

function folderOf(url) {
  const inNode = () => `file://${process.cwd()}/`;
  const base = globalThis.document?.baseURI ?? globalThis.location?.href ?? inNode();
  try {
    const folder = new URL(url, base);
    if (!folder.pathname.endsWith("/")) folder.pathname += "/";
    return folder;
  } catch (cause) {
    throw new SingeError("input", `url: got ${url}, expected the address of a folder`, cause);
  }
}

/** "auto" is WebAssembly where the bundle has it. */
function chooseDevice(wanted, targets) {
  const name = wanted === "auto" ? Object.keys(DEVICES).find((d) => Object.hasOwn(targets, d)) : wanted;
  if (Object.hasOwn(targets, name)) return name;
  throw new SingeError("device", `the bundle was exported without ${name}; it has ${Object.keys(targets).join(", ")}`);
}

class Model {
  #program;
  #opened;
  #reopen;
  #last = Promise.resolve();
  #disposed;

  constructor({ name, image, labels }, device, program, opened, reopen) {
    this.name = name;
    this.image = image;
    this.labels = labels;
    this.device = device;
    this.inputs = program.inputs.map((i) => describe(program.buffers[i]));
    this.outputs = program.outputs.map((i) => describe(program.buffers[i]));
    this.#program = program;
    this.#opened = opened;
    this.#reopen = reopen;
  }

  /** Bytes held: { gpu, wasm, js }. */
  get memory() {
    return this.#opened.memory;
  }

  get gpuDevice() {
    return this.#opened.gpuDevice;
  }

  /** inputs by name ↦ outputs by name. */
  async run(inputs, { outputs = "data" } = {}) {
    if (this.#disposed) throw new SingeError("disposed", "the model was disposed of");
    if (outputs !== "data" && !(outputs === "gpu" && this.device === "webgpu")) {
      throw new SingeError("input", `outputs: got ${JSON.stringify(outputs)}, expected "data", or "gpu" on webgpu`);
    }
    const buffers = this.#program.inputs.map((i) => this.#program.buffers[i]);
    const { given, sizes } = bind(buffers, inputs, this.device === "webgpu");
    const results = await this.#inTurn(() => this.#attempt(given, sizes, outputs === "gpu"));
    return Object.fromEntries(this.outputs.map(({ name }, k) => [name, results[k]]));
  }

  /** Run; a device that was lost is opened anew, once. */
  async #attempt(given, sizes, onGpu) {
    try {
      return await this.#opened.run(given, sizes, onGpu);
    } catch (error) {
      if (error.code !== "lost" || !this.#reopen) throw error;
      this.#opened.dispose();
      this.#opened = await this.#reopen();
      return this.#opened.run(given, sizes, onGpu);
    }
  }

  /** Free everything, after the runs that were asked for. */
  dispose() {
    this.#disposed ??= this.#inTurn(() => this.#opened.dispose());
    return this.#disposed;
  }

  #inTurn(task) {
    const turn = this.#last.then(task);
    this.#last = turn.catch(() => {});
    return turn;
  }
}

const describe = ({ name, dtype, shape }) => ({
  name,
  dtype,
  shape: shape.map((dim) => (typeof dim === "number" ? dim : (sizeName(dim) ?? "?"))),
});

// --- inputs ----------------------------------------------------------------------------------------------------------

/** What a caller gave, checked: the data in the program's order, and the sizes that its shapes tell. */
function bind(buffers, inputs, gpu) {
  const names = buffers.map((b) => b.name);
  const takes = `this model takes ${names.join(", ") || "none"}`;
  if (typeof inputs !== "object" || inputs === null) throw new SingeError("input", `run({ name: data, … }): ${takes}`);
  for (const name of Object.keys(inputs)) {
    if (!names.includes(name)) throw new SingeError("input", `unknown input ${JSON.stringify(name)}: ${takes}`);
  }
  const sizes = {};
  const tensors = buffers.map((b) => unpack(b, inputs[b.name], gpu));
  tensors.forEach((tensor, k) => tensor.shape && learn(buffers[k], tensor.shape, sizes));
  tensors.forEach((tensor, k) => (tensor.shape ??= infer(buffers[k], tensor, sizes)));
  tensors.forEach((tensor, k) => checkShape(buffers[k], tensor, sizes));
  return { given: tensors.map((tensor) => tensor.data), sizes };
}

const wrong = (buffer, got) => {
  const { name, dtype, shape } = buffer;
  const expected = `expected ${ARRAYS[dtype].name} (${dtype}) of shape ${showShape(shape)}`;
  return new SingeError("input", `input ${JSON.stringify(name)}: got ${got}, ${expected}`);
};

const isGpuBuffer = (value) => typeof GPUBuffer === "function" && value instanceof GPUBuffer;

/** A typed array, { data, shape } or a GPUBuffer as { data, shape?, count, exact }. */
function unpack(buffer, value, gpu) {
  const bare = ArrayBuffer.isView(value) || isGpuBuffer(value);
  let { data, shape } = bare ? { data: value } : (value ?? {});
  if (shape !== undefined && !(Array.isArray(shape) && shape.every((d) => Number.isSafeInteger(d) && d >= 0))) {
    throw wrong(buffer, `the shape ${JSON.stringify(shape)}`);
  }
  shape = shape && [...shape];
  if (gpu && isGpuBuffer(data)) return { data, shape, count: Math.floor(data.size / buffer.size), exact: false };
  const wanted = ARRAYS[buffer.dtype];
  if (buffer.dtype === "float16" && data?.constructor?.name === "Float16Array") {
    data = new Uint16Array(data.buffer, data.byteOffset, data.length);
  }
  if (!(data instanceof wanted)) throw wrong(buffer, data?.constructor?.name ?? typeof value);
  if (buffer.dtype === "bool" && data.some((x) => x > 1)) throw wrong(buffer, "bools other than 0 and 1");
  return { data, shape, count: data.length, exact: true };
}

/** Take the sizes that a shape tells. */
function learn(buffer, shape, sizes) {
  if (shape.length !== buffer.shape.length) throw wrong(buffer, `the shape ${showShape(shape)}`);
  buffer.shape.forEach((dim, k) => {
    const name = sizeName(dim);
    if (name !== undefined && (sizes[name] ??= shape[k]) !== shape[k]) {
      throw wrong(buffer, `${name} = ${shape[k]}, which is ${sizes[name]} elsewhere`);
    }
  });
}

/** The shape of an input that came without one: at most one of its dimensions may be unknown. */
function infer(buffer, { count }, sizes) {
  const value = (dim) => {
    const name = sizeName(dim);
    return typeof dim !== "number" && name !== undefined && !(name in sizes) ? undefined : evaluate(dim, sizes);
  };
  const shape = buffer.shape.map(value);
  const open = shape.flatMap((d, k) => (d === undefined ? [k] : []));
  if (open.length > 1) throw wrong(buffer, `no shape: give { data, shape }`);
  if (open.length === 1) {
    const rest = countOf(shape.filter((d) => d !== undefined));
    if (rest === 0 || count % rest !== 0) throw wrong(buffer, `${count} elements`);
    shape[open[0]] = count / rest;
    learn(buffer, shape, sizes);
  }
  return shape;
}

function checkShape(buffer, { shape, count, exact }, sizes) {
  const same = shape.length === buffer.shape.length && buffer.shape.every((d, k) => evaluate(d, sizes) === shape[k]);
  if (!same) throw wrong(buffer, `the shape ${showShape(shape)}`);
  const wanted = countOf(shape);
  if (exact ? count !== wanted : count < wanted) throw wrong(buffer, `${count} elements for the shape ${showShape(shape)}`);
}
