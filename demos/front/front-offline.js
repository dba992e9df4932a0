/**
 * Every page of the site imports this. It registers the service worker, which makes the site work offline and isolates
 * the page if the host sends no headers for that. Isolation needs one reload, at the first visit; where that does not
 * help (in a frame of another site, for example) the page stays as it is.
 */

const MARK = "singe: reloaded for isolation";

/** Whether this tab may reload now: only once, and only if that can be recorded. */
function mayReload() {
  try {
    if (sessionStorage.getItem(MARK)) return false;
    sessionStorage.setItem(MARK, "yes");
    return true;
  } catch {
    return false;
  }
}

async function start() {
  await navigator.serviceWorker.register(new URL("./service-worker.js", import.meta.url));
  if (globalThis.crossOriginIsolated || globalThis.top !== globalThis) return;
  if (!navigator.serviceWorker.controller) {
    await new Promise((resolve) => navigator.serviceWorker.addEventListener("controllerchange", resolve, { once: true }));
  }
  if (mayReload()) location.reload();
}

// Without service workers (private windows, http) the page works online, on one thread.
if ("serviceWorker" in navigator) start().catch(() => {});
