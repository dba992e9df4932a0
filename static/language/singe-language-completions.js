/**
 * `llm.chat.completions.create`, in the shape of OpenAI's interface.
 *
 * Contract: `completions(llm).create({ messages, … })` is a promise of a completion, or with `stream: true` of an async iterable of
 * chunks. Fields that Singe does not have are refused by name.
 */

/** @import { Answer, ChatOptions, CompletionRequest, LanguageModel, Message } from "../types/public.d.ts" */

import { SingeError } from "../program/singe-format.js";

/** OpenAI's names ↦ ours; "" for what says nothing of the text. @type {Record<string, string>} */
const FIELDS = {
  model: "",
  n: "",
  user: "",
  messages: "",
  stream: "",
  stream_options: "", // biome-ignore format: one line
  max_tokens: "maxTokens",
  max_completion_tokens: "maxTokens",
  temperature: "temperature",
  top_p: "topP",
  top_k: "topK",
  min_p: "minP",
  presence_penalty: "presencePenalty",
  frequency_penalty: "frequencyPenalty",
  seed: "seed",
  stop: "stop",
  tools: "tools",
  signal: "signal",
};

let made = 0;

/** @param {{ name: string, chat(messages: readonly Message[], options: ChatOptions): Answer }} llm */
export const completions = (llm) =>
  /** @type {LanguageModel["chat"]["completions"]} */ (
    /** @type {unknown} */ ({
      /** @param {CompletionRequest} request */
      async create(request) {
        const { messages, stream = false, stream_options, n = 1 } = request;
        if (n !== 1) throw new SingeError("input", `n: got ${n}, expected 1: ask several times`);
        const options = optionsOf(request);
        const answer = llm.chat(messages, options);
        const facts = { id: `chatcmpl-${Date.now().toString(36)}-${++made}`, created: Math.floor(Date.now() / 1000), model: llm.name };
        if (stream) return chunks(answer, facts, stream_options?.include_usage ?? false);
        const content = await answer.text();
        const choice = { index: 0, message: { role: "assistant", content }, logprobs: null, finish_reason: answer.finishReason };
        return { ...facts, object: "chat.completion", choices: [choice], usage: usageOf(answer) };
      },
    })
  );

/** @param {CompletionRequest} request */
function optionsOf(request) {
  /** @type {Record<string, unknown>} */
  const options = {};
  for (const [field, value] of Object.entries(request)) {
    if (!Object.hasOwn(FIELDS, field)) throw new SingeError("input", `${field}: expected some of ${Object.keys(FIELDS).join(", ")}`);
    if (FIELDS[field] && value !== null && value !== undefined) options[FIELDS[field]] = value;
  }
  return /** @type {ChatOptions} */ (options);
}

/**
 * @param {Answer} answer
 * @param {object} facts
 * @param {boolean} withUsage
 */
async function* chunks(answer, facts, withUsage) {
  const chunk = (/** @type {object} */ delta, /** @type {string | null} */ reason = null) => ({
    ...facts,
    object: "chat.completion.chunk",
    choices: [{ index: 0, delta, logprobs: null, finish_reason: reason }],
  });
  yield chunk({ role: "assistant", content: "" });
  for await (const content of answer) yield chunk({ content });
  yield chunk({}, answer.finishReason);
  if (withUsage) yield { ...chunk({}), choices: [], usage: usageOf(answer) };
}

/** @param {Answer} answer */
function usageOf({ usage }) {
  return {
    prompt_tokens: usage.promptTokens,
    completion_tokens: usage.completionTokens,
    total_tokens: usage.totalTokens,
    prompt_tokens_details: { cached_tokens: usage.reusedTokens },
  };
}
