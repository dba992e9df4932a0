/**
 * Singe's runner: a bundle in a page, a worker or node.
 *
 * Contract: `load` returns a model that is ready to run, or fails with a SingeError and holds nothing. A model's runs
 * happen in the order of the calls, and each reads its inputs when its turn comes.
 */

/** @import { LanguageFacts } from "./types/program.d.ts" */
/** @import { LanguageModel, LoadOptions, Model } from "./types/public.d.ts" */

import { SingeError, VERSION } from "./program/singe-format.js";
import { folderOf } from "./loading/singe-files.js";
import { loadHere } from "./model/singe-model.js";

export { SingeError, VERSION };

/**
 * Load the bundle in the folder `url`, relative to the page (in node: to the working directory). A query of `url` is given
 * to each file; with a version in it, `?v=…`, the manifest may come from the browser's cache.
 * @template {Model | LanguageModel} [Kind=Model]
 * @param {string | URL} url
 * @param {LoadOptions} [options]
 * @returns {Promise<Kind>}
 */
export async function load(url, options) {
  const { worker, ...rest } = options ?? {};
  const { device = "auto", threads = 0, onProgress, onDevice, signal, gpuDevice, cache, ...unknown } = rest;
  const folder = /** @type {URL} */ (folderOf(url));
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
  if (!fits.every(Boolean)) return /** @type {Kind} */ (await (await import("./remote/singe-remote.js")).loadElsewhere(fits, url, options));
  const elsewhere = async () => (await import("./worker/singe-worker-model.js")).loadInWorker(folder, rest);
  /** @type {Promise<(model: Model) => Promise<LanguageModel>> | undefined} */
  let spoken;
  const speech = (/** @type {LanguageFacts} */ language) => (spoken ??= import("./language/singe-language.js").then(({ languageModel }) => languageModel(language, folder, rest)));
  const begin = (/** @type {LanguageFacts} */ language) => {
    speech(language).catch(() => {}); // beside the weights
    return worker === undefined && globalThis.document && !gpuDevice && elsewhere(); // a language model is in a worker then
  };
  const model = (worker && (await elsewhere())) || (await loadHere(folder, rest, begin));
  return /** @type {Kind} */ ("language" in model ? (await speech(/** @type {Model & { language: LanguageFacts }} */ (model).language))(model) : model);
}
