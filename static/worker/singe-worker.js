/**
 * The worker's side of a model in a worker; singe-worker-model.js is the page's side.
 *
 * Contract: it says `{ started }` first. A message `{ id, call, given }` is answered by `{ id, value, state, spare }` or
 * `{ id, error }`; progress and changes of the device come in between. It holds one model.
 */

/** @import { Unchecked } from "../types/program.d.ts" */
/** @import * as made from "../program/singe-outputs.js" */

import { loadHere } from "../model/singe-model.js";

/** @type {Awaited<ReturnType<typeof loadHere>>} */
let model;
/** @type {typeof made.spares} */
let spares;
/**
 * The sessions by the numbers that the page gives them.
 * @type {Map<number, ReturnType<typeof model.session>>}
 */
const sessions = new Map();

/** @type {Record<string, (given: Unchecked) => unknown>} */
const CALLS = {
  async load({ folder, options }) {
    const onProgress = (/** @type {unknown} */ progress) => postMessage({ progress });
    const onDevice = (/** @type {string} */ device) => postMessage({ device, state: state() });
    [model, { spares }] = await Promise.all([loadHere(new URL(folder), { ...options, onProgress, onDevice }), import("../program/singe-outputs.js")]);
    const { name, image, labels, inputs, outputs, states, task } = model;
    return { name, image, labels, inputs, outputs, states, task, ...("language" in model && { language: model.language }) };
  },
  run: (given) => model.run(.../** @type {[Unchecked, Unchecked]} */ (given)),
  seed: (seed) => model.seed(seed),
  profile: ({ inputs, options }) => model.profile(inputs, options),
  /** Calls a session's `method`; a new number opens a session. */
  session({ number, method, given }) {
    const session = sessions.get(number) ?? model.session();
    sessions.set(number, session);
    if (method === "dispose") sessions.delete(number);
    if (method === "copy") return void sessions.set(given[0], session.copy());
    return /** @type {Unchecked} */ (session)[method](...given);
  },
  dispose: () => model.dispose(),
};

/**
 * The memory that is transferred with an answer.
 * @param {string} call
 * @param {{ method?: string }} given
 * @param {Unchecked} value
 * @returns {Transferable[]}
 */
function memoryOf(call, given, value) {
  const outputs = call === "run" || (call === "session" && given.method === "run");
  if (outputs) return Object.values(value).map(({ data }) => data.buffer);
  return ArrayBuffer.isView(value) ? [value.buffer] : [];
}

const state = () => model && { device: model.device, threads: model.threads, software: model.software, memory: model.memory };

// biome-ignore lint/suspicious/noGlobalAssign: so a worker takes messages
onmessage = async ({ data: { id, call, given } }) => {
  try {
    const value = await CALLS[call](given);
    const spare = !(/** @type {Unchecked} */ (model).isMeasuring) && spares.among(given?.[0]); // of a run's inputs: other calls have none there
    postMessage({ id, value, state: state(), spare }, /** @type {Unchecked} */ (memoryOf(call, given, value).concat(spare || [])));
  } catch (/** @type {Unchecked} */ { name, code, message }) {
    postMessage({ id, error: { name, code, message }, state: state() });
  }
};

// When the page gets the lock that is held here, this worker is gone; there is no event for that.
const name = globalThis.navigator?.locks && `singe ${crypto.randomUUID()}`;
if (name) {
  navigator.locks.request(name, () => {
    postMessage({ started: name });
    return new Promise(() => {});
  });
} else postMessage({ started: "" });
