/**
 * Tasks, and what a page makes of outputs itself: classes, boxes, vectors that are compared. Loaded only by who imports it.
 *
 * Contract: each function takes outputs of `model.run` ({ data, shape }) and returns plain values. What does not fit is a
 * SingeError with the code "input".
 */

/** @import { FoundBox, Found, Labels, LoadOptions, Output, Placed, Task, TaskAnswer, TypedArray } from "./types/public.d.ts" */

/** @import { Numbers } from "./types/program.d.ts" */

import { SingeError } from "./program/singe-format.js";

/**
 * Open the bundle of a task in the folder `url`: a function of a picture. See Task.
 * @template {TaskAnswer} [Answer=TaskAnswer]
 * @param {string | URL} url
 * @param {LoadOptions} [options]
 * @returns {Promise<Task<Answer>>}
 */
export async function task(url, options) {
  const { openTask } = await import("./tasks/singe-task-runner.js").catch((cause) => {
    const what = "the script of tasks, singe-task-runner.js, cannot be loaded; the folder of a task has it: singe export MODEL --task KIND";
    throw new SingeError("network", what, cause);
  });
  return /** @type {any} */ (openTask(url, options));
}

/** @param {string} what */
const refuse = (what) => new SingeError("input", what);

/** Dtypes whose arrays hold numbers. Those of others, such as bfloat16, hold bits. */
const NUMBERS = /^(bool|u?int(8|16|32|64)|float(16|32|64))$/;

/** @param {unknown} value */
const shown = (value) => {
  if (Array.isArray(value))
    return `[${value
      .map((part) => part?.constructor?.name ?? String(part))
      .slice(0, 4)
      .join(", ")}]`;
  return typeof value === "object" ? (value?.constructor?.name ?? String(value)) : (JSON.stringify(value) ?? typeof value);
};

/**
 * A value that fits; of another, what was given and what is expected.
 * @template T
 * @param {T} value
 * @param {(value: T) => unknown} fits
 * @param {string} what
 * @param {string} expected
 */
const fitting = (value, fits, what, expected) => {
  if (fits(value)) return value;
  throw refuse(`${what}: got ${shown(value)}, expected ${expected}`);
};

/** @param {unknown} x */
const isNumber = (x) => typeof x === "number";
/**
 * @param {unknown} value
 * @returns {value is ArrayLike<number>}
 */
const areNumbers = (value) => {
  if (Array.isArray(value)) return value.every(isNumber);
  const { length, 0: first } = /** @type {TypedArray} */ (value ?? []);
  return ArrayBuffer.isView(value) && (length === 0 || isNumber(first));
};
/** @param {ArrayLike<unknown>} value */
const arePair = (value) => areNumbers(value) && value.length === 2 && value[0] > 0 && value[1] > 0;
/** @param {unknown} value */
const areBoxes = (value) => Array.isArray(value) && value.every((one) => areNumbers(one?.box) && one.box.length === 4);
/**
 * @template {FoundBox} T
 * @param {readonly T[]} found
 * @param {string} what
 */
const boxesOf = (found, what) => fitting(found, areBoxes, what, "a list of boxes, as boxes() gives: { box: [left, top, right, bottom], index, label, probability }");
/**
 * @param {ArrayLike<number>} value
 * @param {string} what
 */
const vectorOf = (value, what) => fitting(value, areNumbers, what, "a vector, as vector() gives");

/**
 * @param {Output} output
 * @param {string} what
 * @returns {Numbers}
 */
const numbersOf = (output, what) => {
  const { data, shape, dtype } = output ?? /** @type {Partial<Output>} */ ({});
  const isOutput = ArrayBuffer.isView(data) && Array.isArray(shape) && data.length === shape.reduce((a, b) => a * b, 1);
  fitting(output, () => isOutput, what, "an output, { data, shape }: one of those that model.run gives");
  if (dtype && !NUMBERS.test(dtype)) throw refuse(`${what}: got ${dtype}, whose elements are bits here: take a model with float32 outputs`);
  if (/^big/i.test(data.constructor.name)) return Float64Array.from(/** @type {BigInt64Array} */ (data), Number);
  if (dtype !== "float16") return /** @type {Numbers} */ (data);
  if (!globalThis.Float16Array) throw refuse(`${what}: got float16, and this engine has no Float16Array: take a model with float32 outputs`);
  return /** @type {Numbers} */ (/** @type {unknown} */ (new Float16Array(data.buffer, data.byteOffset, data.length)));
};

/** @param {unknown} labels */
const isNames = (labels) => typeof labels === "object";
/**
 * @param {Labels} labels
 * @param {string} what
 * @returns {Labels}
 */
const labelsOf = (labels, what) => fitting(labels, isNames, `${what}: labels`, "names: the contents of the file that model.labels names") ?? [];
/**
 * @param {Labels} labels
 * @param {number} index
 */
const labelOf = (labels, index) => labels[index] ?? `class ${index}`;

