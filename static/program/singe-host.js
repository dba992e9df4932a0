/**
 * Ops over whole arrays that a program leaves to the host: they are not loop nests, and the device has no function for them.
 *
 * Contract: `OPS` has them by the names of core/singe/ops/; they give the same elements as the `whole` functions there. An
 * op takes inputs { data, shape, dtype } and attributes, and returns its results, { data, shape }. `runOp(stop, inputs,
 * sizes)` carries out a host stop.
 */

/** @import { DType, TypedArray } from "../types/public.d.ts" */
/** @import { Attribute, HostArray, HostInput, HostStop, Sizes, Unchecked } from "../types/program.d.ts" */

/** @import { Numbers } from "./singe-elements.js" */
/** @typedef {(a: number, b: number) => number} Meet */

import { longs, narrow, numbers, range, rounded, wide } from "./singe-elements.js";
import { ARRAYS, SingeError, countOf, evaluate } from "./singe-format.js";
import { axesSizes, expanded, movedLast, rangeSize, reshaped, signedSizes, sizes, slicePlaces } from "./singe-host-sizes.js";

/**
 * @param {HostStop} stop
 * @param {HostInput[]} inputs
 * @param {Sizes} sizes
 * @returns {HostArray[]}
 */
export function runOp({ op, attrs }, inputs, sizes) {
  const given = Object.fromEntries(Object.entries(attrs).map(([name, value]) => [name, decoded(value, sizes)]));
  try {
    return OPS[op](inputs, given);
  } catch (cause) {
    const { code, message } = /** @type {SingeError} */ (cause);
    throw code ? cause : new SingeError("input", `${op}: ${message}`, cause);
  }
}

/**
 * An attribute: numbers for its sizes, names for its dtypes.
 * @param {Attribute} value
 * @param {Sizes} sizes
 * @returns {unknown}
 */
function decoded(value, sizes) {
  if (Array.isArray(value)) return value.map((item) => decoded(item, sizes));
  if (typeof value !== "object" || value === null) return value;
  if (value.size) return evaluate(value.size, sizes);
  return value.dtype ?? (value.float === "inf" ? Infinity : value.float === "-inf" ? -Infinity : NaN);
}

/**
 * NaN is the largest.
 * @param {number} a
 * @param {number} b
 */
function compare(a, b) {
  if (a !== a || b !== b) return Number(a !== a) - Number(b !== b);
  return a < b ? -1 : a > b ? 1 : 0;
}

/**
 * A shape around one of its axes: the elements before it, its length, the elements after it.
 * @param {number[]} shape
 * @param {number} axis
 */
function around(shape, axis) {
  const k = axis < 0 ? axis + shape.length : axis;
  if (!(k >= 0 && k < shape.length)) throw new SingeError("input", `there is no axis ${axis} of (${shape.join(", ")})`);
  const resized = (/** @type {number} */ length) => [...shape.slice(0, k), length, ...shape.slice(k + 1)];
  return { outer: countOf(shape.slice(0, k)), length: shape[k], inner: countOf(shape.slice(k + 1)), resized, axis: k };
}

/**
 * The slices of x along an axis at these places.
 * @param {HostInput} x
 * @param {number} axis
 * @param {number[]} places
 * @returns {HostArray}
 */
function taken({ data, shape, dtype }, axis, places) {
  const { outer, length, inner, resized } = around(shape, axis);
  const found = new ARRAYS[dtype](outer * places.length * inner);
  for (let o = 0, at = 0; o < outer; o++) {
    for (const place of places) {
      const from = (o * length + place) * inner;
      /** @type {Numbers} */ (found).set(/** @type {Numbers} */ (data).subarray(from, from + inner), at);
      at += inner;
    }
  }
  return { data: found, shape: resized(places.length) };
}

// --- order -----------------------------------------------------------------------------------------------------------

/**
 * The first k elements along an axis in sorted order (stable), and their indices.
 * @param {HostInput} x
 * @param {number} axis
 * @param {number} k
 * @param {boolean} descending
 * @returns {HostArray[]}
 */
