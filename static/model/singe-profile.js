/**
 * Where the time of a run goes: a Program's steps are timed on their device, and their work is summed by kernel.
 *
 * Contract: `profile(opened, bound, { seconds })` is a model's `profile` with its inputs bound. It measures for about
 * `seconds` and returns a Profile (see singe.d.ts). The times of the kernels and of the rest add up to the Profile's
 * seconds; each step of the Program is one call of a kernel. A time is the mean of the faster half of the samples, so
 * that a clock of coarse steps is right on average. A step in a loop counts as often as a run makes it. The time of host
 * steps belongs to the rest.
 *
 * On "wasm" the clock is read between the steps of whole runs. On "webgpu" whole runs are timed first, then each step by
 * itself: it is repeated, between two timestamps of the GPU or within one submit, until the resolution of the clock
 * matters little. A step that works in place is then repeated on its own results: that changes neither its time nor its
 * memory.
 */

/** @import { Kernel, Profile, TypedArray } from "../types/public.d.ts" */
/** @import { DeviceName, Dim, GivenInput, GpuCommand, Handle, OpenDevice, PlainStep, Program, ProgramBuffer, Sizes, StatefulDevice, Step, StepParts, WasmFlowCaller } from "../types/program.d.ts" */
/** @import { FlowBase, Gpu, GpuRecording, GpuRunner } from "../webgpu/singe-webgpu.js" */
/** @import { FlowRunner } from "../webgpu/singe-webgpu-flow.js" */
/** @import { WasmRunner } from "../wasm/singe-wasm.js" */

/** @typedef {{ key: string, label: string, kind: string, output: number[], flops: number | null, bytes: number | null }} Work */
/** @typedef {{ clock: string, runs: number, run: number, upload: number, steps: number[], readback: number, calls?: ArrayLike<number> }} Times */
/** @typedef {(opened: OpenDevice, given: GivenInput[], sizes: Sizes, seconds: number, steps: PlainStep[], states: Handle | undefined) => Promise<Times>} Timer */
/** @typedef {Float64Array | number[]} Parts */
/** @typedef {Timestamps | Submits} Clock */
/** @typedef {Work & { seconds: number, count: number }} Ran */

import { checkNames } from "../program/singe-arguments.js";
import { SingeError, VERSION, bytesOf, evaluate, isPlain, shapeOf, textOf } from "../program/singe-format.js";

/** The least length of a sample: long beside the steps of a page's clock, or the faster half would be what was rounded down. */
const BLOCK_MS = 5;
const BUSY_MS = 50;

/** By the clock: a step is repeated until it takes this many milliseconds, or MOST_REPEATS times. */
const ENOUGH = { timestamps: 1, submits: 5 };
const MOST_REPEATS = 256;
const LARGEST_FACTOR = 4;
/** Once all steps together take this long, none is repeated more often, even if the clock shows nothing. */
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
  const program = isPlain(opened.program) ? opened.program : (await import("../program/singe-plan.js")).partAt(opened.program, sizes);
  const steps = calledIn(program.steps);
  const work = steps.map((step) => workOf(program, step, sizes));
  if (!seconds) return reported(name, work, untimed(work));
  const states = /** @type {Partial<StatefulDevice>} */ (opened.device).newStates?.(); // a session's own
  try {
    const timer = isPlain(opened.program) ? TIMERS[name] : FLOW_TIMERS[name];
    return reported(name, work, await timer(opened, given, sizes, seconds, steps, states));
  } finally {
    if (states !== undefined) /** @type {StatefulDevice} */ (opened.device).freeStates(states);
  }
}

/**
 * The calls and copies among steps, those in conditions and loops included.
 * @param {Step[]} steps
 * @returns {PlainStep[]}
 */
const calledIn = (steps) =>
  steps.flatMap((step) => {
    if (step.do === "dispatch" || step.do === "copy") return [step];
    const { then, else: otherwise, body } = /** @type {StepParts} */ (step);
    return [then, otherwise, body].flatMap((inner) => (inner ? calledIn(inner) : []));
  });

/**
 * A device's name ↦ a function that times a run: { clock, runs, run, upload, steps, readback }, in seconds; steps by number.
 * @type {Record<DeviceName, Timer>}
 */
