/**
 * Pictures become tensors, as core/singe/tasks/picture/spec.py makes them: upright, cropped, resized, normalised, laid out.
 *
 * Contract: `pictureToTensor(source, spec)` takes a Blob, or anything that a canvas can draw (ImageBitmap, image, canvas,
 * video, ImageData), and returns the elements of one picture's tensor. It uses the largest centred rectangle with the
 * proportions of `size`, shrunk by `crop`, and resizes it in one step, bicubic and antialiased, in 8 bits. Transparent
 * pixels are blended with white. A Blob's size is read before it is decoded, so a picture that is too large takes no
 * memory. Pixels are read a strip at a time. Anything that is not a picture is a SingeError with the code "input".
 */

/** @import { ImageFacts, PictureSource } from "./types/public.d.ts" */
/** @import { Context2D, Drawn, Extent, PictureSpec, Tap } from "./types/program.d.ts" */

import { SingeError } from "./program/singe-format.js";

/** Pixels of a picture at most. */
export const MOST_PIXELS = 2 ** 26; // as in files/pictures.py
/** Pixels on a side at most: the limit of canvases. */
const MOST_SIDE = 32767;
/** The most elements of a tensor. */
const MOST_ELEMENTS = 2 ** 26;
/** Pixels that are taken out of a picture at once. */
const STRIP = 2 ** 20;

/**
 * @param {string} what
 * @param {unknown} [cause]
 */
const refuse = (what, cause) => new SingeError("input", `picture: ${what}`, cause);

/**
 * The elements of one picture's tensor, with a batch of one, for a spec: `model.image`, or the `image` of a manifest.
 *
 * A Blob is turned upright by its EXIF orientation. What is no picture, a damaged one, and one of more than MOST_PIXELS
 * is a SingeError of the code "input".
 * @param {PictureSource} source
 * @param {Omit<ImageFacts, "input">} spec
 * @returns {Promise<Float32Array>}
 */
export async function pictureToTensor(source, spec) {
  checkSpec(spec);
  if (!(source instanceof Blob)) return normalised(resized(source, spec), spec);
  checkSize(...(await sizeOf(source)));
  const bitmap = await decodedPicture(source);
  try {
    return normalised(resized(bitmap, spec), spec);
  } finally {
    bitmap.close();
  }
}

/**
 * A picture's own pixels, RGBA, upright and on white. room: where those of earlier ones were, whose place they take.
 * @param {PictureSource} source
 * @param {PixelRoom} [room]
 * @returns {Promise<{ data: Uint8Array<ArrayBuffer>, width: number, height: number }>}
 */
export async function pixelsOf(source, room = new PixelRoom()) {
  if (source instanceof Blob) {
    checkSize(...(await sizeOf(source)));
    const bitmap = await decodedPicture(source);
    try {
      return await pixelsOf(bitmap, room);
    } finally {
      bitmap.close();
    }
  }
  const [width, height] = extentOf(source);
  checkSize(width, height);
  const data = await opaque(source, width, height, room);
  return { data: data ?? new Uint8Array(cutOut(canvas(width, height), /** @type {Drawn} */ (source), 0, 0, width, height).buffer), width, height };
}

/**
 * A bitmap's or a frame's RGBA, without a canvas, which takes several times as long; undefined if a canvas must blend, turn or convert it, or
 * this page may not compile WebAssembly.
 * @param {unknown} source
 * @param {number} width
 * @param {number} height
 * @param {PixelRoom} room
 */
