/**
 * A worker's side of a run's threads; singe-threads.js is the other.
 *
 * Contract: the first message brings the memory, modules and control words. A later one may bring a plan: its shared steps,
 * each a function and the arguments of every part. Each is answered, and then runs are waited for until the plan LEAVE
 * sends the worker back to its messages.
 */

import { BASE, Barrier, FAILED, GO, LEAVE, NEXT, OPEN, PLAN } from "./singe-barrier.js";

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

/** Take part in a run until its last ticket is taken: by now it may be over. */
function run({ groups, count }, base) {
  const end = base + groups.length * count;
  const act = (ticket) => {
    const [kernel, parts] = groups[Math.floor((ticket - base) / count)];
    functions[kernel](...parts[(ticket - base) % count]);
  };
  for (let next = Atomics.load(control, NEXT); next < end; next = Atomics.load(control, NEXT)) {
    if (Atomics.load(control, FAILED)) return;
    if (!barrier.work(end, act)) barrier.until(OPEN, (open) => open > next || Atomics.load(control, NEXT) >= end);
  }
}

function serve(seen) {
  for (;;) {
    const go = barrier.until(GO, (value) => value !== seen && value % 2 === 0);
    const [id, base] = [Atomics.load(control, PLAN), Atomics.load(control, BASE)];
    if (Atomics.load(control, GO) !== go) continue;
    seen = go;
    if (id === LEAVE) return;
    const plan = plans.get(id);
    if (plan) run(plan, base);
  }
}

port.onmessage = async ({ data }) => {
  try {
    if (data.memory) await start(data);
    else if (data.groups) {
      plans.set(data.id, data);
      if (plans.size > MOST_PLANS) plans.delete(plans.keys().next().value);
    }
    port.postMessage({});
    if (data.seen !== undefined) serve(data.seen);
  } catch ({ message }) {
    if (control) Atomics.store(control, FAILED, 1);
    port.postMessage({ error: message });
  }
};
