/**
 * The device "wasm": one linear memory for a model, and the module that works in it.
 *
 * Contract: `open(target, files)` gives { memory, run, dispose }. The memory holds 256 unused bytes, the weights, then a
 * run's slots, inputs, outputs and calls. It grows to the largest run.
 */

/** @import { Answer, PlainParts, SharedCalls, SizedOutput, Sizes, Target, Wanted, WasmCaller, WasmFlowCaller, WasmFunctions, WasmParts, WasmRun, AnyElements, Handle } from "../types/program.d.ts" */
/** @import { TypedArray } from "../types/public.d.ts" */
/** @import * as made from "../program/singe-outputs.js" */
/** @import { Gathered } from "./singe-threads.js" */
/** @import { FlowPlan } from "./singe-wasm-flow.js" */
/** @import { Files } from "../loading/singe-files.js" */

import { ARRAYS, Recent, SingeError, align, areasOf, bytesOf, chooseVariant, evaluate, isPlain, outputsOf, spanOf, sumOf } from "../program/singe-format.js";

const PAGE = 65536;
const START = 256;
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
  const flow = isPlain(program) ? undefined : import("./singe-wasm-flow.js");
  flow?.catch(() => {}); // beside the files
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
  await team?.start({ program, module, exports, names });
  const parts = { program, memory, run: exports.run, names, base, team };
  return flow ? (await flow).openFlow({ Device, START, grow }, parts) : new Device(parts);
}

/**
 * Let the memory have so many bytes. If an automatic choice of threads is what limits it, the model is opened again without.
 * @param {Pick<WasmParts, "memory"> & Partial<WasmParts>} parts
 * @param {number} bytes
 * @param {string} [advice]
 */
function grow({ memory, team, program }, bytes, advice = "run less at a time, or ") {
  const held = memory.buffer.byteLength;
  try {
    if (bytes > held) memory.grow(Math.ceil((bytes - held) / PAGE));
  } catch (cause) {
    const code = team?.automatic && !program?.states.length ? "lost" : "device";
    const text = `no WebAssembly memory of ${bytes} bytes here, ${held} are held: ${advice}load the model with `;
    throw new SingeError(code, text + (team ? "threads: 1" : 'device: "webgpu"'), cause);
  }
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

/** @typedef {typeof Device} DeviceClass */
/** @typedef {Device} WasmRunner */
/** @typedef {typeof grow} Grow */

class Device {
  /** @type {typeof made.arraysFor | undefined} */
  #into;
  #slow = 0;
  /** @type {Recent<[sizes: Sizes, states?: Handle], WasmRun | FlowPlan>} */
  plans = new Recent(PLANS, (...given) => this.plan(...given));

  /** @param {WasmParts} parts */
  constructor(parts) {
    this.parts = parts;
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
   * Typed arrays of the dtypes' own elements in; { data, shape, dtype } out. `by` makes the calls itself.
   * @param {TypedArray[]} inputs
   * @param {Sizes} sizes
   * @param {Wanted} wanted
   * @param {Handle} [states]
   * @param {WasmCaller | WasmFlowCaller} [by]
   * @returns {Promise<Answer[]>}
   */
  async run(inputs, sizes, wanted, states, by) {
    const { program, memory, run, team } = this.parts;
    const plan = this.plans.at(sizes, states);
    const { addresses, words, marks, outputs } = plan;
    const into = wanted === "data" ? [] : (this.#into ??= (await import("../program/singe-outputs.js")).arraysFor)(outputs, wanted);
    new Int32Array(memory.buffer, marks[0]).set(words);
    inputs.forEach(({ buffer, byteOffset, byteLength }, k) => {
      new Uint8Array(memory.buffer).set(new Uint8Array(buffer, byteOffset, byteLength), addresses[program.inputs[k]]);
    });
    /** @type {(output: SizedOutput, k: number) => { data: TypedArray, shape: number[], dtype: SizedOutput["dtype"] }} */
    const empty = ({ count, shape, dtype }, k) => ({ data: into[k] ?? new ARRAYS[dtype](count), shape: [...shape], dtype });
    const answers = outputs.map(empty);
    const fresh = into.length ? [] : answers;
    const start = performance.now();
    try {
      await (plan.go
        ? plan.go(fresh, /** @type {WasmFlowCaller} */ (by))
        : by
          ? /** @type {WasmCaller} */ (by)(plan, run)
          : team
            ? team.run(plan, fresh)
            : run(marks[0], /** @type {number} */ (marks.at(-1))));
    } catch (cause) {
      if (/** @type {SingeError} */ (cause).code) throw cause;
      throw new SingeError("format", `a kernel trapped: ${/** @type {Error} */ (cause).message}`, cause);
    }
    const took = performance.now() - start;
    this.#slow = took > SLOW_MS.run ? this.#slow + took : 0;
    return plan.outputs.map((output, k) => {
      const answer = answers[k] ?? empty(output, k);
      /** @type {AnyElements} */ (answer.data).set(/** @type {AnyElements} */ (new ARRAYS[output.dtype](memory.buffer, addresses[output.index], output.count)));
      return answer;
    });
  }

  /** @type {(sizes: Sizes, states?: Handle) => WasmRun | FlowPlan} */
  plan(sizes) {
    const { program, names, base } = this.parts;
    const { buffers, kernels } = program;
    let end = base;
    /** @type {Record<string, number[]>} */
    const starts = {};
    for (const [kind, areas] of Object.entries(areasOf(program, sizes))) {
      starts[kind] = areas.map((bytes) => (end += bytes) - bytes);
    }
    const addresses = buffers.map(({ place: [kind, k] }) => (kind === "weights" ? START + k : starts[kind][k]));
    // What `run` reads: a function's number (-1: copy), how many arguments, and these.
    /** @type {number[]} */
    const words = [];
    const marks = [end];
    const given = /** @type {PlainParts[]} */ (/** @type {unknown} */ (program.steps)).map(({ do: what, kernel, buffers: ports, source, target }) => {
      /** @type {[number, number[], number[]]} */
      const [number, places, values] =
        what === "copy"
          ? [-1, [target, source], [bytesOf(buffers[source], sizes)]]
          : [Number(names[kernel].slice(1)), ports, kernels[kernel].sizes.map((dim) => evaluate(dim, sizes))];
      const step = [...places.map((i) => addresses[i]), ...values];
      words.push(number, step.length, ...step);
      marks.push(marks[0] + 4 * words.length);
      return step;
    });
    end = align(/** @type {number} */ (marks.at(-1)));
    grow(this.parts, end);
    return { sizes, steps: program.steps, addresses, words, marks, given, end, outputs: outputsOf(program, sizes) };
  }

  dispose() {
    this.parts.team?.dispose();
    this.parts = /** @type {WasmParts} */ ({});
    this.plans.clear(); // those of programs with flow hold the memory
  }
}