/**
 * Whether numbers are probabilities already: none below 0, and 1 together.
 * @param {Numbers} row
 */
function areProbabilities(row) {
  const sum = row.reduce((a, b) => a + b, 0);
  return Math.abs(sum - 1) < 1e-3 && row.every((x) => x >= 0);
}

/** @param {Numbers} row */
function softmax(row) {
  const most = row.reduce((a, b) => Math.max(a, b), -Infinity);
  const raised = Float64Array.from(row, (x) => Math.exp(x - most));
  const sum = raised.reduce((a, b) => a + b, 0);
  return raised.map((x) => x / sum);
}

/**
 * The likeliest classes of one row of scores, sorted. Scores that are not 1 together go through a softmax.
 * @param {Output} output
 * @param {{ labels?: Labels, top?: number }} [options]
 * @returns {Found[]}
 */
export function classes(output, { labels = [], top = 5 } = {}) {
  const data = numbersOf(output, "classes");
  const names = labelsOf(labels, "classes");
  if (data.length !== Math.max(...output.shape)) throw refuse(`classes: got the shape (${output.shape.join(", ")}), expected one row of scores`);
  const parts = areProbabilities(data) ? data : softmax(data);
  const order = Array.from(parts.keys()).sort((a, b) => parts[b] - parts[a] || a - b);
  return order.slice(0, top).map((index) => ({ index, label: labelOf(names, index), probability: parts[index] }));
}

// --- boxes -----------------------------------------------------------------------------------------------------------

/** @param {Partial<Record<string, number>>} source */
const extentOf = (source) => [
  source.videoWidth ?? source.naturalWidth ?? source.displayWidth ?? source.width,
  source.videoHeight ?? source.naturalHeight ?? source.displayHeight ?? source.height,
];

/**
 * The whole picture, centred in `size` with its proportions kept; the rest is filled.
 * @param {CanvasImageSource} source
 * @param {readonly [height: number, width: number]} size
 * @param {{ fill?: string }} [options]
 * @returns {{ picture: OffscreenCanvas, placed: Placed }}
 */
export function letterbox(source, size, { fill = "rgb(114 114 114)" } = {}) {
  const [height, width] = fitting(size, arePair, "letterbox: size", "[height, width], as model.image.size");
  const [fullWidth, fullHeight] = /** @type {number[]} */ (extentOf(/** @type {Partial<Record<string, number>>} */ (/** @type {unknown} */ (source ?? {}))));
  const draws = "a picture that a canvas draws, of some pixels; createImageBitmap makes one of ImageData";
  fitting(source, () => fullWidth > 0 && fullHeight > 0 && !("data" in source), "letterbox", draws);
  const scale = Math.min(width / fullWidth, height / fullHeight);
  const [partWidth, partHeight] = [Math.round(fullWidth * scale), Math.round(fullHeight * scale)];
  const [left, top] = [Math.floor((width - partWidth) / 2), Math.floor((height - partHeight) / 2)];
  const picture = new OffscreenCanvas(width, height);
  const context = /** @type {OffscreenCanvasRenderingContext2D} */ (picture.getContext("2d"));
  context.imageSmoothingQuality = "high";
  context.fillStyle = fill;
  context.fillRect(0, 0, width, height);
  context.drawImage(source, left, top, partWidth, partHeight);
  return { picture, placed: { scale, left, top, width: fullWidth, height: fullHeight } };
}

/**
 * The boxes of a detector that gives (1, 4 + classes, boxes), as YOLO v8 to v11: centre, width and height in pixels of the
 * input, then a score for each class. Boxes under `score` are left out, the others go through `suppressed`.
 * @param {Output} output
 * @param {{ placed?: Placed, labels?: Labels, score?: number, overlap?: number, most?: number }} [options]
 * @returns {FoundBox[]}
 */
export function boxes(output, { placed, labels = [], score = 0.25, overlap = 0.45, most = 100 } = {}) {
  const data = numbersOf(output, "boxes");
  const names = labelsOf(labels, "boxes");
  const [rows, count] = output.shape.slice(-2);
  if (output.shape.length !== 3 || output.shape[0] !== 1 || rows < 5) {
    const wanted = "(1, 4 + classes, boxes): centre, width, height, then a score for each class";
    throw refuse(`boxes: got the shape (${output.shape.join(", ")}), expected ${wanted}`);
  }
  const { scale = 1, left = 0, top = 0, width = Infinity, height = Infinity } = placed ?? /** @type {Partial<Placed>} */ ({});
  const within = (/** @type {number} */ x, /** @type {number} */ end) => Math.min(end, Math.max(0, x));
  /** @type {FoundBox[]} */
  const found = [];
  for (let k = 0; k < count; k++) {
    let [index, probability] = [0, -Infinity];
    for (let c = 0; c < rows - 4; c++) if (data[(4 + c) * count + k] > probability) [index, probability] = [c, data[(4 + c) * count + k]];
    if (!(probability >= score)) continue;
    const [x, y, w, h] = [0, 1, 2, 3].map((row) => data[row * count + k]);
    const edges = [(x - w / 2 - left) / scale, (y - h / 2 - top) / scale, (x + w / 2 - left) / scale, (y + h / 2 - top) / scale];
    const box = /** @type {FoundBox["box"]} */ (edges.map((edge, side) => within(edge, side % 2 ? height : width)));
    found.push({ box, index, label: labelOf(names, index), probability });
  }
  return suppressed(found, { overlap, most });
}

