/**
 * Tokens of texts about a source: one by one the likeliest, or several texts side by side of which the likeliest is kept.
 *
 * Contract: what core/singe/language/encoder_decoders/search.py does. `SayingModel` is a session of a Program whose inputs' sizes choose what a
 * run does (core/singe/language/encoder_decoders/running.py).
 */

/** @import { Output } from "../../types/public.d.ts" */

import { SingeError } from "../../program/singe-format.js";

/** @typedef {{ run(inputs: Record<string, any>, options?: { signal?: AbortSignal }): Promise<Record<string, Output>>, dispose(): Promise<void> }} Session */
/** @typedef {{ tokens: number[], total: number, source: number }} FollowedText the sum of the logarithms of its chances, and the text that it goes on from */
/** @typedef {(scores: Float32Array, said: readonly number[]) => Float32Array} Chances the logarithms of the chances of what comes after a text */
/**
 * Of the texts of a step, the likeliest first, `take` keeps those that ended; going: those that go on. Whether all are found.
 * @typedef {{ take(best: readonly FollowedText[], going: readonly FollowedText[], isLast: boolean): boolean }} Ending
 */

/** @param {number} size an input that has a size and no elements */
export const sized = (size) => ({ data: new Uint8Array(), shape: [size, 0] });
/** @param {readonly number[]} values */
export const whole = (values) => ({ data: Int32Array.from(values), shape: [values.length] });
/** @param {Output} output */
export const floats = ({ data }) => /** @type {Float32Array} */ (data);

/** What says texts about a source that it heard. */
export class SayingModel {
  #session;
  #facts;
  #empty;
  #signal;
  #used = 0;

  /**
   * @param {Session} session
   * @param {{ vocabulary: number, texts: number }} facts
   * @param {Record<string, any>} empty what its own inputs are while nothing is heard
   * @param {AbortSignal} [signal]
   */
  constructor(session, facts, empty, signal) {
    this.#session = session;
    this.#facts = facts;
    this.#empty = empty;
    this.#signal = signal;
  }

  /** Begin another text. */
  begin() {
    this.#used = 0;
  }

  /**
   * Add tokens to the text: the outputs, and the scores after each of the last `rows`.
   * @param {readonly number[]} ids
   * @param {number} [rows]
   * @param {Record<string, any>} [more] other inputs
   */
  async add(ids, rows = 1, more = {}) {
    this.#used += ids.length;
    const outputs = await this.run({ ids: whole(ids), keys: sized(this.#used), rows: sized(rows), ...more });
    return { outputs, scores: this.#byRow(outputs.scores) };
  }

  /**
   * Add a token to each of several texts, which go on from those that `order` names: the scores after each.
   * @param {readonly number[]} ids
   * @param {readonly number[]} order
   */
  async addEach(ids, order) {
    const all = (/** @type {readonly number[]} */ values) => whole(Array.from({ length: this.#facts.texts }, (_, k) => values[k] ?? values[0]));
    this.#used++;
    const { scores } = await this.run({ ids: all(ids), keys: sized(this.#used), rows: sized(1), order: all(order) });
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

  /**
   * @param {Record<string, any>} inputs
   * @protected
   */
  run(inputs) {
    const nothing = { ids: whole([]), keys: sized(0), rows: sized(0), order: whole([]) };
    return this.#session.run({ ...this.#empty, ...nothing, ...inputs }, { signal: this.#signal });
  }
}

/** @param {Float32Array} scores */
export function highestOf(scores) {
  let most = -Infinity;
  for (let k = 0; k < scores.length; k++) if (scores[k] > most) most = scores[k];
  return most;
}

/**
 * The logarithm of the sum of the powers of e.
 * @param {Float32Array} scores
 * @param {number} [scale] by which they are divided
 */
export function logSum(scores, scale = 1) {
  const most = highestOf(scores);
  let sum = 0;
  for (let k = 0; k < scores.length; k++) if (scores[k] > -Infinity) sum += Math.exp((scores[k] - most) / scale);
  return most / scale + Math.log(sum);
}

/** @param {Float32Array} scores */
export function logChances(scores) {
  const sum = logSum(scores);
  return scores.map((score) => score - sum);
}

/** @param {Float32Array} scores */
export function likeliest(scores) {
  let found = 0;
  for (let id = 1; id < scores.length; id++) if (scores[id] > scores[found]) found = id;
  return found;
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

/**
 * Follow several texts, until `ending` has found those that it wants.
 * @param {SayingModel} model
 * @param {Float32Array} first the scores before the first token
 * @param {{ count: number, chances: Chances, ends: readonly number[], most: number, ending: Ending }} how
 */
export async function sideBySide(model, first, { count, chances, ends, most, ending }) {
  if (new Set(ends.filter((token) => token < first.length)).size === first.length)
    throw new SingeError("input", `beams: the model scores ${first.length} tokens, each of which ends a text; expected some with which a text goes on`);
  /** @type {FollowedText[]} */
  let followed = [{ tokens: [], total: 0, source: 0 }];
  let scores = [first];
  for (let step = 0; step < most; step++) {
    const best = followed.flatMap(({ tokens, total }, source) => {
      const row = chances(scores[source], tokens);
      return highest(row, count + ends.length).map((token) => ({ tokens: [...tokens, token], total: total + row[token], source }));
    });
    best.sort((a, b) => b.total - a.total || a.source - b.source);
    const going = best.filter(({ tokens }) => !ends.includes(/** @type {number} */ (tokens.at(-1)))).slice(0, count);
    if (ending.take(best, going, step === most - 1) || step === most - 1) return;
    followed = going;
    const ids = going.map(({ tokens }) => /** @type {number} */ (tokens.at(-1)));
    const order = going.map(({ source }) => source);
    scores = await model.addEach(ids, order);
  }
}
