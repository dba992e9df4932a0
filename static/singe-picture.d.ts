/** Pictures become tensors, as core/singe/tasks/picture/spec.py makes them: upright, cropped, resized, normalised, laid out. */

import type { ImageFacts } from "./singe.js";

/** Pixels of a picture at most. */
export const MOST_PIXELS: number;

/**
 * The elements of one picture's tensor, with a batch of one, for a spec: `model.image`, or the `image` of a manifest.
 *
 * A Blob is turned upright by its EXIF orientation. What is no picture, a damaged one, and one of more than MOST_PIXELS
 * is a SingeError of the code "input".
 */
export function pictureToTensor(source: PictureSource, spec: Omit<ImageFacts, "input">): Promise<Float32Array>;

/** A picture's own pixels, RGBA, upright and on white. memory: that of earlier ones, which may be used for them. */
export function pixelsOf(source: PictureSource, memory?: ArrayBuffer): Promise<{
  data: Uint8Array<ArrayBuffer>;
  width: number;
  height: number;
}>;

/** A file, or something that a canvas draws. */
export type PictureSource = Blob | ImageData | Exclude<CanvasImageSource, SVGImageElement>;