function ordered(x, axis, k, descending) {
  const { outer, length, inner, resized } = around(x.shape, axis);
  if (!(k >= 0 && k <= length)) throw new SingeError("input", `k is ${k}, and the axis has ${length} elements`);
  const values = wide(x);
  const count = outer * k * inner;
  const [data, places] = [new ARRAYS[x.dtype](count), new BigInt64Array(count)];
  for (let o = 0; o < outer; o++) {
    for (let i = 0; i < inner; i++) {
      const at = (/** @type {number} */ place) => (o * length + place) * inner + i;
      const by = (/** @type {number} */ a, /** @type {number} */ b) => (descending ? compare(values[at(b)], values[at(a)]) : compare(values[at(a)], values[at(b)]));
      const held = Math.min(length, 4 * k || length); // sorted at once, to keep the best k
      const order = range(held).sort(by);
      order.length = k;
      for (let place = held; place < length; place++) {
        if (by(place, order[k - 1]) >= 0) continue;
        order.push(place);
        if (order.length < held) continue;
        order.sort(by);
        order.length = k;
      }
      order.sort(by);
      for (let place = 0; place < k; place++) {
        const to = (o * k + place) * inner + i;
        data[to] = x.data[at(order[place])];
        places[to] = BigInt(order[place]);
      }
    }
  }
  const shape = resized(k);
  return [
    { data, shape },
    { data: places, shape },
  ];
}

// --- selection by data -----------------------------------------------------------------------------------------------

/**
 * @param {HostInput} x
 * @returns {HostArray[]}
 */
function nonzero(x) {
  const rank = x.shape.length;
  /** @type {number[]} */
  const found = [];
  wide(x).forEach((value, k) => Number(value) !== 0 && found.push(k));
  const data = new BigInt64Array(rank * found.length);
  let inner = 1;
  for (let axis = rank - 1; axis >= 0; axis--) {
    found.forEach((k, n) => (data[axis * found.length + n] = BigInt(Math.floor(k / inner) % x.shape[axis])));
    inner *= x.shape[axis];
  }
  return [{ data, shape: [rank, found.length] }];
}

/**
 * @param {HostInput} x
 * @param {number | null} axis
 * @param {boolean} isOrdered
 * @returns {HostArray[]}
 */
function unique(x, axis, isOrdered) {
  const flat = axis === null ? { ...x, shape: [x.data.length] } : x;
  const along = axis ?? 0;
  const { outer, length, inner } = around(flat.shape, along);
  const values = wide(flat);
  const rows = range(length).map((n) => range(outer * inner).map((k) => values[(Math.floor(k / inner) * length + n) * inner + (k % inner)]));
  const compareRows = (/** @type {number} */ a, /** @type {number} */ b) => {
    const k = rows[a].findIndex((value, i) => compare(value, rows[b][i]) !== 0);
    return k < 0 ? 0 : compare(rows[a][k], rows[b][k]);
  };
  /** @type {number[][]} */
  const groups = []; // the places of each different slice, in the order of the slices
  for (const n of range(length).sort(compareRows)) {
    const last = groups.at(-1);
    if (last && compareRows(last[0], n) === 0) last.push(n);
    else groups.push([n]);
  }
  if (!isOrdered) groups.sort(([a], [b]) => a - b);
  const back = new BigInt64Array(length);
  groups.forEach((group, k) => group.forEach((n) => (back[n] = BigInt(k))));
  const first = groups.map(([n]) => n);
  const counts = groups.map((group) => group.length);
  return [taken(flat, along, first), { data: longs(first), shape: [groups.length] }, { data: back, shape: [length] }, { data: longs(counts), shape: [groups.length] }];
}

/**
 * The places of the scores above the floor: the best one first, equal ones in their order. Numbers sort faster than by a function.
 * @param {Numbers} scores
 * @param {number} floor
 */
function ranked(scores, floor) {
  const keys = new BigUint64Array(scores.length); // the place in the lower half; the upper half is less for a higher score
  const [words, floats] = [new Uint32Array(keys.buffer), new Float32Array(keys.buffer)];
  let count = 0;
  for (let place = 0; place < scores.length; place++) {
    if (!(scores[place] > floor)) continue;
    const upper = 2 * count++ + 1;
    words[upper - 1] = place;
    floats[upper] = scores[place] + 0; // 0 for -0
    words[upper] = words[upper] >>> 31 ? words[upper] : ~words[upper] & 0x7fffffff;
  }
  keys.subarray(0, count).sort();
  return words.subarray(0, 2 * count).filter((_, k) => k % 2 === 0);
}

/**
 * Rows (batch, class, box): in each class the best boxes, without those that overlap a better one too much; in float32.
 * @param {HostInput[]} inputs
 * @param {boolean} isCenter
 * @returns {HostArray[]}
 */
