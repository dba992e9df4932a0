/**
 * A plan with its buffers and commands on a GPU, and its run there.
 *
 * Contract: a plan of calls and copies alone serves all sizes: buffers are bound whole, so other sizes change the numbers of workgroups
 * alone. It is recorded for the states of a session, and its next run is encoded while the GPU is busy. Of others, commands are
 * collected, loops of a known count turn by turn, and submitted when something is read: a condition or a size that the GPU computed, the
 * inputs of a host stop, the outputs. Buffers of sizes found in mid-run grow and keep their size.
 */

/** @import { TypedArray } from "../types/public.d.ts" */
/** @import { Answer, AreaKind, Areas, Dim, GivenInput, GpuCommand, GpuDispatch, GpuPlace, Program, SizedOutput, Sizes, Wanted } from "../types/program.d.ts" */
/** @import { GpuRunner } from "./singe-webgpu.js" */

/** @import * as io from "./singe-gpu-io.js" */

import { ALIGN, align, byName, bytesOf, countOf, evaluate, isFor, partsOf, shapeOf } from "../program/singe-format.js";
import { Plan, walk } from "../program/singe-plan.js";
import { COPY, headsOf, portsAt } from "../program/singe-words.js";
import { LEAST, USAGE, elementsOf, encoded, mapped, padded, spreadGroups, widen } from "./singe-gpu.js";

/** Commands are submitted in batches of this many, while more are collected. */
const MOST_PENDING = 2048;
const GROWTH = 1.5;

/** @typedef {{ version: number, command: GpuCommand | undefined, grown: number, dispatch?: GpuDispatch }} Made the dispatch: for the buffers at a count of those that grew */
/** @typedef {{ dims: Dim[], start: number, version: number, written: Int32Array | undefined }} Row sizes that kernels read, where they are, for which sizes they were computed last, and those written last */

/**
 * A text for the sizes of a program's inputs, equal where one plan serves: one of calls and copies alone is for all sizes of its part.
 * @param {Program} program
 * @returns {(sizes: Sizes) => string}
 */
export function planKeys(program) {
  const parts = partsOf(program).map((part) => ({ part, isStraight: headsOf(part.words).every((at) => part.words[at] >= COPY) }));
  return (sizes) => {
    const at = parts.findIndex(({ part }) => isFor(part, sizes));
    return JSON.stringify(parts[at].isStraight ? at : sizes);
  };
}

/** What `walk` calls a machine is the plan itself. */
export class GpuPlan extends Plan {
  /** @type {GpuRunner} */
  #device;
  /** @type {GpuCommand[]} */
  #pending = [];
  /**
   * Commands by their word, each with the version that it was made for; commands on states by the states.
   * @type {WeakMap<GPUBuffer[], Map<number, Made>>}
   */
  #made = new WeakMap();
  /**
   * One row for all kernels that read the same sizes.
   * @type {Map<string, Row>}
   */
  #rows = new Map();
  /** @type {GPUBuffer | undefined} */
  #uniform;
  #version = 0;
  /**
   * The sizes for which commands were last made.
   * @type {Sizes}
   */
  #latest = byName();
  /** @type {GPUBuffer[]} */
  #none = [];
  /**
   * The next run, encoded, and where its outputs go.
   * @type {{ run: GPUCommandBuffer, buffer: GPUBuffer } | undefined}
   */
  #next;
  /** @type {GivenInput[]} */
  #given = [];
  /** @type {GPUBuffer[]} */
  #states = [];
  /** How many buffers had grown when `commands` were recorded. */
  #over = 0;
  /**
   * The numbers of workgroups and the bytes of copies at some sizes.
   * @type {string | undefined}
   */
  #extent;
  /** @type {Map<Dim, number>} */
  #values = new Map();
  /** @type {SizedOutput[]} */
  outputs = [];
  /** What outputs of the largest sizes take, where there are bounds: memory does not grow from run to run. */
  room = 0;
  /** When the inputs of the last run were written. */
  written = 0;
  /**
   * The commands of a run, where they are wanted.
   * @type {GpuCommand[] | undefined}
   */
  collected = undefined;
  /**
   * Those of every run with these states, if these are calls and copies alone.
   * @type {GpuCommand[] | undefined}
   */
  commands = undefined;

  /**
   * @param {GpuRunner} device
   * @param {Sizes} sizes
   */
  constructor(device, sizes) {
    super(device.program, sizes);
    this.gpu = device.gpu;
    this.buffers = device.buffers;
    this.#device = device;
    this.#cover();
    if (this.isStraight && !this.program.states.length) this.#record([]);
  }

