/**
 * The text of a window of sound: token by token the likeliest, or drawn, or several texts side by side of which the likeliest is kept.
 *
 * Contract: what core/singe/speech/tokens.py and search.py do, by the tables that a bundle has of them. `HearingModel` is a session of the
 * Program of core/singe/speech/whisper/whole.py: the sizes of its inputs choose what a run does.
 */

/** @import { Output } from "../types/public.d.ts" */

import { generator } from "../language/singe-language-sampling.js";
import { SingeError } from "../program/singe-format.js";

/** @typedef {{ run(inputs: Record<string, any>, options?: { signal?: AbortSignal }): Promise<Record<string, Output>>, dispose(): Promise<void> }} Session */
/** @typedef {{ end: number, start: number, before: number, transcribe: number, translate: number, no_speech: number, no_times: number, times: number, never: number[], never_first: number[], first_times: number, languages: Record<string, number> }} Marks */
/** @typedef {{ temperatures: number[], repeating: number, unsure: number, silent: number, drawn: number, live: number, seconds: number }} TextRules */
/** @typedef {{ smoothed: number, longest: number, before: string, behind: string, ends: string, unspaced: string[] }} WordRules */
/** @typedef {{ rate: number, step: number, length: number, frames: number, positions: number, room: number, vocabulary: number, texts: number, tokens: Marks, rules: TextRules, words: WordRules }} HearingFacts */
/** @typedef {{ decode(ids: number[]): string, encode(text: string, options: { addSpecial: boolean }): number[] }} TextTokenizer */
/** @typedef {{ tokens: number[], likelihood: number, noSpeech: number, temperature: number, text: string, repetition: number }} WindowText */
/** @typedef {ReturnType<typeof generator>} Draws */

const NOTHING = new Float32Array();
/** @param {number} size an input that has a size and no elements */
const sized = (size) => ({ data: new Uint8Array(), shape: [size, 0] });
/** @param {readonly number[]} values */
const whole = (values) => ({ data: Int32Array.from(values), shape: [values.length] });
/** @param {Output} output */
const floats = ({ data }) => /** @type {Float32Array} */ (data);

/** What hears a window, and says texts about it. */
export class HearingModel {
  #session;
  #facts;
  #signal;
  #used = 0;

  /**
   * @param {Session} session
   * @param {HearingFacts} facts
   * @param {AbortSignal} [signal]
   */
  constructor(session, facts, signal) {
    this.#session = session;
    this.#facts = facts;
    this.#signal = signal;
  }

  /**
   * @param {Float32Array} samples of a window
   * @param {readonly number[]} peak the largest power so far; none: nothing is heard
   * @param {number} count how many frames of it are of the sound
   * @returns {Promise<number>} the largest power
   */
  async hear(samples, peak, count) {
    const { loudest } = await this.#run({
      samples: { data: samples, shape: [samples.length] },
      peak: { data: Float32Array.from(peak), shape: [peak.length] },
      count: whole([count]),
    });
    return floats(loudest)[0];
  }

  /** Begin another text. */
  begin() {
    this.#used = 0;
  }

  /**
   * Add tokens to the text: the scores after each of the last `rows`, and what the last `looked` look at (heads · looked · positions).
   * @param {readonly number[]} ids
   * @param {number} [rows]
   * @param {number} [looked]
   */
  async say(ids, rows = 1, looked = 0) {
    this.#used += ids.length;
    const { scores, seen } = await this.#run({ ids: whole(ids), keys: sized(this.#used), rows: sized(rows), looked: sized(looked) });
    return { scores: this.#byRow(scores), seen: floats(seen) };
  }

  /**
   * Add a token to each of several texts, which go on from those that `order` names: the scores after each.
   * @param {readonly number[]} ids
   * @param {readonly number[]} order
   */
  async sayEach(ids, order) {
    const { texts } = this.#facts;
    const all = (/** @type {readonly number[]} */ values) => whole(Array.from({ length: texts }, (_, k) => values[k] ?? values[0]));
    this.#used++;
    const { scores } = await this.#run({ ids: all(ids), keys: sized(this.#used), rows: sized(1), order: all(order) });
    return this.#byRow(scores).slice(0, ids.length);
  }

  async close() {
    await this.#session.dispose();
  }

  /** @param {Output} scores */
  #byRow(scores) {
    const { vocabulary } = this.#facts;
    const data = floats(scores);
    return Array.from({ length: data.length / vocabulary }, (_, k) => data.subarray(k * vocabulary, (k + 1) * vocabulary));
  }

  /** @param {Record<string, any>} inputs */
  #run(inputs) {
    const nothing = { data: NOTHING, shape: [0] };
    const empty = { samples: nothing, peak: nothing, count: whole([0]), ids: whole([]), keys: sized(0), rows: sized(0), order: whole([]), looked: sized(0) };
    return this.#session.run({ ...empty, ...inputs }, { signal: this.#signal });
  }
}

