/** Sounds become tensors, as core/singe/files/sounds makes them: one channel, at the rate of the model. */

/** The mean of a sound's channels, at `rate` samples a second. */
export function soundToTensor(sound: Sound, rate: number): Float32Array;

/**
 * Samples of `rate` a second as samples of `wanted` a second, by a sinc function in a Kaiser window. Frequencies that are too
 * high for the new rate are left out; before and after the samples is silence. Both rates are whole numbers.
 */
export function resample(samples: ArrayLike<number>, rate: number, wanted: number): Float32Array;

/**
 * Takes blocks of any size with `push`, and gives the samples of the new rate that they complete; `finish` gives those that are
 * left. All together are what `resample` makes of the whole; where the rates are equal, those that come.
 */
export class Resampler {
  #private;
  /**
   */
  constructor(rate: number, wanted: number);
  /**
   */
  push(samples: ArrayLike<number>): Float32Array;
  /** The samples that are left; silence follows. The next block begins another sound. */
  finish(): Float32Array<ArrayBuffer>;
}

/** Keeps the latest samples that nobody has taken yet; older ones are dropped, and counted. */
export class SampleRing {
  #private;
  length: number;
  dropped: number;
  /** @param {number} size the most that it holds */
  constructor(size: number);
  /** @param {Float32Array} samples */
  write(samples: Float32Array): void;
  /** All that it holds, which it lets go of. */
  read(): Float32Array<ArrayBuffer>;
}

/**
 * What a microphone hears, or another MediaStream: an async iterable of blocks, for the stream of a task. Each block is all that came since
 * the one before, at most `seconds` of it.
 */
export function microphone(options?: {
  stream?: MediaStream;
  seconds?: number;
}): Promise<Microphone>;

/** A .wav file of one channel in 16 bits; what is louder than 1 is clipped. */
export function toWav(samples: ArrayLike<number>, rate: number): Blob;

/** A MIDI file of notes: that which `save` of Python writes. Notes that others overlap have no bends, which are of all keys at once. */
export function toMidi(notes: readonly {
  start: number;
  end: number;
  pitch: number;
  score: number;
  bends?: readonly number[];
}[]): Blob;

/** The rate that the first bytes of a file say, or the usual one. */
export function rateOf(bytes: ArrayBuffer): number;

/** The samples of a file, the mean of its channels, at the rate that it has. */
export function decoded(file: Blob): Promise<{
  samples: Float32Array;
  sampleRate: number;
}>;

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
