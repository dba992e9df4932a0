/**
 * The device "webgpu": buffers, pipelines, and the plan of a run at given sizes.
 *
 * Contract: `open(target, files, gpuDevice)` gives { memory, gpuDevice, run, dispose }. Weights are never held in
 * JavaScript. A plan keeps its buffers, bind groups and next commands; what a caller gives or gets on the GPU is copied.
 * A caller's device stays theirs. A device that went away is a SingeError of the code "lost".
 */

import { ARRAYS, Recent, SingeError, align, areasOf, bytesOf, chooseVariant, evaluate, outputsOf } from "./singe-format.js";

const PLANS = 4;
const LOST_WITHIN_MS = 500;
const ASKING_MS = 20;

const DECLARED = /@binding\(\d+\) var<(storage, read_write|storage, read|uniform)>/g;
const KINDS = { "storage, read_write": "storage", "storage, read": "read-only-storage", uniform: "uniform" };
const USAGE = { read: 1, source: 4, target: 8, uniform: 64, storage: 128 };
const RESIDENT = USAGE.storage | USAGE.source | USAGE.target;

export async function open(target, files, given) {
  const gpu = new Gpu(given ?? (await requestDevice()), !given);
  try {
    return await gpu.guard(() => load(target, files, gpu));
  } catch (error) {
    gpu.dispose();
    throw error;
  }
}

async function load({ program, modules, weights }, files, gpu) {
  const entries = program.kernels.map((kernel) => chooseVariant(kernel, gpu.device.features).entry);
  files.expect([modules, ...weights]);
  if (program.buffers.some(isWider)) wider ??= await import("./singe-half.js");
  const store = new Weights(gpu, program);
  const [texts] = await Promise.all([
    files.json(modules),
    files.each(weights, async (file, at) => {
      await files.stream(file, (bytes, offset) => store.write(at + offset, bytes));
      await gpu.device.queue.onSubmittedWorkDone();
    }),
  ]);
  files.phase("compile");
  const pipelines = await buildPipelines(gpu, program, entries, texts);
  return new Device(gpu, program, pipelines, store);
}

export async function requestDevice() {
  const adapter = await globalThis.navigator?.gpu?.requestAdapter({ powerPreference: "high-performance" });
  if (!adapter) throw new SingeError("device", "this engine has no WebGPU adapter");
  const { maxBufferSize, maxStorageBufferBindingSize } = adapter.limits;
  return adapter.requestDevice({
    requiredFeatures: ["shader-f16", "subgroups", "timestamp-query"].filter((name) => adapter.features.has(name)),
    requiredLimits: { maxBufferSize, maxStorageBufferBindingSize },
  });
}

/** A GPUDevice that counts its bytes, and tells its errors as ours. */
export class Gpu {
  bytes = 0;
  #own;
  #lost;
  #buffers = new Set();

