/**
 * The images to learn from, and batches of them.
 *
 * `fetchDigits` gives { train, test }, each { images, labels, count }: bytes, an image being 784 of them, white on black.
 * The file is what ../train/data.py packs: two counts (uint32, little-endian), labels, images, all compressed by gzip.
 *
 * A `Batches` goes through the images in a new order each time; `next` gives { x, y } for a step: x from 0 to 1. Images
 * are varied a little (turned, scaled, sheared, shifted) if `varied`. `taught` are images of the user's own, { image,
 * label }: a quarter of each batch, as soon as there are any.
 */

import { SIDE } from "./strokes.js";

export const PIXELS = SIDE * SIDE;
const OWN = 4;
const RADIANS = Math.PI / 180;
const TURN = 10 * RADIANS;
const SHEAR = 6 * RADIANS;
const SCALE = 0.12;
const SHIFT = 2;

export async function fetchDigits(url, onProgress) {
  const response = await fetch(url);
  if (!response.ok) throw new Error(`The images could not be fetched: ${response.status}.`);
  const bytes = await unpacked(await received(response, onProgress));
  const [train, test] = new Uint32Array(bytes.buffer, 0, 2);
  const labels = bytes.subarray(8, 8 + train + test);
  const images = bytes.subarray(8 + train + test);
  if (images.length !== PIXELS * (train + test)) throw new Error("The file of images is damaged.");
  return {
    train: { images: images.subarray(0, train * PIXELS), labels: labels.subarray(0, train), count: train },
    test: { images: images.subarray(train * PIXELS), labels: labels.subarray(train), count: test },
  };
}

async function received(response, onProgress) {
  const total = response.headers.has("Content-Encoding") ? 0 : Number(response.headers.get("Content-Length"));
  const parts = [];
  let loaded = 0;
  for (const reader = response.body.getReader(); ; ) {
    const { done, value } = await reader.read();
    if (done) return new Blob(parts);
    parts.push(value);
    loaded += value.length;
    onProgress?.({ loaded, total: Math.max(total, total && loaded), phase: "images" });
  }
}

/** A host may have unpacked the file on its way. */
async function unpacked(blob) {
  const [first, second] = new Uint8Array(await blob.slice(0, 2).arrayBuffer());
  const packed = first === 0x1f && second === 0x8b;
  const stream = packed ? blob.stream().pipeThrough(new DecompressionStream("gzip")) : blob.stream();
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

/** Random numbers from 0 to 1, the same ones for the same seed. */
export function numbers(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x9e3779b9) >>> 0;
    let z = Math.imul(state ^ (state >>> 16), 0x21f0aaad);
    z = Math.imul(z ^ (z >>> 15), 0x735a2d97);
    return ((z ^ (z >>> 15)) >>> 0) / 2 ** 32;
  };
}

export class Batches {
  taught = [];
  varied = true;
  #digits;
  #size;
  #random;
  #order;
  #at;

  constructor(digits, size, seed = 1) {
    this.#digits = digits;
    this.#size = size;
    this.#random = numbers(seed);
    this.#order = Uint32Array.from({ length: digits.count }, (_, k) => k);
    this.#at = digits.count;
  }

  next() {
    const x = new Float32Array(this.#size * PIXELS);
    const y = new Int32Array(this.#size);
    const own = this.taught.length ? this.#size / OWN : 0;
    for (let k = 0; k < this.#size; k++) {
      const { image, label } = k < own ? this.#below(this.taught) : this.#following();
      const to = x.subarray(k * PIXELS, (k + 1) * PIXELS);
      if (this.varied || k < own) this.#vary(image, to);
      else toUnit(image, to);
      y[k] = label;
    }
    return { x: { data: x, shape: [this.#size, 1, SIDE, SIDE] }, y: { data: y, shape: [this.#size] } };
  }

  #below(list) {
    return list[Math.floor(this.#random() * list.length)];
  }

  #following() {
    if (this.#at === this.#order.length) {
      for (let k = this.#order.length - 1; k > 0; k--) {
        const other = Math.floor(this.#random() * (k + 1));
        [this.#order[k], this.#order[other]] = [this.#order[other], this.#order[k]];
      }
      this.#at = 0;
    }
    const chosen = this.#order[this.#at++];
    return { image: imageOf(this.#digits, chosen), label: this.#digits.labels[chosen] };
  }

  /** Each pixel is taken from where an affine map brings it, between its four neighbours there. */
  #vary(image, to) {
    const around = (most) => most * (2 * this.#random() - 1);
    const [turn, shear, scale] = [around(TURN), Math.tan(around(SHEAR)), 1 / (1 + around(SCALE))];
    const [right, down] = [around(SHIFT), around(SHIFT)];
    const [cos, sin] = [scale * Math.cos(turn), scale * Math.sin(turn)];
    const [a, b, c, d] = [cos, cos * shear - sin, sin, sin * shear + cos];
    const middle = (SIDE - 1) / 2;
    for (let row = 0, at = 0; row < SIDE; row++) {
      for (let column = 0; column < SIDE; column++, at++) {
        const [u, v] = [column - middle - right, row - middle - down];
        const [x, y] = [a * u + b * v + middle, c * u + d * v + middle];
        const [left, top] = [Math.floor(x), Math.floor(y)];
        if (left < 0 || top < 0 || left >= SIDE - 1 || top >= SIDE - 1) continue; // the margin of all images is black
        const [p, q, from] = [x - left, y - top, top * SIDE + left];
        const above = image[from] + p * (image[from + 1] - image[from]);
        const below = image[from + SIDE] + p * (image[from + SIDE + 1] - image[from + SIDE]);
        to[at] = (above + q * (below - above)) / 255;
      }
    }
  }
}

export const imageOf = ({ images }, k) => images.subarray(k * PIXELS, (k + 1) * PIXELS);

export function toUnit(image, to) {
  for (let k = 0; k < image.length; k++) to[k] = image[k] / 255;
}
