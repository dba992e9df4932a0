/**
 * The threads of the device "wasm": workers that share its memory and do their part of a run's steps.
 *
 * Contract: `gather(threads)` gives a team, whose `run(plan, alone)` carries out a plan: on one thread by `alone()`, or on
 * `threads` of them, with the same bits. A step is as many parts as threads, and whoever is free takes the next; the caller
 * goes on when all are done. Steps too small to share are the caller's. Asked for 0 threads, the team lets the
 * first runs take turns with 1 and with more, keeps what is fastest and ends workers that are not needed. A worker that
 * dies is not missed, unless within a part: then, as where one fails, the team ends, and the run is an error of the code
 * "lost", after which a model is opened anew and has no team.
 *
 * Threads talk in a few words of shared memory, `control`; singe-thread.js is the workers' side.
 */

import { SingeError, align, bytesOf, evaluate } from "./singe-format.js";
import { BASE, Barrier, DONE, FAILED, GO, LEAVE, NEXT, OPEN, PLAN, WORDS } from "./singe-barrier.js";
import { Worker } from "./singe-spawn.js";

const PAGE = 65536;
const PAGES = [65536, 16384];
const MOST = 8;
const HIGHEST = 2 ** 30;
/** What a step must take to be shared, in about microseconds of one thread: several times a barrier. */
const WORTH_SHARING = 6;
const FLOPS = 20_000; // in such a microsecond
const BYTES = 10_000;

const ROUNDS = 5;
const MOST_ROUNDS = 40;
const LONG_ENOUGH_MS = 30; // a page's timer counts in steps of about 0.1 ms
const HOPELESS = 3; // times as slow: no more rounds
const WORTH = 0.9; // of the time, for more threads to pay
const PATIENCE_MS = 2000;

const cores = () => globalThis.navigator?.hardwareConcurrency ?? process.getBuiltinModule("os").availableParallelism();
let broken = false;

/** A team, with a memory for its device, that is asked for so many threads; undefined where there can be none. */
export function gather(threads) {
  if (broken || cores() < 2) return undefined;
  for (const maximum of PAGES) {
    try {
      return new Team(threads, new WebAssembly.Memory({ initial: 0, maximum, shared: true }));
    } catch {
      continue; // less address space may be there
    }
  }
  return undefined;
}

class Team {
  threads = 1;
  memory;
  #wanted;
  #copy;
  #program;
  #given;
  #control = new Int32Array(new SharedArrayBuffer(4 * WORDS));
  #barrier = new Barrier(this.#control);
  #workers = [];
  #plans = 0;
  #state = "new";
  /** What is tried, numbers of threads; one when it is decided. */
  #counts = [1];

  constructor(threads, memory) {
    this.#wanted = threads;
    this.memory = memory;
  }

