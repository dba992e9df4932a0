/**
 * The device "webgpu" for programs with conditions, loops, states, and sizes or ops that stop a run midway.
 *
 * Contract: `openFlow` returns what `open` of singe-webgpu.js does, with states: `newStates()` returns a handle, a GPUBuffer
 * for each state, which `run` takes. Commands are collected, loops of a known count turn by turn, and submitted when
 * something is read: a condition or a size that the GPU computed, the inputs of a host step, the outputs. Buffers of sizes
 * found in mid-run grow and keep their size. A caller's GPU buffers are copied from and to.
 */

/** @import { TypedArray } from "../types/public.d.ts" */
/** @import { Answer, AreaKind, Areas, CopyStep, Dim, DispatchStep, GivenInput, GpuCommand, GpuPlace, PlainStep, Program, SizedOutput, Sizes, Wanted, WeightsStore } from "../types/program.d.ts" */
/** @import { FlowBase, Gpu, GpuPipelines, GpuRunner } from "./singe-webgpu.js" */

/** @import * as io from "./singe-gpu-io.js" */

/** @typedef {typeof io} GpuIo */

import { ARRAYS, Recent, align, byName, bytesOf, countOf, evaluate, outputsOf, shapeOf } from "../program/singe-format.js";
import { Plan, partAt, prepareHost, walk } from "../program/singe-plan.js";

const PLANS = 4;
/** Commands are submitted in batches of this many, while more are collected. */
const MOST_PENDING = 2048;
const GROWTH = 1.5;
const LEAST = 16;

/** Given by singe-webgpu.js, which imports this file; so this file imports nothing from it. */
let /** @type {FlowBase["USAGE"]} */ USAGE, /** @type {FlowBase["encoded"]} */ encoded, /** @type {FlowBase["mapped"]} */ mapped;

let /** @type {FlowBase["elementsOf"]} */ elementsOf, /** @type {FlowBase["spreadGroups"]} */ spreadGroups;
let /** @type {FlowBase["widen"]} */ widen, /** @type {FlowBase["words"]} */ words;

/**
 * @param {FlowBase} base
 * @param {Gpu} gpu
 * @param {Program} program
 * @param {GpuPipelines} pipelines
 * @param {WeightsStore} weights
 */
export async function openFlow(base, gpu, program, pipelines, weights) {
  ({ USAGE, encoded, mapped, elementsOf, spreadGroups, widen, words } = base);
  await prepareHost(program);
  return new (flowDevice(base.Device))(gpu, program, pipelines, weights);
}

