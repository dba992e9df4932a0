/**
 * The kinds of tasks of texts: what is read of a source, and what outputs of rows become. core/singe/tasks/kinds has the same in Python.
 *
 * Contract: KINDS, a row each: `asks(source, info, chosen)` gives questions, `answer(rows, info, reading, chosen)` what `to_dict()` gives.
 */

/** @import { TaskFinding, TaskInfo, TaskAnswer, TextEntity } from "../types/public.d.ts" */
/** @import { Tokenizer } from "../language/singe-language-tokenizer.js" */
/** @import { TextIndex } from "./singe-task-texts-index.js" */

import { SingeError } from "../program/singe-format.js";
import { nearest } from "./singe-task-texts-index.js";

/** @typedef {{ text: string, second?: string, marks?: boolean, located?: boolean, labels?: string[] }} Asking As in core/singe/tasks/text/medium.py */
/** @typedef {{ ids: number[], second: number, question: number, start: number, first: number, count: number, inner: number, words?: number[] }} Row */
/** @typedef {{ source: any, questions: Asking[], rows: Row[], spans: [number, number][][], tokenizer: Tokenizer, held: TextIndex | null }} Reading */
/** @typedef {Record<string, { data: Float32Array, width: number }>} RowOutputs Of one row; width: the numbers of a token, or of the row */
/** @typedef {Record<string, any>} Chosen */
/** @typedef {{ asks: (source: any, info: TaskInfo, chosen: Chosen) => Asking[], answer: (rows: RowOutputs[], info: TaskInfo, reading: Reading, chosen: Chosen) => TaskAnswer }} TextKind */
/** @typedef {{ prompts: Record<string, string>, prompt: string }} Prompts */

const FILLINGS = 20;
const MASKS = ["[MASK]", "<mask>"];
/** A letter, a mark or a number of a script that has spaces between words, at the end or the beginning of a text. */
const SPACED = "(?![\\u0e00-\\u10ff\\u1780-\\u17ff\\u2e80-\\uabff\\uf900-\\u{2ffff}])[\\p{L}\\p{M}\\p{N}]";
const RUNS_ON = [new RegExp(`${SPACED}$`, "u"), new RegExp(`^${SPACED}`, "u")];

/** @param {string} what */
const refuse = (what) => new SingeError("input", what);

/**
 * @param {unknown} source
 * @returns {string}
 */
function textOf(source) {
  if (typeof source === "string") return source;
  throw refuse(`text: got ${source === null ? "null" : typeof source}, expected a text, or a list of texts`);
}

/**
 * @param {unknown} source
 * @param {TaskInfo} info
 * @param {Chosen} chosen
 */
function prompted(source, info, { prompt }) {
  const { prompts, prompt: own } = promptsOf(info);
  const name = prompt || own;
  if (name && !Object.hasOwn(prompts, name)) {
    throw refuse(`${info.kind}: prompt ${JSON.stringify(name)}, expected one of ${Object.keys(prompts).join(", ") || "none: the model has none"}`);
  }
  return [{ text: (name ? prompts[name] : "") + textOf(source) }];
}

/** @param {TaskInfo} info */
export const promptsOf = (info) => /** @type {Prompts} */ (/** @type {unknown} */ (info.preparation));

/**
 * The mean of what the windows of a question gave, in which each counts as much as it has tokens of its own.
 * @param {Reading} reading
 * @param {RowOutputs[]} rows
 * @param {string} name
 * @param {number} [question]
 */
function mean({ rows: own }, rows, name, question = 0) {
  const sum = new Float64Array(rows[0][name].width);
  let total = 0;
  own.forEach((row, k) => {
    if (row.question !== question) return;
    const weight = Math.max(1, row.inner);
    total += weight;
    sum.forEach((_, i) => {
      sum[i] += weight * rows[k][name].data[i];
    });
  });
  return sum.map((x) => x / total);
}

/**
 * The first numbers of a vector, of length 1.
 * @param {Float64Array} whole
 * @param {number} dimensions
 */
function unit(whole, dimensions) {
  const part = whole.subarray(0, dimensions);
  const length = Math.sqrt(part.reduce((sum, x) => sum + x * x, 0)) || 1;
  return Float32Array.from(part, (x) => x / length);
}

/**
 * A number of a setting.
 * @param {TaskInfo} info
 * @param {string} name
 * @param {unknown} value
 * @param {[least: number, most: number]} range
 */
function count({ kind }, name, value, [least, most]) {
  if (Number.isInteger(value) && Number(value) >= least && Number(value) <= most) return Number(value);
  throw refuse(`${kind}: ${name} is ${value}, expected a number from ${least}${Number.isFinite(most) ? ` to ${most}` : " on"}`);
}

