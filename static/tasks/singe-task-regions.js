/**
 * Regions of a map: connected components, and the smallest rectangles around them, as core/singe/tasks/chains/regions.py has them.
 *
 * Contract: `regionsOf(map, threshold, least, grow)` gives the regions above a threshold whose score is at least `least`, in the order of
 * their first elements, as rectangles that stand off by `grow` times the ratio of their area to their perimeter.
 */

/** @import { Corners, Point } from "./singe-task-crops.js" */

import { sidesOf } from "./singe-task-crops.js";

/** The constants of regions.py: how many regions are looked at, the least side of a rectangle, areas and places that count as equal. */
const [MOST, LEAST, ALIKE, DIGITS] = [1000, 3, 1 + 1e-9, 1e6];

/** @typedef {{ data: Float32Array, width: number, height: number }} Chances */
/** @typedef {{ corners: Corners, score: number }} MapRegion */
/** @typedef {{ row: number, first: number, last: number, root: number }} Run of pixels of a row; root: the number of another of its component */

/**
 * @param {Chances} chances
 * @param {number} threshold
 * @param {number} least
 * @param {number} grow
 */
export function regionsOf(chances, threshold, least, grow) {
  /** @type {MapRegion[]} */
  const found = [];
  for (const points of outlines(runsOf(chances, Math.fround(threshold)))) {
    const corners = smallestRectangle(points);
    if (Math.min(...sidesOf(corners)) < LEAST) continue;
    const score = meanWithin(chances, corners);
    if (score >= least) found.push({ corners: ordered(grown(corners, grow)).map(([x, y]) => /** @type {const} */ ([x + 0.5, y + 0.5])), score });
  }
  return found;
}

/**
 * The runs of what is above a threshold, with the pixels right of and below it, which joins what is a pixel apart. Components join
 * at corners, too; the root of a run is the first of its component.
 * @param {Chances} chances
 * @param {number} threshold
 */
function runsOf({ data, width, height }, threshold) {
  /** @type {Run[]} */
  const runs = [];
  const root = (/** @type {number} */ k) => {
    while (runs[k].root !== k) k = runs[k].root = runs[runs[k].root].root;
    return k;
  };
  let above = 0; // the first run of the row above that may touch the next one
  for (let row = 0; row < height; row++) {
    const [start, end] = [row * width, runs.length];
    const over = row ? start - width : start;
    let first = -1;
    for (let x = 0; x <= width; x++) {
      const last = Math.max(x - 1, 0);
      const marked = x < width && (data[start + x] > threshold || data[over + x] > threshold || data[start + last] > threshold || data[over + last] > threshold);
      if (marked && first < 0) first = x;
      if (marked || first < 0) continue;
      const own = runs.push({ row, first, last: x - 1, root: runs.length }) - 1;
      while (above < end && runs[above].last < first - 1) above++;
      for (let k = above; k < end && runs[k].first <= x; k++) {
        const [a, b] = [root(k), root(own)];
        runs[Math.max(a, b)].root = Math.min(a, b);
      }
      first = -1;
    }
    above = end;
  }
  for (let k = 0; k < runs.length; k++) runs[k].root = root(k);
  return runs;
}

/**
 * For each component that is large enough, the ends of its runs; the largest MOST alone.
 * @param {Run[]} runs
 */
function outlines(runs) {
  /** @type {Map<number, Run[]>} */
  const components = new Map();
  for (const run of runs) {
    const component = components.get(run.root);
    if (component) component.push(run);
    else components.set(run.root, [run]);
  }
  const large = Array.from(components.values(), (own, index) => {
    const [left, right] = own.reduce(([a, b], { first, last }) => [Math.min(a, first), Math.max(b, last)], [Infinity, 0]);
    const high = own[own.length - 1].row - own[0].row + 1;
    return { own, index, side: Math.min(high, right - left + 1), size: own.reduce((sum, { first, last }) => sum + last - first + 1, 0) };
  }).filter(({ side }) => side > LEAST);
  const kept = large.sort((a, b) => b.size - a.size || a.index - b.index).slice(0, MOST);
  return kept
    .sort((a, b) => a.index - b.index)
    .map(({ own }) =>
      own.flatMap(
        ({ row, first, last }) =>
          /** @type {Point[]} */ ([
            [first, row],
            [last, row],
          ]),
      ),
    );
}

/**
 * The corners of the convex hull, clockwise as pictures have it, none on a line between others.
 * @param {Point[]} points
 */
function hull(points) {
  const sorted = points.slice().sort((a, b) => a[0] - b[0] || a[1] - b[1]);
  const rows = sorted.filter(([x, y], k) => !k || x !== sorted[k - 1][0] || y !== sorted[k - 1][1]);
  if (rows.length < 3) return rows;
  return [rows, rows.slice().reverse()].flatMap((way) => {
    /** @type {Point[]} */
    const half = [];
    for (const [x, y] of way) {
      while (half.length > 1) {
        const [[x0, y0], [x1, y1]] = half.slice(-2);
        if ((x1 - x0) * (y - y0) - (y1 - y0) * (x - x0) > 0) break;
        half.pop();
      }
      half.push([x, y]);
    }
    return half.slice(0, -1);
  });
}

