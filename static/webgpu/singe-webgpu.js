/**
 * The device "webgpu": a program's pipelines, its plans, and the states of sessions.
 *
 * Contract: `open(target, files, gpuDevice)` gives { memory, gpuDevice, run, dispose } and the functions of states:
 * `newStates()` returns a handle, a GPUBuffer for each state, which `run` takes. Of the weights, JavaScript holds the
 * pieces that are on their way.
 */

/** @import { TypedArray } from "../types/public.d.ts" */
/** @import { Answer, Dim, GivenInput, Program, ProgramBuffer, SizedOutput, Sizes, Target, Wanted, WeightsStore } from "../types/program.d.ts" */
/** @import { GpuFiles } from "./singe-gpu-pipelines.js" */

/** @typedef {Device} GpuRunner */

import { unfoldedTexts } from "../program/singe-folded-texts.js";
import { ARRAYS, Recent, align, byName, bytesOf, chooseVariant, countOf, partAt, sizeName, sumOf } from "../program/singe-format.js";
import { prepareHost } from "../program/singe-plan.js";
import { COPY, headsOf } from "../program/singe-words.js";
import { Gpu, LEAST, MATRICES, USAGE, Weights, elementsOf, isSoftware, mapped, padded, requestDevice, widen } from "./singe-gpu.js";
import { Pipelines } from "./singe-gpu-pipelines.js";
import { GpuPlan, planKeys } from "./singe-gpu-plan.js";

const PLANS = 4;
/** A length or a side in the first run, as a guess. */
const LIKELY = 128;
const RESTS_AFTER_MS = 50;

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
  const hosted = prepareHost(program);
  const texts = files.json(modules).then(unfoldedTexts);
  const written = files.each(weights, async (file, at) => {
    await files.stream(file, opened, at);
    await gpu.device.queue.onSubmittedWorkDone();
  });
  Promise.all([hosted, texts, written]).catch(() => {}); // told by loadProgram
  gpu = new Gpu(given ?? (await takeDevice()), !given);
  try {
    return await gpu.guard(() => loadProgram(target, { hosted, texts, written, ready }, files, gpu));
  } catch (error) {
    gpu.dispose();
    throw error;
  }
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

/**
 * @param {Target} target
 * @param {{ hosted: Promise<void>, texts: Promise<Record<string, string>>, written: Promise<void>, ready: (store: WeightsStore) => void }} coming
 * @param {GpuFiles} files
 * @param {Gpu} gpu
 */
async function loadProgram({ program, weights }, { hosted, texts, written, ready }, files, gpu) {
  const { features } = gpu.device;
  /** @type {Set<string>} */
  const able = new Set(features.has(/** @type {GPUFeatureName} */ (MATRICES)) ? (await import("./singe-matrices.js")).abilities(gpu.device) : features);
  globalThis.navigator?.gpu?.wgslLanguageFeatures?.forEach((word) => able.add(word));
  const variants = program.kernels.map((kernel) => chooseVariant(kernel, able));
  const likely = likelySizes(program);
  const { adapterInfo } = gpu.device;
  const size = sumOf(weights) + 16;
  const isCut = size > gpu.device.limits.maxBufferSize;
  const store = isCut ? new (await import("./singe-cut-weights.js")).CutWeights(gpu, program) : new Weights(gpu, size);
  const create = async () => {
    const pipelines = new Pipelines(gpu.device, program, variants, await texts, files);
    await hosted;
    const device = new Device(gpu, program, pipelines, store);
    const prepared = device.prepare(likely);
    ready(store); // after the pipelines, which take longer
    const isSlow = isSoftware(adapterInfo);
    if (isSlow) import("./singe-software.js").then(({ warn }) => warn(adapterInfo, program, likely, pipelines.characters));
    await prepared;
    if (!isSlow && program.specialised.length) device.prepareAll(likelySizes(program, LIKELY)).catch(() => {}); // told by the run that needs one
    return device;
  };
  return (await Promise.all([create(), written.then(() => files.tell({ phase: "compile" }))]))[0];
}

/**
 * The sizes of a first run, as a guess: a batch of one, or of many.
 * @param {Program} program
 * @param {number} [batch]
 * @returns {Sizes}
 */
function likelySizes({ inputs, buffers, bounds, specialised }, batch = 1) {
  const named = inputs.flatMap((i) => buffers[i].shape.map((dim, k) => /** @type {[string, number]} */ ([sizeName(dim), k]))).filter(([name]) => name);
  const sizes = byName(Object.fromEntries(named.map(([name, k]) => [name, k ? (byName(bounds)[name] ?? LIKELY) : batch])), specialised[0]?.sizes);
  if (batch > 1 && named.length) sizes[named[0][0]] = batch; // of the first input, such as the tokens of a prompt
  return sizes;
}

/** @param {Dim} dim */
const isOpen = (dim) => typeof dim !== "number";

