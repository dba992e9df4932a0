/**
 * Singe's runner: a bundle that `singe export` wrote, run in a page, a worker or node, with no Python.
 *
 *     const model = await load("./model/");
 *     const { logits } = await model.run({ input: new Float32Array(784) });
 *     await model.dispose();
 *
 * Contract: `load` returns a model that is ready to run, or fails with a SingeError and holds nothing. A model's runs
 * happen in the order of the calls, and each reads its inputs when its turn comes. See singe.d.ts for the types and
 * static/README.md for the format.
 */

import { SingeError, VERSION } from "./singe-format.js";
import { loadHere } from "./singe-model.js";

export { SingeError, VERSION };

/** Load the bundle in the folder `url`. */
export async function load(url, { worker = false, ...options } = {}) {
  const { device = "auto", threads = 0 } = options;
  if (!["auto", "wasm", "webgpu"].includes(device)) {
    throw new SingeError("input", `device: got ${JSON.stringify(device)}, expected "wasm", "webgpu" or "auto"`);
  }
  if (!Number.isInteger(threads) || threads < 0) throw new SingeError("input", `threads: got ${threads}`);
  const folder = folderOf(url);
  if (!worker) return loadHere(folder, options);
  const { loadInWorker } = await import("./singe-remote.js");
  return (await loadInWorker(folder, options)) ?? loadHere(folder, options);
}

function folderOf(url) {
  const base = globalThis.document?.baseURI ?? globalThis.location?.href ?? `file://${process.cwd()}/`;
  try {
    const folder = new URL(url, base);
    if (!folder.pathname.endsWith("/")) folder.pathname += "/";
    return folder;
  } catch (cause) {
    throw new SingeError("input", `url: got ${url}, expected the address of a folder`, cause);
  }
}
