/**
 * Where the time of a run goes: a Program's calls and copies are timed on their device, and their work is summed by kernel.
 *
 * Contract: `profile(opened, bound, { seconds })` is a model's `profile` with its inputs bound. It measures for about
 * `seconds` and returns a Profile (see singe.d.ts). The times of the kernels and of the rest add up to the Profile's
 * seconds. A call is known by the position of its group among the words. A time is the mean of the faster half of the
 * samples, so that a clock of coarse steps is right on average. A call in a loop counts as often as a run makes it. The time
 * of stops belongs to the rest.
 *
 * On "wasm" the clock is read between the calls of whole runs. On "webgpu" whole runs are timed first, then each call by
 * itself: it is repeated, between two timestamps of the GPU or within one submit, until the resolution of the clock
 * matters little. A call that works in place is then repeated on its own results: that changes neither its time nor its
 * memory.
 */

/** @import { Kernel, Profile, TypedArray } from "../types/public.d.ts" */
/** @import { DeviceName, Dim, GivenInput, GpuCommand, Handle, OpenDevice, Program, ProgramBuffer, Sizes, WasmCaller } from "../types/program.d.ts" */
/** @import { Gpu } from "../webgpu/singe-gpu.js" */
/** @import { GpuRunner } from "../webgpu/singe-webgpu.js" */
/** @import { WasmRunner } from "../wasm/singe-wasm.js" */

/** @typedef {{ key: string, label: string, kind: string, output: number[], flops: number | null, bytes: number | null }} Work */
/** @typedef {{ clock: string, runs: number, run: number, upload: number, seconds: number[], readback: number, calls?: ArrayLike<number> }} Times */
/** @typedef {(opened: OpenDevice, given: GivenInput[], sizes: Sizes, seconds: number, heads: number[], states: Handle | undefined) => Promise<Times>} Timer */
/** @typedef {Float64Array | number[]} Parts */
/** @typedef {Timestamps | Submits} Clock */
/** @typedef {Work & { seconds: number, count: number }} Ran */

import { checkNames } from "../program/singe-arguments.js";
import { SingeError, VERSION, bytesOf, evaluate, partAt, shapeOf, textOf } from "../program/singe-format.js";
import { COPY, headsOf, portsAt } from "../program/singe-words.js";

/** The least length of a sample: long beside the steps of a page's clock, or the faster half would be what was rounded down. */
const BLOCK_MS = 5;
const BUSY_MS = 50;

/** By the clock: a call is repeated until it takes this many milliseconds, or MOST_REPEATS times. */
const ENOUGH = { timestamps: 1, submits: 5 };
const MOST_REPEATS = 256;
const LARGEST_FACTOR = 4;
/** Once all calls together take this long, none is repeated more often, even if the clock shows nothing. */
const LONG_MS = 100;
const PAIRS = 2048; // of timestamps, that a query set holds
const PROBES = 3;
const USAGE = { read: 1, source: 4, target: 8, resolve: 512 };

/**
 * @param {OpenDevice} opened
 * @param {{ given: GivenInput[], sizes: Sizes }} bound
 * @param {{ seconds?: number }} [options]
 * @returns {Promise<Profile>}
 */
export async function profile(opened, { given, sizes }, options) {
  const { seconds = 1, ...unknown } = options ?? {};
  await checkNames(unknown, ["seconds"], "option", "a profile takes");
  const got = typeof seconds === "number" ? seconds : textOf(seconds);
  if (!(Number.isFinite(seconds) && seconds >= 0)) throw new SingeError("input", `seconds: got ${got}, expected 0 or more`);
  const { name } = opened;
  const program = partAt(opened.program, sizes);
  const heads = headsOf(program.words).filter((at) => program.words[at] >= COPY);
  const work = heads.map((at) => workOf(program, at, sizes));
  if (!seconds) return reported(name, work, untimed(work));
  const states = opened.program.states.length ? opened.device.newStates() : undefined; // a session's own
  try {
    return reported(name, work, await TIMERS[name](opened, given, sizes, seconds, heads, states));
  } finally {
    if (states !== undefined) opened.device.freeStates(states);
  }
}

/**
 * A device's name ↦ a function that times a run: { clock, runs, run, upload, seconds, readback, calls }, in seconds; those of
 * each call or copy, in the order of the words, and how often a run makes it.
 * @type {Record<DeviceName, Timer>}
 */
