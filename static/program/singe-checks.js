/**
 * What a runner checks of a manifest and its programs before anything else.
 *
 * Contract: what `checkManifest` and `checkTarget` let through is safe to use: its counts, indices, places, sizes, words
 * and names of files are checked. All else is a SingeError "format".
 */

/** @import { Manifest, PlaceKind, ProgramBuffer, ProgramPart, ReadsJson, Target, Tensor, Unchecked } from "../types/program.d.ts" */

import { ALIGN, ARRAYS, FILE, FORMAT, IS, LARGEST, SingeError, VERSION, bytesOf, check, isDim, need, partsOf, sizeName, spanOf, sumOf, textOf } from "./singe-format.js";
import { checkStops, checkWords, orNull, takenBy } from "./singe-words.js";

const TENSOR = { name: IS.text, dtype: IS.dtype, shape: [IS.dimension] };
const WEIGHTS = { ...FILE, file: IS["name of weights"] };
const MANIFEST = {
  singe: IS.version,
  runner: { least: IS.version, below: IS.version },
  name: IS.text,
  inputs: [TENSOR],
  outputs: [TENSOR],
  targets: IS.object,
};
const PART = { slots: IS.count, buffers: [{ ...TENSOR, place: [] }], words: [], counts: [], stops: [{}], checks: [] };
const PROGRAM = { ...PART, inputs: [IS.count], outputs: [IS.count], states: [], bounds: {}, specialised: [{ ...PART, sizes: {} }] };

/**
 * A piece of the weights; singe-decode.js checks the parts of an encoded one.
 * @param {Unchecked} piece
 * @param {string} what
 */
function checkPiece({ bytes, parts, decoded, hashes }, what) {
  if (parts === undefined) return;
  if (hashes !== undefined) check(hashes, [IS.sha256], `${what}.hashes`);
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
  need(format === FORMAT, `its format is ${textOf(format)}: export the model again`);
  check(manifest, MANIFEST, "model.json");
  if (manifest.singe !== VERSION) (await import("./singe-versions.js")).checkVersions(manifest, SingeError, VERSION);
  if (image !== null) check(image, {}, "image");
  if (labels !== null) check(labels, FILE.file, "labels");
  need(targets.wasm || targets.webgpu, "it has no target");
  return manifest;
}

/**
 * A target of a manifest: { program, modules, weights }, for programs of this kind. The program may be in a file of its own.
 * @param {Manifest} manifest
 * @param {"wasm" | "webgpu"} name
 * @param {"wasm" | "wgsl"} kind
 * @param {ReadsJson} files
 * @returns {Promise<Target>}
 */
export async function checkTarget(manifest, name, kind, files) {
  const target = /** @type {Target} */ (manifest.targets[name]);
  check(target, { weights: [WEIGHTS], modules: IS.object }, name);
  if (manifest.folded) target.program = await (await import("./singe-folded.js")).unfolded(target.program, files);
  const { program, modules, weights } = target;
  weights.forEach((piece, k) => checkPiece(piece, `${name}.weights[${k}]`));
  weights.slice(0, -1).forEach((w) => need(spanOf(w) % 4 === 0, `${w.file} ends within a word`));
  if (kind === "wasm") Object.entries(modules).forEach(([name, file]) => check(file, FILE, name));
  else check(modules, FILE, "modules");
  check(program, PROGRAM, "program");
  partsOf(program).forEach((part) => checkProgram(part, kind, sumOf(weights)));
  for (const side of /** @type {const} */ (["inputs", "outputs"])) {
    const say = (/** @type {Tensor[]} */ tensors) => JSON.stringify(tensors.map(({ name, dtype, shape }) => [name, dtype, shape]));
    const [told, found] = [say(manifest[side]), say(program[side].map((i) => program.buffers[i]))];
    need(told === found, `its ${side} are ${told}, those of its program for ${name} ${found}`);
  }
  return target;
}

/**
 * @param {ProgramPart} program
 * @param {"wasm" | "wgsl"} kind
 * @param {number} weightBytes
 */