async function opaque(source, width, height, room) {
  if (!globalThis.VideoFrame || !(source instanceof ImageBitmap || source instanceof VideoFrame)) return undefined;
  const frame = new VideoFrame(source, source instanceof ImageBitmap ? { timestamp: 0 } : {});
  try {
    const { format, visibleRect, colorSpace, rotation, flip } = /** @type {VideoFrame & { rotation?: number, flip?: boolean }} */ (frame);
    const [order, last] = /^(RGB|BGR)([AX])$|^I420$|^NV12$/.exec(String(format))?.slice(1) ?? [null];
    const isWhole = visibleRect?.width === width && visibleRect.height === height && !rotation && !flip;
    if (order === null || !isWhole || colorSpace.primaries !== "bt709") return undefined;
    const pixels = await room.place(4 * width * height);
    const planes = await frame.copyTo(pixels, order ? {} : /** @type {VideoFrameCopyToOptions} */ ({ format: "RGBA", colorSpace: "srgb" }));
    if (planes.length > 1) return undefined; // this browser converts none
    if (!order || (order === "RGB" && last === "X")) return pixels;
    return room.areOpaque(order === "BGR") || last === "X" ? pixels : undefined;
  } catch {
    return undefined; // closed, say: what draws it will say so
  } finally {
    frame.close();
  }
}

const PAGE = 2 ** 16;
/**
 * A module with f(begin, end, exchange), which exchanges the first and third byte of each pixel, if asked, and returns the bits that all pixels
 * have: 16 bytes a turn, where a loop of JavaScript takes ten times as long. tests/browser/embedding/pixels.wat is its text.
 */
const ARRANGE =
  "AGFzbQEAAAABCAFgA39/fwF/AggBAWUBbQIAAAMCAQAHBQEBZgAACoQBAYEBAQN7/Qz/////////////////////IQP9DAIBAAMGBQQHCgkICw4NDA/9DAABAgMEBQYHCAkKCwwNDg8gAhshBQNAIAAgAP0AAAAiBCAF/Q79CwAAIAMgBP1OIQMgAEEQaiIAIAFJDQALIAP9GwAgA/0bAXEgA/0bAnEgA/0bA3EL";

/**
 * The module, compiled once for pictures of all sizes.
 * @type {Promise<WebAssembly.Module> | undefined}
 */
let arranging;

/** Memory for the pixels of one picture after the other, since fresh memory takes longer to get than to fill. */
export class PixelRoom {
  #bytes = new Uint8Array();
  #count = 0;
  /** @type {(begin: number, end: number, exchange: boolean) => number} */
  #arrange = () => 0;

  /**
   * Room for so many bytes; what was there is gone.
   * @param {number} count
   */
  async place(count) {
    const initial = Math.ceil(count / PAGE);
    if (this.#bytes.length !== initial * PAGE) {
      const m = new WebAssembly.Memory({ initial });
      arranging ??= WebAssembly.compile(Uint8Array.from(atob(ARRANGE), (letter) => letter.charCodeAt(0)));
      const { exports } = await WebAssembly.instantiate(await arranging, { e: { m } });
      this.#arrange = /** @type {any} */ (exports.f);
      this.#bytes = new Uint8Array(/** @type {ArrayBuffer} */ (m.buffer));
    }
    this.#bytes.fill(255, count, count + 16); // as the last turn sees them
    this.#count = count;
    return this.#bytes.subarray(0, count);
  }

  /**
   * Whether all pixels are opaque; first their first and third bytes are exchanged, if asked.
   * @param {boolean} exchange
   */
  areOpaque(exchange) {
    return this.#arrange(0, this.#count, exchange) >>> 24 === 255;
  }
}

/** @param {Blob} blob */
async function decodedPicture(blob) {
  try {
    /** @type {ImageBitmapOptions} */
    const options = { imageOrientation: "from-image", colorSpaceConversion: "none" };
    return await createImageBitmap(blob, options);
  } catch (cause) {
    throw refuse(`it cannot be decoded, it seems to be damaged (${/** @type {Error} */ (cause).message})`, cause);
  }
}

/** @param {PictureSpec | undefined} spec */
function checkSpec({ size, channels, crop, mean, std, layout } = /** @type {PictureSpec} */ ({})) {
  const numbers = (/** @type {unknown} */ list) => Array.isArray(list) && [1, channels].includes(list.length) && list.every(Number.isFinite);
  const sides = Array.isArray(size) && size.length === 2 && size.every((n) => Number.isInteger(n) && n > 0);
  for (const [ok, name, wanted] of [
    [sides && size[0] * size[1] * 3 <= MOST_ELEMENTS, "size", "[height, width]"],
    [channels === 1 || channels === 3, "channels", "1 or 3"],
    [crop > 0 && crop <= 1, "crop", "above 0 and at most 1"],
    [numbers(mean), "mean", "1 number, or one for each channel"],
    [numbers(std) && !std.includes(0), "std", "1 number other than 0, or one for each channel"],
    [layout === "nchw" || layout === "nhwc", "layout", "nchw or nhwc"],
  ]) {
    if (!ok) throw refuse(`the spec's ${name} is not as expected: ${wanted}`);
  }
}