const TIMERS = { wasm: timeOnWasm, webgpu: timeOnGpu };

/**
 * @param {Work[]} work
 * @returns {Times}
 */
const untimed = (work) => ({ clock: "none", runs: 0, run: 0, upload: 0, seconds: work.map(() => 0), readback: 0 });

// --- the work of a call ----------------------------------------------------------------------------------------------

/**
 * { key, label, kind, output, flops, bytes }: calls of one key do the same. Facts that are wrong in the bundle are null.
 * @param {Program} program
 * @param {number} at
 * @param {Sizes} sizes
 * @returns {Work}
 */
function workOf(program, at, sizes) {
  const { buffers, kernels, words } = program;
  const ports = words.slice(...portsAt(program, words, at)).map((i) => buffers[i]);
  if (words[at] === COPY) {
    const [target, source] = ports;
    const output = shapeNow(target, sizes);
    const bytes = output ? bytesOf(source, sizes) + bytesOf(target, sizes) : null;
    return { key: `copy ${bytes} ${output}`, label: "copy", kind: "copy", output: output ?? [], flops: 0, bytes };
  }
  const { label, kind, flops, bytes } = kernels[words[at]];
  const named = ports.filter((buffer) => buffer.name !== "scratch");
  const output = (named.length && shapeNow(named[named.length - 1], sizes)) || [];
  return {
    key: `${words[at]} ${output}`,
    label,
    kind: typeof kind === "string" ? kind : "",
    output,
    flops: counted(flops, sizes),
    bytes: counted(bytes, sizes),
  };
}

/**
 * A shape; null where a size is found in mid-run.
 * @param {ProgramBuffer} buffer
 * @param {Sizes} sizes
 */
function shapeNow(buffer, sizes) {
  try {
    return shapeOf(buffer, sizes);
  } catch {
    return null;
  }
}

/**
 * The value of a dimension that the runner neither checks nor needs; null if it is not a count.
 * @param {Dim} dim
 * @param {Sizes} sizes
 */
function counted(dim, sizes) {
  try {
    const count = evaluate(dim, sizes);
    return count >= 0 ? count : null;
  } catch {
    return null;
  }
}

// --- means -----------------------------------------------------------------------------------------------------------

/**
 * Call `once(parts)`, which adds milliseconds to `parts`, for some seconds; { runs, parts }: the mean of the faster half.
 * @param {number} seconds
 * @param {number} length
 * @param {(parts: Float64Array) => unknown} once
 */
async function fasterHalf(seconds, length, once) {
  const end = performance.now() + 1000 * seconds;
  let rested = performance.now();
  const blocks = [];
  do {
    const block = { runs: 0, parts: new Float64Array(length) };
    for (const start = performance.now(); !block.runs || performance.now() - start < BLOCK_MS; block.runs++) {
      await once(block.parts);
    }
    blocks.push(block);
    if (performance.now() - rested > BUSY_MS) {
      await new Promise((done) => setTimeout(done));
      rested = performance.now();
    }
  } while (performance.now() < end);
  const mean = (/** @type {{ parts: Float64Array, runs: number }} */ { parts, runs }) => sum(parts) / runs;
  const kept = blocks.toSorted((a, b) => mean(a) - mean(b)).slice(0, Math.ceil(blocks.length / 2));
  const runs = (/** @type {{ runs: number }[]} */ list) => list.reduce((total, block) => total + block.runs, 0);
  const parts = Array.from({ length }, (_, k) => kept.reduce((total, block) => total + block.parts[k], 0) / runs(kept));
  return { runs: runs(blocks), parts };
}

/** @param {number[] | Float64Array} list */
const sum = (list) => /** @type {number[]} */ (list).reduce((total, value) => total + value, 0);

// --- WebAssembly -----------------------------------------------------------------------------------------------------

