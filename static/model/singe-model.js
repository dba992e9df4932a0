/**
 * A loaded model: its device, the order of its runs, and the checks of its inputs.
 *
 * Contract: `loadHere(folder, options)` is `load` of singe.js, with checked options. A lost device is opened again,
 * once for each run. With "auto" a device that fails gives way to the other, and singe-auto.js decides after a first run.
 */

/** @import { DType, Input, LoadOptions, Port, State, TypedArray } from "../types/public.d.ts" */
/** @import { Answer, BoundInputs, Device, Dim, DeviceModule, DeviceName, GivenInput, Handle, LanguageFacts, Manifest, ModelState, Program, ProgramBuffer, Sizes, Unchecked, Wanted } from "../types/program.d.ts" */

/** @import * as types from "../types/public.d.ts" */
/** @import { OneSession } from "./singe-session.js" */

/** @typedef {types.Model} PublicModel */
/** @typedef {{ data: GivenInput, shape?: number[], count: number, exact: boolean }} Given */
/** @typedef {Given &  { shape: number[] }} BoundTensor */

import { Files } from "../loading/singe-files.js";
import { runWith, checkNames, keyless, stateless } from "../program/singe-arguments.js";
import { checkManifest, checkTarget } from "../program/singe-checks.js";
import { ARRAYS, SingeError, byName, copyOf, countOf, evaluate, shownShape, sizeName, textOf } from "../program/singe-format.js";

/**
 * A device's name ↦ its module, and the target that its programs are for.
 * @type {Record<DeviceName, { kind: "wasm" | "wgsl", module(): Promise<DeviceModule> }>}
 */
const DEVICES = {
  wasm: { kind: "wasm", module: () => import("../wasm/singe-wasm.js") },
  webgpu: { kind: "wgsl", module: () => import("../webgpu/singe-webgpu.js") },
};

/**
 * begin: called for a bundle with `language` before its weights come; may load it in a worker, if one starts.
 * @param {URL} folder
 * @param {LoadOptions} options
 * @param {(language: LanguageFacts) => false | undefined | Promise<PublicModel | undefined>} [begin]
 * @returns {Promise<PublicModel>}
 */
export async function loadHere(folder, options, begin) {
  const { device = "auto", cache = true, onProgress, onDevice, signal, gpuDevice } = options;
  const threads = (globalThis.crossOriginIsolated ?? globalThis.process) ? (options.threads ?? 0) : 1;
  const files = new Files(folder, cache, signal, onProgress);
  const guess = DEVICES[/** @type {DeviceName} */ (device)] ?? DEVICES.wasm;
  const early = guess.module().then((module) => (gpuDevice ?? module.prepare?.(), module)); // beside the manifest
  early.catch(() => {});
  if (threads > 1 && guess === DEVICES.wasm) import("../wasm/singe-threads.js").catch(() => {});
  /** @type {Model | undefined} */
  let model;
  try {
    const manifest = await checkManifest(await files.manifest("model.json"));
    const { language, targets } = manifest;
    const there = language && (await begin?.(language));
    if (there) {
      files.stop(true);
      return there;
    }
    const first = device !== "auto" ? device : targets.wasm ? "wasm" : "webgpu"; // WebAssembly if the bundle has it
    if (!targets[first]) (await import("./singe-advice.js")).refuseDevice(first, targets);
    /** @type {ModelState["open"]} */
    const open = async (name, from = new Files(folder, cache), count = threads || 1) => {
      const target = await checkTarget(manifest, name, DEVICES[name].kind, from);
      const { open } = await (name === device ? early : DEVICES[name].module());
      return new Opened(name, target.program, await open(target, from, gpuDevice, count));
    };
    const auto = device === "auto" && targets.wasm && targets.webgpu && globalThis.navigator?.gpu;
    const store = auto ? await files.store : undefined;
    const known = (await store?.recall())?.device;
    const tell = (/** @type {"ready"} */ phase) => queueMicrotask(() => files.tell({ phase }));
    model = new Model(manifest, { open, auto, threads, store, onDevice, gpuDevice, tell });
    await model.start(/** @type {DeviceName} */ (Object.hasOwn(DEVICES, /** @type {string} */ (known)) ? known : first), files);
    files.tell({ phase: "ready" });
    files.stop(true);
    return /** @type {PublicModel} */ (/** @type {unknown} */ (model));
  } catch (error) {
    files.stop();
    model?.dispose();
    await import("./singe-advice.js").then(({ advise }) => advise(/** @type {SingeError} */ (error), folder)).catch(() => {});
    if (!(globalThis.ServiceWorkerGlobalScope && error instanceof TypeError)) throw error;
    const advice = "in a service worker all scripts must be one file: bundle them, as esbuild --bundle does";
    throw new SingeError("device", `${advice} (${error.message})`, error);
  }
}

