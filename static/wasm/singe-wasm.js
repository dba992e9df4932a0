/**
 * The device "wasm": one linear memory for a model, and the module that works in it.
 *
 * Contract: `open(target, files)` gives { memory, run, dispose } and the functions of states: `newStates()` returns a
 * handle, the address of a session's states, which `run` takes. The memory holds 256 unused bytes, the weights, the states
 * of sessions, then a run's slots, inputs, outputs and words. It grows to the largest run.
 */

/** @import { TypedArray } from "../types/public.d.ts" */
/** @import { Answer, AnyElements, Handle, Sizes, SizedOutput, Target, Wanted, WasmCaller, WasmFunctions, WasmParts } from "../types/program.d.ts" */
/** @import * as made from "../program/singe-outputs.js" */
/** @import { Gathered } from "./singe-threads.js" */
/** @import { Files } from "../loading/singe-files.js" */

import { ARRAYS, Recent, SingeError, align, bytesOf, chooseVariant, countOf, spanOf, sumOf } from "../program/singe-format.js";
import { prepareHost } from "../program/singe-plan.js";
import { START, WasmPlan, grow } from "./singe-wasm-plan.js";

const PLANS = 8;
/** Runs of this length, for this time in a row: other threads may help. */
const SLOW_MS = { run: 2, row: 300 };

/**
 * A feature ↦ the smallest module that needs it.
 * @type {Record<string, number[]>}
 */
const PROBES = {
  simd: [1, 5, 1, 96, 0, 1, 123, 3, 2, 1, 0, 10, 10, 1, 8, 0, 65, 0, 253, 15, 253, 98, 11],
  "relaxed-simd": [1, 5, 1, 96, 0, 1, 123, 3, 2, 1, 0, 10, 15, 1, 13, 0, 65, 1, 253, 15, 65, 2, 253, 15, 253, 128, 2, 11],
};
const HEAD = [0, 97, 115, 109, 1, 0, 0, 0];

export function features() {
  const has = (/** @type {string} */ name) => WebAssembly.validate(new Uint8Array([...HEAD, ...PROBES[name]]));
  return new Set(Object.keys(PROBES).filter(has));
}

/**
 * @param {Target} target
 * @param {Files} files
 * @param {GPUDevice | undefined} _gpuDevice
 * @param {number} threads
 */
export async function open({ program, modules, weights }, files, _gpuDevice, threads) {
  const able = typeof WebAssembly === "object" ? features() : new Set();
  if (!able.has("simd")) throw new SingeError("device", "this engine has no WebAssembly SIMD");
  const entries = program.kernels.map((kernel) => chooseVariant(kernel, able).entry.split(":"));
  const [name] = entries[0] ?? ["simd"];
  if (!Object.hasOwn(modules, name)) throw new SingeError("format", `the bundle has no module ${name}`);
  const hosted = prepareHost(program); // beside the files
  hosted.catch(() => {});
  const { length } = program.kernels;
  files.expect([modules[name], ...weights], length);
  const base = START + align(sumOf(weights));
  const {
    team,
    memory = new WebAssembly.Memory({ initial: 0 }),
    from = files,
  } = threads === 1 ? /** @type {Gathered} */ ({}) : (await import("./singe-threads.js")).gather(threads, files, base);
  grow({ memory }, base, "");
  const code = from.bytes(modules[name]);
  const written = from.each(weights, (file, at) => from.into(file, new Uint8Array(/** @type {ArrayBuffer} */ (memory.buffer), START + at, spanOf(file))));
  const [{ module, exports }] = await Promise.all([code.then((bytes) => link(name, bytes, memory)), Promise.all([code, written]).then(() => files.tell({ phase: "compile" }))]);
  files.tell({ compiled: length });
  const names = entries.map((entry) => entry[1]);
  const takes = program.kernels.map(({ ports, sizes }, k) => [names[k], ports + sizes.length + 2]);
  for (const [name, count] of [["run", 2], ...takes]) {
    if (exports[name]?.length !== count) throw new SingeError("format", `the module has no function ${name} of ${count} arguments`);
  }
  await team?.start({ module, exports, names });
  await hosted;
  return new Device({ program, memory, run: exports.run, names, base, team });
}