/** @type {Timer} */
async function timeOnWasm({ device }, given, sizes, seconds, heads, states) {
  const numbers = new Map(heads.map((at, k) => [at, k + 1]));
  const calls = new Float64Array(heads.length);
  const once = async (/** @type {Float64Array} */ parts) => {
    const start = performance.now();
    /** @type {number | undefined} */
    let first;
    let last = start;
    let within = 0;
    /** @type {WasmCaller} */
    const timed = (plan, from, to) => {
      last = performance.now();
      first ??= last;
      for (let at = from; at < to; ) {
        const next = at + 2 + plan.words[at + 1];
        plan.parts.run(plan.start + 4 * at, plan.start + 4 * next);
        const now = performance.now();
        const k = Number(numbers.get(at));
        parts[k] += now - last;
        within += now - last;
        calls[k - 1]++;
        [last, at] = [now, next];
      }
    };
    await /** @type {WasmRunner} */ (device).runBy(timed, /** @type {TypedArray[]} */ (given), sizes, "data", states);
    const end = performance.now();
    parts[0] += (first ?? end) - start;
    parts[heads.length + 1] += end - (first ?? end) - within;
  };
  await once(new Float64Array(heads.length + 2)); // a warm-up
  calls.fill(0);
  const { runs, parts } = await fasterHalf(seconds, heads.length + 2, once);
  const [upload, ...rest] = parts.map((ms) => ms / 1000);
  const readback = rest.pop() ?? 0;
  const clock = `performance.now(), in steps of ${tick()} ms`;
  return { clock, runs, run: sum(parts) / 1000, upload, seconds: rest, readback, calls: calls.map((count) => count / runs) };
}

/** The resolution of the page's clock. */
function tick() {
  const found = Array.from({ length: 8 }, () => {
    const start = performance.now();
    let now;
    do now = performance.now();
    while (now === start);
    return now - start;
  });
  return Number(Math.min(...found).toPrecision(1));
}

// --- WebGPU ----------------------------------------------------------------------------------------------------------

/**
 * Of singe-gpu.js, once a model runs there.
 * @type {typeof import("../webgpu/singe-gpu.js").mapped}
 */
let mapped;

/** @type {Timer} */
async function timeOnGpu({ device }, given, sizes, seconds, heads, states) {
  ({ mapped } = await import("../webgpu/singe-gpu.js"));
  const runner = /** @type {GpuRunner} */ (device);
  const once = async (/** @type {Parts} */ parts) => {
    const start = performance.now();
    const { written } = await runner.timed(given, sizes, /** @type {GPUBuffer[] | undefined} */ (states));
    parts[0] += written - start;
    parts[1] += performance.now() - written;
  };
  await once([0, 0]); // a warm-up
  const { runs, parts } = await fasterHalf(seconds / 2, 2, once);
  const [upload, answered] = parts.map((ms) => ms / 1000);
  const { commands } = await runner.timed(given, sizes, /** @type {GPUBuffer[] | undefined} */ (states));
  /** @type {Map<GpuCommand, number>} */
  const counts = new Map();
  for (const command of commands) counts.set(command, (counts.get(command) ?? 0) + 1);
  const { clock, times } = await timeCommands(runner.gpu, [...counts.keys()], seconds / 2);
  const numbers = new Map(heads.map((at, k) => [at, k]));
  const [found, calls] = [heads.map(() => 0), heads.map(() => 0)]; // one that has nothing to do at these sizes stays so
  [...counts].forEach(([{ at }, count], n) => {
    const k = Number(numbers.get(Number(at)));
    found[k] += (count * times[n]) / 1000;
    calls[k] += count;
  });
  return { clock, runs, run: upload + answered, upload, seconds: found, readback: Math.max(0, answered - sum(found)), calls };
}

/**
 * Milliseconds of each command, by timestamps if the device has any that are not all 0, else by the page's clock.
 * @param {Gpu} gpu
 * @param {GpuCommand[]} commands
 * @param {number} seconds
 */
async function timeCommands(gpu, commands, seconds) {
  const submits = new Submits(gpu, commands);
  try {
    if (!gpu.device.features.has("timestamp-query") || !commands.length) return await byClock(submits, seconds);
    const timestamps = new Timestamps(gpu, commands);
    try {
      const found = await byClock(timestamps, seconds);
      return sum(found.times) > 0 ? found : await byClock(submits, seconds);
    } finally {
      timestamps.free();
    }
  } finally {
    submits.free();
  }
}

/**
 * @param {Clock} clock
 * @param {number} seconds
 */
