/**
 * What is wrong with the arguments of `load`. Contract: `refused` is called only if something is, and says which and what
 * was expected.
 */

import { SingeError } from "./singe-format.js";

/** An option ↦ what it should be, and whether a value is. */
const OPTIONS = {
  device: ['"wasm", "webgpu" or "auto"', (value) => ["auto", "wasm", "webgpu"].includes(value)],
  threads: ["how many threads, or 0", (value) => Number.isInteger(value) && value >= 0],
  signal: ["an AbortSignal", (value) => value?.addEventListener ?? !value],
  onProgress: ["a function", (value) => value?.call ?? !value],
  onDevice: ["a function", (value) => value?.call ?? !value],
  gpuDevice: ["a GPUDevice", (value) => value?.createBuffer ?? !value],
};

/** The error for arguments of `load`; folder: the folder's address, if the url has one. */
export function refused(folder, url, options) {
  if (!folder) return wrong("url", url, "the address of a folder");
  for (const [name, [expected, fits]] of Object.entries(OPTIONS)) {
    if (options[name] !== undefined && !fits(options[name])) return wrong(name, options[name], expected);
  }
}

function wrong(name, value, expected) {
  let got = typeof value;
  try {
    got = got === "string" ? JSON.stringify(value) : String(value);
  } catch {} // what has no text
  return new SingeError("input", `${name}: got ${got}, expected ${expected}`);
}
