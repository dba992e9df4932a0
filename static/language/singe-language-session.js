/**
 * A conversation: what a model has read and written, and what it writes next.
 *
 * Contract: a session keeps the states of the tokens that it has read: those that a prompt has in common with those before it are not
 * read again. The calls of a session are answered one after another. If the GPU device is lost, the conversation is read again, once,
 * and goes on.
 */

/** @import { ChatOptions, GenerateOptions, Message, Session, TokenChance, TypedArray } from "../types/public.d.ts" */
/** @import { LanguageFacts } from "../types/program.d.ts" */
/** @import { LanguageModel } from "./singe-language.js" */
/** @typedef {{ scores: Float32Array[], tokens: Int32Array }} RunAnswer scores: a row each; tokens: what the run chose */

/**
 * What an answer was asked for. chances: of the tokens so far, with as many of the likeliest as logprobs says. kept: what is kept when the context is full; text: what it must match, once that is read.
 * @typedef {{ chooser: ReturnType<typeof sampler>, most: number, signal: AbortSignal | undefined, kept: Shift | undefined, drafts: Drafts, schema: unknown, regex: string | RegExp | undefined, logprobs: number | undefined, chances: TokenChance[], text?: Awaited<ReturnType<LanguageModel["constrained"]>> }} Plan
 */

import { SingeError } from "../program/singe-format.js";
import { Drafts, Shift, commonBeginning } from "./singe-language-ahead.js";
import { Answer } from "./singe-language-answer.js";
import { LATEST, NOT_CHOSEN, SAMPLING, chance, choosing, noNumbers, sampler } from "./singe-language-sampling.js";

const OPTIONS = new Set([...SAMPLING, "maxTokens", "stop", "signal", "tools", "chatTemplateKwargs", "schema", "regex", "shift", "drafts", "logprobs"]);
const MAX_LOGPROBS = 100;
const OF_SYSTEM = new Set(["system", "developer"]);
const NOTHING = new Uint8Array(0);
/** How the states of an adapter begin. */
const OF_ADAPTER = "model.";

export class LanguageSession {
  #llm;
  #session;
  #facts;
  /**
   * The tokens that the states hold.
   * @type {number[]}
   */
  #held = [];
  /** @type {Promise<unknown>} */
  #last = Promise.resolve();
  /**
   * What takes the place of the initial values of the adapter's states.
   * @type {Readonly<Record<string, TypedArray>>}
   */
  #adapter = {};

  /**
   * @param {LanguageModel} llm
   * @param {Session} session
   * @param {LanguageFacts} facts
   */
  constructor(llm, session, facts) {
    this.#llm = llm;
    this.#session = session;
    this.#facts = facts;
  }

  /**
   * Write with other numbers in the states of an adapter from the next answer on: those of a step that trains it.
   * @param {Readonly<Record<string, TypedArray>>} states
   */
  async adapt(states) {
    const end = await this.#inTurn();
    try {
      this.#held = [];
      this.#adapter = { ...this.#adapter, ...states };
      await this.#write();
    } finally {
      end();
    }
  }

  async #write() {
    for (const [name, data] of Object.entries(this.#adapter)) await this.#session.write(name, data);
  }

  async #reset() {
    await this.#session.reset();
    await this.#write();
  }

  /** How many tokens are in use of the context. */
  get tokens() {
    return this.#held.length;
  }

  /**
   * The answer to a conversation, which is given whole each time.
   * @param {readonly Message[]} messages
   * @param {ChatOptions} [options]
   */
  chat(messages, { tools, chatTemplateKwargs: extra, ...options } = {}) {
    if (!Array.isArray(messages)) throw new SingeError("input", `messages: got ${messages}, expected a list`);
    const llm = this.#llm;
    const idsOf = (/** @type {readonly Message[]} */ some) => llm.tokenizer.encode(llm.template(some, { tools, extra }), { addSpecial: false });
    const ids = idsOf(messages);
    // What comes before what is said: that which a prompt has in common with one whose first message is another.
    const place = messages.findIndex(({ role }) => !OF_SYSTEM.has(role));
    const other = () => (place < 0 ? llm.tokenizer.before : idsOf(messages.map((message, at) => (at === place ? { ...message, content: `?${message.content ?? ""}` } : message))));
    return this.#answer(ids, options, other, llm.callReader(tools));
  }