/** @param {FlowBase["Device"]} Device */
const flowDevice = (Device) =>
  class FlowDevice extends Device {
    /** How often a buffer grew in mid-run: commands that were made before name the one that went. */
    grown = 0;

    /**
     * @param {Gpu} gpu
     * @param {Program} program
     * @param {GpuPipelines} pipelines
     * @param {WeightsStore} weights
     */
    constructor(gpu, program, pipelines, weights) {
      super(gpu, program, pipelines, weights);
      /** @type {GpuRunner["recordings"]} */
      this.recordings = new Recent(
        PLANS,
        (/** @type {Sizes} */ sizes) => /** @type {unknown} */ (new GpuPlan(this, sizes)),
        (plan) => /** @type {GpuPlan} */ (plan).free(),
      );
    }

    /** @param {Sizes} sizes */
    part(sizes) {
      return partAt(this.program, sizes);
    }

    /**
     * @param {GivenInput[]} inputs
     * @param {Sizes} sizes
     * @param {Wanted} wanted
     * @param {GPUBuffer[]} [states]
     * @returns {Promise<Answer[]>}
     */
    async run(inputs, sizes, wanted, states = []) {
      const kept = wanted !== "data" || !inputs.every(ArrayBuffer.isView) ? await import("./singe-gpu-io.js") : undefined;
      return this.attempt(sizes, (/** @type {GpuPlan} */ plan) => plan.run(inputs, wanted, states, kept));
    }

    /**
     * The commands of a run, in order, each with its step.
     * @param {GivenInput[]} inputs
     * @param {Sizes} sizes
     * @param {GPUBuffer[]} [states]
     */
    async record(inputs, sizes, states) {
      await this.prepare(sizes);
      const plan = /** @type {GpuPlan} */ (this.recordings.at(sizes));
      plan.recorded = [];
      await this.run(inputs, sizes, "data", states);
      const { recorded } = plan;
      plan.recorded = undefined;
      return recorded;
    }

    // --- states

    /** @param {number} k */
    #bytes(k) {
      return align(bytesOf(this.program.buffers[this.program.states[k].buffer], {}), 4);
    }

    newStates() {
      const states = this.program.states.map((_, k) => this.gpu.allocate(Math.max(LEAST, this.#bytes(k))));
      this.#fill(states);
      return states;
    }

    /** @param {GPUBuffer[]} states */
    resetStates(states) {
      return this.gpu.guard(() => this.#fill(states));
    }

    /**
     * Write the initial values.
     * @param {GPUBuffer[]} states
     */
    #fill(states) {
      this.#copy((commands) => {
        this.program.states.forEach(({ initial }, k) => {
          if (initial === null) return commands.clearBuffer(states[k]);
          const { buffer, offset } = this.weights.binding(this.program.buffers[initial].place[1], 0);
          commands.copyBufferToBuffer(buffer, offset, states[k], 0, this.#bytes(k));
        });
      });
    }

    /** @param {GPUBuffer[]} states */
    copyStates(states) {
      return this.gpu.guard(() => {
        const copies = this.newStates();
        this.#copy((commands) => states.forEach((from, k) => commands.copyBufferToBuffer(from, 0, copies[k], 0, from.size)));
        return copies;
      });
    }

    /**
     * @param {GPUBuffer[]} states
     * @param {number} k
     */
    readState(states, k) {
      const buffer = this.program.buffers[this.program.states[k].buffer];
      return this.gpu.guard(() => this.fetch(states[k], { ...buffer, count: countOf(/** @type {number[]} */ (buffer.shape)) }));
    }

    /**
     * @param {GPUBuffer[]} states
     * @param {number} k
     * @param {TypedArray} data
     */
    writeState(states, k, data) {
      const wide = words(widen(data, this.program.buffers[this.program.states[k].buffer]));
      return this.gpu.guard(() => this.gpu.device.queue.writeBuffer(states[k], 0, wide));
    }

    /** @param {GPUBuffer[]} states */
    freeStates(states) {
      states.forEach((buffer) => this.gpu.free(buffer));
    }

    /** @param {(commands: GPUCommandEncoder) => void} fill */
    #copy(fill) {
      const commands = this.gpu.device.createCommandEncoder();
      fill(commands);
      this.gpu.device.queue.submit([commands.finish()]);
    }

    /**
     * The first elements of a buffer, in a new array.
     * @param {GPUBuffer} buffer
     * @param {Pick<SizedOutput, "dtype" | "size" | "count">} output
     * @param {number} [offset]
     */
    async fetch(buffer, { dtype, size, count }, offset = 0) {
      const { gpu } = this;
      const bytes = align(count * size, 4);
      if (!bytes) return new ARRAYS[dtype](0);
      const staging = gpu.allocate(bytes, USAGE.read | USAGE.target);
      try {
        this.#copy((commands) => commands.copyBufferToBuffer(buffer, offset, staging, 0, bytes));
        await mapped(gpu.device, staging);
        return elementsOf(staging.getMappedRange(), 0, { dtype, size, count });
      } finally {
        gpu.free(staging);
      }
    }
  };

/** @typedef {InstanceType<ReturnType<typeof flowDevice>>} FlowRunner */
/** @typedef {GpuRunner & { grown: number, fetch(buffer: GPUBuffer, output: Pick<SizedOutput, "dtype" | "size" | "count">, offset: number): Promise<TypedArray> }} FlowDevice */

/** A plan with its buffers and commands, and its run: what `walk` calls a machine. */
class GpuPlan extends Plan {
  /** @type {FlowDevice} */
  #device;
  /** @type {GpuCommand[]} */
  #pending = [];
  /**
   * Commands by their word, each with the version that it was made for; commands on states by the states.
   * @type {WeakMap<GPUBuffer[], Map<number, { version: number, command: GpuCommand | undefined }>>}
   */
  #made = new WeakMap();
  /** @type {Map<number, GPUBuffer>} */
  #uniforms = new Map();
  #version = 0;
  /**
   * The sizes for which commands were last made.
   * @type {Sizes}
   */
  #latest = byName();
  /** @type {GPUBuffer[]} */
  #none = [];

  /**
   * @param {FlowDevice} device
   * @param {Sizes} sizes
   */
  constructor(device, sizes) {
    super(device.program, sizes);
    device.cover(this.areas());
    this.gpu = device.gpu;
    this.buffers = device.buffers;
    /** @type {GivenInput[]} */
    this.given = [];
    /** @type {GPUBuffer[]} */
    this.states = [];
    /** @type {SizedOutput[]} */
    this.outputs = [];
    /**
     * The commands of a run, where they are wanted.
     * @type {GpuCommand[] | undefined}
     */
    this.recorded = undefined;
    this.#device = device;
  }

  free() {
    this.#uniforms.forEach((buffer) => this.gpu.free(buffer));
  }

