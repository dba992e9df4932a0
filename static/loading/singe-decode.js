/**
 * Decodes weights that a bundle stores in fewer bytes, while they arrive.
 *
 * Contract: `decoder(entry, write, view)` checks an encoded piece of weights and returns a function that takes its bytes in
 * order, in chunks of any length, and calls `write(bytes, offset)` with the decoded bytes: whole words, at offsets
 * within the piece. Elements that change their order go straight to `view`, where the piece belongs. It holds one step and the scales of
 * one part; without a view the whole piece, if elements change their order. See static/README.md, "Encoded weights".
 */

import { SingeError, align } from "../program/singe-format.js";

/** @import { Encoding, WeightsEntry } from "../types/program.d.ts" */

/** @typedef {(ok: unknown, what: string) => void} Need */
/** @typedef {(bytes: Uint8Array<ArrayBuffer>, at: number) => void} Write */
/** @typedef {Generator<number, void, Uint8Array<ArrayBuffer>>} Decoding */
/** @typedef {Float32Array | Int32Array | Int8Array} Out */
/** @typedef {ReturnType<typeof checkParts>[number]} Part */

/** Elements that are decoded in one step. */
const STEP = 16384;
/** Lines of an array that are put together where they belong. */
const LINES = 16;
const LARGEST = 2 ** 48;
/**
 * An encoding ↦ bytes of a stored element.
 * @type {Record<Encoding, number>}
 */
const STORED = { words: 4, float16: 2, int8: 1, integers: 1, bytes: 1 };
/** The encodings of integers, to which a zero point may be added. */
const WHOLE = ["int8", "integers"];
/**
 * Bytes of a decoded element.
 * @param {Encoding} encoding
 */
const sizeOf = (encoding) => (encoding === "bytes" ? 1 : 4);

/**
 * @param {WeightsEntry} entry
 * @param {Write} write
 * @param {Uint8Array<ArrayBuffer>} [view]
 * @returns {(chunk: Uint8Array<ArrayBuffer>) => void}
 */
export function decoder(entry, write, view) {
  const parts = checkParts(entry);
  const run = view || !parts.some(({ steps }) => steps) ? decode(parts, write, view) : decodeWhole(parts, entry, write);
  let wanted = run.next().value;
  let held = new Uint8Array(0);
  return (chunk) => {
    const bytes = held.length ? joined(held, chunk) : chunk;
    let at = 0;
    while (wanted && bytes.length - at >= wanted) {
      const start = at;
      at += wanted;
      wanted = run.next(bytes.subarray(start, at)).value;
    }
    held = new Uint8Array(bytes.subarray(at));
  };
}

/**
 * The parts of a piece, checked: { encoding, at, end, count, scaleCount, axes, zero, steps, sums }.
 * @param {WeightsEntry} entry
 */
