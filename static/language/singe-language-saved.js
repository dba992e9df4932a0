/**
 * Conversations as files: safetensors with the tokens and what the states hold of them, as core/singe/language/session.py has them.
 *
 * Contract: `savedSession(session, tokens, facts)` gives a Blob; `readSession(file, states, facts, vocabulary)` the tokens of one, and
 * whole states by name, none where there are no tokens. Files are hostile: what is not as the model has it is refused before it is read.
 */

/** @import { Session, State, TypedArray } from "../types/public.d.ts" */
/** @import { LanguageFacts } from "../types/program.d.ts" */

import { ARRAYS, IS, SingeError, check } from "../program/singe-format.js";

const FORMAT = "singe-session/1";
const TOKENS = "tokens";
/** The state that is not kept: what a run has chosen. */
const LATEST = "latest";
/** Those that hold what positions have, along their second axis. */
const BY_POSITION = /^(keys|values)/;
/** @type {Readonly<Record<string, string>>} */
const CODES = { float16: "F16", float32: "F32", int32: "I32" };
const MAX_HEADER = 2 ** 20;
const PREFIX = 8;
const TENSOR = { dtype: IS.text, shape: [IS.count], data_offsets: [IS.count] };
const METADATA = { format: IS.text, model: IS.text };

/** @param {readonly number[]} shape */
const product = (shape) => shape.reduce((count, d) => count * d, 1);

/**
 * The shape of what tokens have filled of a state.
 * @param {State} state
 * @param {number} count
 */
const filled = ({ name, shape }, count) => shape.map((d, axis) => (axis === 1 && BY_POSITION.test(name) ? Math.min(d, count) : d));

/**
 * Numbers of one shape in another, which differs in the second axis.
 * @param {TypedArray} data
 * @param {readonly number[]} from
 * @param {readonly number[]} to
 * @returns {TypedArray}
 */
function fitted(data, from, to) {
  const [width, wanted] = [from, to].map((shape) => product(shape.slice(1)));
  const made = new /** @type {Uint16ArrayConstructor} */ (data.constructor)(product(to));
  for (let row = 0; row < from[0]; row++) made.set(/** @type {Uint16Array} */ (data).subarray(row * width, row * width + Math.min(width, wanted)), row * wanted);
  return made;
}

/** @param {readonly State[]} states */
const kept = (states) => states.filter(({ name }) => name !== LATEST);

/**
 * @param {Session} session
 * @param {readonly number[]} tokens
 * @param {LanguageFacts} facts
 */
export async function savedSession(session, tokens, { fingerprint }) {
  /** @type {Record<string, object>} */
  const header = { __metadata__: { format: FORMAT, model: fingerprint } };
  /** @type {TypedArray[]} */
  const pieces = [];
  let end = 0;
  const add = (/** @type {string} */ name, /** @type {string} */ dtype, /** @type {readonly number[]} */ shape, /** @type {TypedArray} */ data) => {
    header[name] = { dtype: CODES[dtype], shape, data_offsets: [end, (end += data.byteLength)] };
    pieces.push(data);
  };
  add(TOKENS, "int32", [tokens.length], Int32Array.from(tokens));
  for (const state of tokens.length ? kept(session.states) : []) {
    const { name, dtype, shape } = state;
    const part = filled(state, tokens.length);
    add(name, dtype, part, fitted(await session.read(name), shape, part));
  }
  const text = JSON.stringify(header);
  const head = new TextEncoder().encode(text.padEnd(text.length + (-text.length & (PREFIX - 1))));
  const prefix = new DataView(new ArrayBuffer(PREFIX));
  prefix.setUint32(0, head.length, true);
  return new Blob(/** @type {BlobPart[]} */ ([prefix, head, ...pieces]));
}

/**
 * @param {Blob} file
 * @param {readonly State[]} states
 * @param {LanguageFacts} facts
 * @param {number} vocabulary
 */
export async function readSession(file, states, { fingerprint, context }, vocabulary) {
  if (!(file instanceof Blob)) throw refused(`got ${file === null ? "null" : typeof file}, expected a Blob`);
  const header = await headerOf(file);
  const { format, model } = header.metadata;
  if (format !== FORMAT || model !== fingerprint) throw refused(format === FORMAT ? "a session of another model" : "not a saved session");
  const room = file.size - header.bytes;
  const read = async (/** @type {string} */ name, /** @type {State["dtype"]} */ dtype, /** @type {number[]} */ shape) => {
    const tensor = header.tensors.get(name);
    if (!tensor) throw refused(`${name} is missing`);
    const [start, stop] = tensor.data_offsets;
    if (tensor.dtype !== CODES[dtype] || `${tensor.shape}` !== `${shape}`) {
      throw refused(`${name} is ${tensor.dtype} (${tensor.shape}), expected ${CODES[dtype]} (${shape}), as a model with the same --cache-dtype has it`);
    }
    if (stop > room || stop - start !== product(shape) * ARRAYS[dtype].BYTES_PER_ELEMENT) throw refused(`${name} is not whole`);
    return new ARRAYS[dtype](await file.slice(header.bytes + start, header.bytes + stop).arrayBuffer());
  };
  const count = header.tensors.get(TOKENS)?.shape[0] ?? 0;
  if (count > context) throw refused(`${count} tokens, there is room for ${context}: export with a larger --context`);
  const tokens = Array.from(await read(TOKENS, "int32", [count]), Number);
  if (tokens.some((id) => id < 0 || id >= vocabulary)) throw refused(`it has tokens beyond 0 to ${vocabulary - 1}`);
  /** @type {Record<string, TypedArray>} */
  const made = {};
  for (const state of count ? kept(states) : []) {
    const part = filled(state, count);
    made[state.name] = fitted(await read(state.name, state.dtype, part), part, state.shape);
  }
  return { tokens, states: made };
}

/**
 * What a file says of its tensors, and at which byte these begin.
 * @param {Blob} file
 */
async function headerOf(file) {
  const first = await file.slice(0, PREFIX).arrayBuffer();
  const length = first.byteLength < PREFIX ? Infinity : Number(new DataView(first).getBigUint64(0, true));
  if (length > Math.min(MAX_HEADER, file.size - PREFIX)) throw refused("not a saved session");
  try {
    const { __metadata__: metadata, ...tensors } = JSON.parse(await file.slice(PREFIX, PREFIX + length).text());
    check(metadata, METADATA, "");
    for (const tensor of Object.values(tensors)) check(tensor, TENSOR, "");
    /** @type {Map<string, { dtype: string, shape: number[], data_offsets: number[] }>} */
    const described = new Map(Object.entries(tensors));
    return { metadata, tensors: described, bytes: PREFIX + length };
  } catch {
    throw refused("not a saved session");
  }
}

/** @param {string} what */
const refused = (what) => new SingeError("input", `load: ${what}; give what save() of a session of this model made`);
