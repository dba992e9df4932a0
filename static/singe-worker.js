/**
 * The worker's side of a model in a worker; singe-remote.js is the page's side.
 *
 * Contract: it says `{ started }` first. A message `{ id, call, given }` is answered by `{ id, value, state }` or
 * `{ id, error }`; progress and changes of the device come in between. It holds one model.
 */

import { loadHere } from "./singe-model.js";

let model;

const CALLS = {
  async load({ folder, options }) {
    const onProgress = (progress) => postMessage({ progress });
    const onDevice = (device) => postMessage({ device, state: state() });
    model = await loadHere(new URL(folder), { ...options, onProgress, onDevice });
    const { name, image, labels, inputs, outputs } = model;
    return { name, image, labels, inputs, outputs };
  },
  run: (inputs) => model.run(inputs),
  profile: ({ inputs, options }) => model.profile(inputs, options),
  dispose: () => model.dispose(),
};

const state = () => model && { device: model.device, threads: model.threads, memory: model.memory };

onmessage = async ({ data: { id, call, given } }) => {
  try {
    const value = await CALLS[call](given);
    const transfer = call === "run" ? Object.values(value).map(({ data }) => data.buffer) : [];
    postMessage({ id, value, state: state() }, transfer);
  } catch ({ code, message }) {
    postMessage({ id, error: { code, message }, state: state() });
  }
};

// The page finds out that this worker is gone when it gets the lock that is held here: nothing else tells.
const name = globalThis.navigator?.locks && `singe ${crypto.randomUUID()}`;
if (name) {
  navigator.locks.request(name, () => {
    postMessage({ started: name });
    return new Promise(() => {});
  });
} else postMessage({ started: "" });
