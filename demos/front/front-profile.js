/**
 * The profile of a benchmarked model: its kernels as a table, as Markdown, and as a trace to save.
 *
 * Contract: `findPeaks(device, signal)` measures a device's peak rates in this browser once, with the bundle in peaks/. If
 * that fails, `showProfile` compares with the fastest kernel of the profile, and says so. Rows add up to the run, even if
 * only the slowest are shown.
 */

import { load } from "./singe.js";

/** Matrix products and copies to measure: larger until one takes long enough to keep the device busy. */
const STAGES = [
  [1, 2 ** 23],
  [4, 2 ** 25],
  [16, 2 ** 25],
];
const BUSY_S = 0.004;
const STAGE_S = 0.5;
/** How many kernels are shown at first. */
const MOST = 12;
const REST = {
  upload: () => "inputs to the device",
  readback: (device) => (device === "wasm" ? "outputs from the device" : "waiting for the device, outputs from it"),
};
const COLUMNS = ["kernel", "ms", "share", "calls", "GFLOP/s", "of peak", "GB/s", "of peak"];

const byId = (id) => document.getElementById(id);
const table = byId("profile-table");
const measured = new Map();
let trace;

byId("profile-all").addEventListener("click", () => {
  table.classList.toggle("whole");
  nameToggle();
});

/** A device's peaks per second and how they were measured: { flops, gemm, bytes, copy }; or { why } not. */
export async function findPeaks(device, signal) {
  const found = measured.get(device) ?? (await measurePeaks(device, signal));
  if (!found.why) measured.set(device, found);
  return found;
}

async function measurePeaks(device, signal) {
  let best;
  try {
    const model = await load("peaks/", { device, signal });
    try {
      const [, side] = model.inputs[0].shape;
      for (const [squares, count] of STAGES) {
        signal.throwIfAborted();
        const inputs = { x: new Float32Array(squares * side * side), v: new Float32Array(count) };
        const { kernels } = await model.profile(inputs, { seconds: STAGE_S });
        const product = kernels.find(({ kind }) => kind === "matmul");
        const copy = kernels.find(({ kind }) => kind === "elementwise");
        best = larger(best, product, copy);
        if (Math.max(product.seconds, copy.seconds) > BUSY_S) break;
      }
    } finally {
      await model.dispose();
    }
  } catch (error) {
    if (signal.aborted) throw error;
    if (!best) return { why: error?.message ?? String(error) };
  }
  return best;
}

function larger(best, product, copy) {
  const [flops, bytes] = [rateOf(product, "flops"), rateOf(copy, "bytes")];
  const [squares, rows, side] = product.output;
  const found = { ...best };
  if (!(best?.flops > flops)) Object.assign(found, { flops, gemm: `a product of ${squares * rows} × ${side} by ${side} × ${side}` });
  if (!(best?.bytes > bytes)) Object.assign(found, { bytes, copy: `a copy of ${copy.output[0] / 2 ** 18} MiB` });
  return found;
}

// --- what is shown ---------------------------------------------------------------------------------------------------

/** The text of the table and the Markdown: rows are { names, share, cells }. */
function texts(title, profile, peaks) {
  const { device, clock, runs, run, seconds, kernels, rest } = profile;
  const { scale, origin } = scaleOf(kernels, peaks);
  const times = `Times: ${clock}; means of the faster half of ${runs} runs.`;
  const apart = seconds > 1.001 * run ? " Timed apart, the kernels take longer than within a run." : "";
  const row = (names, calls, time, work = ["", "", "", ""]) => {
    const share = seconds && time / seconds;
    return { names, share, cells: [ms(time), percent(share, 1), calls, ...work] };
  };
  const rated = (kernel, of) => {
    const rate = rateOf(kernel, of);
    return rate ? [giga(rate), percent(rate / scale[of], 0)] : ["", ""];
  };
  const kernelRow = (k) => {
    const detail = `${k.kind} → ${k.output.join("×") || "scalar"}`;
    return row([k.label, detail], k.calls, k.seconds, [...rated(k, "flops"), ...rated(k, "bytes")]);
  };
  const total = (list, of) => list.reduce((sum, k) => sum + k[of], 0);
  const others = kernels.slice(MOST);
  return {
    caption: `${title}: ${ms(run)} ms a run`,
    rows: kernels.map(kernelRow),
    others: others.length > 1 && row([`${others.length} others`], total(others, "calls"), total(others, "seconds")),
    rest: Object.entries(rest).map(([name, time]) => row([REST[name](device)], "", time)),
    together: row(["together"], total(kernels, "calls"), seconds),
    notes: `${times}${apart} ${origin} What stays in a cache may pass them.`,
  };
}

