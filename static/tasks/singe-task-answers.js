/**
 * What a task answers with: outputs of its Program as plain objects, by its kind; and drawn.
 *
 * Contract: `answerOf(info, outputs, settings, sides)` gives what `to_dict()` of core/singe/tasks/answers.py gives, with arrays as
 * typed arrays. Places are pixels of the source. A setting that does not fit is a SingeError with the code "input".
 */

/** @import { Landmark, PixelMap, TaskAnswer, TaskFinding, TaskInfo, TaskLine, TaskSettings, Output } from "../types/public.d.ts" */
/** @import { Context2D } from "../types/program.d.ts" */

import { SingeError } from "../program/singe-format.js";

/** Boxes under this score are not in the outputs: LEAST_SCORE of core/singe/tasks/kinds/detectors/boxes.py. */
const LEAST_SCORE = 0.05;
/** So many points are drawn small. */
const MANY_POINTS = 100;
/** Points that are less likely to be seen are not drawn. */
const LEAST_VISIBILITY = 0.5;

/** @typedef {Float32Array} Numbers of an output; integers have the same methods */
/** @typedef {Record<string, Output>} Outputs */
/** @typedef {Required<TaskSettings>} Chosen */
/** @typedef {readonly [height: number, width: number]} Sides Of the picture */

/**
 * @param {TaskInfo} info
 * @param {number} index
 */
const labelOf = (info, index) => info.labels[index] ?? `class ${index}`;

/**
 * @param {Output} output
 * @returns {Numbers}
 */
const numbers = (output) => /** @type {Numbers} */ (output.data);

/**
 * A map of the picture: `data` row by row, made when it is asked for, since masks of many findings have many times the picture's size.
 * @param {() => PixelMap["data"]} make
 * @param {readonly number[]} shape
 * @returns {PixelMap}
 */
function pixelMap(make, [height, width]) {
  /** @type {PixelMap["data"] | undefined} */
  let made;
  const toCanvas = (/** @type {CanvasImageSource | undefined} */ picture) => {
    const canvas = new OffscreenCanvas(width, height);
    const context = /** @type {OffscreenCanvasRenderingContext2D} */ (canvas.getContext("2d"));
    const data = made ?? make();
    context.putImageData(new ImageData(data instanceof Uint8Array ? alphaOf(data) : greyOf(data), width, height), 0, 0);
    if (picture) {
      context.globalCompositeOperation = "source-in";
      context.drawImage(picture, 0, 0, width, height);
    }
    return canvas;
  };
  const map = {
    width,
    height,
    get data() {
      return (made ??= make());
    },
    toCanvas,
  };
  return Object.defineProperty(map, "toCanvas", { enumerable: false }); // so that JSON has none
}

/**
 * White, as opaque as the mask says.
 * @param {Uint8Array} mask
 */
function alphaOf(mask) {
  const pixels = new Uint8ClampedArray(4 * mask.length).fill(255);
  for (let i = 0; i < mask.length; i++) pixels[4 * i + 3] = mask[i];
  return pixels;
}

/**
 * Grey, from black for the least to white for the most.
 * @param {Float32Array} values
 */
function greyOf(values) {
  const least = values.reduce((a, b) => Math.min(a, b), Infinity);
  const most = values.reduce((a, b) => Math.max(a, b), -Infinity);
  const pixels = new Uint8ClampedArray(4 * values.length).fill(255);
  for (let i = 0; i < values.length; i++) pixels.fill(Math.round(((values[i] - least) / (most - least || 1)) * 255), 4 * i, 4 * i + 3);
  return pixels;
}

/**
 * @param {TaskInfo} info
 * @param {Outputs} outputs
 * @param {Chosen} chosen
 * @returns {TaskFinding[]}
 */
function classes(info, { scores }, { top }) {
  if (!(top >= 1)) throw new SingeError("input", `${info.kind}: top is ${top}, expected how many classes to give, 1 or more`);
  const row = numbers(scores);
  const order = Array.from(row.keys()).sort((a, b) => row[b] - row[a] || a - b);
  return order.slice(0, top).map((index) => ({ label: labelOf(info, index), score: row[index], index }));
}

