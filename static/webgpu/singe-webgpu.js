/**
 * The device "webgpu": buffers, pipelines, and the recording of a run at given sizes.
 *
 * Contract: `open(target, files, gpuDevice)` gives { memory, gpuDevice, run, dispose }. Of the weights, JavaScript holds
 * the pieces that are on their way. A device that went away is a SingeError of the code "lost".
 */

/** @import { TypedArray } from "../types/public.d.ts" */
/** @import { AnyElements, Answer, ArrayClass, Dim, GivenInput, GpuCommand, GpuDispatch, GpuKernel, GpuParts, GpuPipeline, GpuPlace, PlainStep, Program, ProgramBuffer, SizedOutput, Sizes, StepParts, Target, Variant, Wanted, WeightsStore } from "../types/program.d.ts" */
/** @import { Files } from "../loading/singe-files.js" */

/** @import * as flows from "./singe-webgpu-flow.js" */

/** @typedef {Pick<Files, "expect" | "tell" | "json" | "each" | "stream">} GpuFiles */

import { ARRAYS, Recent, SingeError, align, areasOf, byName, bytesOf, chooseVariant, evaluate, isPlain, outputsOf, sizeName, sumOf } from "../program/singe-format.js";

const RECORDINGS = 4;
const LOST_WITHIN_MS = 500;
const ASKING_MS = 20;
/** A length or a side in the first run, as a guess. */
const LIKELY = 128;

const MATRICES = "chromium-experimental-subgroup-matrix";
const FEATURES = ["shader-f16", "subgroups", MATRICES, "timestamp-query"];
const DECLARED = /@binding\(\d+\) var<(storage, read_write|storage, read|uniform)>/g;
/** @type {Record<string, GPUBufferBindingType>} */
const KINDS = { "storage, read_write": "storage", "storage, read": "read-only-storage", uniform: "uniform" };
const USAGE = { read: 1, source: 4, target: 8, uniform: 64, storage: 128 };
const RESIDENT = USAGE.storage | USAGE.source | USAGE.target;

/**
 * @param {Target} target
 * @param {GpuFiles} files
 * @param {GPUDevice} [given]
 */
export async function open(target, files, given) {
  const { program, modules, weights } = target;
  files.expect([modules, ...weights]);
  let /** @type {Gpu} */ gpu,
    /** @type {(store: WeightsStore) => void} */ ready = () => {};
  /** @type {Promise<WeightsStore>} */
  const opened = new Promise((done) => (ready = done));
  // All that is fetched comes while the device is opened.
  const flow = isPlain(program) ? undefined : import("./singe-webgpu-flow.js");
  const texts = files.json(modules);
  const written = files.each(weights, async (file, at) => {
    await files.stream(file, opened, at);
    await gpu.device.queue.onSubmittedWorkDone();
  });
  Promise.all([flow, texts, written]).catch(() => {}); // told by loadProgram
  gpu = new Gpu(given ?? (await takeDevice()), !given);
  try {
    return await gpu.guard(() => loadProgram(target, { flow, texts, written, ready }, files, gpu));
  } catch (error) {
    gpu.dispose();
    throw error;
  }
}

/**
 * Whether an adapter's info tells of one that computes on the CPU.
 * @param {Partial<GPUAdapterInfo>} [info]
 */
export const isSoftware = ({ isFallbackAdapter, architecture, device, description } = {}) =>
  isFallbackAdapter || /swiftshader|(llvm|soft)pipe|basic render|software/i.test(/** @type {string} */ (/** @type {unknown} */ ([architecture, device, description])));

/**
 * @param {Target} target
 * @param {{ flow: Promise<typeof flows> | undefined, texts: Promise<Record<string, string>>, written: Promise<void>, ready: (store: WeightsStore) => void }} coming
 * @param {GpuFiles} files
 * @param {Gpu} gpu
 */
