/**
 * The files of a bundle: each is fetched once, written to its place and checked against its sha256.
 *
 * Contract: `Files` reports progress as bytes arrive. A missing file is a "network" error, a file of another length or
 * hash than the manifest says a "format" error. `stop()` ends all requests.
 */

/** @import { Progress } from "../types/public.d.ts" */
/** @import { FileEntry, WeightsEntry } from "../types/program.d.ts" */

/** @typedef {AsyncIterable<Uint8Array<ArrayBuffer>>} Chunks */
/** @typedef {(bytes: Uint8Array<ArrayBuffer>, at: number) => void} Take */
/** @typedef {(bytes: Uint8Array<ArrayBuffer>) => unknown} Keep */
/** @typedef {Response | { body: AsyncIterable<Uint8Array<ArrayBuffer>> }} Answer */

import { SingeError, spanOf } from "../program/singe-format.js";

const AT_ONCE = 4;
const CHUNK = 1 << 16;
const MOST_MANIFEST_BYTES = 1 << 26;
const MOST_JSON_BYTES = 1 << 28;

export class Files {
  #base;
  #signal;
  /** @type {((progress: Progress) => void) | undefined} */
  #report;
  #stopper = new AbortController();
  /** @type {Promise<string | void>} */
  #hashing = Promise.resolve();
  /** @type {Promise<unknown>} */
  #passing = Promise.resolve();
  /** @type {Partial<Progress>} */
  #progress = { loaded: 0 };
  /**
   * A file's name ↦ its bytes in `loaded`.
   * @type {Map<string, number>}
   */
  #taken = new Map();
  /**
   * A file's name ↦ its checked bytes, if other entries name it, too.
   * @type {Map<string, Uint8Array<ArrayBuffer>>}
   */
  #again = new Map();
  /** Holds one file after the other: engines keep memory that a hash was computed of until they collect garbage. */
  #held = new Uint8Array(0);
  /**
   * A file's name ↦ how many entries are left that want its bytes.
   * @type {Map<string, number>}
   */
  #wanted = new Map();

