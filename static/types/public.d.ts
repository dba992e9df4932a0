/**
 * The types that users see. Each section goes into the declarations of its module, which tsc writes from the JavaScript:
 * `make types`.
 */

import type { SingeModelElement, SingeTaskElement } from "../singe-element.js";

// --- singe

export interface LoadOptions {
  /**
   * "auto", the default, starts on WebAssembly. When the page is idle it measures WebGPU, keeps the faster of the two,
   * and remembers the choice for this bundle and GPU: the next load opens that device at once. "remote": the device that the
   * server at `remote` lends, with the bundle's program for it.
   */
  device?: "wasm" | "webgpu" | "remote" | "auto";
  /** For the device "remote". */
  remote?: RemoteOptions;
  /**
   * Threads on WebAssembly. More than one needs shared memory: an isolated page or its workers, or node. 0, the default:
   * after consecutive runs of more than 2 ms each and 0.3 s together, one and more threads are compared, and the fastest
   * number is kept. Other numbers: that many, at most two per core; runs under about 1 ms still use one. Results are
   * bit-identical for any number.
   */
  threads?: number;
  /** Run the model in its own worker. If none can start, it runs in the page: see `model.worker`. */
  worker?: boolean;
  /** Whether to keep files in Cache Storage, by their hash. Default: true. */
  cache?: boolean;
  /** Called as loading goes on, and at the beginning and the end of the first run. */
  onProgress?: (progress: Progress) => void;
  /** Called when "auto" has switched to another device. */
  onDevice?: (device: "wasm" | "webgpu") => void;
  /** Aborts loading. */
  signal?: AbortSignal;
  /** The caller's GPU device, for inputs and outputs on the GPU; not with `worker`. It is not reopened if lost, nor destroyed. */
  gpuDevice?: GPUDevice;
}

export interface RemoteOptions {
  /** The address that `singe host` prints: ws://… or wss://…; a page of https: reaches other machines by wss: alone. */
  url: string;
  /** The token that it prints. */
  token?: string;
}

/** What has gone to and fro: bytes, and round trips. */
export interface RemoteTraffic {
  url: string;
  /** The server's device. */
  device: string;
  sent: number;
  received: number;
  trips: number;
}

export interface Progress {
  /** Bytes of kernels and weights: arrived so far, and in total. */
  loaded: number;
  total: number;
  /**
   * Kernels: compiled so far, and how many there are to compile, 0 until that is known. On WebGPU they are compiled one by
   * one, while weights arrive, and those that only other sizes need by the first run that needs them; on WebAssembly all at
   * once.
   */
  compiled: number;
  kernels: number;
  /**
   * "download" until all bytes have arrived, "compile" until all kernels are compiled, then "ready". The first run is told,
   * too: "run" when it begins, and "ready" when it is done.
   */
  phase: "download" | "compile" | "run" | "ready";
}

/** `model.d.ts` of a bundle has the inputs and outputs of its model: `load<BundleModel>("./digits/")`. */
export interface Model<Inputs extends Record<string, Input> = Record<string, Input>, Outputs extends Record<string, Output> = Record<string, Output>>
  extends Runs<Inputs, Outputs> {
  readonly name: string;
  readonly device: "wasm" | "webgpu" | "remote";
  /** On the device "remote". */
  readonly remote?: RemoteTraffic;
  readonly inputs: Port[];
  readonly outputs: Port[];
  /** How a picture becomes the input, and the file of the labels, if the bundle has them. */
  readonly image: ImageFacts | null;
  readonly labels: string | null;
  /** The facts of a task, if the bundle is one: `task` of singe/tasks calls it. */
  readonly task?: TaskInfo;
  /** Threads in use: 1 on WebGPU, without shared memory, and with `threads: 0` until the choice is made. */
  readonly threads: number;
  /** Whether the CPU computes what a GPU should: right, but slow. */
  readonly software: boolean;
  /** Whether it runs in a worker: then GPU buffers cannot be passed, and inputs are copied when `run` is called. */
  readonly worker: boolean;
  /** Bytes held; in a worker, as of its last message. */
  readonly memory: { gpu: number; wasm: number; js: number };
  readonly gpuDevice: GPUDevice | undefined;

  /** What a session keeps from run to run; empty if the model has no states. */
  readonly states: State[];
  /** A step of training with a bundle that has states: the same as `run`, which changes them; else an error. */
  step: Runs<Inputs, Outputs>["run"];

  /**
   * Begin the random numbers of a seed, an integer of at most 64 bits, in the model's own session: equal seeds, equal numbers,
   * on every device and in Python. Without it they begin where nobody can foresee. An error if the model draws none.
   */
  seed(seed: number | bigint): Promise<void>;

  /**
   * A new session with the initial values of the states; an error if the model has none. Sessions share the weights, and
   * their runs take turns. The model's own `run` uses a session of its own.
   */
  session(): Session<Inputs, Outputs>;

  /**
   * Measure where the time of a run goes, for about `seconds` (default: 1), during which other runs wait. The outputs are
   * discarded. With 0 seconds nothing is run, and the profile has only operations and bytes.
   */
  profile(inputs: Inputs, options?: { seconds?: number }): Promise<Profile>;

  /** Free all memory, after pending runs. */
  dispose(): Promise<void>;
}