  /**
   * Make the commands of every run with these states, over the buffers that there are now.
   * @param {GPUBuffer[]} states
   */
  #record(states) {
    this.outputs = this.sizedOutputs();
    this.#states = states;
    this.#extent = this.#measured();
    this.commands = headsOf(this.words).flatMap((at) => this.#known(at) ?? []);
    this.#next = undefined;
    this.#over = this.#device.grown;
  }

  /**
   * Take other sizes with the same commands.
   * @param {Sizes} sizes
   */
  resize(sizes) {
    if (!this.isStraight || this.isAt(sizes)) return;
    super.resize(sizes);
    this.#values.clear();
    this.#cover();
    this.outputs = this.sizedOutputs();
    const extent = this.#measured();
    if (extent !== this.#extent) {
      this.#extent = extent;
      this.#version++;
      this.commands = undefined;
    }
    this.#rows.forEach((row) => this.#writeRow(row));
  }

  /** @param {Sizes} sizes */
  isAt(sizes) {
    return Object.entries(sizes).every(([name, size]) => this.sizes[name] === size);
  }

  /** Let the shared buffers hold what a run at these sizes needs. */
  #cover() {
    const areas = this.areas(this.#device.sized(this.program).placed);
    this.#device.cover(areas);
    this.room = areas.output.reduce((sum, bytes) => sum + bytes, 0);
  }

  /** What the commands have of the sizes: numbers of workgroups and bytes of copies; all sizes if a buffer cannot be bound whole. */
  #measured() {
    const { groups, copied } = this.#device.sized(this.program);
    const counts = [...groups.flat().map((dim) => this.#value(dim)), ...copied.map((i) => this.bytes(i))];
    const isWhole = Object.values(this.buffers)
      .flat()
      .every((buffer) => this.#isWhole(buffer));
    return JSON.stringify(isWhole ? counts : [counts, this.sizes]);
  }

  /**
   * A dimension at the sizes so far, computed once: many calls of a kernel have the same workgroups.
   * @param {Dim} dim
   */
  #value(dim) {
    const value = this.#values.get(dim) ?? evaluate(dim, this.sizes);
    this.#values.set(dim, value);
    return value;
  }

  /** None: kernels read their numbers from rows. */
  numbersOf() {
    return [];
  }

  /** @param {GPUBuffer} buffer */
  #isWhole(buffer) {
    return buffer.size <= this.gpu.device.limits.maxStorageBufferBindingSize;
  }

