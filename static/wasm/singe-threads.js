/**
 * The threads of the device "wasm": workers that share its memory and do their part of a run's steps.
 *
 * Contract: `gather(threads, files, bytes)` returns a team, whose `run(plan, fresh)` carries out a plan, by one call on one thread
 * or on several threads, with the same bits. The calling thread does steps that are too small to share, and whole runs
 * that are. If 0 threads are asked for, the first runs alternate between 1 thread and more; the fastest way is kept and
 * workers that it does not need are ended. If a worker dies between parts, nothing changes. If one dies or fails within a
 * part, the team ends and the run is an error of the code "lost"; the model is then opened again without a team.
 * `spread(state)` opens the device of a model with long runs again, with a team asked for 0 threads.
 */

/** @import { Answer, DispatchStep, ModelState, OpenDevice, PlainStep, Program, SharedCalls, Sizes, StatefulDevice, Step, ThreadJob, WasmFunctions, WeightsEntry } from "../types/program.d.ts" */
/** @import { TypedArray } from "../types/public.d.ts" */
/** @import { Files } from "../loading/singe-files.js" */

import { Barrier, LEAVE } from "./singe-barrier.js";
import { SingeError, align, bytesOf, evaluate } from "../program/singe-format.js";
import { fromFiles, sharedMemory } from "./singe-shared.js";
import { spawn } from "../loading/singe-spawn.js";
import { enough, pays } from "../program/singe-timing.js";

const PAGE = 65536;
const MOST = 8;
/** A step is shared if it takes one thread about this many microseconds: a few times as long as a barrier. */
const STEP_US = 2;
/** And if all such steps of the run, in all turns of a loop, take this many: waking a worker takes up to a millisecond. */
const RUN_US = 1500;
/** The most that the last parts of a step take. With smaller parts, threads mostly read what others wrote. */
const PART_US = 1000;
const MOST_CUTS = 6;
const SYSTEM_PAGE = 4096;
const FLOPS_PER_US = 60_000;
const BYTES_PER_US = 30_000;
const PATIENCE_MS = 2000;

const cores = () => globalThis.navigator?.hardwareConcurrency ?? process.getBuiltinModule("os").availableParallelism();
let broken = false;

/**
 * { team, memory, from }: the team, its memory for so many bytes of weights, and the function that loads files into it; {} if
 * there can be no team.
 * @param {number} threads
 * @param {Files} files
 * @param {number} bytes
 * @returns {Gathered}
 */
export function gather(threads, files, bytes) {
  const most = threads ? Math.min(threads, 2 * cores()) : Math.min(cores(), MOST);
  const memory = broken || cores() < 2 ? undefined : sharedMemory(bytes);
  if (!memory) return {};
  const counts = threads ? [most] : [...new Set([1, Math.ceil(most / 2), most])];
  return { team: new Team(counts, memory, threads === 0), memory, from: fromFiles(files) };
}

/**
 * state: what singe-model.js says.
 * @param {ModelState} state
 */
export async function spread(state) {
  let spare = await state.open("wasm", undefined, 0);
  try {
    await state.inTurn(() => {
      if (state.now.name !== "wasm" || state.disposed) return undefined;
      [state.now, spare] = [spare, state.now];
      return state.sessions?.move(/** @type {StatefulDevice} */ (spare.device), /** @type {StatefulDevice} */ (state.now.device));
    });
  } finally {
    spare.device.dispose();
  }
}

/** @typedef {Team} ThreadTeam */
/** @typedef {Pick<Files, "bytes" | "each"> & { into(file: WeightsEntry, view: Uint8Array<ArrayBuffer>): Promise<unknown> }} LoadsFiles */
/** @typedef {{ team?: Team, memory?: WebAssembly.Memory, from?: LoadsFiles }} Gathered */

class Team {
  /** @type {WebAssembly.Memory} */
  #memory;
  /**
   * The numbers of threads to try; a single one once that is decided.
   * @type {number[]}
   */
  #counts;
  /** @type {Program} */
  #program = /** @type {Program} */ (/** @type {unknown} */ (undefined));
  /** @type {WasmFunctions} */
  #exports = {};
  /** @type {string[]} */
  #names = [];
  #barrier = new Barrier();
  /** @type {ReturnType<typeof startThread>[]} */
  #workers = [];
  #plans = 0;

  /**
   * @param {number[]} counts
   * @param {WebAssembly.Memory} memory
   * @param {boolean} automatic
   */
  constructor(counts, memory, automatic) {
    this.#counts = counts;
    this.#memory = memory;
    this.automatic = automatic;
  }

