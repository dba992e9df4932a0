/**
 * When each word of a window's text is said: by the heads of attention that follow the sound, and the cheapest path through what they see.
 *
 * Contract: `timedWords` does what core/singe/speech/words.py does, by the table that a bundle has of it.
 */

/** @import { HearingFacts, HearingModel, HearingTokens } from "./singe-task-hearing-texts.js" */

/** @typedef {{ text: string, start: number, end: number, score: number, count: number }} TimedWord */

const FRAMES_A_POSITION = 2;

/**
 * The words of tokens, each with how many it has: of languages without spaces, characters.
 * @param {readonly number[]} ids
 * @param {HearingTokens} tokens
 * @param {boolean} spaced
 */
function wordsOf(ids, tokens, spaced) {
  /** @type {[string, number][]} */
  const found = [];
  /** @type {number[]} */
  let held = [];
  for (const id of ids) {
    held.push(id);
    const text = tokens.text(held);
    if (text.endsWith("\ufffd")) continue;
    const last = found.at(-1);
    if (last && spaced && !text.startsWith(" ") && /[\p{L}\p{N}]/u.test(text)) {
      last[0] += text;
      last[1] += held.length;
    } else found.push([text, held.length]);
    held = [];
  }
  return held.length ? [...found, /** @type {[string, number]} */ ([tokens.text(held), held.length])] : found;
}

/**
 * The words of tokens of text that were said of the window that the model hears, of so many frames.
 * @param {HearingModel} model
 * @param {HearingTokens} tokens
 * @param {HearingFacts} facts
 * @param {{ begun: readonly number[], ids: readonly number[], frames: number, language: string }} said
 * @returns {Promise<TimedWord[]>}
 */
export async function timedWords(model, tokens, facts, { begun, ids, frames, language }) {
  if (!ids.length) return [];
  const {
    words: rules,
    positions,
    rules: { seconds },
  } = facts;
  const all = [...begun, tokens.marks.no_times, ...ids, tokens.marks.end];
  const { scores, seen } = await model.align(all);
  const chances = ids.map((id, k) => chanceOf(scores[begun.length + k].subarray(0, tokens.marks.end), id));
  const count = Math.floor(frames / FRAMES_A_POSITION);
  const looks = followed(seen, all.length, positions, count, rules.smoothed).slice(begun.length, -1);
  const begins = pathBegins(looks, count).map((place) => place * seconds);
  /** @type {TimedWord[]} */
  const found = [];
  let at = 0;
  for (const [text, size] of wordsOf(ids, tokens, !rules.unspaced.includes(language))) {
    const score = chances.slice(at, at + size).reduce((sum, one) => sum + one, 0) / size;
    found.push({ text, start: begins[at], end: begins[at + size], score, count: size });
    at += size;
  }
  return withMarks(withoutPauses(found, rules), rules);
}

/**
 * @param {Float32Array} scores
 * @param {number} id
 */
function chanceOf(scores, id) {
  const most = scores.reduce((a, b) => Math.max(a, b), -Infinity);
  return Math.exp(scores[id] - most) / scores.reduce((sum, score) => sum + Math.exp(score - most), 0);
}

/**
 * How much each token looks at each of the first `count` positions, more than others do.
 * @param {Float32Array} seen (heads, tokens, positions)
 * @param {number} tokens
 * @param {number} positions
 * @param {number} count
 * @param {number} smoothed
 */
function followed(seen, tokens, positions, count, smoothed) {
  const heads = seen.length / tokens / positions;
  const mean = Array.from({ length: tokens }, () => new Float64Array(count));
  for (let head = 0; head < heads; head++) {
    const rows = Array.from({ length: tokens }, (_, k) => softened(seen.subarray((head * tokens + k) * positions).subarray(0, count)));
    for (let at = 0; at < count; at++) {
      const column = rows.map((row) => row[at]);
      const middle = column.reduce((sum, x) => sum + x, 0) / tokens;
      const deviation = Math.sqrt(column.reduce((sum, x) => sum + (x - middle) ** 2, 0) / tokens) || 1;
      for (const row of rows) row[at] = (row[at] - middle) / deviation;
    }
    for (const [k, row] of rows.entries()) {
      const plain = medians(row, smoothed);
      for (let at = 0; at < count; at++) mean[k][at] += plain[at] / heads;
    }
  }
  return mean;
}

