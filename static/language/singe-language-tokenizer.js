/**
 * Text to the ids of tokens and back, as a `tokenizer.json` says.
 *
 * Contract: `new Tokenizer(values)` takes the values of the file, also those that Python writes for a GGUF
 * (core/singe/language/tokenizing/gguf.py), and throws a SingeError "format" that names what is unknown. `encode(text, {
 * addSpecial, parseSpecial })`, `decode(ids, { skipSpecial })`, `stream()`, whose `feed(id)` gives the characters that a token
 * completes, and `finish()` what is left; `bytes(id)`, `size`, `before`, `after`, `between`, `second`, `marks`, `bos`, `eos`, `endOfTurn`. Ids are those of Python's Tokenizer.
 */

import { SingeError } from "../program/singe-format.js";
import { SPACE, quoted } from "./singe-language-patterns.js";
import { ALPHABET, choose, decoderOf, fault, flat, normalizerOf, preTokenizerOf, short } from "./singe-language-steps.js";
import { mergesModel, scoresModel, unigramModel, wordPiecesModel } from "./singe-language-models.js";

/** @import { Decoding, Json } from "./singe-language-steps.js" */
/** @import { TokenModel } from "./singe-language-models.js" */
/** @typedef {{ id: number, content: string, special: boolean, lstrip: boolean, rstrip: boolean, single_word: boolean, normalized: boolean }} AddedToken */

const MAX_TOKENS = 1 << 21;
/** The characters of an added token: each place of a text where one may begin is compared with all lengths. */
const MAX_ADDED = 256;
/** More than a word that BERT's model looks up may have: time is quadratic in them. */
const MAX_WORD = 257;
const MAX_KNOWN = 1 << 16;
const ENCODER = new TextEncoder();

/**
 * @param {Json} value
 * @param {number} limit
 */
const isId = (value, limit = MAX_TOKENS) => Number.isSafeInteger(value) && value >= 0 && value < limit;

/** @param {Json} vocab tokens and their numbers, or all tokens in the order of these */
function idsOf(vocab) {
  if (typeof vocab !== "object" || !vocab) throw fault("vocab", vocab, "tokens and their numbers");
  /** @type {Map<string, number>} */
  const ids = new Map();
  if (Array.isArray(vocab)) vocab.forEach((token, id) => ids.set(token, id));
  else for (const token in vocab) ids.set(token, vocab[token]);
  if (ids.size > MAX_TOKENS) throw fault("vocab", ids.size, `at most ${MAX_TOKENS} tokens`);
  for (const [token, id] of ids) if (typeof token !== "string" || !isId(id)) throw fault("vocab", [token, id], "tokens and their numbers");
  return ids;
}

/** @param {Json} model */
function scored({ vocab, unk_id = null }) {
  if (!Array.isArray(vocab) || vocab.length > MAX_TOKENS) throw fault("vocab", typeof vocab, `a list of at most ${MAX_TOKENS}`);
  /** @type {Map<string, number>} */
  const ids = new Map();
  /** @type {Map<string, number>} */
  const scores = new Map();
  vocab.forEach((item, id) => {
    if (!Array.isArray(item) || typeof item[0] !== "string" || !(item[1] === null || Number.isFinite(item[1]))) throw fault("an item of vocab", item, "a token and its score");
    if (!ids.has(item[0])) ids.set(item[0], id);
    if (item[1] !== null) scores.set(item[0], item[1]);
  });
  if (unk_id !== null && !isId(unk_id, vocab.length)) throw fault("unk_id", unk_id, "one of the tokens");
  return { ids, scores, unknown: unk_id };
}

/**
 * @param {Json} merges pairs, or, of the tokens from `first` on, each of one merge, the number of characters of its left part
 * @param {Json} vocab
 */
function* pairsOf(merges, vocab) {
  const lefts = merges?.left;
  const listed = lefts ?? merges;
  if (!Array.isArray(listed)) throw fault("merges", merges, "a list");
  for (let k = 0; k < listed.length; k++) {
    const merge = listed[k];
    const token = vocab[merges.first + k];
    const part = lefts && merge && isId(merge, token?.length) && [token.slice(0, merge), token.slice(merge)];
    const pair = lefts ? part : typeof merge === "string" ? merge.split(" ") : merge;
    if (!Array.isArray(pair) || pair.length !== 2 || typeof pair[0] !== "string" || typeof pair[1] !== "string") throw fault("a merge", merge, "two tokens");
    yield/** @type {[string, string]} */ (pair);
  }
}