  /**
   * @param {URL} base
   * @param {boolean} [cache]
   * @param {AbortSignal} [signal]
   * @param {(progress: Progress) => void} [report]
   */
  constructor(base, cache, signal, report) {
    this.#base = base;
    this.#signal = signal;
    this.#report = report;
    /** A promise of the bundle's BundleStore, if there can be one. */
    this.store = cache && /^http/.test(base.protocol) ? import("./singe-cache.js").then(({ openStore }) => openStore(base)) : undefined;
    signal?.addEventListener("abort", this.#abort);
    if (signal?.aborted) this.#abort();
  }

  #abort = () => this.#stopper.abort();

  /**
   * Start no more requests; running ones end or, if all is `well`, continue into the cache, whatever the signal says later.
   * @param {boolean} [well]
   */
  stop(well) {
    this.#signal?.removeEventListener("abort", this.#abort);
    if (well) this.#signal = undefined;
    else {
      this.#report = undefined;
      this.#abort();
    }
  }

  checkSignal() {
    if (this.#signal?.aborted) throw new SingeError("aborted", "loading was aborted", this.#signal.reason);
  }

  /**
   * kernels: how many there are, or 0 if that is not known yet.
   * @param {FileEntry[]} entries
   * @param {number} [kernels]
   */
  expect(entries, kernels = 0) {
    const total = Array.from(new Map(entries.map(({ file, bytes }) => [file, bytes])).values()).reduce((a, b) => a + b, 0);
    this.#progress = {}; // files of a device that could not be opened do not count
    this.#taken.clear();
    this.tell({ loaded: 0, total, compiled: 0, kernels, phase: "download" });
  }

  /**
   * Report the progress, with what is new of it.
   * @param {Partial<Progress>} news
   */
  tell(news) {
    this.checkSignal();
    this.#report?.(/** @type {Progress} */ ({ ...Object.assign(this.#progress, news) }));
  }

  /**
   * A JSON file of unknown hash: from the network or, if offline, as it was last time.
   * @param {string} name
   */
  async manifest(name) {
    /** @type {RequestInit} */
    const options = /[?&]v=/.test(this.#base.search) ? {} : { cache: "no-cache" }; // a version never changes
    const response = this.#ask(name, options).catch(async (error) => {
      const kept = error.code === "network" && error.cause && (await (await this.store)?.manifest());
      if (!kept) throw error;
      return kept;
    });
    const parts = [];
    let length = 0;
    for await (const chunk of this.#chunks(name, response)) {
      length += chunk.length;
      if (length > MOST_MANIFEST_BYTES) throw tooLong(name);
      parts.push(chunk.slice());
    }
    const text = await new Blob(parts).text();
    const manifest = parseJson(text, name);
    this.store?.then((store) => store?.adopt(text));
    return manifest;
  }

  /** @param {FileEntry} entry */
  async json(entry) {
    if (entry.bytes > MOST_JSON_BYTES) throw tooLong(entry.file);
    return parseJson(new TextDecoder().decode(await this.bytes(entry)), entry.file);
  }

  /** @param {FileEntry} entry */
  async bytes(entry) {
    return this.into(entry, room(entry));
  }

  /**
   * A file's bytes, written to `view` as they arrive; encoded weights are decoded.
   * @template {Uint8Array<ArrayBuffer>} View
   * @param {WeightsEntry} entry
   * @param {View} view
   * @returns {Promise<View>}
   */
  async into(entry, view) {
    if (!isPlain(entry)) await this.#stream(entry, (bytes, at) => view.set(bytes, at), view);
    else {
      await this.#verified(entry, async (chunks) => {
        await this.#fill(entry, chunks, view);
        return /** @type {Promise<string>} */ ((this.#hashing = this.#hashing.then(() => hashOf(view)))); // one at a time, since it makes a copy
      });
    }
    return view;
  }

  /**
   * A file's bytes, for `write(at, bytes)` of what `opened` will be: whole words, except at the file's end. All that `each`
   * asks for is on its way meanwhile, and one file is held.
   * @param {WeightsEntry} entry
   * @param {Promise<{ write(at: number, bytes: Uint8Array<ArrayBuffer>): void }>} opened
   * @param {number} start
   * @returns {Promise<void>}
   */
  async stream(entry, opened, start) {
    if (!isPlain(entry)) {
      const store = await opened;
      return this.#stream(entry, (part, at) => store.write(start + at, part));
    }
    const pass = async (/** @type {Chunks} */ chunks) => {
      const view = this.#room(entry);
      await this.#fill(entry, chunks, view);
      const hash = await hashOf(view);
      (await opened).write(start, view);
      return hash;
    };
    await this.#verified(entry, (chunks) => {
      const passed = this.#passing.then(() => pass(chunks));
      this.#passing = passed.catch(() => {});
      return passed;
    });
  }

  /**
   * `write(bytes, offset)` gets whole words, except at the file's end. Where the browser can hash it, one file is held, or a stretch.
   * @param {WeightsEntry} entry
   * @param {Take} write
   * @param {Uint8Array<ArrayBuffer>} [view]
   * @returns {Promise<void>}
   */
  async #stream(entry, write, view) {
    const { receiver, decode } = await import("./singe-stream.js");
    const known = this.#again.get(entry.file);
    const again = this.#wanted.get(entry.file);
    const hash = globalThis.crypto?.subtle && hashOf;
    if (hash && entry.parts && (known || again || !entry.hashes)) {
      if (known && entry.bytes === known.length) return decode(entry, known, write, view);
      return this.#verified(entry, (chunks) => {
        const passed = this.#passing.then(async () => {
          const bytes = again ? room(entry) : this.#room(entry);
          await this.#fill(entry, chunks, bytes);
          const found = await hash(bytes);
          if (found !== entry.sha256) return found;
          await decode(entry, bytes, write, view);
          if (again) this.#again.set(entry.file, bytes);
          return found;
        });
        this.#passing = passed.catch(() => {});
        return passed;
      });
    }
    const start = await receiver(entry, write, view, hash);
    await this.#verified(entry, async (chunks) => {
      const { take, end } = start();
      await this.#receive(entry, chunks, take);
      return end();
    });
  }

  /**
   * A file, through the cache if there is one; `receive(chunks)` returns its hash. What is wrong may be a file of an earlier
   * export in the browser's HTTP cache: it is asked for once more, past that cache.
   * @param {FileEntry} entry
   * @param {(chunks: Chunks) => Promise<string>} receive
   */
  async #verified(entry, receive) {
    const { file, sha256 } = entry;
    /** @type {(response: Answer | Promise<Answer>, keep?: Keep) => Promise<void>} */
    const check = async (response, keep) => {
      if ((await receive(this.#chunks(file, response, keep))) === sha256) return this.checkSignal();
      throw new SingeError("format", `${file} does not match its sha256: it is damaged or exchanged`);
    };
    const again = (/** @type {unknown} */ error) => {
      if (this.#stopper.signal.aborted) throw error;
      /** @type {Progress} */ (this.#progress).loaded -= this.#taken.get(entry.file) ?? 0;
      this.#taken.delete(entry.file);
    };
    const store = await this.store;
    const attempt = (/** @type {RequestInit} */ options) => {
      const ask = (/** @type {Keep} */ keep) => check(this.#ask(file, options), keep);
      return store ? store.through(entry, check, again, ask) : ask(() => {});
    };
    try {
      await attempt({});
    } catch (error) {
      if (/** @type {SingeError} */ (error).code !== "format") throw error;
      again(error);
      await attempt({ cache: "reload" });
    }
  }

  /** @param {FileEntry} entry */
  #room(entry) {
    if (this.#held.length < entry.bytes) this.#held = room(entry);
    return this.#held.subarray(0, entry.bytes);
  }

  /**
   * @param {FileEntry} entry
   * @param {Chunks} chunks
   * @param {Uint8Array<ArrayBuffer>} view
   */
  async #fill(entry, chunks, view) {
    await this.#receive(entry, chunks, (chunk, at) => view.set(chunk, at));
  }

  /**
   * @param {FileEntry} entry
   * @param {Chunks} chunks
   * @param {(bytes: Uint8Array<ArrayBuffer>, at: number) => unknown} take
   */
  async #receive(entry, chunks, take) {
    const progress = /** @type {Progress} */ (this.#progress);
    let at = 0;
    for await (const chunk of chunks) {
      if (at + chunk.length > entry.bytes) throw wrongLength(entry, "more");
      await take(chunk, at);
      at += chunk.length;
      const news = at - (this.#taken.get(entry.file) ?? 0); // of a file that two entries name only once
      if (progress !== this.#progress || !progress.total || news <= 0) continue; // the total is not known while a program comes
      this.#taken.set(entry.file, at);
      this.tell({ loaded: progress.loaded + news });
    }
    if (at < entry.bytes) throw wrongLength(entry, at);
  }

  /**
   * Call `take(entry, offset)` for consecutive pieces of a block, a few at once; entries of one file after each other.
   * @template {WeightsEntry} Entry
   * @param {Entry[]} entries
   * @param {(entry: Entry, offset: number) => unknown} take
   */
  async each(entries, take) {
    let offset = 0;
    /** @type {Map<string, [Entry, number][]>} */
    const jobs = new Map();
    for (const entry of entries) {
      jobs.set(entry.file, [...(jobs.get(entry.file) ?? []), [entry, offset]]);
      offset += spanOf(entry);
    }
    const left = jobs.entries();
    const worker = async () => {
      for (const [file, uses] of left) {
        for (const [k, job] of uses.entries()) {
          this.#wanted.set(file, uses.length - k - 1);
          await take(...job);
        }
        this.#again.delete(file);
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, worker));
  }

  /**
   * A response; in node, a file on disk.
   * @param {string} name
   * @param {RequestInit} options
   * @returns {Promise<Answer>}
   */
  async #ask(name, options) {
    const url = new URL(name + this.#base.search, this.#base);
    const { signal } = this.#stopper;
    if (onDisk(url)) return { body: process.getBuiltinModule("fs").createReadStream(url, { signal }) };
    const response = await fetch(url, { ...options, signal }).catch((cause) => this.#fail(name, cause));
    if (!response.ok) this.#fail(name, { message: `the server answers ${response.status}` });
    return response;
  }

  /**
   * The bytes of a response; each chunk is valid until the next is requested. keep: gets them, too; if the response breaks off, the
   * rest is asked for.
   * @param {string} name
   * @param {Answer | Promise<Answer>} response
   * @param {Keep} [keep]
   * @returns {Chunks}
   */
  async *#chunks(name, response, keep) {
    let [at, before] = [0, -1];
    for (let answer = await response; ; ) {
      const body = /** @type {ReadableStream<Uint8Array<ArrayBuffer>> | AsyncIterable<Uint8Array<ArrayBuffer>>} */ (answer.body);
      try {
        for await (const chunk of "getReader" in body ? streamChunks(body) : body) {
          this.#stopper.signal.throwIfAborted();
          at += chunk.length;
          keep?.(chunk);
          yield chunk;
        }
        return;
      } catch (cause) {
        if (!keep || at <= before || this.#stopper.signal.aborted) this.#fail(name, cause);
        const rest = await (await import("./singe-resume.js")).restOf((...given) => this.#ask(...given), name, at);
        if (!rest) this.#fail(name, cause);
        [answer, before] = [rest, at];
      }
    }
  }

  /**
   * @param {string} name
   * @param {unknown} cause
   * @returns {never}
   */
  #fail(name, cause) {
    this.checkSignal();
    const isError = cause instanceof Error;
    throw new SingeError("network", `cannot read ${new URL(name, this.#base)}: ${/** @type {Error} */ (cause).message}`, isError ? cause : undefined);
  }
}

/**
 * A bundle's address, with its query, which each file is given too; none if `url` is none or no file can be in it.
 * @param {unknown} url
 * @returns {URL | undefined}
 */
export function folderOf(url) {
  url = /** @type {URL} */ (url)?.href ?? url; // a URL of this realm or another
  if (typeof url !== "string") return;
  const base = globalThis.document?.baseURI ?? globalThis.location?.href ?? `file://${process.cwd().replace(/[%#?]/g, encodeURIComponent)}/`;
  try {
    const folder = new URL(url, base);
    if (!folder.pathname.endsWith("/")) folder.pathname += "/";
    return Object.assign(new URL(".", folder), { search: folder.search });
  } catch {}
}

/**
 * Whether a file is used as it is, and hashed by the browser: pages have no SubtleCrypto over http, except on localhost.
 * @param {WeightsEntry} entry
 */
const isPlain = ({ parts }) => !parts && globalThis.crypto?.subtle;

/** @param {URL} url */
const onDisk = ({ protocol }) => protocol === "file:" && typeof globalThis.process?.getBuiltinModule === "function";

/**
 * The chunks of a stream, all in the same memory: engines keep chunks of their own until they collect garbage.
 * @param {ReadableStream<Uint8Array<ArrayBuffer>>} body
 * @returns {Chunks}
 */
async function* streamChunks(body) {
  let reader;
  try {
    reader = body.getReader({ mode: "byob" });
  } catch {
    reader = /** @type {ReadableStreamBYOBReader} */ (/** @type {unknown} */ (body.getReader())); // this engine gives chunks of its own
  }
  for (let room = new Uint8Array(CHUNK), part; !(part = await reader.read(room)).done; room = new Uint8Array(part.value.buffer)) yield part.value;
}

/**
 * @param {string} text
 * @param {string} name
 */
function parseJson(text, name) {
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw new SingeError("format", `${name} is not JSON: ${/** @type {Error} */ (cause).message}`, cause);
  }
}

/** @param {string} name */
const tooLong = (name) => new SingeError("format", `${name} is too long`);

/** @param {FileEntry} entry */
function room({ file, bytes }) {
  try {
    return new Uint8Array(bytes);
  } catch (cause) {
    throw new SingeError("device", `${file}: no memory for ${bytes} bytes`, cause);
  }
}

/**
 * @param {FileEntry} entry
 * @param {number | string} found
 */
const wrongLength = ({ file, bytes }, found) => new SingeError("format", `${file} has ${found} bytes, the manifest says ${bytes}`);

/** @param {Uint8Array<ArrayBuffer>} bytes */
async function hashOf(bytes) {
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
  return Array.from(digest, (byte) => byte.toString(16).padStart(2, "0")).join("");
}
