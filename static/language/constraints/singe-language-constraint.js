/**
 * Which tokens may follow, so that a text matches a regular expression or a JSON schema.
 *
 * Contract: `new TextConstraints(tokenizer, ends).text(schema, regex)`, of which one is given (the schema true for any object), is a
 * text that is to match, with the tokens of a model, of which `ends` end a text: `allow(scores)` makes the scores of those that may
 * not follow -Infinity, `add(id)` notes the one that was chosen, `isWhole` says whether the text must end there. What is not known is
 * refused by its name.
 */

/** @import { Tokenizer } from "../singe-language-tokenizer.js" */

import { SingeError } from "../../program/singe-format.js";
import { Automaton, DEAD } from "./singe-language-automaton.js";
import { regularExpression } from "./singe-language-regular.js";
import { schemaRules } from "./singe-language-schema.js";

/** Longer tokens are not written. */
const MAX_TOKEN_BYTES = 64;
/** Of the masks of an automaton's states that are kept. */
const MAX_MASK_BYTES = 1 << 23;
/** Automata that are kept. */
const MAX_KEPT = 8;
/** A regular expression may have these flags, which say nothing of the texts that match. */
const FLAGS = /^[dguy]*$/;

export class TextConstraints {
  #tokenizer;
  #ends;
  /** @type {Token[] | undefined} */
  #tokens;
  /** The latest ones. @type {Map<string, TextConstraint>} */
  #kept = new Map();

  /**
   * @param {Tokenizer} tokenizer
   * @param {readonly number[]} ends
   */
  constructor(tokenizer, ends) {
    this.#tokenizer = tokenizer;
    this.#ends = new Set(ends);
  }

  /**
   * @param {unknown} schema
   * @param {string | RegExp | undefined} regex
   */
  text(schema, regex) {
    const key = regex === undefined ? keyOf(schema) : `/${patternOf(regex)}`;
    const found = this.#kept.get(key) ?? new TextConstraint((this.#tokens ??= tokensOf(this.#tokenizer)), this.#tokenizer.size, schema, regex);
    this.#kept.delete(key);
    this.#kept.set(key, found);
    for (const [oldest] of this.#kept) if (this.#kept.size > MAX_KEPT) this.#kept.delete(oldest);
    return new ConstrainedText(found, this.#tokenizer, this.#ends);
  }
}

/**
 * A token that is text. word: its bytes, a character each; shared: how many of them the token before has too.
 * @typedef {{ id: number, word: string, shared: number }} Token
 */

/**
 * The tokens that are text, and no marks, in the order of their bytes.
 * @param {Tokenizer} tokenizer
 */
function tokensOf(tokenizer) {
  /** @type {Token[]} */
  const tokens = [];
  for (let id = 0; id < tokenizer.size; id++) {
    const bytes = tokenizer.special.has(id) ? [] : tokenizer.bytes(id);
    if (bytes.length && bytes.length <= MAX_TOKEN_BYTES) tokens.push({ id, word: String.fromCharCode(...bytes), shared: 0 });
  }
  tokens.sort((a, b) => (a.word < b.word ? -1 : Number(a.word > b.word)));
  let last = "";
  for (const token of tokens) {
    while (token.shared < last.length && last[token.shared] === token.word[token.shared]) token.shared++;
    last = token.word;
  }
  return tokens;
}

class TextConstraint {
  #tokens;
  #size;
  /** @type {Map<number, Uint8Array>} */
  #masks = new Map();

  /**
   * @param {Token[]} tokens
   * @param {number} size
   * @param {unknown} schema
   * @param {string | RegExp | undefined} regex
   */
  constructor(tokens, size, schema, regex) {
    this.#tokens = tokens;
    this.#size = size;
    try {
      this.automaton = new Automaton(regex === undefined ? schemaRules(schema) : new Map([["", regularExpression(patternOf(regex)).expression]]));
    } catch (error) {
      throw error instanceof SingeError ? error : tooDeep();
    }
  }

  /**
   * Whether each token may follow.
   * @param {number} state
   */
  mask(state) {
    let found = this.#masks.get(state);
    if (!found) {
      if (this.#masks.size * this.#size > MAX_MASK_BYTES) this.#masks.clear();
      found = this.#masked(state);
      this.#masks.set(state, found);
    }
    return found;
  }

  /**
   * Tokens in order: the bytes that one has in common with the token before are not read again.
   * @param {number} state
   */
  #masked(state) {
    const mask = new Uint8Array(this.#size);
    const states = new Uint16Array(MAX_TOKEN_BYTES + 1);
    states[0] = state;
    let alive = 0; // the bytes of the token before, up to the one that matched nothing
    for (const { id, word, shared } of this.#tokens) {
      if (shared > alive) continue;
      for (alive = shared; alive < word.length; alive++) {
        const after = this.automaton.row(states[alive])[word.charCodeAt(alive)];
        if (after === DEAD) break;
        states[alive + 1] = after;
      }
      if (alive === word.length) mask[id] = 1;
    }
    return mask;
  }
}

class ConstrainedText {
  #constraint;
  #tokenizer;
  #ends;
  #state;

  /**
   * @param {TextConstraint} constraint
   * @param {Tokenizer} tokenizer
   * @param {ReadonlySet<number>} ends
   */
  constructor(constraint, tokenizer, ends) {
    this.#constraint = constraint;
    this.#tokenizer = tokenizer;
    this.#ends = ends;
    this.#state = constraint.automaton.start;
  }

  /** @param {Float32Array} scores */
  allow(scores) {
    const mask = this.#constraint.mask(this.#state);
    const mayEnd = this.#constraint.automaton.accepts[this.#state];
    let count = 0;
    for (let id = 0; id < scores.length; id++) {
      if (this.#ends.has(id) ? mayEnd : mask[id]) count++;
      else scores[id] = -Infinity;
    }
    if (!count) throw new SingeError("input", "no token can follow so that the text matches its schema or regex; give another one");
  }

  /** @param {number} id */
  add(id) {
    if (this.#ends.has(id)) return;
    for (const byte of this.#tokenizer.bytes(id)) this.#state = this.#constraint.automaton.row(this.#state)[byte];
  }

  get isWhole() {
    const { automaton } = this.#constraint;
    return automaton.accepts[this.#state] && automaton.row(this.#state).every((after) => after === DEAD);
  }
}

/** @param {string | RegExp} regex */
function patternOf(regex) {
  if (!(regex instanceof RegExp)) return regex;
  if (!FLAGS.test(regex.flags)) throw new SingeError("input", `regex: got the flags ${regex.flags}, expected none; write what they mean`);
  return regex.source;
}

/** @param {unknown} schema */
function keyOf(schema) {
  try {
    return JSON.stringify(schema) ?? "";
  } catch {
    throw tooDeep();
  }
}

const tooDeep = () => new SingeError("input", "the schema has what JSON cannot write, or is nested too deeply; give definitions of its parts names, or a simpler one");
