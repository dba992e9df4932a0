/**
 * A GPU: its device, buffers, the weights, and how commands and elements go there and back.
 *
 * Contract: a Gpu counts the bytes that it holds; a device that went away is a SingeError of the code "lost".
 */

/** @import { TypedArray } from "../types/public.d.ts" */
/** @import { AnyElements, ArrayClass, GpuCommand, GpuParts, SizedOutput } from "../types/program.d.ts" */

import { ARRAYS, SingeError, align } from "../program/singe-format.js";

const LOST_WITHIN_MS = 500;
const ASKING_MS = 20;
export const MATRICES = "chromium-experimental-subgroup-matrix";
const FEATURES = ["shader-f16", "subgroups", MATRICES, "timestamp-query"];
export const USAGE = { read: 1, source: 4, target: 8, uniform: 64, storage: 128 };
const RESIDENT = USAGE.storage | USAGE.source | USAGE.target;
/** The bytes of the smallest buffer. */
export const LEAST = 16;

/**
 * Whether an adapter's info tells of one that computes on the CPU.
 * @param {Partial<GPUAdapterInfo>} [info]
 */
export const isSoftware = ({ isFallbackAdapter, architecture, device, description } = {}) =>
  isFallbackAdapter || /swiftshader|(llvm|soft)pipe|basic render|software/i.test(/** @type {string} */ (/** @type {unknown} */ ([architecture, device, description])));

/** @param {GPUPowerPreference} powerPreference */
export async function requestDevice(powerPreference = "high-performance") {
  const adapter = await globalThis.navigator?.gpu?.requestAdapter({ powerPreference });
  if (!adapter) throw new SingeError("device", "this engine has no WebGPU adapter");
  if (adapter.features.has(MATRICES)) import("./singe-matrices.js").catch(() => {}); // comes while the device is opened
  const { maxBufferSize, maxStorageBufferBindingSize, maxComputeWorkgroupStorageSize } = adapter.limits;
  return adapter.requestDevice({
    requiredFeatures: /** @type {GPUFeatureName[]} */ (FEATURES.filter((name) => adapter.features.has(name))),
    requiredLimits: { maxBufferSize, maxStorageBufferBindingSize, maxComputeWorkgroupStorageSize },
  });
}

/** A GPUDevice that counts bytes and throws SingeErrors. */
export class Gpu {
  bytes = 0;
  #own;
  /**
   * Why the device is gone, once it is.
   * @type {string | undefined}
   */
  lost;
  /** @type {Set<GPUBuffer>} */
  #buffers = new Set();

  /**
   * @param {GPUDevice} device
   * @param {boolean} own
   */
  constructor(device, own) {
    this.device = device;
    this.#own = own;
    device.lost.then(({ message }) => (this.lost = message || "the GPU device was lost"));
  }

  /**
   * @param {number} size
   * @param {number} [usage]
   */
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