/** @param {Float32Array} scores */
function highestOf(scores) {
  let most = -Infinity;
  for (let k = 0; k < scores.length; k++) if (scores[k] > most) most = scores[k];
  return most;
}

/**
 * The logarithm of the sum of the powers of e.
 * @param {Float32Array} scores
 * @param {number} [scale] by which they are divided
 */
function logSum(scores, scale = 1) {
  const most = highestOf(scores);
  let sum = 0;
  for (let k = 0; k < scores.length; k++) if (scores[k] > -Infinity) sum += Math.exp((scores[k] - most) / scale);
  return most / scale + Math.log(sum);
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
  const { scores } = await model.say(prompt, begun.length);
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
    if (said.length < most) scores = (await model.say([token])).scores[0];
  }
  return [said, total];
}

/** @param {Float32Array} scores */
function likeliest(scores) {
  let found = 0;
  for (let id = 1; id < scores.length; id++) if (scores[id] > scores[found]) found = id;
  return found;
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
 * The likeliest of several texts, for its length.
 * @param {HearingModel} model
 * @param {HearingTokens} tokens
 * @param {Float32Array} first
 * @param {number} most
 * @param {number} count
 * @returns {Promise<[number[], number]>}
 */
async function several(model, tokens, first, most, count) {
  /** @typedef {{ said: number[], total: number, source: number }} Line */
  /** @type {Line[]} */
  let lines = [{ said: [], total: 0, source: 0 }];
  let rows = [first];
  /** @type {Line[]} */
  const ended = [];
  for (let step = 0; step < most; step++) {
    const found = lines.flatMap(({ said, total }, source) => {
      const scores = rows[source];
      tokens.allow(scores, said);
      const sum = logSum(scores);
      return highest(scores, count + 1).map((token) => ({ said: [...said, token], total: total + scores[token] - sum, source }));
    });
    found.sort((a, b) => b.total - a.total);
    /** @type {Line[]} */
    const next = [];
    /** @type {Line[]} */
    const newly = [];
    for (const line of found) {
      if (line.said.at(-1) === tokens.marks.end) newly.push({ ...line, said: line.said.slice(0, -1) });
      else next.push(line);
      if (next.length === count) break;
    }
    ended.push(...newly.slice(0, count - ended.length));
    lines = next;
    if (ended.length === count || step === most - 1) break;
    const ids = lines.map(({ said }) => /** @type {number} */ (said.at(-1)));
    const order = lines.map(({ source }) => source);
    rows = await model.sayEach(ids, order);
  }
  for (const line of lines) if (ended.length < count && !ended.some(({ said }) => said.join() === line.said.join())) ended.push(line);
  const worth = (/** @type {Line} */ { said, total }) => total / Math.max(1, said.length);
  const best = ended.reduce((a, b) => (worth(b) > worth(a) ? b : a));
  return [best.said, best.total];
}

/**
 * The tokens of the highest scores, the highest first.
 * @param {Float32Array} scores
 * @param {number} count
 */
function highest(scores, count) {
  /** @type {number[]} */
  const ids = [];
  for (let id = 0; id < scores.length; id++) {
    if (ids.length === count && !(scores[id] > scores[ids[count - 1]])) continue;
    let at = ids.length;
    while (at && scores[id] > scores[ids[at - 1]]) at--;
    ids.splice(at, 0, id);
    ids.length = Math.min(ids.length, count);
  }
  return ids;
}