export class Opened {
  /**
   * @param {DeviceName} name
   * @param {Program} program
   * @param {Device} device
   */
  constructor(name, program, device) {
    this.name = name;
    this.program = program;
    this.device = device;
  }

  /**
   * @param {BoundInputs} inputs
   * @param {Wanted} outputs
   * @param {Handle} [states]
   * @param {() => void} [submitted] called when a later run over states may begin
   * @returns {Promise<Record<string, Answer>>}
   */
  async run(inputs, outputs, states, submitted) {
    const { buffers, outputs: found } = this.program;
    const { given, sizes } = await bind(this, inputs);
    const names = found.map((i) => buffers[i].name);
    if (Object(outputs) === outputs && !Array.isArray(outputs)) await checkNames(/** @type {object} */ (outputs), names, "output", "this model gives");
    const results = await this.device.run(given, sizes, outputs, states, submitted);
    return Object.fromEntries(names.map((name, k) => [name, results[k]]));
  }
}

export class Model {
  worker = false;
  /** @type {State[]} */
  states = [];
  /**
   * From `loadHere`; now: the open device; tell: reports the phases of the first run, until it is made; for singe-auto.js,
   * rival: the other device, and seen: the last inputs.
   * @type {ModelState}
   */
  #state;
  /**
   * When all that was asked for has ended, and when the next run may begin: what comes before it was given to the device.
   * @type {Promise<unknown>}
   */
  #last = Promise.resolve();
  /** @type {Promise<unknown>} */
  #given = this.#last;
  /**
   * While a device is opened in the place of one that failed.
   * @type {Promise<void> | undefined}
   */
  #reopened;
  /** @type {Promise<void> | undefined} */
  #disposed;

  /**
   * @param {Manifest} manifest
   * @param {Omit<ModelState, "now" | "inTurn">} given
   */
  constructor({ name, image, labels, language, task, inputs, outputs }, given) {
    const facts = { ...(language && { language }), ...(task && { task }) };
    Object.assign(this, { name, image, labels, ...facts, inputs: inputs.map(describe), outputs: outputs.map(describe) });
    this.#state = /** @type {ModelState} */ ({ ...given, inTurn: (task) => this.#inTurn(task) });
  }

  /**
   * Open a device, or the other if it fails and the choice is ours.
   * @param {DeviceName} name
   * @param {Files} [files]
   */
  async start(name, files) {
    const state = this.#state;
    const before = state.now?.name ?? name;
    try {
      state.now = await state.open(name, files);
    } catch (error) {
      if (!state.auto || !["device", "lost"].includes(/** @type {SingeError} */ (error).code)) throw error;
      const other = name === "wasm" ? "webgpu" : "wasm";
      state.now = await state.open(other, files).catch((then) => {
        if (then.code === "device") then.message = `${name}: ${/** @type {Error} */ (error).message}; ${other}: ${then.message}`;
        throw then;
      });
    }
    if (state.now.name !== before) this.#tell();
    if (state.sessions || !state.now.program.states.length) return;
    state.sessions = new (await import("./singe-session.js")).Sessions(this, state);
    this.states = state.sessions.states;
  }

  #tell() {
    queueMicrotask(() => this.#state.onDevice?.(this.device));
  }

  get device() {
    return this.#state.now.name;
  }

  get threads() {
    return this.#state.now.device.threads ?? 1;
  }

  get software() {
    return this.#state.now.device.software ?? false;
  }