const rateOf = (kernel, of) => (kernel[of] && kernel.seconds ? kernel[of] / kernel.seconds : 0);

/** The peaks that rates are compared with, and their origin. */
function scaleOf(kernels, { flops, bytes, gemm, copy, why }) {
  const best = (of) => Math.max(...kernels.map((kernel) => rateOf(kernel, of)));
  const scale = why ? { flops: best("flops"), bytes: best("bytes") } : { flops, bytes };
  const [most, fastest] = [`${giga(scale.flops)} GFLOP/s`, `${giga(scale.bytes)} GB/s`];
  const origin = why
    ? `Peaks are the best of these kernels, ${most} and ${fastest}, for none could be measured: ${why}.`
    : `Peaks were measured here: ${most} in ${gemm}, ${fastest} in ${copy}.`;
  return { scale, origin };
}

const ms = (time) => (1000 * time).toFixed(3);
const giga = (rate) => (rate < 1e9 ? (rate / 1e9).toPrecision(2) : (rate / 1e9).toFixed(1));
const percent = (part, digits) => `${(100 * part).toFixed(digits)} %`;

export function showProfile(title, profile, peaks) {
  const { caption, rows, others, rest, together, notes } = texts(title, profile, peaks);
  const shown = rows.map((row, k) => tableRow(row, others && k >= MOST ? "more" : ""));
  if (others) shown.push(tableRow(others, "others"));
  table.caption.textContent = caption;
  table.tBodies[0].replaceChildren(...shown, ...rest.map((row) => tableRow(row, "rest")));
  table.tFoot.replaceChildren(tableRow(together, "", false));
  table.classList.remove("whole");
  byId("profile-all").hidden = !others;
  nameToggle();
  byId("profile-notes").textContent = notes;
  offerTrace(title, profile);
  byId("profile-found").hidden = false;
}

export function hideProfile() {
  byId("profile-found").hidden = true;
}

function tableRow({ names, share, cells }, className, bar = true) {
  const row = Object.assign(document.createElement("tr"), { className });
  const [name, detail] = names;
  const head = Object.assign(document.createElement("th"), { scope: "row", textContent: name });
  if (detail) head.append(Object.assign(document.createElement("span"), { textContent: detail, className: "detail" }));
  row.append(head);
  for (const text of cells) Object.assign(row.insertCell(), { textContent: text, className: "number" });
  const text = Object.assign(document.createElement("span"), { textContent: cells[1], className: "share" });
  row.cells[2].replaceChildren(...(bar ? [barOf(share)] : []), text);
  return row;
}

function barOf(share) {
  const track = Object.assign(document.createElement("span"), { className: "track" });
  track.append(document.createElement("span"));
  track.style.setProperty("--value", share);
  return track;
}

function nameToggle() {
  const whole = table.classList.contains("whole");
  byId("profile-all").textContent = whole ? "Show the dearest kernels" : "Show all kernels";
}

function offerTrace(title, { trace: data }) {
  if (trace) URL.revokeObjectURL(trace);
  trace = URL.createObjectURL(new Blob([JSON.stringify(data)], { type: "application/json" }));
  const name = title.toLowerCase().replaceAll(/[^a-z0-9]+/g, "-");
  Object.assign(byId("profile-trace"), { href: trace, download: `singe-${name}.json` });
}

export function profileMarkdown(title, profile, peaks) {
  const { caption, rows, rest, together, notes } = texts(title, profile, peaks);
  const line = ({ names, cells }) => [names.join(", "), ...cells];
  const lines = [COLUMNS, COLUMNS.map((_, k) => (k ? "--:" : "---")), ...[...rows, ...rest, together].map(line)];
  return `${caption}\n\n${lines.map((cells) => `| ${cells.join(" | ")} |`).join("\n")}\n\n${notes}`;
}