async function byClock(clock, seconds) {
  const length = clock.commands.length;
  /** @type {number[]} */
  const repeats = Array(length).fill(1);
  for (let settled = false; !settled; ) {
    const times = new Float64Array(length);
    const start = performance.now();
    await clock.measure(repeats, times);
    settled = true;
    if (performance.now() - start > Math.max(LONG_MS, 2 * clock.enough * length)) break;
    times.forEach((time, k) => {
      if (time >= clock.enough || repeats[k] === MOST_REPEATS) return;
      const factor = Math.min(LARGEST_FACTOR, (1.2 * clock.enough) / Math.max(time, 1e-6));
      repeats[k] = Math.min(MOST_REPEATS, Math.ceil(repeats[k] * factor));
      settled = false;
    });
  }
  const { parts } = await fasterHalf(seconds, length, (parts) => clock.measure(repeats, parts));
  return { clock: clock.name, times: parts.map((ms, k) => ms / repeats[k]) };
}

/**
 * Encode a command `repeats` times: dispatches in one pass, copies outside of any.
 * @param {GPUCommandEncoder} encoder
 * @param {GpuCommand} command
 * @param {number} repeats
 * @param {GPUComputePassDescriptor} [options]
 */
function encode(encoder, command, repeats, options) {
  if (!command.pipeline) {
    const { source, target, bytes } = command;
    for (let k = 0; k < repeats; k++) {
      encoder.copyBufferToBuffer(source.buffer, source.offset, target.buffer, target.offset, bytes);
    }
    return;
  }
  const pass = encoder.beginComputePass(options);
  pass.setPipeline(command.pipeline);
  pass.setBindGroup(0, command.bound);
  for (let k = 0; k < repeats; k++) pass.dispatchWorkgroups(...command.groups);
  pass.end();
}

/** The GPU's own clock, which browsers round to 0.1 ms. */
class Timestamps {
  name = "the GPU's timestamps";
  enough = ENOUGH.timestamps;

  /**
   * @param {Gpu} gpu
   * @param {GpuCommand[]} commands
   */
  constructor(gpu, commands) {
    const pairs = Math.min(commands.length, PAIRS);
    this.gpu = gpu;
    this.commands = commands;
    this.queries = gpu.device.createQuerySet({ type: "timestamp", count: 2 * pairs });
    this.room = gpu.allocate(16 * pairs, USAGE.resolve | USAGE.source);
    this.staging = gpu.allocate(16 * pairs, USAGE.read | USAGE.target);
  }

  /**
   * @param {number[]} repeats
   * @param {Parts} parts
   */
  async measure(repeats, parts) {
    for (let first = 0; first < this.commands.length; first += PAIRS) {
      await this.gpu.guard(() => this.#measure(first, repeats, parts));
    }
  }

  /**
   * @param {number} first
   * @param {number[]} repeats
   * @param {Parts} parts
   */
  async #measure(first, repeats, parts) {
    const { device } = this.gpu;
    const querySet = this.queries;
    const commands = this.commands.slice(first, first + PAIRS);
    const encoder = device.createCommandEncoder();
    commands.forEach((command, k) => {
      const before = { querySet, beginningOfPassWriteIndex: 2 * k };
      const after = { querySet, endOfPassWriteIndex: 2 * k + 1 };
      // A copy is outside of passes: empty passes around it write the times.
      if (!command.pipeline) encoder.beginComputePass({ timestampWrites: before }).end();
      encode(encoder, command, repeats[first + k], { timestampWrites: { ...before, ...after } });
      if (!command.pipeline) encoder.beginComputePass({ timestampWrites: after }).end();
    });
    // Resolve only queries that were written: some drivers wait for others for ever.
    encoder.resolveQuerySet(querySet, 0, 2 * commands.length, this.room, 0);
    encoder.copyBufferToBuffer(this.room, 0, this.staging, 0, 16 * commands.length);
    device.queue.submit([encoder.finish()]);
    await mapped(device, this.staging);
    const ticks = new BigInt64Array(this.staging.getMappedRange());
    commands.forEach((_, k) => (parts[first + k] += Math.max(0, Number(ticks[2 * k + 1] - ticks[2 * k]) / 1e6)));
    this.staging.unmap();
  }

  free() {
    this.queries.destroy();
    [this.room, this.staging].forEach((buffer) => this.gpu.free(buffer));
  }
}

/** The page's clock, less the time of an empty submit. */
class Submits {
  name = "performance.now() around submits";
  enough = ENOUGH.submits;

