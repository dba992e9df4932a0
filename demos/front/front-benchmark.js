/**
 * The benchmark of the front page: bundles of this site, loaded and run on each device of this browser.
 *
 * Contract: `runBenchmark` runs the form's choices one after the other. If a model fails on a device, its row says why and
 * the others continue; models that ran can be profiled. Inputs are random numbers from 0 to 1; the batch is 1.
 */

import { describeAdapter, findAdapter } from "./front-facts.js";
import { findPeaks, hideProfile, profileMarkdown, showProfile } from "./front-profile.js";
import { load, VERSION } from "./singe.js";

/** The most milliseconds for a model on a device; what was measured by then is shown. */
const BUDGET = 10_000;
/** Seconds for profiling its kernels. */
const PROFILE_S = 2;
const DEVICES = { wasm: "WebAssembly", webgpu: "WebGPU" };

const byId = (id) => document.getElementById(id);
const controls = Object.fromEntries(["model", "device", "runs", "run", "stop"].map((id) => [id, byId(`bench-${id}`)]));
const rows = byId("bench-results").querySelector("tbody");
let stopping;
let markdown = "";
/** The results: { model, device, folder, target, … }; `profile` is a profile as Markdown. */
let results = [];

controls.stop.addEventListener("click", () => stopping?.abort());
byId("bench-copy").addEventListener("click", copy);
byId("profile-form").addEventListener("submit", async (event) => {
  event.preventDefault();
  try {
    await runProfile(results[byId("profile-of").value]);
  } catch (error) {
    say("error", error?.message ?? String(error));
  }
});

/** Run a task that can be stopped; nothing else runs meanwhile. */
async function alone(work) {
  if (stopping) return;
  stopping = new AbortController();
  const buttons = [controls.run, byId("profile-run")];
  for (const button of buttons) button.disabled = true;
  controls.stop.hidden = false;
  try {
    await work();
    say("ready", "Done.");
  } catch (error) {
    if (!stopping.signal.aborted) throw error;
    say("ready", "Stopped.");
  } finally {
    stopping = undefined;
    for (const button of buttons) button.disabled = false;
    controls.stop.hidden = true;
    if (results.length) await offer();
  }
}

export const runBenchmark = () =>
  alone(async () => {
    rows.replaceChildren();
    hideProfile();
    byId("profile").hidden = true;
    results = [];
    for (const option of chosen(controls.model)) {
      for (const { value: target } of chosen(controls.device)) {
        const names = { model: option.text, device: DEVICES[target], folder: option.value, target };
        const result = { ...names, ...(await attempt(option, target)) };
        results.push(result);
        show(result);
      }
    }
  });

/** Profile a model that was benchmarked, and show the result. */
const runProfile = (result) =>
  alone(async () => {
    const { signal } = stopping;
    const { folder, target } = result;
    const title = titleOf(result);
    hideProfile();
    say("loading", `${title}: loading …`);
    const model = await load(folder, { device: target, signal });
    let found;
    try {
      say("running", `${title}: measuring its kernels …`);
      await painted();
      found = await model.profile(randomInputs(model), { seconds: PROFILE_S });
    } finally {
      await model.dispose();
    }
    signal.throwIfAborted();
    say("running", `${DEVICES[target]}: measuring its peaks …`);
    await painted();
    const given = [title, found, await findPeaks(target, signal)];
    showProfile(...given);
    result.profile = profileMarkdown(...given);
  });

const titleOf = ({ model, device }) => `${model} on ${device}`;

const chosen = (select) => (select.value === "all" ? [...select.options].slice(1) : [...select.selectedOptions]);

function say(state, text) {
  byId("bench-status").dataset.state = state;
  byId("bench-status").textContent = text;
}

async function attempt({ value: folder, text }, device) {
  const { signal } = stopping;
  try {
    return await measure(folder, device, titleOf({ model: text, device: DEVICES[device] }), signal);
  } catch (error) {
    if (signal.aborted) throw error;
    return { error: error?.message ?? String(error) };
  }
}

async function measure(folder, device, title, signal) {
  const onProgress = ({ phase, ...of }) => {
    const [done, all] = { download: [of.loaded, of.total], compile: [of.compiled, of.kernels] }[phase] ?? [];
    if (all) say("loading", `${title}: ${phase}, ${Math.round((100 * done) / all)} % …`);
  };
  const begun = performance.now();
  const model = await load(folder, { device, onProgress, signal });
  const loading = performance.now() - begun;
  try {
    const inputs = randomInputs(model);
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
    const { kernels } = await model.profile(inputs, { seconds: 0 });
    const flops = kernels.reduce((total, kernel) => total + kernel.flops, 0);
    return { loading, first, median, runs: rest.length, rate: flops / median / 1e6 };
  } finally {
    await model.dispose();
  }
}

/** Wait until the page has been updated and can react to the stop button. */
const painted = () => new Promise((resolve) => setTimeout(resolve));

const randomInputs = ({ inputs }) => Object.fromEntries(inputs.map((port) => [port.name, randomInput(port)]));

function randomInput({ name, dtype, shape }) {
  if (dtype !== "float32") throw new Error(`the input ${name} is ${dtype}; the benchmark makes float32`);
  const dims = shape.map((d) => (typeof d === "number" ? d : 1));
  const count = dims.reduce((a, b) => a * b, 1);
  return { data: Float32Array.from({ length: count }, Math.random), shape: dims };
}

const ms = (x) => `${x >= 100 ? x.toFixed(0) : x.toFixed(x >= 10 ? 1 : 2)} ms`;
const cells = ({ model, device, loading, first, median, runs, rate }) => [
  model, device, `${ms(median)} (${runs})`, ms(first), ms(loading), rate.toPrecision(3),
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

/** The results as Markdown, with the profiles of those without an error. */
async function offer() {
  offerProfiles();
  const adapter = await findAdapter();
  const lines = results.map((r) => (r.error ? [r.model, r.device, r.error.replaceAll(/\s*[|\n]\s*/g, " "), "", "", ""] : cells(r)));
  const table = [["model", "device", "median (runs)", "first run", "load", "GFLOP/s"], ["---", "---", "--:", "--:", "--:", "--:"], ...lines];
  const facts = [
    `Singe ${VERSION}`,
    `${navigator.hardwareConcurrency} cores`,
    globalThis.crossOriginIsolated ? "isolated" : "not isolated",
    adapter ? `WebGPU: ${describeAdapter(adapter)}` : "no WebGPU",
    navigator.userAgent,
  ];
  const lists = [table.map((line) => `| ${line.join(" | ")} |`).join("\n"), ...results.flatMap((r) => r.profile ?? [])];
  markdown = `${lists.join("\n\n")}\n\n${facts.join(" · ")}\n`;
  byId("bench-text").value = markdown;
  byId("bench-copied").textContent = "";
  byId("bench-copying").hidden = false;
}

function offerProfiles() {
  const options = [...results.entries()].flatMap(([k, r]) => (r.error ? [] : new Option(titleOf(r), k)));
  const before = byId("profile-of").selectedOptions[0]?.text;
  byId("profile-of").replaceChildren(...options);
  const same = options.find(({ text }) => text === before);
  if (same) same.selected = true;
  byId("profile").hidden = !options.length;
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
