/**
 * A plan with its places in a model's memory, and its run there.
 *
 * Contract: `run(fresh, by)` executes the words. The module does so itself, conditions and loops included, and returns at
 * the stops; if threads share the calls, this thread goes through the words and the others do their parts of the calls.
 * Buffers that are sized in mid-run come after all other memory, at the latest sizes of the run.
 */

/** @import { TypedArray } from "../types/public.d.ts" */
/** @import { AnyElements, Answer, AreaKind, Areas, SharedCalls, SizedOutput, Sizes, WasmCaller, WasmParts } from "../types/program.d.ts" */

/** @typedef {{ at: number, bytes: number }} Room */

import { ARRAYS, SingeError, align, countOf, shapeOf } from "../program/singe-format.js";
import { Plan, carryOut, walk } from "../program/singe-plan.js";
import { headsOf } from "../program/singe-words.js";

const PAGE = 65536;
/** Where the weights begin. */
export const START = 256;
const WORD = 4;
const STOP_WORDS = 3;
/** After the words: where the workspaces of other threads begin, and the bytes of each. */
const SPACE_WORDS = 2;
/** A buffer that outgrows its memory gets this many times as much, so that one that grows in a loop seldom moves. */
const GROWTH = 1.5;

/**
 * Let the memory have so many bytes. If an automatic choice of threads is what limits it, the model is opened again without.
 * @param {Pick<WasmParts, "memory"> & Partial<WasmParts>} parts
 * @param {number} bytes
 * @param {string} [advice]
 */
export function grow({ memory, team, program }, bytes, advice = "run less at a time, or ") {
  const held = memory.buffer.byteLength;
  try {
    if (bytes > held) memory.grow(Math.ceil((bytes - held) / PAGE));
  } catch (cause) {
    const code = team?.automatic && !program?.states.length ? "lost" : "device";
    const text = `no WebAssembly memory of ${bytes} bytes here, ${held} are held: ${advice}load the model with `;
    throw new SingeError(code, text + (team ? "threads: 1" : 'device: "webgpu"'), cause);
  }
}

/** @param {string} place */
const splitPlace = (place) => /** @type {[AreaKind, number]} */ (/** @type {unknown} */ (place.split(",")));

/** What `walk` and `carryOut` call a machine is the plan itself. */
export class WasmPlan extends Plan {
  /** @type {Map<string, Room>} */
  #first = new Map(); // places of late sizes ↦ where they lie while these are not known
  /** @type {Map<string, Room>} */
  #now = new Map(); // and where they were moved to in this run
  /** @type {Map<number, SharedCalls>} */
  #stretches = new Map();
  /** @type {number[]} */
  #addresses;
  /** @type {Answer[]} */
  #fresh = [];
  /** @type {WasmCaller | undefined} */
  #by = undefined;
  /** Where each buffer lies, the words with these addresses, and where memory for what grows begins: in this run. */
  addresses = /** @type {number[]} */ ([]);
  code = new Int32Array(0);
  behind = 0;
  /** The workspaces of other threads, for which memory is taken once they have something to do. */
  space = { at: 0, bytes: 0 };
  /** @type {SizedOutput[]} */
  outputs = [];

  /**
   * @param {WasmParts} parts
   * @param {Sizes} sizes
   * @param {number[]} states
   */
  constructor(parts, sizes, states) {
    super(parts.program, sizes);
    const { program, words } = this;
    let end = parts.base;
    const areas = this.areas();
    /** @type {Record<string, number[]>} */
    const starts = { weights: [], state: states };
    for (const [kind, all] of Object.entries(areas)) starts[kind] = all.map((bytes) => (end += bytes) - bytes);
    this.#addresses = program.buffers.map(({ place: [kind, k] }) => (kind === "weights" ? START + k : starts[kind][k]));
    for (const place of this.late) {
      const [kind, k] = splitPlace(place);
      this.#first.set(place, { at: starts[kind][k], bytes: areas[kind][k] });
    }
    this.parts = parts;
    this.start = end;
    this.end = align(end + WORD * (words.length + SPACE_WORDS));
    grow(parts, this.end);
  }

  /** @param {Sizes} sizes */
  refit(sizes) {
    const changed = super.refit(sizes);
    if (!changed) return undefined;
    for (const at of changed) if (at < this.code.length) this.code[at] = this.words[at];
    if (!this.late.size) this.outputs = this.sizedOutputs();
    return changed;
  }

