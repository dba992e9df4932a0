/**
 * What is said of arguments of `load` that do not fit, and of an address where no bundle is.
 */

import { checkNames } from "../program/singe-arguments.js";
import { SingeError } from "../program/singe-format.js";

/**
 * The arguments in the order in which singe.js checks them, and what each should be.
 * @type {Record<string, string>}
 */
const EXPECTED_OF = {
  url: "the address of a folder",
  device: '"wasm", "webgpu", "remote" or "auto"',
  threads: "how many threads, or 0",
  onProgress: "a function",
  onDevice: "a function",
  signal: "an AbortSignal",
  gpuDevice: "a GPUDevice",
};
const EXPECTED = Object.entries(EXPECTED_OF);

/**
 * What to do about an address where no bundle is.
 * @param {URL} folder
 */
function adviceFor({ protocol, pathname }) {
  const [, name = ""] = pathname.match(/([^/]*)\/$/) ?? [];
  if (/\/(undefined|null|NaN)\//.test(pathname)) return "the address was made of a value that is not set: look at what is passed to load";
  if (name === "model.json") return "pass load the folder, without model.json";
  if (/\.onnx$/i.test(name)) return `export it first, with singe export ${name} -o FOLDER, and pass load that folder`;
  return protocol === "file:"
    ? `pass load the folder that singe export wrote; a relative path begins at ${process.cwd()}`
    : "put the folder that singe export wrote where the server has its static files (often public/) and pass load its address";
}

/** How long a page waits for its Content-Security-Policy to say that it refused a request. */
const PATIENCE_MS = 200;

/**
 * Whether the page's Content-Security-Policy refuses requests for this address.
 * @param {URL} url
 * @returns {Promise<boolean>}
 */
function isForbidden(url) {
  return new Promise((done) => {
    const { addEventListener } = globalThis;
    addEventListener?.("securitypolicyviolation", ({ effectiveDirective }) => effectiveDirective === "connect-src" && done(true), { once: true });
    fetch(url, { method: "HEAD" }).then(
      () => done(false),
      () => setTimeout(done, PATIENCE_MS, false),
    );
  });
}

/**
 * Whether a server answers at all, be it with something that this page may not read.
 * @param {URL} url
 */
const answers = (url) =>
  fetch(url, { mode: "no-cors" }).then(
    () => true,
    () => false,
  );

/**
 * Add what to do to the error of a policy that forbids the request; of a server of another origin that does not share; of a server, or a
 * disk, that has no bundle in `folder`, but an answer of its own.
 * @param {SingeError} error
 * @param {URL} folder
 */
export async function advise(error, folder) {
  if (error.code === "network" && error.cause instanceof TypeError) {
    const manifest = new URL("model.json", folder);
    const isElsewhere = folder.origin !== globalThis.origin;
    if (await isForbidden(manifest)) {
      error.message += `; the page's Content-Security-Policy forbids it: add ${isElsewhere ? folder.origin : "'self'"} to its connect-src`;
    } else if (isElsewhere && (await answers(manifest))) {
      error.message += "; its server answers, but to pages of its own origin alone: let it send Access-Control-Allow-Origin";
    }
  }
  const page = error.code === "format" && /^model\.json is not JSON.*</s.test(error.message);
  const missing =
    /model\.json: the server answers 404$/.test(error.message) || ["ENOENT", "ENOTDIR"].includes(String(/** @type {{ code?: string } | undefined} */ (error.cause)?.code));
  if (!page && !missing) return;
  const advice = adviceFor(folder);
  const found = page ? `cannot read ${new URL("model.json", folder)}: the server answers with a page, HTML` : error.message;
  error.message = `${found}; ${advice}`;
}

/**
 * @param {string} name
 * @param {object} targets
 * @returns {never}
 */
export function refuseDevice(name, targets) {
  throw new SingeError("device", `the bundle was exported without ${name}; it has ${Object.keys(targets).join(", ")}`);
}

/**
 * fits: whether each argument fits.
 * @param {unknown[]} fits
 * @param {unknown} url
 * @param {Record<string, unknown>} options
 * @returns {Promise<never>}
 */
export async function refuse(fits, url, options) {
  if (fits.slice(0, -1).every(Boolean)) {
    if ("remote" in options && options.device !== "remote") throw new SingeError("input", 'remote: it goes with device: "remote"');
    await checkNames(options, [...Object.keys(EXPECTED_OF).slice(1), "worker", "cache", "remote"], "option", "load takes");
  }
  const [name, expected] = EXPECTED[fits.findIndex((fit) => !fit)];
  if (name === "gpuDevice" && options.worker) {
    throw new SingeError("input", "gpuDevice: a GPUDevice cannot be handed to a worker: load without one of them");
  }
  if (name === "gpuDevice" && options.device === "remote") throw new SingeError("input", 'gpuDevice: it does not go with device: "remote"');
  const given = name === "url" ? url : options[name];
  /** @type {string} */
  let got = typeof given;
  try {
    got = got === "string" ? JSON.stringify(given) : String(given);
  } catch {} // what has no text
  throw new SingeError("input", `${name}: got ${got}, expected ${expected}`);
}
