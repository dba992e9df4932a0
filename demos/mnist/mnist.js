/** The page that reads a digit while it is drawn: strokes become a picture, the picture ten probabilities. */

import { showAnswer, showPicture, softmax } from "../shared/answer.js";
import { Engines } from "../shared/engines.js";
import { digitPad } from "../shared/pad.js";
import { Panel, latest, say } from "../shared/panel.js";
import { SIDE, toPicture } from "../shared/strokes.js";

const SHAPE = [1, 1, SIDE, SIDE];
/** Under this name the browser keeps what it was taught: hand.js writes and reads it. */
const KEPT = "singe hand";

const read = latest(readDrawing);
const pad = digitPad(read, taught);
const panel = new Panel(new Engines({ bundle: "./model/", record: "mnist.singe", shape: SHAPE }), read);
/** The part that teaches, loaded when it is first needed. */
let teach;

pad.clear(); // shows that nothing is drawn
try {
  if (localStorage.getItem(KEPT)) openTeaching();
} catch {
  // There is no storage.
}

async function readDrawing() {
  const picture = toPicture(pad.strokes);
  showPicture(picture);
  if (!picture || !panel.engine) return;
  const engine = panel.engine;
  say("running");
  try {
    const { parts, data, ms } = (await teach?.read(picture)) ?? (await engine.run(picture, SHAPE));
    if (engine !== panel.engine) return;
    panel.ready();
    panel.took(ms);
    if (pad.strokes.length) showAnswer(parts ?? softmax(data));
  } catch (error) {
    if (engine === panel.engine) panel.fail(error);
  }
}

async function taught(digit) {
  const picture = toPicture(pad.strokes);
  pad.clear();
  (await openTeaching())?.add(picture, digit);
}

/** The part that teaches; undefined if it cannot be had now, which the page says. */
async function openTeaching() {
  try {
    const { Teach } = await import("./teach.js");
    return (teach ??= new Teach(panel, KEPT, read));
  } catch (error) {
    panel.fail(error);
  }
}
