/**
 * Stubs: the small .onnx files that `singe export --stub` writes in the place of models, and that name their bundles.
 *
 * Contract: `bundleOf(address, bytes, given)` gives the address of the bundle that a stub names, or of the bundle that the address is; of
 * bytes that are no stub, what singe-ort-ops.js makes of them, which reads `given`.
 * A bundle is where the stub says (`--url`), beside the stub if its address is known, or else beside a file of the stub's name
 * that this page has fetched or has in its caches. Its manifest must have the hash that the stub says; the manifest has those of
 * all other files.
 */

/** @import { OrtGiven, OrtOperator } from "./singe-ort-ops.js" */

import { folderOf } from "../loading/singe-files.js";

/** A stub's entry among the metadata of the ONNX model: static/README.md, "Stubs". */
const ENTRY = /singe\.bundle[\s\S]{1,6}?stub (\{[^{}]*\})/;
const MOST_BYTES = 4096;

/** @typedef {{ bundle: string, sha256: string, url?: string }} Stub */

const base = () => /** @type {URL} */ (folderOf("."));

/**
 * @param {string | undefined} address
 * @param {Uint8Array | undefined} bytes
 * @param {OrtGiven} given
 * @returns {Promise<string | OrtOperator>}
 */
export async function bundleOf(address, bytes, given) {
  const from = address === undefined ? undefined : new URL(address, base());
  if (from?.pathname.endsWith("/")) return from.href; // a bundle
  const file = bytes ?? (await read(/** @type {URL} */ (from)));
  const stub = stubIn(file);
  return stub ? placed(stub, from) : (await import("./singe-ort-ops.js")).operatorOf(file, from, given);
}

/**
 * What a stub says; undefined if these bytes are none.
 * @param {Uint8Array} bytes
 * @returns {Stub | undefined}
 */
function stubIn(bytes) {
  const found = bytes.length <= MOST_BYTES && ENTRY.exec(new TextDecoder().decode(bytes));
  return found ? JSON.parse(found[1]) : undefined;
}

/**
 * @param {URL} url
 * @param {RequestInit} [options]
 * @returns {Promise<Uint8Array>}
 */
async function read(url, options) {
  if (url.protocol === "file:" && globalThis.process) {
    const parts = [];
    for await (const part of process.getBuiltinModule("fs").createReadStream(url, { signal: new AbortController().signal })) parts.push(part);
    return new Uint8Array(await new Blob(parts).arrayBuffer());
  }
  const response = await fetch(url, options);
  if (!response.ok) throw new Error(`${url}: the server answers ${response.status}`);
  return new Uint8Array(await response.arrayBuffer());
}

/**
 * The address of a stub's bundle, with its version as the query.
 * @param {Stub} stub
 * @param {URL} [from]
 */
async function placed({ bundle, sha256, url }, from) {
  if (!/^[^\\/]+\.singe$/.test(bundle)) throw new Error("the stub is damaged; export it again");
  const places = url !== undefined ? [new URL(`${url}/`, base())] : from ? [new URL(`${encodeURIComponent(bundle)}/`, from)] : fetched(bundle);
  let why;
  for (const place of places) {
    try {
      return await checked(place, sha256);
    } catch (error) {
      why = error;
    }
  }
  return (await import("./singe-ort-lost.js")).search(bundle, sha256, places, why, { checked, stubIn, read });
}

/**
 * The address of a bundle, if its manifest has this hash.
 * @param {URL} place
 * @param {string} sha256
 */
async function checked(place, sha256) {
  place.search = `?v=${sha256.slice(0, 16)}`;
  if ((await hashOf(await read(new URL(`model.json${place.search}`, place)))) === sha256) return place.href;
  throw new Error(`${place} is not the stub's bundle`);
}

/**
 * Where bundles of this name may be: beside files of the stub's name that were fetched, the latest first.
 * @param {string} bundle
 */
function fetched(bundle) {
  const end = `/${encodeURIComponent(bundle.replace(/\.singe$/, ""))}`;
  const seen = (globalThis.performance?.getEntriesByType?.("resource") ?? []).map(({ name }) => new URL(name)).filter(({ pathname }) => pathname.endsWith(end));
  return [...new Set(seen.map(({ origin, pathname }) => `${origin}${pathname}.singe/`).reverse())].map((place) => new URL(place));
}

/** @param {Uint8Array} bytes */
async function hashOf(bytes) {
  if (!globalThis.crypto?.subtle) return (await import("./singe-ort-lost.js")).plainHashOf(bytes);
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", /** @type {Uint8Array<ArrayBuffer>} */ (bytes)));
  return Array.from(digest, (byte) => byte.toString(16).padStart(2, "0")).join("");
}
