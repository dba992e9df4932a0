/**
 * The benchmark of the front page: bundles of this site, loaded and run on each device of this browser.
 *
 * Contract: `runBenchmark` runs what the form says, once at a time. A model that fails on a device is a row that says
 * why, and the others go on. Inputs are random numbers from 0 to 1, the batch is 1.
 */

import { describeAdapter, findAdapter } from "./front-facts.js";
import { load, VERSION } from "./singe.js";
import { evaluate } from "./singe-format.js";

/** Milliseconds that a model may run on a device; what was measured by then counts. */
const BUDGET = 10_000;
const DEVICES = { wasm: "WebAssembly", webgpu: "WebGPU" };

const byId = (id) => document.getElementById(id);
const controls = Object.fromEntries(["model", "device", "runs", "run", "stop"].map((id) => [id, byId(`bench-${id}`)]));
const rows = byId("bench-results").querySelector("tbody");
let stopping;
let markdown = "";

controls.stop.addEventListener("click", () => stopping?.abort());
byId("bench-copy").addEventListener("click", copy);

export async function runBenchmark() {
  if (stopping) return;
  stopping = new AbortController();
  controls.run.disabled = true;
  controls.stop.hidden = false;
  rows.replaceChildren();
  const results = [];
  try {
    for (const option of chosen(controls.model)) {
      for (const { value: device } of chosen(controls.device)) {
        const result = { model: option.text, device: DEVICES[device], ...(await attempt(option, device)) };
        results.push(result);
        show(result);
      }
    }
    say("ready", "Done.");
  } catch (error) {
    if (!stopping.signal.aborted) throw error;
    say("ready", "Stopped.");
  } finally {
    stopping = undefined;
    controls.run.disabled = false;
    controls.stop.hidden = true;
    if (results.length) await offer(results);
  }
}

const chosen = (select) => (select.value === "all" ? [...select.options].slice(1) : [...select.selectedOptions]);

function say(state, text) {
  byId("bench-status").dataset.state = state;
  byId("bench-status").textContent = text;
}

async function attempt({ value: folder, text }, device) {
  const { signal } = stopping;
  try {
    return await measure(folder, device, `${text} on ${DEVICES[device]}`, signal);
  } catch (error) {
    if (signal.aborted) throw error;
    return { error: error?.message ?? String(error) };
  }
}

async function measure(folder, device, title, signal) {
  const onProgress = ({ loaded, total, phase }) => {
    const share = phase === "download" && total ? `, ${Math.round((100 * loaded) / total)} %` : "";
    say("loading", `${title}: ${phase}${share} …`);
  };
  const begun = performance.now();
  const model = await load(folder, { device, onProgress, signal });
  const loading = performance.now() - begun;
  try {
    const inputs = Object.fromEntries(model.inputs.map((port) => [port.name, randomInput(port)]));
    const times = [];
    const wanted = Number(controls.runs.value) + 1;
    for (let spent = 0; times.length < wanted && (spent < BUDGET || times.length < 2); spent += times.at(-1)) {
      signal.throwIfAborted();
      if (times.length % 5 === 0) say("running", `${title}: run ${times.length + 1} …`);
      await painted();
      const start = performance.now();
      await model.run(inputs);
      times.push(performance.now() - start);
    }
    const [first, ...rest] = times;
    const median = rest.sort((a, b) => a - b)[rest.length >> 1];
    return { loading, first, median, runs: rest.length, rate: (await countFlops(folder, device)) / median / 1e6 };
  } finally {
    await model.dispose();
  }
}

/** The page shows what was said, and hears the stop button. */
const painted = () => new Promise((resolve) => setTimeout(resolve));

function randomInput({ name, dtype, shape }) {
  if (dtype !== "float32") throw new Error(`the input ${name} is ${dtype}; the benchmark makes float32`);
  const dims = shape.map((d) => (typeof d === "number" ? d : 1));
  const count = dims.reduce((a, b) => a * b, 1);
  return { data: Float32Array.from({ length: count }, Math.random), shape: dims };
}

/** Operations of one run, as the bundle's Program counts them, at a batch of 1. */
async function countFlops(folder, device) {
  const { kernels, steps } = (await (await fetch(`${folder}model.json`)).json()).targets[device].program;
  const ones = new Proxy({}, { get: () => 1 });
  const sum = (list) => list.reduce((total, step) => total + (step.do === "dispatch" ? evaluate(kernels[step.kernel].flops, ones) : 0), 0);
  return sum(steps);
}

const ms = (x) => `${x >= 100 ? x.toFixed(0) : x.toFixed(x >= 10 ? 1 : 2)} ms`;
const cells = ({ model, device, loading, first, median, runs, rate }) => [
  model, device, ms(loading), ms(first), `${ms(median)} (${runs})`, rate.toPrecision(3),
];

function show(result) {
  const row = rows.insertRow();
  if (result.error) {
    for (const text of [result.model, result.device, result.error]) row.insertCell().textContent = text;
    row.cells[2].colSpan = 4;
  } else {
    cells(result).forEach((text, k) => Object.assign(row.insertCell(), { textContent: text, className: k < 2 ? "" : "number" }));
  }
  byId("bench-results").hidden = false;
}

/** The results as Markdown, ready to be copied. */
async function offer(results) {
  const adapter = await findAdapter();
  const lines = results.map((r) => (r.error ? [r.model, r.device, r.error.replaceAll(/\s*[|\n]\s*/g, " "), "", "", ""] : cells(r)));
  const table = [["model", "device", "load", "first run", "median (runs)", "GFLOP/s"], ["---", "---", "--:", "--:", "--:", "--:"], ...lines];
  const facts = [
    `Singe ${VERSION}`,
    `${navigator.hardwareConcurrency} cores`,
    globalThis.crossOriginIsolated ? "isolated" : "not isolated",
    adapter ? `WebGPU: ${describeAdapter(adapter)}` : "no WebGPU",
    navigator.userAgent,
  ];
  markdown = `${table.map((line) => `| ${line.join(" | ")} |`).join("\n")}\n\n${facts.join(" · ")}\n`;
  byId("bench-text").value = markdown;
  byId("bench-copied").textContent = "";
  byId("bench-copying").hidden = false;
}

async function copy() {
  try {
    await navigator.clipboard.writeText(markdown);
    byId("bench-copied").textContent = "Copied.";
  } catch {
    byId("bench-by-hand").hidden = false;
    byId("bench-text").select();
  }
}