/**
 * Of boxes of one class that overlap by more than `overlap` (common area over area together), the likeliest: NMS.
 * @template {FoundBox} T
 * @param {readonly T[]} found
 * @param {{ overlap?: number, most?: number }} [options]
 * @returns {T[]}
 */
export function suppressed(found, { overlap = 0.45, most = 100 } = {}) {
  /** @type {T[]} */
  const kept = [];
  const real = boxesOf(found, "suppressed").filter(({ probability }) => !Number.isNaN(probability));
  for (const one of real.sort((a, b) => b.probability - a.probability)) {
    if (kept.length === most) break;
    if (kept.every((other) => other.index !== one.index || shared(other.box, one.box) <= overlap)) kept.push(one);
  }
  return kept;
}

/**
 * The common area of two boxes, over the area of both together.
 * @param {number[]} a
 * @param {number[]} b
 */
function shared(a, b) {
  const area = (/** @type {number[]} */ [x0, y0, x1, y1]) => Math.max(0, x1 - x0) * Math.max(0, y1 - y0);
  const common = area([Math.max(a[0], b[0]), Math.max(a[1], b[1]), Math.min(a[2], b[2]), Math.min(a[3], b[3])]);
  return common ? common / (area(a) + area(b) - common) : 0;
}

/**
 * Draw boxes with their labels; `size` is the height of the text in pixels.
 * @param {CanvasRenderingContext2D | OffscreenCanvasRenderingContext2D} context
 * @param {readonly FoundBox[]} found
 * @param {{ size?: number }} [options]
 */
export function drawBoxes(context, found, { size = 14 } = {}) {
  fitting(context, (value) => "fillText" in Object(value) && "strokeRect" in value, "drawBoxes", 'what canvas.getContext("2d") gives');
  boxesOf(found, "drawBoxes");
  context.save();
  context.lineWidth = Math.max(1, size / 7);
  context.font = `${size}px sans-serif`;
  context.textBaseline = "top";
  for (const { box, index, label, probability } of found) {
    const [x0, y0, x1, y1] = box;
    const text = `${label} ${Math.round(100 * probability)} %`;
    const at = Math.max(0, y0 - size - 4); // above the box, or in it at the picture's edge
    context.strokeStyle = context.fillStyle = `hsl(${(index * 137) % 360} 70% 35%)`;
    context.strokeRect(x0, y0, x1 - x0, y1 - y0);
    context.fillRect(x0, at, context.measureText(text).width + 8, size + 4);
    context.fillStyle = "white";
    context.fillText(text, x0 + 4, at + 2);
  }
  context.restore();
}

// --- vectors ---------------------------------------------------------------------------------------------------------

/**
 * The mean of an output's rows of vectors (those that `mask` counts), of length 1.
 * @param {Output} output
 * @param {ArrayLike<number | bigint>} [mask]
 * @returns {Float32Array}
 */
export function vector(output, mask) {
  const data = numbersOf(output, "vector");
  const width = output.shape.at(-1) ?? 1;
  const rows = data.length / width;
  if (mask && mask.length !== rows) throw refuse(`vector: the mask has ${mask.length ?? "no"} elements for ${rows} rows: give it as an array`);
  const sum = new Float32Array(width);
  for (let row = 0; row < rows; row++) {
    if (mask && !Number(mask[row])) continue;
    for (let k = 0; k < width; k++) sum[k] += data[row * width + k];
  }
  const length = Math.sqrt(sum.reduce((total, x) => total + x * x, 0));
  return length ? sum.map((x) => x / length) : sum;
}

/**
 * The cosine of two vectors of length 1.
 * @param {Float32Array} a
 * @param {Float32Array} b
 * @returns {number}
 */
export function similarity(a, b) {
  for (const one of [a, b]) vectorOf(one, "similarity");
  if (a.length !== b.length) throw refuse(`similarity: vectors of ${a.length} and ${b.length} elements`);
  return a.reduce((sum, x, k) => sum + x * b[k], 0);
}

/**
 * The most similar of many vectors.
 * @param {Float32Array} one
 * @param {readonly Float32Array[]} others
 * @param {{ top?: number }} [options]
 * @returns {{ index: number, similarity: number }[]}
 */
export function nearest(one, others, { top = 5 } = {}) {
  vectorOf(one, "nearest");
  const found = fitting(others, Array.isArray, "nearest", "a list of vectors").map((other, index) => ({ index, similarity: similarity(one, other) }));
  return found.sort((a, b) => b.similarity - a.similarity).slice(0, top);
}
