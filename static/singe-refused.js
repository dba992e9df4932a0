/** The error for arguments of `load` that do not fit. */

import { SingeError } from "./singe-format.js";

/** The arguments in the order in which singe.js checks them, and what each should be. */
const EXPECTED = Object.entries({
  url: "the address of a folder",
  device: '"wasm", "webgpu" or "auto"',
  threads: "how many threads, or 0",
  onProgress: "a function",
  onDevice: "a function",
  signal: "an AbortSignal",
  gpuDevice: "a GPUDevice",
});

/** fits: whether each argument fits; given: the arguments by name. */
export function refused(fits, given) {
  const [name, expected] = EXPECTED[fits.findIndex((fit) => !fit)];
  let got = typeof given[name];
  try {
    got = got === "string" ? JSON.stringify(given[name]) : String(given[name]);
  } catch {} // what has no text
  return new SingeError("input", `${name}: got ${got}, expected ${expected}`);
}
