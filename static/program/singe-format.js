/** The format `singe/3` as all modules share it: errors, element types, dimensions, and how a value of a file is checked. */

/** @import * as types from "../types/public.d.ts" */
/** @import { DType } from "../types/public.d.ts" */
/** @import { ArrayClass, Atom, Dim, Program, ProgramPart, ProgramBuffer, ProgramKernel, Row, Sizes, Unchecked, Variant, WeightsEntry } from "../types/program.d.ts" */

export const FORMAT = "singe/3";
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

export const LARGEST = 2 ** 48;
const DEEPEST = 32;
export const ALIGN = 256;

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
 * The names of the sizes in a dimension.
 * @param {Dim} dim
 * @returns {string[]}
 */
export function namesIn(dim) {
  if (typeof dim === "number") return [];
  const inAtom = (/** @type {Atom} */ atom) => (typeof atom === "string" ? [atom] : [atom[1], atom[2]].flatMap(namesIn));
  return dim.flatMap(([, ...atoms]) => atoms.flatMap(inAtom));
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
   * @param {(...given: Given) => string} [keyOf] equal where one value serves both
   */
  constructor(most, make, free = () => {}, keyOf = (...given) => JSON.stringify(given)) {
    this.most = most;
    this.make = make;
    this.free = free;
    this.keyOf = keyOf;
  }

  /** @param {Given} given */
  has(...given) {
    return this.#kept.has(this.keyOf(...given));
  }

  /**
   * @param {Given} given
   * @returns {T}
   */
  at(...given) {
    const key = this.keyOf(...given);
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
 * @type {Record<"text" | "object" | "count" | "dimension" | "dtype" | "version" | "sha256" | "plain file name" | "name of weights", (value: Unchecked) => boolean>}
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
  "name of weights": (value) => IS["plain file name"](IS.text(value) && value.replace(/^\.\.\/[\w-][\w.-]*\//, "")), // but to a bundle's beside it
};

/** A file of a bundle. */
export const FILE = { file: IS["plain file name"], bytes: IS.count, sha256: IS.sha256 };

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

/**
 * The specialised programs, each with the sizes that it is `for`, and last the program itself.
 * @param {Program} program
 * @returns {ProgramPart[]}
 */
export const partsOf = (program) =>
  [...program.specialised, { ...program, sizes: {} }].map(({ sizes, slots, buffers, words, counts, stops, checks }) => {
    return { ...program, for: sizes, slots, buffers, words, counts, stops, checks, specialised: [] };
  });

/**
 * @param {ProgramPart} part
 * @param {Sizes} sizes
 */
export const isFor = (part, sizes) => Object.keys(part.for).every((name) => part.for[name] === sizes[name]);

/**
 * The program for these sizes.
 * @param {Program} program
 * @param {Sizes} sizes
 * @returns {ProgramPart}
 */
export const partAt = (program, sizes) => /** @type {ProgramPart} */ (partsOf(program).find((part) => isFor(part, sizes)));
