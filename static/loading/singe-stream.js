/**
 * Streams a file without holding it: its bytes are hashed, decoded if encoded, and passed on in whole words.
 *
 * Contract: `receiver(entry, write, view)` returns a function that starts one reception of the file: { take(chunk, offset),
 * called with all bytes in order, each call after the one before has ended; end(), which returns their sha256 }. A file with hashes of its
 * stretches is decoded by stretches, each once it is known to be right. `decode(entry, bytes, write, view)` decodes a file that is held and
 * was hashed. view: where the decoded bytes belong, see singe-decode.js.
 */

import { SingeError } from "../program/singe-format.js";

/** @import { WeightsEntry } from "../types/program.d.ts" */
/** @typedef {(bytes: Uint8Array<ArrayBuffer>, at: number) => void} Take */
/** @typedef {(bytes: Uint8Array<ArrayBuffer>) => Promise<string>} Hash */

import { Sha256 } from "./singe-sha256.js";

/** The bytes of a stretch; the last one of a file may have fewer. */
const STRETCH = 4_000_000;

/**
 * @param {WeightsEntry} entry
 * @param {Take} write
 * @param {Uint8Array<ArrayBuffer>} [view]
 * @param {Hash} [hash] of stretches
 * @returns {Promise<() => { take(bytes: Uint8Array<ArrayBuffer>, at: number): unknown, end(): string }>}
 */
export async function receiver(entry, write, view, hash) {
  const { decoder } = entry.parts ? await import("./singe-decode.js") : { decoder: undefined };
  if (decoder && entry.hashes && hash) return () => stretches(entry, decoder(entry, write, view), hash);
  return () => {
    const hash = new Sha256();
    const put = decoder ? decoder(entry, write, view) : write;
    let rest = new Uint8Array(0);
    /** @type {Take} */
    const take = (chunk, at) => {
      hash.update(chunk);
      const joined = rest.length ? join(rest, chunk) : chunk;
      const end = joined.length - (joined.length % 4);
      put(joined.subarray(0, end), at - rest.length);
      rest = joined.slice(end);
    };
    const end = () => {
      if (rest.length) put(rest, entry.bytes - rest.length);
      return hash.hex();
    };
    return { take, end };
  };
}

/**
 * @param {WeightsEntry} entry
 * @param {(bytes: Uint8Array<ArrayBuffer>) => void} put
 * @param {Hash} hash
 */
function stretches({ file, bytes, sha256, hashes = [] }, put, hash) {
  if (hashes.length !== Math.ceil(bytes / STRETCH)) {
    throw new SingeError("format", `${file}: ${hashes.length} hashes of stretches for ${bytes} bytes`);
  }
  const held = new Uint8Array(Math.min(STRETCH, bytes));
  let [filled, done, right] = [0, 0, true];
  const take = async (/** @type {Uint8Array<ArrayBuffer>} */ chunk) => {
    for (let from = 0; from < chunk.length && right; ) {
      const part = chunk.subarray(from, from + held.length - filled);
      held.set(part, filled);
      filled += part.length;
      from += part.length;
      if (filled < Math.min(STRETCH, bytes - done * STRETCH)) return;
      const stretch = held.subarray(0, filled);
      right = (await hash(stretch)) === hashes[done];
      if (right) put(stretch);
      done += 1;
      filled = 0;
    }
  };
  return { take, end: () => (right ? sha256 : "") };
}

/**
 * @param {WeightsEntry} entry
 * @param {Uint8Array<ArrayBuffer>} bytes
 * @param {Take} write
 * @param {Uint8Array<ArrayBuffer>} [view]
 */
export async function decode(entry, bytes, write, view) {
  const { decoder } = await import("./singe-decode.js");
  decoder(entry, write, view)(bytes);
}

/**
 * @param {Uint8Array<ArrayBuffer>} a
 * @param {Uint8Array<ArrayBuffer>} b
 */
function join(a, b) {
  const both = new Uint8Array(a.length + b.length);
  both.set(a);
  both.set(b, a.length);
  return both;
}
