/**
 * `llm.LanguageModel`, in the shape of Chrome's Prompt API.
 *
 * Contract: `availability(options)`, and `create(llm, sampler, options)`, which gives sessions that keep the conversation: `prompt`, `promptStreaming`, `append`, `clone`, `destroy`, `measureContextUsage`. Prompts of a session are answered one after another, and
 * one that fails, or is aborted, leaves no trace. Where there is no room, the oldest turns after the initial prompts are forgotten,
 * and the event "contextoverflow" says so. Errors have the names of the API's; what there is not is refused by name.
 */

/** @typedef {Pick<LanguageModel, "context" | "session" | "template" | "tokenizer">} PromptedModel */
/** @import { LanguageModel, LanguageSession, Message, PromptContent, PromptInput, PromptOptions, PromptSessionOptions, SamplingOptions } from "../types/public.d.ts" */

const CREATE = new Set(["initialPrompts", "temperature", "topK", "signal", "monitor", "expectedInputs", "expectedOutputs"]);
const PROMPT = new Set(["signal", "responseConstraint", "omitResponseConstraintInput"]);
const ROLES = new Set(["system", "user", "assistant"]);
/** The part of the context that is left to an answer, as long as turns can be forgotten. */
const LEFT = 0.25;

/**
 * @param {string} name
 * @param {string} message
 */
const failed = (name, message) => new DOMException(message, name);

/**
 * Refuse options that there are not.
 * @param {object} options
 * @param {Set<string>} known
 */
function checkNames(options, known) {
  const unknown = Object.entries(options).find(([name, value]) => value !== undefined && !known.has(name));
  if (unknown) throw failed("NotSupportedError", `unknown option ${JSON.stringify(unknown[0])}: expected some of ${[...known].join(", ")}`);
}

/**
 * The text of a message.
 * @param {PromptContent} content
 */
function textOf(content) {
  if (typeof content === "string") return content;
  if (!Array.isArray(content)) throw new TypeError(`content: got ${typeof content}, expected a text, or a list of parts of the type "text"`);
  return content
    .map(({ type, value }) => {
      if (type !== "text" || typeof value !== "string") throw failed("NotSupportedError", `content: got a part of the type ${JSON.stringify(type)}, expected "text" with a text`);
      return value;
    })
    .join("");
}

/**
 * @param {PromptInput} input
 * @returns {Message[]}
 */
function messagesOf(input) {
  if (typeof input === "string") return [{ role: "user", content: input }];
  if (!Array.isArray(input)) throw new TypeError(`the prompt is ${typeof input}, expected a text or a list of messages`);
  return input.map(({ role, content, prefix }) => {
    if (!ROLES.has(role)) throw new TypeError(`role: got ${JSON.stringify(role)}, expected some of ${[...ROLES].join(", ")}`);
    if (prefix) throw failed("NotSupportedError", "prefix: answers begin anew; give their beginning in the user's message");
    return { role, content: textOf(content) };
  });
}

/** @param {readonly Message[]} messages */
function checkSystem(messages) {
  if (messages.some(({ role }, at) => role === "system" && at)) throw new TypeError("a message of the system is the first of the initial prompts");
}

/** @param {PromptSessionOptions} [options] */
export function availability(options = {}) {
  checkNames(options, CREATE);
  return textOnly(options) ? "available" : "unavailable";
}

/**
 * @param {PromptedModel} llm
 * @param {(options: SamplingOptions) => unknown} sampler refuses what they cannot be
 * @param {PromptSessionOptions} [options]
 */
export function create(llm, sampler, options = {}) {
  if (availability(options) === "unavailable") throw failed("NotSupportedError", "expectedInputs, expectedOutputs: expected the type text");
  const { initialPrompts = [], temperature, topK, signal, monitor } = options;
  signal?.throwIfAborted();
  sampler({ temperature, topK });
  const initial = messagesOf(initialPrompts);
  checkSystem(initial);
  const session = new PromptSession(llm, llm.session(), initial, [], { temperature, topK });
  if (monitor) {
    const target = new EventTarget();
    monitor(target);
    for (const loaded of [0, 1]) target.dispatchEvent(Object.assign(new Event("downloadprogress"), { loaded, total: 1 }));
  }
  signal?.addEventListener("abort", () => session.destroy(signal.reason), { once: true });
  return session;
}

/** @param {PromptOptions} options */
const constrained = ({ responseConstraint: given }) => (given instanceof RegExp ? { regex: given } : { schema: given });

/** @param {PromptSessionOptions} options */
const textOnly = ({ expectedInputs = [], expectedOutputs = [] }) => [...expectedInputs, ...expectedOutputs].every(({ type }) => type === "text");

class PromptSession extends EventTarget {
  #llm;
  #session;
  #initial;
  /**
   * What was said after the initial prompts.
   * @type {readonly Message[]}
   */
  #said;
  #sampling;
  #gone = new AbortController();
  /** @type {Promise<unknown>} */
  #last = Promise.resolve();
  /** @type {((event: Event) => void) | null} */
  oncontextoverflow = null;

  /**
   * @param {PromptedModel} llm
   * @param {LanguageSession} session
   * @param {readonly Message[]} initial
   * @param {readonly Message[]} said
   * @param {{ temperature?: number, topK?: number }} sampling
   */
  constructor(llm, session, initial, said, sampling) {
    super();
    this.#llm = llm;
    this.#session = session;
    this.#initial = initial;
    this.#said = said;
    this.#sampling = sampling;
    if (initial.length && this.contextUsage >= llm.context) throw this.#tooLong(this.contextUsage);
  }

