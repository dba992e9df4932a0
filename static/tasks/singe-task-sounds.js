/**
 * Tasks that hear: rows of samples go through the Program, with what the model remembers, and its scores become plain objects.
 *
 * Contract: that of a medium (singe-task-runner.js), with the rows of core/singe/tasks/sound/running.py and the answers of its kinds. A
 * sound is an AudioBuffer, the bytes of a file (Blob), an address, `{ samples, sampleRate }`, or an array with the setting
 * `sampling_rate`; a stream is a Microphone of singe-sound.js, or any async iterable of arrays.
 */

/** @import { Output, TaskInfo } from "../types/public.d.ts" */
/** @import { VoiceRules } from "./singe-task-sounds-rules.js" */

import { SingeError } from "../program/singe-format.js";
import { Resampler } from "../singe-sound.js";
import { heard, rateOfStream, samplesOf } from "./singe-task-sources.js";
import { notesIn, turnsOf, VoiceFollower, voicesIn, windowsOf, WordFollower } from "./singe-task-sounds-rules.js";

/** About so many samples go through the Program at once. */
const MOST = 1 << 18;
const [KEYS, BINS, FRAMES_A_SECOND] = [88, 264, Math.floor(22050 / 256)];

/** @typedef {{ rate: number, step: number, before: number, after: number, rows: number, states: number, lengths?: boolean, level?: number }} SoundInput */
/** @typedef {Record<string, any>} Chosen */
/** @typedef {(inputs: Record<string, any>, signal?: AbortSignal) => Promise<Record<string, Output>>} Run */
/** @typedef {Record<string, Float32Array>} Arrays */
/** @typedef {(parts: Arrays, count: number, ends: boolean) => any} Live */
/** @typedef {{ whole(found: Arrays, info: TaskInfo, count: number, chosen: Chosen): any, live?(info: TaskInfo, chosen: Chosen): Live }} SoundKind */

/** @param {string} what */
const refuse = (what) => new SingeError("input", `sound: ${what}`);

/** @type {(info: TaskInfo) => SoundInput} */
const inputOf = (info) => /** @type {SoundInput} */ (/** @type {unknown} */ (info.preparation));

/** The samples of a sound, as they come, through a task's Program. */
export class SoundRun {
  #run;
  #spec;
  #state;
  #held;
  count = 0;

  /**
   * @param {Run} run
   * @param {SoundInput} spec
   */
  constructor(run, spec) {
    this.#run = run;
    this.#spec = spec;
    this.#state = new Float32Array(spec.states);
    this.#held = new Float32Array(spec.before);
  }

  /**
   * The outputs of the rows that are complete now.
   * @param {Float32Array} samples
   * @param {AbortSignal} [signal]
   */
  async push(samples, signal) {
    this.count += samples.length;
    this.#held = joined([this.#held, samples]);
    const { before, after, step } = this.#spec;
    return this.#rows(Math.floor((this.#held.length - before - after) / step), signal);
  }

