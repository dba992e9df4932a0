/**
 * Every page of the site imports this: it registers the service worker, by which the site works offline, and isolates a
 * page whose host sends no headers for that. Isolation takes one reload, at the first visit; where it does not help
 * (in a frame of another site, say), the page stays as it is.
 */

const MARK = "singe: reloaded for isolation";

/** Whether this tab may reload now: once, and only where the fact that it did can be remembered. */
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

// Without service workers (a private window, an address without https) the page works, online and on one thread.
if ("serviceWorker" in navigator) start().catch(() => {});
