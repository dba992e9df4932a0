/**
 * Rotated rectangles of a picture, as the Graphs of tasks take them: what core/singe/tasks/chains/crops.py does outside of a Graph.
 *
 * Contract: corners are in pixels of the picture, with edges at whole numbers, from the top left one on, clockwise.
 */

const MAX_SAMPLES = 4;

/** @typedef {readonly [number, number]} Point x and y */
/** @typedef {readonly Point[]} Corners the four of a rectangle */

/**
 * @param {Point} a
 * @param {Point} b
 */
export const distance = ([ax, ay], [bx, by]) => Math.hypot(bx - ax, by - ay);

/**
 * Height and width of a rectangle.
 * @param {Corners} corners
 */
export const sidesOf = ([first, second, , last]) => [distance(first, last), distance(first, second)];

/**
 * The place of a rectangle that becomes so many rows and columns: x and y of its corner, and by how much they grow from one
 * column to the next, and from one row to the next.
 * @param {Corners} corners
 * @param {number} height
 * @param {number} width
 */
export function placeOf([[x, y], [rightX, rightY], , [downX, downY]], height, width) {
  return [x, y, (rightX - x) / width, (rightY - y) / width, (downX - x) / height, (downY - y) / height];
}

/**
 * Where a crop samples a pixel along its axes, if neighbours are so many of the picture's pixels apart.
 * @param {number} step
 */
export function samplesOf(step) {
  const count = Math.min(MAX_SAMPLES, Math.max(1, Math.ceil(step - 0.5)));
  return Float32Array.from({ length: count }, (_, k) => (k + 0.5) / count - 0.5);
}
