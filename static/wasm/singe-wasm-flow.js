/**
 * The device "wasm" for programs with conditions, loops, states, and sizes or ops that stop a run midway.
 *
 * Contract: FlowDevice has the methods of Device, and states: `newStates()` returns a handle, the address of a session's
 * states, which `run` takes. A module executes conditions and loops itself, and returns at host, bind and check steps. If
 * threads share the calls, this thread executes the words and the others their parts of the calls. Buffers that are sized
 * in mid-run come after all other memory, at the latest sizes of the run.
 */

/** @import { TypedArray } from "../types/public.d.ts" */
/** @import { AnyElements, Answer, AreaKind, Areas, DispatchStep, Handle, PlainStep, SharedCalls, Sizes, SizedOutput, Step, Wanted, WasmFlowCaller, WasmParts } from "../types/program.d.ts" */

/** @import { DeviceClass, Grow } from "./singe-wasm.js" */

/** @typedef {{ Device: DeviceClass, START: number, grow: Grow }} Base */
/** @typedef {WasmPlan} FlowPlan */
/** @typedef {{ at: number, bytes: number }} Room */

import { ARRAYS, align, byName, bytesOf, countOf, outputsOf, shapeOf } from "../program/singe-format.js";
import { Plan, carryOut, prepareHost, walk } from "../program/singe-plan.js";

const WORD = 4;
/** The words of a host, bind or check step. */
const STOP_WORDS = 3;
/** A buffer that outgrows its memory gets this many times as much, so that one that grows in a loop seldom moves. */
const GROWTH = 1.5;

/** Given by singe-wasm.js, which imports this file; so this file imports nothing from it. */
/** @type {number} */
let START;

/** @type {Base["grow"]} */
let grow;

/**
 * @param {Base} base
 * @param {WasmParts} parts
 */
export async function openFlow(base, parts) {
  ({ START, grow } = base);
  await prepareHost(parts.program);
  return new (flowDevice(base.Device))(parts);
}

