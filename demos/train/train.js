/** The page that trains: choices, the course of training as figures and plots, drawing, teaching, weights as a file. */

import { findReasons } from "../shared/engines.js";
import { showAnswer, showPicture } from "../shared/answer.js";
import { NAMES, latest, say, showProgress, showReasons } from "../shared/panel.js";
import { digitPad } from "../shared/pad.js";
import { toPicture } from "../shared/strokes.js";
import { fetchDigits } from "../shared/digits.js";
import { showFilters, showImages } from "../shared/pictures.js";
import { Plot, smoothed, thinned } from "./plot.js";
import { readTensors, writeTensors } from "./safetensors.js";
import { Trainer } from "../shared/trainer.js";

/** Of model.py: when the learning rate has reached its last value. */
const STEPS = 1500;
const MORE = 500;
const LEARNING = 100;
/** Test images that are read while it trains, every so many steps; and all of them at the end, for at most some seconds. */
const GLANCE = 500;
const EVERY = 50;
const PATIENCE = 5;
const MISTAKES = 24;
/** Fewer training images than this are a set for want of a better one. */
const FEW = 5000;

const byId = (id) => document.getElementById(id);
const choices = ["network", "backend"].map(byId);

const accuracies = new Plot(byId("accuracies"), {
  scale: (right) => -Math.log10(Math.max(1 - right, 0.004)) / -Math.log10(0.004),
  ticks: [[0, "0 %"], [0.5, "50 %"], [0.9, "90 %"], [0.97, "97 %"], [0.99, "99 %"]],
});
const losses = new Plot(byId("losses"), {
  scale: (loss) => (Math.log10(loss) + 2) / 2.6,
  ticks: [[0.01, "0.01"], [0.03, "0.03"], [0.1, "0.1"], [0.3, "0.3"], [1, "1"], [3, "3"]],
});

let trainer;
let turn = 0;
let busy = false;
let stopping = false;
let goal = STEPS;
let spent = 0;
let digits;
/** Why Python is missing here, and whether it was chosen where there was a choice. */
let withoutPython = "";
let wish = false;
const taught = [];

const read = latest(readDrawing);
const pad = digitPad(read, teach);

byId("train").addEventListener("click", () => (busy ? stop() : train(nextGoal())));
byId("anew").addEventListener("click", () => act("Starting anew …", anew));
byId("varied").addEventListener("change", () => trainer?.vary(byId("varied").checked));
byId("learn").addEventListener("click", () => train(trainer.done + LEARNING));
byId("forget").addEventListener("click", forget);
byId("download").addEventListener("click", () => act("Writing the weights …", download));
byId("upload").addEventListener("change", () => byId("upload").files[0] && act("Reading the weights …", upload));
for (const choice of choices) choice.addEventListener("change", open);
byId("python").addEventListener("change", () => {
  wish = byId("python").checked;
  open();
});

pad.clear(); // shows that nothing is drawn
open().then(findReasons).then(disable);

// --- what the page does: one thing at a time ---------------------------------------------------------------------------

/** Load the chosen network on the chosen backend. */
async function open() {
  const mine = ++turn;
  const old = trainer;
  trainer = undefined;
  old?.dispose();
  enable(false);
  const [network, device] = choices.map((choice) => choice.value);
  const python = device === "numpy" || (wish && !withoutPython);
  byId("python").checked = python;
  byId("python").disabled = device === "numpy" || Boolean(withoutPython);
  say("loading", `Loading the network for ${where()} …`);
  const onProgress = (progress) => mine === turn && showProgress(progress);
  try {
    digits ??= await fetchDigits("digits.bin", onProgress);
    const found = await Trainer.open({ folder: `model/${network}/`, network, device, python, digits, onProgress });
    if (mine !== turn) return void found.dispose();
    trainer = found;
    trainer.teach(taught);
    trainer.vary(byId("varied").checked);
    byId("many").textContent = digits.train.count.toLocaleString("en");
    byId("few").hidden = digits.train.count >= FEW;
    begun();
    await showLayer();
    ready();
    read();
  } catch (error) {
    if (mine === turn) fail(error);
  } finally {
    if (mine === turn) byId("progress").hidden = true;
  }
}

