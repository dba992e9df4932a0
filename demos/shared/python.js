/** Singe's Python in a worker, from the page's side: python-worker.js is the other. */

let python;

/** The worker, started when first needed, and again after a failure. */
class Python {
  #worker = new Worker(new URL("python-worker.js", import.meta.url), { type: "module" });
  #waiting = new Map();
  #last = 0;

  constructor() {
    this.#worker.onmessage = ({ data: { id, progress, error, answer } }) => {
      const { onProgress, resolve, reject } = this.#waiting.get(id);
      if (progress) return onProgress?.(progress);
      this.#waiting.delete(id);
      error ? reject(new Error(error)) : resolve(answer);
    };
    this.#worker.onerror = (event) => {
      python = undefined;
      this.#worker.terminate();
      for (const { reject } of this.#waiting.values()) reject(new Error(`Python stopped: ${event.message ?? "no reason given"}`));
    };
  }

  ask(task, onProgress, transfer = []) {
    const id = ++this.#last;
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, { onProgress, resolve, reject });
      this.#worker.postMessage({ id, ...task }, transfer);
    });
  }
}

/** What the worker answers to a task. */
export function askPython(task, onProgress, transfer) {
  python ??= new Python();
  return python.ask(task, onProgress, transfer);
}

/** A function that runs a record on a backend, as `Engine.run` does; `folder` has Python's files. */
export async function openInPython(folder, record, device, onProgress) {
  const model = await askPython({ do: "open", python: folder.href, record, device }, onProgress);
  return (data, shape) => {
    const copy = data.slice();
    return askPython({ do: "run", model, data: copy, shape }, undefined, [copy.buffer]);
  };
}
