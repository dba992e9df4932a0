/**
 * Singe's runner: a bundle in a page, a worker or node.
 *
 * Contract: `load` returns a model that is ready to run, or fails with a SingeError and holds nothing. A model's runs
 * happen in the order of the calls, and each reads its inputs when its turn comes. See singe.d.ts.
 */

import { SingeError, VERSION } from "./program/singe-format.js";
import { folderOf } from "./loading/singe-files.js";
import { loadHere } from "./model/singe-model.js";

export { SingeError, VERSION };

export async function load(url, given) {
  const { worker, ...options } = given ?? {};
  const { device = "auto", threads = 0, onProgress, onDevice, signal, gpuDevice, cache, ...unknown } = options;
  const folder = folderOf(url);
  const fits = [
    folder,
    ["auto", "wasm", "webgpu"].includes(device),
    Number.isInteger(threads) && threads >= 0,
    onProgress?.call ?? !onProgress,
    onDevice?.call ?? !onDevice,
    signal?.addEventListener ?? !signal,
    worker ? !gpuDevice : (gpuDevice?.createBuffer ?? !gpuDevice),
    !Object.keys(unknown).length,
  ];
  if (!fits.every(Boolean)) await (await import("./model/singe-advice.js")).refuse(fits, { ...given, url, unknown });
  if (!worker) return loadHere(folder, options);
  const { loadInWorker } = await import("./worker/singe-worker-model.js");
  return (await loadInWorker(folder, options)) ?? loadHere(folder, options);
}