async function loadProgram({ program, weights }, { flow, texts, written, ready }, files, gpu) {
  const { features } = gpu.device;
  /** @type {Set<string>} */
  const able = new Set(features.has(/** @type {GPUFeatureName} */ (MATRICES)) ? (await import("./singe-matrices.js")).abilities(gpu.device) : features);
  globalThis.navigator?.gpu?.wgslLanguageFeatures?.forEach((word) => able.add(word));
  const variants = program.kernels.map((kernel) => chooseVariant(kernel, able));
  const likely = likelySizes(program);
  const { adapterInfo } = gpu.device;
  const size = sumOf(weights) + 16;
  const isCut = size > gpu.device.limits.maxBufferSize;
  const store = isCut ? new (await import("./singe-cut-weights.js")).CutWeights(gpu, program, words) : new Weights(gpu, size);
  const create = async () => {
    const pipelines = new Pipelines(gpu.device, program, variants, await texts, files);
    const base = { Device, USAGE, encoded, elementsOf, mapped, spreadGroups, widen, words };
    const device = flow ? await (await flow).openFlow(base, gpu, program, pipelines, store) : new Device(gpu, program, pipelines, store);
    const prepared = device.prepare(likely);
    ready(store); // after the pipelines, which take longer
    if (isSoftware(adapterInfo)) import("./singe-software.js").then(({ warn }) => warn(adapterInfo, program, likely, pipelines.characters));
    await prepared;
    return device;
  };
  return (await Promise.all([create(), written.then(() => files.tell({ phase: "compile" }))]))[0];
}

/**
 * The sizes of a first run, as a guess: a batch of one.
 * @param {Program} program
 * @returns {Sizes}
 */
function likelySizes({ inputs, buffers, bounds, specialised }) {
  const named = inputs.flatMap((i) => buffers[i].shape.map((dim, k) => /** @type {[string, number]} */ ([sizeName(dim), k]))).filter(([name]) => name);
  const sizes = named.map(([name, k]) => [name, k ? (byName(bounds)[name] ?? LIKELY) : 1]);
  return byName(Object.fromEntries(sizes), specialised[0]?.sizes);
}

/** @type {Promise<GPUDevice> | undefined} */
let ahead;

/** Begin to open a device, for the next call of `open`. */
export function prepare() {
  ahead ??= requestDevice();
  ahead.catch(() => {}); // told by `open`
}

function takeDevice() {
  const taken = ahead ?? requestDevice();
  ahead = undefined;
  return taken;
}

export async function requestDevice() {
  const adapter = await globalThis.navigator?.gpu?.requestAdapter({ powerPreference: "high-performance" });
  if (!adapter) throw new SingeError("device", "this engine has no WebGPU adapter");
  if (adapter.features.has(MATRICES)) import("./singe-matrices.js").catch(() => {}); // comes while the device is opened
  const { maxBufferSize, maxStorageBufferBindingSize, maxComputeWorkgroupStorageSize } = adapter.limits;
  return adapter.requestDevice({
    requiredFeatures: /** @type {GPUFeatureName[]} */ (FEATURES.filter((name) => adapter.features.has(name))),
    requiredLimits: { maxBufferSize, maxStorageBufferBindingSize, maxComputeWorkgroupStorageSize },
  });
}

/** A GPUDevice that counts bytes and throws SingeErrors. */
export class Gpu {
  bytes = 0;
  #own;
  /**
   * Why the device is gone, once it is.
   * @type {string | undefined}
   */
  lost;
  /** @type {Set<GPUBuffer>} */
  #buffers = new Set();

  /**
   * @param {GPUDevice} device
   * @param {boolean} own
   */
  constructor(device, own) {
    this.device = device;
    this.#own = own;
    device.lost.then(({ message }) => (this.lost = message || "the GPU device was lost"));
  }

  /**
   * @param {number} size
   * @param {number} [usage]
   */
  allocate(size, usage = RESIDENT) {
    const { maxBufferSize } = this.device.limits;
    if (size > maxBufferSize) {
      throw new SingeError("device", `a buffer of ${size} bytes is needed, this device holds at most ${maxBufferSize}`);
    }
    const buffer = this.device.createBuffer({ size, usage });
    this.#buffers.add(buffer);
    this.bytes += size;
    return buffer;
  }

