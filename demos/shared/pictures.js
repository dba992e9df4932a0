/** Small pictures: the filters of a layer, and images with a word below each. */

import { paint } from "./answer.js";
import { SIDE } from "./strokes.js";

/** Blue, black, straw: what a filter is against, and what it looks for. */
const AGAINST = [72, 130, 220];
const FOR = [236, 186, 85];

/**
 * Show the filters of a first layer, { shape, data }: one square each, of a convolution's kernels or of a linear layer's
 * rows. Colours are relative to the largest weight of the filter.
 */
export function showFilters(place, { shape, data }) {
  const size = data.length / shape[0];
  const side = Math.round(Math.sqrt(size));
  const canvases = children(place, shape[0], () => Object.assign(document.createElement("canvas"), { width: side, height: side }));
  canvases.forEach((canvas, k) => {
    if (canvas.width !== side) canvas.width = canvas.height = side;
    const weights = data.subarray(k * size, (k + 1) * size);
    const most = weights.reduce((a, b) => Math.max(a, Math.abs(b)), 1e-9);
    paint(canvas, weights, (weight) => (weight < 0 ? AGAINST : FOR).map((part) => part * Math.abs(weight / most)));
  });
}

/** Show images { image, text }, with values from 0 to `most`. */
export function showImages(place, images, most) {
  const figures = children(place, images.length, () => {
    const figure = document.createElement("li");
    figure.append(Object.assign(document.createElement("canvas"), { width: SIDE, height: SIDE }), document.createElement("span"));
    figure.firstChild.setAttribute("aria-hidden", "true");
    return figure;
  });
  figures.forEach((figure, k) => {
    paint(figure.firstChild, images[k].image, (value) => new Array(3).fill((255 * value) / most));
    figure.lastChild.textContent = images[k].text;
  });
}

/** So many children of an element, the old ones kept. */
function children(place, count, make) {
  while (place.children.length > count) place.lastChild.remove();
  while (place.children.length < count) place.append(make());
  return [...place.children];
}
