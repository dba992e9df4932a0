/**
 * The format `singe/2` as a runner sees it: errors, dimensions, and a manifest that has been checked.
 *
 * What `checkManifest` and `checkTarget` let through is safe to use: its counts, indices, places, sizes and names of
 * files are checked. All else is a SingeError "format".
 */

/** @import * as types from "../types/public.d.ts" */
/** @import { DType } from "../types/public.d.ts" */
/** @import { ArrayClass, Areas, Atom, Dim, Manifest, PlaceKind, PlainStep, Program, ProgramPart, ProgramBuffer, ProgramKernel, Row, SizedOutput, Sizes, StepTable, Target, Tensor, Unchecked, Variant, WeightsEntry } from "../types/program.d.ts" */
/** @import * as plans from "./singe-plan.js" */

const FORMAT = "singe/2";
export const VERSION = "0.1.0";

/** @implements {types.SingeError} */
export class SingeError extends Error {
  /**
   * @param {types.Code} code
   * @param {string} message
   * @param {unknown} [cause]
   */
  constructor(code, message, cause) {
    super(message, { cause });
    this.name = "SingeError";
    this.code = code;
  }
}

/**
 * A value as an error shows it.
 * @param {unknown} value
 */
export function textOf(value) {
  try {
    return JSON.stringify(value, (_, part) => (typeof part === "bigint" ? `${part}n` : part)) ?? typeof value;
  } catch {
    return typeof value; // it holds itself
  }
}

const { slice } = Object.getPrototypeOf(Int8Array.prototype);

/**
 * A copy of a typed array: the `slice` of a class of others may share memory.
 * @template {ArrayBufferView} T
 * @param {T} array
 * @returns {T}
 */
export const copyOf = (array) => slice.call(array);

/**
 * dtype ↦ the array that a caller gives and gets; a device may store wider elements.
 * @type {Record<DType, ArrayClass>}
 */
export const ARRAYS = {
  bool: Uint8Array,
  int2: Int8Array,
  uint2: Uint8Array,
  int4: Int8Array,
  uint4: Uint8Array,
  int8: Int8Array,
  uint8: Uint8Array,
  int16: Int16Array,
  uint16: Uint16Array,
  int32: Int32Array,
  uint32: Uint32Array,
  int64: BigInt64Array,
  uint64: BigUint64Array,
  float4_e2m1fn: Uint8Array,
  float6_e2m3fn: Uint8Array,
  float6_e3m2fn: Uint8Array,
  float8_e4m3fn: Uint8Array,
  float8_e4m3fnuz: Uint8Array,
  float8_e5m2: Uint8Array,
  float8_e5m2fnuz: Uint8Array,
  float8_e8m0fnu: Uint8Array,
  float16: Uint16Array,
  bfloat16: Uint16Array,
  float32: Float32Array,
  float64: Float64Array,
};

const LARGEST = 2 ** 48;
const DEEPEST = 32;
const ALIGN = 256;

/**
 * @param {number} bytes
 * @param {number} [to]
 * @returns {number}
 */
export const align = (bytes, to = ALIGN) => Math.ceil(bytes / to) * to;

/** @type {Record<string, (a: number, b: number) => number>} */
const WORDS = {
  div: (a, b) => Math.floor(a / b),
  mod: (a, b) => a - b * Math.floor(a / b),
  max: Math.max,
  min: Math.min,
};

/**
 * A dimension is an integer, or a sum of terms [coefficient, atom…].
 * @param {Dim} dim
 * @param {Sizes} sizes
 * @returns {number}
 */
export function evaluate(dim, sizes) {
  if (typeof dim === "number") return dim;
  const atom = (/** @type {Atom} */ a) => (typeof a === "string" ? sizes[a] : WORDS[a[0]](evaluate(a[1], sizes), evaluate(a[2], sizes)));
  const value = dim.reduce((sum, [factor, ...atoms]) => atoms.reduce((product, a) => product * atom(a), factor) + sum, 0);
  if (!Number.isSafeInteger(value)) throw new SingeError("input", `a dimension comes out as ${value} at these sizes`);
  return value;
}

