/** The page that classifies a picture: it becomes a tensor, the tensor five classes, on each backend. */

import { Engines } from "../shared/engines.js";
import { percent } from "../shared/answer.js";
import { Panel, latest, milliseconds, say } from "../shared/panel.js";
import { pictureToTensor } from "../singe-picture.js";
import { classes } from "../singe-tasks.js";
import { takePictures } from "./pictures.js";

const BUNDLE = "./model/";
const REPEATS = 10;

const byId = (id) => document.getElementById(id);
const top = [...byId("top").children];
const used = new Map();
let tensor;
let turn = 0;

const facts = readFacts();
const read = latest(readPicture);
const shape = facts.then((known) => known.shape);
const panel = new Panel(new Engines({ bundle: BUNDLE, record: "classify.singe", shape }), read);

takePictures({
  samples: document.querySelectorAll("[data-src]"),
  file: byId("file"),
  paste: byId("paste"),
  camera: byId("camera"),
  video: byId("video"),
  onPicture: take,
  onFrame: lookAt,
  onProblem: (text) => panel.fail(new Error(text)),
});
byId("again").addEventListener("click", async () => {
  for (let k = 0; k < REPEATS; k++) await read();
});

/** How a picture becomes the input, and the classes' names, as the bundle has them. */
async function readFacts() {
  const { image, labels } = await fetchJson("model.json");
  if (!image || !labels) throw new Error("The bundle does not say how pictures become its input, or what its classes are called.");
  const { channels, layout, size } = image;
  const shape = layout === "nchw" ? [1, channels, ...size] : [1, ...size, channels];
  return { image, shape, labels: await fetchJson(labels) };
}

async function fetchJson(name) {
  const answer = await fetch(BUNDLE + name);
  if (!answer.ok) throw new Error(`${name}: the server answers ${answer.status}.`);
  return answer.json();
}

/** The user's input, which may be no picture, or fail to arrive. */
async function take(given, name) {
  const mine = ++turn;
  say("running", `Reading ${name} …`);
  try {
    const [{ image }, blob] = await Promise.all([facts, given]);
    const made = await pictureToTensor(blob, image);
    if (mine !== turn) return;
    tensor = made;
    showPicture(blob, name);
    showTensor(image);
    await read();
  } catch (error) {
    if (mine === turn) panel.fail(new Error(`${name}: ${error.message.replace(/^picture: /, "")}`));
  }
}

/** A frame of the camera. */
async function lookAt(video) {
  turn++;
  try {
    const { image } = await facts;
    tensor = await pictureToTensor(video, image);
    showTensor(image);
    await read();
  } catch (error) {
    panel.fail(error);
  }
}

async function readPicture() {
  const { engine } = panel;
  byId("again").disabled = !engine || !tensor;
  if (!engine || !tensor) return;
  const { shape, labels } = await facts;
  say("running");
  try {
    const { data, ms } = await engine.run(tensor, shape);
    if (engine !== panel.engine) return;
    panel.ready();
    panel.took(ms);
    showAnswer({ data, shape: [1, data.length] }, labels);
    count(engine, ms);
  } catch (error) {
    if (engine === panel.engine) panel.fail(error);
  }
}

// --- what is shown ---------------------------------------------------------------------------------------------------

function showPicture(blob, name) {
  const picture = byId("picture");
  URL.revokeObjectURL(picture.src);
  picture.src = URL.createObjectURL(blob);
  picture.alt = name;
  picture.hidden = false;
}

/** Shows the tensor as pixels: exactly the network's input. */
function showTensor({ size: [height, width], channels, mean, std, layout }) {
  const view = byId("view");
  [view.width, view.height] = [width, height];
  const pixels = new ImageData(width, height);
  const area = width * height;
  for (let i = 0; i < area; i++) {
    for (let c = 0; c < 3; c++) {
      const channel = Math.min(c, channels - 1);
      const value = tensor[layout === "nchw" ? channel * area + i : i * channels + channel];
      pixels.data[4 * i + c] = value * std[channel % std.length] + mean[channel % mean.length];
    }
    pixels.data[4 * i + 3] = 255;
  }
  view.getContext("2d").putImageData(pixels, 0, 0);
}

function showAnswer(output, labels) {
  const found = classes(output, { labels, top: top.length });
  found.forEach(({ index, label, probability }, k) => {
    const [name, , value] = top[k].children;
    top[k].style.setProperty("--value", probability);
    top[k].classList.toggle("leading", k === 0);
    name.dataset.value = index;
    name.textContent = label;
    value.textContent = percent(probability);
  });
  const [{ label, probability }] = found;
  if (!byId("said").textContent.startsWith(`${label}, `)) byId("said").textContent = `${label}, ${percent(probability)}`;
}

/** A row of figures for each combination of backend and language. */
function count(engine, ms) {
  if (!used.has(engine)) {
    const row = byId("compared").tBodies[0].insertRow();
    row.append(Object.assign(document.createElement("th"), { scope: "row", textContent: panel.name }));
    row.insertCell().textContent = panel.way;
    for (let k = 0; k < 4; k++) row.insertCell().className = "number";
    used.set(engine, { row, times: [] });
    byId("compared").hidden = false;
  }
  const { row, times } = used.get(engine);
  times.push(ms);
  const figures = [milliseconds(engine.load), milliseconds(ms), milliseconds(median(times)), times.length];
  figures.forEach((figure, k) => (row.cells[k + 2].textContent = figure));
}

function median(times) {
  const sorted = Float64Array.from(times).sort();
  return (sorted[(sorted.length - 1) >> 1] + sorted[sorted.length >> 1]) / 2;
}
