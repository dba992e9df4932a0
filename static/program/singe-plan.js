/**
 * The planner for programs that are more than a list of calls: a program and its sizes in, a flat list of int words out.
 *
 * Contract: `sizesFound` and `checkSteps` check that steps and states follow the format, and that every size is found
 * before a step needs it. `Plan` writes the words of core/singe/program/planner.py. WebAssembly modules execute them
 * directly; other runners use `walk(plan, machine)`. Programs that are plain lists of calls and copies need none of this.
 *
 * Words come in groups: what to do, the count of the words that follow, and these. A distance counts from the group's
 * first word. Buffers are indices into the program's list.
 *
 *     k ≥ 0   buffers…, sizes…       call kernel k
 *     COPY    to, from, bytes
 *     JUMP    distance
 *     UNLESS  distance, buffer       jump unless its first element is true
 *     LOOP    distance, count, left  left = count; jump if that is 0
 *     AGAIN   distance               decrement the word before the jump's target, a LOOP's left; jump unless it is 0
 *     STOP    number                 a host, bind or check step: the runner runs it, and binds the sizes that it found
 *
 * A check that holds at the sizes of the inputs is a JUMP to the next group.
 */

/** @import { Atom, Dim, HostInput, IfStep, LoopStep, Machine, Program, ProgramBuffer, ProgramPart, Row, Sizes, Step, StopStep, Unchecked } from "../types/program.d.ts" */
/** @import * as hosts from "./singe-host.js" */

import { SingeError, IS, align, areasOf, byName, bytesOf, check, countOf, evaluate, isDim, need, shapeOf, sizeName } from "./singe-format.js";

export const [COPY, JUMP, UNLESS, LOOP, AGAIN, STOP] = [-1, -2, -3, -4, -5, -6];
const DEEPEST = 32;
/** The largest size, the most elements of a buffer that a kernel takes, and the most turns of a loop. */
const MOST = 2 ** 31 - 1;

// --- checks ----------------------------------------------------------------------------------------------------------

/** @param {(value: Unchecked) => boolean} is */
const orNull = (is) => ({ [is.name]: (/** @type {Unchecked} */ value) => value === null || is(value) })[is.name];

/** @param {(value: Unchecked) => boolean} is */
const orNone = (is) => ({ [is.name]: (/** @type {Unchecked} */ value) => value === undefined || is(value) })[is.name];

/**
 * A step's kind ↦ its fields, the buffers that it names, and the lists of steps in it.
 * @type {Record<string, { row: Record<string, Row>, names: (s: Unchecked) => number[], inner?: (s: Unchecked) => Step[][] }>}
 */
const STEPS = {
  dispatch: { row: { kernel: IS.count, buffers: [IS.count] }, names: (s) => s.buffers },
  copy: { row: { source: IS.count, target: IS.count }, names: (s) => [s.source, s.target] },
  host: {
    row: { op: IS.text, attrs: IS.object, inputs: [IS.count], outputs: [IS.count] },
    names: (s) => [...s.inputs, ...s.outputs],
  },
  // biome-ignore lint/suspicious/noThenProperty: the format's name
  if: { row: { condition: IS.count, then: [{}], else: [{}] }, names: (s) => [s.condition], inner: (s) => [s.then, s.else] },
  loop: {
    row: { condition: orNull(IS.count), count: orNull(IS.dimension), body: [{}] },
    names: (s) => (s.condition === null ? [] : [s.condition]),
    inner: (s) => [s.body],
  },
  bind: {
    row: { size: IS.text, buffer: orNull(IS.count), dim: orNull(IS.dimension) },
    names: (s) => (s.buffer === null ? [] : [s.buffer]),
  },
  check: { row: { dim: (dim) => isDim(dim), text: IS.text }, names: () => [] },
};

/**
 * @param {Dim} dim
 * @returns {string[]}
 */
