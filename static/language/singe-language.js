/**
 * A language model in a page: text in, text out, over a model of singe-model.js (or of a worker) with a decoder's states.
 *
 * Contract: `languageModel(model, folder, options)` is what `load` returns for a bundle with `language` in its manifest. A session
 * keeps what the model has read: the tokens that a prompt has in common with those before it are not read again. The calls of a
 * session are answered one after another. If the GPU device is lost, the conversation is read again, once, and goes on.
 */

/** @import { ChatOptions, GenerateOptions, LanguageModel as PublicLanguageModel, LoadOptions, Message, Model, Session, TypedArray } from "../types/public.d.ts" */
/** @import { FileEntry, LanguageFacts } from "../types/program.d.ts" */

/** @typedef {ReturnType<typeof sampler>} Chooser */
/** @typedef {{ scores: Float32Array, tokens: Int32Array }} RunAnswer */

import { Files } from "../loading/singe-files.js";
import { IS, SingeError, check } from "../program/singe-format.js";
import { Answer } from "./singe-language-answer.js";
import { completions } from "./singe-language-completions.js";
import { prompts } from "./singe-language-prompts.js";
import { LATEST, NOT_CHOSEN, SAMPLING, choosing, noNumbers, sampler } from "./singe-language-sampling.js";
import { ChatTemplate } from "./singe-language-template.js";
import { Tokenizer } from "./singe-language-tokenizer.js";

const FILE = { file: IS["plain file name"], bytes: IS.count, sha256: IS.sha256 };
const ADAPTER = { ...FILE, states: [] };
const FACTS = { tokenizer: FILE, marks: [IS.text], ends: [IS.count], context: IS.count, chunk: IS.count };
const OPTIONS = new Set([...SAMPLING, "maxTokens", "stop", "signal", "tools"]);
const NOTHING = new Uint8Array(0);

/**
 * @param {Model} model
 * @param {URL} folder
 * @param {LoadOptions} options
 * @returns {Promise<PublicLanguageModel>}
 */
export async function languageModel(model, folder, { cache = true, signal }) {
  const files = new Files(folder, cache, signal);
  try {
    const facts = /** @type {Model & { language: LanguageFacts }} */ (model).language;
    check(facts, FACTS, "language");
    const values = await files.json(facts.tokenizer);
    files.stop(true);
    const read = (/** @type {FileEntry} */ entry) => new Files(folder, cache).bytes(entry);
    return /** @type {PublicLanguageModel} */ (/** @type {unknown} */ (new LanguageModel(model, facts, new Tokenizer(values), read)));
  } catch (error) {
    files.stop();
    model.dispose();
    throw error;
  }
}

class LanguageModel {
  #model;
  #facts;
  #template;
  #read;
  /** @type {LanguageSession} */
  #own;

