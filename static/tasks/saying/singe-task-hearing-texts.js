/**
 * The text of a window of sound: token by token the likeliest, or drawn, or several texts side by side of which the likeliest is kept.
 *
 * Contract: what core/singe/speech/tokens.py and search.py do, by the tables that a bundle has of them. `HearingModel` is a session of the
 * Program of core/singe/speech/whisper/whole.py: the sizes of its inputs choose what a run does.
 */

/** @import { Chances, Ending, FollowedText, Session } from "./singe-task-beams.js" */

import { generator } from "../../language/singe-language-sampling.js";
import { SingeError } from "../../program/singe-format.js";
import { SayingModel, floats, highestOf, likeliest, logChances, logSum, sideBySide, sized, whole } from "./singe-task-beams.js";

/** @typedef {{ end: number, start: number, before: number, transcribe: number, translate: number, no_speech: number, no_times: number, times: number, never: number[], never_first: number[], first_times: number, languages: Record<string, number> }} Marks */
/** @typedef {{ temperatures: number[], repeating: number, unsure: number, silent: number, drawn: number, live: number, seconds: number }} TextRules */
/** @typedef {{ smoothed: number, longest: number, before: string, behind: string, ends: string, unspaced: string[] }} WordRules */
/** @typedef {{ rate: number, step: number, length: number, frames: number, positions: number, room: number, vocabulary: number, texts: number, tokens: Marks, rules: TextRules, words: WordRules }} HearingFacts */
/** @typedef {{ decode(ids: number[]): string, encode(text: string, options: { addSpecial: boolean }): number[] }} TextTokenizer */
/** @typedef {{ tokens: number[], likelihood: number, noSpeech: number, temperature: number, text: string, repetition: number }} WindowText */
/** @typedef {ReturnType<typeof generator>} Draws */

const NOTHING = { data: new Float32Array(), shape: [0] };

/** What hears a window, and says texts about it. */
export class HearingModel extends SayingModel {
  /**
   * @param {Session} session
   * @param {HearingFacts} facts
   * @param {AbortSignal} [signal]
   */
  constructor(session, facts, signal) {
    super(session, facts, { samples: NOTHING, peak: NOTHING, count: whole([0]), looked: sized(0) }, signal);
  }

  /**
   * @param {Float32Array} samples of a window
   * @param {readonly number[]} peak the largest power so far; none: nothing is heard
   * @param {number} count how many frames of it are of the sound
   * @returns {Promise<number>} the largest power
   */
  async hear(samples, peak, count) {
    const { loudest } = await this.run({
      samples: { data: samples, shape: [samples.length] },
      peak: { data: Float32Array.from(peak), shape: [peak.length] },
      count: whole([count]),
    });
    return floats(loudest)[0];
  }

  /**
   * Add the tokens of a text: the scores after each, and what each looks at (heads · tokens · positions).
   * @param {readonly number[]} ids
   */
  async align(ids) {
    this.begin();
    const { outputs, scores } = await this.add(ids, ids.length, { looked: sized(ids.length) });
    return { scores, seen: floats(outputs.seen) };
  }
}

/** The tokens of a model: which begin a text, and which may come next. */
export class HearingTokens {
  /**
   * @param {HearingFacts} facts
   * @param {TextTokenizer} tokenizer
   */
  constructor({ tokens, room }, tokenizer) {
    this.marks = tokens;
    this.room = room;
    this.tokenizer = tokenizer;
    this.hasLanguages = Object.keys(tokens.languages).length > 0;
  }

  /**
   * @param {string | null} language
   * @param {boolean} translate
   */
  begun(language, translate) {
    const { languages, start, transcribe, translate: toEnglish } = this.marks;
    if (!this.hasLanguages) {
      if (translate || (language !== null && language !== "en")) throw refuse("the model knows English alone; leave language and translate out, or take another model");
      return [start];
    }
    if (language === null || !Object.hasOwn(languages, language)) throw refuse(`language ${JSON.stringify(language)}, expected one of ${Object.keys(languages).join(", ")}`);
    return [start, languages[language], translate ? toEnglish : transcribe];
  }

  /**
   * What stands before a text that follows another: the latest tokens of that.
   * @param {readonly number[]} before
   */
  after(before) {
    return before.length ? [this.marks.before, ...before.slice(1 - Math.floor(this.room / 2))] : [];
  }

  /** @param {readonly number[]} ids */
  text(ids) {
    return this.tokenizer.decode(ids.filter((id) => id < this.marks.end));
  }

  /**
   * Give tokens that may not come after those of the window a score of −∞.
   * @param {Float32Array} scores
   * @param {readonly number[]} said
   */
  allow(scores, said) {
    const { never, never_first: neverFirst, no_times: noTimes, first_times: firstTimes, times, end } = this.marks;
    const isTime = (/** @type {number | undefined} */ id) => id === undefined || id >= times;
    for (const id of never) scores[id] = -Infinity;
    scores[noTimes] = -Infinity;
    if (!said.length) {
      for (const id of neverFirst) scores[id] = -Infinity;
      scores.fill(-Infinity, 0, times);
      scores.fill(-Infinity, times + firstTimes + 1);
    } else {
      const [last, before] = [isTime(said.at(-1)), isTime(said.at(-2))];
      if (last && before) scores.fill(-Infinity, times);
      else if (last) scores.fill(-Infinity, 0, end);
      const latest = said.findLast((id) => id >= times);
      if (latest !== undefined) scores.fill(-Infinity, times, last && !before ? latest : latest + 1);
    }
    if (logSum(scores.subarray(times)) > highestOf(scores.subarray(0, times))) scores.fill(-Infinity, 0, times);
  }
}