  /**
   * The text that goes on after a prompt: text, or ids of tokens.
   * @param {string | readonly number[]} prompt
   * @param {GenerateOptions} [options]
   */
  generate(prompt, options = {}) {
    const { tokenizer } = this.#llm;
    return this.#answer(typeof prompt === "string" ? tokenizer.encode(prompt) : [...prompt], options, () => tokenizer.before);
  }

  /**
   * @param {number[]} given
   * @param {GenerateOptions} options
   * @param {() => readonly number[]} other tokens that begin as a prompt does that says something else
   * @param {ReturnType<LanguageModel["callReader"]>} [calls]
   */
  #answer(given, options, other, calls) {
    const unknown = Object.keys(options).find((name) => !OPTIONS.has(name));
    if (unknown !== undefined) throw new SingeError("input", `unknown option ${JSON.stringify(unknown)}: expected some of ${[...OPTIONS].join(", ")}`);
    const { maxTokens = Infinity, stop = [], signal, schema, regex, shift = false, drafts = 0, logprobs, ...sampling } = options;
    if (!(maxTokens > 0)) throw new SingeError("input", `maxTokens: got ${maxTokens}, expected a number above 0`);
    if (typeof shift !== "boolean") throw new SingeError("input", `shift: got ${shift}, expected true or false`);
    if (logprobs !== undefined && !(Number.isInteger(logprobs) && logprobs >= 0 && logprobs <= MAX_LOGPROBS)) {
      throw new SingeError("input", `logprobs: got ${logprobs}, expected a number from 0 to ${MAX_LOGPROBS}`);
    }
    if (schema !== undefined && regex !== undefined) throw new SingeError("input", "schema and regex are given; give one of them");
    const { context, rewinds, ends } = this.#facts;
    if (drafts && !rewinds) throw new SingeError("input", "drafts: layers of this model keep what came before but not by position; generate without");
    if (!given.length) throw new SingeError("input", "the prompt has no tokens");
    if (given.length >= context && !shift) {
      const room = `the prompt has ${given.length} tokens, and there is room for ${context - 1} and an answer`;
      throw new SingeError("input", `${room}: shorten it, give shift: true, or export with a larger --context`);
    }
    const kept = shift ? new Shift(commonBeginning(given, other()), context) : undefined;
    const ids = kept ? kept.fitted(given) : given;
    /** @type {Plan} */
    const plan = {
      chooser: sampler(sampling),
      most: shift ? maxTokens : Math.min(maxTokens, context - ids.length),
      signal,
      kept,
      drafts: new Drafts(drafts, ids),
      schema,
      regex,
      logprobs,
      chances: [],
    };
    const facts = { tokenizer: this.#llm.tokenizer, ends, prompt: ids.length, stop, most: plan.most, calls, chances: plan.chances, isWhole: () => plan.text?.isWhole ?? false };
    return new Answer(this.#inTurn.bind(this), (reused) => this.#tokens(ids, plan, reused), facts);
  }

  /**
   * The ids of an answer. reused: is told how many tokens of the prompt were held.
   * @param {number[]} prompt
   * @param {Plan} plan
   * @param {(count: number) => void} reused
   */
  async *#tokens(prompt, plan, reused) {
    const { chooser, most, signal, drafts, schema, regex, logprobs, chances } = plan;
    const { context, chunk, ends } = this.#facts;
    if (schema !== undefined || regex !== undefined) plan.text = await this.#llm.constrained(schema, regex);
    const { text } = plan;
    reused(this.#keep(prompt));
    if (chooser.byRuns && this.#llm.chooses && !text && !drafts.most && logprobs === undefined) return yield* this.#chosen(prompt, plan);
    const said = [...prompt];
    let seen = [...prompt];
    for (let count = 0; count < most; ) {
      seen = this.#fitted(seen, plan);
      const { length } = seen;
      const guessed = length === this.#held.length + 1 ? drafts.guess(Math.min(context - length, most - count, chunk) - 1) : [];
      const { scores } = await this.#read([...seen, ...guessed], signal, guessed.length + 1);
      let isRight = true;
      for (let at = 0; isRight; at++) {
        const own = logprobs === undefined ? undefined : scores[at].slice();
        text?.allow(scores[at]);
        const id = chooser.choose(scores[at], said);
        if (own) chances.push({ ...chance(own, id, /** @type {number} */ (logprobs)), text: this.#llm.tokenizer.decode([id], { skipSpecial: false }) });
        text?.add(id);
        drafts.add(id);
        for (const list of [said, seen]) list.push(id);
        isRight = id === guessed[at] && !ends.includes(id) && !text?.isWhole;
      }
      const written = seen.slice(length);
      if (guessed.length) drafts.tell(written.length > guessed.length);
      this.rewind(seen.length - 1);
      count += written.length;
      yield* written;
    }
  }

  /**
   * The ids of an answer, chosen by the runs. If the session can go back, the run after a token is asked for before the token is known.
   * @param {number[]} prompt
   * @param {Plan} plan
   */
  async *#chosen(prompt, plan) {
    const { chooser, most, signal } = plan;
    const { rewinds, context } = this.#facts;
    const row = () => chooser.row(this.#llm.tokenizer.size);
    const said = [...prompt];
    let seen = [...prompt];
    /** @type {Promise<RunAnswer> | undefined} */
    let coming;
    for (let count = 1, own = row(), next = own; count <= most; count++, own = next) {
      if (!coming) seen = this.#fitted(seen, plan);
      let answer = coming ? undefined : await this.#read(seen, signal, 0, choosing(own, said));
      const run = coming;
      coming = undefined;
      next = row();
      if (count < most && rewinds && seen.length < context) {
        coming = this.#run([LATEST], seen.length + 1, 0, signal, choosing(next, [...said, LATEST]));
        coming.catch(() => {}); // told when it is waited for
      }
      answer ??= await /** @type {Promise<RunAnswer>} */ (run).catch((error) => {
        coming = undefined;
        return this.#again(error, seen, signal, 0, choosing(own, said));
      });
      const [id] = answer.tokens;
      if (id < 0) throw noNumbers("no number");
      this.#held.push(...seen.slice(this.#held.length));
      for (const list of [said, seen]) list.push(id);
      yield id;
    }
  }

  /**
   * What is kept of the tokens so far, if the context is full.
   * @param {number[]} seen
   * @param {Plan} plan
   */
  #fitted(seen, { kept }) {
    if (!kept || seen.length <= kept.room) return seen;
    const left = kept.fitted(seen);
    this.#keep(left);
    return left;
  }

  /**
   * Keep what is held of the tokens at the beginning; how many that is. One at least is read anew, for its scores.
   * @param {number[]} ids
   */
  #keep(ids) {
    const { length } = this.#held;
    let count = 0;
    while (count < length && count < ids.length - 1 && this.#held[count] === ids[count]) count++;
    this.rewind(count);
    return this.#held.length;
  }

  /**
   * The scores of what follows each of the last `rows` of `ids`, of which those that are held come first; or the token that the run
   * chooses by `chosen`.
   * @param {number[]} ids
   * @param {AbortSignal | undefined} signal
   * @param {number} rows
   * @param {typeof NOT_CHOSEN} [chosen]
   * @param {boolean} [again]
   * @returns {Promise<RunAnswer>}
   */
  async #read(ids, signal, rows, chosen = NOT_CHOSEN, again = true) {
    try {
      if (!this.#held.length && !this.#facts.rewinds) await this.#reset();
      while (true) {
        const at = this.#held.length;
        const part = ids.slice(at, at + this.#facts.chunk);
        const isLast = at + part.length === ids.length;
        const answer = await this.#run(part, at + part.length, isLast ? rows : 0, signal, isLast ? chosen : NOT_CHOSEN);
        this.#held.push(...part);
        if (isLast) return answer;
      }
    } catch (error) {
      if (again) return this.#again(/** @type {SingeError} */ (error), ids, signal, rows, chosen);
      this.#held = [];
      throw error;
    }
  }

  /**
   * Read everything once more, if the device was lost.
   * @param {SingeError} error
   * @param {number[]} ids
   * @param {AbortSignal | undefined} signal
   * @param {number} rows
   * @param {typeof NOT_CHOSEN} chosen
   */
  async #again(error, ids, signal, rows, chosen) {
    this.#held = [];
    if (error.code !== "lost") throw error;
    await this.#reset();
    return this.#read(ids, signal, rows, chosen, false);
  }

  /**
   * A run of the decoder.
   * @param {number[]} ids
   * @param {number} used how many tokens there are with these
   * @param {number} rows of how many there are scores
   * @param {AbortSignal | undefined} signal
   * @param {typeof NOT_CHOSEN} chosen
   * @returns {Promise<RunAnswer>}
   */
  async #run(ids, used, rows, signal, chosen) {
    const [keys, after] = [used, rows].map((count) => ({ data: NOTHING, shape: [count, 0] }));
    const inputs = { ids: Int32Array.from(ids), keys, rows: after, ...chosen };
    const [scores, tokens] = Object.values(await this.#session.run(inputs, { signal }));
    const all = /** @type {Float32Array} */ (scores.data);
    const width = all.length / rows;
    // A model may score more ids than its tokenizer has.
    const each = Array.from({ length: rows }, (_, at) => all.subarray(at * width, at * width + Math.min(width, this.#llm.tokenizer.size)));
    return { scores: each, tokens: /** @type {Int32Array} */ (tokens.data) };
  }

  /**
   * Forget the tokens after the first `count`.
   * @param {number} count
   */
  rewind(count) {
    if (!Number.isInteger(count) || count < 0 || count > this.#held.length) {
      throw new SingeError("input", `rewind: got ${count}, expected a number of tokens from 0 to ${this.#held.length}`);
    }
    if (count < this.#held.length && !this.#facts.rewinds) this.#held = [];
    else this.#held.length = count;
  }

  /** Another session that goes on from here. */
  copy() {
    const copy = new LanguageSession(this.#llm, this.#session.copy(), this.#facts);
    copy.#held = [...this.#held];
    copy.#adapter = this.#adapter;
    return copy;
  }

  /** A file of the tokens so far and of what the states hold of them, for `load`. */
  async save() {
    const end = await this.#inTurn();
    try {
      const { savedSession } = await import("./singe-language-saved.js");
      return await savedSession(this.#session, [...this.#held], this.#facts);
    } finally {
      end();
    }
  }

  /**
   * Go on from where a session of the same model was saved.
   * @param {Blob} file
   */
  async load(file) {
    const end = await this.#inTurn();
    try {
      const { readSession } = await import("./singe-language-saved.js");
      const { tokens, states } = await readSession(file, this.#session.states, this.#facts, this.#llm.tokenizer.size);
      const named = Object.entries(states);
      this.#held = [];
      this.#adapter = { ...this.#adapter, ...Object.fromEntries(named.filter(([name]) => name.startsWith(OF_ADAPTER))) };
      await this.#reset();
      for (const [name, data] of named) await this.#session.write(name, data);
      this.#held = tokens;
    } finally {
      end();
    }
  }

  /** Free its memory, after pending runs. */
  dispose() {
    return this.#session.dispose();
  }

  /**
   * Wait for the answers before; the promise is that it is one's turn, and gives what ends it.
   * @returns {Promise<() => void>}
   */
  #inTurn() {
    /** @type {() => void} */
    let end = () => {};
    const before = this.#last;
    this.#last = new Promise((resolve) => {
      end = () => resolve(undefined);
    });
    return before.then(() => end);
  }
}
