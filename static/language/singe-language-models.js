/**
 * What makes tokens of a piece of text: byte pairs by merges and by scores, unigrams, words of BERT.
 *
 * Contract: each model has `ids`, a Map of tokens, and `encode(piece)`, their ids. Time is O(n log n) in the length of a piece.
 */

import { SingeError } from "../program/singe-format.js";

/** @typedef {(left: string, right: string) => number | undefined} Rank when two symbols are joined, the least first */
/** @typedef {{ ids: Map<string, number>, encode(piece: string): number[] }} TokenModel */

const SHORT = 48;
const LONG = 256;
const MAX_TOKEN = 512;

/**
 * The symbols after all joins: the pair of the least rank first, of equal ones the leftmost.
 * @param {string[]} symbols
 * @param {Rank} rank
 */
export const joined = (symbols, rank) => (symbols.length > SHORT ? byHeap(symbols, rank) : byScan(symbols, rank));

/**
 * @param {string[]} symbols
 * @param {Rank} rank
 */
function byScan(symbols, rank) {
  const ranks = [];
  for (let i = 1; i < symbols.length; i++) ranks.push(rank(symbols[i - 1], symbols[i]) ?? Infinity);
  while (true) {
    let at = -1;
    let least = Infinity;
    for (let i = 0; i < ranks.length; i++) {
      if (ranks[i] < least) {
        least = ranks[i];
        at = i;
      }
    }
    if (at < 0) return symbols;
    symbols.splice(at, 2, symbols[at] + symbols[at + 1]);
    ranks.splice(at, 1);
    if (at) ranks[at - 1] = rank(symbols[at - 1], symbols[at]) ?? Infinity;
    if (at < ranks.length) ranks[at] = rank(symbols[at], symbols[at + 1]) ?? Infinity;
  }
}

/**
 * @param {string[]} symbols
 * @param {Rank} rank
 */
function byHeap(symbols, rank) {
  const count = symbols.length;
  const after = Int32Array.from(symbols, (_, i) => i + 1);
  const before = Int32Array.from(symbols, (_, i) => i - 1);
  /** @type {{ rank: number, at: number, left: string, right: string }[]} */
  const heap = [];
  /**
   * @param {typeof heap[0]} a
   * @param {typeof heap[0]} b
   */
  const isLess = (a, b) => a.rank < b.rank || (a.rank === b.rank && a.at < b.at);
  /** @param {number} at */
  const offer = (at) => {
    const [left, right] = [symbols[at], symbols[after[at]]];
    const found = rank(left, right);
    if (found === undefined) return;
    const item = { rank: found, at, left, right };
    let i = heap.push(item) - 1;
    for (let up = (i - 1) >> 1; i && isLess(item, heap[up]); i = up, up = (i - 1) >> 1) heap[i] = heap[up];
    heap[i] = item;
  };
  const take = () => {
    const top = heap[0];
    const item = /** @type {typeof top} */ (heap.pop());
    if (heap.length) {
      let i = 0;
      for (let down = 1; down < heap.length; i = down, down = 2 * i + 1) {
        if (down + 1 < heap.length && isLess(heap[down + 1], heap[down])) down++;
        if (!isLess(heap[down], item)) break;
        heap[i] = heap[down];
      }
      heap[i] = item;
    }
    return top;
  };
  for (let i = 0; i + 1 < count; i++) offer(i);
  while (heap.length) {
    const { at, left, right } = take();
    const other = after[at];
    if (other === count || symbols[at] !== left || symbols[other] !== right) continue;
    symbols[at] = left + right;
    symbols[other] = "";
    after[at] = after[other];
    if (after[at] < count) {
      before[after[at]] = at;
      offer(at);
    }
    if (before[at] >= 0) offer(before[at]);
  }
  return symbols.filter((symbol) => symbol);
}

/**
 * Cuts a long piece between any two characters that stand side by side in no token.
 * @param {Iterable<string>} tokens
 */
