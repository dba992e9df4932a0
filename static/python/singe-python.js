/**
 * What Singe's Python calls under Pyodide: programs on WebAssembly and on WebGPU, one call per run.
 *
 * Contract: Python passes numbers, JSON and typed arrays, and keeps the objects it receives without looking inside.
 * WebAssembly runs in Pyodide's own memory, which holds NumPy's arrays, so nothing is copied. On WebGPU every call returns
 * at once; a result that is not ready is a promise that the next step waits for. Python waits only to read elements.
 */

/** @import { ArrayClass, Answer, Device, GivenInput, GpuPlace, Place, Program, Sizes, Target, WeightsEntry, WeightsStore } from "../types/program.d.ts" */
/** @import { TypedArray } from "../types/public.d.ts" */
/** @import { GpuFiles } from "../webgpu/singe-gpu-pipelines.js" */

/** @typedef {{ getBuffer(kind: "u8"): { data: Uint8Array<ArrayBuffer>, release(): void }, destroy(): void }} PythonBytes */
/** @typedef {{ _module: { LDSO: { loadedLibsByName: { __main__: { exports: { memory: WebAssembly.Memory } } } }, memory: WebAssembly.Memory } }} Pyodide */

import { ARRAYS, SingeError, align, byName } from "../program/singe-format.js";
import { features } from "../wasm/singe-wasm.js";
import { Gpu, mapped, requestDevice } from "../webgpu/singe-gpu.js";
import { open } from "../webgpu/singe-webgpu.js";

// --- WebAssembly -----------------------------------------------------------------------------------------------------

/** The words of a variant's `requires` that this engine supports, and "simd". */
export const wasmFeatures = () => (typeof WebAssembly === "object" ? [...features()] : []);

/**
 * Pyodide's memory. Its API does not expose it, so known places are searched. A candidate is accepted only if it holds
 * `bytes` at `address`, where Python wrote them; otherwise the result is undefined.
 * @param {Pyodide} pyodide
 * @param {number} address
 * @param {Uint8Array} bytes
 */
export function pythonMemory({ _module }, address, bytes) {
  const places = [() => _module.LDSO.loadedLibsByName.__main__.exports.memory, () => _module.memory];
  for (const place of places) {
    try {
      const memory = place();
      const found = new Uint8Array(memory.buffer, address, bytes.length);
      if (memory instanceof WebAssembly.Memory && found.every((byte, k) => byte === bytes[k])) return memory;
    } catch {} // look in the next place
  }
  return undefined;
}

/**
 * The exports of a module instantiated with a memory.
 * @param {WebAssembly.Memory} memory
 * @param {BufferSource} bytes
 */
export function linkModule(memory, bytes) {
  const { exports } = new WebAssembly.Instance(new WebAssembly.Module(bytes), { env: { memory } });
  if (typeof exports.run !== "function") throw new SingeError("format", "the module has no function run");
  return exports;
}

// --- WebGPU ----------------------------------------------------------------------------------------------------------

/** @param {GPUPowerPreference} [power] */
export const openGpu = async (power) => new PythonGpu(new Gpu(await requestDevice(power), true));

/** A buffer that may not exist yet: `ready` resolves to it, `idle` when all work on it is done. */
class Held {
  /** @param {Promise<GPUBuffer>} ready */
  constructor(ready) {
    this.ready = ready;
    /** @type {Promise<unknown>} */
    this.idle = ready.catch(() => {}); // reading it reports the error
  }

  /** @param {Promise<unknown>} work */
  usedBy(work) {
    this.idle = Promise.allSettled([this.idle, work]).then(() => {}); // results would be kept with a state
  }
}

class PythonGpu {
  /** @type {Gpu} */
  #gpu;

  /** @param {Gpu} gpu */
  constructor(gpu) {
    this.#gpu = gpu;
  }