export interface Runs<Inputs extends Record<string, Input> = Record<string, Input>, Outputs extends Record<string, Output> = Record<string, Output>> {
  /**
   * Run the model. Overlapping runs are queued in order; do not change an input's array until its run is done. Outputs are
   * copies that the caller owns. { outputs: "gpu" } returns GPU buffers, which the caller destroys and which live as long
   * as the model's device; a donated input's buffer comes back as its output. { outputs: { name: buffer } } writes those
   * outputs into the caller's buffers, which need the usage STORAGE (with states COPY_DST too), may be reused by many runs,
   * and must not be inputs of the run. { outputs: { name: array } } writes into the caller's typed arrays, on any device:
   * faster for frequent runs, since large new arrays take time to allocate.
   * With an aborted `signal` the call fails at once with the code "aborted". A run that waits for its turn is then left
   * out; one that has begun goes on, and what it writes into the caller's arrays and states is undefined until the next
   * run is done. In a worker, runs that wait are made too.
   */
  run(inputs: Inputs, options?: { outputs?: "data" | Record<string, TypedArray>; signal?: AbortSignal }): Promise<Outputs>;
  run(inputs: Inputs, options: { outputs: "gpu" | Record<string, GPUBuffer>; signal?: AbortSignal }): Promise<{ [name in keyof Outputs]: Output<GPUBuffer> }>;
}

/**
 * One set of a model's states. Calls are queued in order. The states are in the device's memory: if the GPU device is
 * lost they are lost too, and every call then fails with the code "lost" until `reset()`; the model's own session fails
 * once and then starts again from the initial values. A model with states stays on the device that it was loaded on:
 * "auto" chooses only when it loads.
 */
export interface Session<Inputs extends Record<string, Input> = Record<string, Input>, Outputs extends Record<string, Output> = Record<string, Output>>
  extends Runs<Inputs, Outputs> {
  readonly states: State[];
  /** A step of training with a bundle that has one: the same as `run`. */
  step: Runs<Inputs, Outputs>["run"];
  /** Start again from the initial values. */
  reset(): Promise<void>;
  /** A copy of a state's elements. */
  read(name: string): Promise<TypedArray>;
  /** Begin the random numbers of a seed, as `model.seed` does; `reset` begins them again. */
  seed(seed: number | bigint): Promise<void>;
  write(name: string, data: TypedArray): Promise<void>;
  /** A new session with the states that this one has after the calls made so far. */
  copy(): Session<Inputs, Outputs>;
  /** Free its memory, after the calls made so far. */
  dispose(): Promise<void>;
}

