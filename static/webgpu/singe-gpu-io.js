/**
 * Runs on "webgpu" with data that stays on the GPU: kernels read and write the caller's buffers directly.
 *
 * Contract: `run(recording, inputs, outputs)` runs a recording of singe-webgpu.js. Inputs are typed arrays or GPUBuffers;
 * outputs are "data", "gpu" (new buffers, owned by the caller), or { name: GPUBuffer } or { name: array } for some of them.
 * Steps that use a caller's buffer get new bind groups when the buffer changes. An input without STORAGE usage is copied.
 * The buffer of a donated input is returned as its output.
 */

/** @import { TypedArray } from "../types/public.d.ts" */
/** @import { Answer, GivenInput, GpuCommand, GpuDispatch, GpuPlace, SizedOutput, Wanted } from "../types/program.d.ts" */
/** @import { Gpu, GpuRecording } from "./singe-webgpu.js" */

import { SingeError, align } from "../program/singe-format.js";
import { arraysFor, holdsArrays, inOrder } from "../program/singe-outputs.js";

export { arraysFor, holdsArrays };

const LEAST = 16;

/**
 * @param {GpuRecording} recording
 * @param {GivenInput[]} inputs
 * @param {Wanted} outputs
 * @returns {Promise<Answer[]> | Answer[]}
 */
export function run(recording, inputs, outputs) {
  if (outputs === "data") return recording.read(over(recording, inputs));
  if (holdsArrays(outputs)) return recording.read(over(recording, inputs), arraysFor(recording.outputs, outputs));
  const output = chosen(recording, outputs, inputs);
  recording.gpu.device.queue.submit([recording.record(over(recording, inputs, output))]);
  return recording.outputs.map(({ shape, dtype }, k) => ({ data: output[k], shape: [...shape], dtype }));
}

/**
 * A recording's steps with their latest bind groups, and the buffers in these.
 * @type {WeakMap<GpuRecording, { given: GPUBuffer[], steps: GpuCommand[] }>}
 */
const last = new WeakMap();

/**
 * The recording's steps over these inputs and outputs; without outputs, over the recording's own.
 * @param {GpuRecording} recording
 * @param {GivenInput[]} inputs
 * @param {GPUBuffer[]} [outputs]
 * @returns {GpuCommand[]}
 */
export function over(recording, inputs, outputs = []) {
  const given = [...inputs.map((_, k) => take(recording, inputs, k)), ...outputs];
  const own = [...recording.buffers.input, ...recording.buffers.output];
  if (given.every((buffer, k) => buffer === own[k])) return recording.steps;
  const known = last.get(recording);
  if (known?.given.length === given.length && given.every((buffer, k) => buffer === known.given[k])) return known.steps;
  const others = new Map(given.map((buffer, k) => [own[k], buffer]));
  /** @type {(resource: GpuPlace) => GpuPlace} */
  const swap = (resource) => ({ ...resource, buffer: others.get(resource.buffer) ?? resource.buffer });
  /** @type {GpuCommand[]} */
  const steps = recording.steps.map((one) => {
    if (!one.pipeline) return { ...one, source: swap(one.source), target: swap(one.target) };
    const { layout, resources } = /** @type {Required<GpuDispatch>} */ (one);
    const touched = resources.some(({ buffer }) => (others.get(buffer) ?? buffer) !== buffer);
    return touched ? recording.bind({ ...one, layout, resources: resources.map(swap) }) : one;
  });
  recording.outputs.forEach(({ place: [kind, at], bytes }, k) => {
    const source = { buffer: given[at], offset: 0 };
    const target = { buffer: outputs[k] ?? own[at], offset: 0 };
    if (kind === "input" && bytes && source.buffer !== target.buffer) steps.push({ source, target, bytes: align(bytes, 4) });
  });
  last.set(recording, { given, steps });
  return steps;
}

/**
 * Whether a buffer is one input; one that is two is copied, since a run may write over it as one of them.
 * @param {GivenInput[]} inputs
 * @param {GivenInput} data
 */
const isAlone = (inputs, data) => inputs.indexOf(data) === inputs.lastIndexOf(data);

/**
 * The buffer that a run reads an input from.
 * @param {GpuRecording} recording
 * @param {GivenInput[]} inputs
 * @param {number} k
 * @returns {GPUBuffer}
 */
function take(recording, inputs, k) {
  const { program, gpu, buffers } = recording;
  const data = inputs[k];
  const own = buffers.input[k];
  if (ArrayBuffer.isView(data)) {
    recording.write(k, data);
    return own;
  }
  const bytes = recording.bytes(program.inputs[k]);
  check("input", program.buffers[program.inputs[k]].name, data, bytes, "COPY_SRC");
  if (isAlone(inputs, data) && data.usage & GPUBufferUsage.STORAGE && data.size >= LEAST) return data;
  const commands = gpu.device.createCommandEncoder();
  if (bytes) commands.copyBufferToBuffer(data, 0, own, 0, bytes);
  gpu.device.queue.submit([commands.finish()]);
  return own;
}

/**
 * The buffers of the outputs: the caller's, those of donated inputs, or new ones.
 * @param {{ gpu: Gpu, outputs: SizedOutput[] }} run
 * @param {Wanted} given
 * @param {GivenInput[]} inputs
 * @returns {GPUBuffer[]}
 */
export function chosen({ gpu, outputs: all }, given, inputs) {
  const names = all.map(({ name }) => name);
  const buffers = inOrder(names, given === "gpu" ? {} : /** @type {string | Record<string, GPUBuffer>} */ (given), '"data", "gpu", { name: GPUBuffer } or { name: array }');
  return buffers.map((buffer, k) => {
    const size = Math.max(LEAST, align(all[k].bytes, 4));
    if (buffer === undefined) {
      const { STORAGE, COPY_SRC, COPY_DST } = GPUBufferUsage;
      const usage = STORAGE | COPY_SRC | COPY_DST;
      const [kind, at] = all[k].place;
      const own = kind === "input" && isAlone(inputs, inputs[at]) ? /** @type {GPUBuffer} */ (inputs[at]) : undefined;
      return own && (own.usage & usage) === usage && own.size >= size ? own : gpu.device.createBuffer({ size, usage });
    }
    check("output", names[k], buffer, size, "STORAGE");
    return buffer;
  });
}

/**
 * Refuse a caller's buffer that is too small or lacks a usage.
 * @param {string} what
 * @param {string} name
 * @param {unknown} buffer
 * @param {number} bytes
 * @param {"COPY_SRC" | "COPY_DST" | "STORAGE"} usage
 */
export function check(what, name, buffer, bytes, usage) {
  const { usage: has = 0, size = 0 } = /** @type {Partial<GPUBuffer> | undefined} */ (buffer) ?? {};
  if (has & GPUBufferUsage[usage] && size >= bytes) return;
  const got = buffer instanceof GPUBuffer ? `a GPUBuffer of ${buffer.size} bytes` : "no GPUBuffer";
  throw new SingeError("input", `${what} ${name}: got ${got}, expected ${bytes} bytes with GPUBufferUsage.${usage}`);
}