  /**
   * @param {GivenInput[]} inputs
   * @param {Wanted} wanted
   * @param {GPUBuffer[]} states
   * @param {GpuIo | undefined} kept
   * @returns {Promise<Answer[]>}
   */
  async run(inputs, wanted, states, kept) {
    this.begin();
    this.#pending = [];
    this.given = inputs;
    this.states = states;
    inputs.forEach((data, k) => this.#take(data, k, kept));
    await walk(this, this);
    this.outputs = outputsOf(this.program, this.sizes);
    if (wanted !== "data" && kept && !kept.holdsArrays(wanted)) {
      const targets = kept.chosen(this, wanted, inputs);
      this.outputs.forEach(({ name, index, bytes }, k) => {
        kept.check("output", name, targets[k], bytes, "COPY_DST");
        this.#copy(this.#binding(index), { buffer: targets[k], offset: 0 }, align(bytes, 4));
      });
      await this.gpu.guard(() => this.#flush());
      return this.outputs.map(({ shape, dtype }, k) => ({ data: targets[k], shape: [...shape], dtype }));
    }
    const into = wanted !== "data" && kept ? kept.arraysFor(this.outputs, wanted) : [];
    return this.gpu.guard(() => this.#answer(into));
  }

  /**
   * @param {GivenInput} data
   * @param {number} k
   * @param {GpuIo | undefined} kept
   */
  #take(data, k, kept) {
    const buffer = this.program.buffers[this.program.inputs[k]];
    const own = this.buffers.input[k];
    if (ArrayBuffer.isView(data)) return this.gpu.device.queue.writeBuffer(own, 0, words(widen(data, buffer)));
    const bytes = align(bytesOf(buffer, this.sizes), 4);
    kept?.check("input", buffer.name, data, bytes, "COPY_SRC");
    this.#copy({ buffer: data, offset: 0 }, { buffer: own, offset: 0 }, bytes);
  }

  /**
   * All outputs by one copy each and one wait.
   * @param {(TypedArray | undefined)[]} into
   * @returns {Promise<Answer[]>}
   */
  async #answer(into) {
    let total = 0;
    const starts = this.outputs.map(({ bytes }) => (total += align(bytes)) - align(bytes));
    const staging = this.gpu.allocate(total || LEAST, USAGE.read | USAGE.target);
    try {
      this.outputs.forEach(({ index, bytes }, k) => {
        this.#copy(this.#binding(index), { buffer: staging, offset: starts[k] }, align(bytes, 4));
      });
      this.#flush();
      await mapped(this.gpu.device, staging);
      const range = staging.getMappedRange();
      return this.outputs.map((output, k) => {
        return { data: elementsOf(range, starts[k], output, into[k]), shape: [...output.shape], dtype: output.dtype };
      });
    } finally {
      this.gpu.free(staging);
    }
  }

  // --- commands

  /**
   * @param {number} from
   * @param {number} to
   */
  calls(from, to) {
    for (let at = from; at < to; at += 2 + this.codes[at + 1]) {
      const command = this.#command(at);
      if (!command) continue;
      this.#pending.push(command);
      this.recorded?.push(command);
    }
    if (this.#pending.length > MOST_PENDING) this.#flush();
  }

  /**
   * @param {GpuPlace} source
   * @param {GpuPlace} target
   * @param {number} bytes
   */
  #copy(source, target, bytes) {
    if (bytes) this.#pending.push({ source, target, bytes });
  }

  #flush() {
    if (!this.#pending.length) return;
    this.gpu.device.queue.submit([encoded(this.gpu.device, this.#pending)]);
    this.#pending = [];
  }

  /**
   * The command of the group at a word; undefined if there is nothing to do.
   * @param {number} at
   * @returns {GpuCommand | undefined}
   */
  #command(at) {
    const step = /** @type {PlainStep} */ (this.groups.get(at));
    const named = step.do === "copy" ? [step.source, step.target] : step.buffers;
    const touches = named.some((i) => this.program.buffers[i].place[0] === "state");
    const owner = touches ? this.states : this.#none;
    if (!this.#made.has(owner)) this.#made.set(owner, new Map());
    const made = /** @type {Map<number, { version: number, command: GpuCommand | undefined }>} */ (this.#made.get(owner));
    const known = made.get(at);
    const version = this.#version + this.#device.grown;
    if (known && known.version === version) return known.command;
    const command = step.do === "copy" ? this.#copying(step) : this.#dispatch(at, step);
    made.set(at, { version, command });
    return command;
  }

  /**
   * @param {CopyStep} step
   * @returns {GpuCommand | undefined}
   */
  #copying(step) {
    const { source, target } = step;
    const bytes = align(bytesOf(this.program.buffers[source], this.sizes), 4);
    return bytes ? { step, source: this.#binding(source), target: this.#binding(target), bytes } : undefined;
  }

  /**
   * @param {number} at
   * @param {DispatchStep} step
   * @returns {GpuCommand | undefined}
   */
  #dispatch(at, step) {
    const { pipelines, program } = this.#device;
    const kernel = program.kernels[step.kernel];
    const { pipeline, layout, hasSizes, groups: dims } = pipelines.at(step.kernel);
    const groups = dims.map((dim) => evaluate(dim, this.sizes));
    if (groups.some((n) => n <= 0)) return undefined;
    /** @type {GpuPlace[]} */
    const resources = step.buffers.map((i) => this.#binding(i));
    if (hasSizes) resources.push({ buffer: this.#uniform(at, kernel.sizes), offset: 0 });
    const entries = resources.map((resource, binding) => ({ binding, resource }));
    const bound = this.gpu.device.createBindGroup({ layout, entries });
    const limit = this.gpu.device.limits.maxComputeWorkgroupsPerDimension;
    return { step, pipeline, bound, groups: spreadGroups(groups, limit, kernel.label) };
  }

  /**
   * @param {number} index
   * @returns {GpuPlace}
   */
  #binding(index) {
    const buffer = this.program.buffers[index];
    const [kind, at] = buffer.place;
    const size = Math.max(LEAST, align(bytesOf(buffer, this.sizes), 4));
    if (kind === "weights") return this.#device.weights.binding(at, size);
    return { buffer: kind === "state" ? this.states[at] : this.buffers[kind][at], offset: 0, size };
  }

  /**
   * @param {number} at
   * @param {Dim[]} dims
   */
  #uniform(at, dims) {
    const values = new Int32Array(align(dims.length, 4));
    values.set(dims.map((dim) => evaluate(dim, this.sizes)));
    const buffer = this.#uniforms.get(at) ?? this.gpu.allocate(values.byteLength, USAGE.uniform | USAGE.target);
    this.#uniforms.set(at, buffer);
    this.gpu.device.queue.writeBuffer(buffer, 0, values);
    return buffer;
  }

  // --- steps that stop a run

  /**
   * A buffer's elements; for an input that is an array, the array.
   * @param {number} index
   * @param {number} count
   * @returns {Promise<TypedArray>}
   */
  async #elements(index, count) {
    const buffer = this.program.buffers[index];
    const [kind, k] = buffer.place;
    if (kind === "input" && ArrayBuffer.isView(this.given[k])) return this.given[k];
    const { buffer: from, offset } = this.#binding(index);
    const room = { ...buffer, count };
    return this.gpu.guard(() => {
      this.#flush();
      return this.#device.fetch(from, room, offset);
    });
  }

  /**
   * @param {number} index
   * @returns {Promise<number | bigint>}
   */
  async first(index) {
    return (await this.#elements(index, Math.min(1, countOf(shapeOf(this.program.buffers[index], this.sizes)))))[0];
  }

  /** @param {number} index */
  async read(index) {
    const shape = shapeOf(this.program.buffers[index], this.sizes);
    return { data: await this.#elements(index, countOf(shape)), shape };
  }

  /**
   * @param {number} index
   * @param {TypedArray} data
   */
  write(index, data) {
    const { buffer } = this.#binding(index);
    return this.gpu.guard(() => {
      this.#flush();
      this.gpu.device.queue.writeBuffer(buffer, 0, words(widen(data, this.program.buffers[index])));
    });
  }

  /** @param {Sizes} found */
  bind(found) {
    this.learn(found);
    const changed = Object.entries(found).some(([name, value]) => this.#latest[name] !== value);
    Object.assign(this.#latest, found);
    const areas = this.areas();
    return this.gpu.guard(() => {
      this.#flush(); // what is written anew is not for what was asked for already
      this.late.forEach((place) => this.#grow(place, areas));
      if (changed) this.#version++;
    });
  }

  /**
   * @param {string} place
   * @param {Areas} areas
   */
  #grow(place, areas) {
    const [kind, k] = /** @type {[AreaKind, number]} */ (/** @type {unknown} */ (place.split(",")));
    const before = this.buffers[kind][k];
    if (areas[kind][k] <= before.size) return;
    const limit = this.gpu.device.limits.maxBufferSize;
    const now = this.gpu.allocate(Math.max(areas[kind][k], Math.min(limit, align(GROWTH * before.size))));
    this.#copy({ buffer: before, offset: 0 }, { buffer: now, offset: 0 }, before.size);
    this.#flush();
    this.buffers[kind][k] = now;
    this.gpu.free(before);
    this.#device.grown++;
  }
}