/** Do something else than training, with the controls off. */
async function act(text, work) {
  const here = trainer;
  enable(false);
  say("running", text);
  try {
    await work(here);
    if (here !== trainer) return;
    ready();
    read();
  } catch (error) {
    if (here === trainer) fail(error, true);
  }
}

async function train(to) {
  const here = trainer;
  goal = to;
  [busy, stopping] = [true, false];
  enable(true);
  say("running", `Training on ${where()} …`);
  const clock = new Clock(spent);
  try {
    let shown = 0;
    while (here === trainer && !stopping && here.done < goal) {
      await here.step();
      clock.tick();
      if (here.done % EVERY === 0 && here.done < goal) await glance(here);
      if (performance.now() - shown < 100) continue;
      shown = performance.now();
      if (here === trainer) showCourse(clock);
      await painted();
    }
    if (here !== trainer) return;
    spent = clock.seconds;
    showCourse(clock);
    say("running", "Reading the test images …");
    await judge(here);
    if (here !== trainer) return;
    busy = false;
    ready();
  } catch (error) {
    if (here !== trainer) return;
    busy = false;
    fail(error, true);
  }
}

function stop() {
  stopping = true;
  byId("train").disabled = true;
}

function nextGoal() {
  return trainer.done < STEPS ? STEPS : trainer.done + MORE;
}

/** A look at some test images. */
async function glance(here) {
  const { right } = await here.evaluate(GLANCE);
  if (here !== trainer) return;
  showAccuracy(right, "");
  await showLayer();
  read();
}

async function judge(here) {
  const { right, count, wrong } = await here.evaluate(Infinity, PATIENCE);
  if (here !== trainer) return;
  showAccuracy(right, `of ${count.toLocaleString("en")}`);
  showImages(byId("mistakes"), wrong.slice(0, MISTAKES).map(({ image, label, read }) => ({ image, text: `${label} as ${read}` })), 255);
  byId("none").textContent = `${wrong.length.toLocaleString("en")} of ${count.toLocaleString("en")} test images; “1 as 2” is a one that it reads as a two.`;
  showCourse();
  await showLayer();
  read();
}

async function anew(here) {
  await here.reset();
  if (here !== trainer) return;
  begun();
  await showLayer();
}

/** Nothing was trained yet, or weights were loaded. */
function begun() {
  busy = false;
  spent = 0;
  goal = Math.max(STEPS, trainer.done);
  byId("mistakes").replaceChildren();
  byId("none").textContent = "They are shown when it has been trained.";
  for (const id of ["accuracy", "loss", "speed"]) show(id, "", "–");
  showCourse();
}

// --- your hand -------------------------------------------------------------------------------------------------------

async function readDrawing() {
  const picture = toPicture(pad.strokes);
  showPicture(picture);
  const here = trainer;
  if (!picture || !here) return;
  try {
    const parts = await here.read(picture);
    if (here === trainer && pad.strokes.length) showAnswer(parts);
  } catch (error) {
    if (here === trainer) fail(error, true);
  }
}

function teach(label) {
  taught.push({ image: toPicture(pad.strokes).map((ink) => 255 * ink), label });
  trainer?.teach(taught);
  pad.clear();
  showTaught();
}

function forget() {
  taught.length = 0;
  trainer.teach(taught);
  showTaught();
}

function showTaught() {
  showImages(byId("taught"), taught.map(({ image, label }) => ({ image, text: String(label) })), 255);
  enable(Boolean(trainer));
}

// --- weights as a file -------------------------------------------------------------------------------------------------

