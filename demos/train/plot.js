/**
 * Lines over steps, on a canvas.
 *
 * Contract: `show(steps, series)` draws anew: `steps` is the length of the axis, a series is { points, colour, thin }, with
 * points [step, value] in the order of steps; colours are names of the style's registered properties. `scale` brings a value to a
 * height from 0 to 1; `ticks` are pairs of a value and its text. The canvas is as sharp as the screen, and follows its size and
 * colour scheme.
 */

const LEFT = 44;
const BOTTOM = 22;
const TOP = 8;
const RIGHT = 8;

export class Plot {
  #canvas;
  #scale;
  #ticks;
  #steps = 1;
  #series = [];
  #waiting = false;

  constructor(canvas, { scale, ticks }) {
    this.#canvas = canvas;
    this.#scale = scale;
    this.#ticks = ticks;
    new ResizeObserver(() => this.#draw()).observe(canvas);
    for (const query of ["(prefers-color-scheme: dark)", "(forced-colors: active)"]) {
      matchMedia(query).addEventListener("change", () => this.#draw());
    }
  }

  show(steps, series) {
    this.#steps = Math.max(1, steps);
    this.#series = series;
    if (this.#waiting) return;
    this.#waiting = true;
    requestAnimationFrame(() => {
      this.#waiting = false;
      this.#draw();
    });
  }

  #draw() {
    const canvas = this.#canvas;
    const { clientWidth: width, clientHeight: height } = canvas;
    if (!width) return;
    const [across, down] = [Math.round(width * devicePixelRatio), Math.round(height * devicePixelRatio)];
    if (canvas.width !== across || canvas.height !== down) Object.assign(canvas, { width: across, height: down });
    const style = getComputedStyle(canvas);
    const context = canvas.getContext("2d");
    context.setTransform(across / width, 0, 0, down / height, 0, 0);
    context.clearRect(0, 0, width, height);
    const x = (step) => LEFT + (step / this.#steps) * (width - LEFT - RIGHT);
    const y = (value) => height - BOTTOM - Math.min(1, Math.max(0, this.#scale(value))) * (height - TOP - BOTTOM);
    this.#axes(context, style, x, y, width, height);
    for (const { points, colour, thin } of this.#series) {
      context.strokeStyle = context.fillStyle = style.getPropertyValue(colour);
      context.globalAlpha = thin ? 0.35 : 1;
      context.lineWidth = thin ? 1 : 2;
      context.lineJoin = "round";
      context.beginPath();
      for (const [step, value] of points) context.lineTo(x(step), y(value));
      context.stroke();
      if (!points.length || thin) continue;
      context.beginPath();
      context.arc(x(points.at(-1)[0]), y(points.at(-1)[1]), 3, 0, 7);
      context.fill();
    }
    context.globalAlpha = 1;
  }

  #axes(context, style, x, y, width, height) {
    context.font = `12px ${style.fontFamily}`;
    context.lineWidth = 1;
    context.strokeStyle = style.getPropertyValue("--grid");
    context.fillStyle = style.getPropertyValue("--text");
    context.textAlign = "right";
    context.textBaseline = "middle";
    for (const [value, text] of this.#ticks) {
      const at = Math.round(y(value)) + 0.5;
      context.beginPath();
      context.moveTo(LEFT, at);
      context.lineTo(width - RIGHT, at);
      context.stroke();
      context.fillText(text, LEFT - 8, at);
    }
    context.textBaseline = "alphabetic";
    const apart = roundStep(this.#steps / Math.max(2, Math.floor((width - LEFT) / 90)));
    for (let step = 0; step <= this.#steps; step += apart) {
      context.textAlign = step === 0 ? "left" : x(step) > width - 24 ? "right" : "center";
      context.fillText(step.toLocaleString("en"), step === 0 ? LEFT : Math.min(x(step), width - RIGHT), height - 5);
    }
  }
}

/** The next larger of 1, 2, 5, 10, 20, 50, … */
function roundStep(least) {
  const ten = 10 ** Math.floor(Math.log10(Math.max(1, least)));
  return ten * [1, 2, 5, 10].find((factor) => factor * ten >= least);
}

/** At most about 400 points [step, value], each the mean of steps beside each other; NaN are left out. */
export function thinned(values, most = 400) {
  const size = Math.max(1, Math.ceil(values.length / most));
  const points = [];
  for (let at = 0; at < values.length; at += size) {
    const part = values.slice(at, at + size).filter((v) => !Number.isNaN(v));
    if (part.length) points.push([Math.min(at + size, values.length), part.reduce((a, b) => a + b) / part.length]);
  }
  return points;
}

/** A mean that follows the values: each new one counts for a thirtieth, the first ones for more. */
export function smoothed(values) {
  let [mean, count] = [0, 0];
  return values.map((value) => {
    if (Number.isNaN(value)) return value;
    count++;
    mean += (value - mean) / Math.min(count, 30);
    return mean;
  });
}
