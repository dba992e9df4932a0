/**
 * Models of one op, computed here: transformers.js makes some of its own, for what it does with a model's outputs.
 *
 * Contract: `operatorOf(bytes, from, given)` gives what runs an ONNX model whose graph is one node with an op of OPS, and with attributes
 * that it takes. It has what an InferenceSession uses of a Model. Other models are compiled by Singe's Python, where the page has
 * loaded it (singe-ort-python.js); without it, they are an error that says how to compile them.
 */

/** @import { Model, OrtSessionOptions, Output, Port } from "../types/public.d.ts" */
/** @import { Unchecked } from "../types/program.d.ts" */

/** The length of a model of one op at most. */
const MOST_BYTES = 4096;

/** @typedef {{ data: Unchecked, shape: number[], dtype: Output["dtype"] }} Array */
/** @typedef {Record<string, number | string>} Attributes */
/** @typedef {Pick<Model, "inputs" | "outputs" | "device" | "run" | "profile" | "dispose">} OrtOperator */
/**
 * What `create` was given, the devices to try, and its way to load a bundle on the first of them that opens.
 * @typedef {{ options: OrtSessionOptions, devices: readonly ("auto" | "wasm" | "webgpu")[], open(address: string, worker?: boolean): Promise<Model> }} OrtGiven
 */

/**
 * The fields of a protobuf message: its number, and a number or bytes. What is no message is a RangeError.
 * @param {Uint8Array} bytes
 * @returns {Generator<[field: number, value: Unchecked]>}
 */
function* fieldsOf(bytes) {
  let at = 0;
  const varint = () => {
    for (let value = 0n, shift = 0n; ; shift += 7n) {
      const byte = bytes[at++];
      if (byte === undefined || shift > 63n) throw new RangeError("no protobuf");
      value |= BigInt(byte % 128) << shift;
      if (byte < 128) return Number(BigInt.asIntN(64, value));
    }
  };
  const part = (/** @type {number} */ length) => {
    if (length < 0 || at + length > bytes.length) throw new RangeError("no protobuf");
    return bytes.subarray(at, (at += length));
  };
  while (at < bytes.length) {
    const key = varint();
    const wire = key % 8;
    if (![0, 1, 2, 5].includes(wire)) throw new RangeError("no protobuf");
    yield [Math.floor(key / 8), wire === 0 ? varint() : part(wire === 1 ? 8 : wire === 5 ? 4 : varint())];
  }
}

/**
 * @param {Uint8Array} bytes
 * @param {number} wanted
 */
const all = (bytes, wanted) => [...fieldsOf(bytes)].flatMap(([field, value]) => (field === wanted ? [value] : []));

const text = (/** @type {Uint8Array} */ bytes) => new TextDecoder().decode(bytes);

/**
 * The attributes of a node that are integers or texts.
 * @param {Uint8Array} node
 * @returns {Attributes}
 */
function attributesOf(node) {
  const pairs = all(node, 5).map((attribute) => {
    const [[name], [integer], [string]] = [1, 3, 4].map((field) => all(attribute, field));
    return [text(name), integer ?? (string && text(string))];
  });
  return Object.fromEntries(pairs);
}

/**
 * The elements before an axis, along it and behind it.
 * @param {number[]} shape
 * @param {number} axis
 */
const around = (shape, axis) => [shape.slice(0, axis), [shape[axis]], shape.slice(axis + 1)].map(product);

const product = (/** @type {number[]} */ dims) => dims.reduce((all, d) => all * d, 1);

/** An axis from the front; one below 0 counts from the back. @type {(axis: number | string | bigint, rank: number) => number} */
const axisOf = (axis, rank) => Number(axis) + (Number(axis) < 0 ? rank : 0);

/**
 * A new array, of which `fill` makes each line along an axis of the line of `x` at the same place.
 * @param {Array} x
 * @param {number} axis
 * @param {number} count
 * @param {(line: (k: number) => number, put: (k: number, value: number | bigint) => void) => void} fill
 * @param {Unchecked} [Elements]
 * @returns {Array}
 */
function alongAxis({ data, shape, dtype }, axis, count, fill, Elements = data.constructor) {
  const [before, length, behind] = around(shape, axis);
  const out = new Elements(before * count * behind);
  for (let b = 0; b < before; b++) {
    for (let e = 0; e < behind; e++) {
      const at = (/** @type {number} */ k, /** @type {number} */ n) => (b * n + k) * behind + e;
      fill(
        (k) => data[at(k, length)],
        (k, value) => (out[at(k, count)] = value),
      );
    }
  }
  return { data: out, shape: shape.with(axis, count), dtype };
}

