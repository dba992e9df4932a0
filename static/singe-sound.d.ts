/** Sounds become tensors, as core/singe/tools/inputs/sounds.py makes them: one channel, at the rate of the model. */

/** The mean of a sound's channels, at `rate` samples a second. */
export function soundToTensor(sound: Sound, rate: number): Float32Array;

/**
 * Samples of `rate` a second as samples of `wanted` a second, by a sinc function in a Hann window. Frequencies that are too
 * high for the new rate are left out; before and after the samples is silence. Both rates are whole numbers.
 */
export function resample(samples: ArrayLike<number>, rate: number, wanted: number): Float32Array;

/** What is used of an AudioBuffer. */
export interface Sound {
  readonly sampleRate: number;
  readonly numberOfChannels: number;
  getChannelData(channel: number): ArrayLike<number>;
}