  get memory() {
    const { now, rival } = this.#state;
    const held = (/** @type {"gpu" | "wasm" | "js"} */ kind) => now.device.memory[kind] + (rival?.device.memory[kind] ?? 0);
    return { gpu: held("gpu"), wasm: held("wasm"), js: held("js") };
  }

  get gpuDevice() {
    return this.#state.now.device.gpuDevice;
  }

  /** @type {(batch: Record<string, Input>, options?: { outputs?: Wanted, signal?: AbortSignal }) => Promise<Record<string, Answer>>} */
  async step() {
    throw stateless();
  }

  /** @type {(seed: number | bigint) => Promise<void>} */
  async seed() {
    throw keyless();
  }

  session() {
    this.#check();
    const { sessions } = this.#state;
    if (sessions) return sessions.open();
    throw stateless();
  }

  /**
   * @param {Record<string, Input>} inputs
   * @param {{ outputs?: Wanted, signal?: AbortSignal }} [options]
   * @param {OneSession} [session]
   * @returns {Promise<Record<string, Answer>>}
   */
  async run(inputs, options, session = this.#state.sessions?.own) {
    const { outputs = "data", signal } = options ?? {};
    if (outputs === "data") this.#state.now.device.wake?.();
    let bound = /** @type {BoundInputs} */ (inputs);
    const turn = async (/** @type {() => void} */ given) => (signal?.aborted ? {} : this.#attempt((bound = await this.#elements(inputs)), outputs, session, given));
    const results = await runWith(options, () => this.#inTurn(turn, true));
    this.#improve(bound).catch(() => {}); // the choice stays
    return results;
  }

  /** Whether the last inputs are still read, to measure another device with. */
  get isMeasuring() {
    return Boolean(this.#state.seen);
  }

  /**
   * @param {Record<string, Input>} inputs
   * @param {{ seconds?: number }} [options]
   */
  async profile(inputs, options) {
    const { profile } = await import("./singe-profile.js");
    return this.#inTurn(async () => profile(this.#state.now, await bind(this.#state.now, await this.#elements(inputs)), options));
  }

  /**
   * Lists and pictures as typed arrays.
   * @param {Record<string, Input>} inputs
   * @returns {BoundInputs | Promise<BoundInputs>}
   */
  #elements(inputs) {
    if (isRecord(inputs) && ![inputs, ...Object.values(inputs)].some(isLoose)) return /** @type {BoundInputs} */ (inputs);
    return import("./singe-inputs.js").then(({ elementsOf }) => elementsOf(inputs, this.#state.now.program, /** @type {Unchecked} */ (this).image));
  }

  /**
   * Look for a faster device, once; then for threads.
   * @param {BoundInputs} inputs
   */
  async #improve(inputs) {
    const state = this.#state;
    if (state.auto && !state.decided && !state.sessions) {
      const first = !state.seen;
      state.seen = inputs;
      if (first && (await (await import("./singe-auto.js")).decide(state))) this.#tell();
    } else if (state.threads === 0 && state.now.device.slow) {
      state.threads = 1;
      await (await import("../wasm/singe-threads.js")).spread(state);
    }
  }

  /**
   * @param {BoundInputs} inputs
   * @param {Wanted} outputs
   * @param {OneSession | undefined} session
   * @param {() => void} given
   */
  async #attempt(inputs, outputs, session, given) {
    const { now, auto, gpuDevice, sessions, tell } = this.#state;
    const states = await sessions?.handleOf(/** @type {OneSession} */ (session));
    tell?.("run");
    try {
      const results = await now.run(inputs, outputs, states, given);
      this.#state.tell = undefined;
      return results;
    } catch (error) {
      const again = /** @type {SingeError} */ (error).code === "lost" && !gpuDevice;
      const isMoving = auto && now.name === "webgpu" && ["lost", "device"].includes(/** @type {SingeError} */ (error).code) && !sessions;
      const other = isMoving && outputs !== "gpu" && ![inputs, outputs].some(holdsGpuBuffer);
      if (!again && !other) throw error;
      if (this.#state.now === now) await (this.#reopened ??= this.#reopen(again ? now.name : "wasm", session));
      if (sessions) throw error;
      return await this.#state.now.run(inputs, outputs);
    } finally {
      tell?.("ready");
    }
  }

  /**
   * Open a device in the place of one that failed.
   * @param {DeviceName} name
   * @param {OneSession | undefined} session
   */
  async #reopen(name, session) {
    const { now, sessions } = this.#state;
    now.device.dispose();
    sessions?.lose(/** @type {OneSession} */ (session));
    try {
      await this.start(name);
    } finally {
      this.#reopened = undefined;
    }
  }

  dispose() {
    this.#state.disposed = true;
    this.#disposed ??= this.#inTurn(() => {
      const { now, rival } = this.#state;
      now?.device.dispose();
      rival?.device.dispose();
    });
    return this.#disposed;
  }

