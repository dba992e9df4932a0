/**
 * Sounds that are written down in parts: what is said so far, of a sound that is there, and of one that is heard as it comes.
 *
 * Contract: `coursesOfSounds` gives what a medium's `open` gives (singe-task-runner.js): each sound, or stream, is a Course of its own.
 */

/** @import { Begin, Chosen } from "../singe-task-runner.js" */

import { Resampler } from "../../singe-sound.js";
import { heard, isStream, rateOfStream, samplesOf } from "../singe-task-sources.js";

/**
 * hear: add samples; soFar: the text, whose last parts may change; finish: write down all that is left, and call after each part that is
 * written down for good; transcript: what that is.
 * @typedef {{ hear(samples: Float32Array): void, soFar(): Promise<unknown>, finish(onPart?: () => void): Promise<void>, transcript(): unknown }} Course
 */

/** Samples that were heard, by their places in the whole sound. Those that nobody needs any more are let go. */
export class HeardSamples {
  #samples = new Float32Array(1 << 16);
  #first = 0; // the place of the first that is stored
  #needed = 0;
  count = 0;

  /** @param {Float32Array} block */
  push(block) {
    if (this.count + block.length > this.#first + this.#samples.length) {
      const held = this.between(this.#needed, this.count);
      const size = 2 * (held.length + block.length);
      const more = size > this.#samples.length ? new Float32Array(size) : this.#samples;
      more.set(held);
      [this.#samples, this.#first] = [more, this.#needed];
    }
    this.#samples.set(block, this.count - this.#first);
    this.count += block.length;
  }

  /** @param {number} place before it nothing is asked for any more */
  letGo(place) {
    this.#needed = Math.min(Math.max(this.#needed, place), this.count);
  }

  /**
   * @param {number} start
   * @param {number} end
   */
  between(start, end) {
    return this.#samples.subarray(start - this.#first, end - this.#first);
  }
}

/**
 * @param {number} rate samples a second, as a Course takes them
 * @param {number} live seconds of new sound after which a stream tells what is said so far
 * @param {(chosen: Chosen, signal?: AbortSignal) => { course: Course, close: () => Promise<void> }} open
 * @returns {Begin}
 */
export function coursesOfSounds(rate, live, open) {
  /** @type {Begin} */
  const begin = (_run, chosen) => async (sources, signal) => {
    const answers = [];
    for (const source of sources) {
      const { course, close } = open(chosen, signal);
      try {
        course.hear(await samplesOf(source, rate, chosen.sampling_rate, signal));
        await course.finish();
        answers.push(/** @type {any} */ (course.transcript()));
      } finally {
        await close();
      }
    }
    return answers;
  };
  /** @type {Begin["follow"]} */
  const follow = (_run, chosen, source, found) => {
    const aborting = new AbortController();
    const { signal } = aborting;
    const { course, close } = open(chosen, signal);
    const tell = (/** @type {unknown} */ answer) => {
      if (!signal.aborted) found(answer);
    };
    const follows = async () => {
      try {
        if (isStream(source)) await listen(course, source, { own: rateOfStream(source, chosen), rate, live }, tell, signal);
        else course.hear(await samplesOf(source, rate, chosen.sampling_rate, signal));
        if (!signal.aborted) await course.finish(() => tell(course.transcript()));
        tell(course.transcript());
      } catch (error) {
        if (!signal.aborted) throw error;
      } finally {
        await close();
      }
    };
    const stop = () => {
      aborting.abort();
      source.stop?.();
    };
    return { stop, done: follows() };
  };
  return Object.assign(begin, { follow });
}

/**
 * Hear blocks until they end, and tell what is said so far.
 * @param {Course} course
 * @param {AsyncIterable<Float32Array>} blocks
 * @param {{ own: number, rate: number, live: number }} rates of the blocks, and of the Course
 * @param {(answer: unknown) => void} tell
 * @param {AbortSignal} signal
 */
async function listen(course, blocks, { own, rate, live }, tell, signal) {
  const resampler = new Resampler(own, rate);
  let fresh = 0;
  for await (const block of blocks) {
    if (signal.aborted) return;
    const samples = resampler.push(heard(block));
    course.hear(samples);
    fresh += samples.length;
    if (fresh < live * rate) continue;
    fresh = 0;
    tell(await course.soFar());
  }
  course.hear(resampler.finish());
}