const TIMERS = { wasm: timeOnWasm, webgpu: timeOnGpu };

/**
 * The same for programs that singe-plan.js plans; `calls` is how often a run makes each step.
 * @type {Record<DeviceName, Timer>}
 */
const FLOW_TIMERS = { wasm: timeFlowOnWasm, webgpu: timeFlowOnGpu };

/**
 * @param {Work[]} work
 * @returns {Times}
 */
const untimed = (work) => ({ clock: "none", runs: 0, run: 0, upload: 0, steps: work.map(() => 0), readback: 0 });

// --- the work of a step ----------------------------------------------------------------------------------------------

/**
 * { key, label, kind, output, flops, bytes }: steps of one key do the same. Facts that are wrong in the bundle are null.
 * @param {Program} program
 * @param {PlainStep} step
 * @param {Sizes} sizes
 * @returns {Work}
 */
function workOf({ buffers, kernels }, step, sizes) {
  if (step.do === "copy") {
    const output = shapeNow(buffers[step.target], sizes);
    const bytes = output ? bytesOf(buffers[step.source], sizes) + bytesOf(buffers[step.target], sizes) : null;
    return { key: `copy ${bytes} ${output}`, label: "copy", kind: "copy", output: output ?? [], flops: 0, bytes };
  }
  const { label, kind, flops, bytes } = kernels[step.kernel];
  const named = step.buffers.filter((i) => buffers[i].name !== "scratch");
  const output = (named.length && shapeNow(buffers[/** @type {number} */ (named.at(-1))], sizes)) || [];
  return {
    key: `${step.kernel} ${output}`,
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
async function timeOnWasm({ program, device }, given, sizes, seconds) {
  const count = program.steps.length;
  const times = new Float64Array(count + 3);
  const inSteps = (/** @type {{ marks: number[] }} */ { marks }, /** @type {(from: number, to: number) => unknown} */ run) => {
    times[1] = performance.now();
    for (let k = 0; k < count; k++) {
      run(marks[k], marks[k + 1]);
      times[k + 2] = performance.now();
    }
  };
  const once = async (/** @type {Float64Array} */ parts) => {
    times.fill(performance.now());
    await /** @type {WasmRunner} */ (device).run(/** @type {TypedArray[]} */ (given), sizes, "data", undefined, inSteps);
    times[count + 2] = performance.now();
    parts.forEach((_, k) => (parts[k] += times[k + 1] - times[k]));
  };
  await once(new Float64Array(count + 2)); // a warm-up
  return split(await fasterHalf(seconds, count + 2, once));
}

/**
 * Seconds by the page's clock: the parts are the upload, the steps and the readback.
 * @param {{ runs: number, parts: number[] }} mean
 * @returns {Times}
 */
function split({ runs, parts }) {
  const [upload, ...steps] = parts.map((ms) => ms / 1000);
  const readback = steps.pop() ?? 0;
  return { clock: `performance.now(), in steps of ${tick()} ms`, runs, run: sum(parts) / 1000, upload, steps, readback };
}

/** @type {Timer} */
async function timeFlowOnWasm({ device }, given, sizes, seconds, list, states) {
  const numbers = new Map(list.map((step, k) => [step, k + 1]));
  const calls = new Float64Array(list.length);
  const once = async (/** @type {Float64Array} */ parts) => {
    const start = performance.now();
    /** @type {number | undefined} */
    let first;
    let within = 0;
    /** @type {WasmFlowCaller} */
    const timed = (plan, from, to) => {
      for (let at = from; at < to; ) {
        const next = at + 2 + plan.codes[at + 1];
        const before = performance.now();
        plan.parts.run(plan.start + 4 * at, plan.start + 4 * next);
        const took = performance.now() - before;
        first ??= before;
        within += took;
        const k = Number(numbers.get(/** @type {PlainStep} */ (plan.groups.get(at))));
        parts[k] += took;
        calls[k - 1]++;
        at = next;
      }
    };
    await /** @type {WasmRunner} */ (device).run(/** @type {TypedArray[]} */ (given), sizes, "data", states, timed);
    const end = performance.now();
    parts[0] += (first ?? end) - start;
    parts[list.length + 1] += end - (first ?? end) - within;
  };
  await once(new Float64Array(list.length + 2)); // a warm-up
  calls.fill(0);
  const found = split(await fasterHalf(seconds, list.length + 2, once));
  return { ...found, calls: calls.map((count) => count / found.runs) };
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
 * Of singe-webgpu.js, once a model runs there.
 * @type {FlowBase["mapped"]}
 */
let mapped;

/** @type {Timer} */
async function timeOnGpu({ program, device }, given, sizes, seconds) {
  ({ mapped } = await import("../webgpu/singe-webgpu.js"));
  const { gpu, recordings } = /** @type {GpuRunner} */ (device);
  const kept = given.every(ArrayBuffer.isView) ? undefined : await import("../webgpu/singe-gpu-io.js");
  const once = (/** @type {Parts} */ parts) =>
    gpu.guard(async () => {
      const start = performance.now();
      const recording = /** @type {GpuRecording} */ (recordings.at(sizes));
      const others = kept ? kept.over(recording, given) : void given.forEach((data, k) => recording.write(k, /** @type {TypedArray} */ (data)));
      const ready = performance.now();
      await recording.read(others || undefined);
      parts[0] += ready - start;
      parts[1] += performance.now() - ready;
    });
  await /** @type {GpuRunner} */ (device).prepare(sizes);
  await once([0, 0]); // a warm-up
  const { runs, parts } = await fasterHalf(seconds / 2, 2, once);
  const [upload, answered] = parts.map((ms) => ms / 1000);

  const { steps: dispatches } = /** @type {GpuRecording} */ (recordings.at(sizes));
  const { clock, times } = await timeSteps(gpu, dispatches, seconds / 2);
  const numbers = new Map(program.steps.map((step, k) => [step, k]));
  const steps = program.steps.map(() => 0); // one that has nothing to do at these sizes stays so
  dispatches.forEach(({ step }, k) => (steps[Number(numbers.get(/** @type {Step} */ (step)))] = times[k] / 1000));
  return { clock, runs, run: upload + answered, upload, steps, readback: Math.max(0, answered - sum(steps)) };
}

/** @type {Timer} */
async function timeFlowOnGpu({ device }, given, sizes, seconds, list, states) {
  ({ mapped } = await import("../webgpu/singe-webgpu.js"));
  const once = async (/** @type {Parts} */ parts) => {
    const start = performance.now();
    await device.run(given, sizes, "data", states);
    parts[0] += performance.now() - start;
  };
  await once([0]); // a warm-up
  const { runs, parts } = await fasterHalf(seconds / 2, 1, once);
  const commands = await /** @type {FlowRunner} */ (device).record(given, sizes, /** @type {GPUBuffer[]} */ (states));
  /** @type {Map<GpuCommand, number>} */
  const counts = new Map();
  for (const command of commands) counts.set(command, (counts.get(command) ?? 0) + 1);
  const { clock, times } = await timeSteps(/** @type {FlowRunner} */ (device).gpu, [...counts.keys()], seconds / 2);
  /** @type {Map<Step | undefined, number>} */
  const numbers = new Map(list.map((step, k) => [step, k]));
  const [steps, calls] = [list.map(() => 0), list.map(() => 0)];
  [...counts].forEach(([{ step }, count], at) => {
    const k = Number(numbers.get(step));
    steps[k] += (count * times[at]) / 1000;
    calls[k] += count;
  });
  const run = parts[0] / 1000;
  return { clock, runs, run, upload: 0, steps, readback: Math.max(0, run - sum(steps)), calls };
}

/**
 * Milliseconds of each step, by timestamps if the device has any that are not all 0, else by the page's clock.
 * @param {Gpu} gpu
 * @param {GpuCommand[]} steps
 * @param {number} seconds
 */
async function timeSteps(gpu, steps, seconds) {
  const submits = new Submits(gpu, steps);
  try {
    if (!gpu.device.features.has("timestamp-query") || !steps.length) return await byClock(submits, seconds);
    const timestamps = new Timestamps(gpu, steps);
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
  const length = clock.steps.length;
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
 * Encode a step `repeats` times: dispatches in one pass, copies outside of any.
 * @param {GPUCommandEncoder} commands
 * @param {GpuCommand} step
 * @param {number} repeats
 * @param {GPUComputePassDescriptor} [options]
 */
function encode(commands, step, repeats, options) {
  if (!step.pipeline) {
    const { source, target, bytes } = step;
    for (let k = 0; k < repeats; k++) {
      commands.copyBufferToBuffer(source.buffer, source.offset, target.buffer, target.offset, bytes);
    }
    return;
  }
  const pass = commands.beginComputePass(options);
  pass.setPipeline(step.pipeline);
  pass.setBindGroup(0, step.bound);
  for (let k = 0; k < repeats; k++) pass.dispatchWorkgroups(...step.groups);
  pass.end();
}

/** The GPU's own clock, which browsers round to 0.1 ms. */
class Timestamps {
  name = "the GPU's timestamps";
  enough = ENOUGH.timestamps;

  /**
   * @param {Gpu} gpu
   * @param {GpuCommand[]} steps
   */
  constructor(gpu, steps) {
    const pairs = Math.min(steps.length, PAIRS);
    this.gpu = gpu;
    this.steps = steps;
    this.queries = gpu.device.createQuerySet({ type: "timestamp", count: 2 * pairs });
    this.room = gpu.allocate(16 * pairs, USAGE.resolve | USAGE.source);
    this.staging = gpu.allocate(16 * pairs, USAGE.read | USAGE.target);
  }

  /**
   * @param {number[]} repeats
   * @param {Parts} parts
   */
  async measure(repeats, parts) {
    for (let first = 0; first < this.steps.length; first += PAIRS) {
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
    const steps = this.steps.slice(first, first + PAIRS);
    const commands = device.createCommandEncoder();
    steps.forEach((step, k) => {
      const before = { querySet, beginningOfPassWriteIndex: 2 * k };
      const after = { querySet, endOfPassWriteIndex: 2 * k + 1 };
      // A copy is outside of passes: empty passes around it write the times.
      if (!step.pipeline) commands.beginComputePass({ timestampWrites: before }).end();
      encode(commands, step, repeats[first + k], { timestampWrites: { ...before, ...after } });
      if (!step.pipeline) commands.beginComputePass({ timestampWrites: after }).end();
    });
    // Resolve only queries that were written: some drivers wait for others for ever.
    commands.resolveQuerySet(querySet, 0, 2 * steps.length, this.room, 0);
    commands.copyBufferToBuffer(this.room, 0, this.staging, 0, 16 * steps.length);
    device.queue.submit([commands.finish()]);
    await mapped(device, this.staging);
    const ticks = new BigInt64Array(this.staging.getMappedRange());
    steps.forEach((_, k) => (parts[first + k] += Math.max(0, Number(ticks[2 * k + 1] - ticks[2 * k]) / 1e6)));
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
   * @param {GpuCommand[]} steps
   */
  constructor(gpu, steps) {
    this.gpu = gpu;
    this.steps = steps;
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
    for (const [k, step] of this.steps.entries()) {
      const took = await this.#took((commands) => encode(commands, step, repeats[k]));
      parts[k] += Math.max(0, took - least);
    }
  }

  /** @param {(commands: GPUCommandEncoder) => void} fill */
  #took(fill) {
    const { device } = this.gpu;
    return this.gpu.guard(async () => {
      const commands = device.createCommandEncoder();
      fill(commands);
      commands.copyBufferToBuffer(this.room, 0, this.staging, 0, 16);
      const work = commands.finish();
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
function reported(device, work, { clock, runs, run, upload, steps, readback, calls }) {
  /** @type {Map<string, Kernel>} */
  const kernels = new Map();
  // A kernel that moves no bytes has no workgroups: another does the work at these sizes.
  const ran = work.map((step, k) => ({ ...step, seconds: steps[k], count: calls?.[k] ?? 1 })).filter(({ bytes }) => bytes !== 0);
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
 * In Chrome's trace format: the page's work on one line; on another the steps, one after the other, in their mean times.
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
    name("thread_name", `${device}: steps`, line),
    event("upload", "page", page, upload, {}),
    ...ran.map(({ label, kind, output, flops, bytes, seconds }) => event(label, kind, line, seconds, { output, flops, bytes })),
    event("readback", "page", page, readback, {}),
  ];
  return { traceEvents, displayTimeUnit: "ms", otherData: { singe: VERSION, device, clock } };
}
