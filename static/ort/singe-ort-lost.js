/**
 * Where else a stub's bundle may be, if it is not where it is looked for first.
 *
 * Contract: `search` returns the bundle's address, or fails with what to do. Libraries keep stubs in Cache Storage: a page that
 * has its stub from there has not fetched it, and a bundle may have been exported anew since. So it looks beside what the caches
 * hold, and last asks the server for the stub that is there now. `plainHashOf` is for pages that are not secure, which have no
 * crypto.subtle.
 */

/** @typedef {{ checked(place: URL, sha256: string): Promise<string>, stubIn(bytes: Uint8Array): { sha256: string } | undefined, read(url: URL, options?: RequestInit): Promise<Uint8Array> }} StubTools */

/**
 * @param {string} bundle
 * @param {string} sha256
 * @param {URL[]} tried where it is not, or is another one
 * @param {unknown} why
 * @param {StubTools} tools
 * @returns {Promise<string>}
 */
export async function search(bundle, sha256, tried, why, { checked, stubIn, read }) {
  const kept = tried.length ? [] : await cached(bundle);
  for (const place of kept) {
    const found = await checked(place, sha256).catch(() => undefined);
    if (found) return found;
  }
  for (const place of [...tried, ...kept]) {
    const file = new URL(place.pathname.replace(/\.singe\/+$/, ""), place);
    const stub = await read(file, { cache: "reload" }).then(stubIn, () => undefined);
    const found = stub && stub.sha256 !== sha256 && (await checked(place, stub.sha256).catch(() => undefined));
    if (found) return found;
  }
  const told = /** @type {Error | undefined} */ (why)?.message ?? "the stub's bytes do not tell where it is, and this page fetched no file of its name";
  throw new Error(`${bundle}: ${told}; export with --url, the address of the bundle`);
}

/**
 * Where bundles of this name may be: beside files of the stub's name in the page's caches.
 * @param {string} bundle
 */
async function cached(bundle) {
  const end = `/${encodeURIComponent(bundle.replace(/\.singe$/, ""))}`;
  const caches = globalThis.caches;
  const names = (await caches?.keys().catch(() => [])) ?? [];
  const requests = await Promise.all(names.map(async (name) => (await caches.open(name)).keys()));
  const found = requests.flat().map(({ url }) => new URL(url));
  return found.filter(({ pathname }) => pathname.endsWith(end)).map(({ origin, pathname }) => new URL(`${origin}${pathname}.singe/`));
}

/**
 * @param {Uint8Array} bytes
 * @returns {Promise<string>}
 */
export async function plainHashOf(bytes) {
  const { receiver } = await import("../loading/singe-stream.js");
  const { take, end } = (await receiver({ file: "", sha256: "", bytes: bytes.length }, () => {}))();
  take(/** @type {Uint8Array<ArrayBuffer>} */ (bytes), 0);
  return end();
}
