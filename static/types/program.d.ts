/**
 * The shapes of a bundle's manifest and of its programs, format `singe/3` (static/README.md), after the checks of
 * singe-checks.js; and what a device gives to a model. They are types alone: nothing of this file is in a page.
 */

import type { DType, ImageFacts, Output, PictureSource, Progress, TaskInfo, TypedArray } from "./public.d.ts";

// --- the manifest

export interface Manifest {
  format: "singe/3";
  singe: string;
  runner: { least: string; below: string };
  name: string;
  inputs: Tensor[];
  outputs: Tensor[];
  image: ImageFacts | null;
  labels: string | null;
  /** Of a language model. */
  language?: LanguageFacts;
  /** Of a task. */
  task?: TaskInfo;
  /** Whether lists of the targets' programs are folded. */
  folded?: boolean;
  /** None is for a remote device, which runs one of these. */
  targets: { [device in DeviceName]?: Target } & { remote?: undefined };
}

/** What a page needs beside a decoder: docs/guides/language.md. */
export interface LanguageFacts {
  /** Of the model, as saved sessions name it. */
  fingerprint: string;
  /** The values of a tokenizer.json. */
  tokenizer: FileEntry;
  /** The chat template, in Jinja's language. */
  template: string | null;
  /** The texts that begin and end a text, as the template writes them. */
  marks: [string, string];
  /** The tokens that end an answer. */
  ends: number[];
  /** For how many tokens there is room, and how many a run takes at once. */
  context: number;
  chunk: number;
  /** Whether tokens can be forgotten: all that a state holds is by position. */
  rewinds: boolean;
  /** How a file of the adapter is written, of a model that has one as states: what comes before the numbers, and the states with what is exchanged of their rows. */
  adapter?: FileEntry & { states: [string, [number, number, number] | null][] };
}

export type DeviceName = "wasm" | "webgpu";

export interface Target {
  program: Program;
  /** By name for `wasm`; one file for `wgsl`. */
  modules: Record<string, FileEntry> & FileEntry;
  weights: WeightsEntry[];
}

export interface FileEntry {
  file: string;
  bytes: number;
  sha256: string;
}

/** Where the files of a bundle come from. */
export interface ReadsJson {
  json(entry: FileEntry): Promise<Unchecked>;
}

/** A piece of the weights; with `parts` it decodes to `decoded` bytes. hashes: of its stretches. */
export interface WeightsEntry extends FileEntry {
  hashes?: string[];
  parts?: WeightsPart[];
  decoded?: number;
}

export type Encoding = "words" | "float16" | "int8" | "integers" | "bytes";

export interface WeightsPart {
  encoding: Encoding;
  at: number;
  shape: number[];
  scales?: number[];
  zero?: number;
  /** For each axis the digits of the index, [count, step]. */
  order?: [count: number, step: number][][];
  sums?: number;
}

/** What a file says, before it was checked. */
// biome-ignore lint/suspicious/noExplicitAny: it may be anything, as the types of JSON.parse say
export type Unchecked = any;

/** How a value must be: a function of IS in singe-format.js, a list of such rows, or an object of them. */
export type Row = ((value: Unchecked) => boolean) | Row[] | { [field: string]: Row };

// --- programs

export interface Program {
  format: "singe/3";
  target: "wgsl" | "wasm";
  inputs: number[];
  outputs: number[];
  slots: number;
  buffers: ProgramBuffer[];
  kernels: ProgramKernel[];
  /** What a run does: see singe-words.js. */
  words: number[];
  /** The most turns of loops. */
  counts: Dim[];
  stops: Stop[];
  states: ProgramState[];
  checks: SizeCheck[];
  bounds: Sizes;
  ranges?: IndexRange[];
  specialised: Specialised[];
}

export interface Specialised extends Pick<Program, "slots" | "buffers" | "words" | "counts" | "stops" | "checks"> {
  sizes: Sizes;
}

