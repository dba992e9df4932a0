/** The page that reads a digit on another machine: it sends each drawing to a device that `singe host` lends, and says what that takes. */

import { showAnswer, showPicture, softmax } from "../shared/answer.js";
import { digitPad } from "../shared/pad.js";
import { latest, milliseconds, say, showProgress } from "../shared/panel.js";
import { SIDE, toPicture } from "../shared/strokes.js";
import { load } from "../singe.js";

const SHAPE = [1, 1, SIDE, SIDE];
const HERE = /^(localhost|.*\.localhost|127\..*|\[::1\])$/;
const { url, token, command, form, progress } = Object.fromEntries(["url", "token", "command", "form", "progress"].map((id) => [id, document.getElementById(id)]));

const read = latest(readDrawing);
const pad = digitPad(read);
let model;
let turn = 0;

pad.clear(); // shows that nothing is drawn
if (!HERE.test(location.hostname)) command.textContent += ` --origin ${location.origin}`;
form.addEventListener("submit", (event) => {
  event.preventDefault();
  connect();
});

async function connect() {
  const own = ++turn;
  model?.dispose();
  model = undefined;
  say("loading", `Connecting to ${url.value} …`);
  try {
    const remote = { url: url.value.trim(), token: token.value.trim() };
    const onProgress = (news) => own === turn && showProgress(news);
    const found = await load("../mnist/model/", { device: "remote", remote, onProgress });
    if (own !== turn) return found.dispose();
    model = found;
    ready();
    await read();
  } catch (error) {
    if (own === turn) fail(error);
  } finally {
    if (own === turn) progress.hidden = true;
  }
}

async function readDrawing() {
  const picture = toPicture(pad.strokes);
  showPicture(picture);
  if (!picture || !model) return;
  const used = model;
  const [input, output] = [used.inputs[0].name, used.outputs[0].name];
  say("running");
  try {
    const before = used.remote;
    const start = performance.now();
    const { [output]: logits } = await used.run({ [input]: { data: picture, shape: SHAPE } });
    const ms = performance.now() - start;
    if (used !== model) return;
    const after = used.remote;
    show("time", ms, milliseconds(ms));
    for (const name of ["sent", "received"]) show(name, after[name] - before[name], bytesText(after[name] - before[name]));
    show("trips", after.trips - before.trips, after.trips - before.trips);
    ready();
    if (pad.strokes.length) showAnswer(softmax(logits.data));
  } catch (error) {
    if (used === model) fail(error);
  }
}

function ready() {
  const { url, device } = model.remote;
  say("ready", `Every op runs on ${device} at ${url}.`);
}

function fail({ code, message }) {
  const again = code === "lost" ? " The next stroke tries again." : "";
  say("error", `${message}.${again}`);
}

function show(id, value, text) {
  const output = document.getElementById(id);
  output.dataset.value = value;
  output.textContent = text;
}

const bytesText = (bytes) => (bytes < 1000 ? `${bytes} B` : `${(bytes / 1000).toFixed(2)} kB`);