function checkParts({ file, bytes, parts = [], decoded = 0 }) {
  let [stored, end, room] = [0, 0, align(1)];
  const checked = parts.map(({ encoding, at, shape, scales, zero = 0, order, sums }, k) => {
    const need = (/** @type {unknown} */ ok, /** @type {string} */ what) => {
      if (!ok) throw new SingeError("format", `${file}: part ${k} ${what}`);
    };
    need(Object.hasOwn(STORED, encoding), `is encoded as ${JSON.stringify(encoding)}, this runner knows ${Object.keys(STORED).join(", ")}`);
    const count = checkedCount(shape);
    need(count > 0, `is of the shape ${JSON.stringify(shape)}`);
    need(count * STORED[encoding] <= bytes, `has ${count} elements in ${bytes} bytes`);
    need(Number.isInteger(at) && at % 4 === 0 && at >= end && at - end < room, `lies at ${at}, behind ${end}`);
    need(zero === 0 || (WHOLE.includes(encoding) && Number.isInteger(zero) && Math.abs(zero) < 256), `has the zero ${JSON.stringify(zero)}`);
    const steps = order && stepsOf(order, shape, need);
    const furthest = steps ? steps.reduce((sum, step) => sum + step.reduce((a, b) => Math.max(a, b), 0), 0) : count - 1;
    end = at + Math.ceil((sizeOf(encoding) * (furthest + 1)) / 4) * 4;
    if (sums !== undefined) {
      const last = steps?.at(-1) ?? new Uint32Array(0);
      need(steps && encoding === "bytes" && isCount(sums) && sums % 4 === 0 && last.every((step) => step % 4 === 0), `has sums at ${JSON.stringify(sums)}`);
      end = Math.max(end, at + sums + last.reduce((a, b) => Math.max(a, b), 0) + 4);
    }
    need(end <= decoded, `ends at ${end} of ${decoded}`);
    room = (steps ? 2 : 1) * align(1); // the last elements of an order may be missing
    if (scales) {
      need(encoding !== "words" && encoding !== "bytes" && encoding !== "integers" && checkedCount(scales) > 0, `has scales of the shape ${JSON.stringify(scales)}`);
      const fits = scales.length === shape.length && scales.every((d, i) => d === 1 || d === shape[i]);
      need(fits, `has scales of the shape ${scales} for ${shape}`);
    }
    const scaleCount = scales ? checkedCount(scales) : 0;
    stored += count * STORED[encoding] + 4 * scaleCount;
    return { encoding, at, end, count, scaleCount, axes: scales && merged(shape, scales), zero, steps, sums };
  });
  if (stored !== bytes || decoded - end >= room) {
    throw new SingeError("format", `${file}: its parts are ${stored} bytes that decode to ${end}, the manifest says ${bytes} and ${decoded}`);
  }
  return checked;
}

/** @param {unknown} n */
const isCount = (n) => Number.isInteger(n) && Number(n) >= 0 && Number(n) < LARGEST;

/**
 * For each axis how far its elements are from the first, in elements.
 * @param {number[][][]} order
 * @param {number[]} shape
 * @param {Need} need
 */
function stepsOf(order, shape, need) {
  const isDigit = (/** @type {unknown} */ digit) => Array.isArray(digit) && digit.length === 2 && digit.every(isCount) && digit[0] > 0;
  const isOrder = Array.isArray(order) && order.length === shape.length && order.every((digits) => Array.isArray(digits) && digits.every(isDigit));
  need(isOrder, `has the order ${JSON.stringify(order)} for ${shape}`);
  return order.map((digits, axis) => {
    const reach = digits.reduce((product, [n]) => product * n, 1);
    const far = digits.reduce((sum, [n, step]) => sum + (n - 1) * step, 0);
    need(reach >= shape[axis] && far < 2 ** 32, `has the order ${JSON.stringify(digits)} for ${shape[axis]} elements`);
    return Uint32Array.from({ length: shape[axis] }, (_, index) => {
      let [rest, at] = [index, 0];
      for (const [n, step] of digits) {
        at += (rest % n) * step;
        rest = Math.floor(rest / n);
      }
      return at;
    });
  });
}

/**
 * How many elements a shape has; 0 if it is not a shape.
 * @param {number[]} shape
 */
function checkedCount(shape) {
  if (!Array.isArray(shape) || !shape.every((d) => Number.isInteger(d) && d > 0 && d < LARGEST)) return 0;
  const count = shape.reduce((product, d) => product * d, 1);
  return count < LARGEST ? count : 0;
}

/**
 * Axes as [length, step of the scale], innermost first; adjacent axes with a common step are merged.
 * @param {number[]} shape
 * @param {number[]} scales
 */
function merged(shape, scales) {
  /** @type {number[][]} */
  const axes = [];
  let step = 1;
  for (let k = shape.length - 1; k >= 0; k--) {
    const own = scales[k] === 1 ? 0 : step;
    step *= scales[k];
    const last = axes.at(-1);
    if (shape[k] === 1) continue;
    if (last && own === last[0] * last[1]) last[0] *= shape[k];
    else axes.push([shape[k], own]);
  }
  return axes.length ? axes : [[1, 0]];
}

