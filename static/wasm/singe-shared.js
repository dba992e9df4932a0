/**
 * A memory that threads can share, and loading of a bundle's files into one.
 *
 * Contract: `sharedMemory(bytes)` returns an empty memory that can grow to so many bytes, or undefined if there is none. WebKit
 * makes some that no worker can be sent, where it has no SharedArrayBuffer: those are none.
 * `fromFiles(files)` has three of the methods of `Files`: modules are changed to import a shared memory instead of an unshared
 * one, and weights are written to their places in it.
 */

/** @import { FileEntry, WeightsEntry } from "../types/program.d.ts" */
/** @import { Files } from "../loading/singe-files.js" */

import { SingeError } from "../program/singe-format.js";

const PAGE = 65536;
const MOST_PAGES = [65536, 16384];
const IMPORTS = 2;
/** The end of the import section: a memory of at least 0 pages; a shared one of at most 65,536. */
const UNSHARED = [2, 0, 0];
const SHARED = [2, 3, 0, 0x80, 0x80, 4];

/** @param {number} bytes */
export function sharedMemory(bytes) {
  if (!globalThis.SharedArrayBuffer) return undefined;
  for (const maximum of MOST_PAGES.filter((pages) => pages * PAGE >= bytes)) {
    try {
      return new WebAssembly.Memory({ initial: 0, maximum, shared: true });
    } catch {} // there may be less address space
  }
  return undefined;
}

/** @param {Files} files */
export function fromFiles(files) {
  let room = new Uint8Array(0);
  /** @type {Promise<unknown>} */
  let last = Promise.resolve();
  const through = async (/** @type {WeightsEntry} */ entry, /** @type {Uint8Array<ArrayBuffer>} */ view) => {
    if (room.length < view.length) room = new Uint8Array(view.length);
    view.set(await files.into(entry, room.subarray(0, view.length)));
  };
  return {
    bytes: async (/** @type {FileEntry} */ entry) => importShared(await files.bytes(entry)),
    /**
     * Files that are hashed as a whole are copied, one at a time: SubtleCrypto cannot hash shared bytes.
     * @type {(entry: WeightsEntry, view: Uint8Array<ArrayBuffer>) => Promise<unknown>}
     */
    into: (entry, view) => (entry.parts ? files.into(entry, view) : (last = last.then(() => through(entry, view)))),
    /** @type {Files["each"]} */
    each: (entries, take) => files.each(entries, take),
  };
}

/**
 * A module's bytes, changed to import a shared memory of any size.
 * @param {Uint8Array<ArrayBuffer>} bytes
 */
function importShared(bytes) {
  const [start, size] = sectionOf(bytes, IMPORTS);
  const end = start + size;
  const rest = end - UNSHARED.length;
  const longer = size + SHARED.length - UNSHARED.length;
  if (!(longer < 128 && bytes.slice(rest, end).join() === UNSHARED.join())) {
    throw new SingeError("format", "a module does not import a memory as it should");
  }
  const made = [bytes.subarray(0, start - 1), [longer], bytes.subarray(start, rest), SHARED, bytes.subarray(end)];
  return Uint8Array.from(made.flatMap((part) => [...part]));
}

/**
 * The start and length of the contents of a module's first section with that number.
 * @param {Uint8Array} bytes
 * @param {number} number
 */
function sectionOf(bytes, number) {
  for (let at = 8; at < bytes.length; ) {
    const id = bytes[at++];
    let [size, shift] = [0, 0];
    do (size += (bytes[at] & 127) * 2 ** shift), (shift += 7);
    while (bytes[at++] & 128 && shift < 35);
    if (id === number) return [at, size];
    at += size;
  }
  return [0, 0];
}
