/**
 * Pyodide in node, driven line by line: `node pyodide_node.mjs FOLDER [MODELS]`.
 *
 * Each line of the input is JSON: { code, plain }; each line of the output what the code answered, { value }, or { error }.
 * FOLDER is what wasm/pyodide/setup.py assembled; where it has NumPy, the wheel of Singe is installed by micropip. The
 * scripts are not registered: Python imports its own.
 */

import { createInterface } from "node:readline";
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const [folder, models] = process.argv.slice(2);
const { loadPyodide } = await import(pathToFileURL(`${folder}/pyodide.mjs`).href);
const pyodide = await loadPyodide({ indexURL: `${folder}/` });
const { wheel, bytes } = JSON.parse(readFileSync(`${folder}/start.json`, "utf8"));
if (models) pyodide.mountNodeFS("/models", models);
if (Object.keys(bytes).some((name) => name.startsWith("numpy-"))) {
  await pyodide.loadPackage(["numpy", "micropip"], { messageCallback() {} });
  pyodide.FS.writeFile(`/tmp/${wheel}`, readFileSync(`${folder}/${wheel}`));
  await pyodide.pyimport("micropip").install(`emfs:/tmp/${wheel}`);
} else {
  globalThis.scripts = await import(pathToFileURL(`${folder}/singe-python.js`).href);
}

const answer = (line) => process.stdout.write(`${JSON.stringify(line)}\n`);
answer({ value: null });
for await (const line of createInterface({ input: process.stdin })) {
  const { code, plain } = JSON.parse(line);
  try {
    answer({ value: (plain ? pyodide.runPython(code) : await pyodide.runPythonAsync(code)) ?? null });
  } catch ({ message }) {
    answer({ error: message });
  }
}
process.exit(0);