/**
 * Yields the number of bytes it needs next, and receives them.
 * @param {Part[]} parts
 * @param {Write} write
 * @param {Uint8Array<ArrayBuffer>} [view]
 * @returns {Decoding}
 */
function* decode(parts, write, view) {
  for (const part of parts) {
    if (part.sums !== undefined) view?.fill(0, part.at, part.end); // sums are added up there
    yield* decodePart(part, part.steps && view ? placed(part, view) : (bytes, done) => write(bytes, part.at + done));
  }
}

/**
 * Like `decode`, for a piece in which elements change their order, without a view: it is written when all of them are there.
 * @param {Part[]} parts
 * @param {WeightsEntry} entry
 * @param {Write} write
 * @returns {Decoding}
 */
function* decodeWhole(parts, { decoded = 0 }, write) {
  const whole = new Uint8Array(Math.ceil(decoded / 4) * 4);
  yield* decode(parts, (bytes, at) => whole.set(bytes, at), whole);
  write(whole.subarray(0, decoded), 0);
}

/**
 * Decodes a part, for `put(bytes, offset)`: whole words, the last filled up with zeros.
 * @param {Part} part
 * @param {Write} put
 * @returns {Decoding}
 */
function* decodePart({ encoding, count, scaleCount, axes, zero }, put) {
  const scales = scaleCount && new Float32Array(copied(yield 4 * scaleCount));
  const size = sizeOf(encoding);
  const words = new Uint32Array(Math.ceil((size * Math.min(STEP, count)) / 4));
  const out = new (OUT[encoding] ?? Float32Array)(words.buffer);
  const scale = scales && multiplier(/** @type {number[][]} */ (axes), scales);
  for (let done = 0; done < count; done += STEP) {
    const n = Math.min(STEP, count - done);
    const bytes = yield n * STORED[encoding];
    READ[encoding](bytes, out, n);
    if (zero) for (let i = 0; i < n; i++) out[i] += zero;
    if (scale) scale(out, n);
    const length = Math.ceil((size * n) / 4) * 4;
    if (length > size * n) out.fill(0, n, length);
    put(new Uint8Array(words.buffer, 0, length), size * done);
  }
}

/**
 * Takes elements in their own order, and puts them and the sums of columns where they belong in the piece.
 * @param {Part} part
 * @param {Uint8Array<ArrayBuffer>} whole
 * @returns {Write}
 */
function placed({ encoding, at, count, steps, sums }, whole) {
  const size = sizeOf(encoding);
  const kind = size === 1 ? Int8Array : Uint32Array;
  const first = whole.byteOffset + at;
  const to = new kind(whole.buffer, first);
  const totals = sums === undefined ? undefined : new Int32Array(whole.buffer, first + sums);
  const outer = [.../** @type {Uint32Array[]} */ (steps)];
  const inner = /** @type {Uint32Array} */ (outer.pop());
  const run = runOf(inner);
  const turns = outer.map(() => 0);
  const held = new kind(inner.length * Math.min(LINES, count / inner.length));
  const lines = new Uint32Array(LINES);
  let [line, filled, left] = [0, 0, count];
  // Runs of several lines lie beside each other: each written alone would be a miss of the cache.
  const put = (/** @type {number} */ many) => {
    for (let column = 0; column < inner.length; column += run) {
      for (let k = 0; k < many; k++) {
        const [from, start] = [k * inner.length + column, lines[k] + inner[column]];
        for (let i = 0; i < run; i++) to[start + i] = held[from + i];
      }
      if (!totals) continue;
      for (let i = 0; i < run; i++) {
        let sum = 0;
        for (let k = 0; k < many; k++) sum += held[k * inner.length + column + i];
        totals[inner[column + i] / 4] += sum;
      }
    }
  };
  return (bytes) => {
    const elements = new kind(bytes.buffer, bytes.byteOffset, Math.min(left, bytes.length / size));
    left -= elements.length;
    for (let i = 0; i < elements.length; ) {
      const part = elements.subarray(i, i + held.length - filled);
      held.set(part, filled);
      filled += part.length;
      i += part.length;
      if (filled < held.length && (left || i < elements.length)) return;
      const many = filled / inner.length;
      for (let k = 0; k < many; k++) {
        lines[k] = line;
        for (let axis = outer.length - 1; axis >= 0 && ++turns[axis] === outer[axis].length; axis--) turns[axis] = 0;
        line = turns.reduce((sum, turn, axis) => sum + outer[axis][turn], 0);
      }
      put(many);
      filled = 0;
    }
  };
}