/** @type {Record<string, (model: Json) => TokenModel>} */
const MODELS = {
  BPE(model) {
    const ids = idsOf(model.vocab);
    if (model.continuing_subword_prefix) throw fault("continuing_subword_prefix", model.continuing_subword_prefix, "none");
    const unknown = model.unk_token ?? null;
    if (unknown !== null && !ids.has(unknown)) throw fault("unk_token", unknown, "one of the tokens");
    return mergesModel(ids, pairsOf(model.merges, model.vocab), {
      whole: model.ignore_merges === true,
      byteFallback: model.byte_fallback === true,
      unknown,
      fuseUnknown: model.fuse_unk === true,
      suffix: short(model, "end_of_word_suffix", ""),
    });
  },
  Scores(model) {
    const { ids, scores, unknown } = scored(model);
    return scoresModel(ids, scores, unknown);
  },
  Unigram(model) {
    const { ids, scores, unknown } = scored(model);
    return unigramModel(ids, scores, unknown, model.byte_fallback === true);
  },
  WordPiece(model) {
    const ids = idsOf(model.vocab);
    const unknown = ids.get(model.unk_token ?? "[UNK]");
    const longest = model.max_input_chars_per_word ?? 100;
    if (unknown === undefined) throw fault("unk_token", model.unk_token, "one of the tokens");
    if (!isId(longest, MAX_WORD)) throw fault("max_input_chars_per_word", longest, `a number below ${MAX_WORD}`);
    return wordPiecesModel(ids, unknown, short(model, "continuing_subword_prefix", "##"), longest);
  },
};

const END_SPACES = new RegExp(`[${SPACE}]`, "u");
const WORD = /[\p{L}\p{N}_]/u;

/** Finds added tokens in texts: the leftmost, of those that begin at one place the longest. */
class AddedTokens {
  /**
   * @param {AddedToken[]} tokens
   * @param {(text: string) => string} spell
   */
  constructor(tokens, spell = (text) => text) {
    /** @type {Map<string, AddedToken>} */
    this.tokens = new Map(tokens.map((token) => [spell(token.content), token]));
    this.tokens.delete("");
    const starts = new Set([...this.tokens.keys()].map((text) => quoted(String.fromCodePoint(/** @type {number} */ (text.codePointAt(0))))));
    this.first = starts.size ? new RegExp([...starts].join("|"), "gu") : null;
    /** @type {Map<string, number[]>} */
    this.lengths = new Map();
    for (const text of this.tokens.keys()) {
      const found = this.lengths.get(text.slice(0, 2)) ?? [];
      if (!found.includes(text.length))
        this.lengths.set(
          text.slice(0, 2),
          [...found, text.length].sort((a, b) => b - a),
        );
    }
  }

  /**
   * @param {string} text
   * @param {number} start
   * @param {boolean} parseSpecial
   */
  at(text, start, parseSpecial) {
    for (const length of [...(this.lengths.get(text.slice(start, start + 2)) ?? []), ...(this.lengths.get(text[start]) ?? [])]) {
      const token = this.tokens.get(text.slice(start, start + length));
      if (token && (parseSpecial || !token.special)) return { token, length };
    }
    return null;
  }

  /**
   * The ids of added tokens, and the text between them.
   * @param {string} text
   * @param {boolean} parseSpecial
   */
  split(text, parseSpecial) {
    /** @type {(string | number)[]} */
    const parts = [];
    let done = 0;
    if (this.first) {
      this.first.lastIndex = 0;
      for (let match = this.first.exec(text); match; match = this.first.exec(text)) {
        let start = match.index;
        const found = this.at(text, start, parseSpecial);
        if (!found) continue;
        let end = start + found.length;
        this.first.lastIndex = end;
        const { token } = found;
        if (token.single_word && (WORD.test(text[end] ?? "") || WORD.test(text[start - 1] ?? ""))) continue;
        if (token.lstrip) while (start > done && END_SPACES.test(text[start - 1])) start--;
        if (token.rstrip) while (end < text.length && END_SPACES.test(text[end])) end++;
        this.first.lastIndex = end;
        if (done < start) parts.push(text.slice(done, start));
        parts.push(token.id);
        done = end;
      }
    }
    if (done < text.length) parts.push(text.slice(done));
    return parts;
  }
}

