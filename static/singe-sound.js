/**
 * Sounds become tensors, as core/singe/tools/inputs/sounds.py makes them: one channel, at the rate of the model.
 *
 * Contract: `soundToTensor(sound, rate)` takes what an AudioBuffer has and returns the mean of its channels, resampled.
 * `resample(samples, rate, wanted)` gives samples another rate by a sinc function in a Hann window; what is too high for the
 * new rate is left out. Both return new arrays. What does not fit is a SingeError with the code "input".
 */

/** @import { Sound } from "./types/public.d.ts" */

import { SingeError } from "./program/singe-format.js";

/** How many zero crossings of the sinc function are used on each side of a sample, as in sounds.py. */
const CROSSINGS = 16;
/** The most weights that are kept; those of unusual rates are computed anew for each sample. */
const MOST_KEPT = 2 ** 20;

/** @param {string} what */
const refuse = (what) => new SingeError("input", `sound: ${what}`);

/**
 * The mean of a sound's channels, at `rate` samples a second.
 * @param {Sound} sound
 * @param {number} rate
 * @returns {Float32Array}
 */
export function soundToTensor(sound, rate) {
  const count = sound?.numberOfChannels;
  if (!(count > 0 && sound.getChannelData)) throw refuse("expected an AudioBuffer, as decodeAudioData gives it");
  const channels = Array.from({ length: count }, (_, k) => sound.getChannelData(k));
  const mean = Float64Array.from(channels[0], (_, k) => channels.reduce((sum, channel) => sum + channel[k], 0) / count);
  return resample(mean, sound.sampleRate, rate);
}

/**
 * Samples of `rate` a second as samples of `wanted` a second, by a sinc function in a Hann window. Frequencies that are too
 * high for the new rate are left out; before and after the samples is silence. Both rates are whole numbers.
 * @param {ArrayLike<number>} samples
 * @param {number} rate
 * @param {number} wanted
 * @returns {Float32Array}
 */
export function resample(samples, rate, wanted) {
  const isBig = typeof (/** @type {unknown} */ (samples?.[0])) === "bigint";
  if (isBig || !(samples?.length >= 0)) throw refuse(`got samples of type ${isBig ? "bigint" : typeof samples}, expected an array of numbers`);
  for (const given of [rate, wanted]) {
    if (!(Number.isSafeInteger(given) && given > 0)) throw refuse(`got a rate of ${given}, expected a whole number of samples a second`);
  }
  if (rate === wanted) return Float32Array.from(samples);
  const cutoff = Math.min(1, wanted / rate); // of the frequencies of `samples`
  const reach = Math.ceil(CROSSINGS / cutoff);
  const isKept = (wanted / divisor(rate, wanted)) * 2 * reach <= MOST_KEPT;
  /** @type {Map<number, Float64Array>} */
  const kept = new Map();
  /**
   * The weights of the samples around a place, which lies `part` / `wanted` of the way between two of them.
   * @param {number} part
   */
  const weightsAt = (part) => {
    const known = kept.get(part);
    if (known) return known;
    const weights = Float64Array.from({ length: 2 * reach }, (_, k) => weight((k + 1 - reach - part / wanted) * cutoff) * cutoff);
    if (isKept) kept.set(part, weights);
    return weights;
  };
  return Float32Array.from({ length: Math.ceil((samples.length * wanted) / rate) }, (_, n) => {
    const weights = weightsAt((n * rate) % wanted);
    const first = Math.floor((n * rate) / wanted) + 1 - reach;
    let sum = 0;
    for (let k = Math.max(0, -first); k < weights.length && first + k < samples.length; k++) sum += weights[k] * samples[first + k];
    return sum;
  });
}

/**
 * A sinc function in a Hann window, at a distance in zero crossings.
 * @param {number} distance
 */
function weight(distance) {
  const window = Math.cos(Math.min(1, Math.abs(distance) / CROSSINGS) * (Math.PI / 2)) ** 2;
  const angle = Math.PI * distance;
  return window * (angle ? Math.sin(angle) / angle : 1);
}

/** @type {(a: number, b: number) => number} */
const divisor = (a, b) => (b ? divisor(b, a % b) : a);