/** A language model: `load<LanguageModel>("./chat/")`. It runs in a worker, unless `worker` is false. */
export interface LanguageModel {
  readonly name: string;
  readonly device: Model["device"];
  readonly threads: number;
  readonly worker: boolean;
  readonly memory: Model["memory"];
  readonly gpuDevice: GPUDevice | undefined;
  /** For how many tokens a conversation has room. */
  readonly context: number;
  readonly tokenizer: {
    /** The ids of a text, with the marks that begin and end one; without `parseSpecial` names of marks are text like any other. */
    encode(text: string, options?: { addSpecial?: boolean; parseSpecial?: boolean }): number[];
    decode(ids: Iterable<number>, options?: { skipSpecial?: boolean }): string;
  };
  /** Whether it has a chat template; without one, `generate` goes on with a text. */
  readonly chats: boolean;
  /** The answer to a conversation. Its beginning is not read again if the last one had it too. */
  chat: {
    (messages: readonly Message[], options?: ChatOptions): Answer;
    /** In the shape of OpenAI's interface; with `stream: true` an async iterable of chunks. */
    completions: {
      create(request: CompletionRequest & { stream: true }): Promise<AsyncIterable<CompletionChunk>>;
      create(request: CompletionRequest): Promise<Completion>;
    };
  };
  /** The text that goes on after a prompt, a text or ids of tokens. */
  generate(prompt: string | readonly number[], options?: GenerateOptions): Answer;
  /** The text that the model reads for a conversation, by its own template. */
  template(messages: readonly Message[], options?: { tools?: object[]; addGenerationPrompt?: boolean; extra?: Record<string, unknown> }): string;
  /** In the shape of Chrome's Prompt API. */
  readonly LanguageModel: PromptModel;
  /** A conversation of its own. Sessions share the weights. */
  session(): LanguageSession;
  /** As a session's, for `chat` and `generate` of the model. */
  adapt: LanguageSession["adapt"];
  /** A text as batches for a step that trains an adapter (`singe export --train lora`), each of so many tokens: the second size of the step's inputs. */
  examples(text: string, length: number): Promise<Record<"tokens" | "labels" | "mask", { data: Int32Array | Float32Array; shape: number[] }>[]>;
  /** A GGUF file of an adapter with these states: for llama.cpp, and for `sg.language.load_adapter`. */
  adapterFile(states: Readonly<Record<string, TypedArray>>): Promise<Blob>;
  /** Free all memory, after pending runs. */
  dispose(): Promise<void>;
}

/** What a model has read and written. Answers are written one after another. */
export interface LanguageSession {
  /** How many tokens of the context are in use. */
  readonly tokens: number;
  chat(messages: readonly Message[], options?: ChatOptions): Answer;
  generate(prompt: string | readonly number[], options?: GenerateOptions): Answer;
  /** Forget the tokens after the first `count`. */
  rewind(count: number): void;
  /** Another session that goes on from here. */
  copy(): LanguageSession;
  /** The conversation as a file, safetensors with its tokens, keys and values: for `load` here, and in Python for that of a session of the same model. */
  save(): Promise<Blob>;
  /** Go on from where a session of the same model was saved. A file of anything else is refused, and the conversation stays as it was. */
  load(file: Blob): Promise<void>;
  /**
   * Write with other numbers in the states of an adapter (`sg.language.with_states`) from the next answer on: those that the session of
   * a step that trains it gives by `read(name)`, for the names that begin with "model.".
   */
  adapt(states: Readonly<Record<string, TypedArray>>): Promise<void>;
  dispose(): Promise<void>;
}

export interface Message {
  role: string;
  content: string | null;
  [field: string]: unknown;
}

/** Chrome's Prompt API, for texts: errors are DOMExceptions with its names. */
export interface PromptModel {
  availability(options?: PromptSessionOptions): Promise<"available" | "unavailable">;
  create(options?: PromptSessionOptions): Promise<PromptSession>;
}

export interface PromptSessionOptions {
  /** What every conversation begins with, and is never forgotten. */
  initialPrompts?: readonly PromptMessage[];
  temperature?: number;
  topK?: number;
  /** Aborting it destroys the session. */
  signal?: AbortSignal;
  /** Is given a target of "downloadprogress"; the model is there already. */
  monitor?: (monitor: EventTarget) => void;
  expectedInputs?: readonly { type: string; languages?: readonly string[] }[];
  expectedOutputs?: readonly { type: string; languages?: readonly string[] }[];
}

export type PromptContent = string | readonly { type: string; value: unknown }[];
export type PromptMessage = { role: "system" | "user" | "assistant"; content: PromptContent; prefix?: boolean };
export type PromptInput = string | readonly PromptMessage[];

export interface PromptOptions {
  signal?: AbortSignal;
  /** A JSON schema that the answer meets, or a regular expression that the whole of it matches: see GenerateOptions. The model is not told of it. */
  responseConstraint?: object;
  /** Nothing is added to a prompt in either case. */
  omitResponseConstraintInput?: boolean;
}

/** A conversation, which keeps what was said. Prompts are answered one after another. */
export interface PromptSession extends EventTarget {
  readonly temperature: number;
  readonly topK: number;
  /** For how many tokens there is room, and how many are in use. */
  readonly contextWindow: number;
  readonly contextUsage: number;
  /** The oldest turns were forgotten to make room; the event "contextoverflow". */
  oncontextoverflow: ((event: Event) => void) | null;
  /** How many tokens a prompt would add. */
  measureContextUsage(input: PromptInput, options?: PromptOptions): Promise<number>;
  prompt(input: PromptInput, options?: PromptOptions): Promise<string>;
  promptStreaming(input: PromptInput, options?: PromptOptions): ReadableStream<string>;
  /** Add messages that are not answered. */
  append(input: PromptInput, options?: PromptOptions): Promise<void>;
  clone(options?: { signal?: AbortSignal }): Promise<PromptSession>;
  /** End it, with the answers that are being written, and free its memory. */
  destroy(): void;
}