/**
 * Cuts before ▁, and before and after ends of lines, where no token reaches across.
 * @param {Iterable<string>} tokens
 */
function wordCutter(tokens) {
  /** @type {Set<string>[]} */
  const [beforeSpace, beforeLine, afterLine] = [new Set(), new Set(), new Set()];
  for (const token of tokens) {
    if (!token.includes("▁", 1) && !token.includes("\n")) continue;
    const characters = [...token];
    characters.forEach((c, at) => {
      if (c === "▁" && at) beforeSpace.add(characters[at - 1]);
      if (c === "\n" && at) beforeLine.add(characters[at - 1]);
      if (c === "\n" && at + 1 < characters.length) afterLine.add(characters[at + 1]);
    });
  }
  /** @param {Set<string>} characters */
  const noneOf = (characters) => (characters.size ? `[^${[...characters].map(quoted).join("")}]` : "[\\s\\S]");
  const cut = new RegExp(`(?=▁)(?<=${noneOf(beforeSpace)})|(?=\n)(?<=${noneOf(beforeLine)})|(?<=\n)(?=${noneOf(afterLine)})`, "u");
  return (/** @type {string} */ text) => text.split(cut);
}

/**
 * The ids before and after a text, and between two, with the type of the second's tokens.
 * @param {Json} value
 */
function marksOf(value) {
  /** @type {{ before: number[], after: number[], between: number[], second: number }} */
  let marks = { before: [], after: [], between: [], second: 0 };
  for (const step of flat(value, "processors")) {
    if (step.type === "TemplateProcessing") {
      const [first, ...rest] = sidesOf(step, "single").sides;
      const { sides, second } = step.pair ? sidesOf(step, "pair") : { sides: [], second: 0 };
      marks = { before: first, after: rest.flat(), between: sides.length === 3 ? sides[1] : [], second };
    } else if (step.type === "BertProcessing" || step.type === "RobertaProcessing") {
      const [after, isBert] = [[step.sep?.[1]], step.type === "BertProcessing"];
      marks = { before: [step.cls?.[1]], after, between: isBert ? after : [...after, ...after], second: Number(isBert) };
    } else if (step.type !== "ByteLevel") throw fault("the type of a post-processor", step.type, "TemplateProcessing, BertProcessing, RobertaProcessing or ByteLevel");
  }
  for (const id of [...marks.before, ...marks.after, ...marks.between].slice(0, 64)) if (!isId(id)) throw fault("a token of the post-processor", id, "the number of a token");
  return marks;
}

/**
 * The ids before, between and after the texts of a template, and the type of the last text's tokens.
 * @param {Json} step
 * @param {"single" | "pair"} name
 */
function sidesOf(step, name) {
  /** @type {number[][]} */
  const sides = [[]];
  let second = 0;
  if (!Array.isArray(step[name])) throw fault(name, step[name], "a list");
  for (const item of step[name]) {
    if (item?.Sequence) {
      sides.push([]);
      second = Number(item.Sequence.type_id === 1);
    } else sides[sides.length - 1].push(...(step.special_tokens?.[item?.SpecialToken?.id]?.ids ?? [Number.NaN]));
  }
  return { sides, second };
}

