/**
 * Pictures as tensors, as onnxruntime-web's `Tensor.fromImage` lays them out.
 *
 * Contract: `read(image, options)` gives the elements and dims of one picture of three channels. An address is fetched first.
 */

/** @import { OrtPictureOptions, PictureSource } from "../types/public.d.ts" */

import { pictureToTensor } from "../singe-picture.js";

/**
 * @param {PictureSource | string} image
 * @param {OrtPictureOptions} options
 */
export async function read(image, { resizedWidth, resizedHeight, tensorFormat = "RGB", tensorLayout = "NCHW", norm = {}, ...other }) {
  const { dataType = "float32" } = /** @type {{ dataType?: string }} */ (other);
  if (!["RGB", "BGR"].includes(tensorFormat) || dataType !== "float32") {
    throw new TypeError(`a picture as ${tensorFormat} of ${dataType}: expected RGB or BGR of float32`);
  }
  const source = typeof image === "string" ? await (await fetch(image)).blob() : image;
  const bitmap = source instanceof Blob ? await createImageBitmap(source, { imageOrientation: "from-image", colorSpaceConversion: "none" }) : source;
  const natural = /** @type {Record<string, number>} */ (/** @type {unknown} */ (bitmap));
  const width = resizedWidth ?? (natural.naturalWidth || natural.videoWidth || natural.displayWidth || natural.width);
  const height = resizedHeight ?? (natural.naturalHeight || natural.videoHeight || natural.displayHeight || natural.height);
  const listed = (/** @type {number | number[] | undefined} */ value, /** @type {number} */ otherwise) => (Array.isArray(value) ? value.slice(0, 3) : [value ?? otherwise]);
  const isLast = tensorLayout === "NHWC";
  const [mean, bias] = [listed(norm.mean, 255), listed(norm.bias, 0)];
  const isBgr = tensorFormat === "BGR"; // the numbers of `norm` are those of the tensor's channels
  const inOrder = (/** @type {number[]} */ list) => (isBgr ? list.toReversed() : list);
  const spec = {
    size: /** @type {[number, number]} */ ([height, width]),
    channels: /** @type {3} */ (3),
    crop: 1,
    mean: inOrder(bias).map((x) => -x),
    std: inOrder(mean),
    layout: /** @type {"nchw" | "nhwc"} */ (isLast ? "nhwc" : "nchw"),
  };
  const pixels = await pictureToTensor(bitmap, spec);
  const plane = width * height;
  const data = isBgr ? pixels.map((_, k) => pixels[isLast ? k - (k % 3) + 2 - (k % 3) : k + 2 * plane * (1 - Math.floor(k / plane))]) : pixels;
  return { data, dims: isLast ? [1, height, width, 3] : [1, 3, height, width] };
}