function suppressed([{ data }, { data: all, shape }, limit, overlap, least], isCenter) {
  const [corners, scores] = /** @type {Numbers[]} */ ([data, all]);
  const [most, threshold, floor] = [limit, overlap, least].map(({ data }) => Number(data[0]));
  const [batches, classes, count] = shape;
  const f = Math.fround;
  const room = Math.max(0, Math.min(most, count));
  const [x0, y0, x1, y1, areas] = range(5).map(() => new Float32Array(room)); // of the best boxes of a class, and of the next one
  const place = (/** @type {number} */ n, /** @type {number} */ k) => {
    const [a, b, c, d] = [corners[4 * n], corners[4 * n + 1], corners[4 * n + 2], corners[4 * n + 3]];
    x0[k] = isCenter ? a - c / 2 : Math.min(a, c);
    y0[k] = isCenter ? b - d / 2 : Math.min(b, d);
    x1[k] = isCenter ? a + c / 2 : Math.max(a, c);
    y1[k] = isCenter ? b + d / 2 : Math.max(b, d);
    areas[k] = f(x1[k] - x0[k]) * f(y1[k] - y0[k]);
  };
  const isHidden = (/** @type {number} */ one) => {
    for (let k = 0; k < one; k++) {
      const width = Math.max(0, f(Math.min(x1[one], x1[k]) - Math.max(x0[one], x0[k])));
      const height = Math.max(0, f(Math.min(y1[one], y1[k]) - Math.max(y0[one], y0[k])));
      const shared = f(width * height);
      const union = f(f(areas[one] + areas[k]) - shared);
      if (!((union > 0 ? f(shared / union) : 0) <= threshold)) return true;
    }
    return false;
  };
  const found = [];
  for (let batch = 0; batch < batches; batch++) {
    for (let kind = 0; kind < classes; kind++) {
      const start = (batch * classes + kind) * count;
      let better = 0;
      for (const n of ranked(scores.subarray(start, start + count), floor)) {
        if (better === room) break;
        place(batch * count + n, better);
        if (isHidden(better)) continue;
        better++;
        found.push(batch, kind, n);
      }
    }
  }
  return [{ data: longs(found), shape: [found.length / 3, 3] }];
}

// --- scattering ------------------------------------------------------------------------------------------------------

/** @param {number} x */
const isNan = (x) => x !== x;
/** @type {Record<string, Meet>} */
const REDUCTIONS = {
  none: (_, b) => b,
  add: (a, b) => a + b,
  mul: (a, b) => a * b,
  max: (a, b) => (isNan(a) || (!isNan(b) && a > b) ? a : b),
  min: (a, b) => (isNan(a) || (!isNan(b) && a < b) ? a : b),
};

/**
 * Negative indices count from the end, others are clipped to the range.
 * @param {number} index
 * @param {number} length
 */
const wrapped = (index, length) => Math.min(Math.max(index < 0 ? index + length : index, 0), Math.max(length - 1, 0));

/**
 * x with elements of `part` at `place(k)` for its k-th.
 * @param {HostInput} x
 * @param {HostInput} part
 * @param {string} reduction
 * @param {(k: number) => number} place
 * @returns {HostArray[]}
 */
function scattered(x, part, reduction, place) {
  const meet = x.dtype === "int32" && reduction === "mul" ? Math.imul : REDUCTIONS[reduction];
  const data = wide(x).slice();
  wide(part).forEach((value, k) => {
    const at = place(k);
    data[at] = rounded(meet(data[at], value), x.dtype);
  });
  return [{ data: narrow(data, x.dtype), shape: x.shape }];
}

/**
 * @param {HostInput[]} inputs
 * @param {number} axis
 * @param {string} reduction
 */
function scatterElements([x, part, indices], axis, reduction) {
  const { length, inner, axis: along } = around(x.shape, axis);
  const places = numbers(indices);
  return scattered(x, part, reduction, (k) => {
    let [at, step, rest] = [0, 1, k];
    for (let a = x.shape.length - 1; a >= 0; a--) {
      at += step * (a === along ? 0 : rest % part.shape[a]);
      rest = Math.floor(rest / part.shape[a]);
      step *= x.shape[a];
    }
    return at + wrapped(places[k], length) * inner;
  });
}

/**
 * @param {HostInput[]} inputs
 * @param {string} reduction
 */
function scatterSlices([x, part, indices], reduction) {
  const rank = /** @type {number} */ (indices.shape.at(-1));
  const inner = countOf(x.shape.slice(rank));
  const places = numbers(indices);
  return scattered(x, part, reduction, (k) => {
    const row = Math.floor(k / inner) * rank;
    const at = range(rank).reduce((sum, a) => sum * x.shape[a] + wrapped(places[row + a], x.shape[a]), 0);
    return at * inner + (k % inner);
  });
}