  /** Whether the device is gone. */
  get lost() {
    return Boolean(this.#gpu.lost);
  }

  /** A description of the device, as JSON. */
  describe() {
    const { adapterInfo, features, limits } = this.#gpu.device;
    const { vendor = "", architecture = "", description = "", isFallbackAdapter } = adapterInfo ?? {};
    return JSON.stringify({
      adapter: description || architecture,
      vendor,
      software: isFallbackAdapter ?? architecture === "swiftshader",
      features: [...features, ...(globalThis.navigator?.gpu?.wgslLanguageFeatures ?? [])].sort(),
      limits: {
        buffer: limits.maxBufferSize,
        binding: limits.maxStorageBufferBindingSize,
        workgroups: limits.maxComputeWorkgroupsPerDimension,
      },
      bytes: this.#gpu.bytes,
    });
  }

  /**
   * A buffer with these bytes, which are whole words.
   * @param {Uint8Array<ArrayBuffer>} bytes
   */
  upload(bytes) {
    const buffer = this.#gpu.allocate(Math.max(16, bytes.length));
    this.#gpu.device.queue.writeBuffer(buffer, 0, bytes);
    return new Held(Promise.resolve(buffer));
  }

  /**
   * The first bytes of a buffer.
   * @param {Held} held
   * @param {number} count
   */
  read(held, count) {
    const work = held.ready.then((buffer) => this.#gpu.guard(() => this.#read(buffer, count)));
    held.usedBy(work);
    return work;
  }

  /**
   * @param {GPUBuffer} buffer
   * @param {number} count
   */
  async #read(buffer, count) {
    const { device } = this.#gpu;
    const size = align(count, 4);
    const staging = this.#gpu.allocate(size, GPUBufferUsage.MAP_READ | GPUBufferUsage.COPY_DST);
    try {
      const commands = device.createCommandEncoder();
      commands.copyBufferToBuffer(buffer, 0, staging, 0, size);
      device.queue.submit([commands.finish()]);
      await mapped(device, staging);
      return new Uint8Array(staging.getMappedRange()).slice(0, count);
    } finally {
      this.#gpu.free(staging);
    }
  }

  /**
   * Free a buffer once no submitted work needs it.
   * @param {Held} held
   */
  async free(held) {
    for (/** @type {Promise<unknown> | undefined} */ let idle; idle !== held.idle; ) await (idle = held.idle);
    const buffer = await held.ready.catch(() => undefined);
    this.#gpu.free(buffer);
    buffer?.destroy(); // the runner's own outputs
  }

  /**
   * Prepare a program: `weights` is Python's proxy for `bytes` bytes, which is read once.
   * @param {string} program
   * @param {string} texts
   * @param {PythonBytes} weights
   * @param {number} bytes
   */
  prepare(program, texts, weights, bytes) {
    /** @type {GpuFiles} */
    const files = {
      expect() {},
      tell() {},
      json: async () => JSON.parse(texts),
      each: (entries, take) => Promise.all(entries.map((entry) => take(entry, 0))).then(() => {}),
      async stream(_, opened) {
        const store = await opened;
        const view = weights.getBuffer("u8");
        try {
          store.write(0, view.data);
        } finally {
          view.release();
        }
      },
    };
    const target = /** @type {Target} */ (/** @type {unknown} */ ({ program: JSON.parse(program), modules: {}, weights: bytes ? [{ bytes }] : [] }));
    const opened = open(target, files, this.#gpu.device).finally(() => weights.destroy());
    return new PythonProgram(opened, target.program);
  }

  /** Wait until all submitted work is done. */
  wait() {
    return this.#gpu.guard(() => this.#gpu.device.queue.onSubmittedWorkDone());
  }

  dispose() {
    this.#gpu.dispose();
  }
}

/** A program on the GPU; its runs happen in the order in which they were requested. */
class PythonProgram {
  /** @type {Promise<Device>} */
  #opened;
  /** @type {Device | undefined} */
  #runner;
  /** @type {ArrayClass[]} */
  #types;
  /** @type {Place[]} */
  #places;
  /** @type {Promise<unknown>} */
  #last;
  /** @type {WeakMap<GPUBuffer, GPUBuffer[]>} */
  #handles = new WeakMap();

  /**
   * @param {Promise<Device>} opened
   * @param {Program} program
   */
  constructor(opened, { inputs, outputs, buffers }) {
    this.#opened = opened;
    this.#types = inputs.map((i) => ARRAYS[buffers[i].dtype]);
    this.#places = outputs.map((i) => buffers[i].place);
    this.#last = opened.then((runner) => (this.#runner = runner)).catch(() => {}); // reading an output reports the error
  }

  /** Bytes that it holds on the GPU so far. */
  get bytes() {
    return this.#runner?.memory.gpu ?? 0;
  }

  /**
   * @param {(GivenInput | Promise<GivenInput>)[]} inputs
   * @param {string} sizes
   * @param {"gpu" | "data"} outputs
   * @param {Held[]} states
   * @returns {Promise<Answer[]>}
   */
  #run(inputs, sizes, outputs, states) {
    const before = states.map((held) => held.ready);
    const work = this.#last.then(async () => {
      const runner = await this.#opened;
      const buffers = await Promise.all(before);
      return runner.run(await Promise.all(inputs), byName(/** @type {Sizes} */ (JSON.parse(sizes))), outputs, this.#handle(buffers));
    });
    this.#last = work.catch(() => {});
    const done = this.#last;
    // Whoever needs a state next, another program among them, waits for what this run makes of it.
    states.forEach((held, k) => (held.ready = done.then(() => before[k])));
    states.forEach((held) => held.usedBy(done));
    return work;
  }

  /**
   * The buffers of a session, the same array in each of its runs: the runner keeps commands for it.
   * @param {GPUBuffer[]} buffers
   */
  #handle(buffers) {
    const known = this.#handles.get(buffers[0]);
    if (!buffers.length || known?.every((buffer, k) => buffer === buffers[k])) return known ?? buffers;
    this.#handles.set(buffers[0], buffers);
    return buffers;
  }

  /**
   * Buffers in, buffers out, a donated one as itself; `sizes` is JSON; runs change the buffers of `states`.
   * @param {Held[]} inputs
   * @param {string} sizes
   * @param {Held[]} states
   */
  run(inputs, sizes, states) {
    const work = this.#run(
      inputs.map((held) => held.ready),
      sizes,
      "gpu",
      states,
    );
    inputs.forEach((held) => held.usedBy(work.catch(() => {})));
    return this.#places.map(([kind, at], k) => {
      const made = new Held(work.then((outputs) => /** @type {GPUBuffer} */ (outputs[k].data)));
      if (kind !== "input") return made;
      inputs[at].ready = made.ready;
      return inputs[at];
    });
  }

  /**
   * Bytes of input arrays in, bytes of new output arrays out, each with its `shape` as JSON.
   * @param {Uint8Array[]} inputs
   * @param {string} sizes
   * @param {Held[]} states
   */
  async call(inputs, sizes, states) {
    const arrays = inputs.map((bytes, k) => {
      return new this.#types[k](bytes.buffer, bytes.byteOffset, bytes.length / this.#types[k].BYTES_PER_ELEMENT);
    });
    const outputs = await this.#run(arrays, sizes, "data", states);
    return outputs.map(({ data, shape }) => {
      const { buffer, byteOffset, byteLength } = /** @type {TypedArray} */ (data);
      return Object.assign(new Uint8Array(buffer, byteOffset, byteLength), { shape: JSON.stringify(shape) });
    });
  }

  dispose() {
    this.#last = this.#last.then(async () => (await this.#opened).dispose()).catch(() => {});
  }
}
