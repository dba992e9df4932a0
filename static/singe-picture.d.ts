/** Pictures become tensors, as `singe run` makes them. */

import type { ImageFacts } from "./singe.js";

/** Pixels of a picture at most. */
export const MOST_PIXELS: number;

/** A file, or something that a canvas draws. */
export type PictureSource = Blob | ImageData | Exclude<CanvasImageSource, SVGImageElement>;

/**
 * The elements of one picture's tensor, with a batch of one, for a spec: `model.image`, or the `image` of a manifest.
 *
 * A Blob is turned upright by its EXIF orientation. What is no picture, a damaged one, and one of more than MOST_PIXELS
 * is a SingeError of the code "input".
 */
export function pictureToTensor(source: PictureSource, spec: Omit<ImageFacts, "input">): Promise<Float32Array>;