/** @param {HostInput[]} inputs */
function updateSlice([x, part, ...starts]) {
  const at = starts.map(({ data }, a) => Math.min(Math.max(Number(data[0]), 0), x.shape[a] - part.shape[a]));
  return scattered(x, part, "none", (k) => {
    let [to, step, rest] = [0, 1, k];
    for (let a = x.shape.length - 1; a >= 0; a--) {
      to += step * (at[a] + (rest % part.shape[a]));
      rest = Math.floor(rest / part.shape[a]);
      step *= x.shape[a];
    }
    return to;
  });
}

/**
 * Along an axis, each element with all before it.
 * @param {HostInput} x
 * @param {{ axis: number, reverse: boolean }} attrs
 * @param {string} reduction
 * @returns {HostArray[]}
 */
function running(x, { axis, reverse }, reduction) {
  const { outer, length, inner } = around(x.shape, axis);
  const meet = x.dtype === "int32" && reduction === "mul" ? Math.imul : REDUCTIONS[reduction];
  const data = wide(x).slice();
  for (let o = 0; o < outer; o++) {
    for (let i = 0; i < inner; i++) {
      const at = (/** @type {number} */ n) => (o * length + (reverse ? length - 1 - n : n)) * inner + i;
      for (let n = 1; n < length; n++) data[at(n)] = meet(data[at(n - 1)], data[at(n)]);
    }
  }
  return [{ data: narrow(data, x.dtype), shape: x.shape }];
}

// --- random numbers --------------------------------------------------------------------------------------------------

/**
 * NumPy's RandomState(seed).random_sample: MT19937, two of its words for each number.
 * @param {HostInput[]} inputs
 * @param {{ shape: number[] }} attrs
 * @returns {HostArray[]}
 */
function uniform([seed], { shape }) {
  const state = new Uint32Array(624);
  state[0] = Number(BigInt.asUintN(32, BigInt(seed.data[0])));
  for (let i = 1; i < 624; i++) state[i] = Math.imul(1812433253, state[i - 1] ^ (state[i - 1] >>> 30)) + i;
  let at = 624;
  const next = () => {
    if (at === 624) {
      for (let i = 0; i < 624; i++) {
        const word = (state[i] & 0x80000000) | (state[(i + 1) % 624] & 0x7fffffff);
        state[i] = state[(i + 397) % 624] ^ (word >>> 1) ^ (word & 1 ? 0x9908b0df : 0);
      }
      at = 0;
    }
    let word = state[at++];
    word ^= word >>> 11;
    word ^= (word << 7) & 0x9d2c5680;
    word ^= (word << 15) & 0xefc60000;
    return (word ^ (word >>> 18)) >>> 0;
  };
  const draw = () => {
    const high = next() >>> 5;
    return (high * 67108864 + (next() >>> 6)) / 9007199254740992;
  };
  return [{ data: Float32Array.from({ length: countOf(shape) }, draw), shape }];
}

/** @type {Record<string, (inputs: HostInput[], attrs: Unchecked) => HostArray[]>} */
export const OPS = {
  top_k: ([x], { axis, k, largest }) => ordered(x, axis, k, largest),
  sort: ([x], { axis, descending }) => ordered(x, axis, around(x.shape, axis).length, descending),
  nonzero: ([x]) => nonzero(x),
  compress: ([x, { data }], { axis }) => {
    const places = range(Math.min(data.length, around(x.shape, axis).length)).filter((k) => data[k]);
    return [taken(x, axis, places)];
  },
  unique: ([x], { axis = null, ordered: isOrdered = true }) => unique(x, axis, isOrdered),
  non_max_suppression: (inputs, { center }) => suppressed(inputs, center),
  dimensions: (_, { values, kind }) => {
    return [{ data: new ARRAYS[/** @type {DType} */ (kind)](values.map(kind === "int64" ? BigInt : Number)), shape: [values.length] }];
  },
  scatter_elements: (inputs, { axis }) => scatterElements(inputs, axis, "none"),
  scatter_elements_reduce: (inputs, { axis, reduction }) => scatterElements(inputs, axis, reduction),
  scatter_nd: (inputs) => scatterSlices(inputs, "none"),
  scatter_nd_reduce: (inputs, { reduction }) => scatterSlices(inputs, reduction),
  update_slice: updateSlice,
  random_uniform: uniform,
  running_sum: ([x], attrs) => running(x, attrs, "add"),
  running_prod: ([x], attrs) => running(x, attrs, "mul"),
  running_max: ([x], attrs) => running(x, attrs, "max"),
  sizes,
  signed_sizes: signedSizes,
  reshaped_sizes: reshaped,
  expanded_sizes: expanded,
  range_size: rangeSize,
  axes_sizes: axesSizes,
  moved_last: movedLast,
  slice_places: slicePlaces,
};
