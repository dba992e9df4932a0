/**
 * Tasks that speak: a text becomes sentences, these phonemes, and these samples, by a voice of Piper.
 *
 * Contract: that of a medium (singe-task-runner.js), with the sentences, the numbers and the samples of core/singe/speech/piper.py. A call
 * is given a text, a stream a text or an async iterable of its parts: each sentence is an answer, and the next one is made while it is played.
 */

/** @import { Model, TaskInfo } from "../types/public.d.ts" */
/** @import { Begin, Chosen, TaskFile, TaskMedium } from "./singe-task-runner.js" */

import { SingeError } from "../program/singe-format.js";
import { ABBREVIATION, English, SPACE } from "./singe-task-speech-english.js";

const RULES = "speech.json";
/** Sentences, as in core/singe/speech/piper.py: a pattern of the page's own, since the time that another takes may have no bound. */
const SENTENCE = `(?:[^.!?…\\n]|[.!?…]+["'”’)]*(?!${SPACE}|[.!?…"'”’)]|$))*(?:[.!?…]+["'”’)]*(?=${SPACE}|$)|\\n+)`;
const OPEN = new RegExp(`${ABBREVIATION}$`, "i");
const EDGES = new RegExp(`^${SPACE}+|${SPACE}+$`, "g");

/** @typedef {{ rate: number, numbers: Record<string, number[]>, language: string, letters: boolean, noise: number, length: number, breadth: number, speakers: Record<string, number> }} VoiceInput */
/** @typedef {{ begin: string, end: string, pad: string, most: number, pause: number, english: any, words: string }} Reading */
/** @typedef {{ speed: number, speaker: string | number, seed: number | bigint | null, phonemes: boolean }} Speaking */

/** @param {string} what */
const refuse = (what) => new SingeError("input", `speak: ${what}`);

/** @type {(info: TaskInfo) => VoiceInput} */
const voiceOf = (info) => /** @type {VoiceInput} */ (/** @type {unknown} */ (info.preparation));

/** The sentences of a text that comes in parts, each as soon as another one has begun. */
export class Sentences {
  #held = "";
  #sentence = new RegExp(SENTENCE, "y");