/**
 * @param {number} width
 * @param {number} height
 */
function checkSize(width, height) {
  if (!(width > 0 && height > 0)) throw refuse(`it has ${width} × ${height} pixels, as images and videos have until they are loaded`);
  if (width * height > MOST_PIXELS || Math.max(width, height) > MOST_SIDE) {
    const most = `${Math.floor(MOST_PIXELS / 1e6)} million, and ${MOST_SIDE} a side`;
    throw refuse(`it has ${width} × ${height} pixels, more than can be read here (${most}): make it smaller first`);
  }
}

// --- how large a picture is, without decoding it ---------------------------------------------------------------------

const KINDS = "a JPEG, PNG, GIF, WebP, AVIF or BMP file";
const HEAD = 32;
const AVIF_HEAD = 1 << 16;
const ISPE = 0x69737065;

/**
 * [width, height] as the file's head says; sides may be exchanged.
 * @param {Blob} blob
 * @returns {Promise<[width: number, height: number]>}
 */
async function sizeOf(blob) {
  const view = new DataView(await blob.slice(0, HEAD).arrayBuffer());
  const text = (/** @type {number} */ at, /** @type {number} */ length) => String.fromCharCode(...new Uint8Array(view.buffer.slice(at, at + length)));
  const long = view.byteLength >= HEAD;
  if (text(0, 3) === "\xff\xd8\xff") return jpegSize(blob);
  if (long && text(0, 8) === "\x89PNG\r\n\x1a\n") return [view.getUint32(16), view.getUint32(20)];
  if (long && text(0, 4) === "GIF8") return [view.getUint16(6, true), view.getUint16(8, true)];
  if (long && text(0, 2) === "BM") return [view.getInt32(18, true), Math.abs(view.getInt32(22, true))];
  if (long && text(0, 4) === "RIFF" && text(8, 4) === "WEBP") return webpSize(view, text(12, 4));
  if (long && text(4, 4) === "ftyp" && /^avi[fs]/.test(text(8, 4))) return avifSize(blob);
  throw refuse(`expected ${KINDS}${blob.size ? "" : ", this one is empty"}`);
}

/**
 * @param {DataView} view
 * @param {string} kind
 * @returns {[width: number, height: number]}
 */
function webpSize(view, kind) {
  if (kind === "VP8 ") return [view.getUint16(26, true) & 0x3fff, view.getUint16(28, true) & 0x3fff];
  if (kind === "VP8L") {
    const bits = view.getUint32(21, true);
    return [(bits & 0x3fff) + 1, ((bits >> 14) & 0x3fff) + 1];
  }
  const side = (/** @type {number} */ at) => (view.getUint32(at, true) & 0xffffff) + 1;
  if (kind === "VP8X") return [side(24), side(27)];
  throw refuse(`expected ${KINDS}; this WebP is of an unknown kind`);
}

/**
 * Of its largest image: each has a property "ispe" in the head, of a version, a width and a height.
 * @param {Blob} blob
 * @returns {Promise<[width: number, height: number]>}
 */
async function avifSize(blob) {
  const view = new DataView(await blob.slice(0, AVIF_HEAD).arrayBuffer());
  /** @type {[number, number]} */
  let found = [0, 0];
  for (let at = 12; at + 16 <= view.byteLength; at++) {
    if (view.getUint32(at) !== ISPE) continue;
    const [width, height] = [view.getUint32(at + 8), view.getUint32(at + 12)];
    if (width * height > found[0] * found[1]) found = [width, height];
  }
  if (!found[0]) throw refuse(`expected ${KINDS}; this AVIF does not say how large it is`);
  return found;
}

