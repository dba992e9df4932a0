/**
 * A program's words at the sizes of a run, and their execution.
 *
 * Contract: a Plan sets the words that depend on the sizes that the inputs give, `refit` sets them for others, and `learn`
 * those that depend on sizes found in mid-run. `walk(plan, machine)` executes the words; WebAssembly modules do so too, and leave the stops to
 * `carryOut`. The program was checked by singe-checks.js.
 */

/** @import { Areas, Dim, HostInput, Machine, Program, ProgramBuffer, ProgramKernel, SizedOutput, Sizes, Stop } from "../types/program.d.ts" */
/** @import * as hosts from "./singe-host.js" */

import { ALIGN, IS, SingeError, align, byName, bytesOf, countOf, evaluate, namesIn, partAt, partsOf, shapeOf, sizeName } from "./singe-format.js";
import { AGAIN, COPY, JUMP, LOOP, STOP, UNLESS, headsOf, portsAt } from "./singe-words.js";

/** The largest size, the most elements of a buffer that a kernel takes, and the most turns of a loop. */
const MOST = 2 ** 31 - 1;

/** The words of a program for the sizes of its inputs; a run adds the sizes that it finds to `sizes`. */
export class Plan {
  /**
   * The positions of words that are buffers.
   * @type {number[]}
   */
  named = [];
  /**
   * Words whose sizes are found in mid-run.
   * @type {{ at: number, names: string[], value: () => number }[]}
   */
  #open = [];
  /**
   * What sets the words that depend on bounded sizes.
   * @type {{ at: number, set: () => void }[]}
   */
  #bounded = [];
  /**
   * The buffers whose bytes depend on bounded sizes.
   * @type {ProgramBuffer[] | undefined}
   */
  #sized;
  /** @type {Sizes} */
  #given;
  /**
   * The buffers whose sizes are found in mid-run.
   * @type {Set<ProgramBuffer>}
   */
  #late;