  /** The device's: its program, modules by name, and functions as [module, name]. */
  async start({ program, linked, entries }) {
    this.#copy = undefined;
    const modules = Object.entries(linked).map(([name, { module }]) => [name, module]);
    this.#program = program;
    this.#given = { memory: this.memory, modules, entries, control: this.#control };
    if (this.#wanted) await this.#grow([this.#wanted]);
  }

  /** Bytes of the shared memory, which cannot be hashed where they are: `unshared()` copies them, always to one place. */
  mark(bytes) {
    const unshared = () => {
      if (!(bytes.length <= this.#copy?.length)) this.#copy = new Uint8Array(bytes.length);
      this.#copy.set(bytes);
      return this.#copy.subarray(0, bytes.length);
    };
    return Object.assign(bytes, { unshared });
  }

  /** A module's bytes with a shared memory, of any size, in place of the unshared one that it imports. */
  shared(bytes) {
    const [size, found] = sectionOf(bytes, 2);
    const ends = found && size < 120 && bytes.slice(found + size - 3, found + size).join() === "2,0,0";
    if (!ends) throw new SingeError("format", "a module does not import a memory as it should");
    const limits = [2, 3, 0, 0x80, 0x80, 4];
    const parts = [bytes.subarray(0, found - 1), [size + 3], bytes.subarray(found, found + size - 3), limits, bytes.subarray(found + size)];
    const made = new Uint8Array(bytes.length + 3);
    parts.reduce((at, part) => (made.set(part, at), at + part.length), 0);
    return made;
  }

  async run(plan, alone) {
    if (this.#state !== "ready" || !this.#worth(plan)) {
      alone();
      if (this.#state === "new" && this.#worth(plan)) this.#growLater();
      return;
    }
    const count = this.#next(plan);
    const tried = plan.tried.get(count);
    if (count > 1) {
      await this.#renumber();
      tried.job ??= await this.#teach(plan, count);
    }
    const start = performance.now();
    if (count > 1) this.#share(tried.job, count);
    else alone();
    tried.times.push(performance.now() - start);
    if (this.#counts.length > 1) this.#decide(plan);
  }

  // --- workers

  #growLater() {
    this.#state = "starting";
    const most = Math.min(cores(), MOST);
    const start = () => this.#grow([...new Set([1, Math.ceil(most / 2), most])]);
    if (globalThis.requestIdleCallback) requestIdleCallback(start, { timeout: 200 });
    else setTimeout(start, 0).unref?.();
  }

  /** Have workers for the largest of these numbers of threads; without them it stays with one thread. */
  async #grow(counts) {
    try {
      if (this.#state === "over") return;
      const most = Math.min(Math.max(...counts), 2 * cores());
      this.#workers = Array.from({ length: most - 1 }, spawn);
      await Promise.all(this.#workers.map((worker) => worker.ask(this.#given)));
      if (this.#state === "over") return;
      this.#counts = counts.map((count) => Math.min(count, most));
      if (counts.length === 1) this.threads = most;
      this.#state = "ready";
    } catch {
      this.dispose();
    }
  }

  dispose() {
    this.#state = "over";
    this.threads = 1;
    Atomics.store(this.#control, FAILED, 1);
    this.#signal(LEAVE); // a worker that waits is slow to end
    for (const worker of this.#workers) worker.terminate();
    this.#workers = [];
  }

  // --- plans

  #worth(plan) {
    return (plan.shared ??= this.#sharedSteps(plan)).some(Boolean);
  }

  /** Which steps are shared. */
  #sharedSteps({ sizes }) {
    const { steps, kernels } = this.#program;
    return steps.map(({ do: what, kernel }) => {
      if (what !== "dispatch") return false;
      const { flops, bytes } = kernels[kernel];
      return evaluate(flops, sizes) / FLOPS + evaluate(bytes, sizes) / BYTES > WORTH_SHARING;
    });
  }

  /** Tell the workers a plan: { id, groups }, the groups being part 0's steps between barriers. */
  async #teach(plan, count) {
    const program = this.#program;
    const id = this.#plans++;
    const room = ({ kernel, buffers }) =>
      program.kernels[kernel]?.workspace ? align(bytesOf(program.buffers[buffers.at(-1)], plan.sizes)) : 0;
    const space = Math.max(...program.steps.map(room));
    const missing = Math.ceil((plan.end + (count - 1) * space - this.memory.buffer.byteLength) / PAGE);
    if (missing > 0) this.memory.grow(missing);
    const groups = []; // what all do
    const list = []; // what this thread does: for a group its number and how it does a part, else one call
    plan.steps.forEach(({ call, given }, k) => {
      if (!plan.shared[k]) {
        list.push({ call, given });
        return;
      }
      const { kernel } = program.steps[k];
      const { ports, workspace } = program.kernels[kernel];
      const parts = Array.from({ length: count }, (_, part) => {
        const own = [...given.slice(0, -2), part, count];
        if (workspace && part) own[ports - 1] = plan.end + (part - 1) * space;
        return own;
      });
      groups.push([kernel, parts]);
      list.push({ call, parts });
    });
    const workers = this.#workers.slice(0, count - 1);
    await this.#listen((worker) => workers.includes(worker) && { id, groups, count });
    return { id, list };
  }

  /** Send each worker a message, if there is one for it, at a moment in which none is in a run. */
  #listen(message) {
    this.#signal(LEAVE);
    const seen = Atomics.load(this.#control, GO);
    return Promise.all(this.#workers.map((worker) => worker.ask({ ...message(worker), seen })));
  }

  #signal(plan) {
    const control = this.#control;
    const base = Atomics.load(control, NEXT);
    Atomics.add(control, GO, 1);
    Atomics.store(control, PLAN, plan);
    Atomics.store(control, BASE, base);
    this.#barrier.set(GO, (Atomics.load(control, GO) + 1) | 0);
    return base;
  }

  /** A run whose tickets are numbered so high that they might soon not be numbers any more starts them anew. */
  async #renumber() {
    if (Atomics.load(this.#control, NEXT) < HIGHEST) return;
    await this.#listen(() => undefined);
    for (const word of [OPEN, NEXT, DONE]) Atomics.store(this.#control, word, 0);
  }

  #share({ id, list }, count) {
    const control = this.#control;
    let open = this.#signal(id);
    const start = performance.now();
    try {
      for (const { call, given, parts } of list) {
        if (!parts) {
          call(...given);
          continue;
        }
        const base = open;
        this.#barrier.set(OPEN, (open += count));
        this.#barrier.work(open, (ticket) => call(...parts[ticket - base]));
        const until = 2 * performance.now() - start + PATIENCE_MS;
        this.#barrier.until(DONE, (done) => done >= open, () => performance.now() > until);
        if (Atomics.load(control, FAILED)) throw new Error("a worker failed");
      }
    } catch (cause) {
      broken = true;
      this.dispose();
      throw new SingeError("lost", `the threads of a run: ${cause.message}`, cause);
    }
  }

  // --- the choice

  #next(plan) {
    plan.tried ??= new Map(); // threads ↦ { job, times }
    for (const count of this.#counts) if (!plan.tried.has(count)) plan.tried.set(count, { times: [] });
    const runs = (count) => plan.tried.get(count).times.length;
    return this.#counts.reduce((best, count) => (runs(count) < runs(best) ? count : best));
  }

  #decide({ tried }) {
    const times = this.#counts.map((count) => tried.get(count).times);
    const most = Math.max(...times.map(sum)) > HOPELESS * sum(times[0]) ? ROUNDS : MOST_ROUNDS;
    const done = (list) => list.length > ROUNDS && (sum(list) > LONG_ENOUGH_MS || list.length > most);
    if (!times.every(done)) return;
    // The first run of each is of code that is not warm.
    const typical = times.map((list) => fasterHalf(list.slice(1)));
    const best = typical.reduce((best, time, k) => (time < WORTH * typical[best] ? k : best), 0);
    this.threads = this.#counts[best];
    this.#counts = [this.threads];
    for (const worker of this.#workers.splice(this.threads - 1)) worker.terminate();
    if (this.threads === 1) this.dispose();
  }
}

const sum = (times) => times.reduce((total, time) => total + time, 0);

function fasterHalf(times) {
  const half = [...times].sort((a, b) => a - b).slice(0, Math.ceil(times.length / 2));
  return sum(half) / half.length;
}

/** The length and the start of a module's first section of that number, its length in one byte. */
function sectionOf(bytes, number) {
  for (let at = 8; at < bytes.length; ) {
    const id = bytes[at++];
    let [size, shift] = [0, 0];
    do size += (bytes[at] & 127) * 2 ** shift, (shift += 7);
    while (bytes[at++] & 128 && shift < 35);
    if (id === number) return [size, at];
    at += size;
  }
  return [];
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
    waiting.fail(event);
  };
  const ask = (message) =>
    new Promise((done, fail) => {
      waiting = { done, fail };
      worker.ref?.();
      worker.postMessage(message);
    });
  return { ask, terminate: () => worker.terminate() };
}