/**
 * From one segment to the next until a frame begins.
 * @param {Blob} blob
 * @returns {Promise<[width: number, height: number]>}
 */
async function jpegSize(blob) {
  for (let at = 2; at < blob.size; ) {
    const view = new DataView(await blob.slice(at, at + 9).arrayBuffer());
    if (view.byteLength < 9 || view.getUint8(0) !== 0xff) break;
    const marker = view.getUint8(1);
    if (marker === 0xff) at += 1;
    else if (marker >= 0xc0 && marker <= 0xcf && ![0xc4, 0xc8, 0xcc].includes(marker)) return [view.getUint16(7), view.getUint16(5)];
    else at += 2 + view.getUint16(2);
  }
  throw refuse("the JPEG file ends before its picture begins");
}

// --- resizing --------------------------------------------------------------------------------------------------------

/**
 * A picture's pixels at the spec's size, as [height][width][channels] of 0 to 255.
 * @param {Drawn} source
 * @param {PictureSpec} spec
 */
function resized(source, { size: [height, width], channels, crop }) {
  const [fullWidth, fullHeight] = extentOf(source);
  checkSize(fullWidth, fullHeight);
  const scale = Math.min(fullWidth / width, fullHeight / height) * crop;
  const across = taps(fullWidth, width * scale, width);
  const down = taps(fullHeight, height * scale, height);
  const [left, right] = ends(across);
  const [top, bottom] = ends(down);

  const sums = new Float64Array(height * width * channels);
  const row = new Float64Array(width * channels);
  let first = 0;
  const rows = Math.max(1, Math.floor(STRIP / (right - left)));
  const strip = canvas(right - left, Math.min(rows, bottom - top));
  for (let y = top; y < bottom; y += rows) {
    const count = Math.min(rows, bottom - y);
    const pixels = cutOut(strip, source, left, y, right - left, count);
    for (let k = 0; k < count; k++) {
      squeeze(pixels.subarray(4 * k * (right - left)), across, left, channels, row);
      while (first < height && down[first].end <= y + k) first++;
      for (let out = first; out < height && down[out].start <= y + k; out++) {
        if (y + k >= down[out].end) continue;
        const weight = down[out].weights[y + k - down[out].start];
        const at = out * row.length;
        for (let i = 0; i < row.length; i++) sums[at + i] += weight * row[i];
      }
    }
  }
  return Uint8ClampedArray.from(sums, round);
}

/**
 * The size of a source that a canvas can draw: videos and images have different fields for it.
 * @param {unknown} source
 * @returns {[width: number, height: number]}
 */
function extentOf(source) {
  const given = /** @type {Extent | undefined} */ (source);
  const width = given?.videoWidth ?? given?.naturalWidth ?? given?.displayWidth ?? given?.width;
  const height = given?.videoHeight ?? given?.naturalHeight ?? given?.displayHeight ?? given?.height;
  if (typeof width === "number" && typeof height === "number") return [width, height];
  throw refuse(`expected a file, or something that a canvas draws, got ${given?.constructor?.name ?? source}`);
}

/**
 * For each of `count` outputs the pixels that it is made of, and their weights, over the centred `part` of `full`.
 * @param {number} full
 * @param {number} part
 * @param {number} count
 * @returns {Tap[]}
 */
function taps(full, part, count) {
  const offset = Math.max(0, (full - part) / 2);
  const scale = Math.min(full - offset, offset + part) - offset;
  const step = scale / count;
  const wide = Math.max(1, step);
  return Array.from({ length: count }, (_, k) => {
    const center = offset + (k + 0.5) * step;
    const start = Math.max(0, Math.floor(center - 2 * wide + 0.5));
    const end = Math.min(full, Math.floor(center + 2 * wide + 0.5));
    const raw = Float64Array.from({ length: end - start }, (_, i) => bicubic((start + i - center + 0.5) / wide));
    const sum = raw.reduce((a, b) => a + b, 0);
    return { start, end, weights: raw.map((w) => w / sum) };
  });
}

/** @param {Tap[]} list */
const ends = (list) => [list[0].start, list[list.length - 1].end];

