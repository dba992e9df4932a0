/**
 * Decodes weights that a bundle stores in fewer bytes, while they arrive.
 *
 * Contract: `decoder(entry, write)` checks an encoded piece of weights and returns a function that takes its bytes in
 * order, in chunks of any length, and calls `write(bytes, offset)` with the decoded bytes: whole words, at offsets
 * within the piece. It holds one step and the scales of one part. See static/README.md, "Encoded weights".
 */

import { SingeError, align } from "../program/singe-format.js";

/** Elements that are decoded in one step. */
const STEP = 16384;
const LARGEST = 2 ** 48;
/** An encoding ↦ bytes of a stored element. A decoded element is always one word. */
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
    held = new Uint8Array(bytes.subarray(at));
  };
}

/** The parts of a piece, checked: { encoding, at, count, scaleCount, axes }. */
function checkParts({ file, bytes, parts, decoded }) {
  let [stored, end] = [0, 0];
  const checked = parts.map(({ encoding, at, shape, scales }, k) => {
    const need = (ok, what) => {
      if (!ok) throw new SingeError("format", `${file}: part ${k} ${what}`);
    };
    need(Object.hasOwn(STORED, encoding), `is encoded as ${JSON.stringify(encoding)}, this runner knows ${Object.keys(STORED).join(", ")}`);
    const count = checkedCount(shape);
    need(count > 0, `is of the shape ${JSON.stringify(shape)}`);
    need(Number.isInteger(at) && at % 4 === 0 && at >= end && at - end < align(1), `lies at ${at}, behind ${end}`);
    end = at + 4 * count;
    need(end <= decoded, `ends at ${end} of ${decoded}`);
    if (scales) {
      need(encoding !== "words" && checkedCount(scales) > 0, `has scales of the shape ${JSON.stringify(scales)}`);
      const fits = scales.length === shape.length && scales.every((d, i) => d === 1 || d === shape[i]);
      need(fits, `has scales of the shape ${scales} for ${shape}`);
    }
    const scaleCount = scales ? checkedCount(scales) : 0;
    stored += count * STORED[encoding] + 4 * scaleCount;
    return { encoding, at, count, scaleCount, axes: scales && merged(shape, scales) };
  });
  if (stored !== bytes || decoded - end >= align(1)) {
    throw new SingeError("format", `${file}: its parts are ${stored} bytes that decode to ${end}, the manifest says ${bytes} and ${decoded}`);
  }
  return checked;
}

/** How many elements a shape has; 0 if it is not a shape. */
function checkedCount(shape) {
  if (!Array.isArray(shape) || !shape.every((d) => Number.isInteger(d) && d > 0 && d < LARGEST)) return 0;
  const count = shape.reduce((product, d) => product * d, 1);
  return count < LARGEST ? count : 0;
}

/** Axes as [length, step of the scale], innermost first; adjacent axes with a common step are merged. */
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

/** Yields the number of bytes it needs next, and receives them. */
function* decode(parts, write) {
  for (const { encoding, at, count, scaleCount, axes } of parts) {
    const scales = scaleCount && new Float32Array(copied(yield 4 * scaleCount));
    const out = new Float32Array(Math.min(STEP, count));
    const scale = scales && multiplier(axes, scales);
    for (let done = 0; done < count; done += STEP) {
      const n = Math.min(STEP, count - done);
      const bytes = yield n * STORED[encoding];
      READ[encoding](bytes, out, n);
      if (scale) scale(out, n);
      write(new Uint8Array(out.buffer, 0, 4 * n), at + 4 * done);
    }
  }
}

/** A copy of the bytes; `slice` of node's Buffers does not copy. */
const copied = (bytes) => new Uint8Array(bytes).buffer;

/** An encoding ↦ how n elements are read. */
const READ = {
  words: (bytes, out) => new Uint8Array(out.buffer).set(bytes),
  float16: (bytes, out, n) => halves(new Uint16Array(copied(bytes)), out, n),
  int8: (bytes, out, n) => out.set(new Int8Array(bytes.buffer, bytes.byteOffset, n)),
};

function halves(bits, out, n) {
  for (let i = 0; i < n; i++) {
    const [fraction, exponent] = [bits[i] & 1023, bits[i] & 0x7c00];
    if (exponent === 0x7c00) out[i] = fraction ? NaN : LAST_BIT[bits[i] >> 10] * Infinity;
    else out[i] = LAST_BIT[bits[i] >> 10] * (exponent ? 1024 + fraction : fraction);
  }
}

/** Sign and exponent of a float16 ↦ the value of the last bit of its fraction. */
const LAST_BIT = Float64Array.from({ length: 64 }, (_, k) => (k & 32 ? -1 : 1) * 2 ** (Math.max(1, k & 31) - 25));

/** Multiplies elements by their scales, continuing from call to call; axes as `merged` returns them. */
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

function joined(a, b) {
  const both = new Uint8Array(a.length + b.length);
  both.set(a);
  both.set(b, a.length);
  return both;
}
