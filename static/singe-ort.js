/**
 * onnxruntime-web's interface over bundles: code that was written for it runs on Singe.
 *
 * Contract: `InferenceSession`, `Tensor` and `env` are called as onnxruntime-web's are. A model is a stub, the small .onnx file
 * that `singe export --stub` writes in the place of a model and that names its bundle, or the address of a bundle, which ends
 * with a slash; in a page with Pyodide and Singe, an ONNX file too. What cannot be honoured is an error that says so; settings
 * that have no meaning here are ignored.
 */

/** @import { Model, Output, TypedArray } from "./types/public.d.ts" */
/** @import { OrtData, OrtMetadata, OrtPictureOptions, OrtRunOptions, OrtSessionOptions, OrtTensorOptions, OrtType } from "./types/public.d.ts" */
/** @import { ArrayClass, Unchecked } from "./types/program.d.ts" */

import { ARRAYS, VERSION } from "./program/singe-format.js";
import { bundleOf } from "./ort/singe-ort-stub.js";
import { load } from "./singe.js";

/**
 * onnxruntime's settings. Singe reads `wasm.numThreads`, `wasm.proxy` (a model in a worker) and `webgpu.device`, and sets the
 * last one; it has no files of its own to find, so `wasm.wasmPaths` and the like are ignored.
 * @type {{ logLevel: string, debug: boolean, trace: boolean, wasm: Record<string, any>, webgl: Record<string, any>, webgpu: Record<string, any>, versions: Record<string, string> }}
 */
export const env = { logLevel: "warning", debug: false, trace: false, wasm: {}, webgl: {}, webgpu: {}, versions: { singe: VERSION } };

/** @param {string} type */
const arrayOf = (type) =>
  /** @type {ArrayClass | undefined} */ ((type === "float16" && globalThis.Float16Array) || (Object.hasOwn(ARRAYS, type) ? /** @type {Unchecked} */ (ARRAYS)[type] : undefined));

/** @param {readonly number[]} dims */
function sizeOf(dims) {
  if (!Array.isArray(dims) || dims.some((d) => !Number.isSafeInteger(d) || d < 0)) throw new TypeError(`dims: got ${dims}, expected whole numbers`);
  return dims.reduce((size, d) => size * d, 1);
}

/**
 * The dtype and elements of what a constructor was given.
 * @param {Unchecked} type
 * @param {Unchecked} data
 * @returns {[OrtType, OrtData]}
 */
function elementsOf(type, data) {
  if (Array.isArray(data)) {
    const first = typeof data[0];
    type ??= first === "boolean" ? "bool" : first === "string" ? first : "";
    if (type === "string") return [type, data];
  }
  type ??= data?.constructor?.name?.replace(/^Big|(Clamped)?Array$/g, "").toLowerCase();
  const wanted = arrayOf(type);
  if (!wanted) throw new TypeError(`type: got ${type || "none"}, expected a dtype`);
  if (data instanceof wanted) return [type, /** @type {OrtData} */ (data)];
  if (type === "uint8" && data instanceof Uint8ClampedArray) return [type, Uint8Array.from(data)];
  if (type === "float16" && data instanceof Uint16Array) return [type, /** @type {Unchecked} */ (new wanted(data.buffer, data.byteOffset, data.length))];
  if (!Array.isArray(data) || /^u?int4$/.test(type) || (type === "float16" && wanted === ARRAYS.float16)) {
    throw new TypeError(`a tensor of ${type}: got ${data?.constructor?.name ?? data}, expected ${wanted.name}`);
  }
  return [type, /** @type {Unchecked} */ (wanted).from(data, /64$/.test(type) && type !== "float64" ? BigInt : Number)];
}

/** A tensor, on the CPU or in a GPU buffer. */
export class Tensor {
  /** @type {GPUBuffer | undefined} */
  #buffer;
  /** @type {Pick<OrtTensorOptions, "download" | "dispose">} */
  #own;

