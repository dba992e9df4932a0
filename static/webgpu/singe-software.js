/**
 * The warning about a WebGPU adapter in software: right results, so slowly that a page seems to hang.
 *
 * Contract: `warn(adapterInfo, program, sizes, characters)` writes the time to expect to the console, if it is long. `characters`
 * has how many of the texts are compiled, and how many each of the others has: what two seconds of that tell about the rest.
 */

/** @import { Dim, Program, Sizes } from "../types/program.d.ts" */

import { evaluate } from "../program/singe-format.js";
import { COPY, STOP, headsOf } from "../program/singe-words.js";

/** Measured with SwiftShader on an idle core of a server. */
const FLOPS = 0.7e9;
const LONG_SECONDS = 2;

/**
 * @param {GPUAdapterInfo} adapterInfo
 * @param {Program} program
 * @param {Sizes} sizes
 * @param {{ compiled: number, left: Map<number, number> }} characters
 */
export async function warn({ vendor, architecture, description }, { kernels, words }, sizes, { compiled, left }) {
  let flops = 0;
  let behind = 0; // the end of conditions and loops so far
  for (const at of headsOf(words)) {
    if (words[at] < COPY && words[at] !== STOP) behind = Math.max(behind, at + words[at + 2]);
    if (words[at] >= 0 && at >= behind) flops += work(kernels[words[at]].flops, sizes);
  }
  const run = flops / FLOPS;
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

/**
 * A kernel's operations; 0 if they depend on sizes that are found in mid-run.
 * @param {Dim} flops
 * @param {Sizes} sizes
 */
function work(flops, sizes) {
  try {
    return evaluate(flops, sizes);
  } catch {
    return 0;
  }
}

/** @param {number[]} numbers */
const sum = (numbers) => numbers.reduce((a, b) => a + b, 0);
/** @param {number} seconds */
const shown = (seconds) => (seconds < 1 ? "a second" : `${Math.round(seconds)} s`);
