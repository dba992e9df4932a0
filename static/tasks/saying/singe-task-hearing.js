/**
 * Tasks that write down what is said: a sound becomes windows, these texts, and these parts with their times, by a Whisper.
 *
 * Contract: that of a medium (singe-task-runner.js), with the windows, the rules and the answers of core/singe/speech/transcribing.py. A call
 * is given a sound; a stream one, whose text grows window by window, or what a microphone hears: the last parts may still change, and the
 * last answer is whole.
 */

/** @import { Model, TaskInfo } from "../../types/public.d.ts" */
/** @import { Chosen, TaskMedium } from "../singe-task-runner.js" */
/** @import { Session } from "./singe-task-beams.js" */
/** @import { HearingFacts, WindowText } from "./singe-task-hearing-texts.js" */

import { generator } from "../../language/singe-language-sampling.js";
import { Tokenizer } from "../../language/singe-language-tokenizer.js";
import { HeardSamples, coursesOfSounds } from "./singe-task-courses.js";
import { HearingModel, HearingTokens, refuse, windowText } from "./singe-task-hearing-texts.js";
import { timedWords } from "./singe-task-hearing-words.js";

const TOKENIZER = "tokenizer.json";

/** @typedef {{ sampling_rate: number | null, language: string | null, translate: boolean, prompt: string, beams: number, words: boolean, seed: number }} Hearing */
/** @typedef {{ text: string, start: number, end: number, score: number, tokens: number[], words?: { text: string, start: number, end: number, score: number }[] }} SpokenPart */

const isCount = (/** @type {unknown} */ value) => Number.isSafeInteger(value) && Number(value) >= 0 && Number(value) <= 1 << 22;
const isSize = (/** @type {unknown} */ value) => isCount(value) && value !== 0;
const isText = (/** @type {unknown} */ value) => typeof value === "string";
const areAll = (/** @type {(value: unknown) => boolean} */ is) => (/** @type {unknown} */ values) => Array.isArray(values) && values.every(is);
/**
 * The fields of HearingFacts: what they must be, the table that they are in, their names.
 * @type {readonly (readonly [(value: unknown) => boolean, string, readonly string[]])[]}
 */
const FACTS = [
  [isSize, "", ["rate", "step", "length", "frames", "positions", "room", "vocabulary", "texts"]],
  [isCount, "tokens.", ["end", "start", "before", "transcribe", "translate", "no_speech", "no_times", "times", "first_times"]],
  [areAll(isCount), "tokens.", ["never", "never_first"]],
  [(value) => Object(value) === value && Object.values(/** @type {object} */ (value)).every(isCount), "tokens.", ["languages"]],
  [(value) => areAll(Number.isFinite)(value) && /** @type {number[]} */ (value).length > 0, "rules.", ["temperatures"]],
  [Number.isFinite, "rules.", ["repeating", "unsure", "silent", "drawn", "live", "seconds"]],
  [isSize, "words.", ["smoothed"]],
  [Number.isFinite, "words.", ["longest"]],
  [isText, "words.", ["before", "behind", "ends"]],
  [areAll(isText), "words.", ["unspaced"]],
];
/** @type {(info: TaskInfo) => HearingFacts} */
const factsOf = (info) => /** @type {HearingFacts} */ (/** @type {unknown} */ (info.preparation));

/** A transcription under way: the sound that was heard, and what has been said for good. */
class Course {
  #model;
  #tokens;
  #facts;
  #how;
  #draws;
  #heard = new HeardSamples();
  #place = 0; // in frames: what comes before it has been written down
  #peak = -Infinity;
  /** @type {string | null} */
  #language;
  /** @type {number[]} */
  #before;
  /** @type {SpokenPart[]} */
  #parts = [];

  /**
   * @param {HearingModel} model
   * @param {HearingTokens} tokens
   * @param {HearingFacts} facts
   * @param {Hearing} how
   */
  constructor(model, tokens, facts, how) {
    this.#model = model;
    this.#tokens = tokens;
    this.#facts = facts;
    this.#how = how;
    this.#draws = generator(how.seed);
    this.#language = how.language ?? (tokens.hasLanguages ? null : "en");
    const prompt = how.prompt.trim();
    this.#before = prompt ? tokens.tokenizer.encode(` ${prompt}`, { addSpecial: false }) : [];
  }

  /** @param {Float32Array} block */
  hear(block) {
    this.#heard.push(block);
  }