/**
 * @param {TaskInfo} info
 * @param {Outputs} outputs
 * @param {Chosen} chosen
 * @param {Sides} sides
 * @returns {TaskFinding[]}
 */
function boxes(info, { boxes, scores, classes, landmarks, masks, mask_scale }, { threshold, top }, sides) {
  if (!(threshold >= LEAST_SCORE && threshold <= 1)) {
    throw new SingeError("input", `${info.kind}: threshold is ${threshold}, expected a score from ${LEAST_SCORE}, below which boxes are left out, to 1`);
  }
  const [edges, row, kinds] = [boxes, scores, classes].map(numbers);
  const found = [];
  for (let k = 0; k < row.length && found.length < top; k++) {
    if (row[k] < threshold) continue;
    const [xmin, ymin, xmax, ymax] = edges.subarray(4 * k, 4 * k + 4);
    /** @type {TaskFinding} */
    const one = { label: labelOf(info, kinds[k]), score: row[k], index: kinds[k], box: { xmin, ymin, xmax, ymax } };
    if (landmarks) one.landmarks = pointsOf(landmarks, k);
    if (masks) one.mask = pixelMap(() => maskIn([ymin, ymax, xmin, xmax], masks, k, numbers(mask_scale), sides), sides);
    found.push(one);
  }
  return found;
}

/**
 * The mask of one of several boxes at the picture's size, as mask_in of core/singe/tasks/kinds/detectors/boxes.py makes it.
 * @param {number[]} edges
 * @param {Output} masks
 * @param {number} k
 * @param {Numbers} scale
 * @param {Sides} sides
 */
function maskIn([ymin, ymax, xmin, xmax], masks, k, scale, [height, width]) {
  const [, rows, columns] = masks.shape;
  const values = numbers(masks).subarray(k * rows * columns, (k + 1) * rows * columns);
  const down = along(ymin, ymax, height, rows, scale[0], scale[1]);
  const across = along(xmin, xmax, width, columns, scale[2], scale[3]);
  const whole = new Uint8Array(width * height);
  const row = new Float64Array(columns);
  for (const { at, before, after, part } of down) {
    for (let x = 0; x < columns; x++) {
      const value = values[before * columns + x];
      row[x] = value + (values[after * columns + x] - value) * part;
    }
    for (const pixel of across) {
      const value = row[pixel.before];
      if (value + (row[pixel.after] - value) * pixel.part > 0) whole[at * width + pixel.at] = 255;
    }
  }
  return whole;
}

/**
 * Each pixel from low to high, the elements before and after it in a row of `count`, and how far it is from the one before.
 * @param {number} low
 * @param {number} high
 * @param {number} length
 * @param {number} count
 * @param {number} factor
 * @param {number} shift
 */
function along(low, high, length, count, factor, shift) {
  const [first, end] = [low, high].map((edge) => Math.min(Math.max(Math.floor(edge + 0.5), 0), length));
  return Array.from({ length: Math.max(0, end - first) }, (_, k) => {
    const place = Math.min(Math.max((first + k) * factor + shift, 0), count - 1);
    const before = Math.floor(place);
    return { at: first + k, before, after: Math.min(before + 1, count - 1), part: place - before };
  });
}

/**
 * The landmarks of one of several, (several, points, axes), or of one, (points, axes).
 * @param {Output} output
 * @param {number} k
 * @returns {Landmark[]}
 */
export function pointsOf({ data, shape }, k) {
  const values = /** @type {Numbers} */ (data);
  const [count, axes] = shape.slice(-2);
  return Array.from({ length: count }, (_, p) => {
    const [x, y, z, visibility] = values.subarray((k * count + p) * axes, (k * count + p + 1) * axes);
    return { x, y, ...(axes > 2 && { z }), ...(axes > 3 && { visibility }) };
  });
}

/**
 * @param {TaskInfo} info
 * @param {Outputs} outputs
 * @returns {TaskFinding[]}
 */
