/**
 * Encoders with a decoder: texts by the rules of a generation_config.json, as core/singe/language/encoder_decoders/generating.py chooses them.
 *
 * Contract: `generated(model, rules)` gives the tokens of the text about what a `PairModel` heard. Its Program is that of
 * core/singe/language/encoder_decoders/running.py.
 */

/** @import { Session, FollowedText, Ending } from "./singe-task-beams.js" */

import { SingeError } from "../../program/singe-format.js";
import { SayingModel, highestOf, likeliest, logChances, sideBySide, sized } from "./singe-task-beams.js";

/**
 * The keys of a generation_config.json, all of which a bundle has.
 * @typedef {{
 *   decoder_start_token_id: number, eos_token_id: number[], max_new_tokens: number, num_beams: number, length_penalty: number,
 *   early_stopping: boolean | "never", bad_words_ids: number[][], forced_bos_token_id: number | null, forced_eos_token_id: number | null,
 *   min_length: number, no_repeat_ngram_size: number, renormalize_logits: boolean,
 * }} GenerationConfig
 */
/** @typedef {{ room: [number, number], vocabulary: number, texts: number }} PairFacts */

export const isCount = (/** @type {unknown} */ value, least = 0) => Number.isSafeInteger(value) && Number(value) >= least && Number(value) < 2 ** 31;
const isFlag = (/** @type {unknown} */ value) => typeof value === "boolean";
export const isToken = (/** @type {unknown} */ value, /** @type {number} */ vocabulary) => isCount(value) && !(Number(value) >= vocabulary);
export const isTokenOrNull = (/** @type {unknown} */ value, /** @type {number} */ vocabulary) => value === null || isToken(value, vocabulary);
const areTokens = (/** @type {unknown} */ value, /** @type {number} */ vocabulary) =>
  Array.isArray(value) && value.length > 0 && value.every((token) => isToken(token, vocabulary));
/** @type {Record<keyof GenerationConfig, (value: any, vocabulary: number) => boolean>} */
const RULES = {
  decoder_start_token_id: isToken,
  eos_token_id: areTokens,
  max_new_tokens: (value) => isCount(value, 1),
  num_beams: (value) => isCount(value, 1),
  length_penalty: Number.isFinite,
  early_stopping: (value) => isFlag(value) || value === "never",
  bad_words_ids: (value, vocabulary) => Array.isArray(value) && value.every((word) => areTokens(word, vocabulary)),
  forced_bos_token_id: isTokenOrNull,
  forced_eos_token_id: isTokenOrNull,
  min_length: (value) => isCount(value),
  no_repeat_ngram_size: (value) => isCount(value),
  renormalize_logits: isFlag,
};

/**
 * The facts of an encoder and a decoder that are missing or wrong.
 * @param {any} facts
 * @returns {string[]}
 */
export function wrongFacts(facts) {
  const { room, vocabulary, texts } = Object(facts);
  const isRoom = Array.isArray(room) && room.length === 2 && room.every((size) => isCount(size, 1));
  return Object.entries({ room: isRoom, vocabulary: isCount(vocabulary, 1), texts: isCount(texts, 1) }).flatMap(([name, is]) => (is ? [] : [name]));
}

/**
 * The rules that are missing or wrong for a model that scores so many tokens, of which `wrongFacts` says whether it is a number.
 * @param {any} rules
 * @param {number} vocabulary
 * @returns {string[]}
 */
export const wrongRules = (rules, vocabulary) => Object.entries(RULES).flatMap(([name, is]) => (is(Object(rules)[name], vocabulary) ? [] : [name]));

/**
 * The rules with as many texts side by side as a call asks for.
 * @param {GenerationConfig} rules
 * @param {number | null} beams
 * @param {PairFacts} facts
 * @param {string} kind
 * @returns {GenerationConfig}
 */
export function withBeams(rules, beams, { texts }, kind) {
  if (beams === null) return rules;
  if (!isCount(beams, 1) || beams > texts) throw new SingeError("input", `${kind}: beams ${beams}, expected a number from 1 to ${texts}`);
  return { ...rules, num_beams: beams };
}

/** What reads a source once, and says texts about it. */
export class PairModel extends SayingModel {
  #heard = 0;

  /**
   * @param {Session} session
   * @param {PairFacts} facts
   * @param {{ data: Int32Array | Float32Array, shape: number[] }} nothing a source of nothing
   * @param {AbortSignal} [signal]
   */
  constructor(session, facts, nothing, signal) {
    super(session, facts, { source: nothing }, signal);
  }

  /**
   * @param {{ data: Int32Array | Float32Array, shape: number[] }} source
   * @param {number} count how many tokens or samples it has
   */
  async hear(source, count) {
    this.#heard = count;
    await this.run({ source });
    this.begin();
  }