/** @param {Base["Device"]} Device */
const flowDevice = (Device) =>
  class FlowDevice extends Device {
    /**
     * The offset of each state from a session's address, and their total bytes.
     * @type {number[]}
     */
    #offsets;
    /**
     * Addresses of sessions that ended.
     * @type {number[]}
     */
    #free = [];

    /** @param {WasmParts} parts */
    constructor(parts) {
      super(parts);
      const { states, buffers } = parts.program;
      let end = 0;
      this.#offsets = [0, ...states.map(({ buffer }) => (end += align(bytesOf(buffers[buffer], {}))))];
    }

    /**
     * @param {TypedArray[]} inputs
     * @param {Sizes} sizes
     * @param {Wanted} wanted
     * @param {Handle} [states]
     * @param {WasmFlowCaller} [by]
     * @returns {Promise<Answer[]>}
     */
    async run(inputs, sizes, wanted, states, by) {
      const plan = /** @type {WasmPlan} */ (this.plans.at(sizes, states));
      plan.begin();
      if (wanted === "data" || !plan.late.size) return super.run(inputs, sizes, wanted, states, by);
      const answers = await super.run(inputs, sizes, "data", states, by);
      const { arraysFor } = await import("../program/singe-outputs.js");
      arraysFor(plan.outputs, wanted).forEach((array, k) => {
        if (!array) return;
        /** @type {AnyElements} */ (array).set(/** @type {AnyElements} */ (answers[k].data));
        answers[k].data = array;
      });
      return answers;
    }

    /**
     * @type {(sizes: Sizes, states?: Handle) => WasmPlan}
     */
    plan(sizes, states) {
      return new WasmPlan(this.parts, this.#offsets, sizes, /** @type {number} */ (states));
    }

    // --- states

    /** The bytes of a session's states. */
    get #size() {
      return this.#offsets[this.#offsets.length - 1];
    }

    newStates() {
      const address = this.#free.pop() ?? this.#extend();
      this.resetStates(address);
      return address;
    }

    /** Allocate memory for one more session. It comes before that of runs, so their plans are made again. */
    #extend() {
      const address = this.parts.base;
      const end = address + this.#size;
      grow(this.parts, end, "");
      this.parts.base = end;
      this.plans.clear();
      return address;
    }

    /** @param {number} address */
    resetStates(address) {
      const { program, memory } = this.parts;
      const bytes = new Uint8Array(memory.buffer);
      program.states.forEach(({ initial }, k) => {
        const [from, to] = [address + this.#offsets[k], address + this.#offsets[k + 1]];
        if (initial === null) return void bytes.fill(0, from, to);
        const start = START + program.buffers[initial].place[1];
        bytes.copyWithin(from, start, start + bytesOf(program.buffers[initial], {}));
      });
    }

    /** @param {number} address */
    copyStates(address) {
      const copy = this.#free.pop() ?? this.#extend();
      new Uint8Array(this.parts.memory.buffer).copyWithin(copy, address, address + this.#size);
      return copy;
    }

    /**
     * A view of a state's elements.
     * @param {number} address
     * @param {number} k
     */
    #view(address, k) {
      const { program, memory } = this.parts;
      const { dtype, shape } = program.buffers[program.states[k].buffer];
      return new ARRAYS[dtype](memory.buffer, address + this.#offsets[k], countOf(/** @type {number[]} */ (shape)));
    }

    /**
     * @param {number} address
     * @param {number} k
     */
    readState(address, k) {
      return this.#view(address, k).slice();
    }

    /**
     * @param {number} address
     * @param {number} k
     * @param {TypedArray} data
     */
    writeState(address, k, data) {
      /** @type {AnyElements} */ (this.#view(address, k)).set(/** @type {AnyElements} */ (data));
    }

    /** @param {number} address */
    freeStates(address) {
      this.#free.push(address);
    }
  };

/** @param {string} place */
const splitPlace = (place) => /** @type {[AreaKind, number]} */ (/** @type {unknown} */ (place.split(",")));

/** A plan with its places in the memory, and its run: what `walk` and `carryOut` call a machine. */
class WasmPlan extends Plan {
  /** @type {Map<string, Room>} */
  #first = new Map(); // places of late sizes ↦ where they lie while these are not known
  /** @type {Map<string, Room>} */
  #now = new Map(); // and where they were moved to in this run
  /** @type {Map<number, SharedCalls & { turns: number, made: number } | false>} */
  #stretches = new Map();
  /** @type {number[]} */
  #addresses;
  /** @type {Answer[]} */
  fresh = [];
  /** @type {WasmFlowCaller | undefined} */
  by = undefined;
  /** Where each buffer lies, the words with these addresses, and where memory for what grows begins: in this run. */
  addresses = /** @type {number[]} */ ([]);
  words = new Int32Array(0);
  behind = 0;
  /** @type {SizedOutput[]} */
  outputs = [];

  /**
   * @param {WasmParts} parts
   * @param {number[]} offsets
   * @param {Sizes} sizes
   * @param {number} states
   */
  constructor(parts, offsets, sizes, states) {
    super(parts.program, sizes);
    const { names, team, base } = parts;
    const { program } = this;
    let end = base;
    const areas = this.areas();
    /** @type {Record<string, number[]>} */
    const starts = { weights: [], state: offsets.map((offset) => states + offset) };

    for (const [kind, all] of Object.entries(areas)) starts[kind] = all.map((bytes) => (end += bytes) - bytes);
    this.#addresses = program.buffers.map(({ place: [kind, k] }) => (kind === "weights" ? START + k : starts[kind][k]));
    for (const place of this.late) {
      const [kind, k] = splitPlace(place);
      this.#first.set(place, { at: starts[kind][k], bytes: areas[kind][k] });
    }
    this.parts = parts;
    this.functions = names.map((name) => Number(name.slice(1)));
    this.start = end;
    this.end = align(end + WORD * this.codes.length);
    this.marks = [this.start, this.start + WORD * this.codes.length];
    this.room = team?.room(program, [...this.groups.values()], sizes) ?? 0;
    grow(parts, this.end);
    this.begin();
  }

  begin() {
    super.begin();
    for (const stretch of this.#stretches.values()) if (stretch) [stretch.turns, stretch.made] = [stretch.made, 0];
    if (this.words.length && !this.late.size) return;
    this.#now.clear();
    this.behind = this.end + this.room;
    this.addresses = [...this.#addresses];
    this.words = Int32Array.from(this.codes);
    for (const at of this.named) this.words[at] = this.addresses[this.codes[at]];
    for (const [at, step] of this.groups) if (step.do === "dispatch") this.words[at] = this.functions[step.kernel];
    this.outputs = this.late.size ? [] : outputsOf(this.program, this.sizes);
  }

  /**
   * @param {Answer[]} fresh
   * @param {WasmFlowCaller} [by]
   */
  async go(fresh, by) {
    const { run, team } = this.parts;
    this.fresh = fresh;
    this.by = by;
    if (by || team?.isThere) await walk(this, this);
    else {
      const [start, end] = this.marks;
      for (let at = start; (at = run(at, end) >>> 0) < end; at += WORD * STOP_WORDS) {
        await carryOut(this.stops[this.codes[(at - start) / WORD + 2]], this, this);
      }
    }
    if (this.late.size) this.outputs = outputsOf(this.program, this.sizes);
  }

  /**
   * @param {number} from
   * @param {number} to
   */
  calls(from, to) {
    const { run, team } = this.parts;
    if (this.by) return this.by(this, from, to);
    if (team?.isThere) {
      if (!this.#stretches.has(from)) this.#stretches.set(from, this.isFixed(from, to) && this.stretch(from, to));
      const stretch = this.#stretches.get(from);
      if (stretch) {
        stretch.made++;
        return team.run(stretch, this.fresh.splice(0));
      }
    }
    run(this.start + WORD * from, this.start + WORD * to);
  }

  /**
   * Calls between two words, as threads share them; `turns`: how often the last run made them, `made`: this run so far.
   * @param {number} from
   * @param {number} to
   * @returns {SharedCalls & { turns: number, made: number }}
   */
  stretch(from, to) {
    /** @type {SharedCalls & { turns: number, made: number }} */
    const found = { program: this.program, sizes: byName(this.sizes), steps: [], given: [], marks: [this.start + WORD * from], end: this.end, turns: 1, made: 0 };
    for (let at = from; at < to; ) {
      const next = at + 2 + this.codes[at + 1];
      found.steps.push(/** @type {Step} */ (this.groups.get(at)));
      found.given.push([...this.words.subarray(at + 2, next)]);
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
      for (const at of this.named) this.words[at] = this.addresses[this.codes[at]];
    }
    for (const at of changed) this.words[at] = this.codes[at];
    const there = new Int32Array(this.parts.memory.buffer, this.start);
    for (const at of moved.length ? [...this.named, ...changed] : changed) there[at] = this.words[at];
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
