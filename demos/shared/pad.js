/**
 * A canvas for drawing with mouse, touch, pen or keys.
 *
 * Contract: `digitPad(onChange, onDigit)` is the pad of a page with the elements `canvas`, `clear` and `undo`, perhaps
 * `digits`, and those of `showNothing`. `strokes` are lists of points [x, y] with the canvas 1 wide and 1 high; `onChange` is called after
 * each change; `onDigit` gets the digit that the drawing is said to be. One pointer draws at a time; pressure is ignored.
 * Keys: arrows move the pen, the space bar lowers and lifts it, Ctrl+Z takes the last stroke back.
 */

import { showNothing } from "./answer.js";

const PEN = 0.07;
const STEP = 0.04;
const ARROWS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

class Pad {
  strokes = [];
  #canvas;
  #onChange;
  #pointer;
  #pen = { at: [0.5, 0.5], shown: false, down: false };

  constructor(canvas, onChange) {
    this.#canvas = canvas;
    this.#onChange = onChange;
    canvas.addEventListener("pointerdown", this.#start);
    canvas.addEventListener("pointermove", this.#move);
    for (const end of ["pointerup", "pointercancel", "lostpointercapture"]) canvas.addEventListener(end, this.#end);
    canvas.addEventListener("keydown", this.#key);
    canvas.addEventListener("blur", () => this.#movePen({ shown: false, down: false }));
    new ResizeObserver(() => this.#draw()).observe(canvas);
    for (const query of ["(prefers-color-scheme: dark)", "(forced-colors: active)"]) {
      matchMedia(query).addEventListener("change", () => this.#draw());
    }
  }

  undo() {
    this.#pointer = undefined;
    this.strokes.pop();
    this.#movePen({ down: false });
    this.#onChange();
  }

  clear() {
    this.strokes = [];
    this.#pointer = undefined;
    this.#movePen({ down: false });
    this.#onChange();
  }

  #start = (event) => {
    if (this.#pointer !== undefined || event.button !== 0) return;
    this.#pointer = event.pointerId;
    this.#canvas.setPointerCapture(event.pointerId);
    this.#movePen({ shown: false, down: false });
    this.strokes.push([this.#point(event)]);
    this.#changed();
  };

  #move = (event) => {
    if (event.pointerId !== this.#pointer) return;
    const events = event.getCoalescedEvents?.() ?? [];
    this.strokes.at(-1).push(...(events.length ? events : [event]).map((e) => this.#point(e)));
    this.#changed();
  };

  #end = (event) => {
    if (event.pointerId === this.#pointer) this.#pointer = undefined;
  };

  #key = (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const pen = this.#pen;
    if (event.key === " ") {
      const down = !pen.down;
      if (down) this.strokes.push([pen.at]);
      this.#movePen({ shown: true, down });
      this.#onChange();
    } else if (event.key in ARROWS) {
      pen.at = pen.at.map((v, axis) => Math.min(1, Math.max(0, v + STEP * ARROWS[event.key][axis])));
      if (pen.down) this.strokes.at(-1).push(pen.at);
      this.#movePen({ shown: true });
      if (pen.down) this.#onChange();
    } else return;
    event.preventDefault();
  };

  #movePen(changes) {
    Object.assign(this.#pen, changes);
    this.#draw();
  }

  #point({ clientX, clientY }) {
    const { left, top, width, height } = this.#canvas.getBoundingClientRect();
    return [(clientX - left) / width, (clientY - top) / height];
  }

  #changed() {
    this.#draw();
    this.#onChange();
  }

  #draw() {
    const canvas = this.#canvas;
    const side = Math.max(1, Math.round(canvas.clientWidth * devicePixelRatio));
    if (canvas.width !== side) canvas.width = canvas.height = side;
    const context = canvas.getContext("2d");
    const style = getComputedStyle(canvas);
    context.clearRect(0, 0, side, side);
    context.save();
    context.scale(side, side);
    context.lineCap = context.lineJoin = "round";
    context.lineWidth = PEN;
    context.strokeStyle = style.color;
    for (const stroke of this.strokes) {
      context.beginPath();
      context.moveTo(...stroke[0]);
      for (let i = 1; i < stroke.length - 1; i++) {
        const [[x, y], [u, v]] = [stroke[i], stroke[i + 1]];
        context.quadraticCurveTo(x, y, (x + u) / 2, (y + v) / 2);
      }
      context.lineTo(...stroke.at(-1));
      context.stroke();
    }
    if (this.#pen.shown) {
      context.beginPath();
      context.lineWidth = 0.012;
      context.strokeStyle = style.accentColor === "auto" ? style.color : style.accentColor;
      context.arc(...this.#pen.at, PEN * 0.8, 0, 7);
      context.stroke();
    }
    context.restore();
  }
}

export function digitPad(onChange, onDigit) {
  const [canvas, clear, undo, digits] = ["canvas", "clear", "undo", "digits"].map((id) => document.getElementById(id));
  const pad = new Pad(canvas, () => {
    const empty = pad.strokes.length === 0;
    for (const button of [clear, undo, ...(digits?.children ?? [])]) button.disabled = empty;
    if (empty) showNothing();
    onChange();
  });
  clear.addEventListener("click", () => pad.clear());
  undo.addEventListener("click", () => pad.undo());
  digits?.addEventListener("click", ({ target }) => target.dataset.digit && onDigit(Number(target.dataset.digit)));
  addEventListener("keydown", (event) => {
    if (!(event.ctrlKey || event.metaKey) || event.shiftKey || event.key.toLowerCase() !== "z") return;
    event.preventDefault();
    pad.undo();
  });
  return pad;
}
