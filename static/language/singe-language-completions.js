/**
 * `llm.chat.completions.create`, in the shape of OpenAI's interface.
 *
 * Contract: `completion(llm, { messages, … })` is a promise of a completion, or with `stream: true` of an async iterable of chunks. Fields that Singe does not have are refused by name. Calls of tools come whole, in the last chunk.
 */

/** @import { Answer, ChatOptions, CompletionRequest, Message, TokenChance, ToolCall } from "../types/public.d.ts" */

import { SingeError } from "../program/singe-format.js";

/** OpenAI's names ↦ ours; "" for what says nothing of the text. @type {Record<string, string>} */
const FIELDS = {
  model: "",
  n: "",
  user: "",
  messages: "",
  response_format: "",
  tool_choice: "",
  logprobs: "",
  top_logprobs: "",
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
  chat_template_kwargs: "chatTemplateKwargs",
  regex: "regex",
  shift: "shift",
  drafts: "drafts",
  signal: "signal",
};

/** @typedef {{ decode(ids: Iterable<number>, options: { skipSpecial: boolean }): string }} Spelling */

const ENCODER = new TextEncoder();
let made = 0;

/**
 * @param {{ name: string, tokenizer: Spelling, chat(messages: readonly Message[], options: ChatOptions): Answer }} llm
 * @param {CompletionRequest} request
 */
export async function completion(llm, request) {
  const { messages, stream = false, stream_options, n = 1 } = request;
  if (n !== 1) throw new SingeError("input", `n: got ${n}, expected 1: ask several times`);
  const answer = llm.chat(messages, optionsOf(request));
  const facts = { id: `chatcmpl-${Date.now().toString(36)}-${++made}`, created: Math.floor(Date.now() / 1000), model: llm.name };
  const logprobs = request.logprobs ? chancesOf(answer, llm.tokenizer) : () => null;
  if (stream) return chunks(answer, facts, logprobs, stream_options?.include_usage ?? false);
  const message = said(await answer.text(), answer.toolCalls);
  const choice = { index: 0, message: { role: "assistant", ...message }, logprobs: logprobs(), finish_reason: answer.finishReason };
  return { ...facts, object: "chat.completion", choices: [choice], usage: usageOf(answer) };
}

/** @param {CompletionRequest} request */
function optionsOf(request) {
  /** @type {Record<string, unknown>} */
  const options = {};
  for (const [field, value] of Object.entries(request)) {
    if (!Object.hasOwn(FIELDS, field)) throw new SingeError("input", `${field}: expected some of ${Object.keys(FIELDS).join(", ")}`);
    if (FIELDS[field] && value !== null && value !== undefined) options[FIELDS[field]] = value;
  }
  const { logprobs = false, top_logprobs = 0 } = request;
  if (typeof logprobs !== "boolean") throw new SingeError("input", `logprobs: got ${logprobs}, expected true or false`);
  if (top_logprobs && !logprobs) throw new SingeError("input", "top_logprobs is given without logprobs; give logprobs: true");
  if (logprobs) options.logprobs = top_logprobs;
  const choice = request.tool_choice ?? "auto";
  if (choice !== "auto" && choice !== "none") {
    throw new SingeError("input", `tool_choice: got ${JSON.stringify(choice)}, expected auto or none; response_format makes a text certain`);
  }
  if (choice === "none") delete options.tools;
  const schema = schemaOf(request.response_format ?? { type: "text" });
  if (schema !== undefined) options.schema = schema;
  return /** @type {ChatOptions} */ (options);
}

/**
 * The JSON schema of a response_format; true for any object, undefined for any text.
 * @param {any} format
 */
function schemaOf(format) {
  if (format.type === "text") return undefined;
  if (format.type === "json_object") return true;
  const schema = format.type === "json_schema" ? format.json_schema?.schema : null;
  if (typeof schema === "object" && schema !== null) return schema;
  const expected = "expected the type text, json_object or json_schema, with json_schema.schema";
  throw new SingeError("input", `response_format: got ${String(JSON.stringify(format)).slice(0, 80)}, ${expected}`);
}

/**
 * @param {string} text
 * @param {readonly ToolCall[]} calls
 */
const said = (text, calls) => ({ content: text || !calls.length ? text : null, ...(calls.length ? { tool_calls: calls } : {}) });

/**
 * Gives the chances of the tokens since the last call.
 * @param {Answer} answer
 * @param {Spelling} tokenizer
 */
function chancesOf(answer, tokenizer) {
  let told = 0;
  const spelled = (/** @type {string} */ token, /** @type {number} */ logprob) => ({ token, logprob, bytes: [...ENCODER.encode(token)] });
  const one = (/** @type {TokenChance} */ { text, logprob, likeliest }) => ({
    ...spelled(text, logprob),
    top_logprobs: likeliest.map(([id, own]) => spelled(tokenizer.decode([id], { skipSpecial: false }), own)),
  });
  return () => {
    const fresh = answer.logprobs.slice(told);
    told += fresh.length;
    return { content: fresh.map(one) };
  };
}

/**
 * @param {Answer} answer
 * @param {object} facts
 * @param {() => object | null} logprobs
 * @param {boolean} withUsage
 */
async function* chunks(answer, facts, logprobs, withUsage) {
  const chunk = (/** @type {object} */ delta, /** @type {string | null} */ reason = null) => ({
    ...facts,
    object: "chat.completion.chunk",
    choices: [{ index: 0, delta, logprobs: logprobs(), finish_reason: reason }],
  });
  yield chunk({ role: "assistant", content: "" });
  for await (const content of answer) yield chunk({ content });
  const calls = answer.toolCalls.map((call, index) => ({ index, ...call }));
  yield chunk(calls.length ? { tool_calls: calls } : {}, answer.finishReason);
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