/**
 * @param {string} name
 * @param {Uint8Array<ArrayBuffer>} bytes
 * @param {WebAssembly.Memory} memory
 */
async function link(name, bytes, memory) {
  try {
    const module = await WebAssembly.compile(bytes);
    return { module, exports: /** @type {WasmFunctions} */ (new WebAssembly.Instance(module, { env: { memory } }).exports) };
  } catch (cause) {
    const allowed = await WebAssembly.compile(new Uint8Array(HEAD)).catch(() => {});
    if (allowed) throw new SingeError("format", `the module ${name} does not link: ${/** @type {Error} */ (cause).message}`, cause);
    throw new SingeError("device", "WebAssembly needs 'wasm-unsafe-eval' in the page's script-src", cause);
  }
}

/** @typedef {Device} WasmRunner */

class Device {
  /** @type {typeof made.arraysFor | undefined} */
  #into;
  #slow = 0;
  /**
   * Of the sizes that are not bounded, and of states: their plan serves all others.
   * @type {Recent<[unbounded: Sizes, states?: Handle], WasmPlan>}
   */
  #plans = new Recent(PLANS, (_, states) => this.#planned(this.#sizes, states));
  /**
   * Of the latest run.
   * @type {Sizes}
   */
  #sizes = {};
  /**
   * The offset of each state from a session's address, and their total bytes.
   * @type {number[]}
   */
  #offsets;
  /**
   * Addresses of sessions that ended.
   * @type {number[]}
   */
  #free = [];

  /** @param {WasmParts} parts */
  constructor(parts) {
    const { states, buffers } = parts.program;
    let end = 0;
    this.parts = parts;
    this.#offsets = [0, ...states.map(({ buffer }) => (end += align(bytesOf(buffers[buffer], {}))))];
  }

  get memory() {
    return { gpu: 0, wasm: this.parts.memory?.buffer.byteLength ?? 0, js: 0 };
  }

  get threads() {
    return this.parts.team?.threads;
  }

  get slow() {
    return this.#slow > SLOW_MS.row;
  }

  /**
   * Typed arrays of the dtypes' own elements in; { data, shape, dtype } out.
   * @param {TypedArray[]} inputs
   * @param {Sizes} sizes
   * @param {Wanted} wanted
   * @param {Handle} [states]
   */
  run(inputs, sizes, wanted, states) {
    return this.runBy(undefined, inputs, sizes, wanted, states);
  }

  /**
   * `run` where `by` makes the calls itself.
   * @param {WasmCaller | undefined} by
   * @param {TypedArray[]} inputs
   * @param {Sizes} sizes
   * @param {Wanted} wanted
   * @param {Handle} [states]
   * @returns {Promise<Answer[]>}
   */
  async runBy(by, inputs, sizes, wanted, states) {
    const { program, memory } = this.parts;
    const plan = this.#plan(sizes, states);
    const arraysFor = wanted === "data" ? () => [] : (this.#into ??= (await import("../program/singe-outputs.js")).arraysFor);
    plan.begin();
    let into = arraysFor(plan.outputs, wanted); // those of late sizes come after the run
    inputs.forEach(({ buffer, byteOffset, byteLength }, k) => {
      new Uint8Array(memory.buffer).set(new Uint8Array(buffer, byteOffset, byteLength), plan.addresses[program.inputs[k]]);
    });
    const fresh = into.length ? [] : plan.outputs.map((output, k) => answerFor(output, k));
    const start = performance.now();
    try {
      await plan.run([...fresh], by);
    } catch (cause) {
      if (/** @type {SingeError} */ (cause).code) throw cause;
      throw new SingeError("format", `a kernel trapped: ${/** @type {Error} */ (cause).message}`, cause);
    }
    const took = performance.now() - start;
    this.#slow = took > SLOW_MS.run ? this.#slow + took : 0;
    if (plan.late.size) into = arraysFor(plan.outputs, wanted);
    return plan.outputs.map((output, k) => {
      const answer = fresh[k] ?? answerFor(output, k, into);
      const { dtype, index, count } = output;
      /** @type {AnyElements} */ (answer.data).set(/** @type {AnyElements} */ (new ARRAYS[dtype](memory.buffer, plan.addresses[index], count)));
      return answer;
    });
  }

  /**
   * @param {Sizes} sizes
   * @param {Handle | undefined} states
   */
  #plan(sizes, states) {
    const { bounds, specialised } = this.parts.program;
    const isOpen = (/** @type {string} */ name) => Object.hasOwn(bounds, name) && !specialised.some((part) => Object.hasOwn(part.sizes, name));
    this.#sizes = sizes;
    const plan = this.#plans.at(Object.fromEntries(Object.entries(sizes).filter(([name]) => !isOpen(name))), states);
    return plan.refit(sizes) ? plan : this.#planned(sizes, states);
  }

