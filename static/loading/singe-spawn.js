/**
 * Starts workers from this package's scripts. If these are on another origin than the page, a worker of the page's origin
 * imports them. In node, workers are threads. A page of Trusted Types may allow the policy "singe", which is for this alone.
 *
 * Contract: `start` says `new Worker(new URL("…", import.meta.url), …)` with the global Worker: bundlers search for this text.
 * If the script does not come to its first message, the console says why.
 */

/** @type {TrustedPolicy | undefined} */
let policy;

/**
 * @param {() => Worker} start
 * @returns {Worker}
 */
export function spawn(start) {
  const [given, options] = argumentsOf(start);
  const Here = globalThis.Worker;
  const url = new URL(given, globalThis.location?.href);
  if (!Here) return inNode(url);
  const warn = (/** @type {unknown} */ cause) => import("./singe-unstarted.js").then(({ warnOfWorker }) => warnOfWorker(url, /** @type {Error} */ (cause))).catch(() => {});
  try {
    const worker = new Here(trusted(url.origin === globalThis.origin ? url : importing(url)), options);
    worker.addEventListener?.("error", warn);
    worker.addEventListener?.("message", () => worker.removeEventListener("error", warn), { once: true });
    return worker;
  } catch (cause) {
    warn(cause);
    throw cause;
  }
}

/**
 * What `start` would give to Worker.
 * @param {() => Worker} start
 * @returns {ConstructorParameters<typeof Worker>}
 */
function argumentsOf(start) {
  const Here = globalThis.Worker;
  /** @type {ConstructorParameters<typeof Worker>} */
  let found;
  globalThis.Worker = /** @type {typeof Worker} */ (
    /** @type {unknown} */ (
      function (/** @type {ConstructorParameters<typeof Worker>} */ ...given) {
        found = given;
      }
    )
  );
  try {
    start();
  } finally {
    if (Here) globalThis.Worker = Here;
    else delete (/** @type {{ Worker?: unknown }} */ (globalThis).Worker);
  }
  // @ts-expect-error: `start` has set it
  return found;
}

/** @param {URL} url */
const importing = ({ href }) => URL.createObjectURL(new Blob([`import ${JSON.stringify(href)};`], { type: "text/javascript" }));

/**
 * The address, as a TrustedScriptURL if the page allows the policy.
 * @param {URL | string} url
 */
function trusted(url) {
  try {
    policy ??= globalThis.trustedTypes?.createPolicy("singe", { createScriptURL: (text) => text });
  } catch {}
  return policy ? policy.createScriptURL(String(url)) : url;
}

/** @param {URL} url */
function inNode(url) {
  const worker = new (process.getBuiltinModule("worker_threads").Worker)(url, { execArgv: [] });
  worker.on("message", (data) => /** @type {(event: { data: unknown }) => void} */ (worker.onmessage)({ data }));
  worker.on("error", (error) => /** @type {(error: Error) => void} */ (/** @type {unknown} */ (worker.onerror))(error));
  return worker;
}