export class Tokenizer {
  /** @type {TokenModel} */
  #model = { ids: new Map(), encode: () => [] };
  /** @type {Map<string, number[]>} */
  #known = new Map();
  /** @type {(string | undefined)[]} */
  #tokens = [];
  /** @type {AddedToken[]} */
  #added = [];
  /** @type {Set<number>} */
  #addedIds = new Set();
  /** @type {Decoding} */
  #decoding = decoderOf(null);
  /** @type {(text: string) => string} */
  #normalize = (text) => text;
  /** @type {(text: string, first: boolean) => string[]} */
  #cut = (text) => [text];
  /** @type {(piece: string) => string} */
  #spell = (piece) => piece;
  #raw = new AddedTokens([]);
  /** @type {AddedTokens | null} */
  #normalized = null;
  /** What `encode` writes before and after a text. @type {number[]} */
  before = [];
  /** @type {number[]} */
  after = [];
  /** What stands between two texts, and the type of the second's tokens. @type {number[]} */
  between = [];
  second = 0;
  /** The ids of tokens that are marks, by their names. @type {Map<string, number>} */
  marks = new Map();
  /** Marks, which are no text. @type {Set<number>} */
  special = new Set();
  size = 0;
  /** @type {number | null} */
  bos = null;
  /** @type {number | null} */
  eos = null;
  /** @type {Set<number>} */
  endOfTurn = new Set();

  /** @param {Json} values */
  constructor(values) {
    try {
      this.#read(values);
    } catch (error) {
      if (error instanceof SingeError) throw error;
      throw new SingeError("format", `tokenizer: malformed: ${error instanceof Error ? error.message : error}`);
    }
  }