function pairCutter(tokens) {
  /** @type {Set<string> | null} */
  let pairs = null;
  return (/** @type {string} */ piece) => {
    if (!pairs) {
      pairs = new Set();
      for (const token of tokens) {
        let last = "";
        for (const character of token) {
          if (last) pairs.add(last + character);
          last = character;
        }
      }
    }
    const parts = [];
    let last = "";
    let part = "";
    for (const character of piece) {
      if (last && !pairs.has(last + character)) {
        parts.push(part);
        part = "";
      }
      part += character;
      last = character;
    }
    return part ? [...parts, part] : parts;
  };
}

/**
 * The ids of the tokens <0x00> to <0xFF>, null unless there are all.
 * @param {Map<string, number>} ids
 */
function fallbackIds(ids) {
  const found = Array.from({ length: 256 }, (_, byte) => ids.get(`<0x${byte.toString(16).toUpperCase().padStart(2, "0")}>`));
  return found.includes(undefined) ? null : /** @type {number[]} */ (found);
}

const ENCODER = new TextEncoder();

/**
 * @param {Map<string, number>} ids
 * @param {Iterable<[string, string]>} merges
 * @param {{ whole?: boolean, byteFallback?: boolean, unknown?: string | null, fuseUnknown?: boolean, suffix?: string }} options
 * @returns {TokenModel}
 */
export function mergesModel(ids, merges, { whole = false, byteFallback = false, unknown = null, fuseUnknown = false, suffix = "" }) {
  // Ranks are found by what is joined: nearly every token is joined of one pair, and a Map of pairs takes as much memory as all tokens.
  const distinct = new Set(ids.values()).size === ids.size;
  let size = 0;
  for (const id of ids.values()) size = Math.max(size, id + 1);
  const [ranks, lengths] = [0, 0].map(() => new Int32Array(size));
  /** @type {Map<string, number>} */
  const others = new Map();
  const key = (/** @type {string} */ left, /** @type {string} */ right) => `${left.length} ${left}${right}`;
  let count = 0;
  for (const [left, right] of merges) {
    const id = ids.get(left + right);
    if (id === undefined || !ids.has(left) || !ids.has(right)) {
      throw new SingeError("format", `the merge of ${JSON.stringify(left)} and ${JSON.stringify(right)} is not of tokens of the vocabulary`);
    }
    count++;
    if (distinct && (!ranks[id] || lengths[id] === left.length)) {
      ranks[id] = count;
      lengths[id] = left.length;
    } else others.set(key(left, right), count);
  }
  /** @type {Rank} */
  const rank = (left, right) => {
    const id = ids.get(left + right);
    return id === undefined ? id : ranks[id] && lengths[id] === left.length ? ranks[id] : others.get(key(left, right));
  };
  const fallback = byteFallback ? fallbackIds(ids) : null;
  const unknownId = unknown === null ? undefined : ids.get(unknown);
  const cut = pairCutter(ids.keys());
  /** @param {string[]} symbols */
  const idsOf = (symbols) => {
    /** @type {number[]} */
    const found = [];
    for (const symbol of symbols) {
      const id = ids.get(symbol);
      if (id !== undefined) found.push(id);
      else if (fallback) for (const byte of ENCODER.encode(symbol)) found.push(fallback[byte]);
      else if (unknownId !== undefined && !(fuseUnknown && found.at(-1) === unknownId)) found.push(unknownId);
    }
    return found;
  };
  return {
    ids,
    encode(piece) {
      const id = whole ? ids.get(piece) : undefined;
      if (id !== undefined) return [id];
      if (!suffix) return idsOf((piece.length > LONG ? cut(piece) : [piece]).flatMap((part) => joined([...part], rank)));
      const symbols = [...piece];
      symbols.push(symbols.pop() + suffix);
      return idsOf(
        joined(
          symbols.filter((symbol) => ids.has(symbol) || fallback || unknownId !== undefined),
          rank,
        ),
      );
    },
  };
}

/**
 * SentencePiece's byte pairs: of all pairs that join to a token, that of the best score is next. A run of what is no token becomes one unknown.
 * @param {Map<string, number>} ids
 * @param {Map<string, number>} scores
 * @param {number | null} unknown
 * @returns {TokenModel}
 */
