/**
 * Tasks of texts: texts become tokens, tokens rows of a batch, and outputs of rows plain objects.
 *
 * Contract: that of a medium (singe-task-runner.js), with the windows, the batches and the answers of core/singe/tasks/text/medium.py. A text
 * that is longer than the model is read in windows, never cut: an answer's `windows` says how many there were.
 */

/** @import { TaskInfo } from "../types/public.d.ts" */
/** @import { Run, TaskFile, TaskMedium } from "./singe-task-runner.js" */
/** @import { Asking, Reading, Row, RowOutputs } from "./singe-task-texts-kinds.js" */
/** @import { TextIndex } from "./singe-task-texts-index.js" */

import { encoded } from "../language/singe-language-offsets.js";
import { Tokenizer } from "../language/singe-language-tokenizer.js";
import { SingeError } from "../program/singe-format.js";
import { indexOf, readIndex } from "./singe-task-texts-index.js";
import { KINDS, promptsOf } from "./singe-task-texts-kinds.js";

const TOKENIZER = "tokenizer.json";
/** At most so many rows, and so many tokens with their padding, are in a batch. */
const ROWS = 32;
const TOKENS = 4096;
/** How names of outputs begin that have something for each token. */
const BY_TOKEN = "token_";
const MOST_LENGTH = 1 << 15;
const MOST_WIDTH = 100;
/** What models call the prompt of texts that are looked for. */
const PASSAGES = ["passage", "document"];

/** A word, as in core/singe/tasks/text/spans.py, but that Python's separators, U+001C to U+001F, are none. */
const WORD = /[\p{L}\p{N}_]+(?:[-_][\p{L}\p{N}_]+)*|\P{White_Space}/gu;
const SEPARATORS = ["\u001c", "\u001f"];

/** @typedef {{ length: number, overlap: number, prompts: unknown, width?: number, marks?: [string, string] }} TextInput */

/**
 * The windows of a source's questions.
 * @param {any} source
 * @param {Asking[]} questions
 * @param {Tokenizer} tokenizer
 * @param {TextInput} spec
 * @param {TextIndex | null} held
 * @returns {Reading}
 */
function read(source, questions, tokenizer, spec, held) {
  /** @type {Reading} */
  const reading = { source, questions, rows: [], spans: [], tokenizer, held };
  questions.forEach(({ text, second, marks = false, located, labels }, number) => {
    if (labels) {
      const { rows, words } = labelled(number, text, labels, tokenizer, spec);
      reading.spans.push(words);
      reading.rows.push(...rows);
      return;
    }
    const { ids, spans } = located ? encoded(tokenizer, text) : { ids: tokenizer.encode(text, { addSpecial: false, parseSpecial: marks }), spans: [] };
    if (second !== undefined && !tokenizer.between.length)
      throw new SingeError("input", `text: ${TOKENIZER} does not say how two texts stand together; this model takes single ones`);
    const other = second === undefined ? undefined : tokenizer.encode(second, { addSpecial: false, parseSpecial: false });
    reading.spans.push(spans);
    reading.rows.push(...windows(number, ids, other, tokenizer, spec));
  });
  return reading;
}

/**
 * Of a pair the longer is in windows, and all of the shorter in each.
 * @param {number} question
 * @param {number[]} one
 * @param {number[] | undefined} other
 * @param {Tokenizer} tokenizer
 * @param {TextInput} spec
 */
function windows(question, one, other, { before, after, between }, { length, overlap }) {
  const firstMoves = one.length >= (other?.length ?? 0);
  const [moving, fixed] = firstMoves ? [one, other ?? []] : [other ?? [], one];
  const middle = other ? between : [];
  const room = length - before.length - after.length - middle.length - fixed.length;
  if (room <= overlap) throw new SingeError("input", `text: of ${length} tokens, ${length - room} are marks and the shorter of two texts: no room is left for the longer`);
  /** @type {Row[]} */
  const rows = [];
  for (let start = 0; start === 0 || start < moving.length - overlap; start += room - overlap) {
    const part = moving.slice(start, start + room);
    const [a, b] = firstMoves ? [part, fixed] : [fixed, part];
    const ids = [...before, ...a, ...middle, ...b, ...after];
    const second = other ? before.length + a.length + middle.length : ids.length;
    rows.push({ ids, second, question, start, first: firstMoves ? before.length : second, count: part.length, inner: part.length - (start ? overlap : 0) });
  }
  return rows;
}