export interface SamplingOptions {
  /** 0 takes the likeliest token. Where you do not say: 0.8, topK 40, topP 0.95, minP 0.05. */
  temperature?: number;
  topK?: number;
  topP?: number;
  minP?: number;
  repeatPenalty?: number;
  presencePenalty?: number;
  frequencyPenalty?: number;
  /** Equal seeds give equal texts on the same device. */
  seed?: number;
}

export interface GenerateOptions extends SamplingOptions {
  /** At most so many tokens. Without it the answer ends when the model ends it, or the context is full. */
  maxTokens?: number;
  /** Texts before which the answer ends. */
  stop?: string | readonly string[];
  signal?: AbortSignal;
  /** A JSON schema that the text meets, unless it is cut off; true for any object. Keywords that are not known are refused by name. */
  schema?: object | true;
  /** A regular expression that the whole text matches, unless it is cut off. */
  regex?: string | RegExp;
  /** When the context is full, go on after the beginning (of a chat, what comes before the first message) and the later half of the rest. */
  shift?: boolean;
  /** Guess so many tokens at once, at most 15, by what followed the latest ones before: the same text, sooner where it repeats itself. */
  drafts?: number;
  /** Of how many likeliest tokens at each place `answer.logprobs` tells the chances. */
  logprobs?: number;
}

export interface ChatOptions extends GenerateOptions {
  /** Functions that the model may call, as OpenAI describes them; only for models whose template knows tools. */
  tools?: object[];
  /** Other names that the model's template knows: { enable_thinking: false }. */
  chatTemplateKwargs?: Record<string, unknown>;
}

/** In OpenAI's shape; `arguments` is JSON. */
export interface ToolCall {
  id: string;
  type: "function";
  function: { name: string; arguments: string };
}

/** A token that was chosen, the logarithm of its probability by the model, and the likeliest tokens there with theirs. */
export interface TokenChance {
  token: number;
  text: string;
  logprob: number;
  likeliest: [token: number, logprob: number][];
}

/** The parts of a text, as it is written: `for await (const part of answer)`, once. Leaving the loop ends the answer. */
export interface Answer extends AsyncIterable<string> {
  text(): Promise<string>;
  /** "stop" if the model or a stop string ended it, "tool_calls" if it ended with calls, "length" if it was cut off; null until it ends. */
  readonly finishReason: "stop" | "tool_calls" | "length" | null;
  /** Of `tools`, when it has ended; they are no part of the text. */
  readonly toolCalls: readonly ToolCall[];
  readonly usage: { promptTokens: number; reusedTokens: number; completionTokens: number; totalTokens: number };
  /** Milliseconds until the first token, and of the others. */
  readonly timings: { prompt: number; completion: number };
  readonly tokensPerSecond: number;
  /** Of the tokens so far, if `logprobs` asked for them. */
  readonly logprobs: readonly TokenChance[];
}

/**
 * OpenAI's fields that there are: max_tokens, temperature, top_p, presence_penalty, frequency_penalty, seed, stop, tools, tool_choice (auto
 * or none), response_format, logprobs, top_logprobs; and top_k, min_p, regex, shift, drafts, chat_template_kwargs, signal.
 */
export interface CompletionRequest {
  messages: readonly Message[];
  stream?: boolean;
  stream_options?: { include_usage?: boolean };
  n?: 1;
  [field: string]: unknown;
}

export interface CompletionFacts {
  id: string;
  created: number;
  model: string;
}

interface SpelledChance {
  token: string;
  logprob: number;
  bytes: number[];
}

/** A chunk has those of the tokens since the one before. */
export interface CompletionChances {
  content: (SpelledChance & { top_logprobs: SpelledChance[] })[];
}

export interface CompletionUsage {
  prompt_tokens: number;
  completion_tokens: number;
  total_tokens: number;
  prompt_tokens_details: { cached_tokens: number };
}

export interface Completion extends CompletionFacts {
  object: "chat.completion";
  choices: {
    index: 0;
    message: { role: "assistant"; content: string | null; tool_calls?: readonly ToolCall[] };
    logprobs: CompletionChances | null;
    finish_reason: Answer["finishReason"];
  }[];
  usage: CompletionUsage;
}

