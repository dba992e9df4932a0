/** Tasks, and what a page makes of outputs itself: classes, boxes, vectors that are compared. Loaded only by who imports it. */

import type { Answer, LoadOptions, Model, Output, TaskInfo } from "./singe.js";

/** Open the bundle of a task in the folder `url`: a function of a picture. See Task. */
export function task<Answer extends TaskAnswer = TaskAnswer>(url: string | URL, options?: LoadOptions): Promise<Task<Answer>>;

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