  #check() {
    if (this.#disposed) throw new SingeError("disposed", "the model was disposed of");
  }

  /**
   * Do a task after all that was asked for; a run, as soon as the device was given what comes before it.
   * @template T
   * @param {(given: () => void) => T | Promise<T>} task
   * @param {boolean} [isRun]
   * @returns {Promise<T>}
   */
  #inTurn(task, isRun = false) {
    this.#check();
    /** @type {() => void} */
    let given = () => {};
    const isGiven = new Promise((done) => (given = () => done(undefined)));
    const turn = (isRun ? this.#given : this.#last).then(() => task(given));
    const ended = turn.catch(() => {});
    this.#given = isRun ? Promise.race([isGiven, ended]) : ended;
    this.#last = Promise.all([this.#last, ended]);
    return turn;
  }
}

/** @param {unknown} value */
const isLoose = (value) =>
  Array.isArray(/** @type {{ data?: unknown } | null | undefined} */ (value)?.data ?? value) ||
  /^(Blob|File|Image|Video|HTML|Offscreen)/.test(/** @type {string} */ (value?.constructor?.name));

/**
 * @param {{ name: string, dtype: DType, shape: Dim[] }} port
 * @returns {Port}
 */
const describe = ({ name, dtype, shape }) => ({ name, dtype, shape: shownShape(shape) });

/**
 * The checked inputs: the data in the program's order, and the sizes from its shapes.
 * @param {{ name: string, program: Program }} opened
 * @param {BoundInputs} inputs
 */
async function bind({ name: device, program }, inputs) {
  const buffers = program.inputs.map((i) => program.buffers[i]);
  const names = buffers.map((b) => b.name);
  await checkNames(inputs, names, "input", "this model takes");
  const own = byName(inputs);
  for (const name of names) {
    if (isRecord(own[name])) await checkNames(own[name], KEYS, `key of input ${JSON.stringify(name)}`, "it takes");
  }
  const sizes = byName();
  const tensors = buffers.map((b) => /** @type {BoundTensor} */ (unpack(b, own[b.name], device === "webgpu")));
  tensors.forEach((tensor, k) => tensor.shape && learnSizes(buffers[k], tensor.shape, sizes));
  tensors.forEach((tensor, k) => (tensor.shape ??= infer(buffers[k], tensor, sizes)));
  tensors.forEach((tensor, k) => checkShape(buffers[k], tensor, sizes));
  if (program.ranges?.length) (await import("./singe-ranges.js")).checkRanges(program, tensors, sizes);
  return { given: tensors.map((tensor) => tensor.data), sizes };
}

/** @param {Dim[]} shape */
const show = (shape) => `(${shownShape(shape).join(", ")})`;

/**
 * @param {ProgramBuffer} buffer
 * @param {string} got
 */
const wrong = (buffer, got) => {
  const { name, dtype, shape } = buffer;
  const expected = `expected ${ARRAYS[dtype].name} (${dtype}) of shape ${show(shape)}`;
  return new SingeError("input", `input ${JSON.stringify(name)}: got ${got}, ${expected}`);
};

/**
 * @param {unknown} value
 * @returns {value is GPUBuffer}
 */
const isGpuBuffer = (value) => typeof GPUBuffer === "function" && value instanceof GPUBuffer;

/**
 * WebAssembly cannot run these: what is wrong may be the caller's buffer.
 * @param {unknown} tensors
 */
const holdsGpuBuffer = (tensors) => Object.values(Object(tensors)).some((value) => isGpuBuffer(value?.data ?? value));

