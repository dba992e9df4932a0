/**
 * What tasks that hear are given: sounds, and streams of them.
 *
 * Contract: `samplesOf` takes an address, a Blob, an AudioBuffer, `{ samples, sampleRate }` or an array, and gives new samples of one channel at
 * the rate that is wanted; a stream is a Microphone of singe-sound.js, or any async iterable of arrays.
 */

import { SingeError } from "../program/singe-format.js";
import { decoded, resample, soundToTensor } from "../singe-sound.js";

/** @param {string} what */
const refuse = (what) => new SingeError("input", `sound: ${what}`);
/** The largest sample that is taken for one of a sound. */
const LOUDEST = 100;
const NO_RATE = "an array does not say how many samples are a second: give sampling_rate: 16000, or as it is";

/**
 * The samples of a source at a rate.
 * @param {any} source
 * @param {number} rate
 * @param {number | null} given
 * @param {AbortSignal} [signal]
 * @returns {Promise<Float32Array>}
 */
export async function samplesOf(source, rate, given, signal) {
  if (typeof source === "string" || source instanceof URL) {
    return samplesOf(await fetched(source, signal), rate, given, signal);
  }
  if (source instanceof Blob) return samplesOf(await decoded(source), rate, null, signal);
  if (typeof source?.getChannelData === "function") return soundToTensor(source, rate);
  const samples = source?.samples ?? source;
  const own = source?.sampleRate ?? given;
  if (!(samples instanceof Float32Array || samples instanceof Float64Array || Array.isArray(samples))) {
    const shown = samples?.constructor?.name ?? samples;
    throw refuse(`expected an address, a Blob, an AudioBuffer, { samples, sampleRate }, or an array with sampling_rate, got ${shown}`);
  }
  if (!own) throw refuse(NO_RATE);
  return resample(heard(samples), own, rate);
}

/**
 * Samples, if they are numbers that a sound can have.
 * @param {ArrayLike<number>} samples
 */
export function heard(samples) {
  if (Array.prototype.every.call(samples, (sample) => Math.abs(sample) <= LOUDEST)) return samples;
  throw refuse(`samples that are not finite, or above ${LOUDEST}; expected numbers around −1 to 1`);
}

/**
 * @param {string | URL} address
 * @param {AbortSignal} [signal]
 */
async function fetched(address, signal) {
  try {
    const response = await fetch(address, { signal });
    if (response.ok) return await response.blob();
    throw new Error(`the server answered ${response.status}`);
  } catch (cause) {
    if (signal?.aborted) throw new SingeError("aborted", "the sound was not fetched", signal.reason);
    throw new SingeError("network", `sound: ${address}: ${/** @type {Error} */ (cause).message}`, cause);
  }
}

/** @param {any} source */
export const isStream = (source) => typeof source?.[Symbol.asyncIterator] === "function";

/**
 * How many samples a second a stream has.
 * @param {any} source
 * @param {Record<string, any>} chosen
 * @returns {number}
 */
export function rateOfStream(source, { sampling_rate: given }) {
  if (!isStream(source)) throw refuse("a stream is a Microphone, or an async iterable of arrays of samples");
  const own = source.sampleRate ?? given;
  if (!own) throw refuse(NO_RATE);
  return own;
}
