/**
 * A worker's side of a run's threads; singe-threads.js is the other.
 *
 * Contract: the first message brings the memory, modules and control words. A later one brings the calls of a plan, null
 * where this thread has nothing to do until the next barrier, or nothing; each is answered, and then runs are waited for
 * until the plan LEAVE sends the worker back to its messages.
 */

import { Barrier, FAILED, LEAVE, PLAN } from "./singe-barrier.js";

const MOST_PLANS = 64;
const port = typeof WorkerGlobalScope === "function" ? globalThis : process.getBuiltinModule("worker_threads").parentPort;
const plans = new Map();
let control, barrier, functions;

async function start({ memory, modules, entries, ...given }) {
  const exports = {};
  for (const [name, module] of modules) {
    exports[name] = (await WebAssembly.instantiate(module, { env: { memory } })).exports;
  }
  functions = entries.map(([module, name]) => exports[module][name]);
  control = given.control;
  barrier = new Barrier(control);
}

function run({ list, count }) {
  let due = 0;
  for (const call of list) {
    if (due) barrier.wait(due);
    if (Atomics.load(control, FAILED)) return;
    if (call) functions[call[0]](...call[1]);
    barrier.arrive((due += count));
  }
}

function serve(seen) {
  for (;;) {
    seen = barrier.next(seen);
    const id = Atomics.load(control, PLAN);
    if (id === LEAVE) return;
    const plan = plans.get(id);
    if (plan) run(plan);
  }
}

port.onmessage = async ({ data }) => {
  try {
    if (data.memory) await start(data);
    else if (data.list) {
      plans.set(data.id, { ...data, list: data.list.map((call) => call && [call[0], call.slice(1)]) });
      if (plans.size > MOST_PLANS) plans.delete(plans.keys().next().value);
    }
    port.postMessage({});
    if (data.seen !== undefined) serve(data.seen);
  } catch ({ message }) {
    if (control) Atomics.store(control, FAILED, 1);
    port.postMessage({ error: message });
  }
};