  get threads() {
    return this.#counts.length === 1 ? this.#counts[0] : 1;
  }

  /**
   * Start workers for a program: its module, the module's exports and the kernels' names. If that fails, one thread does all.
   * @param {{ program: Program, module: WebAssembly.Module, exports: WasmFunctions, names: string[] }} given
   */
  async start({ program, module, exports, names }) {
    this.#program = program;
    this.#exports = exports;
    this.#names = names;
    const given = { memory: this.#memory, module, names, words: this.#barrier.words };
    try {
      for (let k = 1; k < Math.max(...this.#counts); k++) this.#workers.push(startThread());
      await Promise.all(this.#workers.map((worker) => worker.ask(given)));
    } catch {
      this.dispose();
    }
  }

  get isThere() {
    return this.#workers.length > 0;
  }

  /**
   * Bytes after a plan's end for the threads' workspaces.
   * @param {Program} program
   * @param {Step[]} steps
   * @param {Sizes} sizes
   */
  room(program, steps, sizes) {
    const spaces = steps.map((step) => numberOrZero(() => spaceOf(program, step, sizes)));
    return (Math.max(...this.#counts) - 1) * Math.max(0, ...spaces);
  }

  /**
   * plan: { program?, turns?, sizes, steps, given, marks, end }, the calls of a run or of a part of it, and how often a run makes
   * them. fresh: outputs with new arrays.
   * @param {SharedCalls} plan
   * @param {Answer[]} fresh
   */
  async run(plan, fresh) {
    const alone = () => this.#exports.run(plan.marks[0], /** @type {number} */ (plan.marks.at(-1)));
    plan.shared ??= this.#sharedSteps(plan);
    plan.took ??= plan.shared.reduce((sum, took) => sum + took, 0);
    if (!this.#workers.length || plan.took * (plan.turns ?? 1) <= RUN_US) return alone();
    const all = (plan.tried ??= new Map());
    for (const count of this.#counts) if (!all.has(count)) all.set(count, { times: [] });
    const at = (/** @type {number} */ count) => /** @type {{ job?: ThreadJob, times: number[] }} */ (all.get(count));
    const count = this.#counts.reduce((least, other) => (at(other).times.length < at(least).times.length ? other : least));
    const tried = at(count);
    if (count > 1 && !(tried.job ??= await this.#teach(plan, count))) {
      this.dispose();
      return alone();
    }
    const start = performance.now();
    if (count > 1) this.#together(/** @type {ThreadJob} */ (tried.job), () => fresh.forEach(({ data }) => touch(/** @type {TypedArray} */ (data))));
    else alone();
    if (this.#counts.length === 1) return;
    tried.times.push(performance.now() - start);
    this.#decide(all);
  }

  /** @param {Map<number, { times: number[] }>} tried */
  #decide(tried) {
    const ways = this.#counts.map((threads) => ({ threads, times: /** @type {{ times: number[] }} */ (tried.get(threads)).times.slice(1) })); // the first is cold
    if (!ways.every(({ times }) => enough(times))) return;
    const { threads } = ways.reduce((best, way) => (pays(best.times, way.times) ? way : best));
    this.#counts = [threads];
    for (const worker of this.#workers.splice(threads - 1)) worker.terminate();
    if (threads === 1) this.dispose();
  }

  dispose() {
    this.#counts = [1];
    this.#barrier.fail();
    this.#barrier.announce(LEAVE); // a worker that waits is slow to end
    for (const worker of this.#workers.splice(0)) worker.terminate();
  }

  // --- plans

  /**
   * The time of each step on one thread, in about microseconds; 0 if it is not shared.
   * @param {SharedCalls} plan
   */
  #sharedSteps({ sizes, steps }) {
    const { kernels } = this.#program;
    return steps.map((step) => {
      if (step.do !== "dispatch") return 0;
      const { flops, bytes } = kernels[step.kernel];
      const [computed, moved] = [flops, bytes].map((dim) => numberOrZero(() => evaluate(dim, sizes)));
      const took = computed / FLOPS_PER_US + moved / BYTES_PER_US;
      return took > STEP_US ? took : 0;
    });
  }

  /**
   * Send the workers a plan; { id, list }: what this thread does, shared steps by part; nothing if their memory is refused.
   * @param {SharedCalls} plan
   * @param {number} count
   * @returns {Promise<ThreadJob | undefined>}
   */
  async #teach(plan, count) {
    const { steps } = plan;
    const { kernels } = this.#program;
    const space = Math.max(...steps.map((step) => spaceOf(plan.program ?? this.#program, step, plan.sizes)));
    const missing = Math.ceil((plan.end + (count - 1) * space - this.#memory.buffer.byteLength) / PAGE);
    try {
      if (missing > 0) this.#memory.grow(missing);
    } catch {
      return undefined;
    }
    const list = plan.given.map((given, k) => {
      if (!plan.shared?.[k]) return { call: this.#exports.run, given: plan.marks.slice(k, k + 2) };
      const { kernel } = /** @type {DispatchStep} */ (steps[k]);
      const { ports, workspace } = kernels[kernel];
      const parts = cut(workspace ? 0 : plan.shared[k], count).map(([part, of]) => {
        const own = [...given, part, of];
        if (workspace && part) own[ports - 1] = plan.end + (part - 1) * space;
        return own;
      });
      return { call: this.#exports[this.#names[kernel]], kernel, parts };
    });
    const id = this.#plans++;
    const shared = list.flatMap(({ kernel, parts }) => (parts ? [{ kernel, parts }] : []));
    this.#barrier.announce(LEAVE);
    const { seen } = this.#barrier;
    const lesson = (/** @type {number} */ k) => (k < count - 1 ? { id, steps: shared, seen } : { seen });
    await Promise.all(this.#workers.map((worker, k) => worker.ask(lesson(k))));
    return { id, list };
  }

  /**
   * @param {ThreadJob} job
   * @param {(() => void) | undefined} meanwhile
   */
  #together({ id, list }, meanwhile) {
    const start = performance.now();
    try {
      this.#barrier.announce(id);
      for (const { call, given, parts } of list) {
        if (!parts) {
          call(.../** @type {number[]} */ (given));
          continue;
        }
        /** @type {number | undefined} */
        let until;
        const late = () => performance.now() > (until ??= 2 * performance.now() - start + PATIENCE_MS);
        this.#barrier.share(parts.length, (/** @type {number} */ part) => call(...parts[part]), late, meanwhile);
        meanwhile = undefined;
      }
    } catch (cause) {
      broken = true;
      this.dispose();
      throw new SingeError("lost", `the threads of a run: ${/** @type {Error} */ (cause).message}`, cause);
    }
  }
}

/**
 * A step's parts, each [part, of how many]. The first are the largest, so that a thread that starts late finds small ones.
 * took: the time of the step on one thread; 0 if there should be as many parts as threads, since each part fills a workspace.
 * @param {number} took
 * @param {number} threads
 */
function cut(took, threads) {
  /** @type {[part: number, of: number][]} */
  const parts = [];
  let [part, count] = [0, threads];
  for (let cuts = 0; took / count > PART_US && cuts < MOST_CUTS; cuts++, part += threads) {
    [part, count] = [2 * part, 2 * count];
    for (let k = 0; k < threads; k++) parts.push([part + k, count]);
  }
  for (; part < count; part++) parts.push([part, count]);
  return parts;
}

/**
 * The bytes of a step's workspace.
 * @param {Program} program
 * @param {Step} step
 * @param {Sizes} sizes
 */
function spaceOf({ kernels, buffers }, step, sizes) {
  return step.do === "dispatch" && kernels[step.kernel].workspace ? align(bytesOf(buffers[/** @type {number} */ (step.buffers.at(-1))], sizes)) : 0;
}

/**
 * Write to every page of a new array: the system maps its memory now, which takes longer than to fill it.
 * @param {TypedArray} array
 */
function touch({ buffer }) {
  const bytes = new Uint8Array(buffer);
  for (let at = 0; at < bytes.length; at += SYSTEM_PAGE) bytes[at] = 0;
}

/**
 * A count that was not checked: 0 if the bundle gives it wrongly, or if its sizes are not known yet.
 * @param {() => number} count
 */
function numberOrZero(count) {
  try {
    return count();
  } catch {
    return 0;
  }
}

/** A worker that answers one message at a time: { ask, terminate }. */
function startThread() {
  const worker = spawn(() => new Worker(new URL("./singe-thread.js", import.meta.url), { type: "module" }));
  /** @type {{ done(value?: unknown): void, fail(cause: unknown): void } | undefined} */
  let waiting;
  worker.onmessage = ({ data }) => {
    worker.unref?.(); // node ends when nothing is asked for
    if (data.error) waiting?.fail(new Error(data.error));
    else waiting?.done();
  };
  worker.onerror = (event) => {
    event.preventDefault?.();
    waiting?.fail(event);
  };
  const ask = (/** @type {object} */ message) =>
    new Promise((done, fail) => {
      waiting = { done, fail };
      worker.ref?.();
      worker.postMessage(message);
    });
  return { ask, terminate: () => worker.terminate() };
}