/**
 * The rectangle of least area around points: one of its sides lies on a side of their hull.
 * @param {Point[]} points
 * @returns {Corners}
 */
function smallestRectangle(points) {
  const corners = hull(points);
  const found = corners.flatMap(([x, y], k) => {
    const [nextX, nextY] = corners[(k + 1) % corners.length];
    const length = Math.hypot(nextX - x, nextY - y);
    if (!length) return [];
    const [u, v] = [(nextX - x) / length, (nextY - y) / length];
    let [left, right, top, bottom] = [Infinity, -Infinity, Infinity, -Infinity];
    for (const [px, py] of corners) {
      const [along, across] = [px * u + py * v, py * u - px * v];
      [left, right, top, bottom] = [Math.min(left, along), Math.max(right, along), Math.min(top, across), Math.max(bottom, across)];
    }
    return [{ u, v, left, right, top, bottom, area: (right - left) * (bottom - top) }];
  });
  if (!found.length) return Array.from({ length: 4 }, () => corners[0]);
  const most = ALIKE * found.reduce((area, one) => Math.min(area, one.area), Infinity);
  const { u, v, left, right, top, bottom } = /** @type {typeof found[0]} */ (found.find(({ area }) => area <= most));
  const at = (/** @type {number} */ along, /** @type {number} */ across) => /** @type {const} */ ([along * u - across * v, along * v + across * u]);
  return [at(left, top), at(right, top), at(right, bottom), at(left, bottom)];
}

/**
 * A rectangle whose sides move out by `ratio` times its area by its perimeter.
 * @param {Corners} corners
 * @param {number} ratio
 * @returns {Corners}
 */
function grown(corners, ratio) {
  const [[x, y], right, , down] = corners;
  const [height, width] = sidesOf(corners);
  const far = (ratio * width * height) / (2 * (width + height));
  const [ux, uy] = [((right[0] - x) / width) * far, ((right[1] - y) / width) * far];
  const [vx, vy] = [((down[0] - x) / height) * far, ((down[1] - y) / height) * far];
  const ways = [
    [-ux - vx, -uy - vy],
    [ux - vx, uy - vy],
    [ux + vx, uy + vy],
    [vx - ux, vy - uy],
  ];
  return corners.map(([a, b], k) => [a + ways[k][0], b + ways[k][1]]);
}

/**
 * Corners from the top left one on, clockwise: of the two on the left, the upper one is the first. One below another is not left of it.
 * @param {Corners} corners
 * @returns {Corners}
 */
function ordered(corners) {
  const [x, y] = [0, 1].map((axis) => corners.reduce((sum, corner) => sum + corner[axis], 0) / 4);
  const around = corners
    .map((corner) => ({ corner, angle: Math.atan2(corner[1] - y, corner[0] - x) }))
    .sort((a, b) => a.angle - b.angle)
    .map(({ corner }) => corner);
  const [one, other] = [0, 1, 2, 3].sort((a, b) => Math.round(around[a][0] * DIGITS) - Math.round(around[b][0] * DIGITS) || around[a][1] - around[b][1]);
  const first = around[other][1] < around[one][1] ? other : one;
  return [...around.slice(first), ...around.slice(0, first)];
}

/**
 * The mean of a map's elements whose centres, at whole numbers, lie in a rectangle.
 * @param {Chances} chances
 * @param {Corners} corners
 */
function meanWithin({ data, width, height }, corners) {
  const [first, second, , last] = corners;
  const [xs, ys] = [corners.map(([x]) => x), corners.map(([, y]) => y)];
  const [left, right] = [Math.max(0, Math.floor(Math.min(...xs))), Math.min(width - 1, Math.ceil(Math.max(...xs)))];
  const [top, bottom] = [Math.max(0, Math.floor(Math.min(...ys))), Math.min(height - 1, Math.ceil(Math.max(...ys)))];
  const sides = [second, last].map((corner) => {
    const [x, y] = [corner[0] - first[0], corner[1] - first[1]];
    const length = Math.hypot(x, y);
    return { u: x / (length || 1), v: y / (length || 1), length };
  });
  let [sum, count] = [0, 0];
  for (let y = top; y <= bottom; y++) {
    for (let x = left; x <= right; x++) {
      const isInside = sides.every(({ u, v, length }) => {
        const far = (x - first[0]) * u + (y - first[1]) * v;
        return far > -0.5 && far < (length || 1) + 0.5;
      });
      if (isInside) [sum, count] = [sum + data[y * width + x], count + 1];
    }
  }
  return count ? sum / count : 0;
}