/** A program for the sizes that it is `for`. */
export interface ProgramPart extends Program {
  for: Sizes;
}

/** The values of sizes, by name. */
export type Sizes = Record<string, number>;

export type Dim = number | Term[];
export type Term = [factor: number, ...atoms: Atom[]];
export type Atom = string | [word: "div" | "mod" | "max" | "min", a: Dim, b: Dim];

export interface Tensor {
  name: string;
  dtype: DType;
  shape: Dim[];
}

/** A tensor that words or stops name; size: bytes of an element. */
export interface ProgramBuffer extends Tensor {
  size: number;
  place: Place;
}

export type Place = [kind: PlaceKind, at: number];
export type PlaceKind = "weights" | AreaKind | "state";
export type AreaKind = "slot" | "input" | "output";
/** What every slot, input and output has: its bytes, if nothing else is said. */
export type Areas<T = number> = Record<AreaKind, T[]>;

/** An output at some sizes: `index` among the program's buffers. */
export interface SizedOutput extends ProgramBuffer {
  index: number;
  shape: number[];
  count: number;
  bytes: number;
}

export interface ProgramKernel {
  label: string;
  kind: string;
  ports: number;
  sizes: Dim[];
  variants: Variant[];
  flops: Dim;
  bytes: Dim;
  workspace: boolean;
}

export interface Variant {
  entry: string;
  requires: string[];
  groups: [x: Dim, y: Dim, z: Dim];
}

export interface ProgramState {
  name: string;
  buffer: number;
  initial: number | null;
  draws?: number;
}

export interface SizeCheck {
  dim: Dim;
  text: string;
}

export interface IndexRange {
  input: number;
  part: { start: Dim; step: number; count: Dim }[] | null;
  least: Dim;
  most: Dim;
  ignored: number | null;
  text: string;
}

/** What a runner carries out itself in mid-run. */
export type Stop = HostStop | BindStop | CheckStop;

export interface HostStop {
  do: "host";
  op: string;
  attrs: Record<string, Attribute>;
  inputs: number[];
  outputs: number[];
}

export interface BindStop {
  do: "bind";
  size: string;
  buffer: number | null;
  dim: Dim | null;
}

export interface CheckStop {
  do: "check";
  dim: Dim;
  text: string;
}

/** An attribute of a host stop, as JSON has it. */
export type Attribute =
  | number
  | string
  | boolean
  | null
  | Attribute[]
  | { size: Dim; dtype?: undefined; float?: undefined }
  | { dtype: string; size?: undefined; float?: undefined }
  | { float: string; size?: undefined; dtype?: undefined };

// --- arrays

/** What the arrays of all dtypes have in common, for elements of one type. */
export interface ElementArray<T> {
  [index: number]: T;
  readonly length: number;
  forEach(each: (value: T, index: number) => void): void;
  find(test: (value: T, index: number) => boolean): T | undefined;
  some(test: (value: T, index: number) => boolean): boolean;
  set(from: ArrayLike<T>, at?: number): void;
  subarray(from?: number, to?: number): ElementArray<T>;
  slice(from?: number, to?: number): ElementArray<T>;
}

export type AnyElements = ElementArray<number | bigint>;

/** The class of a dtype's arrays. */
export interface ArrayClass {
  readonly name: string;
  readonly BYTES_PER_ELEMENT: number;
  new (length: number): TypedArray;
  new (elements: ArrayLike<number> | ArrayLike<bigint>): TypedArray;
  new (buffer: ArrayBufferLike, byteOffset?: number, length?: number): TypedArray;
}

/** An array on the host, with its shape. */
export interface HostArray {
  data: TypedArray;
  shape: number[];
}

/** An input of an op on the host. */
export interface HostInput extends HostArray {
  dtype: DType;
}

/** What executes a plan's words: `walk` of singe-plan.js says what each does. */
export interface Machine {
  calls(start: number, end: number): unknown;
  read(index: number): HostArray | Promise<HostArray>;
  first(index: number): number | bigint | Promise<number | bigint>;
  bind(found: Sizes): unknown;
  write(index: number, data: TypedArray): unknown;
}

