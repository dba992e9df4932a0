/**
 * The threads of the device "wasm": workers that share its memory and do their part of a run's steps.
 *
 * Contract: `gather(threads, files)` gives a team, whose `run(plan, answers)` carries out a plan: on one thread by one
 * call, or on `threads` of them, with the same bits. Steps and runs too small to share are the caller's. Asked for 0
 * threads, the team lets the first runs take turns with 1 and with more, keeps what is fastest and ends workers that are
 * not needed. A worker that dies is not missed, unless within a part: then, as where one fails, the team ends, and the
 * run is an error of the code "lost", after which a model is opened anew and has no team. `spread(state)` opens the
 * device of a model, whose runs take long, anew with a team asked for 0 threads.
 */

import { Barrier, LEAVE } from "./singe-barrier.js";
import { SingeError, align, bytesOf, evaluate } from "./singe-format.js";
import { fromFiles, sharedMemory } from "./singe-shared.js";
import { Worker } from "./singe-spawn.js";
import { enough, pays } from "./singe-timing.js";

const PAGE = 65536;
const MOST = 8;
/** What a step must take to be shared, in about microseconds of one thread: a few times a barrier. */
const STEP_US = 2;
/** And all such steps of a run: to wake a worker takes up to a millisecond. */
const RUN_US = 1500;
/** What the last parts of a step may take: with smaller ones threads mostly read what others wrote. */
const PART_US = 1000;
const MOST_CUTS = 6;
const SYSTEM_PAGE = 4096;
const FLOPS_PER_US = 60_000;
const BYTES_PER_US = 30_000;
const PATIENCE_MS = 2000;

const cores = () => globalThis.navigator?.hardwareConcurrency ?? process.getBuiltinModule("os").availableParallelism();
let broken = false;

/** A team asked for so many threads, its memory, and the way `from` files into that; nothing where there can be no team. */
export function gather(threads, files) {
  const most = threads ? Math.min(threads, 2 * cores()) : Math.min(cores(), MOST);
  const memory = broken || cores() < 2 ? undefined : sharedMemory();
  if (!memory) return {};
  const counts = threads ? [most] : [...new Set([1, Math.ceil(most / 2), most])];
  return { team: new Team(counts, memory), memory, from: fromFiles(files) };
}

/** state: what singe-model.js says. */
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

class Team {
  #memory;
  /** What is tried, numbers of threads; one when it is decided. */
  #counts;
  #program;
  #exports;
  #names;
  #barrier = new Barrier();
  #workers = [];
  #plans = 0;

  constructor(counts, memory) {
    this.#counts = counts;
    this.#memory = memory;
  }

  get threads() {
    return this.#counts.length === 1 ? this.#counts[0] : 1;
  }

