/**
 * Streams a file without holding it: its bytes are hashed, decoded if encoded, and passed on in whole words.
 *
 * Contract: `receiver(entry, write)` returns a function that starts one reception of the file: { take(chunk, offset),
 * called with all bytes in order; end(), which returns their sha256 }. `decode(entry, bytes, write)` decodes a file that is
 * held and was hashed.
 */

/** @import { WeightsEntry } from "../types/program.d.ts" */
/** @typedef {(bytes: Uint8Array<ArrayBuffer>, at: number) => void} Take */

import { Sha256 } from "./singe-sha256.js";

/**
 * @param {WeightsEntry} entry
 * @param {Take} write
 * @returns {Promise<() => { take: Take, end(): string }>}
 */
export async function receiver(entry, write) {
  const { decoder } = entry.parts ? await import("./singe-decode.js") : { decoder: undefined };
  return () => {
    const hash = new Sha256();
    const put = decoder ? decoder(entry, write) : write;
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
 * @param {Uint8Array<ArrayBuffer>} bytes
 * @param {Take} write
 */
export async function decode(entry, bytes, write) {
  const { decoder } = await import("./singe-decode.js");
  decoder(entry, write)(bytes);
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
