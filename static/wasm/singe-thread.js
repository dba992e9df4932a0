/**
 * A worker's side of a run's threads; singe-threads.js is the other.
 *
 * Contract: the first message has the memory, the modules and the words of the barrier. A later one may have a plan: its
 * shared calls, each a function and the arguments of every part. The worker answers each message, then waits for runs
 * until one says LEAVE, and returns to its messages.
 */

/** @import { ThreadPart, Unchecked, WasmFunctions } from "../types/program.d.ts" */

/** @typedef {{ act(part: number): void, tickets: number }} ThreadPlan */

import { Barrier, LEAVE, argumentsOf } from "./singe-barrier.js";

const MOST_PLANS = 64;
const port = typeof WorkerGlobalScope === "function" ? /** @type {Worker} */ (/** @type {unknown} */ (globalThis)) : process.getBuiltinModule("worker_threads").parentPort;
/** @type {Map<number, ThreadPlan>} */
const plans = new Map();
/** @type {Barrier} */
let barrier;

/** @type {WasmFunctions[string][]} */
let functions;

/** @param {{ memory: WebAssembly.Memory, module: WebAssembly.Module, names: string[], words: Int32Array<SharedArrayBuffer> }} given */
async function start({ memory, module, names, words }) {
  barrier = new Barrier(words);
  const { exports } = await WebAssembly.instantiate(module, { env: { memory } });
  functions = names.map((name) => /** @type {WasmFunctions} */ (exports)[name]);
}

/** @param {{ id: number, calls: { kernel: number, parts: ThreadPart[] }[] }} plan */
function learn({ id, calls }) {
  /** @type {[WasmFunctions[string], ThreadPart][]} */
  const parts = calls.flatMap(({ kernel, parts }) => parts.map((part) => [functions[kernel], part]));
  const act = (/** @type {number} */ ticket) => {
    const [call, part] = parts[ticket];
    call(...argumentsOf(part));
  };
  plans.set(id, { act, tickets: parts.length });
  if (plans.size > MOST_PLANS) plans.delete(/** @type {number} */ (plans.keys().next().value));
}

/** @param {number} seen */
function serve(seen) {
  for (;;) {
    const run = barrier.next(seen);
    if (run.plan === LEAVE) return;
    seen = run.seen;
    const plan = plans.get(run.plan);
    if (plan) barrier.join(run.base, plan.tickets, plan.act);
  }
}

port.onmessage = async ({ data }) => {
  try {
    if (data.memory) await start(data);
    if (data.calls) learn(data);
    port.postMessage({});
    if (data.seen !== undefined) serve(data.seen);
  } catch (/** @type {Unchecked} */ { message }) {
    barrier?.fail();
    port.postMessage({ error: message });
  }
};
