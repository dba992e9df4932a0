/** The page that reads a digit while it is drawn: strokes become a picture, the picture ten probabilities. */

import { Engines } from "../shared/engines.js";
import { Panel, latest, probabilities } from "../shared/panel.js";
import { Pad } from "./pad.js";
import { SIDE, toPicture } from "./strokes.js";

const MEAN = 0.1307;
const DEVIATION = 0.3081;
const SHAPE = [1, 1, SIDE, SIDE];

const byId = (id) => document.getElementById(id);
const prediction = byId("prediction");
const bars = [...byId("bars").children];

const pad = new Pad(byId("canvas"), changed);
const read = latest(readDrawing);
const panel = new Panel(new Engines({ bundle: "./model/", record: "mnist.singe", shape: SHAPE }), read);

byId("clear").addEventListener("click", () => pad.clear());
byId("undo").addEventListener("click", () => pad.undo());
addEventListener("keydown", (event) => {
  if (!(event.ctrlKey || event.metaKey) || event.shiftKey || event.key.toLowerCase() !== "z") return;
  event.preventDefault();
  pad.undo();
});
changed();

function changed() {
  const empty = pad.strokes.length === 0;
  byId("clear").disabled = byId("undo").disabled = empty;
  if (empty) showNothing();
  read();
}

async function readDrawing() {
  const picture = toPicture(pad.strokes);
  showPicture(picture);
  if (!picture || !panel.engine) return;
  const engine = panel.engine;
  panel.say("running");
  try {
    const { data, ms } = await engine.run(toTensor(picture), SHAPE);
    if (engine !== panel.engine) return;
    panel.ready();
    panel.took(ms);
    if (pad.strokes.length) showAnswer(probabilities(data));
  } catch (error) {
    if (engine === panel.engine) panel.fail(error);
  }
}

function toTensor(picture) {
  return picture.map((ink) => (ink - MEAN) / DEVIATION);
}

// --- what is shown ---------------------------------------------------------------------------------------------------

/** The picture as the network sees it, with white ink. */
function showPicture(picture) {
  const pixels = new ImageData(SIDE, SIDE);
  for (let i = 0; i < SIDE * SIDE; i++) pixels.data.fill(255 * (picture?.[i] ?? 0), 4 * i, 4 * i + 3).fill(255, 4 * i + 3, 4 * i + 4);
  byId("view").getContext("2d").putImageData(pixels, 0, 0);
}

function showAnswer(parts) {
  const digit = parts.indexOf(Math.max(...parts));
  prediction.textContent = prediction.dataset.value = digit;
  byId("certainty").textContent = `${percent(parts[digit])} sure`;
  bars.forEach((bar, k) => showBar(bar, parts[k], k === digit));
}

function showNothing() {
  prediction.textContent = prediction.dataset.value = "";
  byId("certainty").textContent = "nothing is drawn yet";
  for (const bar of bars) showBar(bar, 0, false);
}

function showBar(bar, part, leading) {
  bar.dataset.value = part;
  bar.style.setProperty("--value", part);
  bar.classList.toggle("leading", leading);
  bar.querySelector("output").textContent = percent(part);
}

function percent(part) {
  return `${(100 * part).toFixed(1)} %`;
}