async function download(here) {
  const tensors = await here.tensors();
  const network = byId("network").value;
  const file = new Blob([writeTensors(tensors, { network, steps: String(here.done) })]);
  const link = Object.assign(document.createElement("a"), { href: URL.createObjectURL(file), download: `${network}.safetensors` });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

/** Without a number of steps in the file, it goes on with the last learning rate. */
async function upload(here) {
  const input = byId("upload");
  const [file] = input.files;
  input.value = ""; // so that the same file can be chosen again
  const { tensors, metadata } = readTensors(await file.arrayBuffer());
  const steps = Number.parseInt(metadata.steps ?? "", 10);
  await here.put(tensors, Number.isNaN(steps) ? STEPS : Math.min(Math.max(0, steps), 1e6));
  if (here !== trainer) return;
  begun();
  await judge(here);
}

// --- what is shown ---------------------------------------------------------------------------------------------------

/** Steps of late, and seconds of training. */
class Clock {
  #before;
  #begun = performance.now();
  #times = [this.#begun];

  constructor(before) {
    this.#before = before;
  }

  tick() {
    this.#times.push(performance.now());
    if (this.#times.length > 40) this.#times.shift();
  }

  get seconds() {
    return this.#before + (this.#times.at(-1) - this.#begun) / 1000;
  }

  get rate() {
    return (1000 * (this.#times.length - 1)) / (this.#times.at(-1) - this.#times[0]);
  }
}

function showCourse(clock) {
  const { done, history } = trainer;
  const smooth = smoothed(history.losses);
  show("steps", done, done.toLocaleString("en"));
  if (history.losses.length && !Number.isNaN(smooth.at(-1))) show("loss", history.losses.at(-1), smooth.at(-1).toFixed(3));
  if (clock?.rate) show("speed", clock.rate, clock.rate.toFixed(clock.rate < 10 ? 1 : 0));
  const seconds = clock?.seconds ?? spent;
  show("time", seconds, time(seconds));
  byId("course").value = done / goal;
  const left = clock?.rate && busy ? `, ${time((goal - done) / clock.rate)} left` : "";
  byId("left").textContent = `Step ${done.toLocaleString("en")} of ${goal.toLocaleString("en")}${left}`;
  losses.show(goal, [
    { points: thinned(history.losses), colour: "--loss", thin: true },
    { points: thinned(smooth), colour: "--loss" },
  ]);
  accuracies.show(goal, [
    { points: thinned(smoothed(history.rights)), colour: "--batch" },
    { points: history.tests, colour: "--test" },
  ]);
}

function showAccuracy(right, of) {
  show("accuracy", right, `${(100 * right).toFixed(of ? 2 : 1)} %`);
  byId("accuracy").title = of;
}

async function showLayer() {
  const here = trainer;
  const layer = await here.firstLayer();
  if (here === trainer) showFilters(byId("filters"), layer);
}

function show(id, value, text) {
  byId(id).dataset.value = value;
  byId(id).textContent = text;
}

function time(seconds) {
  const whole = Math.round(seconds);
  return whole < 60 ? `${whole} s` : `${Math.floor(whole / 60)} min ${whole % 60} s`;
}

/** Controls that need a network; while it trains, only those that do not change it. */
function enable(on) {
  const idle = on && !busy;
  byId("train").disabled = !on;
  byId("train").textContent = busy ? "Stop" : trainer?.done ? (trainer.done < STEPS ? "Go on" : `${MORE} more steps`) : "Train";
  byId("anew").disabled = !idle || !trainer?.done;
  byId("learn").disabled = byId("forget").disabled = !idle || !taught.length;
  byId("download").disabled = byId("upload").disabled = !idle;
}

function ready() {
  const right = Number(byId("accuracy").dataset.value);
  const of = byId("accuracy").title;
  say("ready", right ? `It reads ${(100 * right).toFixed(2)} % ${of} test images.` : "Ready to be trained.");
  enable(true);
}

/** Show an error; if a network is there, the page goes on with it. */
function fail(error, here = false) {
  say("error", error?.message || String(error));
  enable(here);
}

/** The backend, and what drives it. */
function where() {
  return NAMES[byId("backend").value] + (byId("python").checked ? " in Python" : "");
}

/** Let the page draw; hidden pages do not draw, and train on. */
function painted() {
  return document.hidden ? undefined : new Promise((done) => setTimeout(done));
}

/** Switch off backends that are missing here, and leave one. */
function disable(reasons) {
  const backend = byId("backend");
  showReasons(reasons);
  withoutPython = reasons.python;
  byId("python").disabled ||= Boolean(withoutPython);
  byId("python").closest("label").title = withoutPython;
  if (!backend.selectedOptions[0].disabled) return wish && withoutPython ? open() : undefined;
  const usable = [...backend.options].findLast((option) => !option.disabled);
  if (usable) {
    backend.value = usable.value;
    open();
  } else {
    turn++;
    enable(false);
    say("unsupported", "This browser cannot train: it needs WebAssembly with SIMD, or WebGPU.");
  }
}
