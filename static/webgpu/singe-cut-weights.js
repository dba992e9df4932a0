/**
 * Weights on a GPU whose largest buffer cannot hold them all.
 *
 * Contract: CutWeights has what Weights of singe-gpu.js has: several buffers, cut between weights.
 */

/** @import { Program } from "../types/program.d.ts" */
/** @import { Gpu } from "./singe-gpu.js" */

import { align, bytesOf } from "../program/singe-format.js";
import { padded } from "./singe-gpu.js";

export class CutWeights {
  /** @type {Gpu} */
  #gpu;
  /** @type {{ start: number, end: number, buffer?: GPUBuffer }[]} */
  #parts = [];

  /**
   * @param {Gpu} gpu
   * @param {Program} program
   */
  constructor(gpu, program) {
    this.#gpu = gpu;
    const limit = gpu.device.limits.maxBufferSize;
    const placed = [program, ...program.specialised]
      .flatMap(({ buffers }) => buffers.filter(({ place }) => place[0] === "weights"))
      .map((buffer) => [buffer.place[1], buffer.place[1] + align(Math.max(1, bytesOf(buffer, {})))])
      .sort(([a], [b]) => a - b);
    for (const [start, end] of placed) {
      const last = this.#parts.at(-1);
      if (last && Math.max(end, last.end) - last.start <= limit) last.end = Math.max(end, last.end);
      else this.#parts.push({ start, end });
    }
    for (const part of this.#parts) part.buffer = gpu.allocate(part.end - part.start);
  }

  /**
   * @param {number} at
   * @param {Uint8Array<ArrayBuffer>} bytes
   */
  write(at, bytes) {
    for (const { start, end, buffer } of this.#parts) {
      const [from, to] = [Math.max(start, at), Math.min(end, at + bytes.length)];
      if (from < to) this.#gpu.device.queue.writeBuffer(/** @type {GPUBuffer} */ (buffer), from - start, padded(bytes.subarray(from - at, to - at)));
    }
  }

  /**
   * @param {number} offset
   * @param {number} size
   * @returns {{ buffer: GPUBuffer, offset: number, size: number }}
   */
  binding(offset, size) {
    const { start, buffer } = /** @type {{ start: number, buffer: GPUBuffer }} */ (this.#parts.findLast((part) => part.start <= offset));
    return { buffer, offset: offset - start, size };
  }
}