  /** The text, with that of a window of which the rest is still to come. */
  async soFar() {
    await this.#writeWindows(this.#facts.frames + 2);
    const left = this.#left;
    if (left <= 0) return this.transcript();
    await this.#take(left);
    const text = await this.#textAt(0, 1);
    return this.transcript(this.#isSilent(text) ? [] : this.#partsOf(text, left).parts);
  }

  /**
   * Write down all that is left. The loudest of all of it decides what is silent.
   * @param {() => void} [onWindow] is called after each window
   */
  async finish(onWindow) {
    const { frames } = this.#facts;
    const end = this.#left > frames ? this.#place + this.#left : 0; // one window is heard at once
    for (let first = this.#place; first < end; first += frames) this.#peak = Math.max(this.#peak, await this.#model.hear(this.#window(first), [], 0));
    await this.#writeWindows(1, onWindow);
  }

  /** @param {SpokenPart[]} [more] */
  transcript(more = []) {
    const parts = [...this.#parts, ...more];
    const chunks = parts.map(({ tokens, ...part }) => part);
    return { text: parts.reduce((text, part) => text + part.text, "").trim(), language: this.#language ?? "", chunks };
  }

  /** Frames that were heard and are not written down. */
  get #left() {
    return Math.floor(this.#heard.count / this.#facts.step) - this.#place;
  }

  /**
   * The first sample that a frame is computed of, which may be before the sound: a whole number for odd lengths too.
   * @param {number} frame
   */
  #beginOf(frame) {
    return frame * this.#facts.step - Math.floor(this.#facts.length / 2);
  }

  /**
   * The samples of a window: before the sound it is mirrored, after it there is silence.
   * @param {number} first
   */
  #window(first) {
    const { step, length, frames } = this.#facts;
    const begin = this.#beginOf(first);
    const found = new Float32Array(frames * step + length - step);
    const start = Math.max(begin, 0);
    const samples = this.#heard.between(start, Math.max(start, Math.min(this.#heard.count, begin + found.length)));
    found.set(samples, start - begin);
    for (let at = 1; at <= -begin && at < samples.length; at++) found[-begin - at] = samples[at];
    return found;
  }

  /**
   * Let the model hear the window of so many frames.
   * @param {number} size
   */
  async #take(size) {
    this.#peak = await this.#model.hear(this.#window(this.#place), [this.#peak], size);
    if (this.#language !== null) return;
    this.#model.begin();
    const [scores] = (await this.#model.add([this.#tokens.marks.start])).scores;
    const codes = Object.entries(this.#tokens.marks.languages);
    this.#language = codes.reduce((best, one) => (scores[one[1]] > scores[best[1]] ? one : best))[0];
  }

  /**
   * Write down windows while at least so many frames are left.
   * @param {number} least
   * @param {() => void} [onWindow]
   */
  async #writeWindows(least, onWindow) {
    while (this.#left >= least) {
      const size = Math.min(this.#left, this.#facts.frames);
      await this.#take(size);
      const text = await this.#text();
      if (this.#isSilent(text)) this.#place += size;
      else {
        const { parts, used } = this.#partsOf(text, size);
        const said = parts.filter((part) => part.text.trim() && part.start !== part.end);
        this.#parts.push(...(this.#how.words ? await this.#withWords(said, size) : said));
        this.#before = text.temperature > this.#facts.rules.drawn ? [] : [...this.#before, ...said.flatMap(({ tokens }) => tokens)];
        this.#place += used;
      }
      this.#heard.letGo(this.#beginOf(this.#place));
      onWindow?.();
    }
  }

  get #begun() {
    return this.#tokens.begun(this.#language, this.#how.translate);
  }

  /**
   * @param {number} temperature
   * @param {number} beams
   */
  #textAt(temperature, beams) {
    return windowText(this.#model, this.#tokens, this.#before, this.#begun, { temperature, beams, draws: this.#draws });
  }

  /** The text of the window, at the first temperature of which it is fit. */
  async #text() {
    const { temperatures, unsure, repeating, silent } = this.#facts.rules;
    let text = await this.#textAt(temperatures[0], this.#how.beams);
    for (const temperature of temperatures.slice(1)) {
      const isUnsure = text.likelihood < unsure;
      if (!(isUnsure || text.repetition > repeating) || (isUnsure && text.noSpeech > silent)) break;
      text = await this.#textAt(temperature, this.#how.beams);
    }
    return text;
  }

  /** @param {WindowText} text */
  #isSilent({ noSpeech, likelihood }) {
    return noSpeech > this.#facts.rules.silent && likelihood <= this.#facts.rules.unsure;
  }

  /**
   * The parts of a window's text, and how many frames of it they cover.
   * @param {WindowText} text
   * @param {number} size
   */
  #partsOf({ tokens, likelihood }, size) {
    const { times } = this.#tokens.marks;
    const first = this.#seconds;
    const part = (/** @type {number[]} */ own, /** @type {number} */ start, /** @type {number} */ end) => {
      const { seconds } = this.#facts.rules;
      return { text: this.#tokens.text(own), start: first + start * seconds, end: first + end * seconds, score: Math.exp(likelihood), tokens: own };
    };
    const isTime = tokens.map((id) => id >= times);
    const ends = isTime.flatMap((is, k) => (k && is && isTime[k - 1] ? [k] : []));
    const isClosed = isTime.at(-1) === true && isTime.at(-2) === false;
    if (!ends.length) {
      const last = (tokens.findLast((id) => id >= times) ?? times) - times;
      return { parts: [part(tokens, 0, last || Math.floor(size / 2))], used: size };
    }
    if (isClosed) ends.push(tokens.length);
    const parts = ends.map((end, k) => {
      const own = tokens.slice(k ? ends[k - 1] : 0, end);
      return part(own, own[0] - times, /** @type {number} */ (own.at(-1)) - times);
    });
    return { parts, used: isClosed ? size : 2 * (tokens[/** @type {number} */ (ends.at(-1)) - 1] - times) };
  }

  /** Where the window begins. */
  get #seconds() {
    return (this.#place * this.#facts.step) / this.#facts.rate;
  }

  /**
   * The parts of the window that the model hears, with the times of their words.
   * @param {SpokenPart[]} parts
   * @param {number} frames
   */
  async #withWords(parts, frames) {
    const texts = parts.map(({ tokens }) => tokens.filter((id) => id < this.#tokens.marks.end));
    const words = await timedWords(this.#model, this.#tokens, this.#facts, { begun: this.#begun, ids: texts.flat(), frames, language: this.#language ?? "" });
    const at = (/** @type {number} */ seconds) => Math.round((this.#seconds + seconds) * 100) / 100;
    return parts.map((part, k) => {
      const own = [];
      for (let count = 0; words.length && count < texts[k].length; ) {
        const word = /** @type {typeof words[0]} */ (words.shift());
        count += word.count;
        own.push({ text: word.text, start: at(word.start), end: at(word.end), score: word.score });
      }
      return { ...part, words: own };
    });
  }
}

/**
 * @param {Model} model
 * @param {HearingTokens} tokens
 * @param {HearingFacts} facts
 * @param {Chosen} chosen
 * @param {AbortSignal} [signal]
 */
function courseOf(model, tokens, facts, chosen, signal) {
  const how = /** @type {Hearing} */ (/** @type {unknown} */ (chosen));
  if (!(Number.isInteger(how.beams) && how.beams > 0 && how.beams <= facts.texts)) throw refuse(`beams ${how.beams}, expected a number from 1 to ${facts.texts}`);
  if (typeof how.prompt !== "string") throw refuse(`prompt: got ${typeof how.prompt}, expected a text`);
  if (how.language !== null) tokens.begun(how.language, how.translate);
  else if (!tokens.hasLanguages) tokens.begun("en", how.translate);
  const hearing = new HearingModel(/** @type {Session} */ (/** @type {unknown} */ (model.session())), facts, signal);
  return { course: new Course(hearing, tokens, facts, how), close: () => hearing.close() };
}

/** @type {TaskMedium} */
export const medium = {
  kinds: { transcribe: true },
  whyNot({ preparation, files }) {
    const fact = (/** @type {string} */ name) => name.split(".").reduce((/** @type {any} */ facts, key) => Object(facts)[key], preparation);
    const wrong = FACTS.flatMap(([is, table, names]) => names.map((name) => table + name).filter((name) => !is(fact(name))));
    if (wrong.length) return `it does not say how it hears: ${wrong.join(", ")}`;
    return files?.[TOKENIZER] ? "" : `no ${TOKENIZER} travels with it`;
  },
  async open(info, file, _, given) {
    const facts = factsOf(info);
    const model = /** @type {Model} */ (given);
    const tokenizer = new Tokenizer(await file(TOKENIZER, "values"));
    const tokens = new HearingTokens(facts, tokenizer);
    return coursesOfSounds(facts.rate, facts.rules.live, (chosen, signal) => courseOf(model, tokens, facts, chosen, signal));
  },
};
