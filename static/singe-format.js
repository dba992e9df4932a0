/**
 * The format `singe/1` as a runner sees it: errors, dimensions, and a manifest that has been checked.
 *
 * Contract: whatever `checkManifest` and `checkProgram` let through is safe to use. Every count is a count, every index
 * points at something, every weight lies in its block, every size is some input's dimension, every file is a plain name
 * beside the manifest. What they do not let through is a SingeError of the code "format". See static/README.md.
 */

export const FORMAT = "singe/1";
export const VERSION = "0.1.0";
/** The oldest Singe whose bundles this runner reads. */
const OLDEST = "0.1.0";

/** An error that a program can tell apart by its `code`: see singe.d.ts for the codes. */
export class SingeError extends Error {
  constructor(code, message, cause) {
    super(message, { cause });
    this.name = "SingeError";
    this.code = code;
  }
}

/** dtype ↦ the array that a caller gives and gets. Its element is the dtype's own; a device may store a wider one. */
export const ARRAYS = {
  bool: Uint8Array,
  uint8: Uint8Array,
  int32: Int32Array,
  int64: BigInt64Array,
  float16: Uint16Array,
  float32: Float32Array,
};

const LARGEST = 2 ** 48;
const DEEPEST = 32;
const ALIGN = 256;
const DEVICES = ["wasm", "webgpu"];
const PLACES = ["weights", "slot", "input", "output"];

export const align = (bytes, to = ALIGN) => Math.ceil(bytes / to) * to;

// --- dimensions ------------------------------------------------------------------------------------------------------

const WORDS = {
  div: (a, b) => Math.floor(a / b),
  mod: (a, b) => a - b * Math.floor(a / b),
  max: Math.max,
  min: Math.min,
};

/** The value of a dimension: an integer, or terms [coefficient, atom…] that are added. */
export function evaluate(dim, sizes) {
  if (typeof dim === "number") return dim;
  const atom = (a) => (typeof a === "string" ? sizes[a] : WORDS[a[0]](evaluate(a[1], sizes), evaluate(a[2], sizes)));
  const value = dim.reduce((sum, [factor, ...atoms]) => atoms.reduce((product, a) => product * atom(a), factor) + sum, 0);
  if (!Number.isSafeInteger(value)) throw new SingeError("input", `a dimension comes out as ${value} at these sizes`);
  return value;
}

/** The name of the size that a dimension is, if it is one by itself. */
export const sizeName = (dim) =>
  Array.isArray(dim) && dim.length === 1 && dim[0].length === 2 && dim[0][0] === 1 && typeof dim[0][1] === "string"
    ? dim[0][1]
    : undefined;

/** A shape for people: (N, 3, …) */
export const showShape = (shape) =>
  `(${shape.map((d) => (typeof d === "number" ? d : (sizeName(d) ?? "…"))).join(", ")})`;

export const shapeOf = (buffer, sizes) => buffer.shape.map((d) => evaluate(d, sizes));

/** How many elements a shape has; more than any memory holds is an error. */
export function countOf(shape) {
  const count = shape.reduce((product, d) => product * d, 1);
  if (shape.some((d) => d < 0) || count >= LARGEST) {
    throw new SingeError("input", `a tensor of shape (${shape.join(", ")}) cannot be: ${count} elements`);
  }
  return count;
}

export const bytesOf = (buffer, sizes) => countOf(shapeOf(buffer, sizes)) * buffer.size;

/** The bytes of every slot, input and output at these sizes: the largest of the buffers that lie there, aligned. */
export function areasOf(program, sizes) {
  const areas = {
    slot: Array(program.slots).fill(ALIGN),
    input: program.inputs.map(() => ALIGN),
    output: program.outputs.map(() => ALIGN),
  };
  for (const buffer of program.buffers) {
    const [kind, k] = buffer.place;
    if (kind !== "weights") areas[kind][k] = Math.max(areas[kind][k], align(bytesOf(buffer, sizes)));
  }
  return areas;
}

// --- what is checked -------------------------------------------------------------------------------------------------

function need(ok, what) {
  if (!ok) throw new SingeError("format", `the bundle is not as ${FORMAT} says: ${what}`);
}

const isObject = (value) => typeof value === "object" && value !== null && !Array.isArray(value);
const isCount = (value) => Number.isInteger(value) && value >= 0 && value < LARGEST;
const isIndex = (value, list) => isCount(value) && value < list.length;
const isText = (value) => typeof value === "string";

/** A list whose items pass `check(item, what)`. */
function list(value, what, check) {
  need(Array.isArray(value), `${what} is no list`);
  value.forEach((item, k) => check(item, `${what}[${k}]`));
}

function object(value, what) {
  need(isObject(value), `${what} is no object`);
  return value;
}