  /**
   * @param {Sizes} sizes
   * @param {Handle | undefined} states
   */
  #planned(sizes, states) {
    return new WasmPlan(this.parts, sizes, this.#placed(states));
  }

  dispose() {
    this.parts.team?.dispose();
    this.parts = /** @type {WasmParts} */ ({});
    this.#plans.clear(); // they hold the memory
  }

  // --- states

  /**
   * Where a session's states are.
   * @param {Handle | undefined} states
   */
  #placed(states) {
    return this.#offsets.map((offset) => Number(states) + offset);
  }

  /** The bytes of a session's states. */
  get #size() {
    return this.#offsets[this.#offsets.length - 1];
  }

  newStates() {
    const end = this.parts.memory.buffer.byteLength;
    const address = this.#free.pop() ?? this.#extend();
    this.resetStates(address, end);
    return address;
  }

  /** Allocate memory for one more session. It comes before that of runs, so their plans are made again. */
  #extend() {
    const address = this.parts.base;
    const end = address + this.#size;
    grow(this.parts, end, "");
    this.parts.base = end;
    this.#plans.clear();
    return address;
  }

  /**
   * @param {number} address
   * @param {number} [end] where memory begins that is new: it is zero, and takes no room until it is written
   */
  resetStates(address, end = Infinity) {
    const { program, memory } = this.parts;
    const bytes = new Uint8Array(memory.buffer);
    program.states.forEach(({ initial }, k) => {
      const [from, to] = [address + this.#offsets[k], address + this.#offsets[k + 1]];
      if (initial === null) return void bytes.fill(0, from, Math.min(to, end));
      const start = START + program.buffers[initial].place[1];
      bytes.copyWithin(from, start, start + bytesOf(program.buffers[initial], {}));
    });
  }

  /** @param {number} address */
  copyStates(address) {
    const copy = this.#free.pop() ?? this.#extend();
    new Uint8Array(this.parts.memory.buffer).copyWithin(copy, address, address + this.#size);
    return copy;
  }

  /**
   * A view of a state's elements.
   * @param {number} address
   * @param {number} k
   */
  #view(address, k) {
    const { program, memory } = this.parts;
    const { dtype, shape } = program.buffers[program.states[k].buffer];
    return new ARRAYS[dtype](memory.buffer, address + this.#offsets[k], countOf(/** @type {number[]} */ (shape)));
  }

  /**
   * @param {number} address
   * @param {number} k
   */
  readState(address, k) {
    return this.#view(address, k).slice();
  }

  /**
   * @param {number} address
   * @param {number} k
   * @param {TypedArray} data
   */
  writeState(address, k, data) {
    /** @type {AnyElements} */ (this.#view(address, k)).set(/** @type {AnyElements} */ (data));
  }

  /** @param {number} address */
  freeStates(address) {
    this.#free.push(address);
  }
}

/**
 * An output with room for its elements, in an array of the caller's if there is one.
 * @param {SizedOutput} output
 * @param {number} k
 * @param {(TypedArray | undefined)[]} [into]
 * @returns {{ data: TypedArray, shape: number[], dtype: SizedOutput["dtype"] }}
 */
const answerFor = ({ count, shape, dtype }, k, into) => ({ data: into?.[k] ?? new ARRAYS[dtype](count), shape: [...shape], dtype });
