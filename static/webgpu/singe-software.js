/**
 * The warning about a WebGPU adapter in software: right results, so slowly that a page seems to hang.
 *
 * Contract: `warn(adapterInfo, program, sizes, characters)` writes the time to expect to the console, if it is long. `characters`
 * has how many of the texts are compiled, and how many each of the others has: what two seconds of that tell about the rest.
 */

/** @import { Program, Sizes, StepParts } from "../types/program.d.ts" */

import { evaluate } from "../program/singe-format.js";

/** Measured with SwiftShader on an idle core of a server. */
const FLOPS = 0.7e9;
const LONG_SECONDS = 2;

/**
 * @param {GPUAdapterInfo} adapterInfo
 * @param {Program} program
 * @param {Sizes} sizes
 * @param {{ compiled: number, left: Map<number, number> }} characters
 */
export async function warn({ vendor, architecture, description }, { kernels, steps }, sizes, { compiled, left }) {
  const work = (/** @type {StepParts} */ step) => {
    try {
      return evaluate(kernels[Number(step.kernel)].flops, sizes);
    } catch {
      return 0; // not a kernel's step, or of sizes that are found in mid-run
    }
  };
  const run = sum(steps.map(work)) / FLOPS;
  await new Promise((done) => setTimeout(done, LONG_SECONDS * 1000));
  const lengths = [...left.values()];
  const amid = sum(lengths.slice(0, navigator.hardwareConcurrency)) / (compiled ? 2 : 1); // each core is amid a kernel
  const start = lengths.length ? (LONG_SECONDS * (compiled + sum(lengths))) / (compiled + amid) : 0;
  if (start + run < LONG_SECONDS) return;
  const how = compiled ? "about" : "at least";
  const adapter = description || [vendor, architecture].filter(Boolean).join(" ") || "no GPU";
  console.warn(
    `singe: WebGPU runs in software here (${adapter}): expect ${how} ${shown(start)} to load this model and at least ${shown(run)} for a run. ` +
      `The device "wasm" is faster; a browser with a GPU may need it allowed in its settings.`,
  );
}

/** @param {number[]} numbers */
const sum = (numbers) => numbers.reduce((a, b) => a + b, 0);
/** @param {number} seconds */
const shown = (seconds) => (seconds < 1 ? "a second" : `${Math.round(seconds)} s`);