/** A dimension, of sizes that `known` has. */
function checkDim(dim, what, known, depth = 0) {
  if (typeof dim === "number") return need(Number.isSafeInteger(dim), `${what} is no integer`);
  need(depth <= DEEPEST, `${what} is nested more than ${DEEPEST} deep`);
  list(dim, what, (term) => {
    need(Array.isArray(term) && Number.isSafeInteger(term[0]), `${what} has a term without its number`);
    for (const atom of term.slice(1)) {
      if (isText(atom)) {
        need(!known || known.has(atom), `${what} is of the size ${atom}, which no input tells`);
        continue;
      }
      need(Array.isArray(atom) && atom.length === 3 && Object.hasOwn(WORDS, atom[0]), `${what} has an unknown word`);
      checkDim(atom[1], what, known, depth + 1);
      checkDim(atom[2], what, known, depth + 1);
    }
  });
}

function checkTensor({ name, dtype, shape }, what, known) {
  need(isText(name), `${what} has no name`);
  need(isText(dtype) && Object.hasOwn(ARRAYS, dtype), `${what} is of the dtype ${dtype}`);
  list(shape, `${what}.shape`, (dim, where) => {
    checkDim(dim, where, known);
    need(typeof dim !== "number" || isCount(dim), `${where} is ${dim}`);
  });
}

/** Whether it is a plain name, so that nothing leads out of the bundle's folder. */
const isFileName = (value) => isText(value) && /^[\w-][\w.-]*$/.test(value);

function checkFile(entry, what) {
  const { file, bytes, sha256 } = object(entry, what);
  need(isFileName(file), `${what} is in the file ${JSON.stringify(file)}`);
  need(isCount(bytes), `${what} has ${bytes} bytes`);
  need(isText(sha256) && /^[0-9a-f]{64}$/.test(sha256), `${what} has no sha256`);
}

/** A piece of the weights; an encoded one says what it decodes to, and singe-decode.js checks its parts. */
function checkPiece(entry, what) {
  checkFile(entry, what);
  const { bytes, parts, decoded } = entry;
  if (parts === undefined) return;
  list(parts, `${what}.parts`, object);
  need(isCount(decoded) && decoded <= 4 * bytes + ALIGN * parts.length, `${what} decodes to ${decoded} bytes`);
}

/** How many bytes of the weights a piece holds. */
export const spanOf = ({ bytes, parts, decoded }) => (parts ? decoded : bytes);

/** Whether version a comes before version b; undefined where one is none. */
function before(a, b) {
  const [x, y] = [a, b].map((text) => /^(\d+)\.(\d+)\.(\d+)$/.exec(text)?.slice(1).map(Number));
  const at = x && y && x.findIndex((n, i) => n !== y[i]);
  return at === undefined ? undefined : at >= 0 && x[at] < y[at];
}

/** Whether the bundle is for this runner, and the runner for this bundle. */
function checkVersions(singe, runner) {
  need(isText(singe) && before(singe, OLDEST) !== undefined, `it was written by Singe ${JSON.stringify(singe)}`);
  const [least, below] = ["least", "below"].map((end) => object(runner, "runner")[end]);
  const [early, late] = [before(VERSION, least), before(VERSION, below)];
  need(early !== undefined && late !== undefined, "it does not say which runner it needs");
  if (before(singe, OLDEST) || early || !late) {
    const wanted = `needs a runner from ${least} to below ${below}`;
    const found = `this one is ${VERSION} and reads bundles from ${OLDEST} on`;
    throw new SingeError("format", `the bundle, by Singe ${singe}, ${wanted}; ${found}: export it again, or use its own singe.js`);
  }
}

/** The manifest, `model.json`, but for its programs, which `checkProgram` sees when one is chosen. */
export function checkManifest(manifest) {
  const { format, targets, name, image, labels } = object(manifest, "the manifest");
  if (format !== FORMAT) {
    throw new SingeError("format", `the bundle's format is ${JSON.stringify(format)}, this runner reads "${FORMAT}"`);
  }
  checkVersions(manifest.singe, manifest.runner);
  for (const side of ["inputs", "outputs"]) {
    list(manifest[side], side, (tensor, what) => checkTensor(object(tensor, what), what));
  }
  need(isText(name) && (image === null || isObject(image)), "it has no name, or no image");
  need(labels === null || isFileName(labels), `its labels are in the file ${JSON.stringify(labels)}`);
  need(isObject(targets) && DEVICES.some((t) => Object.hasOwn(targets, t)), "it has no target");
  for (const name of DEVICES.filter((t) => Object.hasOwn(targets, t))) {
    for (const side of ["inputs", "outputs"]) checkPorts(manifest[side], targets[name], side);
  }
  return manifest;
}

/** One target of the manifest: { program, modules, weights }; `kind` is the program's target, "wasm" or "wgsl". */
export function checkTarget(target, kind) {
  const { program, modules, weights } = object(target, "the target");
  list(weights, "weights", checkPiece);
  weights.slice(0, -1).forEach((w) => need(spanOf(w) % 4 === 0, `${w.file} ends within a word`));
  if (kind === "wasm") Object.entries(object(modules, "modules")).forEach(([name, file]) => checkFile(file, name));
  else checkFile(modules, "modules");
  checkProgram(program, kind, weights.reduce((sum, w) => sum + spanOf(w), 0));
}

