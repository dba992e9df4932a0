/**
 * The text of an answer, as it is written.
 *
 * Contract: an Answer is iterated once, by parts of the text as soon as they are certain: a beginning of a stop string is held
 * back until it is known to be none, and what may be a call of a tool until the end. Whoever leaves the loop ends the answer.
 * `text()` is all of it. `finishReason` is null until the end, then "stop" (a token or a string ends it, or it matches what it must),
 * "tool_calls" (it ends with `toolCalls`, which are no part of the text) or "length".
 */

/** @import { TokenChance, ToolCall } from "../types/public.d.ts" */
/** @import { Tokenizer } from "./singe-language-tokenizer.js" */
/** @import { callReader } from "./singe-language-tools.js" */

import { SingeError } from "../program/singe-format.js";

export class Answer {
  #inTurn;
  #tokens;
  #facts;
  /** @type {readonly string[]} */
  #stops;
  #taken = false;
  /** @type {"stop" | "tool_calls" | "length" | null} */
  finishReason = null;
  /** @type {readonly ToolCall[]} */
  toolCalls = [];
  usage = { promptTokens: 0, reusedTokens: 0, completionTokens: 0, totalTokens: 0 };
  /** Milliseconds until the first token, and of the others. */
  timings = { prompt: 0, completion: 0 };

  /**
   * inTurn: waits for the answers before. tokens: the ids, and it tells how many tokens of the prompt were not read again. chances: of
   * these ids and perhaps of later ones, if they are asked for. isWhole: whether the text may not go on after the latest of them.
   * @param {() => Promise<() => void>} inTurn
   * @param {(reused: (count: number) => void) => AsyncIterable<number>} tokens
   * @param {{ tokenizer: Tokenizer, ends: readonly number[], prompt: number, stop: string | readonly string[], most: number, chances: readonly TokenChance[], isWhole: () => boolean, calls: ReturnType<typeof callReader> | undefined }} facts
   */
  constructor(inTurn, tokens, facts) {
    this.#inTurn = inTurn;
    this.#tokens = tokens;
    this.#facts = facts;
    this.#stops = typeof facts.stop === "string" ? [facts.stop] : [...facts.stop];
    if (!this.#stops.every((text) => typeof text === "string" && text)) throw new SingeError("input", "stop: expected a text, or a list of texts, none of them empty");
    this.usage.promptTokens = this.usage.totalTokens = facts.prompt;
  }

  /** Tokens a second, the first one left out. */
  get tokensPerSecond() {
    const { completion } = this.timings;
    return completion ? ((this.usage.completionTokens - 1) * 1000) / completion : 0;
  }

  /** Of the tokens so far. */
  get logprobs() {
    return this.#facts.chances.slice(0, this.usage.completionTokens);
  }

  async text() {
    let text = "";
    for await (const part of this) text += part;
    return text;
  }

  async *[Symbol.asyncIterator]() {
    if (this.#taken) throw new SingeError("input", "an answer can be read once: keep its parts");
    this.#taken = true;
    const end = await this.#inTurn();
    try {
      yield* this.#parts();
    } finally {
      end();
    }
  }

  async *#parts() {
    const { tokenizer, ends, prompt, most, isWhole, calls } = this.#facts;
    const { usage, timings } = this;
    const stream = tokenizer.stream();
    const given = (/** @type {string} */ text) => calls?.feed(text) ?? text;
    let held = "";
    const begun = performance.now();
    let first = 0;
    const reused = (/** @type {number} */ count) => {
      usage.reusedTokens = count;
    };
    for await (const id of this.#tokens(reused)) {
      const now = performance.now();
      first ||= now;
      timings.prompt = first - begun;
      timings.completion = now - first;
      usage.totalTokens = prompt + ++usage.completionTokens;
      const isEnd = ends.includes(id);
      if (!isEnd) held += stream.feed(id);
      const at = this.#stopIn(held);
      if (isEnd || at < held.length || isWhole()) this.finishReason = "stop";
      if (this.finishReason || usage.completionTokens === most) break;
      const certain = at - this.#heldBack(held);
      const part = given(held.slice(0, certain));
      held = held.slice(certain);
      if (part) yield part;
    }
    this.finishReason ??= "length";
    held += stream.finish();
    let last = given(held.slice(0, this.#stopIn(held)));
    if (calls) {
      const { rest, calls: found } = calls.finish();
      last += rest;
      this.toolCalls = found;
      if (found.length && this.finishReason === "stop") this.finishReason = "tool_calls";
    }
    if (last) yield last;
  }

  /**
   * Where the first stop string begins; the length if there is none.
   * @param {string} text
   */
  #stopIn(text) {
    const found = this.#stops.map((stop) => text.indexOf(stop)).filter((at) => at >= 0);
    return Math.min(text.length, ...found);
  }

  /**
   * How many of the last characters may be the beginning of a stop string.
   * @param {string} text
   */
  #heldBack(text) {
    const most = Math.min(text.length, Math.max(0, ...this.#stops.map((stop) => stop.length - 1)));
    for (let count = most; count; count--) {
      const end = text.slice(-count);
      if (this.#stops.some((stop) => stop.startsWith(end))) return count;
    }
    return 0;
  }
}
