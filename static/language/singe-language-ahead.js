/**
 * What is kept of a text when its context is full, and guesses at what comes next.
 *
 * Contract: `new Shift(beginning, room)` keeps the first tokens and the later half of the rest, as core/singe/language/shifting.py.
 * `new Drafts(most, tokens)` guesses the tokens that followed the latest few before, as core/singe/language/drafts.py.
 */

import { SingeError } from "../program/singe-format.js";

const MAX_DRAFTS = 15;
/** How many of the latest tokens must have stood together before. */
const ALIKE = 3;

/**
 * How many tokens two lists have in common at their beginning.
 * @param {readonly number[]} tokens
 * @param {readonly number[]} others
 */
export function commonBeginning(tokens, others) {
  let count = 0;
  while (count < tokens.length && count < others.length && tokens[count] === others[count]) count++;
  return count;
}

/**
 * Tokens are dropped by half of what is beside the beginning, so that a text that grows drops the same ones until it is full again, and
 * what is left of it need not be read anew.
 */
export class Shift {
  /**
   * @param {number} beginning how many tokens are always kept
   * @param {number} room
   */
  constructor(beginning, room) {
    if (2 * beginning > room || room < 2) {
      const half = `the beginning that is kept has ${beginning} tokens, at most half of the room for ${room}`;
      throw new SingeError("input", `shift: ${half}; shorten it, or export with a larger --context`);
    }
    this.beginning = beginning;
    this.room = room;
  }

  /**
   * The tokens that are kept of these; all, if there is room.
   * @param {number[]} tokens
   */
  fitted(tokens) {
    const half = Math.floor((this.room - this.beginning) / 2);
    const dropped = Math.ceil(Math.max(tokens.length - this.room, 0) / half) * half;
    return dropped ? [...tokens.slice(0, this.beginning), ...tokens.slice(this.beginning + dropped)] : tokens;
  }
}

/** It begins with one guess, which costs a run little, and makes twice as many after guesses that were right. */
export class Drafts {
  /** @type {number[]} */
  #tokens = [];
  /** Some tokens, as a text ↦ the latest place after them. @type {Map<string, number>} */
  #places = new Map();
  #next = 1;

  /**
   * @param {number} most how many are guessed at once
   * @param {readonly number[]} tokens
   */
  constructor(most, tokens) {
    if (!Number.isInteger(most) || most < 0 || most > MAX_DRAFTS) throw new SingeError("input", `drafts: got ${most}, expected a number of tokens from 0 to ${MAX_DRAFTS}`);
    this.most = most;
    for (const token of tokens) this.add(token);
  }

  /**
   * Note the token that follows those so far.
   * @param {number} token
   */
  add(token) {
    if (!this.most) return;
    if (this.#tokens.length >= ALIKE) this.#places.set(this.#latest(), this.#tokens.length);
    this.#tokens.push(token);
  }

  #latest() {
    return this.#tokens.slice(-ALIKE).join();
  }

  /**
   * The tokens that may come next: no more than there is room for.
   * @param {number} room
   */
  guess(room) {
    const place = this.#places.get(this.#latest());
    return place === undefined ? [] : this.#tokens.slice(place, place + Math.min(this.#next, Math.max(room, 0)));
  }

  /**
   * Say whether all of the latest guesses were right.
   * @param {boolean} wereRight
   */
  tell(wereRight) {
    this.#next = wereRight ? Math.min(2 * this.#next, this.most) : 1;
  }
}