function namesIn(dim) {
  if (typeof dim === "number") return [];
  const inAtom = (/** @type {Atom} */ atom) => (typeof atom === "string" ? [atom] : [atom[1], atom[2]].flatMap(namesIn));
  return dim.flatMap(([, ...atoms]) => atoms.flatMap(inAtom));
}

/**
 * The sizes that steps find, at any depth. Checks that every step is of a known kind and has its fields.
 * @param {ProgramPart} program
 */
export function sizesFound({ steps, states, buffers, for: fixed }) {
  /** @type {Set<string | undefined>} */
  const found = new Set(Object.keys(fixed));
  check(states, [{ name: IS.text, buffer: IS.count, initial: orNull(IS.count), draws: orNone(IS.count) }], "states");
  /** @type {(list: Step[], what: string, depth: number) => void} */
  const look = (list, what, depth) => {
    need(depth <= DEEPEST, `steps are nested more than ${DEEPEST} deep`);
    list.forEach((step, k) => {
      const at = `${what}[${k}]`;
      if (!IS.text(step.do) || !Object.hasOwn(STEPS, step.do)) {
        throw new SingeError("device", `${at} does ${JSON.stringify(step.do)}, which this runner lacks: export the model again`);
      }
      const { row, names, inner } = STEPS[step.do];
      check(step, row, at);
      need(
        names(step).every((i) => buffers[i]),
        `${at} names buffers ${names(step)}, not all of which are there`,
      );
      if (step.do === "bind") {
        need((step.buffer === null) !== (step.dim === null), `${at} binds ${step.size} to a buffer and a dimension, or to neither`);
        found.add(step.size);
      }
      if (step.do === "host") for (const i of step.outputs) buffers[i].shape.map(sizeName).forEach((name) => found.add(name));
      inner?.(step).forEach((steps) => look(steps, at, depth + 1));
    });
  };
  look(steps, "steps", 0);
  found.delete(undefined);
  return found;
}

/**
 * The bytes of a buffer; NaN if they depend on sizes.
 * @param {Pick<ProgramBuffer, "shape" | "size">} buffer
 */
const takenBy = ({ shape, size }) => shape.reduce((/** @type {number} */ product, d) => product * (typeof d === "number" ? d : NaN), size);

/**
 * Check that buffers fit their places, that sizes are found before they are needed, and that conditions and sizes can be read.
 * @param {ProgramPart} program
 */