/**
 * The texts of a setting.
 * @param {TaskInfo} info
 * @param {string} name
 * @param {unknown} value
 * @returns {string[]}
 */
function texts({ kind }, name, value) {
  if (Array.isArray(value) && value.length && value.every((one) => typeof one === "string")) return value;
  throw refuse(`${kind}: ${name} is ${JSON.stringify(value) ?? value}, expected a list of texts`);
}

/**
 * @param {ArrayLike<number>} scores
 * @param {(index: number) => string} label
 * @param {number} top 0: all
 * @returns {TaskFinding[]}
 */
function ranked(scores, label, top) {
  const order = Array.from({ length: scores.length }, (_, k) => k).sort((a, b) => scores[b] - scores[a] || a - b);
  return order.slice(0, top || order.length).map((index) => ({ label: label(index), score: scores[index], index }));
}

/** @param {TaskInfo} info */
const labelsOf = (info) => (/** @type {number} */ index) => info.labels[index] ?? `class ${index}`;

/** @type {TextKind["answer"]} */
function entities(rows, info, { questions, spans: all, rows: own }, { threshold }) {
  if (!(threshold >= 0 && threshold <= 1)) throw refuse(`${info.kind}: threshold is ${threshold}, expected a score from 0 to 1`);
  const [{ text }] = questions;
  const [spans] = all;
  const [classes, scores] = byToken(rows, own, spans.length);
  /** @type {TextEntity[]} */
  const items = [];
  let [label, begin, end, had] = ["", 0, 0, /** @type {number[]} */ ([])];
  const close = () => {
    const score = had.reduce((sum, x) => sum + x, 0) / had.length;
    if (label && score >= threshold) items.push({ label, score, text: text.slice(begin, end), start: begin, end });
  };
  spans.forEach(([a, b], k) => {
    if (a === b) return;
    if (k && a === end && RUNS_ON[0].test(text.slice(Math.max(0, a - 2), a)) && RUNS_ON[1].test(text.slice(a, a + 2))) {
      end = b; // the rest of a word
      return;
    }
    if (k && a < end) return; // a token of the same characters
    const whole = labelsOf(info)(classes[k]);
    const at = whole.lastIndexOf("-");
    const [mark, name] = [whole.slice(0, Math.max(0, at)), whole === "O" ? "" : whole.slice(at + 1)];
    if (name && name === label && !["B", "S", "U"].includes(mark)) {
      end = b;
      had.push(scores[k]);
      return;
    }
    close();
    [label, begin, end, had] = [name, a, b, [scores[k]]];
  });
  close();
  return items;
}

/**
 * The class and the score of each token of the text. Where windows overlap, the second half of the overlap is the later one's.
 * @param {RowOutputs[]} rows
 * @param {Row[]} own
 * @param {number} length
 */
function byToken(rows, own, length) {
  const [classes, scores] = [new Int32Array(length), new Float32Array(length)];
  own.forEach(({ start, first, count, inner }, k) => {
    for (let at = start ? (count - inner) >> 1 : 0; at < count; at++) {
      classes[start + at] = rows[k].token_classes.data[first + at];
      scores[start + at] = rows[k].token_scores.data[first + at];
    }
  });
  return [classes, scores];
}

/**
 * The spans over the threshold, the likeliest first, without those that overlap one before, in the order of the text.
 * @type {TextKind["answer"]}
 */
function spans(rows, info, { questions: [{ text }], spans: [words], rows: own }, { threshold, labels }) {
  if (!(threshold >= 0 && threshold <= 1)) throw refuse(`${info.kind}: threshold is ${threshold}, expected a score from 0 to 1`);
  const { width } = /** @type {{ width: number }} */ (/** @type {unknown} */ (info.preparation));
  /** @type {{ score: number, first: number, last: number, label: string }[]} */
  const found = [];
  own.forEach(({ start, count }, k) => {
    const { data } = rows[k].word_spans;
    if (data.length % (width * labels.length) || data.length < count * width * labels.length)
      throw refuse(`${info.kind}: the model has ${data.length} scores of ${count} words, expected ${width} for each word and each of ${labels.length} labels`);
    data.subarray(0, count * width * labels.length).forEach((score, at) => {
      const span = Math.floor(at / labels.length);
      const [first, more] = [Math.floor(span / width), span % width];
      if (score > threshold && first + more < count) found.push({ score, first: start + first, last: start + first + more, label: labels[at % labels.length] });
    });
  });
  const taken = new Uint8Array(words.length);
  /** @type {TextEntity[]} */
  const items = [];
  for (const { score, first, last, label } of found.sort((a, b) => b.score - a.score || a.first - b.first || a.last - b.last)) {
    if (taken.subarray(first, last + 1).some(Boolean)) continue;
    taken.fill(1, first, last + 1);
    const [start, end] = [words[first][0], words[last][1]];
    items.push({ label, score, text: text.slice(start, end), start, end });
  }
  return items.sort((a, b) => a.start - b.start);
}

