/**
 * Weights that a bundle stores in fewer bytes, decoded while they arrive.
 *
 * Contract: `decoder(entry, write)` checks an encoded piece of weights and answers a function that takes its bytes in
 * order, in chunks of any length, and calls `write(bytes, offset)` with what they decode to: whole words, at offsets
 * within the piece. Memory is that of one step and the scales of one part. See static/README.md, "Encoded weights".
 */

import { SingeError, align } from "./singe-format.js";

/** Elements that are decoded in one step. */
const STEP = 16384;
const LARGEST = 2 ** 48;
/** An encoding ↦ the bytes of an element as it is stored. Decoded, it is always a word. */
const STORED = { words: 4, float16: 2, int8: 1 };

export function decoder(entry, write) {
  const parts = checkParts(entry);
  const run = decode(parts, write);
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
    held = bytes.slice(at);
  };
}

/** The parts of a piece, checked: { encoding, at, dims, count, scales }. */
function checkParts({ file, bytes, parts, decoded }) {
  let [stored, end] = [0, 0];
  const checked = parts.map(({ encoding, at, shape, scales }, k) => {
    const need = (ok, what) => {
      if (!ok) throw new SingeError("format", `${file}: part ${k} ${what}`);
    };
    need(Object.hasOwn(STORED, encoding), `is encoded as ${JSON.stringify(encoding)}, this runner knows ${Object.keys(STORED).join(", ")}`);
    const count = countOf(shape);
    need(count > 0, `is of the shape ${JSON.stringify(shape)}`);
    need(Number.isInteger(at) && at % 4 === 0 && at >= end && at - end < align(1), `lies at ${at}, behind ${end}`);
    end = at + 4 * count;
    need(end <= decoded, `ends at ${end} of ${decoded}`);
    if (encoding === "int8") {
      need(countOf(scales) > 0 && scales.length === shape.length, `has scales of the shape ${JSON.stringify(scales)}`);
      need(scales.every((d, i) => d === 1 || d === shape[i]), `has scales of the shape ${scales} for ${shape}`);
    } else need(scales === undefined, `has scales, as ${encoding}`);
    const scaleCount = scales ? countOf(scales) : 0;
    stored += count * STORED[encoding] + 4 * scaleCount;
    return { encoding, at, count, scaleCount, dims: scales && merged(shape, scales) };
  });
  if (stored !== bytes || decoded - end >= align(1)) {
    throw new SingeError("format", `${file}: its parts are ${stored} bytes that decode to ${end}, the manifest says ${bytes} and ${decoded}`);
  }
  return checked;
}

/** How many elements a shape has; 0 where it is none. */
function countOf(shape) {
  if (!Array.isArray(shape) || !shape.every((d) => Number.isInteger(d) && d > 0 && d < LARGEST)) return 0;
  const count = shape.reduce((product, d) => product * d, 1);
  return count < LARGEST ? count : 0;
}

/** Axes as [length, step of the scale], those that walk on together as one; the last comes first. */
function merged(shape, scales) {
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

/** Yields how many bytes it wants next, and is given them. */
function* decode(parts, write) {
  for (const { encoding, at, count, scaleCount, dims } of parts) {
    const scales = new Float32Array(aligned(scaleCount ? yield 4 * scaleCount : new Uint8Array(0)));
    const take = encoding === "int8" ? scaled(dims, scales) : halves;
    const out = encoding === "words" ? undefined : new Float32Array(Math.min(STEP, count));
    for (let done = 0; done < count; done += STEP) {
      const n = Math.min(STEP, count - done);
      const bytes = yield n * STORED[encoding];
      if (out) take(bytes, out, n);
      write(out ? new Uint8Array(out.buffer, 0, 4 * n) : bytes, at + 4 * done);
    }
  }
}

const aligned = (bytes) => bytes.slice().buffer;

function halves(bytes, out, n) {
  const bits = new Uint16Array(aligned(bytes));
  for (let i = 0; i < n; i++) out[i] = TABLE[bits[i] >> 10] * ((bits[i] & 1023) + (bits[i] & 0x7c00 ? 1024 : 0));
  for (let i = 0; i < n; i++) {
    if ((bits[i] & 0x7c00) === 0x7c00) out[i] = bits[i] & 1023 ? NaN : bits[i] & 0x8000 ? -Infinity : Infinity;
  }
}

/** Sign and exponent of a float16 ↦ the worth of its fraction's last bit. */
const TABLE = Float64Array.from({ length: 64 }, (_, k) => (k & 32 ? -1 : 1) * 2 ** (Math.max(1, k & 31) - 25));

/** A function that walks over elements and their scales, from one call to the next. */
function scaled(axes, scales) {
  const turns = axes.map(() => 0);
  const [length, step] = axes[0];
  let at = 0;
  return (bytes, out, n) => {
    const values = new Int8Array(bytes.buffer, bytes.byteOffset, n);
    for (let i = 0; i < n; ) {
      const stop = Math.min(n, i + length - turns[0]);
      turns[0] += stop - i;
      for (; i < stop; i++, at += step) out[i] = values[i] * scales[at];
      for (let k = 0; turns[k] === axes[k][0] && k < axes.length; ) {
        at -= axes[k][0] * axes[k][1];
        turns[k++] = 0;
        if (k === axes.length) break;
        turns[k] += 1;
        at += axes[k][1];
      }
    }
  };
}

function joined(a, b) {
  const both = new Uint8Array(a.length + b.length);
  both.set(a);
  both.set(b, a.length);
  return both;
}