export function checkSteps({ steps, states, inputs, outputs, buffers, kernels, for: fixed }) {
  const inAll = (/** @type {Set<string | undefined>[]} */ sets) => sets.reduce((common, set) => new Set([...common].filter((name) => set.has(name))));
  /** @type {Map<object, string[]>} */
  const kept = new Map();
  const needs = (/** @type {object} */ thing, /** @type {() => Dim[]} */ dims) => kept.get(thing) ?? /** @type {string[]} */ (kept.set(thing, dims().flatMap(namesIn)).get(thing));
  const known = (/** @type {string[]} */ names, /** @type {Set<string | undefined>} */ sizes, /** @type {string} */ what) => {
    const missing = names.find((name) => !sizes.has(name));
    need(missing === undefined, `${what} needs the size ${missing} before it is found`);
  };
  const value = (/** @type {number} */ i, /** @type {string[]} */ kinds, /** @type {string} */ what) => {
    need(kinds.includes(buffers[i].dtype) && takenBy(buffers[i]) !== 0, `${what}: buffer ${i} is no ${kinds[0]}, or empty`);
  };
  const buffer = (/** @type {number} */ i, /** @type {Set<string | undefined>} */ sizes, /** @type {string} */ what) =>
    known(
      needs(buffers[i], () => buffers[i].shape),
      sizes,
      what,
    );
  /**
   * The sizes that are known after these steps.
   * @type {(list: Step[], sizes: Set<string | undefined>, what: string) => Set<string | undefined>}
   */
  const follow = (list, sizes, what) =>
    list.reduce((before, step, k) => {
      const at = `${what}[${k}]`;
      const after = new Set(before);
      const { do: kind, condition } = /** @type {LoopStep} */ (step);
      if (step.do === "bind") {
        need(step.dim === null || isDim(step.dim, before), `${at} binds ${step.size} to a size that is not found yet`);
        if (step.buffer !== null) value(step.buffer, ["int32", "int64"], `${at} binds ${step.size}`);
        after.add(step.size);
      }
      if (step.do === "check") need(isDim(step.dim, before), `${at} checks a size that is not found yet`);
      if (step.do === "copy") {
        const [given, room] = [step.source, step.target].map((i) => takenBy(buffers[i]));
        need(!(given > room), `${at} copies ${given} bytes to a buffer of ${room}`);
      }
      if (step.do === "host") {
        need(step.outputs.length > 0, `${at} writes nothing`);
        const names = step.outputs.flatMap((i) => buffers[i].shape.map(sizeName));
        names.forEach((name) => name !== undefined && after.add(name));
      }
      const { names, inner } = STEPS[kind];
      names(step).forEach((i) => buffer(i, after, at));
      if (step.do === "dispatch") {
        const kernel = kernels[step.kernel];
        need(kernel?.ports === step.buffers.length, `${at} gives ${step.buffers.length} buffers to kernel ${step.kernel}, which takes ${kernel?.ports}`);
        known(
          needs(kernel, () => [...kernel.sizes, ...kernel.variants.flatMap((v) => v.groups)]),
          after,
          at,
        );
      }
      need(step.do !== "loop" || step.count !== null || condition !== null, `${at} never ends: it has no count and no condition`);
      if (step.do === "loop" && step.count !== null) need(isDim(step.count, before), `${at} counts to a size that is not found yet`);
      if (typeof condition === "number") value(condition, ["bool"], `${at} has a condition`);
      const ends = (inner?.(step) ?? []).map((steps) => follow(steps, new Set(before), at));
      return step.do === "if" ? inAll(ends) : after;
    }, sizes);
  const given = new Set([...Object.keys(fixed), ...inputs.flatMap((i) => buffers[i].shape.map(sizeName))]);
  const last = follow(steps, given, "steps");
  outputs.forEach((i) => buffer(i, last, `output ${i}`));
  /** @type {Record<string, number[]>} */
  const owners = { input: inputs, output: outputs };
  buffers.forEach(({ place: [side, k], ...placed }, i) => {
    const owner = buffers[owners[side]?.[k]];
    need(!owner || !(takenBy(placed) > takenBy(owner)), `buffer ${i} is larger than the ${side} ${k} in which it lies`);
  });
  const named = inputs.map((i) => buffers[i].name);
  need(new Set(named).size === named.length, "two inputs have one name");
  states.forEach(({ name, buffer: own, initial, draws }, k) => {
    const what = `state ${JSON.stringify(name)}`;
    need(buffers[own]?.place.join() === `state,${k}`, `${what} is buffer ${own}, which does not lie in state ${k}`);
    const inside = buffers.filter(({ place }) => place.join() === `state,${k}`);
    need(
      inside.every(({ shape }) => shape.every(IS.count)),
      `${what} is of open size`,
    );
    need(
      inside.every((one) => bytesOf(one, {}) <= bytesOf(buffers[own], {})),
      `${what} is smaller than a buffer in it`,
    );
    const isKey = buffers[own].dtype === "uint32" && buffers[own].shape.join() === "2";
    need(draws === undefined || isKey, `${what} is a sequence of keys, but not two uint32 numbers`);
    if (initial === null) return;
    const facts = (/** @type {Pick<ProgramBuffer, "dtype" | "shape" | "size"> } {} */ { dtype, shape, size }) => JSON.stringify([dtype, shape, size]);
    const same = buffers[initial]?.place[0] === "weights" && facts(buffers[initial]) === facts(buffers[own]);
    need(same, `${what} starts as buffer ${initial}, which is not a weight of its shape and type`);
  });
  need(new Set(states.map(({ name }) => name)).size === states.length, "two states have one name");
}

// --- specialised sizes -----------------------------------------------------------------------------------------------