  /**
   * From (type, data, dims), from (data, dims), or from an object that says where the data is.
   * @param {OrtType | OrtData | readonly boolean[] | OrtTensorOptions} first
   * @param {OrtData | readonly (number | bigint | boolean)[]} [second]
   * @param {readonly number[]} [third]
   */
  constructor(first, second, third) {
    const place = /** @type {Unchecked} */ (Object(first) === first && "location" in /** @type {object} */ (first) ? first : undefined);
    if (place && !/^(cpu(-pinned)?|gpu-buffer)$/.test(place.location)) {
      throw new TypeError(`location: got ${place.location}, expected cpu or gpu-buffer`);
    }
    const isTyped = typeof first === "string";
    const [type, data] = place?.gpuBuffer
      ? [place.type, undefined]
      : place
        ? elementsOf(place.type, place.data)
        : elementsOf(isTyped ? first : undefined, isTyped ? second : first);
    this.type = /** @type {OrtType} */ (type);
    this.dims = /** @type {readonly number[]} */ (place?.dims ?? (isTyped ? third : second) ?? [data?.length]);
    this.size = /** @type {number} */ (sizeOf(this.dims));
    this.location = /** @type {"cpu" | "cpu-pinned" | "gpu-buffer" | "none"} */ (place?.location ?? "cpu");
    this.#has(data);
    this.#own = place ?? {};
    this.#buffer = place?.gpuBuffer;
    const halved = /^u?int4$/.test(type) && data?.length === Math.ceil(this.size / 2);
    if (data && data.length !== this.size && !halved) throw new Error(`Tensor's size(${this.size}) does not match data length(${data.length}).`);
  }

  /** @returns {OrtData} */
  get data() {
    return this.#missing("data");
  }

  /**
   * The data as the tensor's own property, since libraries copy these.
   * @param {OrtData} [value]
   */
  #has(value) {
    if (value) Object.defineProperty(this, "data", { value, enumerable: true, configurable: true });
  }

  get gpuBuffer() {
    return this.#buffer ?? this.#missing("gpuBuffer");
  }

  /**
   * @param {string} what
   * @returns {never}
   */
  #missing(what) {
    throw new Error(this.location === "none" ? "the tensor is disposed" : `${what}: the tensor is on ${this.location}; getData() copies it`);
  }

  /**
   * The data, which comes to the CPU if it is not there; release: free the buffer that it was in.
   * @param {boolean} [release]
   * @returns {Promise<OrtData>}
   */
  async getData(release) {
    if (this.location !== "gpu-buffer") return this.data;
    const { download, dispose } = this.#own;
    if (!download) return this.#missing("data");
    const [, data] = elementsOf(this.type, await download());
    this.#has(data);
    this.location = "cpu";
    if (release) dispose?.();
    this.#buffer = undefined;
    this.#own = release ? {} : { dispose };
    return data;
  }

  dispose() {
    this.#own.dispose?.();
    this.#own = {};
    this.#buffer = undefined;
    delete (/** @type {Unchecked} */ (this).data);
    this.location = "none";
  }

  /**
   * The same data with other dims.
   * @param {readonly number[]} dims
   */
  reshape(dims) {
    if (sizeOf(dims) !== this.size) throw new Error(`reshape: got ${sizeOf(dims)} elements, expected ${this.size}`);
    return this.#buffer ? new Tensor({ ...this.#own, location: "gpu-buffer", type: this.type, dims, gpuBuffer: this.#buffer }) : new Tensor(this.type, this.data, dims);
  }

  /**
   * The picture of a tensor of 3 or 4 channels; a pixel is (value − bias) · mean, with a mean of 255 unless `norm` says otherwise.
   * @param {{ format?: string, tensorLayout?: "NCHW" | "NHWC", norm?: { mean?: number | number[], bias?: number | number[] } }} [options]
   * @returns {ImageData}
   */
  toImageData({ format = "RGB", tensorLayout = "NCHW", norm = {} } = {}) {
    const isLast = tensorLayout === "NHWC";
    const sides = [...this.dims.slice(-3)];
    const [channels] = sides.splice(isLast ? 2 : 0, 1);
    const [height, width] = sides;
    if (channels !== format.length || this.size !== channels * height * width) {
      throw new Error(`a picture of ${format}: got dims ${this.dims.join(" × ")}, expected ${tensorLayout}`);
    }
    const image = new ImageData(width, height);
    const of = (/** @type {number | number[] | undefined} */ value, /** @type {number} */ k, /** @type {number} */ other) => (Array.isArray(value) ? value[k] : (value ?? other));
    [..."RGBA"].forEach((letter, to) => {
      const from = format.indexOf(letter);
      for (let k = 0; k < height * width; k++) {
        const value = Number(from < 0 ? 0 : this.data[isLast ? k * channels + from : from * height * width + k]);
        image.data[4 * k + to] = from < 0 ? 255 : (value - of(norm.bias, from, 0)) * of(norm.mean, from, 255);
      }
    });
    return image;
  }

  /**
   * The same picture as the address of a PNG; in pages alone, since workers have no such canvas.
   * @param {Parameters<Tensor["toImageData"]>[0]} [options]
   */
  toDataURL(options) {
    const image = this.toImageData(options);
    const { width, height } = image;
    const canvas = Object.assign(document.createElement("canvas"), { width, height });
    /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d")).putImageData(image, 0, 0);
    return canvas.toDataURL();
  }

  /**
   * A picture as a tensor of the shape (1, 3, height, width): (pixel + bias) / mean, with a mean of 255 unless `norm` says otherwise.
   * @param {string | Blob | ImageData | Exclude<CanvasImageSource, SVGImageElement>} image
   * @param {OrtPictureOptions} [options]
   * @returns {Promise<Tensor>}
   */
  static async fromImage(image, options = {}) {
    const { data, dims } = await (await import("./ort/singe-ort-picture.js")).read(image, options);
    return new Tensor("float32", data, dims);
  }

  /**
   * A tensor in the caller's buffer, of elements of four bytes or more, or of float16.
   * @param {GPUBuffer} gpuBuffer
   * @param {{ dataType?: OrtType, dims: readonly number[], download?(): Promise<OrtData>, dispose?(): void }} options
   */
  static fromGpuBuffer(gpuBuffer, { dataType = "float32", ...options }) {
    if (!/32$|64$|^float16$/.test(dataType)) throw new TypeError(`a GPU buffer of ${dataType}: give it on the CPU`);
    return new Tensor({ ...options, location: "gpu-buffer", type: dataType, gpuBuffer });
  }

  /**
   * A tensor in the caller's array.
   * @param {OrtType} type
   * @param {OrtData} data
   * @param {readonly number[]} [dims]
   */
  static fromPinnedBuffer(type, data, dims) {
    return new Tensor({ location: "cpu-pinned", type, data, dims });
  }

  static fromTexture() {
    return new Tensor(/** @type {Unchecked} */ ({ location: "texture" }));
  }

  static fromMLTensor() {
    return new Tensor(/** @type {Unchecked} */ ({ location: "ml-tensor" }));
  }
}