  constructor(device, own) {
    this.device = device;
    this.#own = own;
    device.lost.then(({ message }) => (this.#lost = message || "the GPU device was lost"));
  }

  allocate(size, usage = RESIDENT) {
    const { maxBufferSize } = this.device.limits;
    if (size > maxBufferSize) {
      throw new SingeError("device", `a buffer of ${size} bytes is needed, this device holds at most ${maxBufferSize}`);
    }
    const buffer = this.device.createBuffer({ size, usage });
    this.#buffers.add(buffer);
    this.bytes += size;
    return buffer;
  }

  free(buffer) {
    if (!this.#buffers.delete(buffer)) return;
    this.bytes -= buffer.size;
    buffer.destroy();
  }

  /** What the device finds wrong with the synchronous part of `work`, and what fails later, is an error. */
  async guard(work) {
    const { device } = this;
    ["out-of-memory", "validation"].forEach((filter) => device.pushErrorScope(filter));
    const attempt = (async () => work())();
    const [outcome, ...scopes] = await Promise.allSettled([attempt, device.popErrorScope(), device.popErrorScope()]);
    const { value, reason } = outcome;
    if (reason instanceof SingeError) throw reason;
    const fault = scopes.find((scope) => scope.value)?.value ?? reason;
    if (reason) await Promise.race([device.lost, new Promise((done) => setTimeout(done, LOST_WITHIN_MS))]);
    if (this.#lost) throw new SingeError("lost", this.#lost, reason);
    if (fault) throw new SingeError("device", fault.message, fault);
    return value;
  }

  dispose() {
    this.#buffers.forEach((buffer) => this.free(buffer));
    if (this.#own) this.device.destroy();
  }
}

/** The weights: one buffer, or several where a device's are too small, cut between weights. */
class Weights {
  #gpu;
  #parts = [];

  constructor(gpu, program) {
    this.#gpu = gpu;
    const limit = gpu.device.limits.maxBufferSize;
    const placed = program.buffers
      .filter(({ place }) => place[0] === "weights")
      .map((buffer) => [buffer.place[1], buffer.place[1] + align(Math.max(1, bytesOf(buffer, {})))])
      .sort(([a], [b]) => a - b);
    for (const [start, end] of placed) {
      const last = this.#parts.at(-1);
      if (last && Math.max(end, last.end) - last.start <= limit) last.end = Math.max(end, last.end);
      else this.#parts.push({ start, end });
    }
    for (const part of this.#parts) part.buffer = gpu.allocate(part.end - part.start);
  }

  write(at, bytes) {
    for (const { start, end, buffer } of this.#parts) {
      const [from, to] = [Math.max(start, at), Math.min(end, at + bytes.length)];
      if (from < to) this.#gpu.device.queue.writeBuffer(buffer, from - start, words(bytes.subarray(from - at, to - at)));
    }
  }

  binding(offset, size) {
    const { start, buffer } = this.#parts.findLast((part) => part.start <= offset);
    return { buffer, offset: offset - start, size };
  }
}

/** Data up to whole words: a GPU's queue takes no others. */
function words(data) {
  if (data.byteLength % 4 === 0) return data;
  const padded = new Uint8Array(align(data.byteLength, 4));
  padded.set(new Uint8Array(data.buffer, data.byteOffset, data.byteLength));
  return padded;
}

/** Kernels of one text share a pipeline. */
async function buildPipelines(gpu, program, entries, texts) {
  const made = new Map();
  program.kernels.forEach((kernel, k) => {
    const text = Object(texts)[entries[k]];
    if (typeof text !== "string") throw new SingeError("format", `the bundle has no module ${entries[k]}`);
    const kinds = [...text.matchAll(DECLARED)].map(([, kind]) => KINDS[kind]);
    const storage = kernel.sizes.length && kinds.at(-1) === "uniform" ? kinds.slice(0, -1) : kinds;
    if (storage.length !== kernel.ports || storage.includes("uniform")) {
      throw new SingeError("format", `the module ${entries[k]} does not declare ${kernel.ports} buffers`);
    }
    if (!made.has(text)) made.set(text, buildPipeline(gpu.device, text, kinds));
  });
  return Promise.all(entries.map((entry) => made.get(texts[entry])));
}

/** The layout is made of what the text declares, so that a binding that it does not use still counts. */
async function buildPipeline(device, text, kinds) {
  const entries = kinds.map((type, binding) => ({ binding, visibility: GPUShaderStage.COMPUTE, buffer: { type } }));
  const layout = device.createBindGroupLayout({ entries });
  const pipeline = await device.createComputePipelineAsync({
    layout: device.createPipelineLayout({ bindGroupLayouts: [layout] }),
    compute: { module: device.createShaderModule({ code: text }), entryPoint: "main" },
  });
  return { pipeline, layout, hasSizes: kinds.at(-1) === "uniform" };
}

class Device {
  constructor(gpu, program, pipelines, weights) {
    this.gpu = gpu;
    const make = (sizes) => new Plan(gpu, program, pipelines, weights, sizes);
    this.plans = new Recent(PLANS, make, (plan) => plan.free());
  }

  get gpuDevice() {
    return this.gpu.device;
  }

  /** A GPU takes a while to turn to a device: it may begin. */
  wake() {
    this.gpuDevice.queue.submit([]);
  }

  get memory() {
    return { gpu: this.gpu.bytes, wasm: 0, js: 0 };
  }

  /** Inputs are typed arrays or GPUBuffers, in order; outputs { data, shape, dtype }, on the GPU if `onGpu`. */
  run(inputs, sizes, onGpu) {
    return this.gpu.guard(() => {
      const plan = this.plans.at(sizes);
      const before = inputs.flatMap((data, k) => plan.give(k, data));
      return onGpu ? plan.copies(before) : plan.read(before);
    });
  }

  dispose() {
    this.gpu.dispose();
  }
}

class Plan {
  #buffers = {};
  #owned = [];
  #outputs;
  #staging;
  #next;

  constructor(gpu, program, pipelines, weights, sizes) {
    Object.assign(this, { gpu, program, weights, sizes });
    try {
      for (const [kind, areas] of Object.entries(areasOf(program, sizes))) {
        this.#buffers[kind] = areas.map((bytes) => this.#own(gpu.allocate(bytes)));
      }
      this.#outputs = outputsOf(program, sizes);
      this.steps = program.steps.flatMap((step) => this.#step(step, pipelines));
    } catch (error) {
      this.free();
      throw error;
    }
  }

  #own(buffer) {
    this.#owned.push(buffer);
    return buffer;
  }

  free() {
    this.#owned.forEach((buffer) => this.gpu.free(buffer));
  }

  #binding(index) {
    const buffer = this.program.buffers[index];
    const [kind, at] = buffer.place;
    const size = Math.max(16, align(bytesOf(buffer, this.sizes), 4));
    return kind === "weights" ? this.weights.binding(at, size) : { buffer: this.#buffers[kind][at], offset: 0, size };
  }

  #step(step, pipelines) {
    if (step.do === "copy") {
      const [source, target] = [this.#binding(step.source), this.#binding(step.target)];
      const bytes = align(bytesOf(this.program.buffers[step.source], this.sizes), 4);
      return bytes ? [{ step, source, target, bytes }] : [];
    }
    const kernel = this.program.kernels[step.kernel];
    const { features, limits } = this.gpu.device;
    const groups = chooseVariant(kernel, features).groups.map((dim) => evaluate(dim, this.sizes));
    if (groups.some((n) => n <= 0)) return [];
    const { pipeline, layout, hasSizes } = pipelines[step.kernel];
    const resources = step.buffers.map((i) => this.#binding(i));
    if (hasSizes) resources.push(this.#uniform(kernel.sizes));
    const entries = resources.map((resource, binding) => ({ binding, resource }));
    const bound = this.gpu.device.createBindGroup({ layout, entries });
    return [{ step, pipeline, bound, groups: spread(groups, limits.maxComputeWorkgroupsPerDimension, kernel.label) }];
  }

  #uniform(dims) {
    const values = new Int32Array(align(dims.length, 4));
    values.set(dims.map((dim) => evaluate(dim, this.sizes)));
    const buffer = this.#own(this.gpu.allocate(values.byteLength, USAGE.uniform | USAGE.target));
    this.gpu.device.queue.writeBuffer(buffer, 0, values);
    return { buffer };
  }

  /** Writes an input, or answers commands that copy it. */
  give(k, data) {
    const buffer = this.program.buffers[this.program.inputs[k]];
    const place = this.#buffers.input[k];
    if (ArrayBuffer.isView(data)) {
      this.gpu.device.queue.writeBuffer(place, 0, words(isWider(buffer) ? wider.widen(data, buffer) : data));
      return [];
    }
    const bytes = align(bytesOf(buffer, this.sizes), 4);
    if (!(data.usage & USAGE.source) || data.size < bytes) {
      const wanted = `${bytes} bytes with GPUBufferUsage.COPY_SRC`;
      throw new SingeError("input", `input ${buffer.name}: got a GPUBuffer of ${data.size} bytes, expected ${wanted}`);
    }
    return this.#record([{ source: { buffer: data, offset: 0 }, target: { buffer: place, offset: 0 }, bytes }]);
  }

  #record(steps) {
    const commands = this.gpu.device.createCommandEncoder();
    let pass;
    for (const { pipeline, bound, groups, source, target, bytes } of steps) {
      if (pipeline) {
        pass ??= commands.beginComputePass();
        pass.setPipeline(pipeline);
        pass.setBindGroup(0, bound);
        pass.dispatchWorkgroups(...groups);
        continue;
      }
      pass?.end();
      pass = undefined;
      commands.copyBufferToBuffer(source.buffer, source.offset, target.buffer, target.offset, bytes);
    }
    pass?.end();
    return commands.finish();
  }

  /** All steps, and copies of the outputs to targets. */
  #recordAll(targets) {
    const copies = this.#outputs.map(({ index, bytes }, k) => {
      return { source: this.#binding(index), target: targets[k], bytes: align(bytes, 4) };
    });
    return this.#record([...this.steps, ...copies]);
  }

  copies(before) {
    const { queue } = this.gpu.device;
    const results = this.#outputs.map(({ bytes, shape, dtype }) => {
      const data = this.gpu.device.createBuffer({ size: Math.max(16, align(bytes, 4)), usage: RESIDENT });
      return { data, shape: [...shape], dtype };
    });
    queue.submit([...before, this.#recordAll(results.map(({ data }) => ({ buffer: data, offset: 0 })))]);
    return results;
  }

  #stage() {
    let total = 0;
    const starts = this.#outputs.map(({ bytes }) => (total += align(bytes)) - align(bytes));
    const buffer = this.#own(this.gpu.allocate(total || 16, USAGE.read | USAGE.target));
    return { buffer, targets: starts.map((offset) => ({ buffer, offset })) };
  }

  async read(before) {
    const { device } = this.gpu;
    const { buffer, targets } = (this.#staging ??= this.#stage());
    device.queue.submit([...before, this.#next ?? this.#recordAll(targets)]);
    const done = mapped(device, buffer);
    this.#next = this.#recordAll(targets); // the next run's, while the GPU is busy
    await done;
    const range = buffer.getMappedRange();
    const results = this.#outputs.map((output, k) => {
      const { dtype, shape, count } = output;
      const place = [range, targets[k].offset, count];
      const data = isWider(output) ? wider.narrow(dtype, ...place) : new ARRAYS[dtype](...place).slice();
      return { data, shape: [...shape], dtype };
    });
    buffer.unmap();
    return results;
  }
}

/** A browser looks for finished work every few milliseconds, and whenever it is asked anything: so it is asked. */
export async function mapped(device, buffer) {
  let waiting = true;
  const done = buffer.mapAsync(GPUMapMode.READ).finally(() => (waiting = false));
  for (const end = performance.now() + ASKING_MS; waiting && performance.now() < end; ) {
    device.pushErrorScope("validation");
    await Promise.race([done, device.popErrorScope().catch(() => {})]);
  }
  return done;
}

/** The workgroups of a dispatch, x spread over x and y where the device's limit wants it. */
function spread([x, y, z], limit, label) {
  if (x > limit && y === 1) {
    y = Math.ceil(x / limit);
    x = Math.ceil(x / y);
  }
  if (Math.max(x, y, z) <= limit) return [x, y, z];
  throw new SingeError("device", `the kernel ${label} needs ${x} × ${y} × ${z} workgroups, the limit is ${limit}`);
}

/** singe-half.js, once a program needs it. */
let wider;

const isWider = ({ dtype, size }) => size > ARRAYS[dtype].BYTES_PER_ELEMENT;
