/**
 * Models that were not compiled before, in a page that has loaded Pyodide with Singe: Python compiles them there.
 *
 * Contract: `compiled(compile, name, bytes, given)` gives the Model of an ONNX file, with the external data that the options of a
 * session name. Its bundle has an address of its own scheme, of which `fetch` gives the files until the Model is disposed; it is in no cache.
 */

/** @import { Model } from "../types/public.d.ts" */
/** @import { OrtGiven } from "./singe-ort-ops.js" */

const SCHEME = "singe-compiled:";

/** @typedef {Record<string, Uint8Array<ArrayBuffer>>} BundleFiles */

/**
 * A bundle's address ↦ its files.
 * @type {Map<string, BundleFiles>}
 */
const bundles = new Map();
let count = 0;

/** Make `fetch` give the files of these bundles. */
function serve() {
  const elsewhere = globalThis.fetch;
  globalThis.fetch = async (resource, options) => {
    const address = String(resource);
    if (!address.startsWith(SCHEME)) return elsewhere.call(globalThis, resource, options);
    const end = address.lastIndexOf("/") + 1;
    const file = bundles.get(address.slice(0, end))?.[address.slice(end)];
    const kind = address.endsWith(".wasm") ? "application/wasm" : "application/octet-stream";
    return file ? new Response(file, { headers: { "Content-Type": kind } }) : new Response(null, { status: 404 });
  };
}

/**
 * @param {(files: Record<string, Uint8Array>, targets: string[]) => Map<string, Uint8Array<ArrayBuffer>> | string} compile Python's function
 * @param {string} name
 * @param {Uint8Array} bytes
 * @param {OrtGiven} given
 * @returns {Promise<Model>}
 */
export async function compiled(compile, name, bytes, { options, devices, open }) {
  const parts = /** @type {(string | { path: string, data: unknown })[]} */ (options.externalData ?? []).map(async (part) => {
    const { path, data } = typeof part === "string" ? { path: part, data: part } : part;
    return [path.replace(/^\.\//, ""), await bytesOf(data)];
  });
  const targets = devices.includes("auto") ? (globalThis.navigator?.gpu ? [] : ["wasm"]) : devices;
  const made = compile({ [name]: bytes, ...Object.fromEntries(await Promise.all(parts)) }, [...targets]);
  if (typeof made === "string") throw new Error(`${name}: ${made}`);
  if (!count) serve();
  const address = `${SCHEME}///${++count}/`;
  bundles.set(address, Object.fromEntries(made));
  try {
    const model = await open(address, false);
    const dispose = model.dispose.bind(model);
    return Object.assign(model, { dispose: () => (bundles.delete(address), dispose()) });
  } catch (error) {
    bundles.delete(address);
    throw error;
  }
}

/**
 * The bytes of external data: as they are given, or at an address.
 * @param {unknown} data
 */
async function bytesOf(data) {
  if (data instanceof Uint8Array) return data;
  const response = typeof data === "string" || data instanceof URL ? await fetch(data) : new Response(/** @type {BodyInit} */ (data));
  if (!response.ok) throw new Error(`${data}: the server answers ${response.status}`);
  return new Uint8Array(await response.arrayBuffer());
}
