/** Singe's runner: a bundle in a page, a worker or node. */

/**
 * Load the bundle in the folder `url`, relative to the page (in node: to the working directory). A query of `url` is given
 * to each file; with a version in it, `?v=…`, the manifest may come from the browser's cache.
 */
export function load<Kind extends Model | LanguageModel = Model>(url: string | URL, options?: LoadOptions): Promise<Kind>;

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