function segments(info, { classes, scores }) {
  const [map, row] = [numbers(classes), numbers(scores)];
  const counts = new Uint32Array(row.length);
  for (const index of map) counts[index]++;
  const there = Array.from(counts.keys()).filter((index) => counts[index]);
  return there
    .sort((a, b) => counts[b] - counts[a] || a - b)
    .map((index) => {
      const mask = pixelMap(() => Uint8Array.from(map, (at) => (at === index ? 255 : 0)), classes.shape);
      return { label: labelOf(info, index), score: row[index], index, mask };
    });
}

/** @type {Record<string, (info: TaskInfo, outputs: Outputs, chosen: Chosen, sides: Sides) => TaskAnswer>} */
export const KINDS = {
  classify: classes,
  detect: boxes,
  faces: boxes,
  pose: boxes,
  segment: segments,
  cutout: (_, { mask }) => ({ mask: pixelMap(() => numbers(mask), mask.shape) }),
  depth: (_, { depth }) => ({ depth: pixelMap(() => numbers(depth), depth.shape) }),
  "embed-image": (_, { vector }) => ({ vector: /** @type {Float32Array} */ (vector.data) }),
};

/**
 * Settings of a call, and the task's own for the others.
 * @param {TaskInfo} info
 * @param {TaskSettings} given
 * @returns {Chosen}
 */
export function settingsOf(info, given) {
  const unknown = Object.keys(given).filter((name) => !(name in info.settings));
  if (!unknown.length) return /** @type {Chosen} */ ({ ...info.settings, ...given });
  const known = Object.keys(info.settings);
  throw new SingeError("input", `${info.kind}: got ${unknown.join(", ")}; ${known.length ? `expected some of ${known.join(", ")}` : "it takes none"}`);
}

/**
 * @param {TaskInfo} info
 * @param {Outputs} outputs
 * @param {Chosen} chosen
 * @param {Sides} sides
 */
export const answerOf = (info, outputs, chosen, sides) => KINDS[info.kind](info, outputs, chosen, sides);

/**
 * Why a manifest's facts are those of no task that is known here; "" if they are.
 * @param {TaskInfo | undefined} info
 * @param {object} chains The kinds that have several models
 * @param {{ kinds: object, whyNot(info: TaskInfo): string }} medium
 */
export function whyNot(info, chains, medium) {
  if (!info) return "it is a model without preparation and decoding";
  const isChain = Object.hasOwn(chains, info.kind);
  if (!isChain && !Object.hasOwn(medium.kinds, info.kind)) return `its kind ${JSON.stringify(info.kind)} is not known to this script`;
  const areTexts = (/** @type {unknown} */ list) => Array.isArray(list) && list.every((text) => typeof text === "string");
  if (!areTexts(info.labels) || Object(info.settings) !== info.settings) return "its labels are no list of texts, or it has no settings";
  const areParts = areTexts(info.parts) && info.parts?.length && info.parts.every((name) => /^[a-z]{1,20}$/.test(name));
  return isChain && !(areParts && info.options) ? "it does not name its models" : medium.whyNot(info);
}

// --- drawing -----------------------------------------------------------------------------------------------------------

/**
 * Draw an answer over its picture: boxes with labels, points and the lines between them, masks, lines of text with their numbers.
 * @param {TaskInfo} info
 * @param {Context2D | CanvasRenderingContext2D} context
 * @param {TaskAnswer} answer
 */
export function drawAnswer(info, context, answer) {
  const { width, height } = context.canvas;
  const size = Math.max(12, Math.round(Math.min(width, height) / 40));
  context.save();
  context.font = `${size}px sans-serif`;
  context.textBaseline = "top";
  context.lineWidth = Math.max(2, size / 6);
  if ("depth" in answer) context.drawImage(answer.depth.toCanvas(), 0, 0, width, height);
  if ("mask" in answer) {
    context.globalCompositeOperation = "destination-in";
    context.drawImage(answer.mask.toCanvas(), 0, 0, width, height);
  }
  const joints = /** @type {[number, number][]} */ (info.options?.joints ?? []);
  for (const [k, one] of Array.isArray(answer) ? /** @type {(TaskFinding | TaskLine)[]} */ (answer).entries() : []) {
    if ("corners" in one) drawLine(context, one, size, k);
    else drawFinding(context, one, size, joints);
  }
  if (Array.isArray(answer)) drawLegend(context, /** @type {TaskFinding[]} */ (answer), size);
  context.restore();
}