  /** @param {string} part */
  push(part) {
    this.#held += part;
    const found = [];
    for (let end = this.#firstEnd(); end < this.#held.length; end = this.#firstEnd()) {
      found.push(this.#held.slice(0, end).replace(EDGES, ""));
      this.#held = this.#held.slice(end);
    }
    return found.filter(Boolean);
  }

  /** What is left. */
  finish() {
    const rest = this.#held.replace(EDGES, "");
    this.#held = "";
    return rest ? [rest] : [];
  }

  /** Where the first sentence ends. */
  #firstEnd() {
    this.#sentence.lastIndex = 0;
    while (this.#sentence.test(this.#held)) {
      const at = this.#sentence.lastIndex;
      if (!OPEN.test(this.#held.slice(0, at))) return at;
    }
    return this.#held.length;
  }
}

/**
 * The numbers of signs, with marks around and pads between.
 * @param {VoiceInput} voice
 * @param {Reading} reading
 * @param {readonly string[]} signs
 */
export function idsOf({ numbers }, { begin, end, pad }, signs) {
  const inner = signs.flatMap((sign) => (Object.hasOwn(numbers, sign) ? [...numbers[sign], ...numbers[pad]] : []));
  return [...numbers[begin], ...numbers[pad], ...inner, ...numbers[end]];
}

/**
 * Signs in parts of at most so many, cut at spaces.
 * @param {string} text
 * @param {number} most
 */
export function cut(text, most) {
  const parts = [];
  let signs = Array.from(text);
  while (signs.length > most) {
    const place = signs.lastIndexOf(" ", most - 1);
    parts.push(signs.slice(0, place > 0 ? place : most));
    signs = signs.slice(place > 0 ? place : most);
  }
  return [...parts, signs].filter((part) => part.join("").trim());
}

/** A voice, with what it reads by. */
class Voice {
  #model;
  #voice;
  #reading;
  #file;
  /** @type {Promise<English> | undefined} */
  #english;

  /**
   * @param {Model} model
   * @param {VoiceInput} voice
   * @param {Reading} reading
   * @param {TaskFile} file
   */
  constructor(model, voice, reading, file) {
    this.#model = model;
    this.#voice = voice;
    this.#reading = reading;
    this.#file = file;
  }

  /**
   * Begins with a seed: what says one sentence after the other, until it is closed.
   * @param {Speaking} how
   */
  async begin(how) {
    if (!(how.speed >= 0.1 && how.speed <= 10)) throw refuse(`speed ${how.speed}, expected a number from 0.1 to 10`);
    const hasChance = this.#model.states.length > 0;
    const session = hasChance ? this.#model.session() : undefined;
    if (how.seed !== null) await session?.seed(how.seed);
    const runner = session ?? this.#model;
    return {
      /** @type {(sentence: string, signal?: AbortSignal) => Promise<{ audio: Float32Array, sample_rate: number, text: string }>} */
      say: async (sentence, signal) => {
        const signs = await this.#signs(sentence, how);
        const made = [];
        for (const part of cut(signs, this.#reading.most)) made.push((await runner.run(this.#inputs(part, how), { signal }))[this.#model.outputs[0].name].data);
        return this.sound(sentence, [.../** @type {Float32Array[]} */ (made), new Float32Array(Math.round(this.#reading.pause * this.#voice.rate))]);
      },
      close: async () => session?.dispose(),
    };
  }

  /**
   * @param {string} text
   * @param {Float32Array[]} parts
   */
  sound(text, parts) {
    const audio = new Float32Array(parts.reduce((sum, part) => sum + part.length, 0));
    let at = 0;
    for (const part of parts) {
      audio.set(part, at);
      at += part.length;
    }
    return { audio, sample_rate: this.#voice.rate, text };
  }

  /**
   * @param {string} sentence
   * @param {Speaking} how
   */
  async #signs(sentence, { phonemes }) {
    if (phonemes || this.#voice.letters) return sentence;
    const { english, words } = this.#reading;
    if (!english) throw refuse(`texts in "${this.#voice.language}" cannot be read yet; give signs of IPA, with phonemes: true`);
    this.#english ??= this.#file(words).then((bytes) => new English(english, new TextDecoder().decode(bytes)));
    return (await this.#english).phonemes(sentence);
  }

  /**
   * @param {readonly string[]} signs
   * @param {Speaking} how
   */
  #inputs(signs, { speed, speaker }) {
    const { noise, length, breadth, speakers } = this.#voice;
    const ids = idsOf(this.#voice, this.#reading, signs);
    const whole = (/** @type {number[]} */ values, /** @type {number[]} */ shape) => ({ data: BigInt64Array.from(values, BigInt), shape });
    const known = Object.values(speakers);
    const number = typeof speaker === "string" ? speakers[speaker] : speaker;
    const hasSpeakers = this.#model.inputs.some(({ name }) => name === "sid");
    if (!(known.length ? known : [0]).includes(number)) throw refuse(`speaker ${speaker}, expected one of ${Object.keys(speakers).join(", ") || "0"}`);
    return {
      input: whole(ids, [1, ids.length]),
      input_lengths: whole([ids.length], [1]),
      scales: { data: Float32Array.of(noise, length / speed, breadth), shape: [3] },
      ...(hasSpeakers && { sid: whole([number], [1]) }),
    };
  }
}

/** @param {unknown} text @returns {string} */
function checked(text) {
  if (typeof text !== "string") throw refuse(`got ${typeof text}, expected a text`);
  return text;
}

/** @type {TaskMedium} */
export const medium = {
  kinds: { speak: true },
  whyNot({ preparation, files }) {
    const { rate, numbers, speakers } = /** @type {Partial<VoiceInput>} */ (preparation ?? {});
    const areNumbers = Object(numbers) === numbers && Object.values(/** @type {object} */ (numbers)).every((ids) => Array.isArray(ids) && ids.every(Number.isSafeInteger));
    if (!(Number.isSafeInteger(rate) && Number(rate) > 0) || !areNumbers || Object(speakers) !== speakers) return "it does not say how its voice numbers phonemes";
    return files?.[RULES] ? "" : `no ${RULES} travels with it`;
  },
  async open(info, file, _, model) {
    const reading = /** @type {Reading} */ (await file(RULES, "values"));
    const { numbers } = voiceOf(info);
    const { begin: first, end, pad, most, pause } = Object(reading);
    const isWhole = [first, end, pad].every((mark) => Object.hasOwn(numbers, mark)) && Number.isSafeInteger(most) && most > 0 && pause >= 0 && pause < 60;
    if (!isWhole) throw new SingeError("format", `speak: ${RULES} does not say how a text becomes numbers: begin, end, pad, most, pause; export the voice once more`);
    const voice = new Voice(/** @type {Model} */ (model), voiceOf(info), reading, file);
    /** @type {Begin} */
    const begin = (_run, chosen) => async (sources, signal) => {
      const answers = [];
      for (const source of sources) {
        const sentences = new Sentences();
        const speech = await voice.begin(/** @type {Speaking} */ (/** @type {unknown} */ (chosen)));
        try {
          const sounds = [];
          for (const sentence of [...sentences.push(checked(source)), ...sentences.finish()]) sounds.push((await speech.say(sentence, signal)).audio);
          answers.push(/** @type {any} */ (voice.sound(source, sounds)));
        } finally {
          await speech.close();
        }
      }
      return answers;
    };
    return Object.assign(begin, { follow: follow.bind(undefined, voice) });
  },
};

/**
 * Answers for the sentences of a text until it ends, or `stop` is called.
 * @param {Voice} voice
 * @param {unknown} _
 * @param {Chosen} chosen
 * @param {string | AsyncIterable<string>} source
 * @param {(answer: any) => void} found
 */
function follow(voice, _, chosen, source, found) {
  if (typeof source !== "string" && typeof source?.[Symbol.asyncIterator] !== "function") throw refuse("a stream is a text, or an async iterable of its parts");
  const aborting = new AbortController();
  const { signal } = aborting;
  const follows = async () => {
    const sentences = new Sentences();
    const speech = await voice.begin(/** @type {Speaking} */ (/** @type {unknown} */ (chosen)));
    const say = async (/** @type {string[]} */ texts) => {
      for (const text of texts) {
        if (signal.aborted) return;
        const sound = await speech.say(text, signal);
        if (!signal.aborted) found(sound);
      }
    };
    try {
      for await (const part of typeof source === "string" ? [source] : source) {
        await say(sentences.push(checked(part)));
        if (signal.aborted) return;
      }
      await say(sentences.finish());
    } catch (error) {
      if (!signal.aborted) throw error;
    } finally {
      await speech.close();
    }
  };
  return { stop: () => aborting.abort(), done: follows() };
}