/**
 * The specialised programs, each with the sizes that it is `for`, and last the program itself.
 * @param {Program} program
 * @returns {ProgramPart[]}
 */
export const partsOf = (program) =>
  [...program.specialised, { ...program, sizes: {} }].map(({ sizes, slots, buffers, steps, checks }) => {
    return { ...program, for: sizes, slots, buffers, steps, checks, specialised: [] };
  });

/**
 * The program for these sizes.
 * @param {Program} program
 * @param {Sizes} sizes
 * @returns {ProgramPart}
 */
export const partAt = (program, sizes) => /** @type {ProgramPart} */ (partsOf(program).find((part) => Object.keys(part.for).every((name) => part.for[name] === sizes[name])));

/**
 * The bytes of a buffer; none if a dimension is negative, as in branches that a check refuses at these sizes.
 * @param {Pick<ProgramBuffer, "shape" | "size">} buffer
 * @param {Sizes} sizes
 */
const roomOf = ({ shape, size }, sizes) => shape.reduce((/** @type {number} */ product, dim) => product * Math.max(0, evaluate(dim, sizes)), size);

// --- words -----------------------------------------------------------------------------------------------------------

/** The words of a program for the sizes of its inputs; a run adds the sizes that it finds to `sizes`. */
export class Plan {
  /** @type {number[]} */
  codes = [];
  /**
   * The positions of words that are buffers.
   * @type {number[]}
   */
  named = [];
  /**
   * The steps that the runner runs; and the position of a group ↦ its step.
   * @type {StopStep[]}
   */
  stops = [];
  /** @type {Map<number, Step>} */
  groups = new Map();
  /**
   * Words whose sizes are found in mid-run: { at, names, value }.
   * @type {{ at: number, names: string[], value: () => number }[]}
   */
  #open = [];
  /** @type {Sizes} */
  #given;

