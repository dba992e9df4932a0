/**
 * Makes the site work offline, and isolates it on hosts that send no headers for that. demos/build.py fills in SITE.
 *
 * Contract: a page always gets the files that the build wrote. SITE.files has each file's sha256. A file is cached under
 * its path and hash, after its hash was checked: so an update fetches only changed files and never mixes versions. Files
 * in SITE.first are fetched at the first visit, those of SITE.pages when their page is opened, others when a page requests
 * them. Weights and kernels are not listed,
 * since the runner caches them itself. All responses carry the headers that isolate a page (COOP, COEP, CORP).
 */

const SITE = { files: {}, first: [], pages: {} };

const SCOPE = self.registration.scope;
const CACHE = `singe-site ${SCOPE}`;
const ISOLATION = {
  "Cross-Origin-Opener-Policy": "same-origin",
  "Cross-Origin-Embedder-Policy": "require-corp",
  "Cross-Origin-Resource-Policy": "same-origin",
};

const key = (path) => `${SCOPE}${path}?sha256=${SITE.files[path]}`;

self.addEventListener("install", (event) => {
  self.skipWaiting();
  event.waitUntil(Promise.allSettled(SITE.first.map(refresh)));
});

self.addEventListener("activate", (event) => {
  event.waitUntil(Promise.all([removeOld(), self.clients.claim().then(prepareOpen)]));
});

self.addEventListener("fetch", (event) => {
  const { request } = event;
  if (request.method !== "GET" || !request.url.startsWith(SCOPE)) return;
  if (request.cache === "only-if-cached" && request.mode !== "same-origin") return;
  const path = pathOf(request.url);
  event.respondWith(answer(event, path));
  if (request.mode === "navigate") event.waitUntil(prepare(path));
});

/** Fetch what a page needs: it may have asked for it before this worker heard of it. */
const prepare = (path) => Promise.allSettled((SITE.pages[path] ?? []).map(refresh));

const prepareOpen = async () => Promise.all((await self.clients.matchAll({ type: "window" })).map(({ url }) => prepare(pathOf(url))));

/** The site's file for a URL; for a folder its index.html. */
function pathOf(address) {
  const url = new URL(address);
  const path = decodeURI((url.origin + url.pathname).slice(SCOPE.length));
  return path === "" || path.endsWith("/") ? `${path}index.html` : path;
}

async function answer(event, path) {
  const { request } = event;
  const known = Object.hasOwn(SITE.files, path) && !request.headers.has("Range");
  const held = known && (await (await caches.open(CACHE)).match(key(path)));
  if (held) return held;
  const response = isolated(await fetch(request).catch((cause) => unreached(request, cause)));
  if (known && response.status === 200) event.waitUntil(keep(path, response.clone()));
  return response;
}

/** What is shown where the server cannot be reached: a page that has not been opened before is not kept. */
function unreached({ mode }, cause) {
  if (mode !== "navigate") throw cause;
  const page = `<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>Offline</title>
<style>:root { color-scheme: light dark; font: 1rem/1.5 system-ui, sans-serif; } body { max-width: 40rem; margin: 10vh auto; padding: 0 1rem; }</style>
<h1>Offline</h1><p>The server cannot be reached, and this page has not been opened before. <a href="${SCOPE}">The front page</a> is kept here.</p></html>`;
  return new Response(page, { status: 503, headers: { "Content-Type": "text/html; charset=utf-8" } });
}

/** The response with isolating headers; redirects and similar responses are unchanged. */
function isolated(response) {
  if (response.type !== "basic" || [0, 204, 205, 304].includes(response.status)) return response;
  const headers = new Headers(response.headers);
  for (const [name, value] of Object.entries(ISOLATION)) headers.set(name, value);
  // The body is decoded already: its length is not the one on the wire.
  if (headers.has("Content-Encoding")) for (const name of ["Content-Encoding", "Content-Length"]) headers.delete(name);
  const { status, statusText } = response;
  return new Response(response.body, { status, statusText, headers });
}

/** Fetch a file unless it is cached. */
async function refresh(path) {
  const cache = await caches.open(CACHE);
  if (await cache.match(key(path))) return;
  const response = await fetch(SCOPE + path.replace(/(^|\/)index\.html$/, "$1"), { cache: "no-cache" });
  // An unread response keeps its connection open, and a host has only six.
  await (response.status === 200 ? keep(path, isolated(response)) : response.body?.cancel());
}

/** Store a response if its hash is right: a host may be between versions, or send an error page. */
async function keep(path, response) {
  const bytes = await response.arrayBuffer();
  const hash = new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
  const found = Array.from(hash, (b) => b.toString(16).padStart(2, "0")).join("");
  if (found !== SITE.files[path]) return;
  const cache = await caches.open(CACHE);
  await cache.put(key(path), new Response(bytes, { headers: response.headers }));
}

async function removeOld() {
  const wanted = new Set(Object.keys(SITE.files).map((path) => new URL(key(path)).href));
  const cache = await caches.open(CACHE);
  for (const { url } of await cache.keys()) if (!wanted.has(url)) await cache.delete(url);
}