  /**
   * @param {Model} model
   * @param {LanguageFacts} facts
   * @param {Tokenizer} tokenizer
   * @param {(entry: FileEntry) => Promise<Uint8Array<ArrayBuffer>>} read
   */
  constructor(model, facts, tokenizer, read) {
    this.#read = read;
    this.#model = model;
    this.#facts = facts;
    this.tokenizer = tokenizer;
    const { template, marks } = facts;
    this.#template = template === null ? undefined : new ChatTemplate(template, ...marks);
    this.#own = this.session();
    /** @type {PublicLanguageModel["chat"]} */
    this.chat = Object.assign((/** @type {readonly Message[]} */ messages, /** @type {ChatOptions | undefined} */ options) => this.#own.chat(messages, options), {
      completions: completions(this),
    });
    this.LanguageModel = prompts(/** @type {PublicLanguageModel} */ (/** @type {unknown} */ (this)));
  }

  get name() {
    return this.#model.name;
  }

  get device() {
    return this.#model.device;
  }

  get threads() {
    return this.#model.threads;
  }

  /** Whether runs choose tokens: where it costs more to read the scores. */
  get chooses() {
    return this.#model.device === "webgpu" && !this.#model.software;
  }

  get worker() {
    return this.#model.worker;
  }

  get memory() {
    return this.#model.memory;
  }

  get gpuDevice() {
    return this.#model.gpuDevice;
  }

  /** For how many tokens a conversation has room. */
  get context() {
    return this.#facts.context;
  }

  /**
   * The text that the model reads for a conversation.
   * @param {readonly Message[]} messages
   * @param {{ tools?: object[], addGenerationPrompt?: boolean }} [options]
   * @returns {string}
   */
  template(messages, options) {
    if (this.#template) return this.#template.render([...messages], options);
    throw new SingeError("input", `${this.name} has no chat template: give its prompts to generate(text)`);
  }

  /**
   * @param {string | readonly number[]} prompt
   * @param {GenerateOptions} [options]
   */
  generate(prompt, options) {
    return this.#own.generate(prompt, options);
  }

  session() {
    return new LanguageSession(this, this.#model.session(), this.#facts);
  }

  /**
   * See LanguageSession; of the session of `chat` and `generate`.
   * @param {Readonly<Record<string, TypedArray>>} states
   */
  adapt(states) {
    return this.#own.adapt(states);
  }

  /**
   * A text as batches for a step that trains an adapter, each of so many tokens.
   * @param {string} text
   * @param {number} length
   */
  async examples(text, length) {
    const { eos } = this.tokenizer;
    const ids = this.tokenizer.encode(text);
    const { examplesOf } = await import("./singe-language-tuning.js");
    return examplesOf(eos === null || ids.at(-1) === eos ? ids : [...ids, eos], length);
  }

  /**
   * A GGUF file of an adapter.
   * @param {Readonly<Record<string, TypedArray>>} states
   */
  async adapterFile(states) {
    const { adapter } = this.#facts;
    if (!adapter) throw new SingeError("input", `${this.name} has no adapter: export what sg.language.with_states gives, or with --train lora`);
    check(adapter, ADAPTER, "language.adapter");
    const { adapterFile } = await import("./singe-language-tuning.js");
    return adapterFile(await this.#read(adapter), adapter.states, states);
  }

  /** Free everything, after pending runs. */
  dispose() {
    return this.#model.dispose();
  }
}

class LanguageSession {
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
  chat(messages, { tools, ...options } = {}) {
    const text = this.#llm.template(messages, { tools });
    return this.generate(this.#llm.tokenizer.encode(text, { addSpecial: false }), options);
  }

  /**
   * The text that goes on after a prompt: text, or ids of tokens.
   * @param {string | readonly number[]} prompt
   * @param {GenerateOptions} [options]
   */
  generate(prompt, options = {}) {
    const unknown = Object.keys(options).find((name) => !OPTIONS.has(name));
    if (unknown !== undefined) throw new SingeError("input", `unknown option ${JSON.stringify(unknown)}: expected some of ${[...OPTIONS].join(", ")}`);
    const { maxTokens = Infinity, stop = [], signal, ...sampling } = options;
    if (!(maxTokens > 0)) throw new SingeError("input", `maxTokens: got ${maxTokens}, expected a number above 0`);
    const ids = typeof prompt === "string" ? this.#llm.tokenizer.encode(prompt) : [...prompt];
    const { context } = this.#facts;
    if (!ids.length) throw new SingeError("input", "the prompt has no tokens");
    if (ids.length >= context) {
      throw new SingeError("input", `the prompt has ${ids.length} tokens, and there is room for ${context - 1} and an answer: shorten it, or export with a larger --context`);
    }
    const chooser = sampler(sampling);
    const most = Math.min(maxTokens, context - ids.length);
    const { tokenizer } = this.#llm;
    return new Answer(this.#inTurn.bind(this), (reused) => this.#tokens(ids, chooser, most, signal, reused), { tokenizer, ends: this.#facts.ends, prompt: ids.length, stop, most });
  }

  /**
   * The ids of an answer. reused: is told how many tokens of the prompt were held.
   * @param {number[]} prompt
   * @param {Chooser} chooser
   * @param {number} most
   * @param {AbortSignal | undefined} signal
   * @param {(count: number) => void} reused
   */
  async *#tokens(prompt, chooser, most, signal, reused) {
    const seen = [...prompt];
    reused(this.#keep(prompt));
    if (chooser.byRuns && this.#llm.chooses) return yield* this.#chosen(seen, chooser, most, signal);
    for (let count = 0; count < most; count++) {
      const { scores } = await this.#read(seen, signal);
      const id = chooser.choose(scores, seen);
      seen.push(id);
      yield id;
    }
  }

  /**
   * The ids of an answer, chosen by the runs. If the session can go back, the run after a token is asked for before the token is known.
   * @param {number[]} seen
   * @param {Chooser} chooser
   * @param {number} most
   * @param {AbortSignal | undefined} signal
   */
  async *#chosen(seen, chooser, most, signal) {
    const row = () => chooser.row(this.#llm.tokenizer.size);
    /** @type {Promise<RunAnswer> | undefined} */
    let coming;
    for (let count = 1, own = row(), next = own; count <= most; count++, own = next) {
      let answer = coming ? undefined : await this.#read(seen, signal, own);
      const run = coming;
      coming = undefined;
      next = row();
      if (count < most && this.#facts.rewinds) {
        coming = this.#run([LATEST], seen.length + 1, 0, signal, choosing(next, [...seen, LATEST]));
        coming.catch(() => {}); // told when it is waited for
      }
      answer ??= await /** @type {Promise<RunAnswer>} */ (run).catch((error) => {
        coming = undefined;
        return this.#again(error, seen, signal, own);
      });
      const [id] = answer.tokens;
      if (id < 0) throw noNumbers("no number");
      this.#held.push(...seen.slice(this.#held.length));
      seen.push(id);
      yield id;
    }
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
   * The scores of what follows `ids`, of which those that are held come first; or with `row` the token that a run chooses by it.
   * @param {number[]} ids
   * @param {AbortSignal | undefined} signal
   * @param {Float32Array<ArrayBuffer>} [row]
   * @param {boolean} [again]
   * @returns {Promise<RunAnswer>}
   */
  async #read(ids, signal, row, again = true) {
    try {
      if (!this.#held.length && !this.#facts.rewinds) await this.#reset();
      while (true) {
        const at = this.#held.length;
        const part = ids.slice(at, at + this.#facts.chunk);
        const isLast = at + part.length === ids.length;
        const answer = await this.#run(part, at + part.length, isLast && !row ? 1 : 0, signal, isLast && row ? choosing(row, ids) : NOT_CHOSEN);
        this.#held.push(...part);
        if (isLast) return answer;
      }
    } catch (error) {
      if (again) return this.#again(/** @type {SingeError} */ (error), ids, signal, row);
      this.#held = [];
      throw error;
    }
  }

  /**
   * Read everything once more, if the device was lost.
   * @param {SingeError} error
   * @param {number[]} ids
   * @param {AbortSignal | undefined} signal
   * @param {Float32Array<ArrayBuffer>} [row]
   */
  async #again(error, ids, signal, row) {
    this.#held = [];
    if (error.code !== "lost") throw error;
    await this.#reset();
    return this.#read(ids, signal, row, false);
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
    // A model may score more ids than its tokenizer has.
    return { scores: /** @type {Float32Array} */ (scores.data).subarray(0, this.#llm.tokenizer.size), tokens: /** @type {Int32Array} */ (tokens.data) };
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
