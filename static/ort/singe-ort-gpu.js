/**
 * Tensors in GPU buffers, and the GPU device that all sessions share: one session's outputs are another's inputs.
 *
 * Contract: `sharedDevice(settings)` gives the device in `settings.device`, opened if there is none. `tensorsOf` makes tensors of
 * a run's GPU buffers: those that shall stay there as they are, others on the CPU. A device that was lost is opened anew.
 */

/** @import { OrtTensorOptions, OrtType, Output, TypedArray } from "../types/public.d.ts" */

import { ARRAYS, align } from "../program/singe-format.js";
import { USAGE, elementsOf, mapped, requestDevice } from "../webgpu/singe-gpu.js";

/** @type {Promise<GPUDevice> | undefined} */
let opening;

/**
 * @param {Record<string, any>} settings
 * @returns {Promise<GPUDevice>}
 */
export async function sharedDevice(settings) {
  if (settings.device) return settings.device;
  opening ??= requestDevice(settings.powerPreference).finally(() => (opening = undefined));
  const device = await opening;
  settings.device = device;
  device.lost.then(() => {
    if (settings.device === device) settings.device = undefined;
  });
  return device;
}

/**
 * @param {GPUDevice} device
 * @param {Output<GPUBuffer>} output
 * @returns {Promise<TypedArray>}
 */
async function download(device, { data, shape, dtype }) {
  const own = ARRAYS[dtype].BYTES_PER_ELEMENT;
  const size = own < 4 && dtype !== "float16" ? 4 : own; // as static/README.md says of a device's elements
  const count = shape.reduce((product, d) => product * d, 1);
  const bytes = align(count * size, 4);
  if (!bytes) return new ARRAYS[dtype](0);
  const staging = device.createBuffer({ size: bytes, usage: USAGE.read | USAGE.target });
  const commands = device.createCommandEncoder();
  commands.copyBufferToBuffer(data, 0, staging, 0, bytes);
  device.queue.submit([commands.finish()]);
  try {
    await mapped(device, staging);
    return elementsOf(staging.getMappedRange(), 0, { dtype, size, count });
  } finally {
    staging.destroy();
  }
}

/**
 * @template {{ data: unknown }} Tensor
 * @param {Record<string, Output<GPUBuffer>>} found
 * @param {string[]} wanted
 * @param {Record<string, Tensor | null>} given tensors that take outputs
 * @param {(name: string) => boolean} onGpu whether an output stays on the GPU
 * @param {GPUDevice} device
 * @param {(options: OrtTensorOptions) => Tensor} make
 * @returns {Promise<Record<string, Tensor>>}
 */
export async function tensorsOf(found, wanted, given, onGpu, device, make) {
  /** @type {(name: string) => Promise<[string, Tensor]>} */
  const made = async (name) => {
    const output = found[name];
    const { dtype, shape, data: gpuBuffer } = output;
    const type = /** @type {OrtType} */ (dtype);
    if (onGpu(name)) {
      const own = { download: () => download(device, output), dispose: () => gpuBuffer.destroy() };
      return [name, given[name] ?? make({ location: "gpu-buffer", type, dims: shape, gpuBuffer, ...own })];
    }
    const data = await download(device, output);
    gpuBuffer.destroy();
    const into = given[name];
    /** @type {Float32Array | undefined} */ (into?.data)?.set(/** @type {Float32Array} */ (data));
    return [name, into ?? make({ location: "cpu", type, dims: shape, data })];
  };
  const tensors = Object.fromEntries(await Promise.all(wanted.map(made)));
  for (const [name, { data }] of Object.entries(found)) if (!wanted.includes(name)) data.destroy();
  return tensors;
}
