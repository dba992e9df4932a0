// Run a freestanding module of float32 inputs and outputs: node run.mjs model.wasm. No part of Singe is needed.

import { readFileSync } from "node:fs";

const { instance } = await WebAssembly.instantiate(readFileSync(process.argv[2]));
const { memory, metadata, input, output, run } = instance.exports;
const bytes = new Uint8Array(memory.buffer);
const text = bytes.subarray(metadata(), bytes.indexOf(0, metadata()));
const { inputs, outputs, errors } = JSON.parse(new TextDecoder().decode(text));

inputs.forEach((spec, k) => new Float32Array(memory.buffer, input(k), spec.bytes / 4).fill(0.5));
const error = run();
if (error) throw new Error(errors[error]);
outputs.forEach((spec, k) => {
  console.log(spec.name, ...new Float32Array(memory.buffer, output(k), spec.bytes / 4));
});
