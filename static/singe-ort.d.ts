/** onnxruntime-web's interface over bundles: code that was written for it runs on Singe. */

import type { DType, Model, TypedArray } from "./singe.js";

/**
 * onnxruntime's settings. Singe reads `wasm.numThreads`, `wasm.proxy` (a model in a worker) and `webgpu.device`, and sets the
 * last one; it has no files of its own to find, so `wasm.wasmPaths` and the like are ignored.
 */
export const env: {
  logLevel: string;
  debug: boolean;
  trace: boolean;
  wasm: Record<string, any>;
  webgl: Record<string, any>;
  webgpu: Record<string, any>;
  versions: Record<string, string>;
};

/** A tensor, on the CPU or in a GPU buffer. */
export class Tensor {
  #private;
  type: OrtType;
  dims: readonly number[];
  size: number;
  location: "cpu" | "cpu-pinned" | "gpu-buffer" | "none";
  /** From (type, data, dims), from (data, dims), or from an object that says where the data is. */
  constructor(first: OrtType | OrtData | readonly boolean[] | OrtTensorOptions, second?: OrtData | readonly (number | bigint | boolean)[], third?: readonly number[]);
  /** @returns {OrtData} */
  get data(): OrtData;
  get gpuBuffer(): GPUBuffer;
  /** The data, which comes to the CPU if it is not there; release: free the buffer that it was in. */
  getData(release?: boolean): Promise<OrtData>;
  dispose(): void;
  /** The same data with other dims. */
  reshape(dims: readonly number[]): Tensor;
  /** The picture of a tensor of 3 or 4 channels; a pixel is (value − bias) · mean, with a mean of 255 unless `norm` says otherwise. */
  toImageData(options?: {
    format?: string;
    tensorLayout?: "NCHW" | "NHWC";
    norm?: {
      mean?: number | number[];
      bias?: number | number[];
    };
  }): ImageData;
  /** The same picture as the address of a PNG; in pages alone, since workers have no such canvas. */
  toDataURL(options?: Parameters<Tensor["toImageData"]>[0]): string;
  /** A picture as a tensor of the shape (1, 3, height, width): (pixel + bias) / mean, with a mean of 255 unless `norm` says otherwise. */
  static fromImage(image: string | Blob | ImageData | Exclude<CanvasImageSource, SVGImageElement>, options?: OrtPictureOptions): Promise<Tensor>;
  /** A tensor in the caller's buffer, of elements of four bytes or more, or of float16. */
  static fromGpuBuffer(gpuBuffer: GPUBuffer, { dataType, ...options }: {
    dataType?: OrtType;
    dims: readonly number[];
    download?(): Promise<OrtData>;
    dispose?(): void;
  }): Tensor;
  /** A tensor in the caller's array. */
  static fromPinnedBuffer(type: OrtType, data: OrtData, dims?: readonly number[]): Tensor;
  static fromTexture(): Tensor;
  static fromMLTensor(): Tensor;
}

/** A model that is ready to run. */
export class InferenceSession {
  #private;
  /** Use `create`. */
  constructor(model: Pick<Model, "inputs" | "outputs" | "device" | "run" | "profile" | "dispose">, options: OrtSessionOptions);
  /** A session of a stub or a bundle: its address, or a stub's bytes. */
  static create(source: string | URL | ArrayBufferLike | Uint8Array, first?: OrtSessionOptions | number, length?: number | OrtSessionOptions, last?: OrtSessionOptions): Promise<InferenceSession>;
  get inputNames(): string[];
  get outputNames(): string[];
  get inputMetadata(): OrtMetadata[];
  get outputMetadata(): OrtMetadata[];
  /** Run the model. `fetches` are names of outputs, or tensors by their names that take the results. */
  run(feeds: Record<string, Tensor>, fetches?: readonly string[] | Record<string, Tensor | null> | OrtRunOptions, _options?: OrtRunOptions): Promise<Record<string, Tensor>>;
  /** Free the model's memory. */
  release(): Promise<void>;
  startProfiling(): void;
  /** Print where the time of a run goes, on the inputs of the last one. */
  endProfiling(): void;
}

/** All of it, for code that imports it so. */
declare const ort: {
  InferenceSession: typeof InferenceSession;
  Tensor: typeof Tensor;
  env: {
    logLevel: string;
    debug: boolean;
    trace: boolean;
    wasm: Record<string, any>;
    webgl: Record<string, any>;
    webgpu: Record<string, any>;
    versions: Record<string, string>;
  };
};

export default ort;

/** The dtypes of onnxruntime's tensors. A tensor of strings can be made, but no bundle takes one. */
export type OrtType = DType | "string";
export type OrtData = TypedArray | string[];

export interface OrtTensorOptions {
  location: string;
  type: OrtType;
  dims?: readonly number[];
  data?: OrtData;
  gpuBuffer?: GPUBuffer;
  /** Copies a GPU buffer's elements to the CPU. */
  download?(): Promise<OrtData>;
  /** Frees a GPU buffer. */
  dispose?(): void;
}

/** How a picture becomes a tensor; the numbers of `norm` are those of the tensor's channels. */
export interface OrtPictureOptions {
  resizedWidth?: number;
  resizedHeight?: number;
  tensorFormat?: "RGB" | "BGR";
  tensorLayout?: "NCHW" | "NHWC";
  norm?: { mean?: number | number[]; bias?: number | number[] };
}

/** Other options of onnxruntime-web are taken and ignored. */
export interface OrtSessionOptions {
  /** "webgpu", "wasm", or objects with such names, the first that there is; without any, Singe chooses. */
  executionProviders?: readonly (string | { name: string })[];
  /** "gpu-buffer" leaves outputs on the GPU, where the device is "webgpu". */
  preferredOutputLocation?: string | Record<string, string>;
  [option: string]: unknown;
}

/** Taken and ignored. */
export type OrtRunOptions = Record<string, unknown>;

export interface OrtMetadata {
  name: string;
  isTensor: true;
  type: OrtType;
  shape: (number | string)[];
}