export function scoresModel(ids, scores, unknown) {
  /** @type {Rank} */
  const rank = (left, right) => {
    const score = scores.get(left + right);
    return score === undefined ? undefined : -score;
  };
  const fallback = fallbackIds(ids);
  const cut = pairCutter(scores.keys());
  return {
    ids,
    encode: (piece) =>
      (piece.length > LONG ? cut(piece) : [piece])
        .flatMap((part) =>
          joined([...part], rank).flatMap((symbol) => {
            if (scores.has(symbol)) return [/** @type {number} */ (ids.get(symbol))];
            if (fallback) return Array.from(ENCODER.encode(symbol), (byte) => fallback[byte]);
            return unknown === null ? [] : [unknown];
          }),
        )
        .filter((id, k, all) => id !== unknown || all[k - 1] !== unknown),
  };
}

/**
 * SentencePiece's unigrams: of all ways to write a piece, that whose scores have the greatest sum.
 * @param {Map<string, number>} ids
 * @param {Map<string, number>} scores
 * @param {number | null} unknown
 * @param {boolean} byteFallback
 * @returns {TokenModel}
 */
export function unigramModel(ids, scores, unknown, byteFallback) {
  /** @type {Map<string, number>} */
  const longest = new Map();
  let worst = Infinity;
  for (const [token, score] of scores) {
    if (token.length > MAX_TOKEN) throw new SingeError("format", `a token has ${token.length} characters, expected at most ${MAX_TOKEN}`);
    if (token) longest.set(token[0], Math.max(longest.get(token[0]) ?? 0, token.length));
    worst = Math.min(worst, score);
  }
  const unknownScore = (scores.size ? worst : 0) - 10;
  const fallback = byteFallback ? fallbackIds(ids) : null;
  /** @param {string} text */
  const unknownIds = (text) => {
    if (!text) return [];
    if (fallback) return Array.from(ENCODER.encode(text), (byte) => fallback[byte]);
    if (unknown === null) throw new SingeError("format", `${JSON.stringify(text)} is in no token, and the tokenizer names none for what is unknown`);
    return [unknown];
  };
  return {
    ids,
    encode(piece) {
      const count = piece.length;
      const best = new Float64Array(count + 1).fill(-Infinity);
      best[0] = 0;
      const starts = new Int32Array(count + 1);
      for (let start = 0; start < count; ) {
        const here = best[start];
        const width = /** @type {number} */ (piece.codePointAt(start)) > 0xffff ? 2 : 1;
        let hasSingle = false;
        const limit = Math.min(start + (longest.get(piece[start]) ?? 0), count);
        for (let end = start + 1; end <= limit; end++) {
          const score = scores.get(piece.slice(start, end));
          if (score === undefined) continue;
          if (end === start + width) hasSingle = true;
          if (here + score > best[end]) {
            best[end] = here + score;
            starts[end] = start;
          }
        }
        if (!hasSingle && here + unknownScore > best[start + width]) {
          best[start + width] = here + unknownScore;
          starts[start + width] = start;
        }
        start += width;
      }
      const tokens = [];
      for (let end = count; end; end = starts[end]) tokens.push(piece.slice(starts[end], end));
      /** @type {number[]} */
      const found = [];
      let unmatched = "";
      for (const token of tokens.reverse()) {
        if (!scores.has(token)) {
          unmatched += token;
          continue;
        }
        found.push(...unknownIds(unmatched), /** @type {number} */ (ids.get(token)));
        unmatched = "";
      }
      return [...found, ...unknownIds(unmatched)];
    },
  };
}

/**
 * BERT's words: the longest token that begins a word, then the longest that goes on.
 * @param {Map<string, number>} ids
 * @param {number} unknown
 * @param {string} prefix
 * @param {number} longest
 * @returns {TokenModel}
 */
export function wordPiecesModel(ids, unknown, prefix, longest) {
  return {
    ids,
    encode(piece) {
      const characters = [...piece];
      if (characters.length > longest) return [unknown];
      const found = [];
      for (let start = 0; start < characters.length; ) {
        let end = characters.length;
        let id;
        for (; end > start; end--) {
          id = ids.get((start ? prefix : "") + characters.slice(start, end).join(""));
          if (id !== undefined) break;
        }
        if (id === undefined) return [unknown];
        found.push(id);
        start = end;
      }
      return found;
    },
  };
}
