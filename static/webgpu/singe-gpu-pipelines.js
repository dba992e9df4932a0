/** The pipelines of a program's kernels: each text is compiled once, when sizes first need it. */

/** @import { Dim, GpuKernel, GpuPipeline, Program, Sizes, Variant } from "../types/program.d.ts" */
/** @import { Files } from "../loading/singe-files.js" */

/** @typedef {Pick<Files, "expect" | "tell" | "json" | "each" | "stream">} GpuFiles */

import { SingeError, evaluate } from "../program/singe-format.js";

const DECLARED = /@binding\(\d+\) var<(storage, read_write|storage, read|uniform)>/g;
/** @type {Record<string, GPUBufferBindingType>} */
const KINDS = { "storage, read_write": "storage", "storage, read": "read-only-storage", uniform: "uniform" };

/** The pipelines of kernels, created when sizes first need them: many kernels are for large sizes alone. */
export class Pipelines {
  /** @type {Map<string, ReturnType<typeof buildPipeline>>} */
  #made = new Map();
  /** @type {GpuPipeline[]} */
  #found = [];
  count = { compiled: 0, kernels: 0 };
  /**
   * Of the texts: how many are compiled, and how many each of the others has, in the order in which they are asked for.
   * @type {{ compiled: number, left: Map<number, number> }}
   */
  characters = { compiled: 0, left: new Map() };

  /**
   * @param {GPUDevice} device
   * @param {Program} program
   * @param {Variant[]} variants
   * @param {Record<string, string>} texts
   * @param {GpuFiles} files
   */
  constructor(device, { kernels }, variants, texts, files) {
    /** @type {GpuKernel[]} */
    this.kernels = kernels.map(({ sizes, ports }, k) => {
      const { entry, groups } = variants[k];
      const text = Object(texts)[entry];
      if (typeof text !== "string") throw new SingeError("format", `the bundle has no module ${entry}`);
      const kinds = [...text.matchAll(DECLARED)].map(([, kind]) => KINDS[kind]);
      const storage = sizes.length && kinds.at(-1) === "uniform" ? kinds.slice(0, -1) : kinds;
      if (storage.length !== ports || storage.includes("uniform")) {
        throw new SingeError("format", `the module ${entry} does not declare ${ports} buffers`);
      }
      return { text, kinds, groups };
    });
    this.device = device;
    this.files = files;
  }

  /**
   * @param {"compiled" | "kernels"} what
   * @param {number} more
   */
  #tell(what, more) {
    this.count[what] += more;
    this.files.tell(this.count);
  }

  /**
   * Those of the kernels that some sizes need, and that have no pipeline yet. The longest text goes first: it takes longest.
   * @param {number[]} used
   * @param {Sizes} sizes
   */
  missing(used, sizes) {
    const needed = used.filter((k) => !this.#found[k] && !this.kernels[k].groups.some((dim) => isNothing(dim, sizes)));
    return needed.sort((a, b) => this.kernels[b].text.length - this.kernels[a].text.length);
  }

  /**
   * Create these.
   * @param {number[]} needed
   */
  async prepare(needed) {
    this.#tell("kernels", needed.length);
    const { characters } = this;
    const create = async (/** @type {number} */ k) => {
      const { length } = this.kernels[k].text;
      characters.left.set(k, length);
      await this.create(k);
      characters.left.delete(k);
      characters.compiled += length;
      this.#tell("compiled", 1);
    };
    await Promise.all(needed.map(create));
  }

  /** @param {number} k */
  async create(k) {
    this.#found[k] ??= await this.#make(this.kernels[k]);
  }

  /**
   * Kernels of one text share a pipeline.
   * @param {GpuKernel} kernel
   * @returns {Promise<GpuPipeline>}
   */
  async #make({ text, kinds, groups }) {
    if (!this.#made.has(text)) this.#made.set(text, buildPipeline(this.device, text, kinds));
    return { .../** @type {GpuPipeline} */ (await this.#made.get(text)), groups };
  }

  /**
   * A kernel's groups, and its pipeline unless no sizes so far needed it.
   * @param {number} k
   * @returns {GpuPipeline}
   */
  at(k) {
    return this.#found[k] ?? /** @type {GpuPipeline} */ (/** @type {unknown} */ (this.kernels[k]));
  }
}

/**
 * Whether a dimension is known to be zero at sizes of which some may be found in mid-run.
 * @param {Dim} dim
 * @param {Sizes} sizes
 */
function isNothing(dim, sizes) {
  try {
    return evaluate(dim, sizes) <= 0;
  } catch {
    return false;
  }
}

/**
 * The layout follows the declarations: a binding that the text does not use still counts.
 * @param {GPUDevice} device
 * @param {string} text
 * @param {GPUBufferBindingType[]} kinds
 */
async function buildPipeline(device, text, kinds) {
  const entries = kinds.map((type, binding) => ({ binding, visibility: GPUShaderStage.COMPUTE, buffer: { type } }));
  const layout = device.createBindGroupLayout({ entries });
  const pipeline = await device.createComputePipelineAsync({
    layout: device.createPipelineLayout({ bindGroupLayouts: [layout] }),
    compute: { module: device.createShaderModule({ code: text }), entryPoint: "main" },
  });
  return { pipeline, layout, hasSizes: kinds.at(-1) === "uniform" };
}
