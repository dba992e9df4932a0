/**
 * The worker's side of a model in a worker; singe-worker-model.js is the page's side.
 *
 * Contract: it says `{ started }` first. A message `{ id, call, given }` is answered by `{ id, value, state }` or
 * `{ id, error }`; progress and changes of the device come in between. It holds one model.
 */

import { loadHere } from "../model/singe-model.js";

let model;
/** The sessions by the numbers that the page gives them. */
const sessions = new Map();

const CALLS = {
  async load({ folder, options }) {
    const onProgress = (progress) => postMessage({ progress });
    const onDevice = (device) => postMessage({ device, state: state() });
    model = await loadHere(new URL(folder), { ...options, onProgress, onDevice });
    const { name, image, labels, inputs, outputs, states } = model;
    return { name, image, labels, inputs, outputs, states };
  },
  run: (given) => model.run(...given),
  seed: (seed) => model.seed(seed),
  profile: ({ inputs, options }) => model.profile(inputs, options),
  /** Calls a session's `method`; a new number opens a session. */
  session({ number, method, given }) {
    const session = sessions.get(number) ?? model.session();
    sessions.set(number, session);
    if (method === "dispose") sessions.delete(number);
    if (method === "copy") return void sessions.set(given[0], session.copy());
    return session[method](...given);
  },
  dispose: () => model.dispose(),
};

/** The memory that is transferred with an answer. */
function memoryOf(call, given, value) {
  const outputs = call === "run" || (call === "session" && given.method === "run");
  if (outputs) return Object.values(value).map(({ data }) => data.buffer);
  return ArrayBuffer.isView(value) ? [value.buffer] : [];
}

const state = () => model && { device: model.device, threads: model.threads, memory: model.memory };

onmessage = async ({ data: { id, call, given } }) => {
  try {
    const value = await CALLS[call](given);
    postMessage({ id, value, state: state() }, memoryOf(call, given, value));
  } catch ({ name, code, message }) {
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