/** @param {string} what */
export const refuse = (what) => new SingeError("input", `transcribe: ${what}`);

/**
 * The text of the window that the model hears; before: the tokens of what was said before, begun: those with which it begins.
 * @param {HearingModel} model
 * @param {HearingTokens} tokens
 * @param {readonly number[]} before
 * @param {readonly number[]} begun
 * @param {{ temperature?: number, draws?: Draws, beams?: number }} [how]
 * @returns {Promise<WindowText>}
 */
export async function windowText(model, tokens, before, begun, { temperature = 0, draws, beams = 1 } = {}) {
  const { room, marks } = tokens;
  const prompt = [...tokens.after(before), ...begun];
  const most = Math.min(Math.floor(room / 2), room + 1 - prompt.length);
  model.begin();
  const { scores } = await model.add(prompt, begun.length);
  const noSpeech = Math.exp(scores[0][marks.no_speech] - logSum(scores[0]));
  const last = /** @type {Float32Array} */ (scores.at(-1));
  const [said, likelihood] = beams > 1 && !temperature ? await several(model, tokens, last, most, beams) : await one(model, tokens, last, most, temperature, draws);
  const text = tokens.text(said).trim();
  return { tokens: said, likelihood: likelihood / (said.length + 1), noSpeech, temperature, text, repetition: await repetition(text) };
}

/**
 * How many times shorter a text is when it is compressed.
 * @param {string} text
 */
async function repetition(text) {
  const bytes = new TextEncoder().encode(text);
  const packed = await new Response(new Blob([bytes]).stream().pipeThrough(new CompressionStream("deflate"))).arrayBuffer();
  return bytes.length / packed.byteLength;
}

/**
 * The tokens of a text, and the sum of the logarithms of their chances.
 * @param {HearingModel} model
 * @param {HearingTokens} tokens
 * @param {Float32Array} scores
 * @param {number} most
 * @param {number} temperature
 * @param {Draws} [draws]
 * @returns {Promise<[number[], number]>}
 */
async function one(model, tokens, scores, most, temperature, draws) {
  /** @type {number[]} */
  const said = [];
  let total = 0;
  while (said.length < most) {
    tokens.allow(scores, said);
    const token = temperature && draws ? drawn(scores, temperature, draws()) : likeliest(scores);
    total += scores[token] - logSum(scores);
    if (token === tokens.marks.end) break;
    said.push(token);
    if (said.length < most) scores = (await model.add([token])).scores[0];
  }
  return [said, total];
}

/**
 * @param {Float32Array} scores
 * @param {number} temperature
 * @param {number} chance
 */
function drawn(scores, temperature, chance) {
  const total = logSum(scores, temperature);
  let [left, last] = [chance, 0];
  for (let id = 0; id < scores.length; id++) {
    if (scores[id] === -Infinity) continue;
    last = id;
    left -= Math.exp(scores[id] / temperature - total);
    if (left < 0) return id;
  }
  return last;
}

/**
 * The first texts that ended, as many as are followed; at the last step those that go on fill up the rest.
 * @implements {Ending}
 */
class FirstEnded {
  /** @type {{ said: number[], total: number }[]} */
  #ended = [];
  #count;
  #end;

  /**
   * @param {number} count
   * @param {number} end
   */
  constructor(count, end) {
    this.#count = count;
    this.#end = end;
  }

  /**
   * @param {readonly FollowedText[]} best
   * @param {readonly FollowedText[]} going
   * @param {boolean} isLast
   */
  take(best, going, isLast) {
    for (const text of best) {
      if (text === going.at(-1)) break;
      if (text.tokens.at(-1) === this.#end) this.#keep(text.tokens.slice(0, -1), text.total);
    }
    if (isLast) for (const { tokens, total } of going) this.#keep(tokens, total);
    return this.#ended.length === this.#count;
  }

  /**
   * @param {number[]} said
   * @param {number} total
   */
  #keep(said, total) {
    if (this.#ended.length < this.#count && !this.#ended.some((text) => text.said.join() === said.join())) this.#ended.push({ said, total });
  }

  /** The likeliest for its length, and the sum of the logarithms of its chances. @returns {[number[], number]} */
  best() {
    const worth = (/** @type {{ said: number[], total: number }} */ { said, total }) => total / Math.max(1, said.length);
    const { said, total } = this.#ended.reduce((a, b) => (worth(b) > worth(a) ? b : a));
    return [said, total];
  }
}

/**
 * The likeliest of several texts, for its length.
 * @param {HearingModel} model
 * @param {HearingTokens} tokens
 * @param {Float32Array} first
 * @param {number} most
 * @param {number} count
 */
async function several(model, tokens, first, most, count) {
  const { end } = tokens.marks;
  const ending = new FirstEnded(count, end);
  /** @type {Chances} */
  const chances = (scores, said) => {
    tokens.allow(scores, said);
    return logChances(scores);
  };
  await sideBySide(model, first, { count, chances, ends: [end], most, ending });
  return ending.best();
}
