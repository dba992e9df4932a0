/**
 * The choice of a token among the scores of all.
 *
 * Contract: `sampler(options)` checks the options and gives `choose(logits, seen)`, the id of a token: with temperature 0 the
 * likeliest, of equal ones the first; else one drawn from what `topK`, `topP` and `minP` leave. `seen` are the tokens so far: the
 * penalties count the last `LAST` of them. Equal seeds draw equal numbers. `logits` are changed. `row(tokens)` are the numbers with
 * which a run of the decoder chooses the next of so many tokens, if `byRuns` says that it can: see language/choosing.py. `chance` is
 * what the model says of a token, before all options.
 */

/** @import { SamplingOptions } from "../types/public.d.ts" */

import { SingeError } from "../program/singe-format.js";

/** How many of the last tokens are penalised for coming again. */
export const LAST = 64;

/** @type {{ [name: string]: [number, (value: number) => boolean, string] }} an option ↦ its default, what it may be, and that in words */
const NUMBERS = {
  temperature: [0.8, (x) => x >= 0, "0 or more"],
  topK: [40, (x) => Number.isInteger(x) && x >= 0, "an integer, 0 for all tokens"],
  topP: [0.95, (x) => x > 0 && x <= 1, "above 0, at most 1"],
  minP: [0.05, (x) => x >= 0 && x <= 1, "from 0 to 1"],
  repeatPenalty: [1, (x) => x > 0, "above 0; 1 changes nothing"],
  presencePenalty: [0, Number.isFinite, "a number"],
  frequencyPenalty: [0, Number.isFinite, "a number"],
};
export const SAMPLING = [...Object.keys(NUMBERS), "seed"];
/** In the place of a token: that which the run before has chosen. */
export const LATEST = -1;
const NO_TOKEN = -2;
/** A run draws one of so many tokens at most. */
const MOST_DRAWN = 64;

/** The inputs of a run that chooses no token. */
export const NOT_CHOSEN = Object.freeze({
  sampling: { data: new Float32Array(0), shape: [0, Object.keys(NUMBERS).length + 2] },
  before: { data: new Int32Array(0), shape: [0, LAST] },
});

/**
 * The inputs of a run that chooses one.
 * @param {Float32Array<ArrayBuffer>} row
 * @param {readonly number[]} seen
 */
export function choosing(row, seen) {
  const before = new Int32Array(LAST).fill(NO_TOKEN);
  before.set(seen.slice(-LAST));
  return { sampling: { data: row, shape: [1, row.length] }, before: { data: before, shape: [1, LAST] } };
}

/**
 * @param {SamplingOptions} options
 */
export function sampler(options) {
  const own = /** @type {Record<string, number | undefined>} */ (options);
  const [temperature, topK, topP, minP, repeat, presence, frequency] = Object.entries(NUMBERS).map(([name, [otherwise, fits, expected]]) => {
    const value = own[name] ?? otherwise;
    if (typeof value !== "number" || !fits(value)) throw new SingeError("input", `${name}: got ${value}, expected a number, ${expected}`);
    return value;
  });
  const { seed } = own;
  if (seed !== undefined && !Number.isSafeInteger(seed)) throw new SingeError("input", `seed: got ${seed}, expected an integer`);
  const draw = generator(seed ?? Math.floor(Math.random() * 2 ** 32));

  /**
   * @param {Float32Array} logits
   * @param {readonly number[]} seen
   */
  const choose = (logits, seen) => {
    if (repeat !== 1 || presence || frequency) penalise(logits, seen.slice(-LAST), repeat, presence, frequency);
    if (!temperature) return likeliest(logits);
    const ids = best(logits, topK || logits.length);
    const highest = logits[ids[0]];
    if (!Number.isFinite(highest)) throw noNumbers(highest);
    const chances = ids.map((id) => Math.exp(logits[id] - highest));
    let total = chances.reduce((sum, chance) => sum + chance, 0);
    let count = 0;
    for (let sum = 0; count < ids.length && sum < topP * total && chances[count] >= minP; count++) sum += chances[count];
    const weights = ids.slice(0, Math.max(count, 1)).map((id) => Math.exp((logits[id] - highest) / temperature));
    total = weights.reduce((sum, weight) => sum + weight, 0);
    let left = draw() * total;
    const drawn = weights.findIndex((weight) => (left -= weight) < 0);
    return ids[drawn < 0 ? weights.length - 1 : drawn];
  };
  return {
    choose,
    byRuns: !temperature || (topK > 0 && topK <= MOST_DRAWN),
    /** @param {number} tokens */
    row: (tokens) => Float32Array.of(temperature, temperature ? topK : 1, topP, minP, repeat, presence, frequency, temperature ? draw() : 0, tokens),
  };
}

/**
 * The logarithm of a token's probability among all, and the likeliest ones with theirs.
 * @param {Float32Array} scores as the model gave them
 * @param {number} token
 * @param {number} count how many of the likeliest
 */
export function chance(scores, token, count) {
  const highest = scores.reduce((most, score) => Math.max(most, score), -Infinity);
  const total = highest + Math.log(scores.reduce((sum, score) => sum + Math.exp(score - highest), 0));
  return { token, logprob: scores[token] - total, likeliest: best(scores, count).map((id) => /** @type {[number, number]} */ ([id, scores[id] - total])) };
}

/** @param {number | string} highest */
export const noNumbers = (highest) => new SingeError("input", `the model's highest score is ${highest}: its weights or its prompt give no numbers`);

/** @param {Float32Array} logits */
function likeliest(logits) {
  let found = 0;
  for (let id = 1; id < logits.length; id++) if (logits[id] > logits[found]) found = id;
  if (!Number.isFinite(logits[found])) throw noNumbers(logits[found]);
  return found;
}

/**
 * The ids of the `count` highest scores, the highest first, of equal ones the first. One pass: few scores are among the highest so far.
 * @param {Float32Array} logits
 * @param {number} count
 */
function best(logits, count) {
  if (count >= logits.length) return Array.from(logits.keys()).sort((a, b) => logits[b] - logits[a] || 0); // of tokens that may not follow it is NaN
  /** @type {number[]} */
  const ids = [];
  for (let id = 0; id < logits.length; id++) {
    const score = logits[id];
    if (ids.length === count && !(score > logits[ids[count - 1]])) continue;
    let at = ids.length;
    while (at && score > logits[ids[at - 1]]) at--;
    ids.splice(at, 0, id);
    ids.length = Math.min(ids.length, count);
  }
  return ids;
}

/**
 * @param {Float32Array} logits
 * @param {readonly number[]} seen
 * @param {number} repeat
 * @param {number} presence
 * @param {number} frequency
 */
function penalise(logits, seen, repeat, presence, frequency) {
  /** @type {Map<number, number>} */
  const counts = new Map();
  for (const id of seen) counts.set(id, (counts.get(id) ?? 0) + 1);
  for (const [id, count] of counts) {
    const score = logits[id];
    logits[id] = (score > 0 ? score / repeat : score * repeat) - presence - frequency * count;
  }
}

/**
 * Numbers of [0, 1) from a seed: SplitMix32's.
 * @param {number} seed
 */
export function generator(seed) {
  let state = (seed ^ Math.floor(seed / 2 ** 32)) | 0;
  return () => {
    state = (state + 0x9e3779b9) | 0;
    let z = Math.imul(state ^ (state >>> 16), 0x21f0aaad);
    z = Math.imul(z ^ (z >>> 15), 0x735a2d97);
    return ((z ^ (z >>> 15)) >>> 0) / 2 ** 32;
  };
}