/**
 * The name of the size that a dimension is, if it is one by itself.
 * @param {Dim | undefined} dim
 * @returns {string | undefined}
 */
export const sizeName = (dim) => (Array.isArray(dim) && dim.length === 1 && dim[0].length === 2 && dim[0][0] === 1 && typeof dim[0][1] === "string" ? dim[0][1] : undefined);

/**
 * Values by names of a bundle: none is looked up in a prototype, and none means anything, as `__proto__` does elsewhere.
 * @template T
 * @param {(Record<string, T> | undefined)[]} parts
 * @returns {Record<string, T>}
 */
export const byName = (...parts) => Object.assign(Object.create(null), ...parts);

/**
 * A shape to read; "?" is computed from sizes.
 * @param {Dim[]} shape
 * @returns {(number | string)[]}
 */
export const shownShape = (shape) => shape.map((d) => (typeof d === "number" ? d : (sizeName(d) ?? "?")));

/**
 * @param {{ shape: Dim[] }} buffer
 * @param {Sizes} sizes
 * @returns {number[]}
 */
export const shapeOf = (buffer, sizes) => buffer.shape.map((d) => evaluate(d, sizes));

/**
 * How many elements a shape has; more than any memory holds is an error.
 * @param {number[]} shape
 * @returns {number}
 */
export function countOf(shape) {
  const count = shape.reduce((product, d) => product * d, 1);
  if (shape.some((d) => d < 0) || count >= LARGEST) {
    throw new SingeError("input", `a tensor of shape (${shape.join(", ")}) cannot be: ${count} elements`);
  }
  return count;
}

/**
 * @param {Pick<ProgramBuffer, "shape" | "size">} buffer
 * @param {Sizes} sizes
 * @returns {number}
 */
export const bytesOf = (buffer, sizes) => countOf(shapeOf(buffer, sizes)) * buffer.size;

/**
 * The bytes of every slot, input and output at these sizes: the largest of the buffers that lie there, aligned.
 * @param {Program} program
 * @param {Sizes} sizes
 * @returns {Areas}
 */
export function areasOf(program, sizes) {
  const areas = {
    slot: Array(program.slots).fill(ALIGN),
    input: program.inputs.map(() => ALIGN),
    output: program.outputs.map(() => ALIGN),
  };
  for (const { dim, text } of program.checks) {
    if (!(evaluate(dim, sizes) >= 0)) throw new SingeError("input", text);
  }
  for (const buffer of program.buffers) {
    const [kind, k] = buffer.place;
    if (kind !== "weights" && kind !== "state") areas[kind][k] = Math.max(areas[kind][k], align(bytesOf(buffer, sizes)));
  }
  return areas;
}

/**
 * @param {Pick<Program, "buffers" | "outputs">} program
 * @param {Sizes} sizes
 * @returns {SizedOutput[]}
 */
export const outputsOf = ({ buffers, outputs }, sizes) =>
  outputs.map((index) => {
    const shape = shapeOf(buffers[index], sizes);
    const count = countOf(shape);
    return { ...buffers[index], index, shape, count, bytes: count * buffers[index].size };
  });

/**
 * A cache of `make(...given)` for the last few `given`; `free` is called on dropped values.
 * @template {unknown[]} Given
 * @template T
 */
export class Recent {
  /** @type {Map<string, T>} */
  #kept = new Map();

  /**
   * @param {number} most
   * @param {(...given: Given) => T} make
   * @param {(value: T) => void} [free]
   */
  constructor(most, make, free = () => {}) {
    this.most = most;
    this.make = make;
    this.free = free;
  }

  /** @param {Given} given */
  has(...given) {
    return this.#kept.has(JSON.stringify(given));
  }