  /**
   * @param {Gpu} gpu
   * @param {GpuCommand[]} commands
   */
  constructor(gpu, commands) {
    this.gpu = gpu;
    this.commands = commands;
    this.room = gpu.allocate(16, USAGE.source);
    this.staging = gpu.allocate(16, USAGE.read | USAGE.target);
  }

  /**
   * @param {number[]} repeats
   * @param {Parts} parts
   */
  async measure(repeats, parts) {
    let least = Infinity;
    for (let k = 0; k < PROBES; k++) least = Math.min(least, await this.#took(() => {}));
    for (const [k, command] of this.commands.entries()) {
      const took = await this.#took((encoder) => encode(encoder, command, repeats[k]));
      parts[k] += Math.max(0, took - least);
    }
  }

  /** @param {(encoder: GPUCommandEncoder) => void} fill */
  #took(fill) {
    const { device } = this.gpu;
    return this.gpu.guard(async () => {
      const encoder = device.createCommandEncoder();
      fill(encoder);
      encoder.copyBufferToBuffer(this.room, 0, this.staging, 0, 16);
      const work = encoder.finish();
      const start = performance.now();
      device.queue.submit([work]);
      await mapped(device, this.staging);
      const took = performance.now() - start;
      this.staging.unmap();
      return took;
    });
  }

  free() {
    [this.room, this.staging].forEach((buffer) => this.gpu.free(buffer));
  }
}

// --- the report ------------------------------------------------------------------------------------------------------

/**
 * @param {DeviceName} device
 * @param {Work[]} work
 * @param {Times} times
 * @returns {Profile}
 */
function reported(device, work, { clock, runs, run, upload, seconds: taken, readback, calls }) {
  /** @type {Map<string, Kernel>} */
  const kernels = new Map();
  // A kernel that moves no bytes has no workgroups: another does the work at these sizes.
  const ran = work.map((one, k) => ({ ...one, seconds: taken[k], count: calls?.[k] ?? 1 })).filter(({ bytes }) => bytes !== 0);
  ran.forEach(({ key, flops, bytes, seconds, count, ...names }) => {
    const found = kernels.get(key) ?? { ...names, calls: 0, seconds: 0, flops: flops === null ? null : 0, bytes: bytes === null ? null : 0 };
    kernels.set(key, found);
    found.calls += count;
    found.seconds += seconds;
    if (flops !== null) found.flops = Number(found.flops) + count * flops;
    if (bytes !== null) found.bytes = Number(found.bytes) + count * bytes;
  });
  return {
    device,
    clock,
    runs,
    run,
    seconds: upload + sum(ran.map(({ seconds }) => seconds)) + readback,
    kernels: [...kernels.values()].sort((a, b) => b.seconds - a.seconds),
    rest: { upload, readback },
    trace: traceOf(device, clock, ran, { upload, readback }),
  };
}

/**
 * In Chrome's trace format: the page's work on one line; on another the calls, one after the other, in their mean times.
 * @param {DeviceName} device
 * @param {string} clock
 * @param {Ran[]} ran
 * @param {{ upload: number, readback: number }} rest
 * @returns {Profile["trace"]}
 */
function traceOf(device, clock, ran, { upload, readback }) {
  const [pid, page, line] = [1, 1, 2];
  const name = (/** @type {string} */ kind, /** @type {string} */ text, /** @type {number} */ tid) => ({ name: kind, ph: "M", ts: 0, pid, tid, args: { name: text } });
  let end = 0;
  const event = (/** @type {string} */ label, /** @type {string} */ cat, /** @type {number} */ tid, /** @type {number} */ seconds, /** @type {object} */ args) => {
    const found = { name: label, cat, ph: "X", ts: end * 1e6, dur: seconds * 1e6, pid, tid, args };
    end += seconds;
    return found;
  };
  const traceEvents = [
    name("process_name", "singe", page),
    name("thread_name", "page", page),
    name("thread_name", `${device}: calls`, line),
    event("upload", "page", page, upload, {}),
    ...ran.map(({ label, kind, output, flops, bytes, seconds }) => event(label, kind, line, seconds, { output, flops, bytes })),
    event("readback", "page", page, readback, {}),
  ];
  return { traceEvents, displayTimeUnit: "ms", otherData: { singe: VERSION, device, clock } };
}