  /** @param {Json} values */
  #read(values) {
    const { model, special_ids: named } = values;
    this.#model = choose(MODELS, { type: model?.type ?? (Array.isArray(model?.vocab) ? "Unigram" : model?.merges ? "BPE" : "WordPiece") })(model);
    this.#added = (values.added_tokens ?? []).map((/** @type {Json} */ token) => {
      if (typeof token?.content !== "string" || token.content.length > MAX_ADDED || !isId(token.id)) throw fault("an added token", token, "a content and an id");
      const plain = { special: false, lstrip: false, rstrip: false, single_word: false, normalized: true };
      return { ...plain, ...token, id: this.#model.ids.get(token.content) ?? token.id };
    });
    const pre = flat(values.pre_tokenizer, "pretokenizers");
    const byBytes = pre.some((step) => step.type === "ByteLevel");
    const cut = preTokenizerOf(pre);
    const words = model.type !== "Unigram" && model.type !== "WordPiece" && !byBytes && !model.end_of_word_suffix ? wordCutter(this.#model.ids.keys()) : null;
    this.#cut = words ? (text, first) => cut(text, first).flatMap(words) : cut;
    this.#normalize = normalizerOf(values.normalizer);
    this.#spell = byBytes ? (piece) => Array.from(ENCODER.encode(piece), (byte) => ALPHABET[byte]).join("") : (piece) => piece;
    this.#decoding = decoderOf(values.decoder);
    for (const [token, id] of this.#model.ids) this.#tokens[id] = token;
    for (const { id, content } of this.#added) this.#tokens[id] = content;
    this.size = this.#tokens.length;
    Object.assign(this, marksOf(values.post_processor));
    if ([...this.before, ...this.after, ...this.between].some((id) => id >= this.size)) throw fault("a token of the post-processor", this.before, `one of the ${this.size}`);
    this.#raw = new AddedTokens(this.#added.filter((token) => !token.normalized));
    const normalized = this.#added.filter((token) => token.normalized);
    this.#normalized = normalized.length ? new AddedTokens(normalized, this.#normalize) : null;
    this.marks = new Map(this.#added.filter((token) => token.special).map(({ content, id }) => [content, id]));
    this.special = new Set(this.#added.filter((token) => token.special).map((token) => token.id));
    this.#addedIds = new Set(this.#added.map((token) => token.id));
    this.bos = named?.bos ?? null;
    this.eos = named?.eos ?? null;
    this.endOfTurn = new Set(named?.end_of_turn ?? []);
  }

  /**
   * The ids of a text; `parseSpecial: false` takes names of marks in it for text.
   * @param {string} text
   * @param {{ addSpecial?: boolean, parseSpecial?: boolean }} [options]
   * @returns {number[]}
   */
  encode(text, { addSpecial = true, parseSpecial = true } = {}) {
    if (typeof text !== "string") throw new SingeError("input", `encode: got ${typeof text}, expected a string`);
    if (/[\ud800-\udfff]/u.test(text)) text = new TextDecoder("utf-8", { ignoreBOM: true }).decode(ENCODER.encode(text));
    /** @type {number[]} */
    const ids = [];
    let first = true;
    for (const part of this.#raw.split(text, parseSpecial)) {
      if (typeof part === "number") ids.push(part);
      else this.#append(ids, part, first, parseSpecial);
      first = false;
    }
    if (!addSpecial) return ids;
    const spelled = parseSpecial && this.before.every((id, i) => ids[i] === id);
    return [...(spelled ? [] : this.before), ...ids, ...this.after];
  }

  /**
   * What a text within a longer one is cut as.
   * @param {string} text
   */
  normalized(text) {
    return this.#normalize(text);
  }

  /**
   * How a text becomes the ids that `encode` gives without marks: its parts, what is cut of each, and the pieces with their ids.
   * @param {string} text
   */
  parts(text) {
    let first = true;
    const named = (/** @type {number} */ id) => /** @type {[string, number[]]} */ ([this.#tokens[id] ?? "", [id]]);
    return this.#raw.split(text, false).map((part) => {
      /** @type {[string, number[]][]} */
      const pieces = [];
      if (typeof part === "number") return { source: named(part)[0], normalized: named(part)[0], pieces: [named(part)] };
      const normalized = this.#normalize(part);
      for (const inner of this.#normalized ? this.#normalized.split(normalized, false) : normalized ? [normalized] : []) {
        if (typeof inner === "number") pieces.push(named(inner));
        else for (const piece of this.#cut(inner, first)) pieces.push([piece, this.#known.get(piece) ?? this.#learn(piece)]);
        first = false;
      }
      return { source: part, normalized, pieces };
    });
  }

  /**
   * @param {number[]} ids
   * @param {string} part
   * @param {boolean} first
   * @param {boolean} parseSpecial
   */
  #append(ids, part, first, parseSpecial) {
    const text = this.#normalize(part);
    if (!text) return;
    for (const inner of this.#normalized ? this.#normalized.split(text, parseSpecial) : [text]) {
      if (typeof inner === "number") ids.push(inner);
      else {
        const pieces = this.#cut(inner, first);
        for (let at = 0; at < pieces.length; at++) {
          const found = this.#known.get(pieces[at]) ?? this.#learn(pieces[at]);
          for (let i = 0; i < found.length; i++) ids.push(found[i]);
        }
      }
      first = false;
    }
  }

  /** @param {string} piece */
  #learn(piece) {
    const ids = piece ? this.#model.encode(this.#spell(piece)) : [];
    if (piece.length > 64) return ids;
    if (this.#known.size >= MAX_KNOWN) this.#known.clear();
    this.#known.set(piece, ids);
    return ids;
  }

  /**
   * The bytes of a token, as they stand in a text.
   * @param {number} id
   */
  bytes(id) {
    if (!Number.isSafeInteger(id) || id < 0 || id >= this.size) throw new SingeError("input", `the token ${id} is none of the ${this.size} of the vocabulary`);
    const token = this.#tokens[id];
    if (token === undefined) return new Uint8Array();
    const { change, bytes, addedToo } = this.#decoding;
    return addedToo || !this.#addedIds.has(id) ? bytes(change(token)) : ENCODER.encode(token);
  }

  /**
   * The text of ids; bytes that are no UTF-8 become U+FFFD.
   * @param {Iterable<number>} ids
   * @param {{ skipSpecial?: boolean }} [options]
   */
  decode(ids, { skipSpecial = true } = {}) {
    const stream = this.stream({ skipSpecial });
    let text = "";
    for (const id of ids) text += stream.feed(id);
    text += stream.finish();
    return this.#decoding.stripEnd && text.endsWith(" ") ? text.slice(0, -1) : text;
  }

  /** @param {{ skipSpecial?: boolean }} [options] */
  stream({ skipSpecial = true } = {}) {
    const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
    let atStart = this.#decoding.stripStart;
    /** @param {string} text */
    const given = (text) => {
      if (!atStart || !text) return text;
      atStart = false;
      return text.startsWith(" ") ? text.slice(1) : text;
    };
    return {
      /** @param {number} id */
      feed: (id) => {
        const bytes = this.bytes(id);
        return skipSpecial && this.special.has(id) ? "" : given(decoder.decode(bytes, { stream: true }));
      },
      finish: () => given(decoder.decode()),
    };
  }
}