  get temperature() {
    return this.#sampling.temperature ?? 0.8;
  }

  get topK() {
    return this.#sampling.topK ?? 40;
  }

  /** For how many tokens a conversation has room. */
  get contextWindow() {
    return this.#llm.context;
  }

  /** How many tokens the conversation has. */
  get contextUsage() {
    return this.#count([...this.#initial, ...this.#said]);
  }

  /**
   * How many tokens a prompt would add.
   * @param {PromptInput} input
   * @param {PromptOptions} [options]
   */
  async measureContextUsage(input, options = {}) {
    this.#check(options);
    return this.#count([...this.#initial, ...this.#said, ...messagesOf(input)]) - this.contextUsage;
  }

  /**
   * @param {PromptInput} input
   * @param {PromptOptions} [options]
   */
  async prompt(input, options = {}) {
    let text = "";
    for await (const part of this.#answer(input, options)) text += part;
    return text;
  }

  /**
   * @param {PromptInput} input
   * @param {PromptOptions} [options]
   * @returns {ReadableStream<string>}
   */
  promptStreaming(input, options = {}) {
    const left = new AbortController();
    const signal = options.signal ? AbortSignal.any([options.signal, left.signal]) : left.signal;
    const parts = this.#answer(input, { ...options, signal });
    return new ReadableStream({
      async start(controller) {
        try {
          for await (const part of parts) controller.enqueue(part);
          controller.close();
        } catch (error) {
          controller.error(error);
        }
      },
      cancel(reason) {
        left.abort(reason);
      },
    });
  }

  /**
   * Add messages that are not answered.
   * @param {PromptInput} input
   * @param {PromptOptions} [options]
   * @returns {Promise<void>}
   */
  async append(input, options = {}) {
    const { end } = await this.#turn(options);
    try {
      this.#said = this.#fitting(messagesOf(input));
    } finally {
      end();
    }
  }

  /**
   * Another session that goes on from here.
   * @param {{ signal?: AbortSignal }} [options]
   */
  async clone(options = {}) {
    const { end } = await this.#turn(options);
    try {
      return new PromptSession(this.#llm, this.#session.copy(), this.#initial, this.#said, this.#sampling);
    } finally {
      end();
    }
  }

  /**
   * End it, with the answers that are being written, and free its memory.
   * @param {unknown} [reason]
   */
  destroy(reason = failed("AbortError", "the session was destroyed")) {
    if (this.#gone.signal.aborted) return;
    this.#gone.abort(reason);
    void this.#last.then(() => this.#session.dispose());
  }

  /**
   * @param {PromptInput} input
   * @param {PromptOptions} options
   */
  async *#answer(input, options) {
    const { end, signal } = await this.#turn(options);
    try {
      const said = this.#fitting(messagesOf(input));
      const answer = this.#session.chat([...this.#initial, ...said], { ...this.#sampling, ...constrained(options), signal });
      let text = "";
      for await (const part of answer) {
        text += part;
        yield part;
      }
      signal.throwIfAborted();
      if (answer.finishReason === "length") throw this.#tooLong(this.#llm.context);
      this.#said = [...said, { role: "assistant", content: text }];
    } catch (error) {
      throw signal.aborted && /** @type {{ code?: string }} */ (error).code === "aborted" ? signal.reason : error;
    } finally {
      end();
    }
  }

  /** @param {PromptOptions} options */
  #check(options) {
    if (this.#gone.signal.aborted) throw failed("InvalidStateError", "the session was destroyed; create another one");
    checkNames(options, PROMPT);
    options.signal?.throwIfAborted();
  }

  /**
   * What was said, with new messages, without the oldest turns if there is no room for all.
   * @param {readonly Message[]} messages
   */
  #fitting(messages) {
    checkSystem([...this.#initial, ...this.#said, ...messages]);
    const { context } = this.#llm;
    let said = this.#said;
    for (;;) {
      const all = [...said, ...messages];
      const count = this.#count([...this.#initial, ...all], true);
      if (count <= context * (1 - LEFT) || (!said.length && count < context)) {
        if (said !== this.#said) this.#tellOverflow();
        return all;
      }
      if (!said.length) throw this.#tooLong(count);
      const next = said.findIndex(({ role }, at) => at && role === "user");
      said = next < 0 ? [] : said.slice(next);
    }
  }

  #tellOverflow() {
    const event = new Event("contextoverflow");
    this.oncontextoverflow?.(event);
    this.dispatchEvent(event);
  }

  /** @param {number} requested */
  #tooLong(requested) {
    const { context } = this.#llm;
    const message = `the conversation has ${requested} tokens, and there is room for ${context} with its answer: shorten it, or export with a larger --context`;
    return Object.assign(failed("QuotaExceededError", message), { requested, quota: context });
  }

  /**
   * @param {Message[]} messages
   * @param {boolean} [addGenerationPrompt]
   */
  #count(messages, addGenerationPrompt = false) {
    return messages.length ? this.#llm.tokenizer.encode(this.#llm.template(messages, { addGenerationPrompt }), { addSpecial: false }).length : 0;
  }

  /**
   * Wait for the prompts before. signal: ends this one; end: lets the next one begin.
   * @param {PromptOptions} options
   */
  async #turn(options) {
    this.#check(options);
    const signal = AbortSignal.any(options.signal ? [options.signal, this.#gone.signal] : [this.#gone.signal]);
    /** @type {() => void} */
    let end = () => {};
    const before = this.#last;
    this.#last = new Promise((resolve) => {
      end = () => resolve(undefined);
    });
    await before;
    if (signal.aborted) {
      end();
      throw signal.reason;
    }
    return { end, signal };
  }
}