/**
 * The devices to try, in order: "cpu" is WebAssembly too.
 * @param {OrtSessionOptions["executionProviders"]} [given]
 * @returns {("auto" | "wasm" | "webgpu")[]}
 */
function devicesOf(given = []) {
  const names = given.map((provider) => (typeof provider === "string" ? provider : provider.name));
  const known = names.map((name) => (name === "cpu" ? "wasm" : name)).filter((name) => name === "wasm" || name === "webgpu");
  if (names.length && !known.length) throw new Error(`executionProviders: got ${names.join(", ")}, Singe has webgpu and wasm`);
  return known.length ? known : ["auto"];
}

/** A model that is ready to run. */
export class InferenceSession {
  #model;
  #preferred;
  /** The inputs of the last run, while profiling. @type {Parameters<Model["profile"]>[0] | undefined} */
  #seen;
  #isProfiling = false;

  /**
   * Use `create`.
   * @param {Pick<Model, "inputs" | "outputs" | "device" | "run" | "profile" | "dispose">} model
   * @param {OrtSessionOptions} options
   */
  constructor(model, options) {
    this.#model = model;
    this.#preferred = options.preferredOutputLocation ?? "cpu";
  }

  /**
   * A session of a stub or a bundle: its address, or a stub's bytes.
   * @param {string | URL | ArrayBufferLike | Uint8Array} source
   * @param {OrtSessionOptions | number} [first] the options, or where the bytes begin in a buffer
   * @param {number | OrtSessionOptions} [length]
   * @param {OrtSessionOptions} [last]
   * @returns {Promise<InferenceSession>}
   */
  static async create(source, first, length, last) {
    const options = /** @type {OrtSessionOptions} */ ([last, length, first].find((given) => Object(given) === given) ?? {});
    const devices = devicesOf(options.executionProviders);
    const isAddress = typeof source === "string" || source instanceof URL;
    const [at, count] = [first, length].map((given) => (typeof given === "number" ? given : undefined));
    const bytes = isAddress ? undefined : source instanceof Uint8Array ? source : new Uint8Array(source, at, count);
    const { numThreads: threads = 0, proxy } = env.wasm;
    const open = async (/** @type {string} */ address, worker = proxy) => {
      for (;;) {
        const device = /** @type {"auto" | "wasm" | "webgpu"} */ (devices.shift());
        try {
          const more = device === "webgpu" ? { gpuDevice: await (await import("./ort/singe-ort-gpu.js")).sharedDevice(env.webgpu) } : { worker };
          return /** @type {Model} */ (await load(address, { device, threads, ...more }));
        } catch (error) {
          if (!devices.length || /** @type {Unchecked} */ (error).code !== "device") throw error;
        }
      }
    };
    const found = await bundleOf(isAddress ? String(source) : undefined, bytes, { options, devices, open });
    return new InferenceSession(typeof found === "string" ? await open(found) : found, options);
  }

  get inputNames() {
    return this.#model.inputs.map(({ name }) => name);
  }

  get outputNames() {
    return this.#model.outputs.map(({ name }) => name);
  }

