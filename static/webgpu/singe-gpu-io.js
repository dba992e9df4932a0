/**
 * Runs on "webgpu" with data that stays on the GPU: kernels read and write the caller's buffers directly.
 *
 * Contract: `run(plan, inputs, outputs)` runs a plan of calls and copies alone. Inputs are typed arrays or GPUBuffers;
 * outputs are "data", "gpu" (new buffers, owned by the caller), or { name: GPUBuffer } or { name: array } for some of them.
 * Calls that use a caller's buffer get new bind groups when the buffer changes. An input without STORAGE usage is copied.
 * The buffer of a donated input is returned as its output. Other plans copy from and to the caller's buffers: `copyIn`, `copyOut`.
 */

/** @import { Answer, GivenInput, GpuCommand, GpuPlace, SizedOutput, Wanted } from "../types/program.d.ts" */
/** @import { Gpu } from "./singe-gpu.js" */
/** @import { GpuPlan } from "./singe-gpu-plan.js" */

import { SingeError, align } from "../program/singe-format.js";
import { arraysFor, holdsArrays, inOrder } from "../program/singe-outputs.js";
import { LEAST } from "./singe-gpu.js";

export { arraysFor };

/**
 * Whether outputs stay on the GPU.
 * @param {Wanted} wanted
 */
export const areOnGpu = (wanted) => wanted !== "data" && !holdsArrays(wanted);

/**
 * @param {GpuPlan} plan
 * @param {GivenInput[]} inputs
 * @param {Wanted} wanted
 * @returns {Promise<Answer[]> | Answer[]}
 */
export function run(plan, inputs, wanted) {
  if (!areOnGpu(wanted)) return plan.answer(over(plan, inputs), wanted === "data" ? [] : arraysFor(plan.outputs, wanted));
  const buffers = chosen(plan, wanted, inputs);
  plan.gpu.device.queue.submit([plan.encode(over(plan, inputs, buffers))]);
  return answers(plan, buffers);
}

/**
 * @param {GpuPlan} plan
 * @param {GPUBuffer[]} buffers
 * @returns {Answer[]}
 */
const answers = ({ outputs }, buffers) => outputs.map(({ shape, dtype }, k) => ({ data: buffers[k], shape: [...shape], dtype }));

/**
 * Copy a caller's buffer to the plan's own.
 * @param {GpuPlan} plan
 * @param {number} k
 * @param {GPUBuffer} data
 */
export function copyIn(plan, k, data) {
  const index = plan.program.inputs[k];
  const bytes = plan.bytes(index);
  check("input", plan.program.buffers[index].name, data, bytes, "COPY_SRC");
  plan.copy({ buffer: data, offset: 0 }, { buffer: plan.buffers.input[k], offset: 0 }, bytes);
}

/**
 * Copy a run's outputs to the caller's buffers, or new ones.
 * @param {GpuPlan} plan
 * @param {Wanted} wanted
 * @param {GivenInput[]} inputs
 */
export function copyOut(plan, wanted, inputs) {
  const buffers = chosen(plan, wanted, inputs);
  plan.outputs.forEach(({ name, index, bytes }, k) => {
    check("output", name, buffers[k], bytes, "COPY_DST");
    plan.copy(plan.binding(index), { buffer: buffers[k], offset: 0 }, align(bytes, 4));
  });
  plan.flush();
  return answers(plan, buffers);
}

/**
 * A plan's commands with their latest bind groups, and the buffers in these.
 * @type {WeakMap<GpuPlan, { recorded: GpuCommand[], given: GPUBuffer[], commands: GpuCommand[] }>}
 */
const last = new WeakMap();

/**
 * The plan's commands over these inputs and outputs; without outputs, over its own.
 * @param {GpuPlan} plan
 * @param {GivenInput[]} inputs
 * @param {GPUBuffer[]} [outputs]
 * @returns {GpuCommand[]}
 */
function over(plan, inputs, outputs = []) {
  const given = [...inputs.map((_, k) => take(plan, inputs, k)), ...outputs];
  const own = [...plan.buffers.input, ...plan.buffers.output];
  const recorded = plan.commands ?? [];
  if (given.every((buffer, k) => buffer === own[k])) return recorded;
  const known = last.get(plan);
  if (known?.recorded === recorded && known.given.length === given.length && given.every((buffer, k) => buffer === known.given[k])) return known.commands;
  const others = new Map(given.map((buffer, k) => [own[k], buffer]));
  /** @type {(resource: GpuPlace) => GpuPlace} */
  const swap = (resource) => {
    const other = others.get(resource.buffer);
    return other ? plan.whole(other, () => /** @type {number} */ (resource.size)) : resource;
  };
  /** @type {GpuCommand[]} */
  const commands = recorded.map((one) => {
    if (!one.pipeline) return { ...one, source: swap(one.source), target: swap(one.target) };
    const touched = one.resources.some(({ buffer }) => (others.get(buffer) ?? buffer) !== buffer);
    return touched ? plan.bound({ ...one, resources: one.resources.map(swap) }) : one;
  });
  plan.outputs.forEach(({ place: [kind, at], bytes }, k) => {
    const source = { buffer: given[at], offset: 0 };
    const target = { buffer: outputs[k] ?? own[at], offset: 0 };
    if (kind === "input" && bytes && source.buffer !== target.buffer) commands.push({ source, target, bytes: align(bytes, 4) });
  });
  last.set(plan, { recorded, given, commands });
  return commands;
}

/**
 * Whether a buffer is one input; one that is two is copied, since a run may write over it as one of them.
 * @param {GivenInput[]} inputs
 * @param {GivenInput} data
 */
const isAlone = (inputs, data) => inputs.indexOf(data) === inputs.lastIndexOf(data);

/**
 * The buffer that a run reads an input from.
 * @param {GpuPlan} plan
 * @param {GivenInput[]} inputs
 * @param {number} k
 * @returns {GPUBuffer}
 */
function take(plan, inputs, k) {
  const { program, gpu, buffers } = plan;
  const data = inputs[k];
  const own = buffers.input[k];
  if (ArrayBuffer.isView(data)) {
    plan.upload(k, data);
    return own;
  }
  const bytes = plan.bytes(program.inputs[k]);
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
function chosen({ gpu, outputs: all }, given, inputs) {
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
function check(what, name, buffer, bytes, usage) {
  const { usage: has = 0, size = 0 } = /** @type {Partial<GPUBuffer> | undefined} */ (buffer) ?? {};
  if (has & GPUBufferUsage[usage] && size >= bytes) return;
  const got = buffer instanceof GPUBuffer ? `a GPUBuffer of ${buffer.size} bytes` : "no GPUBuffer";
  throw new SingeError("input", `${what} ${name}: got ${got}, expected ${bytes} bytes with GPUBufferUsage.${usage}`);
}
