/**
 * The files of a bundle: fetched once each, straight to their place, checked against their sha256.
 *
 * Contract: `Files` reports every byte that arrives as it arrives; a file that is missing is a "network" error, one that
 * is longer, shorter or other than the manifest says a "format" error, and after `stop()` all of it ends. In node, file:
 * URLs are read from disk.
 */

import { SingeError, spanOf } from "./singe-format.js";

const AT_ONCE = 4;
const MOST_MANIFEST_BYTES = 1 << 26;

export class Files {
  #base;
  #signal;
  #report;
  #stopper = new AbortController();
  #loaded = 0;
  #total = 0;

  /** base: the URL of the folder; signal: the caller's AbortSignal, if any. */
  constructor(base, signal, report = () => {}) {
    this.#base = base;
    this.#signal = signal;
    this.#report = report;
    signal?.addEventListener("abort", this.stop);
    if (signal?.aborted) this.stop();
  }

  stop = () => {
    this.#signal?.removeEventListener("abort", this.stop);
    this.#stopper.abort();
  };

  /** The caller's abort as an error. */
  checkSignal() {
    if (this.#signal?.aborted) throw new SingeError("aborted", "loading was aborted", this.#signal.reason);
  }

  /** Say which files will be asked for: their bytes are the progress's total. */
  expect(entries) {
    this.#total = entries.reduce((sum, { bytes }) => sum + bytes, 0);
    this.phase("download");
  }

  phase(phase) {
    this.checkSignal();
    this.#report({ loaded: this.#loaded, total: this.#total, phase });
  }

  /** A JSON file that nothing is known of yet. */
  async manifest(name) {
    const chunks = [];
    let length = 0;
    for await (const chunk of this.#chunks(name)) {
      length += chunk.length;
      if (length > MOST_MANIFEST_BYTES) throw new SingeError("format", `${name} is too long`);
      chunks.push(chunk);
    }
    return parseJson(await new Blob(chunks).text(), name);
  }

  async json(entry) {
    return parseJson(new TextDecoder().decode(await this.bytes(entry)), entry.file);
  }

  /** A file's bytes, in an array of their own. */
  async bytes(entry) {
    return this.into(entry, room(entry));
  }

  /** A file's bytes, written to `view` as they arrive; those of an encoded piece of weights decoded. */
  async into(entry, view) {
    if (entry.parts) {
      await this.stream(entry, (bytes, at) => view.set(bytes, at));
      return view;
    }
    await this.#receive(entry, (chunk, at) => view.set(chunk, at));
    checkHash(entry, await hashOf(view));
    this.checkSignal();
    return view;
  }

  /** A file's bytes as they arrive, held nowhere: `write(bytes, offset)` gets whole words, but for the file's last. */
  async stream(entry, write) {
    const { Sha256 } = await import("./singe-sha256.js");
    const put = entry.parts ? (await import("./singe-decode.js")).decoder(entry, write) : write;
    const hash = new Sha256();
    let rest = new Uint8Array(0);
    await this.#receive(entry, (chunk, at) => {
      hash.update(chunk);
      const joined = rest.length ? join(rest, chunk) : chunk;
      const end = joined.length - (joined.length % 4);
      put(joined.subarray(0, end), at - rest.length);
      rest = joined.slice(end);
    });
    if (rest.length) put(rest, entry.bytes - rest.length);
    checkHash(entry, hash.hex());
  }

  async #receive(entry, take) {
    let at = 0;
    for await (const chunk of this.#chunks(entry.file)) {
      if (at + chunk.length > entry.bytes) throw wrongLength(entry, "more");
      take(chunk, at);
      at += chunk.length;
      this.#loaded += chunk.length;
      this.phase("download");
    }
    if (at < entry.bytes) throw wrongLength(entry, at);
  }

  /** Call `take(entry, offset)` for consecutive pieces of a block, a few at once. */
  async each(entries, take) {
    let offset = 0;
    const jobs = entries.map((entry) => [entry, (offset += spanOf(entry)) - spanOf(entry)]).values();
    const worker = async () => {
      for (const job of jobs) await take(...job);
    };
    await Promise.all(Array.from({ length: AT_ONCE }, worker));
  }

  async *#chunks(name) {
    const url = new URL(name, this.#base);
    const signal = this.#stopper.signal;
    try {
      yield* url.protocol === "file:" && inNode() ? diskChunks(url, signal) : webChunks(url, signal);
    } catch (cause) {
      this.checkSignal();
      if (cause instanceof SingeError) throw cause;
      throw new SingeError("network", `cannot read ${url}: ${cause.message}`, cause);
    }
  }
}

const inNode = () => typeof process === "object" && typeof process.getBuiltinModule === "function";

const diskChunks = (url, signal) => process.getBuiltinModule("fs").createReadStream(url, { signal });

async function* webChunks(url, signal) {
  const response = await fetch(url, { signal });
  if (!response.ok) throw new SingeError("network", `cannot read ${url}: the server answers ${response.status}`);
  const reader = response.body.getReader();
  for (let part = await reader.read(); !part.done; part = await reader.read()) yield part.value;
}

function parseJson(text, name) {
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw new SingeError("format", `${name} is not JSON: ${cause.message}`, cause);
  }
}

function room({ file, bytes }) {
  try {
    return new Uint8Array(bytes);
  } catch (cause) {
    throw new SingeError("device", `${file}: no memory for ${bytes} bytes`, cause);
  }
}

const wrongLength = ({ file, bytes }, found) =>
  new SingeError("format", `${file} has ${found} bytes, the manifest says ${bytes}`);

function join(a, b) {
  const both = new Uint8Array(a.length + b.length);
  both.set(a);
  both.set(b, a.length);
  return both;
}

/** By SubtleCrypto, or where a page has none (http, other than localhost) by ours. */
async function hashOf(bytes) {
  if (globalThis.crypto?.subtle) {
    const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
    return Array.from(digest, (byte) => byte.toString(16).padStart(2, "0")).join("");
  }
  const { Sha256 } = await import("./singe-sha256.js");
  const hash = new Sha256();
  hash.update(bytes);
  return hash.hex();
}

function checkHash({ file, sha256 }, found) {
  if (found !== sha256) throw new SingeError("format", `${file} does not match its sha256: it is damaged or exchanged`);
}
