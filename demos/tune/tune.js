/** The page that teaches a language model a text: steps of training, and the same beginning continued before and after. */

import { load } from "./model/read/singe.js";
import { NAMES, say, showProgress } from "../shared/panel.js";
import { Plot, thinned } from "../train/plot.js";

const FOLDER = "model/";
const WORDS = { temperature: 0, maxTokens: 40 };
const MODEL = "model.";

const byId = (id) => document.getElementById(id);
const losses = new Plot(byId("losses"), {
  scale: (loss) => (Math.log10(Math.max(loss, 0.01)) + 2) / 3,
  ticks: [[0.01, "0.01"], [0.1, "0.1"], [1, "1"], [10, "10"]],
});

/** What the chosen device has: the model, the step, and their sessions. */
let opened;
let turn = 0;
let busy = false;
let stopping = false;
let history = [];
/** Whether the session `after` lacks what the last steps learnt. */
let stale = false;

byId("train").addEventListener("click", () => (busy ? stop() : train()));
byId("anew").addEventListener("click", () => act("Starting anew …", anew));
byId("go").addEventListener("click", () => act("Writing …", goOn));
byId("download").addEventListener("click", () => act("Writing the file …", download));
byId("prompt").addEventListener("keydown", (event) => event.key === "Enter" && !byId("go").disabled && byId("go").click());
byId("backend").addEventListener("change", open);

const manifest = await fetch(`${FOLDER}step/model.json`)
  .then((response) => response.json())
  .catch(() => undefined);
const known = Object.keys(manifest?.targets ?? {});
for (const name of known.length === 1 ? known : ["auto", ...known]) byId("backend").add(new Option(NAMES[name] ?? name, name));
await open();

// --- what the page does: one thing at a time ---------------------------------------------------------------------------

/** Load the model and the step on the chosen device. */
async function open() {
  const mine = ++turn;
  const before = opened;
  opened = undefined;
  stopping = true;
  enable(false);
  say("loading", "Loading …");
  try {
    await Promise.all([before?.step.dispose(), before?.llm.dispose()]);
    const device = byId("backend").value;
    const amounts = {};
    const told = (part) => (progress) => {
      amounts[part] = progress;
      const sum = (what) => Object.values(amounts).reduce((total, amount) => total + amount[what], 0);
      if (mine === turn) showProgress({ ...progress, loaded: sum("loaded"), total: sum("total") });
    };
    // The step finds its weights where the model has put them.
    const llm = await load(`${FOLDER}read/`, { device, onProgress: told("read") });
    const step = await load(`${FOLDER}step/`, { device: llm.device, worker: true, onProgress: told("step") });
    if (mine !== turn) return void (await Promise.all([llm.dispose(), step.dispose()]));
    opened = { llm, step, training: step.session(), before: llm.session(), after: llm.session() };
    const learnt = opened.training.states.filter(({ name }) => name.startsWith(MODEL));
    byId("size").textContent = (learnt.reduce((sum, { shape }) => sum + 4 * shape.reduce((a, b) => a * b, 1), 0) / 1e6).toFixed(1);
    byId("progress").hidden = true;
    begin();
    await act("Writing …", goOn);
  } catch (error) {
    if (mine === turn) fail(error);
  } finally {
    if (mine === turn) byId("progress").hidden = true;
  }
}

/** Do something else than training, with the controls off. */
async function act(text, work) {
  const here = opened;
  enable(false);
  say("running", text);
  try {
    await work(here);
    if (here === opened) ready();
  } catch (error) {
    if (here === opened) fail(error);
  }
}

