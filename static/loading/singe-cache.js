/**
 * Keeps a page's bundles in Cache Storage, so that each byte is downloaded once.
 *
 * Contract: `openStore(folder)` returns a BundleStore, or undefined without Cache Storage (http other than localhost; an opaque
 * origin; node). It never fails: files that cannot be kept are not. The key of a file is its sha256, so bundles
 * share equal files, and the reader checks it. The key of a manifest is its URL. When a manifest changes, files that no
 * manifest names are removed, and the manifests that changed longest ago.
 */

const NAME = "singe";
const MOST_BUNDLES = 32;
const FILES = "https://sha256.invalid/"; // a host that cannot exist: the keys are no URLs
const HASHES = /"sha256":\s*"([0-9a-f]{64})"/g;

export async function openStore(folder) {
  try {
    return new BundleStore(await caches.open(NAME), folder);
  } catch {
    return undefined;
  }
}

/** Responses being read: in Chromium a read never ends if its Response is garbage-collected. */
const reading = new Set();

/** Files being stored, by key: another request for one waits instead of fetching it again. */
const keeping = new Map();

const quietly = (promise) => promise.catch(() => undefined);

class BundleStore {
  #cache;
  #manifest;
  #choice;
  #adopted;

  constructor(cache, folder) {
    this.#cache = cache;
    this.#manifest = new URL("model.json", folder).href;
    this.#choice = new URL("?choice", this.#manifest).href;
  }

  #get(key) {
    return quietly(this.#cache.match(key, { ignoreVary: true }));
  }

  /**
   * A file: `check` gets the stored file, if any; if it throws, `again` gets the error and the file is dropped.
   * Otherwise `ask(see)` passes its response to `see` before reading it, and the response is stored as it arrives.
   */
  async through(sha256, check, again, ask) {
    const key = FILES + sha256;
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
    let put;
    try {
      await ask((response) => {
        put = quietly(this.#cache.put(key, response.clone())).then(() => keeping.delete(key));
        keeping.set(key, put);
      });
    } catch (error) {
      put?.then(() => quietly(this.#cache.delete(key)));
      throw error;
    }
  }

  /** A response with the manifest of last time. */
  async manifest() {
    const text = await (await this.#get(this.#manifest))?.text();
    return text && new Response(text);
  }

  /** Store the current manifest. */
  adopt(text) {
    return (this.#adopted ??= quietly(this.#adopt(text)));
  }

  async #adopt(text) {
    const before = await this.manifest();
    if ((await before?.text()) === text) return;
    await this.#cache.put(this.#manifest, new Response(text));
    await this.#cache.delete(this.#choice);
    await this.#sweep();
  }

  async #sweep() {
    const keys = (await this.#cache.keys()).map(({ url }) => url);
    const files = keys.filter((key) => key.startsWith(FILES));
    const manifests = keys.filter((key) => new URL(key).pathname.endsWith("/model.json") && !key.endsWith("?choice"));
    const gone = manifests.slice(0, -MOST_BUNDLES); // Cache Storage lists the newest entry last
    const texts = await Promise.all(manifests.slice(-MOST_BUNDLES).map(async (key) => (await this.#get(key))?.text()));
    const named = new Set(texts.flatMap((text) => Array.from(text?.matchAll(HASHES) ?? [], ([, hash]) => FILES + hash)));
    const unused = [...gone, ...gone.map((key) => `${key}?choice`), ...files.filter((key) => !named.has(key))];
    await Promise.all(unused.map((key) => this.#cache.delete(key)));
  }

  /** What `remember` stored for this manifest. */
  async recall() {
    await this.#adopted;
    return quietly((async () => (await this.#get(this.#choice))?.json())());
  }

  remember(value) {
    return quietly(this.#cache.put(this.#choice, Response.json(value)));
  }
}