  free() {
    this.gpu.free(this.#uniform);
  }

  /**
   * kept: singe-gpu-io.js, unless the inputs are arrays and the outputs new ones.
   * @param {GivenInput[]} inputs
   * @param {Wanted} wanted
   * @param {GPUBuffer[]} states
   * @param {typeof io | undefined} kept
   * @param {() => void} [submitted] called when a later run over states may begin
   * @returns {Promise<Answer[]>}
   */
  async run(inputs, wanted, states, kept, submitted) {
    if (this.isStraight && !(kept && states.length)) {
      if (!this.commands || (states.length && this.#states !== states) || this.#over !== this.#device.grown) this.#record(states);
      if (kept) return kept.run(this, inputs, wanted);
      inputs.forEach((data, k) => this.upload(k, /** @type {TypedArray} */ (data)));
      return this.answer(this.commands, [], states.length ? submitted : undefined);
    }
    this.commands = undefined;
    this.begin();
    this.#values.clear();
    this.#pending = [];
    this.#given = inputs;
    this.#states = states;
    inputs.forEach((data, k) => (ArrayBuffer.isView(data) ? this.upload(k, data) : kept?.copyIn(this, k, data)));
    this.written = performance.now();
    await walk(this, this);
    this.outputs = this.sizedOutputs();
    if (kept?.areOnGpu(wanted)) return this.gpu.guard(() => kept.copyOut(this, wanted, inputs));
    const into = kept && wanted !== "data" ? kept.arraysFor(this.outputs, wanted) : [];
    return this.gpu.guard(() => this.answer(this.#pending.splice(0), into));
  }

  /**
   * @param {number} k
   * @param {TypedArray} data
   */
  upload(k, data) {
    this.#write(this.buffers.input[k], this.program.inputs[k], data);
  }

  /**
   * @param {GPUBuffer} buffer
   * @param {number} index
   * @param {TypedArray} data
   */
  #write(buffer, index, data) {
    this.gpu.device.queue.writeBuffer(buffer, 0, padded(widen(data, this.program.buffers[index])));
  }

  /**
   * The bytes of a buffer, in whole words.
   * @param {number} index
   */
  bytes(index) {
    return align(bytesOf(this.program.buffers[index], this.sizes), 4);
  }

  /**
   * The whole buffer, whatever a run needs of it, where it can be bound.
   * @param {number} index
   * @returns {GpuPlace}
   */
  binding(index) {
    const [kind, at] = this.program.buffers[index].place;
    const size = () => Math.max(LEAST, this.bytes(index));
    if (kind === "weights") return this.#device.weights.binding(at, size());
    return this.whole(kind === "state" ? this.#states[at] : this.buffers[kind][at], size);
  }

  /**
   * @param {GPUBuffer} buffer
   * @param {() => number} bytes what a run needs of it
   * @returns {GpuPlace}
   */
  whole(buffer, bytes) {
    return { buffer, offset: 0, size: this.#isWhole(buffer) ? buffer.size - (buffer.size % 4) : bytes() };
  }

  // --- commands

  /**
   * @param {number} from
   * @param {number} to
   */
  calls(from, to) {
    for (let at = from; at < to; at += 2 + this.words[at + 1]) {
      const command = this.#known(at);
      if (!command) continue;
      this.#pending.push(command);
      this.collected?.push(command);
    }
    if (this.#pending.length > MOST_PENDING) this.flush();
  }

  /**
   * @param {GpuPlace} source
   * @param {GpuPlace} target
   * @param {number} bytes
   */
  copy(source, target, bytes) {
    if (bytes) this.#pending.push({ source, target, bytes });
  }

  flush() {
    const commands = this.#pending.splice(0);
    if (commands.length) this.gpu.device.queue.submit([encoded(this.gpu.device, commands)]);
  }

  /**
   * The command of the group at a word, made once for its buffers and sizes.
   * @param {number} at
   * @returns {GpuCommand | undefined}
   */
  #known(at) {
    const version = this.#version + this.#device.grown;
    const known = this.#made.get(this.#none)?.get(at) ?? this.#made.get(this.#states)?.get(at);
    if (known?.version === version) return known.command;
    const { grown } = this.#device;
    const { command, dispatch } = this.#command(at, known?.grown === grown ? known.dispatch : undefined);
    const named = this.words.slice(...portsAt(this.program, this.words, at));
    const owner = named.some((i) => this.program.buffers[i].place[0] === "state") ? this.#states : this.#none;
    const made = this.#made.get(owner) ?? new Map();
    this.#made.set(owner, made.set(at, { version, command, grown, dispatch }));
    return command;
  }

  /**
   * The command of the group at a word; undefined if there is nothing to do. The dispatch serves other sizes, too.
   * @param {number} at
   * @param {GpuDispatch} [before] that of other sizes, over the same buffers
   * @returns {{ command?: GpuCommand, dispatch?: GpuDispatch }}
   */
  #command(at, before) {
    const { words, gpu, program } = this;
    if (words[at] === COPY) {
      const [target, source] = [words[at + 2], words[at + 3]];
      const bytes = this.bytes(source);
      return bytes ? { command: { at, source: this.binding(source), target: this.binding(target), bytes } } : {};
    }
    const { label } = program.kernels[words[at]];
    const { pipeline, layout, hasSizes, groups: dims } = this.#device.pipelines.at(words[at]);
    const counts = dims.map((dim) => this.#value(dim));
    if (counts.some((n) => n <= 0)) return { dispatch: before };
    const groups = spreadGroups(counts, gpu.device.limits.maxComputeWorkgroupsPerDimension, label);
    const row = hasSizes ? [this.#row(program.kernels[words[at]].sizes)] : [];
    if (before) return { command: { ...before, groups }, dispatch: before };
    const resources = words.slice(...portsAt(program, words, at)).map((i) => this.binding(i));
    const isWhole = resources.every(({ buffer }) => this.#isWhole(buffer));
    resources.push(...row);
    const command = this.bound({ at, pipeline, layout, resources, groups });
    return { command, dispatch: isWhole ? command : undefined };
  }

  /**
   * A dispatch with its bind group.
   * @param {Omit<GpuDispatch, "bound">} dispatch
   * @returns {GpuDispatch}
   */
  bound(dispatch) {
    const { layout, resources } = dispatch;
    const entries = resources.map((resource, binding) => ({ binding, resource }));
    return { ...dispatch, bound: this.gpu.device.createBindGroup({ layout, entries }) };
  }

  /**
   * The row of these sizes, as kernels read them.
   * @param {Dim[]} dims
   * @returns {GpuPlace}
   */
  #row(dims) {
    const key = JSON.stringify(dims);
    const row = this.#rows.get(key) ?? { dims, start: ALIGN * this.#rows.size, version: -1, written: undefined };
    this.#rows.set(key, row);
    if (row.version !== this.#version) this.#writeRow(row); // many dispatches share one
    return { buffer: this.#sizesBuffer(), offset: row.start, size: 4 * align(dims.length, 4) };
  }

  /** The buffer of all rows, with room for one of each kernel's. */
  #sizesBuffer() {
    if (this.#uniform) return this.#uniform; // each dispatch asks for it
    const { kernels, words } = this.program;
    const called = headsOf(words).flatMap((at) => (words[at] >= 0 ? [JSON.stringify(kernels[words[at]].sizes)] : []));
    return (this.#uniform = this.gpu.allocate(ALIGN * new Set(called).size, USAGE.uniform | USAGE.target));
  }

  /**
   * Write a row whose sizes have changed.
   * @param {Row} row
   */
  #writeRow(row) {
    row.version = this.#version;
    const values = new Int32Array(align(row.dims.length, 4));
    values.set(row.dims.map((dim) => this.number(dim)));
    if (row.written?.every((value, k) => value === values[k])) return;
    row.written = values;
    this.gpu.device.queue.writeBuffer(this.#sizesBuffer(), row.start, values);
  }

  // --- outputs

  /**
   * Commands, then copies of the outputs to targets.
   * @param {GpuCommand[]} commands
   * @param {GpuPlace[]} [targets]
   */
  encode(commands, targets = []) {
    const copies = targets.map((target, k) => {
      const { index, bytes } = this.outputs[k];
      return { source: this.binding(index), target, bytes: align(bytes, 4) };
    });
    return encoded(this.gpu.device, [...commands, ...copies]);
  }

  /**
   * The outputs after some commands, by one copy each and one wait.
   * @param {GpuCommand[]} [commands]
   * @param {(TypedArray | undefined)[]} [into]
   * @param {() => void} [submitted]
   * @returns {Promise<Answer[]>}
   */
  async answer(commands = this.commands ?? [], into = [], submitted = () => {}) {
    const { device } = this.gpu;
    const { outputs } = this;
    if (this.commands) this.written = performance.now();
    let total = 0;
    const starts = outputs.map(({ bytes }) => (total += align(bytes)) - align(bytes));
    const own = commands === this.commands;
    const next = own ? this.#next : undefined;
    const buffer = this.#device.stage(Math.max(total, this.room), next?.buffer);
    const encode = (/** @type {GPUBuffer} */ target) => {
      const targets = starts.map((offset) => ({ buffer: target, offset }));
      return this.encode(commands, targets);
    };
    buffer.unmap(); // saves a message
    device.queue.submit([next?.buffer === buffer ? next.run : encode(buffer)]);
    const done = mapped(device, buffer);
    if (own) {
      const later = this.#device.nextStage(buffer);
      this.#next = { run: encode(later), buffer: later }; // while the GPU is busy
    }
    submitted();
    await done;
    const range = buffer.getMappedRange();
    const answers = outputs.map((output, k) => {
      return { data: elementsOf(range, starts[k], output, into[k]), shape: [...output.shape], dtype: output.dtype };
    });
    this.#device.unstage(buffer);
    return answers;
  }

  // --- stops

  /**
   * A buffer's elements; for an input that is an array, and that no output overwrites, the array.
   * @param {number} index
   * @param {number} count
   * @returns {Promise<TypedArray>}
   */
  async #elements(index, count) {
    const buffer = this.program.buffers[index];
    const [kind, k] = buffer.place;
    const given = this.#given[k];
    const isKept = kind === "input" && this.program.outputs.every((i) => this.program.buffers[i].place.join() !== `input,${k}`);
    if (isKept && ArrayBuffer.isView(given)) return given;
    const { buffer: from, offset } = this.binding(index);
    return this.gpu.guard(() => {
      this.flush();
      return this.#device.fetch(from, { ...buffer, count }, offset);
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
    return this.gpu.guard(() => {
      this.flush();
      this.#write(this.binding(index).buffer, index, data);
    });
  }

  /** @param {Sizes} found */
  bind(found) {
    this.learn(found);
    this.#values.clear();
    const changed = Object.entries(found).some(([name, value]) => this.#latest[name] !== value);
    Object.assign(this.#latest, found);
    const areas = this.areas();
    return this.gpu.guard(() => {
      this.flush(); // what is written anew is not for what was asked for already
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
    this.copy({ buffer: before, offset: 0 }, { buffer: now, offset: 0 }, before.size);
    this.flush();
    this.buffers[kind][k] = now;
    this.gpu.free(before);
    this.#device.grown++;
  }
}