  /**
   * @param {Given} given
   * @returns {T}
   */
  at(...given) {
    const key = JSON.stringify(given);
    let found = this.#kept.get(key);
    if (!found && this.#kept.size >= this.most) {
      const [[oldest, old]] = this.#kept;
      this.#kept.delete(oldest);
      this.free(old);
    }
    found ??= this.make(...given);
    this.#kept.delete(key);
    this.#kept.set(key, found);
    return found;
  }

  clear() {
    this.#kept.forEach(this.free);
    this.#kept.clear();
  }
}

/**
 * @param {unknown} ok
 * @param {string} what
 * @returns {asserts ok}
 */
export function need(ok, what) {
  if (!ok) throw new SingeError("format", `the bundle is not as ${FORMAT} says: ${what}`);
}

/**
 * The kinds of values; errors show their names.
 * @type {Record<"text" | "object" | "count" | "dimension" | "dtype" | "version" | "sha256" | "plain file name", (value: Unchecked) => boolean>}
 */
export const IS = {
  text: (value) => typeof value === "string",
  object: (value) => typeof value === "object" && value !== null && !Array.isArray(value),
  count: (value) => Number.isInteger(value) && value >= 0 && value < LARGEST,
  dimension: (value) => (typeof value === "number" ? IS.count(value) : isDim(value)),
  dtype: (value) => IS.text(value) && Object.hasOwn(ARRAYS, value),
  version: (value) => IS.text(value) && /^\d+\.\d+\.\d+$/.test(value),
  sha256: (value) => IS.text(value) && /^[0-9a-f]{64}$/.test(value),
  "plain file name": (value) => IS.text(value) && /^[\w-][\w.-]*$/.test(value), // nothing leads out of the folder
};

const TENSOR = { name: IS.text, dtype: IS.dtype, shape: [IS.dimension] };
const FILE = { file: IS["plain file name"], bytes: IS.count, sha256: IS.sha256 };
const MANIFEST = {
  singe: IS.version,
  runner: { least: IS.version, below: IS.version },
  name: IS.text,
  inputs: [TENSOR],
  outputs: [TENSOR],
  targets: IS.object,
};
const PART = { slots: IS.count, buffers: [{ ...TENSOR, place: [] }], steps: [{}], checks: [] };
const PROGRAM = { ...PART, inputs: [IS.count], outputs: [IS.count], states: [], bounds: {}, specialised: [{ ...PART, sizes: {} }] };

/**
 * Check a value against a row: a function of IS, a list of such rows, or an object of them.
 * @param {Unchecked} value
 * @param {Row} row
 * @param {string} what
 * @returns {void}
 */
export function check(value, row, what) {
  const shown = typeof value === "object" ? "another" : JSON.stringify(value);
  if (typeof row === "function") return need(row(value), `${what} is ${shown}, expected a ${row.name}`);
  if (Array.isArray(row)) {
    need(Array.isArray(value), `${what} is not a list`);
    if (row.length) value.forEach((item, k) => check(item, row[0], `${what}[${k}]`));
    return;
  }
  need(IS.object(value), `${what} is not an object`);
  for (const [key, inner] of Object.entries(row)) check(value[key], inner, `${what}.${key}`);
}

/**
 * @param {Unchecked} dim
 * @param {Set<string | undefined>} [known]
 * @param {number} [depth]
 * @returns {boolean}
 */
export function isDim(dim, known, depth = 0) {
  if (typeof dim === "number") return Number.isSafeInteger(dim);
  const isAtom = (/** @type {Unchecked} */ atom) => {
    if (IS.text(atom)) return !known || known.has(atom);
    const [word, ...sides] = Array.isArray(atom) ? atom : [];
    return Object.hasOwn(WORDS, word) && sides.length === 2 && sides.every((side) => isDim(side, known, depth + 1));
  };
  const isTerm = (/** @type {Unchecked} */ term) => Array.isArray(term) && Number.isSafeInteger(term[0]) && term.slice(1).every(isAtom);
  return depth <= DEEPEST && Array.isArray(dim) && dim.every(isTerm);
}

/** @param {WeightsEntry[]} pieces */
export const sumOf = (pieces) => pieces.reduce((sum, piece) => sum + spanOf(piece), 0);

