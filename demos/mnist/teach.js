/**
 * The part of the page that teaches: buttons, the drawings so far, a sentence about what came of it.
 *
 * Contract: `new Teach(panel, key, onChange)`: `key` is the name in the browser's storage; `add(picture, digit)` takes a
 * drawing. `read(picture)` gives { parts, ms }: ten probabilities of the taught network, and the time that they took; or
 * undefined while the network of the site is to read: nothing was learnt yet, or the chosen backend runs in Python.
 * `onChange` is called when the answer may be another one.
 */

import { percent } from "../shared/answer.js";
import { NAMES, showProgress } from "../shared/panel.js";
import { showImages } from "../shared/pictures.js";
import { Hand } from "./hand.js";

/** What the section has once something is taught. */
const PARTS = `<ol id="taught" class="images" data-testid="taught" aria-label="What you have drawn for it"></ol>
<div class="controls">
  <button id="learn" data-testid="learn" class="primary" disabled>Learn them</button>
  <button id="before" data-testid="before" disabled>Read as before</button>
  <button id="forget" data-testid="forget" disabled>Forget all</button>
</div>
<progress id="course" data-testid="course" max="1" value="0" aria-label="Steps of learning" hidden></progress>
<p id="lesson" class="lesson" data-testid="lesson" aria-live="polite"></p>`;

const byId = (id) => document.getElementById(id);

export class Teach {
  #panel;
  #key;
  #onChange;
  #hand;
  #device;
  #last = Promise.resolve();

  constructor(panel, key, onChange) {
    this.#panel = panel;
    this.#key = key;
    this.#onChange = onChange;
    document.head.append(Object.assign(document.createElement("link"), { rel: "stylesheet", href: "teach.css" }));
    byId("teaching").insertAdjacentHTML("beforeend", PARTS);
    byId("learn").addEventListener("click", () => this.#act((hand) => this.#learn(hand)));
    byId("before").addEventListener("click", () => this.#act((hand) => this.#reset(hand)));
    byId("forget").addEventListener("click", () => this.#act((hand) => this.#forget(hand)));
    panel.backend.addEventListener("change", () => this.#act(() => {}));
    panel.python.addEventListener("change", () => this.#act(() => {}));
    this.#act((hand) => {
      if (hand.learnt) tell("It reads with what you taught it at an earlier visit.");
    });
  }

  add(picture, digit) {
    this.#act((hand) => {
      hand.add(picture, digit);
      tell(`${count(hand.drawings.length, "drawing")}: a few of each digit that it misreads help most.`);
    });
  }

  async read(picture) {
    if (this.#panel.way === "Python" || !this.#hand?.learnt) return undefined;
    const begun = performance.now();
    const parts = await this.#hand.read(picture);
    return { parts, ms: performance.now() - begun };
  }

  /** Do one thing at a time, with the controls off. */
  #act(work) {
    this.#last = this.#last.then(async () => {
      enable(false);
      try {
        await this.#open();
        await work(this.#hand);
      } catch (error) {
        tell(error?.message || String(error));
      }
      this.#show();
      this.#onChange();
    });
  }

  /** The network on the chosen backend; another one takes over what was drawn and, from the storage, what was learnt. */
  async #open() {
    const device = this.#panel.way === "Python" ? (this.#device ?? "wasm") : this.#panel.backend.value;
    if (this.#device === device) return;
    byId("lesson").textContent = "Loading what it needs to learn …";
    const hand = await Hand.open(device, this.#key, showProgress).finally(() => (byId("progress").hidden = true));
    const before = this.#hand;
    if (before) hand.drawings = before.drawings;
    [this.#hand, this.#device] = [hand, device];
    byId("lesson").textContent = "";
    await before?.dispose();
  }

  async #learn(hand) {
    const bar = byId("course");
    bar.hidden = false;
    tell("Learning …");
    const found = await hand.learn((part) => (bar.value = part)).finally(() => (bar.hidden = true));
    const { steps, seconds, drawings, before, after, others, stored } = found;
    byId("lesson").dataset.value = `${after}/${drawings}`;
    tell(
      `It has learnt from ${count(drawings, "drawing")} in ${steps} steps, ${seconds.toFixed(1)} s on ${NAMES[this.#device]}. ` +
        `Of yours it read ${before} before and reads ${after} now; of ${others.count} digits by other people ${percent(others.before)} before, ` +
        `${percent(others.after)} now. ${stored ? "This browser keeps it for your next visit." : "This browser has no storage for it: it lasts until you leave or choose another backend."}`,
    );
  }

  async #reset(hand) {
    await hand.reset();
    tell("It reads as before. Your drawings are still here.");
  }

  async #forget(hand) {
    await hand.forget();
    tell("All that you taught it is forgotten, in this browser's storage, too.");
  }

  #show() {
    const hand = this.#hand;
    if (!hand) return;
    const { drawings, learnt } = hand;
    showImages(byId("taught"), drawings.map(({ image, label }) => ({ image, text: String(label) })), 255);
    enable(true);
    byId("learn").disabled = !drawings.length;
    byId("before").disabled = !learnt;
    byId("forget").disabled = !drawings.length && !learnt;
    byId("taught-says").hidden = !learnt;
    byId("taught-says").textContent = this.#panel.way === "Python" ? "as it came: Python has no part in the teaching" : "with what you taught it";
  }
}

function enable(on) {
  for (const id of ["learn", "before", "forget"]) byId(id).disabled = !on;
}

function tell(text) {
  byId("lesson").textContent = text;
}

const count = (many, what) => `${many} ${what}${many === 1 ? "" : "s"}`;