/**
 * The windows of a text, each with all labels, and where its words stand: of models of spans (core/singe/tasks/text/spans.py).
 * @param {number} question
 * @param {string} text
 * @param {string[]} labels
 * @param {Tokenizer} tokenizer
 * @param {TextInput} spec
 */
function labelled(question, text, labels, tokenizer, { length, width = 0, marks = ["", ""] }) {
  const idsOf = (/** @type {string} */ part) => tokenizer.encode(part, { addSpecial: false, parseSpecial: false });
  const [beforeLabel, beforeText] = marks.map((name) => {
    const ids = tokenizer.encode(name, { addSpecial: false });
    if (ids.length === 1) return ids[0];
    throw new SingeError("input", `text: the tokenizer has no token ${JSON.stringify(name)}, which stands before labels or before the text`);
  });
  const head = [...tokenizer.before];
  for (const label of labels) {
    const own = idsOf(label);
    if (own.includes(beforeLabel)) throw new SingeError("input", `text: the label ${JSON.stringify(label)} has the mark ${marks[0]} in it, which stands before labels`);
    head.push(beforeLabel, ...own);
  }
  head.push(beforeText);
  const { after } = tokenizer;
  const found = [...text.matchAll(WORD)]
    .filter(({ 0: word }) => word < SEPARATORS[0] || word > SEPARATORS[1])
    .map(({ 0: word, index }) => ({ ids: idsOf(word), span: /** @type {[number, number]} */ ([index, index + word.length]) }))
    .filter(({ ids }) => ids.length);
  const room = length - head.length - after.length;
  /** @type {Row[]} */
  const rows = [];
  for (let start = 0; start < found.length; ) {
    /** @type {number[][]} */
    const [ids, words] = [[], head.map(() => 0)];
    let end = start;
    for (; end < found.length && ids.length + found[end].ids.length <= room; end++) {
      ids.push(...found[end].ids);
      words.push(...found[end].ids.map((_, k) => (k ? 0 : end - start + 1)));
    }
    if (end < found.length && end - start <= width)
      throw new SingeError("input", `text: of ${length} tokens, ${length - room} are labels and marks: no room is left for more than ${width} words of the text`);
    const all = [...head, ...ids, ...after];
    rows.push({ ids: all, second: all.length, question, start, first: 0, count: end - start, inner: end - start, words });
    start = end === found.length ? end : end - width;
  }
  return { rows, words: found.map(({ span }) => span) };
}

/**
 * The spans of rows with so many words: for each word as many as the longest has words, with the first and the last, −1 where there is none.
 * @param {number[]} counts
 * @param {number} width
 */
function spansOf(counts, width) {
  const most = Math.max(...counts);
  const data = new Int32Array(counts.length * most * width * 2).fill(-1);
  counts.forEach((count, row) => {
    for (let first = 0; first < count; first++)
      for (let more = 0; more < width && first + more < count; more++) data.set([first, first + more], ((row * most + first) * width + more) * 2);
  });
  return { data, shape: [counts.length, most * width, 2] };
}

/** In how many parts the longest question was read. @param {Reading} reading */
const windowsOf = ({ questions, rows }) => Math.max(1, ...questions.map((_, k) => rows.filter(({ question }) => question === k).length));

/**
 * The outputs of each row.
 * @param {Run} run
 * @param {Row[]} rows
 * @param {number} kind The type of the tokens of the second of a pair
 * @param {number} width The spans of each word, which count as tokens do
 * @param {AbortSignal} [signal]
 */