  get inputMetadata() {
    return this.#model.inputs.map(described);
  }

  get outputMetadata() {
    return this.#model.outputs.map(described);
  }

  /**
   * Run the model. `fetches` are names of outputs, or tensors by their names that take the results.
   * @param {Record<string, Tensor>} feeds
   * @param {readonly string[] | Record<string, Tensor | null> | OrtRunOptions} [fetches]
   * @param {OrtRunOptions} [_options]
   * @returns {Promise<Record<string, Tensor>>}
   */
  async run(feeds, fetches, _options) {
    const names = this.outputNames;
    const given = /** @type {Record<string, Tensor | null>} */ (Array.isArray(fetches) ? Object.fromEntries(fetches.map((name) => [name, null])) : (fetches ?? {}));
    const asked = Array.isArray(fetches) ? fetches : names.filter((name) => Object.hasOwn(given, name));
    const unknown = asked.find((name) => !names.includes(name));
    if (unknown !== undefined) throw new RangeError(`'fetches' contains invalid output name: ${unknown}.`);
    const wanted = asked.length ? asked : names;
    const inputs = await this.#inputs(feeds);
    if (this.#isProfiling) this.#seen = inputs;
    const onGpu = (/** @type {string} */ name) => (given[name]?.location ?? (typeof this.#preferred === "string" ? this.#preferred : this.#preferred[name])) === "gpu-buffer";
    const isGpu = this.#model.device === "webgpu" && wanted.some(onGpu);
    const taking = wanted.filter((name) => given[name] && (!isGpu || onGpu(name)));
    const into = Object.fromEntries(taking.map((name) => [name, /** @type {Tensor} */ (given[name])[isGpu ? "gpuBuffer" : "data"]]));
    const outputs = isGpu || taking.length ? into : "data";
    const running = this.#model.run(inputs, { outputs: /** @type {Unchecked} */ (outputs) }).catch(async (error) => {
      throw (await import("./ort/singe-ort-refused.js")).restated(error, this.#model.inputs, feeds);
    });
    const found = /** @type {Record<string, Output>} */ (/** @type {unknown} */ (await running));
    if (!isGpu) return Object.fromEntries(wanted.map((name) => [name, given[name] ?? new Tensor(/** @type {OrtType} */ (found[name].dtype), found[name].data, found[name].shape)]));
    return (await import("./ort/singe-ort-gpu.js")).tensorsOf(
      /** @type {Unchecked} */ (found),
      wanted,
      given,
      onGpu,
      /** @type {Unchecked} */ (this.#model).gpuDevice,
      (options) => new Tensor(options),
    );
  }

  /**
   * What Singe takes for feeds. As in onnxruntime, one element is a scalar, whatever its dims.
   * @param {Record<string, Tensor>} feeds
   */
  async #inputs(feeds) {
    if (Object(feeds) !== feeds || feeds instanceof Tensor || Array.isArray(feeds)) throw new TypeError("'feeds' must be an object of tensors by name");
    const names = this.inputNames;
    const unknown = Object.keys(feeds).find((name) => !names.includes(name));
    if (unknown !== undefined) throw new Error(`invalid input '${unknown}'`);
    const found = this.#model.inputs.map(async ({ name, shape }) => {
      const { type, dims, location, size } = feeds[name] ?? {};
      if (!dims) throw new Error(`input '${name}' is missing in 'feeds'.`);
      const data = location !== "gpu-buffer" ? feeds[name].data : this.#model.device === "webgpu" ? feeds[name].gpuBuffer : await feeds[name].getData();
      return /** @type {const} */ ([
        name,
        { data: /** @type {TypedArray} */ (data), shape: shape.length || size !== 1 ? [...dims] : [], dtype: /** @type {Exclude<OrtType, "string">} */ (type) },
      ]);
    });
    return Object.fromEntries(await Promise.all(found));
  }

  /** Free the model's memory. */
  async release() {
    await this.#model.dispose();
  }

  startProfiling() {
    this.#isProfiling = true;
  }

  /** Print where the time of a run goes, on the inputs of the last one. */
  endProfiling() {
    this.#isProfiling = false;
    if (this.#seen) this.#model.profile(this.#seen).then(({ kernels }) => console.table(kernels), console.error);
    this.#seen = undefined;
  }
}

/**
 * @param {{ name: string, dtype: string, shape: (number | string)[] }} port
 * @returns {OrtMetadata}
 */
const described = ({ name, dtype, shape }) => ({ name, isTensor: true, type: /** @type {OrtType} */ (dtype), shape: [...shape] });

/** All of it, for code that imports it so. */
const ort = { InferenceSession, Tensor, env };
export default ort;
