/**
 * Turns strokes into a picture like those of MNIST: the ink is cropped, scaled so that its longer side fills a box of
 * 20 × 20 pixels, and placed so that its centre of mass is the centre of 28 × 28.
 *
 * Contract: a stroke is a list of points [x, y] in one unit. `toPicture` returns 784 values from 0 (paper) to 1 (ink), or
 * null without strokes. The pen is as wide as in MNIST, whatever size the digit was drawn at. No canvas is read, so
 * browsers that add noise to canvases change nothing.
 */

export const SIDE = 28;
const BOX = 20;
/** MNIST's centre of mass: the middle of pixel 14. */
const CENTRE = 14.5;
/** With this width, digits have as much ink as MNIST's: 0.13 of the picture. */
const PEN = 2.5;
/** Drawings smaller than this part of the pad are not enlarged to fill the box: a dot stays a dot. */
const SMALLEST = 0.15;

export function toPicture(strokes, side = 1) {
  const points = strokes.flat();
  if (!points.length) return null;
  const [left, right] = range(points.map(([x]) => x));
  const [top, bottom] = range(points.map(([, y]) => y));
  const scale = (BOX - PEN) / Math.max(right - left, bottom - top, SMALLEST * side);
  const middle = [(left + right) / 2, (top + bottom) / 2];
  const place = (dx, dy) =>
    strokes.map((stroke) => stroke.map(([x, y]) => [(x - middle[0]) * scale + SIDE / 2 + dx, (y - middle[1]) * scale + SIDE / 2 + dy]));
  const [x, y] = centreOfMass(rasterise(place(0, 0)));
  return rasterise(place(Math.round(CENTRE - x), Math.round(CENTRE - y)));
}

const range = (values) => values.reduce(([least, most], v) => [Math.min(least, v), Math.max(most, v)], [Infinity, -Infinity]);

/** A pixel's ink is how far the pen covers it, by the distance to the nearest line. */
function rasterise(strokes) {
  const picture = new Float32Array(SIDE * SIDE);
  const reach = PEN / 2 + 0.5;
  for (const stroke of strokes) {
    for (let i = 0; i < stroke.length; i++) {
      const [x0, y0] = stroke[i];
      const [x1, y1] = stroke[Math.min(i + 1, stroke.length - 1)];
      const [dx, dy] = [x1 - x0, y1 - y0];
      const length2 = dx * dx + dy * dy;
      for (let row = pixel(Math.min(y0, y1) - reach); row <= pixel(Math.max(y0, y1) + reach); row++) {
        for (let column = pixel(Math.min(x0, x1) - reach); column <= pixel(Math.max(x0, x1) + reach); column++) {
          const [x, y] = [column + 0.5 - x0, row + 0.5 - y0];
          const along = length2 ? Math.min(1, Math.max(0, (x * dx + y * dy) / length2)) : 0;
          const ink = reach - Math.hypot(x - along * dx, y - along * dy);
          const at = row * SIDE + column;
          picture[at] = Math.max(picture[at], Math.min(1, ink));
        }
      }
    }
  }
  return picture;
}

const pixel = (v) => Math.min(SIDE - 1, Math.max(0, Math.floor(v)));

function centreOfMass(picture) {
  let [mass, x, y] = [0, 0, 0];
  picture.forEach((ink, at) => {
    mass += ink;
    x += ink * ((at % SIDE) + 0.5);
    y += ink * (Math.floor(at / SIDE) + 0.5);
  });
  return [x / mass, y / mass];
}