  /** Before a run: the words and addresses as the inputs' sizes give them. */
  begin() {
    super.begin();
    for (const stretch of this.#stretches.values()) [stretch.turns, stretch.made] = [stretch.made, 0];
    if (!this.code.length || this.late.size) {
      this.#now.clear();
      this.behind = this.end;
      this.space = { at: this.end, bytes: 0 };
      this.addresses = [...this.#addresses];
      this.code = Int32Array.from([...this.words, 0, 0]);
      for (const at of this.named) this.code[at] = this.addresses[this.words[at]];
      for (const at of headsOf(this.words)) if (this.words[at] >= 0) this.code[at] = Number(this.parts.names[this.words[at]].slice(1));
      this.outputs = this.late.size ? [] : this.sizedOutputs();
      this.#place();
    }
    new Int32Array(this.parts.memory.buffer, this.start).set(this.code);
  }

  /**
   * fresh: outputs with new arrays. by: makes the calls itself.
   * @param {Answer[]} fresh
   * @param {WasmCaller} [by]
   */
  async run(fresh, by) {
    const { run, team } = this.parts;
    this.#fresh = fresh;
    this.#by = by;
    if (by || team?.isThere) await walk(this, this);
    else {
      const end = this.start + WORD * this.words.length;
      for (let at = this.start; (at = run(at, end) >>> 0) < end; at += WORD * STOP_WORDS) {
        await carryOut(this.program.stops[this.words[(at - this.start) / WORD + 2]], this, this);
      }
    }
    if (this.late.size) this.outputs = this.sizedOutputs();
  }

  /**
   * @param {number} from
   * @param {number} to
   */
  calls(from, to) {
    const { run, team } = this.parts;
    if (this.#by) return this.#by(this, from, to);
    if (team?.isThere) {
      const stretch = this.#stretches.get(from) ?? this.#stretch(from, to);
      this.#stretches.set(from, stretch);
      stretch.made++;
      return team.run(stretch, this.#fresh.splice(0));
    }
    run(this.start + WORD * from, this.start + WORD * to);
  }

  /**
   * @param {number} from
   * @param {number} to
   * @returns {SharedCalls}
   */
  #stretch(from, to) {
    /** @type {SharedCalls} */
    const found = { plan: this, heads: [], marks: [this.start + WORD * from], turns: 1, made: 0, took: 0, tried: new Map() };
    for (let at = from; at < to; ) {
      const next = at + 2 + this.words[at + 1];
      found.heads.push(at);
      found.marks.push(this.start + WORD * next);
      at = next;
    }
    return found;
  }

  /** @param {number} index */
  read(index) {
    const { dtype, ...buffer } = this.program.buffers[index];
    const shape = shapeOf(buffer, this.sizes);
    return { data: new ARRAYS[dtype](this.parts.memory.buffer, this.addresses[index], countOf(shape)), shape };
  }

  /** @param {number} index */
  first(index) {
    return this.read(index).data[0];
  }

  /**
   * @param {number} index
   * @param {TypedArray} data
   */
  write(index, data) {
    /** @type {AnyElements} */ (this.read(index).data).set(/** @type {AnyElements} */ (data));
  }

  /** @param {Sizes} found */
  bind(found) {
    const changed = this.learn(found);
    const areas = this.areas();
    const moved = [...this.late].filter((place) => this.#grow(place, areas));
    if (moved.length) {
      this.program.buffers.forEach(({ place }, i) => {
        if (moved.includes(place.join())) this.addresses[i] = /** @type {Room} */ (this.#now.get(place.join())).at;
      });
      for (const at of this.named) this.code[at] = this.addresses[this.words[at]];
    }
    for (const at of changed) this.code[at] = this.words[at];
    const there = new Int32Array(this.parts.memory.buffer, this.start);
    this.#place();
    for (const at of moved.length ? [...this.named, ...changed] : changed) there[at] = this.code[at];
    there.set(this.code.subarray(this.words.length), this.words.length);
    for (const stretch of this.#stretches.values()) stretch.shared = undefined;
  }

  /** Find a place for the threads' workspaces at the sizes so far. */
  #place() {
    const { each, bytes } = this.parts.team?.room(this) ?? { each: 0, bytes: 0 };
    if (bytes > this.space.bytes) {
      this.space = { at: this.behind, bytes };
      this.behind += bytes;
    }
    this.code.set([this.space.at, each], this.words.length);
  }

  /**
   * Make room for a place, keeping its contents; returns whether it moved.
   * @param {string} place
   * @param {Areas} areas
   */
  #grow(place, areas) {
    const [kind, k] = splitPlace(place);
    const bytes = areas[kind][k];
    const { memory } = this.parts;
    const before = /** @type {Room} */ (this.#now.get(place) ?? this.#first.get(place));
    if (bytes <= before.bytes) return false;
    const now = { at: this.behind, bytes: align(Math.max(bytes, GROWTH * before.bytes)) };
    this.behind += now.bytes;
    grow(this.parts, this.behind);
    new Uint8Array(memory.buffer).copyWithin(now.at, before.at, before.at + before.bytes);
    this.#now.set(place, now);
    return true;
  }
}