  /**
   * @param {Program} whole
   * @param {Sizes} sizes
   */
  constructor(whole, sizes) {
    const program = partAt(whole, sizes);
    this.program = program;
    this.sizes = this.#given = this.#checked(sizes);
    this.words = [...program.words];
    /** Whether all that a run does are calls and copies. */
    this.isStraight = true;
    for (const at of headsOf(program.words)) this.#set(at);
    this.#late = new Set(program.buffers.filter(({ shape }) => !this.#known(shape.flatMap(namesIn))));
    /** Places of buffers whose sizes are found in mid-run. */
    this.late = new Set([...this.#late].map(({ place }) => place.join()));
  }

  /**
   * Set the words for the sizes of other inputs, of which only those differ that are bounded; returns the positions of these
   * words. Nothing is done if a buffer needs more memory than `areas` gave it, for the most of these sizes.
   * @param {Sizes} sizes
   */
  refit(sizes) {
    if (Object.entries(sizes).every(([name, size]) => this.#given[name] === size)) return [];
    this.#sized ??= this.program.buffers.filter(({ shape }) => this.#isBounded(shape.flatMap(namesIn)));
    const { most } = this;
    const needs = (/** @type {ProgramBuffer} */ buffer, /** @type {Sizes} */ at) => this.#room(buffer, byName(at));
    if (this.#sized.some((buffer) => needs(buffer, sizes) > Math.max(needs(buffer, most), needs(buffer, this.#given)))) return undefined;
    this.resize(sizes);
    this.#given = {}; // until all words are set
    for (const { set } of this.#bounded) set();
    this.#given = sizes;
    return this.#bounded.map(({ at }) => at);
  }

  /** The sizes; where they are bounded, the most that they may be. */
  get most() {
    return byName(this.sizes, this.program.bounds);
  }

  /** @param {string[]} names */
  #isBounded(names) {
    return names.some((name) => Object.hasOwn(this.program.bounds, name));
  }

  /**
   * Do it now, and when the plan is fitted again if that changes one of these sizes.
   * @param {number} at
   * @param {string[]} names
   * @param {() => void} set
   */
  #keep(at, names, set) {
    set();
    if (this.#isBounded(names)) this.#bounded.push({ at, set });
  }

  /**
   * Set the words of a group, or note that they are set when their sizes are known.
   * @param {number} at
   */
  #set(at) {
    const { words, program } = this;
    const { kernels, buffers, counts, stops } = program;
    const head = words[at];
    const [from, to] = portsAt(program, words, at);
    for (let k = from; k < to; k++) this.named.push(k);
    if (head < COPY) this.isStraight = false;
    if (head >= 0) this.numbersOf(kernels[head]).forEach((dim, k) => this.#number(to + k, [dim], () => this.number(dim)));
    else if (head === COPY) {
      const source = buffers[words[at + 3]];
      this.#number(to, source.shape, () => this.#room(source, this.sizes));
    } else if (head === LOOP) {
      const count = counts[words[at + 3]];
      this.#number(at + 3, [count], () => Math.min(MOST, Math.max(0, evaluate(count, this.sizes))));
    } else if (head === STOP) {
      const number = words[at + 2];
      const stop = stops[number];
      if (stop.do !== "check") return;
      const names = namesIn(stop.dim);
      if (!this.#known(names)) return;
      const isMet = () => evaluate(stop.dim, this.sizes) >= 0;
      this.#keep(at, names, () => void (words[at] = isMet() ? JUMP : STOP));
      this.#keep(at + 2, names, () => void (words[at + 2] = isMet() ? 3 : number));
    }
  }

  /**
   * Those that are words of a kernel's calls.
   * @param {ProgramKernel} kernel
   */
  numbersOf({ sizes }) {
    return sizes;
  }

  /**
   * A word that is a number: now, or when its sizes are known.
   * @param {number} at
   * @param {Dim[]} dims
   * @param {() => number} value
   */
  #number(at, dims, value) {
    const names = dims.flatMap(namesIn);
    const set = () => void (this.words[at] = value());
    if (this.#known(names)) this.#keep(at, names, set);
    else this.#open.push({ at, names, value });
  }

  /**
   * A number that a kernel takes.
   * @param {Dim} dim
   */
  number(dim) {
    const value = evaluate(dim, this.sizes);
    if (Math.abs(value) > MOST) throw new SingeError("input", `a size comes out as ${value}, the largest is ${MOST}`);
    return value;
  }

  /**
   * The bytes of a buffer; none if a dimension is negative, as in branches that a check refuses at these sizes.
   * @param {ProgramBuffer} buffer
   * @param {Sizes} sizes
   */
  #room({ shape, size }, sizes) {
    return shape.reduce((/** @type {number} */ product, dim) => product * Math.max(0, evaluate(dim, sizes)), size);
  }

  /** @param {string[]} names */
  #known(names) {
    return names.every((name) => Object.hasOwn(this.sizes, name));
  }

  /**
   * Whether a buffer's sizes are known. Those of a negative dimension do not count, which a later check refuses.
   * @param {ProgramBuffer} buffer
   */
  #isSized(buffer) {
    if (this.#late.has(buffer) && !this.#known(buffer.shape.flatMap(namesIn))) return false;
    return this.isStraight || buffer.shape.every((dim) => evaluate(dim, this.sizes) >= 0);
  }

  /**
   * The sizes of inputs, by name.
   * @param {Sizes} sizes
   */
  #checked(sizes) {
    for (const { dim, text } of this.program.checks) {
      if (!(evaluate(dim, sizes) >= 0)) throw new SingeError("input", text);
    }
    return byName(sizes);
  }

  /** Forget the sizes that the last run found. */
  begin() {
    this.sizes = byName(this.#given);
  }

  /**
   * Take other sizes of the inputs. Words that are numbers stay as they are.
   * @param {Sizes} sizes
   */
  resize(sizes) {
    this.sizes = this.#given = this.#checked(sizes);
  }

  /**
   * Set sizes that were found; returns the words that depend on them.
   * @param {Sizes} found
   */
  learn(found) {
    for (const [name, value] of Object.entries(found)) {
      if (!(IS.count(value) && value <= MOST)) {
        throw new SingeError("input", `the size ${name} was found to be ${value}, expected 0 to ${MOST}`);
      }
    }
    Object.assign(this.sizes, found);
    for (const buffer of this.#late) {
      if (!this.#isSized(buffer)) continue;
      const shape = shapeOf(buffer, this.sizes);
      if (countOf(shape) > MOST) throw new SingeError("input", `${buffer.name}: the shape (${shape.join(", ")}) has more than ${MOST} elements`);
    }
    const known = this.#open.filter(({ names }) => this.#known(names));
    for (const { at, value } of known) this.words[at] = value();
    return known.map(({ at }) => at);
  }

  /**
   * The bytes of slots, inputs and outputs, as far as their sizes are known; or at their bounds if they have some.
   * @param {ProgramBuffer[]} [buffers] one at least of each place and shape
   */
  areas(buffers = this.program.buffers) {
    const { program, sizes } = this;
    /** @type {Areas} */
    const areas = {
      slot: Array(program.slots).fill(ALIGN),
      input: program.inputs.map(() => ALIGN),
      output: program.outputs.map(() => ALIGN),
    };
    const isBounded = Object.keys(program.bounds).length > 0;
    const { most } = this;
    for (const buffer of buffers) {
      const [kind, k] = buffer.place;
      if (kind === "weights" || kind === "state" || !this.#isSized(buffer)) continue;
      areas[kind][k] = Math.max(areas[kind][k], align(bytesOf(buffer, sizes)), isBounded ? align(this.#room(buffer, most)) : 0);
    }
    return areas;
  }

  /**
   * The outputs at the sizes so far.
   * @returns {SizedOutput[]}
   */
  sizedOutputs() {
    const { buffers, outputs } = this.program;
    return outputs.map((index) => {
      const shape = shapeOf(buffers[index], this.sizes);
      const count = countOf(shape);
      return { ...buffers[index], index, shape, count, bytes: count * buffers[index].size };
    });
  }

  /**
   * Whether the inputs of a run give a size, or no size is named.
   * @param {string | undefined} name
   */
  isGiven(name) {
    return name === undefined || Object.hasOwn(this.#given, name);
  }
}

/**
 * Execute a plan's words. A machine has `calls(start, end)`, which makes the calls and copies between two words;
 * `read(index)`, a buffer's { data, shape }, and `first(index)`, its first element; `bind(found)`, which binds sizes in the
 * plan and allocates buffers of these sizes; `write(index, data)`. Each may return a promise.
 * @param {Plan} plan
 * @param {Machine} machine
 */
export async function walk(plan, machine) {
  const { words } = plan;
  for (let at = 0; at < words.length; ) {
    const start = at;
    while (words[at] >= COPY) at += 2 + words[at + 1];
    if (at > start) {
      const done = machine.calls(start, at);
      if (done) await done;
      continue;
    }
    const [head, count, distance, operand] = words.slice(at, at + 4);
    const behind = at + 2 + count;
    const target = at + distance;
    if (head === JUMP) at = target;
    else if (head === UNLESS) at = (await machine.first(operand)) ? behind : target;
    else if (head === LOOP) at = (words[behind - 1] = operand) ? behind : target;
    else if (head === AGAIN) at = --words[target - 1] ? target : behind;
    else {
      await carryOut(plan.program.stops[distance], plan, machine);
      at = behind;
    }
  }
}

/**
 * @param {Stop} stop
 * @param {Plan} plan
 * @param {Machine} machine
 */
export async function carryOut(stop, plan, machine) {
  if (stop.do === "bind") {
    const value = stop.dim === null ? Number(await machine.first(/** @type {number} */ (stop.buffer))) : evaluate(stop.dim, plan.sizes);
    return machine.bind({ [stop.size]: value });
  }
  if (stop.do === "check") {
    if (evaluate(stop.dim, plan.sizes) >= 0) return;
    const told = [...new Set(namesIn(stop.dim))].map((name) => `${name} = ${plan.sizes[name]}`);
    throw new SingeError("input", told.length ? `${stop.text} (got ${told.join(", ")})` : stop.text);
  }
  const { buffers } = plan.program;
  const inputs = [];
  for (const i of stop.inputs) inputs.push({ ...(await machine.read(i)), dtype: buffers[i].dtype });
  const results = host.runOp(stop, inputs, plan.sizes);
  /** @type {Sizes} */
  const found = byName();
  stop.outputs.forEach((i, k) => {
    buffers[i].shape.forEach((dim, axis) => {
      const name = sizeName(dim);
      if (!plan.isGiven(name)) found[/** @type {string} */ (name)] ??= results[k].shape[axis];
    });
  });
  await machine.bind(found);
  for (const [k, i] of stop.outputs.entries()) {
    const wanted = shapeOf(buffers[i], plan.sizes);
    const { data, shape } = results[k];
    if (shape.join() !== wanted.join()) {
      throw new SingeError("format", `${stop.op} gives the shape (${shape.join(", ")}), the program expects (${wanted.join(", ")})`);
    }
    await machine.write(i, data);
  }
}

/**
 * singe-host.js, once a program needs it.
 * @type {typeof hosts}
 */
let host;

/**
 * Load the ops of the program's host stops; a missing op is an error.
 * @param {Program} program
 */
export async function prepareHost(program) {
  const ops = new Set(partsOf(program).flatMap(({ stops }) => stops.flatMap((stop) => (stop.do === "host" ? [stop.op] : []))));
  if (!ops.size) return;
  host = await import("./singe-host.js");
  const missing = [...ops].filter((op) => !Object.hasOwn(host.OPS, op));
  if (missing.length) throw new SingeError("device", `this runner has no op ${missing.join(", ")} for the host: run the model in Python`);
}
