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

/** A picture's own pixels, RGBA, upright and on white. room: where those of earlier ones were, whose place they take. */
export function pixelsOf(source: PictureSource, room?: PixelRoom): Promise<{
  data: Uint8Array<ArrayBuffer>;
  width: number;
  height: number;
}>;

/** Memory for the pixels of one picture after the other, since fresh memory takes longer to get than to fill. */
export class PixelRoom {
  #private;
  /** Room for so many bytes; what was there is gone. */
  place(count: number): Promise<Uint8Array<ArrayBuffer>>;
  /** Whether all pixels are opaque; first their first and third bytes are exchanged, if asked. */
  areOpaque(exchange: boolean): boolean;
}

/** A file, or something that a canvas draws. */
export type PictureSource = Blob | ImageData | Exclude<CanvasImageSource, SVGImageElement>;