/** @param {number} x */
function bicubic(x) {
  x = Math.abs(x);
  if (x < 1) return (1.5 * x - 2.5) * x * x + 1;
  return x < 2 ? ((-0.5 * x + 2.5) * x - 4) * x + 2 : 0;
}

/** @param {number} x */
const round = (x) => Math.min(255, Math.max(0, Math.floor(x + 0.5)));

/**
 * One row of RGBA pixels, which begins at column `left`, at its new width.
 * @param {Uint8ClampedArray} pixels
 * @param {Tap[]} across
 * @param {number} left
 * @param {number} channels
 * @param {Float64Array} row
 */
function squeeze(pixels, across, left, channels, row) {
  if (channels === 1) {
    across.forEach(({ start, weights }, x) => {
      let sum = 0;
      for (let i = 0, at = 4 * (start - left); i < weights.length; i++, at += 4) sum += weights[i] * grey(pixels, at);
      row[x] = round(sum);
    });
    return;
  }
  across.forEach(({ start, weights }, x) => {
    let [r, g, b] = [0, 0, 0];
    for (let i = 0, at = 4 * (start - left); i < weights.length; i++, at += 4) {
      r += weights[i] * pixels[at];
      g += weights[i] * pixels[at + 1];
      b += weights[i] * pixels[at + 2];
    }
    row[3 * x] = round(r);
    row[3 * x + 1] = round(g);
    row[3 * x + 2] = round(b);
  });
}

/**
 * Luma by ITU-R BT.601, in 16 bits.
 * @param {Uint8ClampedArray} pixels
 * @param {number} at
 */
const grey = (pixels, at) => (19595 * pixels[at] + 38470 * pixels[at + 1] + 7471 * pixels[at + 2] + 0x8000) >> 16;

/**
 * @param {number} width
 * @param {number} height
 * @returns {Context2D}
 */
function canvas(width, height) {
  const made = globalThis.OffscreenCanvas ? new OffscreenCanvas(width, height) : Object.assign(document.createElement("canvas"), { width, height });
  const context = /** @type {Context2D | null} */ (made.getContext("2d", { willReadFrequently: true }));
  if (!context) throw new SingeError("device", "picture: this browser provides no canvas to read it with");
  context.imageSmoothingEnabled = false;
  return context;
}

/**
 * A rectangle of a picture as RGBA, on white.
 * @param {Context2D} context
 * @param {Drawn} source
 * @param {number} x
 * @param {number} y
 * @param {number} width
 * @param {number} height
 */
function cutOut(context, source, x, y, width, height) {
  /** @type {[CanvasImageSource, number, number]} */
  const drawn = source instanceof ImageData ? bitmapOf(source, x, y, width, height) : [source, x, y];
  context.fillStyle = "white";
  context.fillRect(0, 0, width, height);
  try {
    context.drawImage(drawn[0], drawn[1], drawn[2], width, height, 0, 0, width, height);
    return context.getImageData(0, 0, width, height).data;
  } catch (cause) {
    throw refuse(`it cannot be drawn (${/** @type {Error} */ (cause).message})`, cause);
  }
}

/**
 * ImageData is put, not drawn: a rectangle of it as a canvas.
 * @param {ImageData} data
 * @param {number} x
 * @param {number} y
 * @param {number} width
 * @param {number} height
 * @returns {[CanvasImageSource, number, number]}
 */
function bitmapOf(data, x, y, width, height) {
  const part = canvas(width, height);
  part.putImageData(data, -x, -y);
  return [part.canvas, 0, 0];
}

// --- numbers ---------------------------------------------------------------------------------------------------------

/**
 * @param {Uint8ClampedArray} pixels
 * @param {PictureSpec} spec
 */
function normalised(pixels, { size: [height, width], channels, mean, std, layout }) {
  const out = new Float32Array(pixels.length);
  const area = height * width;
  for (let i = 0; i < pixels.length; i++) {
    const c = i % channels;
    const at = layout === "nhwc" ? i : c * area + (i - c) / channels;
    out[at] = Math.fround(pixels[i] - Math.fround(mean[c % mean.length])) / Math.fround(std[c % std.length]);
  }
  return out;
}
