/**
 * Starts workers from this package's scripts. If these are on another origin than the page, a worker of the page's origin
 * imports them. In node, workers are threads.
 *
 * Callers write `new Worker(new URL("…", import.meta.url)`, since bundlers search for this text.
 */

export const Worker = function (url, options) {
  const Here = globalThis.Worker;
  if (!Here) return inNode(url);
  if (url.origin === globalThis.origin) return new Here(url, options);
  const text = `import ${JSON.stringify(url.href)};`;
  return new Here(URL.createObjectURL(new Blob([text], { type: "text/javascript" })), options);
};

function inNode(url) {
  const worker = new (process.getBuiltinModule("worker_threads").Worker)(url, { execArgv: [] });
  worker.on("message", (data) => worker.onmessage({ data }));
  worker.on("error", (error) => worker.onerror(error));
  return worker;
}