/**
 * @param {Pick<WeightsEntry, "bytes" | "parts" | "decoded">} piece
 * @returns {number}
 */
export const spanOf = ({ bytes, parts, decoded }) => /** @type {number} */ (parts ? decoded : bytes);

/**
 * A piece of the weights; singe-decode.js checks the parts of an encoded one.
 * @param {Unchecked} piece
 * @param {string} what
 */
function checkPiece({ bytes, parts, decoded }, what) {
  if (parts === undefined) return;
  check(parts, [IS.object], `${what}.parts`);
  need(IS.count(decoded) && decoded <= 16 * bytes + ALIGN * parts.length, `${what} decodes to ${decoded} bytes`);
}

/**
 * The manifest, `model.json`, without its targets.
 * @param {Unchecked} manifest
 * @returns {Promise<Manifest>}
 */
export async function checkManifest(manifest) {
  check(manifest, {}, "the manifest");
  const { format, targets, image, labels } = manifest;
  need(format === FORMAT, `its format is ${JSON.stringify(format)}`);
  check(manifest, MANIFEST, "model.json");
  if (manifest.singe !== VERSION) (await import("./singe-versions.js")).checkVersions(manifest, SingeError, VERSION);
  if (image !== null) check(image, {}, "image");
  if (labels !== null) check(labels, FILE.file, "labels");
  need(targets.wasm || targets.webgpu, "it has no target");
  return manifest;
}

/**
 * A target of a manifest: { program, modules, weights }, for programs of this kind; `planner` imports singe-plan.js.
 * @param {Manifest} manifest
 * @param {"wasm" | "webgpu"} name
 * @param {"wasm" | "wgsl"} kind
 * @param {() => Promise<typeof plans>} planner
 * @returns {Promise<Target>}
 */
export async function checkTarget(manifest, name, kind, planner) {
  const target = /** @type {Target} */ (manifest.targets[name]);
  check(target, { weights: [FILE], modules: IS.object }, name);
  const { program, modules, weights } = target;
  weights.forEach((piece, k) => checkPiece(piece, `${name}.weights[${k}]`));
  weights.slice(0, -1).forEach((w) => need(spanOf(w) % 4 === 0, `${w.file} ends within a word`));
  if (kind === "wasm") Object.entries(modules).forEach(([name, file]) => check(file, FILE, name));
  else check(modules, FILE, "modules");
  check(program, PROGRAM, "program");
  const plan = isPlain(program) ? undefined : await planner();
  (plan?.partsOf(program) ?? [program]).forEach((part) => checkProgram(part, kind, plan, sumOf(weights)));
  for (const side of /** @type {const} */ (["inputs", "outputs"])) {
    const say = (/** @type {Tensor[]} */ tensors) => JSON.stringify(tensors.map(({ name, dtype, shape }) => [name, dtype, shape]));
    const [told, found] = [say(manifest[side]), say(program[side].map((i) => program.buffers[i]))];
    need(told === found, `its ${side} are ${told}, those of its program for ${name} ${found}`);
  }
  return target;
}

/**
 * Only calls and copies, the same at all sizes.
 * @param {Program} program
 */
export const isPlain = ({ states, steps, bounds, specialised }) =>
  ![...states, ...specialised, ...Object.keys(bounds)].length && steps.every((step) => Object.hasOwn(STEPS, step.do));

/**
 * @param {Program} program
 * @param {"wasm" | "wgsl"} kind
 * @param {typeof plans | undefined} plan
 * @param {number} weightBytes
 */
