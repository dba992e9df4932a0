/** Singe's runner: a bundle that `singe export` wrote, run in a page, a worker or node. */

export const VERSION: string;

export type DType = "bool" | "uint8" | "int32" | "int64" | "float16" | "float32";

/** bool and uint8: Uint8Array; int64: BigInt64Array; float16: Uint16Array (its bits), or Float16Array as an input. */
export type TypedArray = Uint8Array | Int32Array | BigInt64Array | Uint16Array | Float32Array;

/**
 * - `input`: what a caller gave is not what the model takes; the message says what it takes
 * - `network`: a file cannot be had
 * - `format`: the bundle is damaged, or not one
 * - `device`: this engine or device cannot do it
 * - `lost`: the GPU device went away, and again when it was opened anew; or the worker ended
 * - `aborted`: the caller's signal said so
 * - `disposed`: the model was disposed of
 */
export type Code = "input" | "network" | "format" | "device" | "lost" | "aborted" | "disposed";

export class SingeError extends Error {
  readonly code: Code;
}

export interface Progress {
  /** Bytes of kernels and weights that have arrived, and that will have. */
  loaded: number;
  total: number;
  phase: "download" | "compile" | "ready";
}

export interface LoadOptions {
  /**
   * "auto", the default, answers on WebAssembly first. When the page has nothing else to do it measures WebGPU, keeps the
   * faster of the two, and remembers it for the bundle and the adapter: the next load opens that one straight away.
   */
  device?: "wasm" | "webgpu" | "auto";
  /**
   * On WebAssembly, where memory can be shared: in isolated pages and their workers, and in node. 0, the default, is as many
   * as pay off: once runs in turn took more than 2 ms each and 0.3 s together, those that follow take turns with one and
   * with more, and the fastest stays. Else that many, at most two for each core; runs of less than about 1 ms are the
   * caller's all the same. Results are the same bit for bit.
   */
  threads?: number;
  /** Have the model in a worker of its own. Where none can start it is in the page: `model.worker` says so. */
  worker?: boolean;
  /** Whether files may be kept in Cache Storage, by their hash: true, if nothing is said. */
  cache?: boolean;
  onProgress?: (progress: Progress) => void;
  /** Called when "auto" went over to another device. */
  onDevice?: (device: "wasm" | "webgpu") => void;
  /** Ends the loading. */
  signal?: AbortSignal;
  /** A device of the caller's, not for workers: for inputs and outputs on the GPU; it stays the caller's, and is not opened anew if lost. */
  gpuDevice?: GPUDevice;
}

/** Load the bundle in the folder `url`, relative to the page (in node: to the working directory). */
export function load(url: string | URL, options?: LoadOptions): Promise<Model>;

/** A tensor's description: a dimension that each run decides is a name; "?" is one computed from such. */
export interface Port {
  name: string;
  dtype: DType;
  shape: (number | string)[];
}

/**
 * A GPUBuffer holds elements as the device stores them (static/README.md) and has COPY_SRC among its usages; kernels read it
 * where it is if it has STORAGE too.
 */
export type Data = TypedArray | GPUBuffer | { BYTES_PER_ELEMENT: 2; buffer: ArrayBufferLike };
export type Input = Data | { data: Data; shape?: readonly number[] };

export interface Output<D = TypedArray> {
  data: D;
  shape: number[];
  dtype: DType;
}

/** How a picture becomes the input `input`: static/README.md, "The bundle". */
export interface ImageFacts {
  input: string;
  size: [height: number, width: number];
  channels: 1 | 3;
  crop: number;
  mean: number[];
  std: number[];
  layout: "nchw" | "nhwc";
}

/** All steps of a run that do the same: seconds, operations and bytes are those of its calls together. */
export interface Kernel {
  /** The ops that it carries out, of what kind it is ("elementwise", "reduce", "matmul", "conv", "copy"), what it gives. */
  label: string;
  kind: string;
  output: number[];
  calls: number;
  seconds: number;
  /** Floating-point operations, and bytes that no cache can save; null where the bundle does not say. */
  flops: number | null;
  bytes: number | null;
}

/** A run in seconds, as `singe bench --profile --json` tells them. */
export interface Profile {
  device: "wasm" | "webgpu";
  /** What told the time of the kernels. */
  clock: string;
  runs: number;
  /** A whole run by itself; and what kernels and rest add up to, which is more where kernels that are timed apart take longer. */
  run: number;
  seconds: number;
  /** By time, the dearest first. */
  kernels: Kernel[];
  /** Inputs to the device; waiting for it, and outputs from it. */
  rest: { upload: number; readback: number };
  /** The same, step by step, in Chrome's format: for chrome://tracing and ui.perfetto.dev. */
  trace: { traceEvents: object[]; displayTimeUnit: "ms"; otherData: Record<string, string> };
}

export interface Model {
  readonly name: string;
  readonly device: "wasm" | "webgpu";
  readonly inputs: Port[];
  readonly outputs: Port[];
  /** How a picture becomes the input, and the file of the labels, if the bundle says. */
  readonly image: ImageFacts | null;
  readonly labels: string | null;
  /** Threads that a run takes now: 1 on WebGPU, without shared memory, and until "as many as pay off" is decided. */
  readonly threads: number;
  /** Whether it is in a worker: GPU buffers cannot be handed to it then, and inputs are copied when a run is asked for. */
  readonly worker: boolean;
  /** Bytes held; of a worker, after the last thing that it did. */
  readonly memory: { gpu: number; wasm: number; js: number };
  readonly gpuDevice: GPUDevice | undefined;

  /**
   * Run it. Overlapping runs follow each other in order; an input's array must stay as it is until its run is done.
   * Outputs are copies that the caller owns; with { outputs: "gpu" } they are GPU buffers, the caller's to destroy,
   * which live as long as the model's device. With { outputs: { name: buffer } } those named are written into buffers
   * of the caller's, which have STORAGE among their usages and are no input of the run: many runs can share them. With
   * { outputs: { name: array } } those named are written into typed arrays of the caller's, on any device: for runs that
   * follow each other quickly, since a large new array costs memory that the system has to find.
   */
  run(
    inputs: Record<string, Input>,
    options?: { outputs?: "data" | Record<string, TypedArray> },
  ): Promise<Record<string, Output>>;
  run(
    inputs: Record<string, Input>,
    options: { outputs: "gpu" | Record<string, GPUBuffer> },
  ): Promise<Record<string, Output<GPUBuffer>>>;

  /**
   * Measure where the time of a run goes, for about so many seconds (1, if nothing is said) in which no other run gets its
   * turn, and whose answers nobody sees. For 0 seconds nothing is run, and what is told is the work alone.
   */
  profile(inputs: Record<string, Input>, options?: { seconds?: number }): Promise<Profile>;

  /** Free every byte, after the runs that were asked for. */
  dispose(): Promise<void>;
}