/** @type {(inputs: Array[], attributes: Attributes) => Array[]} */
function topK([x, { data: asked }], { axis: given = -1, largest = 1 }) {
  const axis = axisOf(given, x.shape.length);
  const count = Number(asked[0]);
  const length = x.shape[axis];
  if (!(count >= 0 && count <= length)) throw new RangeError(`TopK: got k = ${count}, the axis has ${length} elements`);
  const sign = largest ? -1 : 1;
  const places = alongAxis(
    x,
    axis,
    count,
    (line, put) => {
      const order = Array.from({ length }, (_, k) => k).sort((p, q) => (line(p) === line(q) ? p - q : line(p) < line(q) ? -sign : sign));
      for (let k = 0; k < count; k++) put(k, BigInt(order[k]));
    },
    BigInt64Array,
  );
  const [, , behind] = around(x.shape, axis);
  const data = new x.data.constructor(places.data.length);
  for (let k = 0; k < data.length; k++) {
    data[k] = x.data[(Math.floor(k / (count * behind)) * length + Number(places.data[k])) * behind + (k % behind)];
  }
  return [
    { data, shape: places.shape, dtype: x.dtype },
    { ...places, dtype: "int64" },
  ];
}

/** @type {(inputs: Array[]) => Array[]} */
function matmul([a, b]) {
  const [rows, inner] = a.shape.length > 1 ? a.shape.slice(-2) : [1, a.shape[0]];
  const [depth, columns] = b.shape.length > 1 ? b.shape.slice(-2) : [b.shape[0], 1];
  const [outerA, outerB] = [a.shape.slice(0, -2), b.shape.slice(0, -2)];
  const rank = Math.max(outerA.length, outerB.length);
  const [fullA, fullB] = [outerA, outerB].map((outer) => [...Array.from({ length: rank - outer.length }, () => 1), ...outer]);
  if (inner !== depth || fullA.some((d, k) => d !== fullB[k] && d !== 1 && fullB[k] !== 1)) throw new RangeError(`MatMul: got shapes (${a.shape}) and (${b.shape})`);
  const outer = fullA.map((d, k) => (d === 1 ? fullB[k] : d));
  const data = new a.data.constructor(product(outer) * rows * columns);
  /** The matrix of an operand at a place in `outer`. @type {(full: number[], place: number) => number} */
  const matrix = (full, place) => {
    let [at, step] = [0, 1];
    for (let k = rank - 1; k >= 0; k--) {
      at += full[k] === 1 ? 0 : (place % outer[k]) * step;
      place = Math.floor(place / outer[k]);
      step *= full[k];
    }
    return at;
  };
  for (let place = 0, to = 0; place < product(outer); place++) {
    const [fromA, fromB] = [matrix(fullA, place) * rows * inner, matrix(fullB, place) * inner * columns];
    for (let i = 0; i < rows; i++) {
      for (let j = 0; j < columns; j++, to++) {
        let sum = 0;
        for (let k = 0; k < inner; k++) sum += a.data[fromA + i * inner + k] * b.data[fromB + k * columns + j];
        data[to] = sum;
      }
    }
  }
  const shape = [...outer, ...(a.shape.length > 1 ? [rows] : []), ...(b.shape.length > 1 ? [columns] : [])];
  return [{ data, shape, dtype: a.dtype }];
}

/** @type {(inputs: Array[]) => Array[]} */
function slice([x, { data: starts }, { data: ends }, axes, steps]) {
  for (let n = 0; n < starts.length; n++) {
    const axis = axisOf(axes ? axes.data[n] : n, x.shape.length);
    const length = x.shape[axis];
    const step = Number(steps?.data[n] ?? 1);
    if (!step) throw new RangeError("Slice: got a step of 0");
    const limit = (/** @type {bigint} */ value) => {
      const from = Number(value) + (value < 0 ? length : 0);
      return step > 0 ? Math.min(Math.max(from, 0), length) : Math.min(Math.max(from, -1), length - 1);
    };
    const [start, end] = [limit(starts[n]), limit(ends[n])];
    const count = Math.max(0, Math.ceil((end - start) / step));
    x = alongAxis(x, axis, count, (line, put) => {
      for (let k = 0; k < count; k++) put(k, line(start + k * step));
    });
  }
  return [x];
}

const CUBIC = -0.75;

/**
 * The first of the places that an element is made of, and their weights, by mode: ONNX's Resize with half pixels.
 * @type {Record<string, (x: number) => [number, number[]]>}
 */
const TAPS = {
  nearest: (x) => [Math.ceil(x - 0.5), [1]],
  linear: (x) => [Math.floor(x), [1 - (x - Math.floor(x)), x - Math.floor(x)]],
  cubic: (x) => {
    const t = x - Math.floor(x);
    const far = (/** @type {number} */ d) => CUBIC * (((d - 5) * d + 8) * d - 4);
    const near = (/** @type {number} */ d) => ((CUBIC + 2) * d - (CUBIC + 3)) * d * d + 1;
    return [Math.floor(x) - 1, [far(1 + t), near(t), near(1 - t), far(2 - t)]];
  },
};

