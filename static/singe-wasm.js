/**
 * The device "wasm": one linear memory for a model, and the modules that work in it.
 *
 * Contract: `open(target, files)` gives { memory, run, dispose }. The memory holds 256 unused bytes, then the weights,
 * which are downloaded into it, then a run's slots, inputs and outputs. It grows to the largest run and never moves what
 * lies in it. `run` gets checked inputs and gives copies. Where memory can be shared, a team of singe-threads.js has a say.
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

export function open(target, files, gpuDevice, threads) {
  const able = typeof WebAssembly === "object" ? features() : new Set();
  if (!able.has("simd")) throw new SingeError("device", "this engine has no WebAssembly SIMD");
  const entries = target.program.kernels.map((kernel) => chooseVariant(kernel, able).entry.split(":"));
  const names = [...new Set(entries.map(([name]) => name))];
  for (const name of names) {
    if (!Object.hasOwn(target.modules, name)) throw new SingeError("format", `the bundle has no module ${name}`);
  }
  files.expect([...names.map((name) => target.modules[name]), ...target.weights]);
  return load(target, files, entries, names, threads);
}

async function load({ program, modules, weights }, files, entries, names, threads) {
  const base = START + align(weights.reduce((sum, w) => sum + spanOf(w), 0));
  const shares = threads !== 1 && (globalThis.crossOriginIsolated ?? globalThis.process);
  const team = shares && (await import("./singe-threads.js").catch(() => {}));
  const shared = team?.allocate?.(Math.ceil(base / PAGE));
  const memory = shared ?? allocate(base);
  const view = (at, bytes) => new Uint8Array(memory.buffer, START + at, bytes);
  const fetched = async (name) => {
    const bytes = await files.bytes(modules[name]);
    return [name, await compile(shared ? team.sharing(bytes) : bytes, name)];
  };
  const [linked] = await Promise.all([
    Promise.all(names.map(fetched)).then(Object.fromEntries),
    files.each(weights, (file, at) => files.into(file, view(at, spanOf(file)))),
  ]);
  files.phase("compile");
  const exports = Object.fromEntries(names.map((name) => [name, instantiate(linked[name], memory)]));
  const functions = program.kernels.map((kernel, k) => functionOf(exports, kernel, entries[k]));
  const device = new Device(program, memory, functions, base);
  if (shared) device.team = await team.gather({ program, device, memory, modules: linked, entries, threads });
  return device;
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
  const takes = kernel.ports + kernel.sizes.length + 2;
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

  get threads() {
    return this.team?.threads ?? 1;
  }

  /** Inputs are typed arrays of the dtypes' own elements, in order; outputs are { data, shape, dtype }, in order. */
  async run(inputs, sizes) {
    const plan = this.#plans.at(sizes);
    inputs.forEach((data, k) => {
      const bytes = new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
      new Uint8Array(this.#memory.buffer).set(bytes, plan.inputs[k]);
    });
    const alone = () => plan.steps.forEach(({ call, given }) => call(...given));
    try {
      if (this.team) await this.team.run(plan, alone);
      else alone();
    } catch (cause) {
      throw cause.code ? cause : new SingeError("format", `a kernel trapped: ${cause.message}`, cause);
    }
    return plan.outputs.map(({ index, count, shape, dtype }) => {
      const data = new ARRAYS[dtype](this.#memory.buffer, plan.addresses[index], count).slice();
      return { data, shape: [...shape], dtype };
    });
  }

  #plan(sizes) {
    const { inputs, steps } = this.#program;
    const { addresses, end } = this.#layOut(sizes);
    return {
      sizes,
      end,
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
    this.reserve(end);
    const place = ({ place: [kind, k] }) => (kind === "weights" ? START + k : starts[kind][k]);
    return { addresses: this.#program.buffers.map(place), end };
  }

  /** Have so many bytes of memory at least. */
  reserve(bytes) {
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
      const call = (...given) => new Uint8Array(this.#memory.buffer).copyWithin(...given);
      return { call, given: [target, source, source + count] };
    }
    const values = this.#program.kernels[step.kernel].sizes.map((dim) => evaluate(dim, sizes));
    return { call: this.#functions[step.kernel], given: [...step.buffers.map((i) => addresses[i]), ...values, 0, 1] };
  }

  dispose() {
    this.#memory = undefined;
    this.#functions = [];
    this.team?.dispose();
  }
}
