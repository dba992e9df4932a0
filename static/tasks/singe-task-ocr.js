/**
 * The lines of text of a picture: one model finds them, another says which stand on their heads, a third reads them.
 *
 * Contract: `ocr(run, info, chosen)` gives a function of pixels, which answers as `_answer` of core/singe/tasks/chains/ocr.py
 * does. Crops and the spelling of what is read are in the models' Programs.
 */

/** @import { Output, TaskInfo, TaskLine, TaskSettings } from "../types/public.d.ts" */
/** @import { Corners, Point } from "./singe-task-crops.js" */
/** @import { Pixels, Run } from "./singe-task-landmarks.js" */

import { SingeError } from "../program/singe-format.js";
import { placeOf, samplesOf, sidesOf } from "./singe-task-crops.js";
import { regionsOf } from "./singe-task-regions.js";

/** The constants of ocr.py. */
const [SHORT, LONG, STEP] = [736, 1600, 32];
const [IS_TEXT, IS_LINE, GROW] = [0.3, 0.5, 1.6];
const [HEIGHT, UNIT] = [48, 8];
const [NARROW, WIDE, TURNING] = [160, 4096, 192];
const [IS_TURNED, DOUBTFUL, UPRIGHT] = [0.9, 0.9, 1.5];
const SQUEEZED = 0.8;
const [AT_ONCE, ALIKE] = [6, 1.25];
const ROUNDING = 1e-6;

/** @typedef {{ text: string, score: number }} Read */

/**
 * @param {Run} run
 * @param {TaskInfo} info
 * @param {Required<TaskSettings>} chosen
 */
export function ocr(run, info, { threshold }) {
  return async (/** @type {Pixels} */ { data, width, height }, /** @type {AbortSignal | undefined} */ signal) => {
    const picture = { data, shape: [height, width, 4] };
    const step = (/** @type {string} */ name, /** @type {Record<string, unknown>} */ inputs) => run(name, { picture, ...inputs }, signal);

    /**
     * The text of each line, and its score: lines of much the same width at once.
     * @param {Corners[]} lines
     */
    const read = async (lines) => {
      /** @type {Read[]} */
      const texts = [];
      for (const some of alike(lines.map((corners) => wide(corners, SQUEEZED)))) {
        const { characters, scores } = await step(
          "rec",
          views(
            some.map((k) => lines[k]),
            NARROW,
            WIDE,
            SQUEEZED,
          ),
        );
        for (const [row, k] of some.entries()) texts[k] = { text: spelt(info, characters, row), score: Number(scores.data[row]) };
      }
      return texts;
    };

    /**
     * How likely it is that each line stands on its head.
     * @param {Corners[]} lines
     */
    const turning = async (lines) => {
      if (!info.parts?.includes("cls")) return lines.map(() => 0);
      /** @type {number[]} */
      const found = [];
      for (const some of batches(lines)) found.push(...Array.from((await step("cls", views(some.map(begun), TURNING, TURNING))).turned.data, Number));
      return found;
    };

    const found = await linesIn(step, width, height);
    const upright = found.map((corners) => {
      const [high, far] = sidesOf(corners);
      return high >= UPRIGHT * far ? rolled(corners, 1) : corners; // one that is high goes from the top down
    });
    const turned = await turning(upright);
    const seen = upright.map((corners, k) => (turned[k] > IS_TURNED ? rolled(corners, 2) : corners));
    const texts = await read(seen);
    const doubtful = texts.flatMap(({ score }, k) => (score < DOUBTFUL && info.parts?.includes("cls") ? [k] : []));
    const others = doubtful.map((k) => rolled(seen[k], 2));
    for (const [row, again] of (await read(others)).entries()) {
      const k = doubtful[row];
      if (again.score > texts[k].score) [seen[k], texts[k]] = [others[row], again];
    }
    return readingOrder(seen).flatMap((k) => (texts[k].text.trim() && texts[k].score >= threshold ? [lineOf(texts[k], found[k])] : []));
  };
}

/**
 * The lines of a picture, in its pixels.
 * @param {(name: string, inputs: Record<string, unknown>) => Promise<Record<string, Output>>} step
 * @param {number} width
 * @param {number} height
 * @returns {Promise<Corners[]>}
 */
async function linesIn(step, width, height) {
  const scale = Math.min(Math.max(1, SHORT / Math.min(width, height)), LONG / Math.max(width, height));
  const [rows, columns] = [height, width].map((side) => new Uint8Array(Math.max(1, even((side * scale) / STEP))));
  const { data, shape } = (await step("det", { rows, columns })).chances;
  const map = { data: /** @type {Float32Array} */ (data), height: shape[0], width: shape[1] };
  const within = (/** @type {number} */ at, /** @type {number} */ end) => Math.min(Math.max(at, 0), end);
  return regionsOf(map, IS_TEXT, IS_LINE, GROW)
    .map(({ corners }) => corners.map(([x, y]) => /** @type {Point} */ ([within(x * (width / map.width), width), within(y * (height / map.height), height)])))
    .filter((corners) => Math.min(...sidesOf(corners)) > 1);
}