// --- devices

/** What `run` of a model is asked for. */
export type Wanted = "data" | "gpu" | Record<string, TypedArray | GPUBuffer>;
/** An input as a device takes it. */
export type GivenInput = TypedArray | GPUBuffer;
/** An output as a device gives it: the data is a GPUBuffer if that was wanted. */
export type Answer = Output<TypedArray | GPUBuffer>;

/** A device's handle of a session's states: an address, or for each a GPUBuffer or a server's number. */
export type Handle = number | GPUBuffer[] | number[];

/** What `open` of singe-wasm.js and singe-webgpu.js gives. */
export interface Device {
  readonly memory: { gpu: number; wasm: number; js: number };
  readonly threads?: number;
  /** Whether a GPU is computed by the CPU. */
  readonly software?: boolean;
  /** Whether runs are so long that threads may help. */
  readonly slow?: boolean;
  readonly gpuDevice?: GPUDevice;
  wake?(): void;
  run(inputs: GivenInput[], sizes: Sizes, wanted: Wanted, states?: Handle, submitted?: () => void): Promise<Answer[]>;
  dispose(): void;
  newStates(): Handle;
  resetStates(states: Handle): void | Promise<void>;
  copyStates(states: Handle): Handle | Promise<Handle>;
  readState(states: Handle, k: number): TypedArray | Promise<TypedArray>;
  writeState(states: Handle, k: number, data: TypedArray): void | Promise<void>;
  freeStates(states: Handle): void;
}

/** The module of a device. */
export interface DeviceModule {
  prepare?(): unknown;
  open(target: Target, files: import("../loading/singe-files.js").Files, gpuDevice?: GPUDevice, threads?: number): Promise<Device>;
}

/** An open device, with the program that it runs. */
export interface OpenDevice {
  readonly name: DeviceName;
  readonly program: Program;
  readonly device: Device;
  run(inputs: BoundInputs, outputs: Wanted, states?: Handle, submitted?: () => void): Promise<Record<string, Answer>>;
}

/** A run's inputs by name, where lists and pictures are typed arrays. */
export type BoundInputs = Record<string, GivenInput | { data: GivenInput; shape?: readonly number[]; dtype?: DType }>;

/** What a model of singe-model.js shares with its sessions, and with those that choose its device. */
export interface ModelState {
  /** Open a device; `threads` as `gather` of singe-threads.js takes them. */
  open(name: DeviceName, files?: import("../loading/singe-files.js").Files, threads?: number): Promise<OpenDevice>;
  /** `task` after all runs that were asked for before. */
  inTurn<T>(task: () => T | Promise<T>): Promise<T>;
  /** The open device; and the other, while singe-auto.js compares them. */
  now: OpenDevice;
  rival?: OpenDevice;
  /** Whether the choice of the device is ours, and whether it was made. */
  auto: unknown;
  decided?: boolean;
  /** The inputs of the last run, for a choice that is to come; and whether they ran on both devices. */
  seen?: BoundInputs;
  warm?: boolean;
  threads: number;
  store?: BundleStore;
  sessions?: import("../model/singe-session.js").Sessions;
  disposed?: boolean;
  gpuDevice?: GPUDevice;
  onDevice?(device: DeviceName): void;
  /** Reports the phases of the first run, until it is made. */
  tell?(phase: Progress["phase"]): void;
}

export type BundleStore = NonNullable<Awaited<ReturnType<typeof import("../loading/singe-cache.js").openStore>>>;

// --- WebAssembly

/** What a module gives: `run` makes the calls between two words, the rest are kernels. */
export type WasmFunctions = Record<string, (...given: number[]) => number>;