class Device {
  /**
   * Kind ↦ buffers, shared by all plans.
   * @type {Record<string, GPUBuffer[]>}
   */
  buffers = {};
  /**
   * Where outputs go to be read, and whether they are on their way.
   * @type {Map<GPUBuffer, boolean>}
   */
  #staging = new Map();
  /** When the last run ended. */
  #worked = -Infinity;
  /** How often a buffer grew: commands that were made before name the one that went. */
  grown = 0;
  /** @type {Recent<[sizes: Sizes], GpuPlan>} */
  #plans;
  /** @type {WeakMap<Program, { used: number[], copied: number[], placed: ProgramBuffer[] }>} */
  #sized = new WeakMap();

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
    this.#plans = new Recent(
      PLANS,
      (sizes) => new GpuPlan(this, sizes),
      (plan) => plan.free(),
      planKeys(program),
    );
  }

  /**
   * Make each of the shared buffers at least this large.
   * @param {Record<string, number[]>} areas
   */
  cover(areas) {
    for (const kind in areas) {
      const held = (this.buffers[kind] ??= []);
      areas[kind].forEach((bytes, k) => {
        if (held[k]?.size >= bytes) return;
        this.grown++;
        this.gpu.free(held[k]);
        delete held[k];
        held[k] = this.gpu.allocate(bytes);
      });
    }
  }

  /**
   * A buffer from which so many bytes of outputs are read, until `unstage`: this one, if it may be.
   * @param {number} bytes
   * @param {GPUBuffer} [wanted]
   */
  stage(bytes, wanted) {
    const idle = [...this.#staging.keys()].filter((buffer) => !this.#staging.get(buffer));
    const fits = idle.filter(({ size }) => size >= bytes);
    let found = wanted && fits.includes(wanted) ? wanted : fits[0];
    if (!found) {
      for (const buffer of idle) {
        this.#staging.delete(buffer);
        this.gpu.free(buffer);
      }
      found = this.gpu.allocate(Math.max(bytes, LEAST), USAGE.read | USAGE.target);
    }
    this.#staging.set(found, true);
    return found;
  }

  /** @param {GPUBuffer} buffer */
  unstage(buffer) {
    if (this.#staging.has(buffer)) this.#staging.set(buffer, false);
  }

  /**
   * The buffer that a run after the one that reads from `buffer` will read from, if these go on as they do.
   * @param {GPUBuffer} buffer
   */
  nextStage(buffer) {
    return [...this.#staging.keys()].find((other) => other !== buffer && this.#staging.get(other) && other.size === buffer.size) ?? buffer;
  }

  /**
   * What a part calls: its kernels, the groups of those that depend on sizes, and which buffers are copied that do; and one buffer of all
   * that take the same place and shape.
   * @param {Program} part
   */
  sized(part) {
    const { words, buffers, outputs } = part;
    const heads = headsOf(words);
    const found = this.#sized.get(part) ?? {
      used: [...new Set(heads.map((at) => words[at]))].filter((head) => head >= 0),
      copied: [...heads.flatMap((at) => (words[at] === COPY ? [words[at + 3]] : [])), ...outputs].filter((i) => buffers[i].shape.some(isOpen)),
      placed: [...new Map(buffers.map((buffer) => [JSON.stringify([buffer.place, buffer.shape, buffer.size]), buffer])).values()],
    };
    this.#sized.set(part, found);
    return { ...found, groups: found.used.map((k) => this.pipelines.at(k).groups).filter((dims) => dims.some(isOpen)) };
  }

  /**
   * Create what runs at these sizes need.
   * @param {Sizes} sizes
   */
  async prepare(sizes) {
    const needed = this.pipelines.missing(this.sized(partAt(this.program, sizes)).used, sizes);
    if (needed.length) await this.gpu.guard(() => this.pipelines.prepare(needed));
  }

  /**
   * Create the pipelines of all kernels of a program that runs at several sizes by design, as a decoder reads prompts of any length: its
   * first runs at other sizes need not wait for them. Those that likely sizes need come first, together; the others one after another.
   * @param {Sizes} likely
   */
  async prepareAll(likely) {
    const { used } = this.sized(this.program);
    for (const some of [this.pipelines.missing(used, likely), ...used.map((k) => [k])]) {
      await this.gpu.guard(() => Promise.all(some.map((k) => this.pipelines.create(k))));
    }
  }

  /**
   * Do something with the plan for these sizes, which may serve others, too. A failure drops all that runs made: some of it may be what
   * failed.
   * @template T
   * @param {Sizes} sizes
   * @param {(plan: GpuPlan) => T | Promise<T>} run
   * @returns {Promise<T>}
   */
  async #attempt(sizes, run) {
    try {
      if (!(this.#plans.has(sizes) && this.#plans.at(sizes).isAt(sizes))) await this.prepare(sizes);
      return await this.gpu.guard(() => {
        const plan = this.#plans.at(sizes);
        plan.resize(sizes);
        return run(plan);
      });
    } catch (error) {
      this.#plans.clear();
      [...this.#staging.keys(), ...Object.values(this.buffers).flat()].forEach((buffer) => this.gpu.free(buffer));
      this.buffers = {};
      this.#staging.clear();
      throw error;
    } finally {
      this.#worked = performance.now();
    }
  }

  get gpuDevice() {
    return this.gpu.device;
  }

  get software() {
    return Boolean(isSoftware(this.gpu.device.adapterInfo));
  }

  /** A GPU that has rested needs a while to wake up. */
  wake() {
    if (performance.now() - this.#worked > RESTS_AFTER_MS) this.gpuDevice.queue.submit([]);
  }

  get memory() {
    return { gpu: this.gpu.bytes, wasm: 0, js: 0 };
  }

  /**
   * Inputs are arrays or GPU buffers.
   * @param {GivenInput[]} inputs
   * @param {Sizes} sizes
   * @param {Wanted} wanted
   * @param {GPUBuffer[]} [states]
   * @param {() => void} [submitted] called when a later run over states may begin
   * @returns {Promise<Answer[]>}
   */
  async run(inputs, sizes, wanted, states = [], submitted) {
    const kept = await this.#kept(inputs, wanted);
    return this.#attempt(sizes, (plan) => plan.run(inputs, wanted, states, kept, submitted));
  }

  /**
   * singe-gpu-io.js, which handles all but arrays in, new arrays out.
   * @param {GivenInput[]} inputs
   * @param {Wanted} wanted
   */
  #kept(inputs, wanted) {
    return wanted !== "data" || !inputs.every(ArrayBuffer.isView) ? import("./singe-gpu-io.js") : undefined;
  }

  /**
   * A run whose outputs nobody needs: when its inputs were written, and its commands.
   * @param {GivenInput[]} inputs
   * @param {Sizes} sizes
   * @param {GPUBuffer[]} [states]
   */
  async timed(inputs, sizes, states = []) {
    const kept = await this.#kept(inputs, "data");
    return this.#attempt(sizes, async (plan) => {
      plan.collected = [];
      await plan.run(inputs, "data", states, kept);
      const { written, commands, collected } = plan;
      plan.collected = undefined;
      return { written, commands: commands ?? collected };
    });
  }

  dispose() {
    this.gpu.dispose();
  }

  // --- states

  /** @param {number} k */
  #bytes(k) {
    return align(bytesOf(this.program.buffers[this.program.states[k].buffer], {}), 4);
  }

  newStates() {
    const states = this.program.states.map((_, k) => this.gpu.allocate(Math.max(LEAST, this.#bytes(k))));
    this.#fill(states);
    return states;
  }

  /** @param {GPUBuffer[]} states */
  resetStates(states) {
    return this.gpu.guard(() => this.#fill(states));
  }

  /**
   * Write the initial values.
   * @param {GPUBuffer[]} states
   */
  #fill(states) {
    this.#copy((commands) => {
      this.program.states.forEach(({ initial }, k) => {
        if (initial === null) return commands.clearBuffer(states[k]);
        const { buffer, offset } = this.weights.binding(this.program.buffers[initial].place[1], 0);
        commands.copyBufferToBuffer(buffer, offset, states[k], 0, this.#bytes(k));
      });
    });
  }

  /** @param {GPUBuffer[]} states */
  copyStates(states) {
    return this.gpu.guard(() => {
      const copies = this.newStates();
      this.#copy((commands) => states.forEach((from, k) => commands.copyBufferToBuffer(from, 0, copies[k], 0, from.size)));
      return copies;
    });
  }

  /**
   * @param {GPUBuffer[]} states
   * @param {number} k
   */
  readState(states, k) {
    const buffer = this.program.buffers[this.program.states[k].buffer];
    return this.gpu.guard(() => this.fetch(states[k], { ...buffer, count: countOf(/** @type {number[]} */ (buffer.shape)) }));
  }

  /**
   * @param {GPUBuffer[]} states
   * @param {number} k
   * @param {TypedArray} data
   */
  writeState(states, k, data) {
    const wide = padded(widen(data, this.program.buffers[this.program.states[k].buffer]));
    return this.gpu.guard(() => this.gpu.device.queue.writeBuffer(states[k], 0, wide));
  }

  /** @param {GPUBuffer[]} states */
  freeStates(states) {
    states.forEach((buffer) => this.gpu.free(buffer));
  }

  /** @param {(commands: GPUCommandEncoder) => void} fill */
  #copy(fill) {
    const commands = this.gpu.device.createCommandEncoder();
    fill(commands);
    this.gpu.device.queue.submit([commands.finish()]);
  }

  /**
   * The first elements of a buffer, in a new array.
   * @param {GPUBuffer} buffer
   * @param {Pick<SizedOutput, "dtype" | "size" | "count">} output
   * @param {number} [offset]
   */
  async fetch(buffer, { dtype, size, count }, offset = 0) {
    const { gpu } = this;
    const bytes = align(count * size, 4);
    if (!bytes) return new ARRAYS[dtype](0);
    const staging = gpu.allocate(bytes, USAGE.read | USAGE.target);
    try {
      this.#copy((commands) => commands.copyBufferToBuffer(buffer, offset, staging, 0, bytes));
      await mapped(gpu.device, staging);
      return elementsOf(staging.getMappedRange(), 0, { dtype, size, count });
    } finally {
      gpu.free(staging);
    }
  }
}