/**
 * Rounded; halves to even numbers, as Python does.
 * @param {number} x
 */
const even = (x) => (x % 2 === 0.5 ? Math.floor(x) : Math.round(x));

/**
 * @template T
 * @param {readonly T[]} all
 */
const batches = (all) => Array.from({ length: Math.ceil(all.length / AT_ONCE) }, (_, k) => all.slice(k * AT_ONCE, (k + 1) * AT_ONCE));

/**
 * The numbers of lines that are read at once.
 * @param {number[]} widths
 */
function alike(widths) {
  /** @type {number[][]} */
  const groups = [];
  for (const k of Array.from(widths.keys()).sort((a, b) => widths[a] - widths[b] || a - b)) {
    const last = groups.at(-1);
    if (last && last.length < AT_ONCE && widths[k] <= ALIKE * Math.max(NARROW, widths[last[0]])) last.push(k);
    else groups.push([k]);
  }
  return groups;
}

/**
 * The corners that begin with another one.
 * @param {Corners} corners
 * @param {number} first
 * @returns {Corners}
 */
const rolled = (corners, first) => [...corners.slice(first), ...corners.slice(0, first)];

/**
 * The width of a line of HEIGHT, or a part of it.
 * @param {Corners} corners
 */
function wide(corners, part = 1) {
  const [height, width] = sidesOf(corners);
  return Math.max(1, Math.ceil((part * HEIGHT * width) / height - ROUNDING));
}

/**
 * The beginning of a line, which has no more than TURNING pixels at HEIGHT.
 * @param {Corners} corners
 * @returns {Corners}
 */
function begun(corners) {
  const part = Math.min(1, TURNING / wide(corners));
  const [first, second, third, fourth] = corners;
  const along = (/** @type {Point} */ [x, y], /** @type {Point} */ [u, v]) => /** @type {Point} */ ([x + (u - x) * part, y + (v - y) * part]);
  return [first, along(first, second), along(fourth, third), fourth];
}

/**
 * What a model of lines is given, beside the picture.
 * @param {Corners[]} lines
 * @param {number} least
 * @param {number} most
 */
function views(lines, least, most, part = 1) {
  const widths = lines.map((corners) => Math.min(wide(corners, part), most));
  const places = lines.map((corners, k) => placeOf(corners, HEIGHT, widths[k]));
  const coarse = Math.max(...places.flatMap(([, , a, b, c, d]) => [Math.hypot(a, b), Math.hypot(c, d)]));
  return {
    places: { data: Float32Array.from(places.flat()), shape: [lines.length, 6] },
    widths: Float32Array.from(widths),
    columns: new Uint8Array(Math.ceil(Math.max(least, ...widths) / UNIT)),
    samples: samplesOf(coarse),
  };
}

/**
 * @param {TaskInfo} info
 * @param {Output} characters
 * @param {number} row
 */
function spelt({ labels }, { data, shape: [, steps] }, row) {
  const numbers = /** @type {Int32Array} */ (data).subarray(row * steps, (row + 1) * steps).filter(Boolean);
  const most = numbers.reduce((a, b) => Math.max(a, b), 0);
  if (most >= labels.length)
    throw new SingeError("format", `ocr: the model reads character ${most}, of ${labels.length} that are named: export it with the characters.txt of this model`);
  return Array.from(numbers, (n) => labels[n]).join("");
}

/**
 * @param {Read} read
 * @param {Corners} corners
 * @returns {TaskLine}
 */
function lineOf({ text, score }, corners) {
  const [x, y] = [corners.map((corner) => corner[0]), corners.map((corner) => corner[1])];
  const box = { xmin: Math.min(...x), ymin: Math.min(...y), xmax: Math.max(...x), ymax: Math.max(...y) };
  return { text, score, box, corners: corners.map((corner) => ({ x: corner[0], y: corner[1] })) };
}

/**
 * The numbers of lines, whose corners begin where their text does, from the top down and from left to right, as seen along the way
 * that most of them run. Lines stand beside each other where their centres are within half a height.
 * @param {Corners[]} lines
 */
export function readingOrder(lines) {
  const ways = [0, 1].map((axis) => lines.reduce((sum, [first, second]) => sum + second[axis] - first[axis], 0));
  const [u, v] = ways.map((way) => way / (Math.hypot(...ways) || 1));
  const placed = lines.map((corners, k) => {
    const [x, y] = [0, 1].map((axis) => corners.reduce((sum, corner) => sum + corner[axis], 0) / 4);
    return { k, x: x * u + y * v, y: y * u - x * v, height: Math.min(...sidesOf(corners)) };
  });
  /** @type {typeof placed[]} */
  const rows = [];
  for (const line of placed.sort((a, b) => a.y - b.y || a.k - b.k)) {
    const last = rows.at(-1);
    if (last && line.y - last[0].y < Math.min(line.height, last[0].height) / 2) last.push(line);
    else rows.push([line]);
  }
  return rows.flatMap((row) => row.sort((a, b) => a.x - b.x).map(({ k }) => k));
}