async function runRows(run, rows, kind, width, signal) {
  const most = Math.floor(TOKENS / Math.max(width, 1));
  const order = [...rows.keys()].sort((a, b) => rows[a].ids.length - rows[b].ids.length || a - b);
  /** @type {RowOutputs[]} */
  const found = rows.map(() => ({}));
  for (let at = 0; at < order.length; ) {
    let count = 1;
    while (at + count < order.length && count < ROWS && (count + 1) * rows[order[at + count]].ids.length <= most) count++;
    const batch = order.slice(at, at + count);
    at += count;
    const longest = Math.max(1, ...batch.map((k) => rows[k].ids.length));
    const shape = [count, longest];
    const [ids, mask, types, words] = [0, 1, 2, 3].map(() => new Int32Array(count * longest));
    batch.forEach((k, place) => {
      const row = rows[k];
      ids.set(row.ids, place * longest);
      mask.fill(1, place * longest, place * longest + row.ids.length);
      types.fill(kind, place * longest + row.second, place * longest + row.ids.length);
      words.set(row.words ?? [], place * longest);
    });
    const more = width
      ? {
          words: { data: words, shape },
          spans: spansOf(
            batch.map((k) => rows[k].count),
            width,
          ),
        }
      : { types: { data: types, shape } };
    const outputs = await run({ ids: { data: ids, shape }, mask: { data: mask, shape }, ...more }, signal);
    for (const [name, { data, shape: made }] of Object.entries(outputs)) {
      const size = made.slice(1).reduce((a, b) => a * b, 1);
      const each = name.startsWith(BY_TOKEN) ? size / made[1] : size;
      batch.forEach((k, place) => {
        const used = name.startsWith(BY_TOKEN) ? rows[k].ids.length * each : each;
        found[k][name] = { data: /** @type {Float32Array} */ (data).slice(place * size, place * size + used), width: each };
      });
    }
  }
  return found;
}

/** @type {TaskMedium} */
export const medium = {
  kinds: KINDS,
  whyNot({ preparation, files }) {
    const { length, overlap, prompts, width = 0 } = /** @type {Partial<TextInput>} */ (preparation ?? {});
    const isCount = (/** @type {unknown} */ x, /** @type {number} */ least, /** @type {number} */ most) => Number.isInteger(x) && Number(x) >= least && Number(x) <= most;
    if (!isCount(length, 8, MOST_LENGTH) || !isCount(overlap, 0, Number(length) / 2) || !isCount(width, 0, MOST_WIDTH) || Object(prompts) !== prompts)
      return "it does not say how it reads texts";
    return files?.[TOKENIZER] ? "" : "no tokenizer travels with it";
  },
  async open(info, file, own) {
    const tokenizer = new Tokenizer(await file(TOKENIZER, "values"));
    const held = /** @type {TextIndex | null} */ (own ?? (await readIndex(info, file)));
    const spec = /** @type {TextInput} */ (/** @type {unknown} */ (info.preparation));
    const { asks, answer } = KINDS[info.kind];
    return (run, chosen) => async (sources, signal) => {
      const readings = sources.map((source) => read(source, asks(source, info, chosen), tokenizer, spec, held));
      const all = readings.flatMap(({ rows }) => rows);
      const outputs = await runRows(run, all, tokenizer.second, spec.width ?? 0, signal);
      let at = 0;
      return readings.map((reading) => {
        at += reading.rows.length;
        const made = answer(outputs.slice(at - reading.rows.length, at), info, reading, chosen);
        return Object.defineProperty(made, "windows", { value: windowsOf(reading) }); // not enumerable, so that JSON has none
      });
    };
  },
  async index(info, file, run, texts, { prompt = "", dimensions = 0, signal }, own) {
    if (info.kind !== "search") throw new SingeError("input", `${info.kind}: only a search has an index`);
    if (!Array.isArray(texts) || !texts.every((text) => typeof text === "string")) throw new SingeError("input", "index: expected a list of texts");
    const held = /** @type {TextIndex | null} */ (own ?? (await readIndex(info, file)));
    const name = prompt || PASSAGES.find((one) => Object.hasOwn(promptsOf(info).prompts, one)) || "";
    const begin = await medium.open({ ...info, kind: "embed", files: { [TOKENIZER]: /** @type {any} */ (info.files)[TOKENIZER] } }, file);
    const answers = await begin(run, /** @type {any} */ ({ prompt: name, dimensions: held?.width ?? dimensions }))(texts, signal);
    const vectors = answers.map((answer) => /** @type {{ vector: Float32Array }} */ (answer).vector);
    const width = held?.width ?? vectors[0]?.length ?? 1;
    const old = held?.table ?? new Float32Array(0);
    const table = new Float32Array(old.length + width * vectors.length);
    table.set(old);
    vectors.forEach((vector, k) => table.set(vector, old.length + k * width));
    return indexOf([...(held?.texts ?? []), ...texts], width, table);
  },
};
