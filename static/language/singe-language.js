/**
 * A language model in a page: text in, text out, over a model of singe-model.js (or of a worker) with a decoder's states.
 *
 * Contract: `languageModel(facts, folder, options)` begins to read the tokenizer, beside the weights, and returns a function from the
 * loaded model to what `load` returns for a bundle with `language` in its manifest.
 */

/** @import { ChatOptions, CompletionRequest, GenerateOptions, LanguageModel as PublicLanguageModel, LoadOptions, Message, Model, TypedArray } from "../types/public.d.ts" */
/** @import { FileEntry, LanguageFacts } from "../types/program.d.ts" */
/** @import { TextConstraints } from "./constraints/singe-language-constraint.js" */

import { Files } from "../loading/singe-files.js";
import { FILE, IS, SingeError, check } from "../program/singe-format.js";
import { sampler } from "./singe-language-sampling.js";
import { LanguageSession } from "./singe-language-session.js";
import { ChatTemplate } from "./singe-language-template.js";
import { Tokenizer } from "./singe-language-tokenizer.js";
import { callReader } from "./singe-language-tools.js";

const ADAPTER = { ...FILE, states: [] };
const FACTS = { fingerprint: IS.text, tokenizer: FILE, marks: [IS.text], ends: [IS.count], context: IS.count, chunk: IS.count };

/**
 * @param {LanguageFacts} facts
 * @param {URL} folder
 * @param {LoadOptions} options
 */
export function languageModel(facts, folder, { cache = true, signal }) {
  const files = new Files(folder, cache, signal);
  const tokenizer = (async () => {
    try {
      check(facts, FACTS, "language");
      return new Tokenizer(await files.json(facts.tokenizer));
    } finally {
      files.stop(true);
    }
  })();
  tokenizer.catch(() => {});
  const read = (/** @type {FileEntry} */ entry) => new Files(folder, cache).bytes(entry);
  return async (/** @type {Model} */ model) => {
    try {
      return /** @type {PublicLanguageModel} */ (/** @type {unknown} */ (new LanguageModel(model, facts, await tokenizer, read)));
    } catch (error) {
      model.dispose();
      throw error;
    }
  };
}

export class LanguageModel {
  #model;
  #facts;
  #template;
  #read;
  /** @type {LanguageSession} */
  #own;
  /** @type {TextConstraints | undefined} */
  #constraints;

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
    const completions = /** @type {PublicLanguageModel["chat"]["completions"]} */ ({
      create: async (/** @type {CompletionRequest} */ request) => (await import("./singe-language-completions.js")).completion(this, request),
    });
    this.chat = Object.assign((/** @type {readonly Message[]} */ messages, /** @type {ChatOptions | undefined} */ options) => this.#own.chat(messages, options), { completions });
    const prompts = () => import("./singe-language-prompts.js");
    /** @type {PublicLanguageModel["LanguageModel"]} */
    this.LanguageModel = {
      availability: async (options) => (await prompts()).availability(options),
      create: async (options) => (await prompts()).create(this, sampler, options),
    };
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

  get chats() {
    return this.#template !== undefined;
  }

  /**
   * The text that the model reads for a conversation.
   * @param {readonly Message[]} messages
   * @param {{ tools?: object[], addGenerationPrompt?: boolean, extra?: Record<string, unknown> }} [options]
   * @returns {string}
   */
  template(messages, options) {
    if (this.#template) return this.#template.render([...messages], options);
    throw new SingeError("input", `${this.name} has no chat template: give its prompts to generate(text)`);
  }

  /**
   * Reads the calls of tools in an answer; without any there are none.
   * @param {readonly object[] | undefined} tools
   */
  callReader(tools = []) {
    return tools.length === 0 ? undefined : callReader(this.#facts.template ?? "", tools);
  }

  /**
   * A text that is to match a schema or a regular expression.
   * @param {unknown} schema
   * @param {string | RegExp | undefined} regex
   */
  async constrained(schema, regex) {
    const { TextConstraints } = await import("./constraints/singe-language-constraint.js");
    this.#constraints ??= new TextConstraints(this.tokenizer, this.#facts.ends);
    return this.#constraints.text(schema, regex);
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