async function train() {
  const here = opened;
  [busy, stopping] = [true, false];
  enable(true);
  say("running", `Training on ${NAMES[here.step.device]} …`);
  try {
    const [, length] = here.step.inputs.find(({ name }) => name === "tokens").shape;
    const batches = await here.llm.examples(byId("text").value, length);
    const goal = history.length + Math.max(1, Math.min(500, byId("most").valueAsNumber || 1));
    const begun = performance.now();
    let tokens = 0;
    showCourse(goal);
    while (here === opened && !stopping && history.length < goal) {
      const batch = batches[history.length % batches.length];
      const { loss } = await here.training.step(batch);
      if (here !== opened) return;
      stale = true;
      history.push(loss.data[0]);
      tokens += batch.mask.data.reduce((sum, counts) => sum + counts);
      figure("speed", (1000 * tokens) / (performance.now() - begun), (value) => value.toFixed(value < 10 ? 1 : 0));
      showCourse(goal);
    }
    if (here !== opened) return;
    say("running", "Writing …");
    await goOn(here);
    if (here !== opened) return;
    busy = false;
    ready();
  } catch (error) {
    if (here !== opened) return;
    busy = false;
    fail(error);
  }
}

function stop() {
  stopping = true;
  byId("train").disabled = true;
}

/** Continue the beginning without and with what was learnt. */
async function goOn(here) {
  const beginning = byId("prompt").value.trim() || "The";
  await write(here, "before", beginning);
  if (!history.length) return;
  if (stale) await here.after.adapt(await statesOf(here));
  stale = false;
  await write(here, "after", beginning);
  byId("learnt").textContent = `${history.length.toLocaleString("en")} steps`;
}

async function write(here, name, beginning) {
  const place = byId(name);
  const start = Object.assign(document.createElement("b"), { textContent: beginning });
  place.replaceChildren(start);
  for await (const part of here[name].generate(beginning, WORDS)) {
    if (here !== opened) return;
    place.append(part);
  }
}

/** The adapter as it is now: the states of the step that are its model. */
async function statesOf({ training }) {
  const states = {};
  for (const { name } of training.states) if (name.startsWith(MODEL)) states[name] = await training.read(name);
  return states;
}

async function anew(here) {
  await here.training.reset();
  begin();
}

async function download(here) {
  const address = URL.createObjectURL(await here.llm.adapterFile(await statesOf(here)));
  Object.assign(document.createElement("a"), { href: address, download: "adapter.gguf" }).click();
  setTimeout(() => URL.revokeObjectURL(address), 60_000);
}

// --- what the page shows -----------------------------------------------------------------------------------------------

/** Nothing was learnt yet. */
function begin() {
  busy = false;
  history = [];
  byId("learnt").textContent = "no step yet";
  byId("after").replaceChildren();
  figure("speed");
  showCourse(0);
}

function showCourse(goal) {
  const count = history.length;
  figure("loss", history.at(-1), (value) => value.toFixed(3));
  figure("steps", count, (value) => value.toLocaleString("en"));
  const { gpu, wasm, js } = ["llm", "step"].reduce(
    (sum, part) => Object.fromEntries(Object.entries(opened[part].memory).map(([kind, bytes]) => [kind, sum[kind] + bytes])),
    { gpu: 0, wasm: 0, js: 0 },
  );
  figure("memory", gpu + wasm + js, (value) => `${(value / 1e6).toFixed(0)} MB`);
  byId("course").value = goal ? count / goal : 0;
  byId("left").textContent = goal && count < goal ? `${(goal - count).toLocaleString("en")} steps to go` : "";
  losses.show(Math.max(count, goal), [{ points: thinned(history), colour: "--loss" }]);
}

function figure(id, value, text) {
  byId(id).dataset.value = value ?? "";
  byId(id).textContent = value === undefined ? "–" : text(value);
}

/** The controls; while it trains, only what stops it. */
function enable(on) {
  byId("train").disabled = !on;
  byId("train").textContent = busy ? "Stop" : history.length ? "Train on" : "Train";
  for (const id of ["go", "prompt", "text", "most"]) byId(id).disabled = !on || busy;
  for (const id of ["anew", "download"]) byId(id).disabled = !on || busy || !history.length;
}

function ready() {
  enable(true);
  say("ready", `${opened.llm.name.replace(/\.gguf$/, "")} on ${NAMES[opened.step.device] ?? opened.step.device}${history.length ? `, after ${history.length} steps` : ""}.`);
}

function fail(error) {
  enable(Boolean(opened));
  say("error", `${error?.message || error}.`);
}
