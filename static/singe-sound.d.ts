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
 * left. All together are what `resample` makes of the whole.
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

/** What is used of an AudioBuffer. */
export interface Sound {
  readonly sampleRate: number;
  readonly numberOfChannels: number;
  getChannelData(channel: number): ArrayLike<number>;
}