/** @type {(inputs: Array[], attributes: Attributes) => Array[]} */
function resize([x, , , { data: sizes }], { mode = "nearest" }) {
  const taps = TAPS[mode];
  if (sizes.length !== x.shape.length) throw new RangeError(`Resize: got ${sizes.length} sizes for ${x.shape.length} axes`);
  x.shape.forEach((length, axis) => {
    const count = Number(sizes[axis]);
    if (count === length) return;
    x = alongAxis(x, axis, count, (line, put) => {
      for (let k = 0; k < count; k++) {
        const [first, weights] = taps(((k + 0.5) * length) / count - 0.5);
        put(
          k,
          weights.reduce((sum, weight, n) => sum + weight * line(Math.min(Math.max(first + n, 0), length - 1)), 0),
        );
      }
    });
  });
  return [x];
}

/** The discrete Fourier transform of real numbers, its first half. @type {(inputs: Array[]) => Array[]} */
function dft([x, , { data: given }]) {
  const axis = axisOf(given[0] ?? given, x.shape.length);
  const length = x.shape[axis];
  if (x.shape.at(-1) !== 1) throw new RangeError(`DFT: got shape (${x.shape}), expected real numbers, as a last axis of 1`);
  const cosines = Float64Array.from({ length }, (_, k) => Math.cos((2 * Math.PI * k) / length));
  const sines = Float64Array.from({ length }, (_, k) => Math.sin((2 * Math.PI * k) / length));
  const bins = Math.floor(length / 2) + 1;
  const [real, imaginary] = [cosines, sines].map((wave, part) =>
    alongAxis(x, axis, bins, (line, put) => {
      for (let bin = 0; bin < bins; bin++) {
        let sum = 0;
        for (let k = 0; k < length; k++) sum += line(k) * wave[(bin * k) % length];
        put(bin, part ? -sum : sum);
      }
    }),
  );
  const data = new x.data.constructor(2 * real.data.length).map((/** @type {number} */ _, /** @type {number} */ k) => (k % 2 ? imaginary : real).data[k >> 1]);
  return [{ data, shape: real.shape.with(-1, 2), dtype: x.dtype }];
}

/**
 * The ops, and whether their attributes are those that they take.
 * @type {Record<string, { run: (inputs: Array[], attributes: Attributes) => Array[], takes: (attributes: Attributes) => boolean }>}
 */
const OPS = {
  TopK: { run: topK, takes: ({ axis, largest, sorted = 1, ...rest }) => sorted === 1 && !Object.keys(rest).length },
  MatMul: { run: matmul, takes: (attributes) => !Object.keys(attributes).length },
  Slice: { run: slice, takes: (attributes) => !Object.keys(attributes).length },
  Resize: { run: resize, takes: ({ mode = "nearest", ...rest }) => Object.hasOwn(TAPS, mode) && !Object.keys(rest).length },
  DFT: { run: dft, takes: ({ onesided, ...rest }) => onesided === 1 && !Object.keys(rest).length },
};

/**
 * @param {Uint8Array} bytes
 * @param {URL | undefined} from
 * @param {OrtGiven} given
 * @returns {Promise<OrtOperator>}
 */
export async function operatorOf(bytes, from, given) {
  const found = bytes.length <= MOST_BYTES && oneOp(bytes);
  if (found) return found;
  const name = from?.pathname.split("/").pop() || "model.onnx";
  const compile = /** @type {Unchecked} */ (globalThis)[Symbol.for("singe.python")];
  if (compile) return (await import("./singe-ort-python.js")).compiled(compile, name, bytes, given);
  const what = `got ${bytes.length} bytes that are no stub of Singe, which runs models that were compiled before`;
  const way = `run \`singe export ${name} -o public/${name} --stub\` and serve what it writes in the model's place, or load Pyodide with Singe in this page`;
  throw new Error(`${from ?? "the model"}: ${what}: ${way}`);
}

/**
 * @param {Uint8Array} bytes
 * @returns {OrtOperator | undefined}
 */
function oneOp(bytes) {
  let node, names;
  try {
    const [graph] = all(bytes, 7);
    const nodes = all(graph, 1);
    if (nodes.length !== 1 || all(graph, 5).length) return undefined;
    [node] = nodes;
    names = [11, 12].map((field) => all(graph, field).map((value) => text(all(value, 1)[0])));
  } catch {
    return undefined; // no ONNX model
  }
  const [op] = all(node, 4).map(text);
  const attributes = attributesOf(node);
  if (!Object.hasOwn(OPS, op) || !OPS[op].takes(attributes)) return undefined;
  const [takes, gives] = [1, 2].map((field) => all(node, field).map(text));
  /** @type {(name: string) => Port} */
  const port = (name) => ({ name, dtype: "float32", shape: [] });
  const run = async (/** @type {Record<string, Unchecked>} */ inputs) => {
    const found = OPS[op].run(
      takes.map((name) => inputs[name]),
      attributes,
    );
    return Object.fromEntries(gives.map((name, k) => [name, found[k]]));
  };
  const profile = async () => ({ device: "wasm", clock: "", runs: 0, run: 0, seconds: 0, kernels: [], rest: { upload: 0, readback: 0 } });
  return /** @type {Unchecked} */ ({ inputs: names[0].map(port), outputs: names[1].map(port), device: "wasm", run, profile, dispose: async () => {} });
}
