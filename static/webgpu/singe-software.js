/**
 * The warning about a WebGPU adapter in software: right results, so slowly that a page seems to hang.
 *
 * Contract: `warn(adapterInfo, program, sizes, count)` writes the time to expect to the console, if it is long. `count` has
 * the kernels that are being compiled, and how many of them are: what two seconds of that tell about the rest.
 */

import { evaluate } from "../program/singe-format.js";

/** Measured with SwiftShader on an idle core of a server. */
const FLOPS = 0.7e9;
const LONG_SECONDS = 2;

export async function warn({ vendor, architecture, description }, { kernels, steps }, sizes, count) {
  const work = (step) => {
    try {
      return evaluate(kernels[step.kernel].flops, sizes);
    } catch {
      return 0; // not a kernel's step, or of sizes that are found in mid-run
    }
  };
  const run = steps.reduce((sum, step) => sum + work(step), 0) / FLOPS;
  await new Promise((done) => setTimeout(done, LONG_SECONDS * 1000));
  const left = count.kernels - count.compiled;
  const halves = Math.min(navigator.hardwareConcurrency, left) / 2; // each core is amid a kernel
  const start = left ? (LONG_SECONDS * count.kernels) / (count.compiled + halves) : 0;
  if (start + run < LONG_SECONDS) return;
  const how = count.compiled ? "about" : "at least";
  const adapter = description || [vendor, architecture].filter(Boolean).join(" ") || "no GPU";
  console.warn(
    `singe: WebGPU runs in software here (${adapter}): expect ${how} ${shown(start)} to load this model and at least ${shown(run)} for a run. ` +
      `The device "wasm" is faster; a browser with a GPU may need it allowed in its settings.`,
  );
}

const shown = (seconds) => (seconds < 1 ? "a second" : `${Math.round(seconds)} s`);
