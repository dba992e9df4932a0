/**
 * Singe's Python in a worker, so that the page stays responsive.
 *
 * For { id, do, … } it posts { id, answer } or { id, error }, and before that any number of { id, progress }. Tasks run in order.
 *
 *     do: "open", python, record, device    a model's number
 *     do: "run", model, data, shape         { data, ms }
 *     do: "train", python, network, device  { number, weights } of a Training, ../train/python/in_page.py
 *     do: "call", number, method, given     what a method of it returns; arrays come flat
 *     do: "drop", number                    nothing: it is freed
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

/** What a Training is made of; in the site beside Pyodide. */
const TRAINING = ["model.py", "in_page.py"];

let starting;
let openTraining;
let last = Promise.resolve();
const trainings = [];

function started(folder, onProgress) {
  starting ??= start(folder, onProgress).catch((error) => {
    starting = undefined;
    throw error;
  });
  return starting;
}

async function start(folder, onProgress) {
  const { start } = await import(new URL("start.js", folder));
  const { pyodide } = await start({ base: new URL(folder), onProgress });
  const scope = pyodide.globals.get("dict")();
  await pyodide.runPythonAsync(OPEN_AND_RUN, { globals: scope });
  return { pyodide, open: scope.get("open_model"), run: scope.get("run_model") };
}

/** The function `opened` of in_page.py. */
async function importTraining(folder, pyodide) {
  for (const name of TRAINING) {
    const response = await fetch(new URL(name, folder));
    if (!response.ok) throw new Error(`Python's ${name} could not be fetched: ${response.status}.`);
    pyodide.FS.writeFile(name, await response.text());
  }
  return pyodide.pyimport("in_page").opened;
}

const TASKS = {
  async open({ python, record, device }, onProgress) {
    const { open } = await started(python, onProgress);
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
  async train({ python, network, device }, onProgress) {
    const { pyodide } = await started(python, onProgress);
    onProgress({ loaded: 0, total: 0, phase: "step" });
    openTraining ??= await importTraining(python, pyodide);
    const training = await openTraining(network, device);
    return { number: trainings.push(training) - 1, weights: plain(training.weights()) };
  },
  async call({ number, method, given }) {
    const { pyodide } = await starting;
    const lent = given.map((value) => pyodide.toPy(value));
    try {
      return plain(await trainings[number][method](...lent));
    } finally {
      for (const value of lent) value?.destroy?.();
    }
  },
  drop({ number }) {
    trainings[number].destroy();
    delete trainings[number];
  },
};

/** What Python returned, as an object of JavaScript's. */
function plain(found) {
  if (!found?.toJs) return found;
  const made = found.toJs({ dict_converter: Object.fromEntries, create_pyproxies: false });
  found.destroy();
  return made;
}

onmessage = ({ data: { id, do: task, ...given } }) => {
  last = last.then(async () => {
    try {
      const answer = await TASKS[task](given, (progress) => postMessage({ id, progress }));
      postMessage({ id, answer }, answer?.data ? [answer.data.buffer] : []);
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
