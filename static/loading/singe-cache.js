/**
 * Keeps a page's bundles in Cache Storage, so that each byte is downloaded once.
 *
 * Contract: `openStore(folder)` returns a BundleStore, or undefined without Cache Storage (http other than localhost; an opaque
 * origin; node). It never fails: files that cannot be kept are not. The key of a file is its address with its sha256, so that no
 * folder answers for another, and the reader checks it. The key of a manifest is its address. When a manifest changes, files
 * that no manifest names are removed, and the manifests that changed longest ago. Queries of
 * addresses do not count: a new version of a bundle finds the files that have not changed.
 */

/** @import { FileEntry } from "../types/program.d.ts" */

const NAME = "singe";
const MOST_BUNDLES = 32;
const FILE = "?sha256=";
const HASHES = /"sha256":\s*"([0-9a-f]{64})"/g;

/**
 * @param {URL} folder
 * @returns {Promise<BundleStore | undefined>}
 */
export async function openStore(folder) {
  try {
    return new BundleStore(await caches.open(NAME), folder);
  } catch {
    return undefined;
  }
}

/**
 * Responses being read: in Chromium a read never ends if its Response is garbage-collected.
 * @type {Set<Response | undefined>}
 */
const reading = new Set();

/**
 * Files being stored, by key: another request for one waits instead of fetching it again.
 * @type {Map<string, Promise<unknown>>}
 */
const keeping = new Map();

/**
 * @template T
 * @param {Promise<T>} promise
 */
const quietly = (promise) => promise.catch(() => undefined);

class BundleStore {
  #cache;
  #folder;
  #manifest;
  #choice;
  /** @type {Promise<void> | undefined} */
  #adopted;

  /**
   * @param {Cache} cache
   * @param {URL} folder
   */
  constructor(cache, folder) {
    this.#cache = cache;
    this.#folder = new URL(".", folder).href;
    this.#manifest = new URL("model.json", folder).href;
    this.#choice = new URL("?choice", this.#manifest).href;
  }

  /** @param {string} key */
  #get(key) {
    return quietly(this.#cache.match(key, { ignoreVary: true }));
  }

  /**
   * A file: `check` gets the stored file, if any; if it throws, `again` gets the error and the file is dropped.
   * Otherwise `ask(keep)` calls `keep` with all bytes, in order, which are stored if it does not throw.
   * @param {FileEntry} entry
   * @param {(stored: Response) => Promise<void>} check
   * @param {(error: unknown) => void} again
   * @param {(keep: (bytes: Uint8Array<ArrayBuffer>) => void) => Promise<void>} ask
   * @returns {Promise<void>}
   */
  async through(entry, check, again, ask) {
    const key = this.#keyOf(entry);
    await keeping.get(key);
    const kept = await this.#get(key);
    try {
      reading.add(kept);
      if (kept) return await check(kept);
    } catch (error) {
      again(error);
      await quietly(this.#cache.delete(key));
    } finally {
      reading.delete(kept);
    }
    /** @type {Blob[]} */
    const parts = []; // in Blobs, which the browser may hold outside of the page
    const asked = ask((bytes) => parts.push(new Blob([bytes])));
    const put = asked.then(() => this.#cache.put(key, new Response(new Blob(parts))));
    keeping.set(key, quietly(put.finally(() => keeping.delete(key))));
    return asked;
  }

  /** @param {Pick<FileEntry, "file" | "sha256">} entry */
  #keyOf({ file, sha256 }) {
    return new URL(file, this.#folder).href + FILE + sha256;
  }

  /** A response with the manifest of last time. */
  async manifest() {
    const text = await (await this.#get(this.#manifest))?.text();
    return text ? new Response(text) : undefined;
  }

  /**
   * Store the current manifest.
   * @param {string} text
   */
  adopt(text) {
    return (this.#adopted ??= quietly(this.#adopt(text)));
  }

  /** @param {string} text */
  async #adopt(text) {
    const before = await this.manifest();
    if ((await before?.text()) === text) return;
    await this.#cache.put(this.#manifest, new Response(text));
    await this.#cache.delete(this.#choice);
    await this.#sweep();
  }

  async #sweep() {
    const keys = (await this.#cache.keys()).map(({ url }) => url);
    const manifests = keys.filter((key) => key.endsWith("/model.json"));
    const kept = manifests.slice(-MOST_BUNDLES); // Cache Storage lists the newest entry last
    const wanted = await Promise.all(kept.map(async (key) => [key, `${key}?choice`, ...(await this.#hashes(key))]));
    const named = new Set(wanted.flat());
    const isWanted = (/** @type {string} */ key) => named.has(key) || named.has(key.split(FILE)[1]);
    await Promise.all(keys.filter((key) => !isWanted(key)).map((key) => this.#cache.delete(key)));
  }

  /**
   * The hashes of the files that a kept manifest names.
   * @param {string} manifest
   * @returns {Promise<string[]>}
   */
  async #hashes(manifest) {
    const text = await (await this.#get(manifest))?.text();
    return Array.from(text?.matchAll(HASHES) ?? [], ([, hash]) => hash);
  }

  /**
   * What `remember` stored for this manifest.
   * @returns {Promise<{ adapter?: string | null, device?: string } | undefined>}
   */
  async recall() {
    await this.#adopted;
    return quietly((async () => (await this.#get(this.#choice))?.json())());
  }

  /** @param {{ adapter: string | null, device: string }} value */
  remember(value) {
    return quietly(this.#cache.put(this.#choice, Response.json(value)));
  }
}