  /**
   * @param {Program} whole
   * @param {Sizes} sizes
   */
  constructor(whole, sizes) {
    const program = partAt(whole, sizes);
    this.program = program;
    this.sizes = byName(sizes);
    this.#given = sizes;
    this.#write(program.steps);
    const late = program.buffers.filter((buffer) => !this.#isSized(buffer));
    /** Places of buffers whose sizes are found in mid-run. */
    this.late = new Set(late.map(({ place }) => place.join()));
  }

  /** Forget the sizes that the last run found. */
  begin() {
    this.sizes = byName(this.#given);
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
    for (const { name, shape } of this.#sized()) {
      const sides = shape.map((dim) => evaluate(dim, this.sizes));
      if (countOf(sides) > MOST) throw new SingeError("input", `${name}: the shape (${sides.join(", ")}) has more than ${MOST} elements`);
    }
    const known = this.#open.filter(({ names }) => this.#known(names));
    for (const { at, value } of known) this.codes[at] = value();
    return known.map(({ at }) => at);
  }

  /** The bytes of slots, inputs and outputs, as far as their sizes are known; or at their bounds if they have some. */
  areas() {
    const { program, sizes } = this;
    const buffers = this.#sized().filter(({ place }) => place[0] !== "state");
    const areas = areasOf({ ...program, buffers }, sizes);
    const most = byName(sizes, program.bounds);
    for (const buffer of buffers) {
      const [kind, k] = buffer.place;
      if (kind !== "weights" && kind !== "state") areas[kind][k] = Math.max(areas[kind][k], align(roomOf(buffer, most)));
    }
    return areas;
  }

  /** The buffers whose sizes are known, without those of a negative dimension, which a later check refuses. */
  #sized() {
    const isThere = (/** @type {Dim} */ dim) => evaluate(dim, this.sizes) >= 0;
    return this.program.buffers.filter((buffer) => this.#isSized(buffer) && buffer.shape.every(isThere));
  }

  /**
   * Whether calls between two words are the same in every run at these sizes, memory included.
   * @param {number} start
   * @param {number} end
   */
  isFixed(start, end) {
    const { late, program, named, codes } = this;
    const inside = (/** @type {number} */ at) => at >= start && at < end;
    const isLate = (/** @type {number} */ at) => late.has(program.buffers[codes[at]].place.join());
    return !this.#open.some(({ at }) => inside(at)) && !named.some((at) => inside(at) && isLate(at));
  }

  /**
   * The end of the calls and copies that begin at a word.
   * @param {number} at
   */
  straight(at) {
    const { codes } = this;
    while (at < codes.length && codes[at] >= COPY) at += 2 + codes[at + 1];
    return at;
  }

  /**
   * Whether the inputs of a run give a size, or no size is named.
   * @param {string | undefined} name
   */
  isGiven(name) {
    return name === undefined || Object.hasOwn(this.#given, name);
  }

  #known = (/** @type {string[]} */ names) => names.every((name) => Object.hasOwn(this.sizes, name));

  #isSized = (/** @type {ProgramBuffer} */ { shape }) => this.#known(shape.flatMap(namesIn));

  // --- writing

  /** @param {Dim} dim */
  #value(dim) {
    const value = evaluate(dim, this.sizes);
    if (Math.abs(value) > MOST) throw new SingeError("input", `a size comes out as ${value}, the largest is ${MOST}`);
    return value;
  }

  /**
   * A word that is a number: now, or when its sizes are known.
   * @param {Dim[]} dims
   * @param {() => number} value
   */
  #number(dims, value) {
    const names = dims.flatMap(namesIn);
    const at = this.codes.push(0) - 1;
    if (this.#known(names)) this.codes[at] = value();
    else this.#open.push({ at, names, value });
  }

  /** @param {number} index */
  #buffer(index) {
    this.named.push(this.codes.push(index) - 1);
  }

  /** @param {Step[]} steps */
  #write(steps) {
    const { kernels, buffers } = this.program;
    for (const step of steps) {
      if (!STEPS[step.do].inner) this.groups.set(this.codes.length, step);
      if (step.do === "dispatch") {
        const { sizes } = kernels[step.kernel];
        this.codes.push(step.kernel, step.buffers.length + sizes.length);
        step.buffers.forEach((i) => this.#buffer(i));
        sizes.forEach((dim) => this.#number([dim], () => this.#value(dim)));
      } else if (step.do === "copy") {
        const source = buffers[step.source];
        this.codes.push(COPY, 3);
        [step.target, step.source].forEach((i) => this.#buffer(i));
        this.#number(source.shape, () => roomOf(source, this.sizes));
      } else if (step.do === "check" && this.#known(namesIn(step.dim)) && evaluate(step.dim, this.sizes) >= 0) {
        this.codes.push(JUMP, 1, 3);
      } else if (step.do === "if") this.#branch(step);
      else if (step.do === "loop") this.#loop(step);
      else this.codes.push(STOP, 1, this.stops.push(step) - 1);
    }
  }

  /**
   * A jump from `at`, which is written already, leads here.
   * @param {number} at
   */
  #land(at) {
    this.codes[at + 2] = this.codes.length - at;
  }

  /** @param {number} condition */
  #unless(condition) {
    const at = this.codes.push(UNLESS, 2, 0) - 3;
    this.#buffer(condition);
    return at;
  }

  /** @param {IfStep} step */
  #branch({ condition, then, else: otherwise }) {
    const skip = this.#unless(condition);
    this.#write(then);
    const over = otherwise.length ? this.codes.push(JUMP, 1, 0) - 3 : undefined;
    this.#land(skip);
    this.#write(otherwise);
    if (over !== undefined) this.#land(over);
  }