  /**
   * The outputs of the rows that are left; silence follows.
   * @param {AbortSignal} [signal]
   */
  async finish(signal) {
    const { before, after, step } = this.#spec;
    const left = Math.ceil(Math.max(0, this.#held.length - before) / step);
    const real = this.#held.length;
    const missing = before + left * step + after - real;
    if (missing > 0) this.#held = joined([this.#held, new Float32Array(missing)]);
    return this.#rows(left, signal, real);
  }

  /**
   * @param {number} count
   * @param {AbortSignal} [signal]
   * @param {number} [real] how many of the samples that are held are of the sound
   */
  async #rows(count, signal, real = Number.POSITIVE_INFINITY) {
    const { before, after, step, rows, states } = this.#spec;
    const width = before + step + after;
    const most = rows || Math.max(1, Math.floor(MOST / width));
    /** @type {Arrays[]} */
    const found = [];
    for (let left = count; left > 0; left -= most) {
      const now = Math.min(left, most);
      const data = new Float32Array(now * width);
      for (let k = 0; k < now; k++) data.set(this.#held.subarray(k * step, k * step + width), k * width);
      const known = real;
      const lengths = this.#spec.lengths && { lengths: { data: Float32Array.from({ length: now }, (_, k) => Math.max(0, Math.min(width, known - k * step))), shape: [now] } };
      const inputs = { samples: { data, shape: [now, width] }, ...lengths, ...(states && { state: { data: this.#state, shape: [states] } }) };
      const { state, ...outputs } = await this.#run(inputs, signal);
      if (state) this.#state = Float32Array.from(/** @type {Float32Array} */ (state.data));
      found.push(Object.fromEntries(Object.entries(outputs).map(([name, output]) => [name, Float32Array.from(/** @type {Float32Array} */ (output.data))])));
      this.#held = this.#held.subarray(now * step);
      real -= now * step;
    }
    return merged(found);
  }
}

/** @param {Float32Array[]} parts */
function joined(parts) {
  const whole = new Float32Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}

/**
 * The rows of several runs, one after the other.
 * @param {Arrays[]} parts
 * @returns {Arrays}
 */
const merged = (parts) =>
  Object.fromEntries(Object.keys(parts.find((part) => Object.keys(part).length) ?? {}).map((name) => [name, joined(parts.map((part) => part[name] ?? new Float32Array()))]));

/** @type {(info: TaskInfo, chosen: Chosen) => VoiceRules} */
function rulesOf(info, chosen) {
  const { rate, step } = inputOf(info);
  return { threshold: chosen.threshold, speech: chosen.min_speech * rate, silence: chosen.min_silence * rate, pad: chosen.pad * rate, step };
}

/** @type {(values: Float32Array) => number} */
const meanOf = (values) => Math.fround(values.reduce((sum, value) => sum + value, 0) / values.length);

/** @type {Record<string, SoundKind>} */
const KINDS = {
  voices: {
    whole({ score = new Float32Array() }, info, count, chosen) {
      const { rate, step } = inputOf(info);
      return voicesIn(score, count, rulesOf(info, chosen)).map(([a, b]) => ({
        start: a / rate,
        end: b / rate,
        score: meanOf(score.subarray(Math.floor(a / step), Math.ceil(b / step))),
      }));
    },
    live(info, chosen) {
      const { rate, step } = inputOf(info);
      const follower = new VoiceFollower(rulesOf(info, chosen));
      return ({ score = new Float32Array() }, _, ends) => {
        const ended = Array.from(score, (one) => follower.push(one));
        if (ends) ended.push(follower.end());
        const segments = ended.flatMap((one) => (one ? [{ start: one[0] / rate, end: one[1] / rate, score: one[2] }] : []));
        const since = follower.start === null ? null : follower.start / rate;
        return { segments, speaking: since !== null, since, scores: score, step: step / rate };
      };
    },
  },
  denoise: {
    whole: ({ audio = new Float32Array() }, info, count) => ({ audio: audio.slice(0, count), sample_rate: inputOf(info).rate }),
    live(info) {
      let given = 0;
      return ({ audio = new Float32Array() }, count, ends) => {
        const now = ends ? audio.slice(0, count - given) : audio;
        given += now.length;
        return { audio: now, sample_rate: inputOf(info).rate };
      };
    },
  },
  notes: {
    whole(found, info, count, chosen) {
      if (!found.keys) return [];
      const frames = Math.floor((count * FRAMES_A_SECOND) / inputOf(info).rate);
      const part = (/** @type {string} */ name, /** @type {number} */ width) => found[name].subarray(0, frames * width);
      const settings = /** @type {{ threshold: number, onset: number, min_length: number }} */ (chosen);
      return notesIn({ keys: part("keys", KEYS), onsets: part("onsets", KEYS), contours: part("contours", BINS) }, settings);
    },
  },
  "wake-word": {
    whole: ({ score = new Float32Array() }, info, _, chosen) => wordsOf(info, chosen).push(score).words,
    live(info, chosen) {
      const { rate, step } = inputOf(info);
      const follower = wordsOf(info, chosen);
      return ({ score = new Float32Array() }) => {
        const { words, means } = follower.push(score);
        return { words, scores: means, step: step / rate };
      };
    },
  },
  sounds: {
    whole({ scores = new Float32Array() }, info, count, chosen) {
      if (!Number.isInteger(chosen.top) || chosen.top < 0) throw refuse(`top is ${chosen.top}, expected how many to give; 0 gives all`);
      const { step, after } = inputOf(info);
      const rows = Math.ceil(count / step);
      const real = Math.max(1, count - after); // what is shorter than the margin is no window of its own
      const mean = Array.from({ length: scores.length / rows || 0 }, (_, k, classes = scores.length / rows) => {
        let sum = 0;
        for (let row = 0; row < rows; row++) sum += scores[row * classes + k] * (Math.max(0, Math.min(step, real - row * step)) / real);
        return sum;
      });
      const order = mean.map((_, k) => k).sort((a, b) => mean[b] - mean[a] || a - b);
      return order.slice(0, chosen.top || undefined).map((index) => ({ label: info.labels[index] ?? `class ${index}`, score: mean[index], index }));
    },
  },
  speaker: {
    whole(found, info, count) {
      const vectors = windowVectors(found, info, count);
      const mean = vectors[0].map((_, k) => vectors.reduce((sum, vector) => sum + vector[k], 0) / vectors.length);
      const length = Math.max(Math.hypot(...mean), 1e-12);
      return { vector: mean.map((x) => x / length), windows: vectors.length };
    },
  },
  speakers: {
    whole(found, info, count, { segments, threshold, count: speakers }) {
      const spec = inputOf(info);
      const seconds = count / spec.rate;
      const isCosine = typeof threshold === "number" && Math.abs(threshold) <= 1;
      if (!isCosine) throw refuse(`threshold is ${threshold}, expected a cosine`);
      if (!Number.isInteger(speakers) || speakers < 0) throw refuse(`count is ${speakers}, expected how many speak, 0 if it is unknown`);
      const given = (segments ?? [[0, seconds]]).map((/** @type {any} */ one) => (Array.isArray(one) ? one : [one.start, one.end]));
      if (!given.flat().every(Number.isFinite)) throw refuse(`segments: got ${JSON.stringify(segments)?.slice(0, 60)}, expected those of voices, or pairs of seconds`);
      return turnsOf(windowVectors(found, info, count), given, seconds, spec, threshold, speakers).map(([speaker, start, end]) => ({ speaker, start, end }));
    },
  },
};

/** @type {(info: TaskInfo, chosen: Chosen) => WordFollower} */
function wordsOf(info, chosen) {
  const { rate, step, after } = inputOf(info);
  const threshold = chosen.threshold ?? info.options.threshold;
  if (!(threshold >= 0 && threshold < 1)) throw refuse(`threshold is ${threshold}, expected a number from 0 to under 1`);
  return new WordFollower({ label: info.labels[0] ?? "class 0", threshold, meanOf: Number(info.options.mean_of), step: step / rate, after: after / rate });
}

/**
 * The vectors of the windows that the sound fills.
 * @param {Arrays} found
 * @param {TaskInfo} info
 * @param {number} count
 */
function windowVectors({ vectors }, info, count) {
  if (!count) throw refuse("it is empty; expected a voice");
  const spec = inputOf(info);
  const width = vectors.length / Math.ceil(count / spec.step);
  return Array.from({ length: windowsOf(count, spec) }, (_, k) => vectors.slice(k * width, (k + 1) * width));
}

/**
 * Samples whose mean power is so many decibels below 1 at least.
 * @param {Float32Array} samples
 * @param {number} level
 */
function raised(samples, level) {
  const power = samples.reduce((sum, x) => sum + x * x, 0) / samples.length;
  const short = power > 0 ? -level - 10 * Math.log10(power) : 0;
  return short > 0 ? samples.map((x) => x * 10 ** (short / 20)) : samples;
}

/**
 * Answers for what a stream brings until it ends, or `stop` is called.
 * @param {TaskInfo} info
 * @param {Run} run
 * @param {Chosen} chosen
 * @param {AsyncIterable<Float32Array> & { sampleRate?: number, stop?: () => void }} source
 * @param {(answer: any) => void} found
 */
function follow(info, run, chosen, source, found) {
  const kind = KINDS[info.kind];
  if (!kind.live) throw new SingeError("input", `${info.kind}: takes whole sounds; call it with one`);
  const resampler = new Resampler(rateOfStream(source, chosen), inputOf(info).rate);
  const through = new SoundRun(run, inputOf(info));
  const answer = kind.live(info, chosen);
  let stopped = false;
  const follows = async () => {
    for await (const block of source) {
      const now = answer(await through.push(resampler.push(heard(block))), through.count, false);
      if (stopped) return;
      found(now);
    }
    if (stopped) return;
    const last = await through.push(resampler.finish());
    found(answer(merged([last, await through.finish()]), through.count, true));
  };
  return {
    stop() {
      stopped = true;
      source.stop?.();
    },
    done: follows(),
  };
}

export const medium = {
  kinds: KINDS,
  /** @param {TaskInfo} info */
  whyNot(info) {
    const facts = /** @type {Record<string, unknown>} */ (/** @type {unknown} */ (info.preparation));
    const wrong = ["rate", "step", "before", "after", "rows", "states"].filter(
      (name) => !(Number.isSafeInteger(facts[name]) && Number(facts[name]) >= 0 && Number(facts[name]) <= 1 << 22),
    );
    return wrong.length || !facts.rate || !facts.step ? `it does not say how sounds become rows: ${wrong.join(", ") || "rate, step"}` : "";
  },
  /** @param {TaskInfo} info */
  async open(info) {
    const begin = (/** @type {Run} */ run, /** @type {Chosen} */ chosen) => async (/** @type {any[]} */ sources, /** @type {AbortSignal | undefined} */ signal) => {
      const answers = [];
      for (const source of sources) {
        const { rate, level } = inputOf(info);
        const read = await samplesOf(source, rate, chosen.sampling_rate, signal);
        const samples = level ? raised(read, level) : read;
        const through = new SoundRun(run, inputOf(info));
        const found = merged([await through.push(samples, signal), await through.finish(signal)]);
        answers.push(KINDS[info.kind].whole(found, info, samples.length, chosen));
      }
      return answers;
    };
    return Object.assign(begin, { follow: follow.bind(undefined, info) });
  },
};