/**
 * How many elements of a line, from each multiple of that number on, lie one after another.
 * @param {Uint32Array} steps
 */
function runOf(steps) {
  let run = 1;
  while (run < steps.length && steps[run] === steps[0] + run) run++;
  const fits = () => steps.length % run === 0 && steps.every((step, k) => step === steps[k - (k % run)] + (k % run));
  while (!fits()) run--;
  return run;
}

/**
 * An encoding ↦ the array of its decoded elements, if they are no floats.
 * @type {{ [encoding in Encoding]?: typeof Int32Array | typeof Int8Array }}
 */
const OUT = { integers: Int32Array, bytes: Int8Array };

/**
 * A copy of the bytes; `slice` of node's Buffers does not copy.
 * @param {Uint8Array} bytes
 */
const copied = (bytes) => new Uint8Array(bytes).buffer;

/**
 * An encoding ↦ how n elements are read.
 * @type {Record<Encoding, (bytes: Uint8Array, out: Out, n: number) => void>}
 */
const READ = {
  words: (bytes, out) => new Uint8Array(out.buffer).set(bytes),
  float16: (bytes, out, n) => halves(new Uint16Array(copied(bytes)), out, n),
  int8: integersOf,
  integers: integersOf,
  bytes: integersOf,
};

/**
 * @param {Uint8Array} bytes
 * @param {Out} out
 * @param {number} n
 */
function integersOf(bytes, out, n) {
  out.set(new Int8Array(bytes.buffer, bytes.byteOffset, n));
}

/**
 * @param {Uint16Array} bits
 * @param {Out} out
 * @param {number} n
 */
function halves(bits, out, n) {
  for (let i = 0; i < n; i++) {
    const [fraction, exponent] = [bits[i] & 1023, bits[i] & 0x7c00];
    if (exponent === 0x7c00) out[i] = fraction ? NaN : LAST_BIT[bits[i] >> 10] * Infinity;
    else out[i] = LAST_BIT[bits[i] >> 10] * (exponent ? 1024 + fraction : fraction);
  }
}

/** Sign and exponent of a float16 ↦ the value of the last bit of its fraction. */
const LAST_BIT = Float64Array.from({ length: 64 }, (_, k) => (k & 32 ? -1 : 1) * 2 ** (Math.max(1, k & 31) - 25));

/**
 * Multiplies elements by their scales, continuing from call to call; axes as `merged` returns them.
 * @param {number[][]} axes
 * @param {Float32Array} scales
 * @returns {(out: Out, n: number) => void}
 */
function multiplier(axes, scales) {
  const turns = axes.map(() => 0);
  const [length, step] = axes[0];
  let at = 0;
  return (out, n) => {
    for (let i = 0; i < n; ) {
      const stop = Math.min(n, i + length - turns[0]);
      turns[0] += stop - i;
      for (; i < stop; i++, at += step) out[i] *= scales[at];
      for (let k = 0; k < axes.length && turns[k] === axes[k][0]; k++) {
        turns[k] = 0;
        at -= axes[k][0] * axes[k][1];
        if (k + 1 === axes.length) break;
        turns[k + 1] += 1;
        at += axes[k + 1][1];
      }
    }
  };
}

/**
 * @param {Uint8Array<ArrayBuffer>} a
 * @param {Uint8Array<ArrayBuffer>} b
 */
function joined(a, b) {
  const both = new Uint8Array(a.length + b.length);
  both.set(a);
  both.set(b, a.length);
  return both;
}
