/** What a page makes of outputs: classes, boxes, vectors that are compared. Loaded only by who imports it; on the CPU. */

import type { Output } from "./singe.js";

/** The likeliest classes of one row of scores, sorted. Scores that are not 1 together go through a softmax. */
export function classes(output: Output, options?: {
  labels?: Labels;
  top?: number;
}): Found[];

/** The whole picture, centred in `size` with its proportions kept; the rest is filled. */
export function letterbox(source: CanvasImageSource, size: readonly [height: number, width: number], options?: {
  fill?: string;
}): {
  picture: OffscreenCanvas;
  placed: Placed;
};

/**
 * The boxes of a detector that gives (1, 4 + classes, boxes), as YOLO v8 to v11: centre, width and height in pixels of the
 * input, then a score for each class. Boxes under `score` are left out, the others go through `suppressed`.
 */
export function boxes(output: Output, options?: {
  placed?: Placed;
  labels?: Labels;
  score?: number;
  overlap?: number;
  most?: number;
}): FoundBox[];

/** Of boxes of one class that overlap by more than `overlap` (common area over area together), the likeliest: NMS. */
export function suppressed<T extends FoundBox>(found: readonly T[], options?: {
  overlap?: number;
  most?: number;
}): T[];

/** Draw boxes with their labels; `size` is the height of the text in pixels. */
export function drawBoxes(context: CanvasRenderingContext2D | OffscreenCanvasRenderingContext2D, found: readonly FoundBox[], options?: {
  size?: number;
}): void;

/** The mean of an output's rows of vectors (those that `mask` counts), of length 1. */
export function vector(output: Output, mask?: ArrayLike<number | bigint>): Float32Array;

/** The cosine of two vectors of length 1. */
export function similarity(a: Float32Array, b: Float32Array): number;

/** The most similar of many vectors. */
export function nearest(one: Float32Array, others: readonly Float32Array[], options?: {
  top?: number;
}): {
  index: number;
  similarity: number;
}[];

/** The names of classes: the contents of the file that `model.labels` names. */
export type Labels = readonly string[] | Readonly<Record<number, string>>;

export interface Found {
  /** The class, and its name: `labels[index]`, or "class" and the number. */
  index: number;
  label: string;
  probability: number;
}

export interface FoundBox extends Found {
  /** In pixels of the source, within it. */
  box: [left: number, top: number, right: number, bottom: number];
}

/** How `letterbox` placed a picture: its scale, its first column and row, and its own size. */
export interface Placed {
  scale: number;
  left: number;
  top: number;
  width: number;
  height: number;
}