/** What an input may have: an output has the first three. */
const KEYS = ["data", "shape", "dtype"];
/**
 * @param {unknown} value
 * @returns {value is { data: GivenInput }}
 */
const isRecord = (value) => Object(value) === value && !ArrayBuffer.isView(value) && !isGpuBuffer(value);

/**
 * A typed array, { data, shape, dtype } or a GPUBuffer as { data, shape?, count, exact }.
 * @param {ProgramBuffer} buffer
 * @param {unknown} value
 * @param {boolean} gpu
 * @returns {Given}
 */
function unpack(buffer, value, gpu) {
  let { data, shape, dtype } = /** @type {Unchecked} */ (isRecord(value) ? value : { data: value });
  if (![undefined, buffer.dtype].includes(dtype)) throw wrong(buffer, `the dtype ${textOf(dtype)}`);
  if (shape !== undefined && !(Array.isArray(shape) && shape.every((d) => Number.isSafeInteger(d) && d >= 0))) {
    throw wrong(buffer, `the shape ${textOf(shape)}`);
  }
  shape = shape && [...shape];
  if (gpu && isGpuBuffer(data)) return { data, shape, count: Math.floor(data.size / buffer.size), exact: false };
  const wanted = ARRAYS[buffer.dtype];
  try {
    const memory = data?.buffer; // devices take only what stays as it is
    if (memory && (memory.constructor !== ArrayBuffer || memory.resizable || !memory.byteLength)) data = copyOf(data);
  } catch {
    throw wrong(buffer, "a detached array");
  }
  if (buffer.dtype === "float16" && data?.constructor?.name === "Float16Array") {
    data = new Uint16Array(data.buffer, data.byteOffset, data.length);
  }
  if (!(data instanceof wanted)) throw wrong(buffer, data?.constructor?.name ?? textOf(data));
  if (buffer.dtype === "bool" && data.some((x) => x > 1)) throw wrong(buffer, "bools other than 0 and 1");
  return { data, shape, count: data.length, exact: true };
}

/**
 * @param {ProgramBuffer} buffer
 * @param {number[]} shape
 * @param {Sizes} sizes
 */
function learnSizes(buffer, shape, sizes) {
  if (shape.length !== buffer.shape.length) throw wrong(buffer, `the shape ${show(shape)}`);
  buffer.shape.forEach((dim, k) => {
    const name = sizeName(dim);
    if (name !== undefined && (sizes[name] ??= shape[k]) !== shape[k]) {
      throw wrong(buffer, `${name} = ${shape[k]}, which is ${sizes[name]} elsewhere`);
    }
  });
}

/**
 * The shape of an input without one: at most one dimension may be unknown.
 * @param {ProgramBuffer} buffer
 * @param {Given} tensor
 * @param {Sizes} sizes
 * @returns {number[]}
 */
function infer(buffer, { count }, sizes) {
  const value = (/** @type {Dim} */ dim) => {
    const name = sizeName(dim);
    return name !== undefined && !(name in sizes) ? undefined : evaluate(dim, sizes);
  };
  const shape = buffer.shape.map(value);
  const open = shape.flatMap((d, k) => (d === undefined ? [k] : []));
  if (open.length > 1) throw wrong(buffer, `no shape: give { data, shape }`);
  if (open.length === 1) {
    const rest = countOf(shape.filter((d) => d !== undefined));
    if (rest === 0 || count % rest !== 0) throw wrong(buffer, `${count} elements`);
    shape[open[0]] = count / rest;
    learnSizes(buffer, /** @type {number[]} */ (shape), sizes);
  }
  return /** @type {number[]} */ (shape);
}

/**
 * @param {ProgramBuffer} buffer
 * @param {BoundTensor} tensor
 * @param {Sizes} sizes
 */
function checkShape(buffer, { shape, count, exact }, sizes) {
  const same = shape.length === buffer.shape.length && buffer.shape.every((d, k) => evaluate(d, sizes) === shape[k]);
  if (!same) throw wrong(buffer, `the shape ${show(shape)}`);
  const wanted = countOf(shape);
  if (exact ? count !== wanted : count < wanted) throw wrong(buffer, `${count} elements for the shape ${show(shape)}`);
}
