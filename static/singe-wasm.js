/**
 * The device "wasm": one linear memory for a model, and the modules that work in it.
 *
 * Contract: `open(target, files)` gives { memory, run, dispose }. The memory holds 256 unused bytes, then the weights,
 * which are downloaded into it, then a run's slots, inputs and outputs. It grows to the largest run and never moves what
 * lies in it. `run` is synchronous, gets checked inputs, and returns copies.
 */

import { ARRAYS, Recent, SingeError, align, areasOf, bytesOf, chooseVariant, evaluate, outputsOf, spanOf } from "./singe-format.js";

const PAGE = 65536;
const START = 256;
const PLANS = 8;

/** A feature ↦ the smallest module that needs it. */
const PROBES = {
  simd: [1, 5, 1, 96, 0, 1, 123, 3, 2, 1, 0, 10, 10, 1, 8, 0, 65, 0, 253, 15, 253, 98, 11],
  "relaxed-simd": [
    1, 5, 1, 96, 0, 1, 123, 3, 2, 1, 0, 10, 15, 1, 13, 0, 65, 1, 253, 15, 65, 2, 253, 15, 253, 128, 2, 11,
  ],
};
const HEAD = [0, 97, 115, 109, 1, 0, 0, 0];

export function features() {
  const has = (name) => WebAssembly.validate(new Uint8Array([...HEAD, ...PROBES[name]]));
  return new Set(Object.keys(PROBES).filter(has));
}

export function open(target, files) {
  const able = typeof WebAssembly === "object" ? features() : new Set();
  if (!able.has("simd")) throw new SingeError("device", "this engine has no WebAssembly SIMD");
  const entries = target.program.kernels.map((kernel) => chooseVariant(kernel, able).entry.split(":"));
  const names = [...new Set(entries.map(([name]) => name))];
  for (const name of names) {
    if (!Object.hasOwn(target.modules, name)) throw new SingeError("format", `the bundle has no module ${name}`);
  }
  files.expect([...names.map((name) => target.modules[name]), ...target.weights]);
  return load(target, files, entries, names);
}

async function load({ program, modules, weights }, files, entries, names) {
  const weightBytes = weights.reduce((sum, w) => sum + spanOf(w), 0);
  const memory = allocate(START + align(weightBytes));
  const view = (at, bytes) => new Uint8Array(memory.buffer, START + at, bytes);
  const [linked] = await Promise.all([
    Promise.all(names.map(async (name) => compile(await files.bytes(modules[name]), name))),
    files.each(weights, (file, at) => files.into(file, view(at, spanOf(file)))),
  ]);
  files.phase("compile");
  const exports = Object.fromEntries(linked.map((module, k) => [names[k], instantiate(module, memory)]));
  const functions = program.kernels.map((kernel, k) => functionOf(exports, kernel, entries[k]));
  return new Device(program, memory, functions, START + align(weightBytes));
}

const noMemory = (bytes, cause) =>
  new SingeError("device", `no WebAssembly memory of ${bytes} bytes here`, cause);

function allocate(bytes) {
  try {
    return new WebAssembly.Memory({ initial: Math.ceil(bytes / PAGE) });
  } catch (cause) {
    throw noMemory(bytes, cause);
  }
}

async function compile(bytes, name) {
  const bad = (what, cause) => new SingeError("format", `the module ${name} ${what}`, cause);
  const module = await WebAssembly.compile(bytes).catch(async (cause) => {
    if (await WebAssembly.compile(new Uint8Array(HEAD)).catch(() => {})) throw bad(`does not compile: ${cause.message}`, cause);
    throw new SingeError("device", "WebAssembly needs 'wasm-unsafe-eval' in the page's script-src", cause);
  });
  const imports = WebAssembly.Module.imports(module);
  if (imports.every((i) => i.module === "env" && i.name === "memory" && i.kind === "memory")) return module;
  throw bad("imports more than env.memory");
}

function instantiate(module, memory) {
  try {
    return new WebAssembly.Instance(module, { env: { memory } }).exports;
  } catch (cause) {
    throw new SingeError("format", `a module does not link: ${cause.message}`, cause);
  }
}

function functionOf(exports, kernel, [module, name]) {
  const found = Object.hasOwn(exports[module], name) ? exports[module][name] : undefined;
  const takes = kernel.ports + kernel.sizes.length;
  if (typeof found === "function" && found.length === takes) return found;
  throw new SingeError("format", `the module ${module} has no function ${name} of ${takes} arguments`);
}

class Device {
  #program;
  #memory;
  #functions;
  #base;
  #plans = new Recent(PLANS, (sizes) => this.#plan(sizes));

  constructor(program, memory, functions, base) {
    this.#program = program;
    this.#memory = memory;
    this.#functions = functions;
    this.#base = base;
  }

  get memory() {
    return { gpu: 0, wasm: this.#memory?.buffer.byteLength ?? 0, js: 0 };
  }

  /** Inputs are typed arrays of the dtypes' own elements, in order; outputs are { data, shape, dtype }, in order. */
  run(inputs, sizes, onGpu, each = (step) => step()) {
    const plan = this.#plans.at(sizes);
    inputs.forEach((data, k) => {
      const bytes = new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
      new Uint8Array(this.#memory.buffer).set(bytes, plan.inputs[k]);
    });
    try {
      plan.steps.forEach(each);
    } catch (cause) {
      throw new SingeError("format", `a kernel trapped: ${cause.message}`, cause);
    }
    return plan.outputs.map(({ index, count, shape, dtype }) => {
      const data = new ARRAYS[dtype](this.#memory.buffer, plan.addresses[index], count).slice();
      return { data, shape: [...shape], dtype };
    });
  }

  #plan(sizes) {
    const { inputs, steps } = this.#program;
    const addresses = this.#layOut(sizes);
    return {
      steps: steps.map((step) => this.#step(step, addresses, sizes)),
      inputs: inputs.map((i) => addresses[i]),
      outputs: outputsOf(this.#program, sizes),
      addresses,
    };
  }

  #layOut(sizes) {
    let end = this.#base;
    const starts = { weights: START };
    for (const [kind, areas] of Object.entries(areasOf(this.#program, sizes))) {
      starts[kind] = areas.map((bytes) => (end += bytes) - bytes);
    }
    this.#grow(end);
    return this.#program.buffers.map(({ place: [kind, k] }) => (kind === "weights" ? START + k : starts[kind][k]));
  }

  #grow(bytes) {
    const missing = Math.ceil((bytes - this.#memory.buffer.byteLength) / PAGE);
    if (missing <= 0) return;
    try {
      this.#memory.grow(missing);
    } catch (cause) {
      throw noMemory(bytes, cause);
    }
  }

  #step(step, addresses, sizes) {
    if (step.do === "copy") {
      const [source, target] = [addresses[step.source], addresses[step.target]];
      const count = bytesOf(this.#program.buffers[step.source], sizes);
      return () => new Uint8Array(this.#memory.buffer).copyWithin(target, source, source + count);
    }
    const call = this.#functions[step.kernel];
    const values = this.#program.kernels[step.kernel].sizes.map((dim) => evaluate(dim, sizes));
    const given = [...step.buffers.map((i) => addresses[i]), ...values];
    return () => call(...given);
  }

  dispose() {
    this.#memory = undefined;
    this.#functions = [];
  }
}