  /** Have workers for the device's program, its module, what that exports, and each kernel's name; or stay with one thread. */
  async start({ program, module, exports, names }) {
    this.#program = program;
    this.#exports = exports;
    this.#names = names;
    const given = { memory: this.#memory, module, names, words: this.#barrier.words };
    try {
      for (let k = 1; k < Math.max(...this.#counts); k++) this.#workers.push(spawn());
      await Promise.all(this.#workers.map((worker) => worker.ask(given)));
    } catch {
      this.dispose();
    }
  }

  get isThere() {
    return this.#workers.length > 0;
  }

  /** Bytes behind a plan's end that threads may take as workspaces. */
  room(program, steps, sizes) {
    const spaces = steps.map((step) => told(() => spaceOf(program, step, sizes)));
    return (Math.max(...this.#counts) - 1) * Math.max(0, ...spaces);
  }

  /** plan: calls one after the other, { program?, sizes, steps, given, marks, end }, those of a whole run or of some of it. fresh: outputs whose arrays were made for this run. */
  async run(plan, fresh) {
    const alone = () => this.#exports.run(plan.marks[0], plan.marks.at(-1));
    plan.shared ??= this.#sharedSteps(plan);
    if (!this.#workers.length || !plan.shared.some(Boolean)) return alone();
    plan.tried ??= new Map(); // threads ↦ { job, times }
    for (const count of this.#counts) if (!plan.tried.has(count)) plan.tried.set(count, { times: [] });
    const runs = (count) => plan.tried.get(count).times.length;
    const count = this.#counts.reduce((least, other) => (runs(other) < runs(least) ? other : least));
    const tried = plan.tried.get(count);
    if (count > 1) tried.job ??= await this.#teach(plan, count);
    const start = performance.now();
    if (count > 1) this.#together(tried.job, () => fresh.forEach(({ data }) => touch(data.buffer)));
    else alone();
    if (this.#counts.length === 1) return;
    tried.times.push(performance.now() - start);
    this.#decide(plan);
  }

  #decide({ tried }) {
    const ways = this.#counts.map((threads) => ({ threads, times: tried.get(threads).times.slice(1) })); // the first is cold
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

  /** What each step takes one thread, in about microseconds; 0: it is not shared. */
  #sharedSteps({ sizes, steps }) {
    const { kernels } = this.#program;
    const work = steps.map(({ do: what, kernel }) => {
      if (what !== "dispatch") return 0;
      const { flops, bytes } = kernels[kernel];
      const took = told(() => evaluate(flops, sizes)) / FLOPS_PER_US + told(() => evaluate(bytes, sizes)) / BYTES_PER_US;
      return took > STEP_US ? took : 0;
    });
    return work.reduce((sum, took) => sum + took, 0) > RUN_US ? work : work.map(() => 0);
  }

  /** Tell the workers a plan: { id, list }, the list being what this thread does, of shared steps by part. */
  async #teach(plan, count) {
    const { steps } = plan;
    const { kernels } = this.#program;
    const space = Math.max(...steps.map((step) => spaceOf(plan.program ?? this.#program, step, plan.sizes)));
    const missing = Math.ceil((plan.end + (count - 1) * space - this.#memory.buffer.byteLength) / PAGE);
    if (missing > 0) this.#memory.grow(missing);
    const list = plan.given.map((given, k) => {
      if (!plan.shared[k]) return { call: this.#exports.run, given: plan.marks.slice(k, k + 2) };
      const { kernel } = steps[k];
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
    const lesson = (k) => (k < count - 1 ? { id, steps: shared, seen } : { seen });
    await Promise.all(this.#workers.map((worker, k) => worker.ask(lesson(k))));
    return { id, list };
  }

  #together({ id, list }, meanwhile) {
    const start = performance.now();
    try {
      this.#barrier.announce(id);
      for (const { call, given, parts } of list) {
        if (!parts) {
          call(...given);
          continue;
        }
        let until;
        const late = () => performance.now() > (until ??= 2 * performance.now() - start + PATIENCE_MS);
        this.#barrier.share(parts.length, (part) => call(...parts[part]), late, meanwhile);
        meanwhile = undefined;
      }
    } catch (cause) {
      broken = true;
      this.dispose();
      throw new SingeError("lost", `the threads of a run: ${cause.message}`, cause);
    }
  }
}

/**
 * A step's parts, each [part, of how many]: the first are the largest, so that a thread that comes late or is held up finds
 * small ones. took: what the step takes one thread; 0 where parts are to be as many as the threads, since each begins by
 * filling a workspace.
 */
function cut(took, threads) {
  const parts = [];
  let [part, count] = [0, threads];
  for (let cuts = 0; took / count > PART_US && cuts < MOST_CUTS; cuts++, part += threads) {
    [part, count] = [2 * part, 2 * count];
    for (let k = 0; k < threads; k++) parts.push([part + k, count]);
  }
  for (; part < count; part++) parts.push([part, count]);
  return parts;
}

/** The bytes of a step's workspace. */
function spaceOf({ kernels, buffers }, { kernel, buffers: ports }, sizes) {
  return kernels[kernel]?.workspace ? align(bytesOf(buffers[ports.at(-1)], sizes)) : 0;
}

/** Have the system give an array its memory, which takes it several times as long as to fill that. */
function touch(buffer) {
  const bytes = new Uint8Array(buffer);
  for (let at = 0; at < bytes.length; at += SYSTEM_PAGE) bytes[at] = 0;
}

/** A count that nobody has checked: 0 where the bundle does not say it right, or sizes are not known yet. */
function told(count) {
  try {
    return count();
  } catch {
    return 0;
  }
}

/** A worker that answers one message at a time: { ask, terminate }. */
function spawn() {
  const worker = new Worker(new URL("./singe-thread.js", import.meta.url), { type: "module" });
  let waiting;
  worker.onmessage = ({ data }) => {
    worker.unref?.(); // node ends when nothing is asked for
    if (data.error) waiting.fail(new Error(data.error));
    else waiting.done();
  };
  worker.onerror = (event) => {
    event.preventDefault?.();
    waiting?.fail(event);
  };
  const ask = (message) =>
    new Promise((done, fail) => {
      waiting = { done, fail };
      worker.ref?.();
      worker.postMessage(message);
    });
  return { ask, terminate: () => worker.terminate() };
}
