/**
 * What a page keeps of its bundles in Cache Storage, so that each byte is fetched once ever.
 *
 * Contract: `openStore(folder)` answers a Store, or undefined where there is no Cache Storage (http, other than localhost;
 * an opaque origin; node). A Store never fails: what cannot be kept is not kept. Files lie under their sha256, so bundles
 * share what is equal, and whoever takes one out checks it. Manifests lie under their own addresses; a file that no kept
 * manifest names is removed when a manifest changes, and the manifests that changed longest ago are removed with them.
 */

const NAME = "singe";
const MOST_BUNDLES = 32;
const FILES = "https://sha256.invalid/"; // a host that can never be: the keys are no addresses
const HASHES = /"sha256":\s*"([0-9a-f]{64})"/g;

export async function openStore(folder) {
  try {
    return new Store(await caches.open(NAME), folder);
  } catch {
    return undefined;
  }
}

/** Answers that are being read: a reading whose answer is collected as garbage never ends in Chromium. */
const reading = new Set();

/** Files that are being kept, by their keys: who asks for one meanwhile waits, rather than fetching it again. */
const keeping = new Map();

const quietly = (promise) => promise.catch(() => undefined);

class Store {
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
   * A file: `check` gets what is kept of it, if anything is; what it throws goes to `again`, and the damaged file is
   * dropped. Else `ask(see)` checks an answer that it shows to `see` before reading it, and that is kept as it arrives.
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

  /** An answer that holds the manifest of last time. */
  async manifest() {
    const text = await (await this.#get(this.#manifest))?.text();
    return text && new Response(text);
  }

  /** This is the manifest now. */
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
    const gone = manifests.slice(0, -MOST_BUNDLES); // Cache Storage lists what was put last as the last
    const texts = await Promise.all(manifests.slice(-MOST_BUNDLES).map(async (key) => (await this.#get(key))?.text()));
    const named = new Set(texts.flatMap((text) => Array.from(text?.matchAll(HASHES) ?? [], ([, hash]) => FILES + hash)));
    const unused = [...gone, ...gone.map((key) => `${key}?choice`), ...files.filter((key) => !named.has(key))];
    await Promise.all(unused.map((key) => this.#cache.delete(key)));
  }

  /** What `remember` was told of this manifest. */
  async recall() {
    await this.#adopted;
    return quietly((async () => (await this.#get(this.#choice))?.json())());
  }

  remember(value) {
    return quietly(this.#cache.put(this.#choice, Response.json(value)));
  }
}