/** That a program's inputs or outputs, `side`, are those of the manifest. */
function checkPorts(ports, target, side) {
  const { buffers, [side]: indices } = object(object(target, "a target").program, "its program");
  list(buffers, "buffers", object);
  list(indices, side, (i, what) => need(isIndex(i, buffers), `${what} is no buffer`));
  const say = (tensors) => JSON.stringify(tensors.map(({ name, dtype, shape }) => [name, dtype, shape]));
  const [told, found] = [say(ports), say(indices.map((i) => buffers[i]))];
  need(told === found, `its ${side} are ${told}, those of its program ${found}`);
}

function checkProgram(program, kind, weightBytes) {
  const { format, target, inputs, outputs, slots, buffers, kernels, steps } = object(program, "the program");
  need(format === FORMAT && target === kind, `the program is ${format} for ${target}, expected ${FORMAT} for ${kind}`);
  list(buffers, "buffers", object);
  list(inputs, "inputs", (i, what) => need(isIndex(i, buffers), `${what} is no buffer`));
  list(outputs, "outputs", (i, what) => need(isIndex(i, buffers), `${what} is no buffer`));
  need(isCount(slots) && slots <= buffers.length, `${slots} slots for ${buffers.length} buffers`);

  const known = new Set();
  for (const i of inputs) {
    checkTensor(buffers[i], `buffer ${i}`);
    buffers[i].shape.map(sizeName).forEach((name) => name !== undefined && known.add(name));
  }
  const ends = { weights: Infinity, slot: slots, input: inputs.length, output: outputs.length };
  buffers.forEach((buffer, i) => {
    checkTensor(buffer, `buffer ${i}`, known);
    checkPlace(buffer, `buffer ${i}`, ends, weightBytes);
  });
  inputs.forEach((i, k) => {
    const [kind, at] = buffers[i].place;
    need(kind === "input" && at === k, `input ${k} lies in ${kind} ${at}`);
  });
  list(kernels, "kernels", (kernel, what) => checkKernel(object(kernel, what), what, known));
  list(steps, "steps", (step, what) => checkStep(object(step, what), what, kernels, buffers));
}

function checkPlace({ dtype, shape, size, place }, what, ends, weightBytes) {
  const wide = ["bool", "uint8", "float16"].includes(dtype) ? 4 : 0;
  need(size === ARRAYS[dtype].BYTES_PER_ELEMENT || size === wide, `${what}: ${dtype} of ${size} bytes`);
  need(Array.isArray(place) && PLACES.includes(place[0]), `${what} has no place`);
  need(isCount(place[1]) && place[1] < ends[place[0]], `${what} lies in ${place[0]} ${place[1]}`);
  if (place[0] !== "weights") return;
  need(shape.every((d) => typeof d === "number"), `${what} is a weight of open size`);
  const end = place[1] + shape.reduce((product, d) => product * d, size);
  need(place[1] % ALIGN === 0 && end <= weightBytes, `${what} ends at ${end} of ${weightBytes}`);
}

function checkKernel({ label, ports, sizes, variants }, what, known) {
  need(isText(label) && isCount(ports), `${what} has no label or ports`);
  list(sizes, `${what}.sizes`, (dim, where) => checkDim(dim, where, known));
  list(variants, `${what}.variants`, (variant, where) => {
    const { entry, requires, groups } = object(variant, where);
    need(isText(entry), `${where} has no entry`);
    list(requires, `${where}.requires`, (word, at) => need(isText(word), `${at} is no feature`));
    list(groups, `${where}.groups`, (dim, at) => checkDim(dim, at, known));
    need(groups.length === 3, `${where} has ${groups.length} groups`);
  });
  need(variants.length > 0, `${what} has no variant`);
}

/** The buffers that a step names, by its kind; other kinds of steps are not for this runner. */
const STEPS = {
  dispatch: (step) => step.buffers,
  copy: (step) => [step.source, step.target],
};

function checkStep(step, what, kernels, buffers) {
  if (["host", "if", "loop"].includes(step.do)) {
    throw new SingeError("device", `${what} is a ${step.do} step, which this runner lacks: export the model again`);
  }
  need(Object.hasOwn(STEPS, step.do), `${what} does ${JSON.stringify(step.do)}`);
  list(STEPS[step.do](step), what, (i, where) => need(isIndex(i, buffers), `${where} is no buffer`));
  if (step.do === "copy") return;
  need(isIndex(step.kernel, kernels), `${what} runs kernel ${step.kernel}`);
  const { ports } = kernels[step.kernel];
  need(step.buffers.length === ports, `${what} gives ${step.buffers.length} buffers, its kernel takes ${ports}`);
}

/** The first variant of a kernel that a device with these features runs. */
export function chooseVariant(kernel, features) {
  const found = kernel.variants.find((v) => v.requires.every((word) => features.has(word)));
  if (found) return found;
  const wanted = kernel.variants.map((v) => v.requires.join(" and ")).join(", or ");
  throw new SingeError("device", `the kernel ${kernel.label} needs ${wanted}, which this device lacks`);
}
