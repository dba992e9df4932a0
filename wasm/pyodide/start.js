/**
 * Python with NumPy and Singe, in a page or a module worker, from the folder that setup.py assembled.
 *
 *     const { pyodide } = await start({ onProgress: ({ loaded, total, phase }) => {} });
 *     await pyodide.runPythonAsync("import singe");
 *
 * Contract: all files come from `base`, each once. `phase` is "runtime", "numpy", "singe", then "ready"; `loaded` of `total`
 * counts the bytes of the folder's files and never decreases.
 */

export async function start({ base = new URL("./", import.meta.url), onProgress = () => {} } = {}) {
  const folder = new URL(base, globalThis.location?.href);
  if (!folder.pathname.endsWith("/")) folder.pathname += "/";
  const facts = await readJson(new URL("start.json", folder));
  const progress = new Progress(folder.href, facts.bytes, onProgress);
  try {
    progress.enter("runtime");
    const { loadPyodide } = await import(new URL("pyodide.mjs", folder).href);
    const pyodide = await loadPyodide({ indexURL: folder.href });
    progress.arrived((name) => !name.endsWith(".whl"));
    progress.enter("numpy");
    await pyodide.loadPackage(["numpy", "micropip"], { messageCallback: () => {} });
    progress.arrived((name) => name !== facts.wheel);
    progress.enter("singe");
    pyodide.registerJsModule("singe_scripts", await import(new URL("singe-python.js", folder).href));
    await pyodide.pyimport("micropip").install(new URL(facts.wheel, folder).href);
    await pyodide.runPythonAsync("import singe");
    progress.arrived(() => true);
    progress.enter("ready");
    return { pyodide };
  } finally {
    progress.stop();
  }
}

async function readJson(url) {
  const response = await fetch(url);
  if (!response.ok) throw new Error(`${url}: the server answers ${response.status}; setup.py writes this file`);
  return response.json();
}

/** Counts the bytes that have arrived, including those that Pyodide fetches itself. */
class Progress {
  #folder;
  #sizes;
  #report;
  #counts = {};
  #phase;
  #fetch = globalThis.fetch;

  constructor(folder, sizes, report) {
    this.#folder = folder;
    this.#sizes = sizes;
    this.#report = report;
    globalThis.fetch = this.#watched;
  }

  /** Restore fetch, unless other code has wrapped it since. */
  stop() {
    if (globalThis.fetch === this.#watched) globalThis.fetch = this.#fetch;
  }

  enter(phase) {
    this.#phase = phase;
    this.#tell();
  }

  /** Count these files as loaded: imported scripts cannot be observed while they load. */
  arrived(holds) {
    for (const [name, bytes] of Object.entries(this.#sizes)) if (holds(name)) this.#counts[name] = bytes;
    this.#tell();
  }

  #watched = async (resource, options) => {
    const response = await this.#fetch.call(globalThis, resource, options);
    const address = String(resource?.url ?? resource);
    const name = address.startsWith(this.#folder) ? address.slice(this.#folder.length) : "";
    if (response.ok && Object.hasOwn(this.#sizes, name)) this.#follow(response.clone(), name).catch(() => {});
    return response;
  };

  async #follow(response, name) {
    const reader = response.body.getReader();
    for (let at = 0, part = await reader.read(); !part.done; part = await reader.read()) {
      at += part.value.length;
      this.#counts[name] = Math.max(this.#counts[name] ?? 0, Math.min(at, this.#sizes[name]));
      this.#tell();
    }
  }

  #tell() {
    const sum = (counts) => Object.values(counts).reduce((total, bytes) => total + bytes, 0);
    this.#report({ loaded: sum(this.#counts), total: sum(this.#sizes), phase: this.#phase });
  }
}