/** @param {Float32Array} scores */
function softened(scores) {
  const most = scores.reduce((a, b) => Math.max(a, b), -Infinity);
  const raised = Float64Array.from(scores, (score) => Math.exp(score - most));
  const sum = raised.reduce((a, b) => a + b, 0);
  return raised.map((x) => x / sum);
}

/**
 * The median of so many places around each; beyond the ends they are mirrored.
 * @param {Float64Array} row
 * @param {number} width
 */
function medians(row, width) {
  const side = width >> 1;
  if (row.length <= side) return row;
  const last = row.length - 1;
  const mirrored = (/** @type {number} */ at) => row[at < 0 ? -at : at > last ? 2 * last - at : at];
  const around = new Float64Array(width);
  return row.map((_, at) => {
    for (let k = 0; k < width; k++) around[k] = mirrored(at + k - side);
    return around.sort()[side];
  });
}

/**
 * Where each row of the dearest way from the first to the last place begins, which never goes back.
 * @param {Float64Array[]} worth by row
 * @param {number} columns
 */
function pathBegins(worth, columns) {
  const rows = worth.length;
  const width = columns + 1;
  const total = new Float64Array((rows + 1) * width).fill(Infinity);
  total[0] = 0;
  const came = new Uint8Array(total.length); // 0: along both, 1: from the row before, 2: from the column before
  came.fill(2, 0, width);
  for (let row = 1; row <= rows; row++) {
    came[row * width] = 1;
    for (let column = 1; column <= columns; column++) {
      const at = row * width + column;
      const [both, up, left] = [total[at - width - 1], total[at - width], total[at - 1]];
      came[at] = both < up && both < left ? 0 : up < both && up < left ? 1 : 2;
      total[at] = [both, up, left][came[at]] - worth[row - 1][column - 1];
    }
  }
  const begins = new Array(rows).fill(0);
  for (let [row, column] = [rows, columns]; row > 0 || column > 0; ) {
    if (row > 0) begins[row - 1] = column - 1;
    const step = came[row * width + column];
    if (step !== 2) row--;
    if (step !== 1) column--;
  }
  return begins;
}

/**
 * @param {TimedWord[]} words
 * @param {HearingFacts["words"]} rules
 */
function withoutPauses(words, { longest, ends }) {
  const lengths = words.flatMap(({ start, end }) => (end > start ? [end - start] : [])).sort((a, b) => a - b);
  if (!lengths.length) return words;
  const middle = (lengths[(lengths.length - 1) >> 1] + lengths[lengths.length >> 1]) / 2;
  const most = 2 * Math.min(longest, middle);
  return words.map((word, k) => {
    if (word.end - word.start <= most) return word;
    if (k && ends.includes(word.text)) return { ...word, end: word.start + most };
    return !k || ends.includes(words[k - 1].text) ? { ...word, start: word.end - most } : word;
  });
}

/**
 * The words with the marks before and behind them.
 * @param {TimedWord[]} words
 * @param {HearingFacts["words"]} rules
 */
function withMarks(words, { before, behind }) {
  /** @type {TimedWord[]} */
  const found = [];
  for (const word of words) {
    const last = found.at(-1);
    if (last && !last.text.endsWith(" ") && behind.includes(word.text)) {
      found[found.length - 1] = { ...last, text: last.text + word.text, count: last.count + word.count };
    } else if (last?.text.startsWith(" ") && before.includes(last.text.trim())) {
      found[found.length - 1] = { ...last, text: last.text + word.text, end: word.end, score: word.score, count: last.count + word.count };
    } else found.push(word);
  }
  return found;
}