  /** @param {GPUBuffer | undefined} buffer */
  free(buffer) {
    if (!buffer || !this.#buffers.delete(buffer)) return;
    this.bytes -= buffer.size;
    buffer.destroy();
  }

  /**
   * Validation errors of the synchronous part of `work` are thrown.
   * @template T
   * @param {() => T | Promise<T>} work
   * @returns {Promise<T>}
   */
  async guard(work) {
    const { device } = this;
    ["out-of-memory", "validation"].forEach((filter) => device.pushErrorScope(/** @type {GPUErrorFilter} */ (filter)));
    const attempt = (async () => work())();
    const [outcome, ...scopes] = await Promise.allSettled([attempt, device.popErrorScope(), device.popErrorScope()]);
    const { value, reason } = /** @type {{ value: T, reason?: unknown }} */ (outcome);
    if (reason instanceof SingeError) throw reason;
    const fault = /** @type {PromiseFulfilledResult<GPUError | null>[]} */ (scopes).find((scope) => scope.value)?.value ?? /** @type {Error | undefined} */ (reason);
    if (reason) await Promise.race([device.lost, new Promise((done) => setTimeout(done, LOST_WITHIN_MS))]);
    if (this.lost) throw new SingeError("lost", this.lost, reason);
    if (fault) throw new SingeError("device", fault.message, fault);
    return value;
  }

  dispose() {
    this.#buffers.forEach((buffer) => this.free(buffer));
    if (this.#own) this.device.destroy();
  }
}

/** The weights in one buffer; see CutWeights. */
export class Weights {
  /**
   * @param {Gpu} gpu
   * @param {number} size
   */
  constructor(gpu, size) {
    this.gpu = gpu;
    this.buffer = gpu.allocate(size);
  }

  /**
   * @param {number} at
   * @param {Uint8Array<ArrayBuffer>} bytes
   */
  write(at, bytes) {
    this.gpu.device.queue.writeBuffer(this.buffer, at, padded(bytes));
  }

  /**
   * @param {number} offset
   * @param {number} size
   */
  binding(offset, size) {
    return { buffer: this.buffer, offset, size };
  }
}

/**
 * Data padded to whole words.
 * @param {TypedArray} data
 * @returns {ArrayBufferView<ArrayBuffer>}
 */
export function padded(data) {
  if (data.byteLength % 4 === 0) return /** @type {ArrayBufferView<ArrayBuffer>} */ (data);
  const whole = new Uint8Array(align(data.byteLength, 4));
  whole.set(new Uint8Array(data.buffer, data.byteOffset, data.byteLength));
  return whole;
}

/**
 * @param {GPUDevice} device
 * @param {GpuCommand[]} commands
 */
export function encoded(device, commands) {
  const encoder = device.createCommandEncoder();
  /** @type {GPUComputePassEncoder | undefined} */
  let pass;
  for (const { pipeline, bound, groups, source, target, bytes } of /** @type {GpuParts[]} */ (/** @type {unknown} */ (commands))) {
    if (pipeline) {
      pass ??= encoder.beginComputePass();
      pass.setPipeline(pipeline);
      pass.setBindGroup(0, bound);
      pass.dispatchWorkgroups(...groups);
    } else {
      pass = /** @type {undefined} */ (pass?.end());
      encoder.copyBufferToBuffer(source.buffer, source.offset, target.buffer, target.offset, bytes);
    }
  }
  pass?.end();
  return encoder.finish();
}

/**
 * A browser polls for finished work every few milliseconds, and whenever it is asked anything.
 * @param {GPUDevice} device
 * @param {GPUBuffer} buffer
 */
export async function mapped(device, buffer) {
  let waiting = true;
  const done = buffer.mapAsync(GPUMapMode.READ).finally(() => (waiting = false));
  for (const end = performance.now() + ASKING_MS; waiting && performance.now() < end; ) {
    device.pushErrorScope("validation");
    await Promise.race([done, device.popErrorScope().catch(() => {})]);
  }
  return done;
}

/**
 * The workgroups of a dispatch, x spread over x and y if it exceeds the limit.
 * @param {number[]} groups
 * @param {number} limit
 * @param {string} label
 * @returns {[x: number, y: number, z: number]}
 */
export function spreadGroups([x, y, z], limit, label) {
  if (x > limit && y === 1) {
    y = Math.ceil(x / limit);
    x = Math.ceil(x / y);
  }
  if (Math.max(x, y, z) <= limit) return [x, y, z];
  throw new SingeError("device", `the kernel ${label} needs ${x} × ${y} × ${z} workgroups, the limit is ${limit}`);
}

/**
 * Elements may be wider on the device.
 * @param {TypedArray} data
 * @param {{ size: number }} buffer
 * @returns {TypedArray}
 */
export const widen = (data, { size }) => (size === data.BYTES_PER_ELEMENT ? data : Uint32Array.from(/** @type {Uint8Array} */ (data)));

/**
 * @param {ArrayBuffer} mapped
 * @param {number} at
 * @param {Pick<SizedOutput, "dtype" | "size" | "count">} output
 * @param {TypedArray} [into]
 * @returns {TypedArray}
 */
export function elementsOf(mapped, at, { dtype, size, count }, into) {
  const own = ARRAYS[dtype];
  const found = new /** @type {ArrayClass} */ (size === own.BYTES_PER_ELEMENT ? own : Uint32Array)(mapped, at, count);
  /** @type {AnyElements | undefined} */ (into)?.set(/** @type {AnyElements} */ (found));
  return into ?? new own(found);
}