  /** @param {GPUBuffer | undefined} buffer */
  free(buffer) {
    if (!buffer || !this.#buffers.delete(buffer)) return;
    this.bytes -= buffer.size;
    buffer.destroy();
  }

  /**
   * Validation errors of the synchronous part of `work` are thrown.
   * @template T
   * @param {() => T | Promise<T>} work
   * @returns {Promise<T>}
   */
  async guard(work) {
    const { device } = this;
    ["out-of-memory", "validation"].forEach((filter) => device.pushErrorScope(/** @type {GPUErrorFilter} */ (filter)));
    const attempt = (async () => work())();
    const [outcome, ...scopes] = await Promise.allSettled([attempt, device.popErrorScope(), device.popErrorScope()]);
    const { value, reason } = /** @type {{ value: T, reason?: unknown }} */ (outcome);
    if (reason instanceof SingeError) throw reason;
    const fault = /** @type {PromiseFulfilledResult<GPUError | null>[]} */ (scopes).find((scope) => scope.value)?.value ?? /** @type {Error | undefined} */ (reason);
    if (reason) await Promise.race([device.lost, new Promise((done) => setTimeout(done, LOST_WITHIN_MS))]);
    if (this.lost) throw new SingeError("lost", this.lost, reason);
    if (fault) throw new SingeError("device", fault.message, fault);
    return value;
  }

  dispose() {
    this.#buffers.forEach((buffer) => this.free(buffer));
    if (this.#own) this.device.destroy();
  }
}

/** The weights in one buffer; see CutWeights. */
class Weights {
  /**
   * @param {Gpu} gpu
   * @param {number} size
   */
  constructor(gpu, size) {
    this.gpu = gpu;
    this.buffer = gpu.allocate(size);
  }

  /**
   * @param {number} at
   * @param {Uint8Array<ArrayBuffer>} bytes
   */
  write(at, bytes) {
    this.gpu.device.queue.writeBuffer(this.buffer, at, words(bytes));
  }

  /**
   * @param {number} offset
   * @param {number} size
   */
  binding(offset, size) {
    return { buffer: this.buffer, offset, size };
  }
}

/**
 * Data padded to whole words.
 * @param {TypedArray} data
 * @returns {ArrayBufferView<ArrayBuffer>}
 */
function words(data) {
  if (data.byteLength % 4 === 0) return /** @type {ArrayBufferView<ArrayBuffer>} */ (data);
  const padded = new Uint8Array(align(data.byteLength, 4));
  padded.set(new Uint8Array(data.buffer, data.byteOffset, data.byteLength));
  return padded;
}

/** The pipelines of kernels, created when sizes first need them: many kernels are for large sizes alone. */
class Pipelines {
  /** @type {Map<string, ReturnType<typeof buildPipeline>>} */
  #made = new Map();
  /** @type {GpuPipeline[]} */
  #found = [];
  count = { compiled: 0, kernels: 0 };
  /**
   * Of the texts: how many are compiled, and how many each of the others has, in the order in which they are asked for.
   * @type {{ compiled: number, left: Map<number, number> }}
   */
  characters = { compiled: 0, left: new Map() };

  /**
   * @param {GPUDevice} device
   * @param {Program} program
   * @param {Variant[]} variants
   * @param {Record<string, string>} texts
   * @param {GpuFiles} files
   */
  constructor(device, { kernels }, variants, texts, files) {
    /** @type {GpuKernel[]} */
    this.kernels = kernels.map(({ sizes, ports }, k) => {
      const { entry, groups } = variants[k];
      const text = Object(texts)[entry];
      if (typeof text !== "string") throw new SingeError("format", `the bundle has no module ${entry}`);
      const kinds = [...text.matchAll(DECLARED)].map(([, kind]) => KINDS[kind]);
      const storage = sizes.length && kinds.at(-1) === "uniform" ? kinds.slice(0, -1) : kinds;
      if (storage.length !== ports || storage.includes("uniform")) {
        throw new SingeError("format", `the module ${entry} does not declare ${ports} buffers`);
      }
      return { text, kinds, groups };
    });
    this.device = device;
    this.files = files;
  }

  /**
   * @param {"compiled" | "kernels"} what
   * @param {number} more
   */
  #tell(what, more) {
    this.count[what] += more;
    this.files.tell(this.count);
  }

  /**
   * Create those of the kernels that some sizes need. The longest text goes first: it takes longest.
   * @param {number[]} used
   * @param {Sizes} sizes
   */
  async prepare(used, sizes) {
    const needed = [...new Set(used)].filter((k) => !this.#found[k] && !this.kernels[k].groups.some((dim) => isNothing(dim, sizes)));
    needed.sort((a, b) => this.kernels[b].text.length - this.kernels[a].text.length);
    if (needed.length) this.#tell("kernels", needed.length);
    const { characters } = this;
    const create = async (/** @type {number} */ k) => {
      const { length } = this.kernels[k].text;
      characters.left.set(k, length);
      this.#found[k] = await this.#make(this.kernels[k]);
      characters.left.delete(k);
      characters.compiled += length;
      this.#tell("compiled", 1);
    };
    await Promise.all(needed.map(create));
  }

  /**
   * Kernels of one text share a pipeline.
   * @param {GpuKernel} kernel
   * @returns {Promise<GpuPipeline>}
   */
  async #make({ text, kinds, groups }) {
    if (!this.#made.has(text)) this.#made.set(text, buildPipeline(this.device, text, kinds));
    return { .../** @type {GpuPipeline} */ (await this.#made.get(text)), groups };
  }

  /**
   * A kernel's groups, and its pipeline unless no sizes so far needed it.
   * @param {number} k
   * @returns {GpuPipeline}
   */
  at(k) {
    return this.#found[k] ?? /** @type {GpuPipeline} */ (/** @type {unknown} */ (this.kernels[k]));
  }
}

/**
 * Whether a dimension is known to be zero at sizes of which some may be found in mid-run.
 * @param {Dim} dim
 * @param {Sizes} sizes
 */
function isNothing(dim, sizes) {
  try {
    return evaluate(dim, sizes) <= 0;
  } catch {
    return false;
  }
}

/**
 * @param {StepParts[]} [steps]
 * @returns {number[]}
 */
const kernelsIn = (steps = []) => steps.flatMap((step) => step.kernel ?? [step.then, step.else, step.body].flatMap((inner) => kernelsIn(inner)));

/**
 * The layout follows the declarations: a binding that the text does not use still counts.
 * @param {GPUDevice} device
 * @param {string} text
 * @param {GPUBufferBindingType[]} kinds
 */
async function buildPipeline(device, text, kinds) {
  const entries = kinds.map((type, binding) => ({ binding, visibility: GPUShaderStage.COMPUTE, buffer: { type } }));
  const layout = device.createBindGroupLayout({ entries });
  const pipeline = await device.createComputePipelineAsync({
    layout: device.createPipelineLayout({ bindGroupLayouts: [layout] }),
    compute: { module: device.createShaderModule({ code: text }), entryPoint: "main" },
  });
  return { pipeline, layout, hasSizes: kinds.at(-1) === "uniform" };
}

/**
 * What singe-webgpu-flow.js works with, which this file imports.
 * @typedef {{ Device: typeof Device, USAGE: typeof USAGE, encoded: typeof encoded, elementsOf: typeof elementsOf, mapped: typeof mapped,
 *   spreadGroups: typeof spreadGroups, widen: typeof widen, words: typeof words }} FlowBase
 * @typedef {Device} GpuRunner
 * @typedef {Recording} GpuRecording
 * @typedef {Pipelines} GpuPipelines
 */

class Device {
  /**
   * Kind ↦ buffers, shared by all recordings.
   * @type {Record<string, GPUBuffer[]>}
   */
  buffers = {};

  /**
   * @param {Gpu} gpu
   * @param {Program} program
   * @param {Pipelines} pipelines
   * @param {WeightsStore} weights
   */
  constructor(gpu, program, pipelines, weights) {
    this.gpu = gpu;
    this.program = program;
    this.pipelines = pipelines;
    this.weights = weights;
    /** @type {Recent<[sizes: Sizes], unknown>} */
    this.recordings = new Recent(
      RECORDINGS,
      (sizes) => /** @type {unknown} */ (new Recording(this, sizes)),
      (recording) => /** @type {Recording} */ (recording).free(),
    );
  }

  /**
   * Make each of the shared buffers at least this large; recordings of a buffer that grows are dropped.
   * @param {Record<string, number[]>} areas
   */
  cover(areas) {
    for (const kind in areas) {
      const held = (this.buffers[kind] ??= []);
      areas[kind].forEach((bytes, k) => {
        if (held[k]?.size >= bytes) return;
        this.recordings.clear();
        this.gpu.free(held[k]);
        delete held[k];
        held[k] = this.gpu.allocate(bytes);
      });
    }
  }

  /**
   * The program for these sizes.
   * @type {(sizes: Sizes) => Program}
   */
  part() {
    return this.program;
  }

  /**
   * Create what runs at these sizes need.
   * @param {Sizes} sizes
   */
  prepare(sizes) {
    return this.gpu.guard(() => this.pipelines.prepare(kernelsIn(this.part(sizes).steps), sizes));
  }

  /**
   * @template T, R
   * @param {Sizes} sizes
   * @param {(recording: R) => T | Promise<T>} run
   * @returns {Promise<T>}
   */
  async #guarded(sizes, run) {
    if (!this.recordings.has(sizes)) await this.prepare(sizes);
    return this.gpu.guard(() => run(/** @type {R} */ (this.recordings.at(sizes))));
  }

  /**
   * Run a recording. A failure drops all that runs made: some of it may be what failed.
   * @template T, R
   * @param {Sizes} sizes
   * @param {(recording: R) => T | Promise<T>} run
   * @returns {Promise<T>}
   */
  attempt(sizes, run) {
    const work = this.#guarded(sizes, run);
    work.catch(() => {
      this.recordings.clear();
      Object.values(this.buffers)
        .flat()
        .forEach((buffer) => this.gpu.free(buffer));
      this.buffers = {};
    });
    return work;
  }

  get gpuDevice() {
    return this.gpu.device;
  }

  /** A GPU needs a while to wake up. */
  wake() {
    this.gpuDevice.queue.submit([]);
  }

  get memory() {
    return { gpu: this.gpu.bytes, wasm: 0, js: 0 };
  }

  /**
   * singe-gpu-io.js handles all but arrays in, new arrays out.
   * @param {GivenInput[]} inputs
   * @param {Sizes} sizes
   * @param {Wanted} outputs
   * @returns {Promise<Answer[]>}
   */
  async run(inputs, sizes, outputs) {
    const kept = outputs !== "data" || !inputs.every(ArrayBuffer.isView) ? await import("./singe-gpu-io.js") : undefined;
    return this.attempt(sizes, (/** @type {Recording} */ recording) => {
      if (kept) return kept.run(recording, inputs, outputs);
      inputs.forEach((data, k) => recording.write(k, /** @type {TypedArray} */ (data)));
      return recording.read();
    });
  }

  dispose() {
    this.gpu.dispose();
  }
}

class Recording {
  /** @type {Device} */
  #device;
  /** @type {Sizes} */
  #sizes;
  /** @type {GPUBuffer[]} */
  #owned = [];
  /** @type {{ buffer: GPUBuffer, targets: GpuPlace[] } | undefined} */
  #staging;
  /** @type {GPUCommandBuffer | undefined} */
  #next;

  /**
   * @param {Device} device
   * @param {Sizes} sizes
   */
  constructor(device, sizes) {
    const { gpu, program, buffers } = device;
    device.cover(areasOf(program, sizes));
    this.gpu = gpu;
    this.program = program;
    this.buffers = buffers;
    this.outputs = outputsOf(program, sizes);
    this.#device = device;
    this.#sizes = sizes;
    /** @type {GpuCommand[]} */
    this.steps = program.steps.flatMap((step) => this.#step(/** @type {PlainStep} */ (step)));
  }

  /** @param {GPUBuffer} buffer */
  #own(buffer) {
    this.#owned.push(buffer);
    return buffer;
  }

  free() {
    this.#owned.forEach((buffer) => this.gpu.free(buffer));
  }

  /**
   * The bytes of a buffer, in whole words.
   * @param {number} index
   */
  bytes(index) {
    return align(bytesOf(this.program.buffers[index], this.#sizes), 4);
  }

  /**
   * @param {number} index
   * @returns {GpuPlace}
   */
  #binding(index) {
    const [kind, at] = this.program.buffers[index].place;
    const size = Math.max(16, this.bytes(index));
    return kind === "weights" ? this.#device.weights.binding(at, size) : { buffer: this.buffers[kind][at], offset: 0, size };
  }

  /**
   * @param {PlainStep} step
   * @returns {GpuCommand[]}
   */
  #step(step) {
    if (step.do === "copy") {
      const [source, target] = [this.#binding(step.source), this.#binding(step.target)];
      const bytes = this.bytes(step.source);
      return bytes ? [{ step, source, target, bytes }] : [];
    }
    const kernel = this.program.kernels[step.kernel];
    const { pipeline, layout, hasSizes, groups: dims } = this.#device.pipelines.at(step.kernel);
    const groups = dims.map((dim) => evaluate(dim, this.#sizes));
    if (groups.some((n) => n <= 0)) return [];
    const limit = this.gpu.device.limits.maxComputeWorkgroupsPerDimension;
    const resources = step.buffers.map((i) => this.#binding(i));
    if (hasSizes) resources.push(this.#uniform(kernel.sizes));
    return [this.bind({ step, pipeline, layout, resources, groups: spreadGroups(groups, limit, kernel.label) })];
  }

  /**
   * @param {Omit<GpuDispatch, "bound"> & Required<Pick<GpuDispatch, "layout" | "resources">>} step
   * @returns {GpuDispatch}
   */
  bind(step) {
    const { layout, resources } = step;
    const entries = resources.map((resource, binding) => ({ binding, resource }));
    return { ...step, bound: this.gpu.device.createBindGroup({ layout, entries }) };
  }

  /** @param {Dim[]} dims */
  #uniform(dims) {
    const values = new Int32Array(align(dims.length, 4));
    values.set(dims.map((dim) => evaluate(dim, this.#sizes)));
    const buffer = this.#own(this.gpu.allocate(values.byteLength, USAGE.uniform | USAGE.target));
    this.gpu.device.queue.writeBuffer(buffer, 0, values);
    return /** @type {GpuPlace} */ ({ buffer });
  }

  /**
   * @param {number} k
   * @param {TypedArray} data
   */
  write(k, data) {
    const wide = widen(data, this.program.buffers[this.program.inputs[k]]);
    this.gpu.device.queue.writeBuffer(this.buffers.input[k], 0, words(wide));
  }

  /**
   * Steps, then copies of the outputs to targets.
   * @param {GpuCommand[]} steps
   * @param {GpuPlace[]} [targets]
   */
  record(steps, targets = []) {
    const copies = targets.map((target, k) => {
      const { index, bytes } = this.outputs[k];
      return { source: this.#binding(index), target, bytes: align(bytes, 4) };
    });
    return encoded(this.gpu.device, [...steps, ...copies]);
  }

  #stage() {
    let total = 0;
    const starts = this.outputs.map(({ bytes }) => (total += align(bytes)) - align(bytes));
    const buffer = this.#own(this.gpu.allocate(total || 16, USAGE.read | USAGE.target));
    return { buffer, targets: starts.map((offset) => ({ buffer, offset })) };
  }

  /**
   * @param {GpuCommand[]} [steps]
   * @param {(TypedArray | undefined)[]} [into]
   * @returns {Promise<Answer[]>}
   */
  async read(steps = this.steps, into = []) {
    const { device } = this.gpu;
    const { buffer, targets } = (this.#staging ??= this.#stage());
    buffer.unmap(); // saves a message
    const own = steps === this.steps;
    device.queue.submit([(own && this.#next) || this.record(steps, targets)]);
    const done = mapped(device, buffer);
    if (own) this.#next = this.record(this.steps, targets); // the next run's, while the GPU is busy
    await done;
    const range = buffer.getMappedRange();
    return this.outputs.map((output, k) => {
      return { data: elementsOf(range, targets[k].offset, output, into[k]), shape: [...output.shape], dtype: output.dtype };
    });
  }
}

/**
 * @param {GPUDevice} device
 * @param {GpuCommand[]} steps
 */
function encoded(device, steps) {
  const commands = device.createCommandEncoder();
  /** @type {GPUComputePassEncoder | undefined} */
  let pass;
  for (const { pipeline, bound, groups, source, target, bytes } of /** @type {GpuParts[]} */ (/** @type {unknown} */ (steps))) {
    if (pipeline) {
      pass ??= commands.beginComputePass();
      pass.setPipeline(pipeline);
      pass.setBindGroup(0, bound);
      pass.dispatchWorkgroups(...groups);
    } else {
      pass = /** @type {undefined} */ (pass?.end());
      commands.copyBufferToBuffer(source.buffer, source.offset, target.buffer, target.offset, bytes);
    }
  }
  pass?.end();
  return commands.finish();
}

/**
 * A browser polls for finished work every few milliseconds, and whenever it is asked anything.
 * @param {GPUDevice} device
 * @param {GPUBuffer} buffer
 */
export async function mapped(device, buffer) {
  let waiting = true;
  const done = buffer.mapAsync(GPUMapMode.READ).finally(() => (waiting = false));
  for (const end = performance.now() + ASKING_MS; waiting && performance.now() < end; ) {
    device.pushErrorScope("validation");
    await Promise.race([done, device.popErrorScope().catch(() => {})]);
  }
  return done;
}

/**
 * The workgroups of a dispatch, x spread over x and y if it exceeds the limit.
 * @param {number[]} groups
 * @param {number} limit
 * @param {string} label
 * @returns {[x: number, y: number, z: number]}
 */
function spreadGroups([x, y, z], limit, label) {
  if (x > limit && y === 1) {
    y = Math.ceil(x / limit);
    x = Math.ceil(x / y);
  }
  if (Math.max(x, y, z) <= limit) return [x, y, z];
  throw new SingeError("device", `the kernel ${label} needs ${x} × ${y} × ${z} workgroups, the limit is ${limit}`);
}

/**
 * Elements may be wider on the device.
 * @param {TypedArray} data
 * @param {{ size: number }} buffer
 * @returns {TypedArray}
 */
const widen = (data, { size }) => (size === data.BYTES_PER_ELEMENT ? data : Uint32Array.from(/** @type {Uint8Array} */ (data)));

/**
 * @param {ArrayBuffer} mapped
 * @param {number} at
 * @param {Pick<SizedOutput, "dtype" | "size" | "count">} output
 * @param {TypedArray} [into]
 * @returns {TypedArray}
 */
function elementsOf(mapped, at, { dtype, size, count }, into) {
  const own = ARRAYS[dtype];
  const found = new /** @type {ArrayClass} */ (size === own.BYTES_PER_ELEMENT ? own : Uint32Array)(mapped, at, count);
  /** @type {AnyElements | undefined} */ (into)?.set(/** @type {AnyElements} */ (found));
  return into ?? new own(found);
}