/** @type {TextKind["answer"]} */
function filled(rows, info, { source, rows: own, tokenizer }, { top }) {
  const most = count(info, "top", top, [1, FILLINGS]);
  const masks = MASKS.flatMap((name) => tokenizer.marks.get(name) ?? []);
  const names = MASKS.filter((name) => tokenizer.marks.has(name));
  const hidden = names.reduce((sum, name) => sum + source.split(name).length - 1, 0);
  if (hidden !== 1) throw refuse(`${info.kind}: ${hidden} hidden words, expected one, written ${names.join(" or ") || "none: its tokenizer has no such token"}`);
  const places = own.flatMap(({ ids }, k) => ids.flatMap((id, at) => (masks.includes(id) ? [{ k, at, far: ids.length - 2 * Math.abs(at - (ids.length >> 1)) }] : [])));
  const { k, at } = places.reduce((a, b) => (b.far > a.far || (b.far === a.far && (b.k > a.k || b.at > a.at)) ? b : a)); // most of the text is around it
  const [ids, scores] = [rows[k].token_ids, rows[k].token_scores];
  return Array.from({ length: most }, (_, n) => {
    const index = ids.data[at * ids.width + n];
    return { label: tokenizer.decode([index]).trim(), score: scores.data[at * scores.width + n], index };
  });
}

/** @type {Record<string, TextKind>} */
export const KINDS = {
  embed: {
    asks: prompted,
    answer(rows, info, reading, { dimensions }) {
      const whole = mean(reading, rows, "vector");
      return { vector: unit(whole, count(info, "dimensions", dimensions, [0, whole.length]) || whole.length) };
    },
  },
  search: {
    asks: (source, info, { prompt }) => prompted(source, info, { prompt: prompt || (Object.hasOwn(promptsOf(info).prompts, "query") ? "query" : "") }),
    answer(rows, info, reading, { top, reach, among }) {
      const { held } = reading;
      if (!held) throw refuse("search: there is nothing to look through: index = await search.index(texts)");
      const isWrong = among && !(Array.isArray(among) && among.every((k) => Number.isInteger(k) && k >= 0 && k < held.texts.length));
      if (isWrong) throw refuse(`search: among: expected numbers of texts, below ${held.texts.length}`);
      const options = { top: count(info, "top", top, [1, Infinity]), reach: count(info, "reach", reach, [0, Infinity]), among };
      const found = nearest(held, unit(mean(reading, rows, "vector"), held.width), options);
      return found.map(({ index, score }) => ({ label: held.texts[index], score, index }));
    },
  },
  rerank: {
    asks: (source, info, { documents }) => texts(info, "documents", documents).map((second) => ({ text: textOf(source), second })),
    answer(rows, info, { rows: own }, { documents, top }) {
      const scores = new Float64Array(documents.length); // a long document is as good as its best part
      own.forEach(({ question }, k) => {
        scores[question] = Math.max(scores[question], rows[k].scores.data[0]);
      });
      return ranked(scores, (index) => documents[index], count(info, "top", top, [0, Infinity]));
    },
  },
  "classify-text": {
    asks: (source) => [{ text: textOf(source) }],
    answer: (rows, info, reading, { top }) => ranked(mean(reading, rows, "scores"), labelsOf(info), count(info, "top", top, [0, Infinity])),
  },
  "zero-shot": {
    asks(source, info, { labels, hypothesis }) {
      if (typeof hypothesis !== "string" || !hypothesis.includes("{}")) throw refuse(`${info.kind}: hypothesis is ${hypothesis}, expected a text with {} where a label stands`);
      return texts(info, "labels", labels).map((label) => ({ text: textOf(source), second: hypothesis.replaceAll("{}", () => label) }));
    },
    answer(rows, _, reading, { labels, several }) {
      const [yes, no] = ["entails", "contradicts"].map((name) => reading.questions.map((__, k) => mean(reading, rows, name, k)[0]));
      const most = Math.max(...yes);
      const parts = yes.map((x, k) => (several ? 1 / (1 + Math.exp(no[k] - x)) : Math.exp(x - most)));
      const total = several ? 1 : parts.reduce((a, b) => a + b, 0);
      return ranked(
        parts.map((x) => x / total),
        (index) => labels[index],
        0,
      );
    },
  },
  tag: { asks: (source) => [{ text: textOf(source), located: true }], answer: entities },
  "zero-shot-tag": { asks: (source, info, { labels }) => [{ text: textOf(source), labels: texts(info, "labels", labels) }], answer: spans },
  "fill-mask": { asks: (source) => [{ text: textOf(source), marks: true }], answer: filled },
};