/** @param {number} index */
const colourOf = (index) => `hsl(${(index * 137) % 360} 70% 35%)`;

/**
 * A frame around a line of text, with its number in reading order before it.
 * @param {Context2D | CanvasRenderingContext2D} context
 * @param {TaskLine} line
 * @param {number} size
 * @param {number} index
 */
function drawLine(context, { corners }, size, index) {
  context.fillStyle = context.strokeStyle = colourOf(index);
  context.beginPath();
  for (const { x, y } of corners) context.lineTo(x, y);
  context.closePath();
  context.stroke();
  const [{ x, y }] = corners;
  const small = size / 2;
  context.font = `${small}px sans-serif`;
  drawText(context, `${index + 1}`, Math.max(0, x - context.measureText(`${index + 1}`).width - 8), y + small + 4, small);
}

/**
 * White, on the colour, above a place.
 * @param {Context2D | CanvasRenderingContext2D} context
 * @param {string} text
 * @param {number} left
 * @param {number} low
 * @param {number} size
 */
function drawText(context, text, left, low, size) {
  const top = Math.max(0, low - size - 4);
  context.fillRect(left, top, context.measureText(text).width + 8, size + 4);
  context.fillStyle = "white";
  context.fillText(text, left + 4, top + 2);
}

/** @param {TaskFinding} finding */
const captionOf = ({ label, score, handedness }) => `${handedness ? `${handedness.toLowerCase()} ` : ""}${label} ${Math.round(100 * score)} %`;

/**
 * The names of parts, which have no box to stand at, in their colours, one below the other.
 * @param {Context2D | CanvasRenderingContext2D} context
 * @param {TaskFinding[]} findings
 * @param {number} size
 */
function drawLegend(context, findings, size) {
  for (const [k, one] of findings.filter(({ mask, box }) => mask && !box).entries()) {
    context.fillStyle = colourOf(one.index);
    drawText(context, captionOf(one), 0, (k + 1) * (size + 4), size);
  }
}

/**
 * @param {Context2D | CanvasRenderingContext2D} context
 * @param {TaskFinding} finding
 * @param {number} size
 * @param {[number, number][]} joints
 */
function drawFinding(context, finding, size, joints) {
  const { box, index, landmarks = [], mask } = finding;
  const colour = colourOf(index);
  context.fillStyle = context.strokeStyle = colour;
  if (mask) {
    const part = mask.toCanvas();
    const over = /** @type {OffscreenCanvasRenderingContext2D} */ (part.getContext("2d"));
    over.globalCompositeOperation = "source-in";
    over.fillStyle = colour;
    over.fillRect(0, 0, part.width, part.height);
    context.globalAlpha = 0.5;
    context.drawImage(part, 0, 0);
    context.globalAlpha = 1;
  }
  context.beginPath();
  const isSeen = (/** @type {Landmark} */ { visibility = 1 }) => visibility >= LEAST_VISIBILITY;
  for (const ends of landmarks.length ? joints : []) {
    const [from, to] = ends.map((end) => landmarks[end]);
    if (!isSeen(from) || !isSeen(to)) continue;
    context.moveTo(from.x, from.y);
    context.lineTo(to.x, to.y);
  }
  context.stroke();
  const dot = landmarks.length < MANY_POINTS ? size / 5 : size / 12;
  for (const { x, y } of landmarks.filter(isSeen)) {
    context.beginPath();
    context.arc(x, y, dot, 0, 7);
    context.fill();
  }
  if (!box) return;
  const { xmin, ymin, xmax, ymax } = box;
  context.strokeRect(xmin, ymin, xmax - xmin, ymax - ymin);
  drawText(context, captionOf(finding), xmin, ymin, size);
}
