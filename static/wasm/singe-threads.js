/**
 * The threads of the device "wasm": workers that share its memory and do their part of a run's calls.
 *
 * Contract: `gather(threads, files, bytes)` returns a team, whose `run(plan, fresh)` carries out a plan, by one call on one thread
 * or on several threads, with the same bits. The calling thread makes calls that are too small to share, and whole runs
 * that are. If 0 threads are asked for, the first runs alternate between 1 thread and more; the fastest way is kept and
 * workers that it does not need are ended. If a worker dies between parts, nothing changes. If one dies or fails within a
 * part, the team ends and the run is an error of the code "lost"; the model is then opened again without a team.
 * `spread(state)` opens the device of a model with long runs again, with a team asked for 0 threads.
 */

/** @import { Answer, ModelState, SharedCalls, ThreadJob, WasmFunctions, WeightsEntry } from "../types/program.d.ts" */
/** @import { TypedArray } from "../types/public.d.ts" */
/** @import { Files } from "../loading/singe-files.js" */
/** @import { Plan } from "../program/singe-plan.js" */

import { Barrier, LEAVE, argumentsOf } from "./singe-barrier.js";
import { SingeError, align, bytesOf, evaluate } from "../program/singe-format.js";
import { headsOf } from "../program/singe-words.js";
import { fromFiles, sharedMemory } from "./singe-shared.js";
import { spawn } from "../loading/singe-spawn.js";
import { enough, pays } from "../program/singe-timing.js";

const PAGE = 65536;
const WORD = 4;
/** Words of a group before the arguments. */
const HEAD_WORDS = 2;
const MOST = 8;
/** A call is shared if it takes one thread about this many microseconds: a few times as long as a barrier. */
const STEP_US = 2;
/** And if all such calls of a stretch, in all turns of a loop, take this many: waking a worker takes up to a millisecond. */
const RUN_US = 1500;
/** The most that the last parts of a call take. With smaller parts, threads mostly read what others wrote. */
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
      return state.sessions?.move(spare.device, state.now.device);
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
   * @param {{ module: WebAssembly.Module, exports: WasmFunctions, names: string[] }} given
   */
  async start({ module, exports, names }) {
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
   * The bytes of each other thread's workspace, and of all.
   * @param {Plan} plan
   */
  room(plan) {
    const each = mostSpace(plan);
    return { each, bytes: (Math.max(...this.#counts) - 1) * each };
  }

  /**
   * Make some calls; fresh: outputs with new arrays.
   * @param {SharedCalls} calls
   * @param {Answer[]} fresh
   */
  async run(calls, fresh) {
    const alone = () => this.#exports.run(calls.marks[0], /** @type {number} */ (calls.marks.at(-1)));
    if (!calls.shared) {
      calls.shared = timesAlone(calls);
      calls.took = calls.shared.reduce((sum, took) => sum + took, 0);
    }
    if (!this.#workers.length || calls.took * calls.turns <= RUN_US) return alone();
    const { tried: all, took } = calls;
    const first = (calls.first ??= took);
    for (const count of this.#counts) if (!all.has(count)) all.set(count, { times: [] });
    const at = (/** @type {number} */ count) => /** @type {{ job?: ThreadJob, times: number[] }} */ (all.get(count));
    const count = this.#counts.reduce((least, other) => (at(other).times.length < at(least).times.length ? other : least));
    const tried = at(count);
    if (count > 1 && !this.#holds(calls.plan.space)) {
      this.dispose();
      return alone();
    }
    if (count > 1 && !isFor(tried.job, took)) tried.job = await this.#teach(calls, count, tried.job?.id);
    const start = performance.now();
    if (count > 1) this.#together(/** @type {ThreadJob} */ (tried.job), () => fresh.forEach(({ data }) => touch(/** @type {TypedArray} */ (data))));
    else alone();
    if (this.#counts.length === 1) return;
    tried.times.push(((performance.now() - start) * first) / took);
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
   * Let the memory have the workspaces of threads; whether it has.
   * @param {{ at: number, bytes: number }} space
   */
  #holds({ at, bytes }) {
    const missing = Math.ceil((at + bytes - this.#memory.buffer.byteLength) / PAGE);
    try {
      if (missing > 0) this.#memory.grow(missing);
      return true;
    } catch {
      return false;
    }
  }

  /**
   * Send the workers some calls; { id, list }: what this thread does, shared calls by part.
   * @param {SharedCalls} calls
   * @param {number} count
   * @param {number} [id] that of a job whose place this one takes
   * @returns {Promise<ThreadJob>}
   */
  async #teach({ plan, heads, marks, took, shared = [] }, count, id = this.#plans++) {
    const spaces = plan.start / WORD + plan.words.length;
    const words = new Int32Array(this.#memory.buffer);
    const list = heads.map((head, k) => {
      if (!shared[k]) return { call: this.#exports.run, given: marks.slice(k, k + 2) };
      const kernel = plan.words[head];
      const { ports, sizes, workspace } = plan.program.kernels[kernel];
      const args = ports + sizes.length;
      const parts = cut(workspace ? 0 : shared[k], count).map(([part, of]) => {
        const own = workspace && part ? { port: ports - 1, spaces, turn: part - 1 } : undefined;
        return { given: [...Array(args).fill(0), part, of], words, at: marks[k] / WORD + HEAD_WORDS, count: args, own };
      });
      return { call: this.#exports[this.#names[kernel]], kernel, parts };
    });
    const inParts = list.flatMap(({ kernel, parts }) => (parts ? [{ kernel, parts }] : []));
    this.#barrier.announce(LEAVE);
    const { seen } = this.#barrier;
    const lesson = (/** @type {number} */ k) => (k < count - 1 ? { id, calls: inParts, seen } : { seen });
    await Promise.all(this.#workers.map((worker, k) => worker.ask(lesson(k))));
    return { id, took, list };
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
        this.#barrier.share(parts.length, (/** @type {number} */ part) => call(...argumentsOf(parts[part])), late, meanwhile);
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
 * Whether a job's parts are about as long as parts of calls that take so long should be.
 * @param {ThreadJob | undefined} job
 * @param {number} took
 */
const isFor = (job, took) => job !== undefined && took < 2 * job.took && job.took < 2 * took;

/**
 * A call's parts, each [part, of how many]. The first are the largest, so that a thread that starts late finds small ones.
 * took: the time of the call on one thread; 0 if there should be as many parts as threads, since each part fills a workspace.
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
 * The time of each call on one thread, in about microseconds; 0 if it is not shared.
 * @param {SharedCalls} calls
 */
function timesAlone({ plan, heads }) {
  return heads.map((at) => {
    if (plan.words[at] < 0) return 0;
    const { flops, bytes } = plan.program.kernels[plan.words[at]];
    const [computed, moved] = [flops, bytes].map((dim) => numberOrZero(() => evaluate(dim, plan.sizes)));
    const took = computed / FLOPS_PER_US + moved / BYTES_PER_US;
    return took > STEP_US ? took : 0;
  });
}

/**
 * The bytes of the largest workspace, at the most of bounded sizes, as far as sizes are known.
 * @param {Plan} plan
 */
function mostSpace({ program: { kernels, buffers }, words, most: sizes }) {
  let most = 0;
  for (const at of headsOf(words)) {
    const { workspace, ports } = kernels[words[at]] ?? {};
    if (workspace)
      most = Math.max(
        most,
        numberOrZero(() => align(bytesOf(buffers[words[at + 1 + ports]], sizes))),
      );
  }
  return most;
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