  /** @param {LoopStep} step */
  #loop({ count, condition, body }) {
    const ends = [];
    if (count !== null) {
      ends.push(this.codes.push(LOOP, 3, 0) - 3);
      this.#number([count], () => Math.min(MOST, Math.max(0, evaluate(count, this.sizes))));
      this.codes.push(0);
    }
    const top = this.codes.length;
    if (condition !== null) ends.push(this.#unless(condition));
    this.#write(body);
    const back = this.codes.push(count === null ? JUMP : AGAIN, 1, 0) - 3;
    this.codes[back + 2] = top - back;
    ends.forEach((at) => this.#land(at));
  }
}

// --- running ---------------------------------------------------------------------------------------------------------

/**
 * Execute a plan's words. A machine has `calls(start, end)`, which makes the calls and copies between two words;
 * `read(index)`, a buffer's { data, shape }, and `first(index)`, its first element; `bind(found)`, which binds sizes in the
 * plan and allocates buffers of these sizes; `write(index, data)`. Each may return a promise.
 * @param {Plan} plan
 * @param {Machine} machine
 */
export async function walk(plan, machine) {
  const { codes, stops } = plan;
  /** @type {Map<number, number>} */
  const left = new Map(); // a loop's turns, by where its body begins
  for (let at = 0; at < codes.length; ) {
    const end = plan.straight(at);
    if (end > at) {
      const done = machine.calls(at, end);
      if (done) await done;
      at = end;
      continue;
    }
    const [word, count, distance, operand] = codes.slice(at, at + 4);
    const next = at + 2 + count;
    const target = at + distance;
    if (word === JUMP) at = target;
    else if (word === UNLESS) at = (await machine.first(operand)) ? next : target;
    else if (word === LOOP) at = operand > 0 ? (left.set(next, operand), next) : target;
    else if (word === AGAIN) {
      const turns = /** @type {number} */ (left.get(target)) - 1;
      left.set(target, turns);
      at = turns > 0 ? target : next;
    } else {
      await carryOut(stops[distance], plan, machine);
      at = next;
    }
  }
}

/**
 * Do a host, bind or check step.
 * @param {StopStep} step
 * @param {Plan} plan
 * @param {Machine} machine
 */
export async function carryOut(step, plan, machine) {
  if (step.do === "bind") {
    const value = step.dim === null ? Number(await machine.first(/** @type {number} */ (step.buffer))) : evaluate(step.dim, plan.sizes);
    return machine.bind({ [step.size]: value });
  }
  if (step.do === "check") {
    if (evaluate(step.dim, plan.sizes) >= 0) return;
    const told = [...new Set(namesIn(step.dim))].map((name) => `${name} = ${plan.sizes[name]}`);
    throw new SingeError("input", told.length ? `${step.text} (got ${told.join(", ")})` : step.text);
  }
  const { buffers } = plan.program;
  const inputs = [];
  for (const i of step.inputs) inputs.push({ ...(await machine.read(i)), dtype: buffers[i].dtype });
  const results = host.runOp(step, inputs, plan.sizes);
  /** @type {Sizes} */
  const found = byName();
  step.outputs.forEach((i, k) => {
    buffers[i].shape.forEach((dim, axis) => {
      const name = sizeName(dim);
      if (!plan.isGiven(name)) found[/** @type {string} */ (name)] ??= results[k].shape[axis];
    });
  });
  await machine.bind(found);
  for (const [k, i] of step.outputs.entries()) {
    const wanted = shapeOf(buffers[i], plan.sizes);
    const { data, shape } = results[k];
    if (shape.join() !== wanted.join()) {
      throw new SingeError("format", `${step.op} gives the shape (${shape.join(", ")}), the program expects (${wanted.join(", ")})`);
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
 * Load the ops of the program's host steps; a missing op is an error.
 * @param {Program} program
 */
export async function prepareHost(program) {
  /** @type {Set<string>} */
  const ops = new Set();
  const look = (/** @type {Step[]} */ list) =>
    list.forEach((step) => {
      if (step.do === "host") ops.add(step.op);
      STEPS[step.do].inner?.(step).forEach(look);
    });
  partsOf(program).forEach(({ steps }) => look(steps));
  if (!ops.size) return;
  host = await import("./singe-host.js");
  const missing = [...ops].filter((op) => !Object.hasOwn(host.OPS, op));
  if (missing.length) throw new SingeError("device", `this runner has no op ${missing.join(", ")} for the host: run the model in Python`);
}
