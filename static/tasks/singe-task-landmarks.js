/**
 * Landmarks of hands, faces and people: one model finds them, another has the points of each, and says where it will be next.
 *
 * Contract: `landmarks(run, info, chosen)` gives a function of pixels, called for one picture after the other, which answers as
 * `Follower` of core/singe/tasks/chains/landmarks.py does. A setting that does not fit is a SingeError with the code "input".
 */

/** @import { Output, TaskFinding, TaskInfo, TaskSettings } from "../types/public.d.ts" */

import { SingeError } from "../program/singe-format.js";
import { pointsOf } from "./singe-task-answers.js";
import { samplesOf } from "./singe-task-crops.js";

/** The constants of landmarks.py. */
const [MOST, SAME, PATIENCE] = [16, 0.5, 5];
const HANDS = /** @type {const} */ (["Left", "Right"]);

/** @typedef {Float32Array} Region x and y of its centre, and of the way along its upper edge */
/** @typedef {(name: string, inputs: Record<string, unknown>, signal?: AbortSignal) => Promise<Record<string, Output>>} Run */
/** @typedef {{ data: Uint8Array, width: number, height: number }} Pixels */

/**
 * @param {Run} run
 * @param {TaskInfo} info
 * @param {Required<TaskSettings>} chosen
 */
export function landmarks(run, info, { threshold, top }) {
  const { side, joints } = /** @type {{ side: number, joints: unknown }} */ (info.options);
  if (!(side > 0) || !Array.isArray(joints)) throw new SingeError("format", "landmarks: the manifest lacks the side or the joints: export the task once more");
  if (!(threshold > 0 && threshold <= 1)) throw new SingeError("input", `landmarks: threshold is ${threshold}, expected a score above 0, to 1`);
  if (!(top >= 1 && top <= MOST)) throw new SingeError("input", `landmarks: top is ${top}, expected how many are found, from 1 to ${MOST}`);
  /** @type {Region[]} */
  let followed = [];
  let frames = 0;

  return async (/** @type {Pixels} */ { data, width, height }, /** @type {AbortSignal | undefined} */ signal) => {
    const picture = { data, shape: [height, width, 4] };
    const regions = [...followed];
    if (!regions.length || (regions.length < top && frames % PATIENCE === 0)) {
      const found = await run("find", { picture, threshold: Float32Array.of(threshold) }, signal);
      regions.push(...rows(found.regions));
    }
    frames += 1;
    /** @type {TaskFinding[]} */
    const items = [];
    /** @type {Region[]} */
    const following = [];
    for (const region of apart(regions).slice(0, top)) {
      const found = await run("points", { picture, region, samples: samplesOf(Math.hypot(region[2], region[3]) / side) }, signal);
      const score = found.score.data[0];
      const ahead = /** @type {Region} */ (found.region.data);
      if (score < threshold || apart([...following, ahead]).length === following.length) continue;
      following.push(ahead);
      items.push(itemOf(found, info.labels[0], Number(score)));
    }
    followed = following;
    return items;
  };
}

/**
 * @param {Record<string, Output>} found
 * @param {string} label
 * @param {number} score
 * @returns {TaskFinding}
 */
function itemOf({ landmarks, right }, label, score) {
  const points = pointsOf(landmarks, 0);
  const [x, y] = [points.map((point) => point.x), points.map((point) => point.y)];
  const box = { xmin: Math.min(...x), ymin: Math.min(...y), xmax: Math.max(...x), ymax: Math.max(...y) };
  return { label, score, index: 0, box, landmarks: points, ...(right && { handedness: HANDS[Number(right.data[0] >= 0.5)] }) };
}

/**
 * @param {Output} output
 * @returns {Region[]}
 */
function rows({ data, shape: [count, numbers] }) {
  const values = /** @type {Float32Array} */ (data);
  return Array.from({ length: count }, (_, k) => values.slice(k * numbers, (k + 1) * numbers));
}

/**
 * Regions without those that are the same as one before.
 * @param {Region[]} regions
 */
function apart(regions) {
  /** @type {Region[]} */
  const kept = [];
  for (const region of regions) if (kept.every((other) => shared(region, other) <= SAME)) kept.push(region);
  return kept;
}

/**
 * The common area of two regions over their area together, as if they were not turned.
 * @param {Region} a
 * @param {Region} b
 */
function shared(a, b) {
  const [one, other] = [Math.hypot(a[2], a[3]), Math.hypot(b[2], b[3])];
  let common = 1;
  for (const axis of [0, 1]) {
    const low = Math.max(a[axis] - one / 2, b[axis] - other / 2);
    const high = Math.min(a[axis] + one / 2, b[axis] + other / 2);
    common *= Math.max(0, high - low);
  }
  return common / Math.max(one * one + other * other - common, 1e-9);
}
