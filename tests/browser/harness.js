/**
 * What tests run around the runner, in node and in pages alike: tensors in and out as plain data, errors as their codes.
 *
 * A tensor is { dtype, shape, data }, its data in base64.
 */

import { ARRAYS } from "../../static/program/singe-format.js";

export const unpack = (tensors) =>
  Object.fromEntries(
    Object.entries(tensors).map(([name, { dtype, shape, data }]) => {
      const bytes = Uint8Array.from(atob(data), (c) => c.charCodeAt(0));
      return [name, { data: new ARRAYS[dtype](bytes.buffer), shape }];
    }),
  );

export const pack = (outputs) =>
  Object.fromEntries(
    Object.entries(outputs).map(([name, { dtype, shape, data }]) => {
      const bytes = new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
      const text = Array.from(bytes, (b) => String.fromCharCode(b)).join("");
      return [name, { dtype, shape, data: btoa(text) }];
    }),
  );

/** Load a bundle, run it on each case, all asked for at once, and dispose of it. */
export async function answer(load, url, options, cases) {
  const progress = [];
  const model = await load(url, { ...options, onProgress: (p) => progress.push(p) });
  const started = performance.now();
  const outputs = await Promise.all(cases.map((tensors) => model.run(unpack(tensors))));
  const seconds = (performance.now() - started) / 1000;
  const { device, inputs, memory } = model;
  await model.dispose();
  return { outputs: outputs.map(pack), device, inputs, memory, after: model.memory, progress, seconds };
}

/** The code and the message of the error that an action ends with. */
export async function failure(action) {
  try {
    await action();
    return { code: "none", message: "nothing failed" };
  } catch ({ name, code, message }) {
    return { name, code, message };
  }
}
