/**
 * What the console says of a worker that did not start. singe-spawn.js loads this when a script fails before its first message.
 *
 * Contract: `warnOfWorker(url, cause)` says once for each script why it did not start, and what to do. cause: an error, or
 * the event of one.
 */

/** @type {Set<string>} */
const warned = new Set();

/**
 * @param {URL} url
 * @param {{ message?: string }} cause
 */
export async function warnOfWorker(url, { message }) {
  if (warned.has(url.href)) return;
  warned.add(url.href);
  const advice = await adviceOn(url, message);
  console.warn(`singe: no worker from ${url}: ${advice}. The model runs ${/thread/.test(url.href) ? "on one thread" : "in the page"}.`);
}

/**
 * @param {URL} url
 * @param {string | undefined} message
 */
async function adviceOn(url, message) {
  const response = await fetch(url).catch(() => undefined);
  const type = response?.headers.get("content-type") ?? "";
  if (response?.ok && /javascript/.test(type)) {
    return message || "it is there; worker-src of the page's Content-Security-Policy, and its trusted-types (singe), have to allow it";
  }
  const found = response?.ok ? `answers with ${type || null}, not a script` : `answers ${response?.status ?? "nothing"}`;
  const files = "singe-worker.js and singe-thread.js beside the page's script";
  return `the server ${found}. A bundler may have left it behind: build singe/worker and singe/thread too, as ${files}`;
}
