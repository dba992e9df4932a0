/**
 * Singe's Python in a worker, so that the page stays responsive.
 *
 * For { id, do: "open", python, record, device } it posts any number of { id, progress }, then a model's number; for
 * { id, do: "run", model, data, shape } it posts { data, ms }. Failures are { id, error }. Tasks run in order.
 */

const OPEN_AND_RUN = `
import numpy as np
import singe as sg

models = []

async def open_model(record, device):
    models.append(await sg.load_async(record, device=device))
    return len(models) - 1

async def run_model(model, data, shape):
    x = np.frombuffer(data.to_memoryview(), np.float32).reshape(shape.to_py())
    outputs = await models[model].run_async(x)
    first = next(iter(outputs.values())) if isinstance(outputs, dict) else outputs
    return np.ascontiguousarray(first, np.float32)
`;

let starting;
let last = Promise.resolve();

async function start(folder, onProgress) {
  const { start } = await import(new URL("start.js", folder));
  const { pyodide } = await start({ base: new URL(folder), onProgress });
  const scope = pyodide.globals.get("dict")();
  await pyodide.runPythonAsync(OPEN_AND_RUN, { globals: scope });
  return { open: scope.get("open_model"), run: scope.get("run_model") };
}

const TASKS = {
  async open({ python, record, device }, onProgress) {
    starting ??= start(python, onProgress).catch((error) => {
      starting = undefined;
      throw error;
    });
    const { open } = await starting;
    onProgress({ loaded: 0, total: 0, phase: "model" });
    return open(record, device);
  },
  async run({ model, data, shape }) {
    const { run } = await starting;
    const begun = performance.now();
    const array = await run(model, data, shape);
    const buffer = array.getBuffer("f32");
    const answer = { data: buffer.data.slice(), ms: performance.now() - begun };
    buffer.release();
    array.destroy();
    return answer;
  },
};

onmessage = ({ data: { id, do: task, ...given } }) => {
  last = last.then(async () => {
    try {
      const answer = await TASKS[task](given, (progress) => postMessage({ id, progress }));
      postMessage({ id, answer }, answer.data ? [answer.data.buffer] : []);
    } catch (error) {
      postMessage({ id, error: lastLine(error) });
    }
  });
};

/** The message of a Python traceback: its last line, without the error's class. */
function lastLine(error) {
  const text = String(error.message ?? error).trim();
  return error.name === "PythonError" ? text.split("\n").at(-1).replace(/^[\w.]+: /, "") : text;
}