export interface CompletionChunk extends CompletionFacts {
  object: "chat.completion.chunk";
  choices: {
    index: 0;
    delta: { role?: "assistant"; content?: string; tool_calls?: readonly (ToolCall & { index: number })[] };
    logprobs: CompletionChances | null;
    finish_reason: Answer["finishReason"];
  }[];
  usage?: CompletionUsage;
}

/** A tensor's description. An open dimension is a name; "?" is a dimension computed from open ones. */
export interface Port {
  name: string;
  dtype: DType;
  shape: (number | string)[];
}

/** An output of a model is an input, too. */
export type Input = Data | List | Picture | { data: Data | List; shape?: readonly number[]; dtype?: DType };

/**
 * A GPUBuffer holds elements as the device stores them (static/README.md) and needs the usage COPY_SRC; with STORAGE too,
 * kernels read it without a copy.
 */
export type Data = TypedArray | GPUBuffer | { BYTES_PER_ELEMENT: 2; buffer: ArrayBufferLike };
/**
 * Numbers, nested as the shape is; or flat, as a typed array. Dtypes whose arrays hold bits take none, except float16 where
 * there is Float16Array.
 */
export type List = readonly (number | bigint | boolean | List)[];
/**
 * A picture is taken by the input that `model.image` names, if its dtype takes lists; for integers it is rounded and kept
 * within their limits. A worker takes no elements of a page: make an ImageBitmap.
 */
export type Picture = Blob | ImageData | Exclude<CanvasImageSource, SVGImageElement>;

export interface Output<D = TypedArray> {
  data: D;
  shape: number[];
  dtype: DType;
}

export type DType =
  | "bool"
  | "int2"
  | "uint2"
  | "int4"
  | "uint4"
  | "int8"
  | "uint8"
  | "int16"
  | "uint16"
  | "int32"
  | "uint32"
  | "int64"
  | "uint64"
  | "float4_e2m1fn"
  | "float6_e2m3fn"
  | "float6_e3m2fn"
  | "float8_e4m3fn"
  | "float8_e4m3fnuz"
  | "float8_e5m2"
  | "float8_e5m2fnuz"
  | "float8_e8m0fnu"
  | "float16"
  | "bfloat16"
  | "float32"
  | "float64";

/** What README.md's table of element types says: bits where JavaScript has no such numbers. float16 may come as Float16Array. */
export type TypedArray = Int8Array | Uint8Array | Int16Array | Uint16Array | Int32Array | Uint32Array | BigInt64Array | BigUint64Array | Float32Array | Float64Array;

/** A tensor that lives from run to run. */
export interface State {
  name: string;
  dtype: DType;
  shape: number[];
}