/** What the runs of a WasmDevice share; `base`: the end of the weights, and of the states of sessions. */
export interface WasmParts {
  program: Program;
  memory: WebAssembly.Memory;
  run: (from: number, to: number) => number;
  names: string[];
  base: number;
  team?: import("../wasm/singe-threads.js").ThreadTeam;
}

/** Calls and copies that follow each other, as threads share them. */
export interface SharedCalls {
  plan: import("../wasm/singe-wasm-plan.js").WasmPlan;
  /** The position of each among the plan's words. */
  heads: number[];
  /** The addresses of the words of each, and of their end. */
  marks: number[];
  /** How often the last run made them; this run so far. */
  turns: number;
  made: number;
  /** The time of each on one thread at the sizes so far, in about microseconds, 0 if it is not shared; and of all. */
  shared?: number[];
  took: number;
  /** `took` in the first run, and threads ↦ what they do, and how long runs took, as if they were as long as the first. */
  first?: number;
  tried: Map<number, { job?: ThreadJob; times: number[] }>;
}

/** What this thread does, shared calls by part, as was cut for calls that `took` so long. */
export interface ThreadJob {
  id: number;
  took: number;
  list: { call: (...given: number[]) => number; given?: number[]; kernel?: number; parts?: ThreadPart[] }[];
}

/**
 * A part of a call: its arguments, of which the first `count` are the words from `at` on, in the memory, which a run sets. The argument
 * `port` may be a workspace of its own: in that turn, from the address at `spaces` on, of the bytes in the word after it.
 */
export interface ThreadPart {
  given: number[];
  words: Int32Array;
  at: number;
  count: number;
  own?: { port: number; spaces: number; turn: number };
}

/** Makes the calls and copies between two words in place of the device: singe-profile.js measures so. */
export type WasmCaller = (plan: import("../wasm/singe-wasm-plan.js").WasmPlan, from: number, to: number) => void;

// --- WebGPU

/** A part of a GPUBuffer. */
export interface GpuPlace {
  buffer: GPUBuffer;
  offset: number;
  size?: number;
}

/** Where the weights are on a GPU. */
export interface WeightsStore {
  write(at: number, bytes: Uint8Array<ArrayBuffer>): void;
  binding(offset: number, size: number): GpuPlace;
}

/** A dispatch or a copy, ready to be encoded; `at`: the position of its group, if it has one. */
export type GpuCommand = GpuDispatch | GpuCopy;

/** The fields of both. */
export type GpuParts = GpuDispatch & Omit<GpuCopy, "pipeline">;

export interface GpuDispatch {
  at?: number;
  pipeline: GPUComputePipeline;
  bound: GPUBindGroup;
  groups: [x: number, y: number, z: number];
  layout: GPUBindGroupLayout;
  resources: GpuPlace[];
}

export interface GpuCopy {
  at?: number;
  pipeline?: undefined;
  source: GpuPlace;
  target: GpuPlace;
  bytes: number;
}

/** A kernel's text, and the pipeline once sizes needed it. */
export interface GpuKernel {
  text: string;
  kinds: GPUBufferBindingType[];
  groups: Dim[];
}

export interface GpuPipeline {
  pipeline: GPUComputePipeline;
  layout: GPUBindGroupLayout;
  hasSizes: boolean;
  groups: Dim[];
}

// --- pictures and outputs

export type PictureSpec = Omit<ImageFacts, "input">;
/** What a canvas draws. */
export type Drawn = Exclude<PictureSource, Blob>;
export type Context2D = OffscreenCanvasRenderingContext2D | CanvasRenderingContext2D;
/** What may say how large it is. */
export type Extent = Partial<Record<"width" | "height" | `${"video" | "natural" | "display"}${"Width" | "Height"}`, unknown>>;

/** The pixels that one pixel of a resized picture is made of, and their weights. */
export interface Tap {
  start: number;
  end: number;
  weights: Float64Array;
}

/** The elements of an output, as numbers. */
export type Numbers = ArrayLike<number> & Pick<Float64Array, "every" | "map" | "reduce" | "keys">;