function checkProgram(program, kind, plan, weightBytes) {
  const { format, target, inputs, outputs, slots, buffers, kernels, steps, states } = program;
  need(format === FORMAT && target === kind, `the program is ${format} for ${target}, expected ${FORMAT} for ${kind}`);
  const checkIndices = (/** @type {number[]} */ indices, /** @type {string} */ what) =>
    need(
      indices.every((i) => buffers[i]),
      `${what} ${indices} are not all buffers`,
    );
  checkIndices(inputs, "inputs");
  checkIndices(outputs, "outputs");
  need(slots <= buffers.length, `${slots} slots for ${buffers.length} buffers`);

  const known = new Set(inputs.flatMap((i) => buffers[i].shape.map(sizeName)));
  known.delete(undefined);
  plan?.sizesFound(/** @type {ProgramPart} */ (program)).forEach((name) => known.add(name));
  const dimension = (/** @type {Unchecked} */ value) => isDim(value, known);
  const variant = { entry: IS.text, requires: [IS.text], groups: [dimension] };
  check(buffers, [{ shape: [dimension] }], "buffers");
  check(program.checks, [{ dim: dimension, text: IS.text }], "checks");
  check(kernels, [{ label: IS.text, ports: IS.count, sizes: [dimension], variants: [variant] }], "kernels");
  kernels.forEach(({ variants }, k) => {
    need(variants.length > 0 && variants.every((v) => v.groups.length === 3), `kernels[${k}] has no variants in 3 directions`);
  });
  const ends = { weights: LARGEST, slot: slots, input: inputs.length, output: outputs.length, state: states.length };
  buffers.forEach((buffer, i) => checkPlace(buffer, `buffers[${i}]`, ends, weightBytes));
  inputs.forEach((i, k) => need(buffers[i].place.join() === `input,${k}`, `input ${k} lies in ${buffers[i].place}`));
  if (plan) plan.checkSteps(/** @type {ProgramPart} */ (program));
  else steps.forEach((step, k) => checkStep(/** @type {PlainStep} */ (step), `steps[${k}]`, kernels, checkIndices));
}

/**
 * @param {ProgramBuffer} buffer
 * @param {string} what
 * @param {Record<PlaceKind, number>} ends
 * @param {number} weightBytes
 */
function checkPlace({ dtype, shape, size, place: [kind, at] }, what, ends, weightBytes) {
  const own = ARRAYS[dtype].BYTES_PER_ELEMENT;
  need(size === own || (size === 4 && own < 4 && dtype !== "float16"), `${what}: ${dtype} of ${size} bytes`);
  need(IS.text(kind) && Object.hasOwn(ends, kind) && IS.count(at) && at < ends[kind], `${what} lies in ${kind} ${at}`);
  if (kind !== "weights") return;
  need(shape.every(IS.count), `${what} is a weight of open size`);
  const end = /** @type {number[]} */ (shape).reduce((product, d) => product * d, size) + at;
  need(at % ALIGN === 0 && end <= weightBytes, `${what} ends at ${end} of ${weightBytes}`);
}

/**
 * The buffers that a step of a plain program names.
 * @type {StepTable<PlainStep, number[]>}
 */
const STEPS = {
  dispatch: (step) => step.buffers,
  copy: (step) => [step.source, step.target],
};

/**
 * @param {PlainStep} step
 * @param {string} what
 * @param {ProgramKernel[]} kernels
 * @param {(indices: number[], what: string) => void} checkIndices
 */
function checkStep(step, what, kernels, checkIndices) {
  const named = /** @type {(step: PlainStep) => number[]} */ (STEPS[step.do])(step);
  check(named, [IS.count], what);
  checkIndices(named, what);
  if (step.do === "copy") return;
  const ports = IS.count(step.kernel) && kernels[step.kernel]?.ports;
  need(named.length === ports, `${what} gives ${named.length} buffers to kernel ${step.kernel}, which takes ${ports}`);
}

/**
 * The first variant of a kernel that a device with these features runs.
 * @param {ProgramKernel} kernel
 * @param {Set<string>} features
 * @returns {Variant}
 */
export function chooseVariant(kernel, features) {
  const found = kernel.variants.find((v) => v.requires.every((word) => features.has(word)));
  if (found) return found;
  const wanted = kernel.variants.map((v) => v.requires.join(" and ")).join(", or ");
  throw new SingeError("device", `the kernel ${kernel.label} needs ${wanted}, which this device lacks`);
}