/** What a task is: its kind, the names of its classes, how its model sees what it is given; of one with several models, their names. */
export interface TaskInfo {
  kind:
    | "classify"
    | "detect"
    | "faces"
    | "pose"
    | "segment"
    | "cutout"
    | "depth"
    | "embed-image"
    | "landmarks"
    | "ocr"
    | "embed"
    | "search"
    | "rerank"
    | "classify-text"
    | "zero-shot"
    | "tag"
    | "zero-shot-tag"
    | "fill-mask"
    | "voices"
    | "denoise"
    | "notes"
    | "wake-word"
    | "sounds"
    | "speaker"
    | "speakers"
    | "speak"
    | "transcribe"
    | "translate";
  labels: readonly string[];
  licence: string;
  parts?: readonly string[];
  /** Facts of its model or models, such as `joints`: the pairs of landmarks with a line between them. */
  options: Readonly<Record<string, unknown>>;
  /** What decodes the model's outputs. */
  head?: string;
  /** How sources become an input, by the `medium`, such as a picture's `size` and `fit`, or the `length` of a text. */
  preparation?: Readonly<Record<string, unknown>>;
  /** Files of the bundle that it needs beside its model. */
  files?: Readonly<Record<string, { file: string; bytes: number; sha256: string }>>;
  /** What a call may choose, with what holds otherwise. */
  settings: Readonly<Record<string, unknown>>;
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

/** A run in seconds, as `singe bench --profile --json` reports it. */
export interface Profile {
  device: "wasm" | "webgpu";
  /** The clock that timed the kernels. */
  clock: string;
  runs: number;
  /** A whole run; and the sum of kernels and rest, which is more if kernels timed separately take longer. */
  run: number;
  seconds: number;
  /** Sorted by time, the slowest first. */
  kernels: Kernel[];
  /** Copying inputs to the device; waiting for it and reading outputs. */
  rest: { upload: number; readback: number };
  /** The same, call by call, in Chrome's format: for chrome://tracing and ui.perfetto.dev. */
  trace: { traceEvents: object[]; displayTimeUnit: "ms"; otherData: Record<string, string> };
}

/** All calls of a run with the same code and shapes: seconds, operations and bytes are totals of its calls. */
export interface Kernel {
  /** Its ops, its kind ("elementwise", "reduce", "matmul", "conv", "copy"), its output. */
  label: string;
  kind: string;
  output: number[];
  calls: number;
  seconds: number;
  /** Floating-point operations, and the least bytes of traffic; null if the bundle does not say. */
  flops: number | null;
  bytes: number | null;
}

export class SingeError extends Error {
  constructor(code: Code, message: string, cause?: unknown);
  readonly code: Code;
}

/**
 * - `input`: an argument does not fit the model; the message says what the model expects
 * - `network`: a file could not be fetched
 * - `format`: this is no bundle, or it is damaged
 * - `device`: this browser or device cannot run it
 * - `lost`: the GPU device was lost, and again after it was reopened; or the worker ended; or the connection to a remote device
 * - `aborted`: the caller's signal was aborted
 * - `disposed`: the model has been disposed
 */
export type Code = "input" | "network" | "format" | "device" | "lost" | "aborted" | "disposed";

export const VERSION: string;

// --- singe/element

/** What both elements are. */
declare class SourceElement<Opened> extends HTMLElement {
  /** @internal */
  get opened(): Promise<Opened>;
}

/** The details of the events of <singe-model>. */
export interface SingeModelEvents {
  progress: CustomEvent<Progress>;
  load: CustomEvent<Model>;
  result: CustomEvent<Record<string, Output>>;
  error: CustomEvent<SingeError>;
}

/** The details of the events of <singe-task>. */
export interface SingeTaskEvents {
  progress: CustomEvent<Progress>;
  load: CustomEvent<Task>;
  result: CustomEvent<TaskAnswer>;
  error: CustomEvent<SingeError>;
}

declare global {
  interface HTMLElementTagNameMap {
    "singe-model": SingeModelElement;
    "singe-task": SingeTaskElement;
  }
}

// --- singe/ort

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

// --- singe/picture

/** A file, or something that a canvas draws. */
export type PictureSource = Blob | ImageData | Exclude<CanvasImageSource, SVGImageElement>;

// --- singe/sound

/** What is used of an AudioBuffer. */
export interface Sound {
  readonly sampleRate: number;
  readonly numberOfChannels: number;
  getChannelData(channel: number): ArrayLike<number>;
}

/** What is heard, block by block. dropped: how many samples nobody took in time. */
export interface Microphone extends AsyncIterable<Float32Array> {
  readonly sampleRate: number;
  readonly stream: MediaStream;
  readonly dropped: number;
  stop(): void;
}

// --- singe/tasks

/**
 * Of classify, classify-text, fill-mask, search, rerank: `top`, how many. Of detect, faces and landmarks: `threshold`, the least score, and
 * `top`; of ocr, tag and zero-shot-tag `threshold`. Of embed and search: `prompt`, the name of what is written before a text; of embed `dimensions`, how many numbers
 * of a vector are kept. Of search: `among`, the numbers of the texts that count, and `reach`, how many of many are compared. Of rerank:
 * `documents`. Of zero-shot-tag: `labels`. Of zero-shot: `labels`, the `hypothesis` in which {} stands for one, and `several`, whether more than one may be right.
 */
export interface TaskSettings {
  top?: number;
  threshold?: number;
  prompt?: string;
  dimensions?: number;
  among?: readonly number[] | null;
  reach?: number;
  documents?: readonly string[];
  labels?: readonly string[];
  hypothesis?: string;
  several?: boolean;
  /** Of sounds that are arrays: how many samples are a second. */
  sampling_rate?: number;
  /** Of voices, in seconds: shorter ones are left out of a whole sound, silence of this length ends one, and what is added at both ends. */
  min_speech?: number;
  min_silence?: number;
  pad?: number;
  /** Of speakers: when somebody speaks, as voices answers, and how many they are, 0 if it is unknown; `threshold` is the cosine of one voice. */
  segments?: readonly { start: number; end: number }[] | null;
  count?: number;
  /** Of notes: the least score of a beginning, and the shortest note in seconds. */
  onset?: number;
  min_length?: number;
  /** Of speak: 2 is twice as fast; one of several speakers; of what chance adds, null: otherwise at every call; whether texts are signs of IPA. */
  speed?: number;
  speaker?: string | number;
  seed?: number | bigint | null;
  phonemes?: boolean;
  /** Of transcribe: the code of a language, null: it is found; to English; words that may come, such as names; whether each word has its times. */
  language?: string | null;
  translate?: boolean;
  words?: boolean;
  /** Of transcribe and translate: how many texts are followed side by side, at most 5, or as many as the model's files say; null: what they say, but of Whisper, whose files say nothing. */
  beams?: number | null;
  /** Of translate: the codes of languages, of models that know several. */
  src_lang?: string | null;
  tgt_lang?: string | null;
}

/** Somebody speaks, from start to end in seconds. */
export interface VoiceSegment {
  start: number;
  end: number;
  score: number;
}

/** What is known now of voices in a stream: the segments that ended, since when somebody speaks, and a score for each `step` seconds. */
export interface VoicesNow {
  segments: VoiceSegment[];
  speaking: boolean;
  since: number | null;
  scores: Float32Array;
  step: number;
}

/** A part of what is said; score: the mean chance of its tokens; words: if they are asked for. */
export interface SpokenPart extends VoiceSegment {
  text: string;
  words?: (VoiceSegment & { text: string })[];
}

/** What is said: all of it, its parts, and the code of its language. */
export interface Transcript {
  text: string;
  chunks: SpokenPart[];
  language: string;
}

/** A word that was heard: the mean of the last scores, and when it was known, in seconds. */
export interface WakeWord<Label extends string = string> {
  label: Label;
  score: number;
  at: number;
}

/** What is known now of a wake word in a stream: the words that were heard, and the mean of the last scores for each `step` seconds. */
export interface WordsNow {
  words: WakeWord[];
  scores: Float32Array;
  step: number;
}

/** Somebody speaks, from start to end in seconds. speaker: the number of the voice, in the order in which they speak first. */
export interface SpeakerTurn {
  speaker: number;
  start: number;
  end: number;
}

/** pitch: a number of MIDI, 60 is the middle C; bends: thirds of a semitone from it, over the note's time. */
export interface MusicNote extends VoiceSegment {
  pitch: number;
  bends: number[];
}

/** A part of a text that was found: `source.slice(start, end)`. */
export interface TextEntity<Label extends string = string> {
  label: Label;
  score: number;
  text: string;
  start: number;
  end: number;
}

/** A class, an object, a face, a part of a picture; in pixels of the source. */
export interface TaskFinding<Label extends string = string> {
  label: Label;
  score: number;
  index: number;
  box?: { xmin: number; ymin: number; xmax: number; ymax: number };
  landmarks?: Landmark[];
  /** Of hands, in a picture that is not mirrored. */
  handedness?: "Left" | "Right";
  mask?: PixelMap;
}

/** What has these fields in every answer. */
export type FindingWith<Label extends string, Fields extends keyof TaskFinding> = TaskFinding<Label> & Required<Pick<TaskFinding, Fields>>;

/** A line of text, in pixels of the source. Its corners are in the order in which a picture is seen, from the top left one on, clockwise. */
export interface TaskLine {
  text: string;
  score: number;
  box: { xmin: number; ymin: number; xmax: number; ymax: number };
  corners: Landmark[];
}

/** In pixels of the source; z is smaller the nearer it is, and 0 where the model knows no depth. */
export interface Landmark {
  x: number;
  y: number;
  z?: number;
  visibility?: number;
}

/** A number for each pixel of the source, row by row: of a mask 0 to 255, of a depth what the model says. `data` is made when it is first asked for. */
export interface PixelMap<D = Uint8Array | Float32Array> {
  width: number;
  height: number;
  data: D;
  /** A mask as white of its opacity, or the `picture` with that transparency; a depth in grey. */
  toCanvas(picture?: CanvasImageSource): OffscreenCanvas;
}

/** What a kind of task answers with: a list, the likeliest first, lines of text in reading order, or a mask, a depth, a vector of length 1. */
export interface TaskAnswers<Label extends string = string> {
  classify: TaskFinding<Label>[];
  detect: FindingWith<Label, "box">[];
  faces: FindingWith<Label, "box">[];
  pose: FindingWith<Label, "box" | "landmarks">[];
  segment: FindingWith<Label, "mask">[];
  cutout: { mask: PixelMap };
  depth: { depth: PixelMap };
  "embed-image": { vector: Float32Array };
  landmarks: FindingWith<Label, "box" | "landmarks">[];
  ocr: TaskLine[];
  /** `windows`: in how many parts a text was read that is longer than the model. */
  embed: { vector: Float32Array; readonly windows?: number };
  /** The texts, with their numbers as `index`. */
  search: TaskFinding[];
  rerank: TaskFinding[];
  "classify-text": TaskFinding<Label>[];
  "zero-shot": TaskFinding[];
  tag: TextEntity[];
  "zero-shot-tag": TextEntity[];
  /** The words that may stand there. */
  "fill-mask": TaskFinding[];
  voices: VoiceSegment[];
  denoise: { audio: Float32Array; sample_rate: number };
  notes: MusicNote[];
  "wake-word": WakeWord<Label>[];
  sounds: TaskFinding<Label>[];
  speaker: { vector: Float32Array; readonly windows?: number };
  speakers: SpeakerTurn[];
  /** Samples from -1 to 1, and what they say. */
  speak: { audio: Float32Array; sample_rate: number; text: string };
  transcribe: Transcript;
  /** `windows`: in how many parts a text was read that is longer than the model; `cut`: whether an answer was not at its end. */
  translate: { translation_text: string; readonly windows?: number; readonly cut?: boolean };
}
export type TaskAnswer = TaskAnswers[keyof TaskAnswers];

/**
 * `const detect = await task<TaskAnswers["detect"]>("./detect/"); const found = await detect(video);` `model.d.ts` of its bundle has the type
 * with its labels, `task<Answer>("./detect/")`. It runs in a worker, unless `worker` is false.
 */
export interface Task<A extends TaskAnswer = TaskAnswer> {
  (source: TaskSource, settings?: TaskSettings & { signal?: AbortSignal }): Promise<A>;
  (sources: readonly TaskSource[], settings?: TaskSettings & { signal?: AbortSignal }): Promise<A[]>;
  readonly info: TaskInfo;
  /** Its model; of several the last. */
  readonly model: Model;
  /**
   * Answer for what a microphone hears, or for other blocks of samples, as they come. Of transcribe, the last parts may still change; the last
   * answer, when the microphone was stopped, is whole.
   */
  stream(
    blocks: AsyncIterable<Float32Array> & { readonly sampleRate?: number; stop?(): void },
    heard: (answer: A extends VoiceSegment[] ? VoicesNow : A extends WakeWord[] ? WordsNow : A) => void,
    settings?: TaskSettings,
  ): { stop(): void; readonly done: Promise<void> };
  /** Write down a whole sound, window by window: each answer has all that was said so far. */
  stream(
    sound: string | URL | Blob | AudioBuffer | Float32Array | { samples: Float32Array; sampleRate: number },
    heard: (answer: A) => void,
    settings?: TaskSettings,
  ): { stop(): void; readonly done: Promise<void> };
  /**
   * Say a text, whole or as its parts come: each sentence is an answer, and the next one is made while it is played. Of translate: a text, or one after
   * the other; with one beam, what is said so far is told after each token.
   */
  stream(text: string | AsyncIterable<string>, said: (answer: A) => void, settings?: TaskSettings): { stop(): void; readonly done: Promise<void> };
  /**
   * Answer for the frames of a video, a camera's too, as fast as answers come: frames in between are dropped. Landmarks are followed. `done` ends with the
   * video, or with `stop`, and fails with what a frame fails with. `time` is the frame's in seconds; `frame` is closed when `found` has
   * returned.
   */
  stream(
    video: HTMLVideoElement,
    found: (answer: A, timing: { milliseconds: number; time: number; frame: VideoFrame | ImageBitmap }) => void,
    settings?: TaskSettings,
  ): { stop(): void; readonly done: Promise<void> };
  /** Of a search: one that looks through these texts, and those that it had. It shares the model. */
  index(texts: readonly string[], options?: { prompt?: string; dimensions?: number; signal?: AbortSignal }): Promise<Task<A>>;
  /** Draw an answer over its picture. */
  draw(context: CanvasRenderingContext2D | OffscreenCanvasRenderingContext2D, answer: A): void;
  /** Free all memory. */
  close(): Promise<void>;
}

/** A picture or a sound, or its address; or a text. */
export type TaskSource = string | URL | Blob | AudioBuffer | Float32Array | { samples: Float32Array; sampleRate: number } | ImageData | Exclude<CanvasImageSource, SVGImageElement>;

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