function checkProgram(program, kind, weightBytes) {
  const { format, target, inputs, slots, buffers, kernels, states } = program;
  need(format === FORMAT && target === kind, `the program is ${format} for ${target}, expected ${FORMAT} for ${kind}`);
  for (const side of /** @type {const} */ (["inputs", "outputs"])) {
    need(
      program[side].every((i) => buffers[i]),
      `${side} ${program[side]} are not all buffers`,
    );
  }
  need(slots <= buffers.length, `${slots} slots for ${buffers.length} buffers`);

  const given = new Set([...Object.keys(program.for), ...inputs.flatMap((i) => buffers[i].shape.map(sizeName))]);
  given.delete(undefined);
  const known = new Set([...given, ...checkStops(program)]);
  const dimension = (/** @type {Unchecked} */ value) => isDim(value, known);
  const variant = { entry: IS.text, requires: [IS.text], groups: [dimension] };
  check(buffers, [{ shape: [dimension] }], "buffers");
  check(program.checks, [{ dim: dimension, text: IS.text }], "checks");
  check(kernels, [{ label: IS.text, ports: IS.count, sizes: [dimension], variants: [variant] }], "kernels");
  kernels.forEach(({ variants }, k) => {
    need(variants.length > 0 && variants.every((v) => v.groups.length === 3), `kernels[${k}] has no variants in 3 directions`);
  });
  checkPlaces(program, weightBytes);
  if (states.length) checkStates(program);
  checkWords(program, given);
}

/**
 * @param {ProgramPart} program
 * @param {number} weightBytes
 */
function checkPlaces({ inputs, outputs, slots, buffers, states }, weightBytes) {
  const ends = { weights: LARGEST, slot: slots, input: inputs.length, output: outputs.length, state: states.length };
  buffers.forEach((buffer, i) => checkPlace(buffer, `buffers[${i}]`, ends, weightBytes));
  inputs.forEach((i, k) => need(buffers[i].place.join() === `input,${k}`, `input ${k} lies in ${buffers[i].place}`));
  const taken = new Set();
  outputs.forEach((i, k) => {
    const place = buffers[i].place.join();
    need(place === `output,${k}` || (place.startsWith("input,") && !taken.has(place)), `output ${k} lies in ${place}`);
    taken.add(place);
  });
  /** @type {Record<string, number[]>} */
  const owners = { input: inputs, output: outputs };
  buffers.forEach(({ place: [side, k], ...placed }, i) => {
    const owner = buffers[owners[side]?.[k]];
    need(!owner || !(takenBy(placed) > takenBy(owner)), `buffer ${i} is larger than the ${side} ${k} in which it lies`);
  });
  const named = inputs.map((i) => buffers[i].name);
  need(new Set(named).size === named.length, "two inputs have one name");
}

/** @param {ProgramPart} program */
function checkStates({ states, buffers }) {
  check(states, [{ name: IS.text, buffer: IS.count, initial: orNull(IS.count) }], "states");
  states.forEach(({ name, buffer: own, initial, draws }, k) => {
    const what = `state ${JSON.stringify(name)}`;
    need(buffers[own]?.place.join() === `state,${k}`, `${what} is buffer ${own}, which does not lie in state ${k}`);
    const inside = buffers.filter(({ place }) => place.join() === `state,${k}`);
    need(
      inside.every(({ shape }) => shape.every(IS.count)),
      `${what} is of open size`,
    );
    need(
      inside.every((one) => bytesOf(one, {}) <= bytesOf(buffers[own], {})),
      `${what} is smaller than a buffer in it`,
    );
    const isKey = IS.count(draws) && buffers[own].dtype === "uint32" && buffers[own].shape.join() === "2";
    need(draws === undefined || isKey, `${what} is a sequence of keys, but not two uint32 numbers`);
    if (initial === null) return;
    const facts = (/** @type {Pick<ProgramBuffer, "dtype" | "shape" | "size"> } {} */ { dtype, shape, size }) => JSON.stringify([dtype, shape, size]);
    const same = buffers[initial]?.place[0] === "weights" && facts(buffers[initial]) === facts(buffers[own]);
    need(same, `${what} starts as buffer ${initial}, which is not a weight of its shape and type`);
  });
  need(new Set(states.map(({ name }) => name)).size === states.length, "two states have one name");
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
