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
/** What models call the prompt of texts that are looked for. */
const PASSAGES = ["passage", "document"];

/** @typedef {{ length: number, overlap: number, prompts: unknown }} TextInput */

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
  questions.forEach(({ text, second, marks = false, located }, number) => {
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

/** In how many parts the longest question was read. @param {Reading} reading */
const windowsOf = ({ questions, rows }) => Math.max(1, ...questions.map((_, k) => rows.filter(({ question }) => question === k).length));

/**
 * The outputs of each row.
 * @param {Run} run
 * @param {Row[]} rows
 * @param {number} kind The type of the tokens of the second of a pair
 * @param {AbortSignal} [signal]
 */
async function runRows(run, rows, kind, signal) {
  const order = [...rows.keys()].sort((a, b) => rows[a].ids.length - rows[b].ids.length || a - b);
  /** @type {RowOutputs[]} */
  const found = rows.map(() => ({}));
  for (let at = 0; at < order.length; ) {
    let count = 1;
    while (at + count < order.length && count < ROWS && (count + 1) * rows[order[at + count]].ids.length <= TOKENS) count++;
    const batch = order.slice(at, at + count);
    at += count;
    const longest = Math.max(1, ...batch.map((k) => rows[k].ids.length));
    const shape = [count, longest];
    const [ids, mask, types] = [0, 1, 2].map(() => new Int32Array(count * longest));
    batch.forEach((k, place) => {
      const row = rows[k];
      ids.set(row.ids, place * longest);
      mask.fill(1, place * longest, place * longest + row.ids.length);
      types.fill(kind, place * longest + row.second, place * longest + row.ids.length);
    });
    const outputs = await run({ ids: { data: ids, shape }, mask: { data: mask, shape }, types: { data: types, shape } }, signal);
    for (const [name, { data, shape: made }] of Object.entries(outputs)) {
      const size = made.slice(1).reduce((a, b) => a * b, 1);
      const width = name.startsWith(BY_TOKEN) ? size / made[1] : size;
      batch.forEach((k, place) => {
        const used = name.startsWith(BY_TOKEN) ? rows[k].ids.length * width : width;
        found[k][name] = { data: /** @type {Float32Array} */ (data).slice(place * size, place * size + used), width };
      });
    }
  }
  return found;
}

/** @type {TaskMedium} */
export const medium = {
  kinds: KINDS,
  whyNot({ preparation, files }) {
    const { length, overlap, prompts } = /** @type {Partial<TextInput>} */ (preparation ?? {});
    const isCount = (/** @type {unknown} */ x, /** @type {number} */ least, /** @type {number} */ most) => Number.isInteger(x) && Number(x) >= least && Number(x) <= most;
    if (!isCount(length, 8, MOST_LENGTH) || !isCount(overlap, 0, Number(length) / 2) || Object(prompts) !== prompts) return "it does not say how it reads texts";
    return files?.[TOKENIZER] ? "" : "no tokenizer travels with it";
  },
  async open(info, file, own) {
    const tokenizer = new Tokenizer(JSON.parse(new TextDecoder().decode(await file(TOKENIZER))));
    const held = /** @type {TextIndex | null} */ (own ?? (await readIndex(info, file)));
    const spec = /** @type {TextInput} */ (/** @type {unknown} */ (info.preparation));
    const { asks, answer } = KINDS[info.kind];
    return (run, chosen) => async (sources, signal) => {
      const readings = sources.map((source) => read(source, asks(source, info, chosen), tokenizer, spec, held));
      const all = readings.flatMap(({ rows }) => rows);
      const outputs = await runRows(run, all, tokenizer.second, signal);
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