  /**
   * @param {Record<string, any>} inputs
   * @protected
   */
  run(inputs) {
    return super.run({ heard: sized(this.#heard), ...inputs });
  }
}

/**
 * The logarithms of the chances of what comes after these tokens.
 * @param {GenerationConfig} rules
 * @param {Float32Array} scores
 * @param {readonly number[]} said
 */
function chancesBy(rules, scores, said) {
  const { forced_bos_token_id: first, forced_eos_token_id: last, max_new_tokens: most, no_repeat_ngram_size: size } = rules;
  const forced = !said.length && first !== null ? first : said.length === most - 1 ? last : null;
  if (forced !== null) {
    const only = new Float32Array(scores.length).fill(-Infinity);
    only[forced] = 0;
    return only;
  }
  const chances = logChances(scores);
  const told = [rules.decoder_start_token_id, ...said];
  if (size) for (const token of repeated(told, size)) chances[token] = -Infinity;
  for (const word of rules.bad_words_ids) {
    const before = told.slice(told.length + 1 - word.length);
    if (word.length === 1 || (before.length === word.length - 1 && before.every((token, k) => token === word[k]))) chances[/** @type {number} */ (word.at(-1))] = -Infinity;
  }
  if (told.length < rules.min_length) for (const token of rules.eos_token_id) chances[token] = -Infinity;
  return rules.renormalize_logits && highestOf(chances) > -Infinity ? logChances(chances) : chances;
}

/**
 * What followed when the last size − 1 tokens came before.
 * @param {readonly number[]} told
 * @param {number} size
 */
function repeated(told, size) {
  const last = told.length + 1 - size;
  const found = [];
  for (let k = 0; k <= told.length - size; k++) {
    let length = 0;
    while (length < size - 1 && told[k + length] === told[last + length]) length++;
    if (length === size - 1) found.push(told[k + size - 1]);
  }
  return found;
}

/**
 * The likeliest for their length, of those that ended among the best of a step.
 * @implements {Ending}
 */
class BestEnded {
  #rules;
  #isOpen = true; // whether one that goes on can still become better
  /** @type {{ worth: number, tokens: number[] }[]} */
  texts = [];

  /** @param {GenerationConfig} rules */
  constructor(rules) {
    this.#rules = rules;
  }

  /**
   * @param {readonly FollowedText[]} best
   * @param {readonly FollowedText[]} going
   * @param {boolean} isLast
   */
  take(best, going, isLast) {
    const { num_beams: count, length_penalty: penalty, early_stopping: early, eos_token_id: ends, max_new_tokens: most } = this.#rules;
    const { length } = best[0].tokens;
    const isFull = () => this.texts.length === count;
    if (this.#isOpen && !(isFull() && early === true)) {
      const ended = best.slice(0, count).filter(({ tokens }) => isLast || ends.includes(/** @type {number} */ (tokens.at(-1))));
      this.texts.push(...ended.map(({ tokens, total }) => ({ worth: total / length ** penalty, tokens })));
      this.texts.sort((a, b) => b.worth - a.worth);
      this.texts.length = Math.min(this.texts.length, count);
    }
    const longest = early === "never" && penalty > 0 ? most : length;
    this.#isOpen &&= !isFull() || Math.max(...going.map(({ total }) => total)) / longest ** penalty > this.texts[count - 1].worth;
    return !this.#isOpen || (isFull() && early === true);
  }
}

/**
 * The tokens of the text about what the model heard, and whether it was said to its end.
 * @param {PairModel} model
 * @param {GenerationConfig} rules
 * @param {(tokens: readonly number[]) => void} [onToken] is called after each token, where one text is followed
 */
export async function generated(model, rules, onToken) {
  const { eos_token_id: ends, max_new_tokens: most, num_beams: count } = rules;
  const chances = chancesBy.bind(undefined, rules);
  model.begin();
  let [scores] = (await model.add([rules.decoder_start_token_id])).scores;
  /** @type {number[]} */
  let tokens = [];
  if (count > 1) {
    const ending = new BestEnded(rules);
    await sideBySide(model, scores, { count, chances, ends, most, ending });
    ({ tokens } = ending.texts[0]);
  } else {
    for (;;) {
      const token = likeliest(chances(scores, tokens));
      tokens.push(token);
      onToken?.(tokens);
      if (ends.includes(token) || tokens.length >= most) break;
      [scores] = (await model.add([token])).scores;
    }
  }
  const isEnded = ends.includes(/** @type {number} */ (tokens.at(-1)));
  return { tokens: tokens.filter((token) => !ends.includes(token)), isWhole: isEnded && (tokens.length < most || rules.forced_eos_token_id === null) };
}
