/**
 * Sessions of a model with states: each session keeps its own states from run to run; the weights are shared.
 *
 * Contract: `new Sessions(model, state)` serves a Model of singe-model.js: `state` is shared by its runs, and `model.run(
 * inputs, options, session)` is a run. Everything that a session does is queued in order with all runs of the model.
 * States are on the device. If the device is lost, calls of a session fail with the code "lost" until `reset()`; the
 * model's own session, which `model.run` uses, fails once and then starts again.
 */

/** @import { Input, State, TypedArray } from "../types/public.d.ts" */
/** @import { Answer, Device, Handle, ModelState, Program, Unchecked, Wanted } from "../types/program.d.ts" */

/** @typedef {Session} OneSession */
/** @typedef {{ outputs?: Wanted, signal?: AbortSignal }} RunOptions */
/** @typedef {{ run(inputs: Record<string, Input>, options?: RunOptions, session?: Session): Promise<Record<string, Answer>>, start(name: "wasm" | "webgpu"): Promise<void>, step: Session["step"], seed: Session["seed"] }} SessionModel */

import { checkNames, keyless } from "../program/singe-arguments.js";
import { ARRAYS, SingeError, copyOf, shownShape } from "../program/singe-format.js";

/**
 * @param {Program} program
 * @returns {State[]}
 */
const describeStates = ({ states, buffers }) =>
  states.map(({ name, buffer }) => ({ name, dtype: buffers[buffer].dtype, shape: /** @type {number[]} */ (shownShape(buffers[buffer].shape)) }));

/**
 * SplitMix64's hash of a seed: the sequence of keys that it begins, as runtime/random_keys.py has it.
 * @param {unknown} seed
 * @returns {Uint32Array}
 */
function sequenceOf(seed) {
  if (typeof seed !== "bigint" && !Number.isSafeInteger(seed)) {
    throw new SingeError("input", `seed: got ${typeof seed === "number" ? seed : typeof seed}, expected an integer`);
  }
  const bits = (/** @type {bigint} */ value) => BigInt.asUintN(64, value);
  let z = bits(BigInt(/** @type {number | bigint} */ (seed)) + 0x9e3779b97f4a7c15n);
  z = bits((z ^ (z >> 30n)) * 0xbf58476d1ce4e5b9n);
  z = bits((z ^ (z >> 27n)) * 0x94d049bb133111ebn);
  z ^= z >> 31n;
  return Uint32Array.of(Number(z >> 32n), Number(z & 0xffffffffn));
}

/**
 * Where a sequence begins that nobody set.
 * @returns {Uint32Array}
 */
function unforeseen() {
  const words = new Uint32Array(2);
  return globalThis.crypto?.getRandomValues(words) ?? words.map(() => Math.random() * 2 ** 32);
}

export class Sessions {
  /** @type {Set<Session>} */
  #live = new Set();

  /**
   * @param {SessionModel} model
   * @param {ModelState} state
   */
  constructor(model, state) {
    const { states } = state.now.program;
    /** The number of the state that is a sequence of keys, if any, and whether it begins where nobody can foresee. */
    this.key = states.findIndex(({ draws }) => draws !== undefined);
    this.isOpen = states[this.key]?.initial === null;
    this.model = model;
    this.state = state;
    this.states = describeStates(state.now.program);
    this.own = this.open();
    /** A step of training is a run: an own method, before that of models without states. */
    model.step = (/** @type {Record<string, Input>} */ batch, /** @type {RunOptions | undefined} */ options) => model.run(batch, options);
    model.seed = (/** @type {number | bigint} */ seed) => this.own.seed(seed);
  }

  open() {
    const session = new Session(this);
    this.#live.add(session);
    return session;
  }

  /**
   * The device's handle of a session's states.
   * @param {Session} session
   */
  handleOf(session) {
    return session[ON](this.state.now.device);
  }

  /** @param {Session} session */
  close(session) {
    this.#live.delete(session);
  }

  /**
   * The device was lost in a run of `running`.
   * @param {Session} running
   */
  lose(running) {
    for (const session of this.#live) session[LOSE](session !== running || session !== this.own);
  }

  /**
   * Another device takes the place of the one that has the states.
   * @param {Device} from
   * @param {Device} to
   */
  async move(from, to) {
    for (const session of this.#live) await session[MOVE](from, to);
  }
}

/** What sessions do for this module alone. */
const ON = Symbol("on");
const LOSE = Symbol("lose");
const MOVE = Symbol("move");

class Session {
  /** @type {Sessions} */
  #all;
  /**
   * The device's handle, once something needs it.
   * @type {Handle | undefined}
   */
  #handle;
  /**
   * Where its sequence of keys begins, if it was set.
   * @type {Uint32Array | TypedArray | undefined}
   */
  #first;
  #lost = false;
  /** @type {Promise<void> | undefined} */
  #disposed;

  /** @param {Sessions} all */
  constructor(all) {
    this.#all = all;
  }

  get states() {
    return this.#all.states.map((state) => ({ ...state, shape: [...state.shape] }));
  }

  /**
   * @param {Record<string, Input>} inputs
   * @param {RunOptions} [options]
   */
  async run(inputs, options) {
    this.#check();
    return this.#all.model.run(inputs, options, this);
  }

  /**
   * @param {Record<string, Input>} batch
   * @param {RunOptions} [options]
   */
  async step(batch, options) {
    return this.run(batch, options);
  }

  /** Set all states to their initial values. */
  async reset() {
    const task = async (/** @type {Device} */ device) => {
      this.#lost = false;
      if (this.#handle === undefined) return;
      await device.resetStates(this.#handle);
      await this.#begin(device, this.#handle);
    };
    return this.#turn(task, true);
  }

  /**
   * @param {string} name
   * @returns {Promise<TypedArray>}
   */
  async read(name) {
    const k = this.#index(name);
    return k < 0 ? this.#refuse(name) : this.#turn(async (device) => device.readState(await this[ON](device), k));
  }

  /**
   * @param {string} name
   * @param {TypedArray} data
   * @returns {Promise<void>}
   */
  async write(name, data) {
    const k = this.#index(name);
    if (k < 0) return this.#refuse(name);
    const given = fitting(this.#all.states[k], data);
    return this.#turn(async (device) => {
      if (k === this.#all.key) this.#first = given;
      return device.writeState(await this[ON](device), k, given);
    });
  }

  /**
   * Begin the random numbers of a seed.
   * @param {number | bigint} seed
   */
  async seed(seed) {
    this.#check();
    const first = sequenceOf(seed);
    const { key } = this.#all;
    if (key < 0) throw keyless();
    return this.#turn(async (device) => {
      const handle = await this[ON](device);
      this.#first = first;
      return device.writeState(handle, key, first);
    });
  }

  /**
   * Set the sequence of keys in new states.
   * @param {Device} device
   * @param {Handle} handle
   */
  async #begin(device, handle) {
    const { key, isOpen } = this.#all;
    const first = this.#first ?? (isOpen ? unforeseen() : undefined);
    if (key >= 0 && first) await device.writeState(handle, key, first);
    return handle;
  }

  /** A new session with the states that this one will have after all pending calls. */
  copy() {
    this.#check();
    const copy = this.#all.open();
    copy.#lost = true; // until it has them
    const done = this.#turn(async (device) => {
      if (this.#handle === undefined && this.#all.isOpen && !this.#lost) await this[ON](device); // both draw the same
      if (this.#handle !== undefined) copy.#handle = await device.copyStates(this.#handle);
      copy.#first = this.#first;
      copy.#lost = this.#lost;
    });
    done.catch(() => {}); // who uses the copy gets the error
    return copy;
  }

  /** Free its memory, after pending calls. */
  dispose() {
    const { state } = this.#all;
    const free = () => {
      if (this.#handle !== undefined) state.now.device.freeStates(this.#handle);
      this.#handle = undefined;
      this.#all.close(this);
    };
    this.#disposed ??= state.disposed ? Promise.resolve() : state.inTurn(free);
    return this.#disposed;
  }

  /**
   * The handle of its states on the model's device.
   * @param {Device} device
   * @returns {Promise<Handle>}
   */
  async [ON](device) {
    if (this.#lost) {
      this.#lost = this !== this.#all.own;
      throw new SingeError("lost", "the states of this session went with the device that they were on: reset() begins anew");
    }
    return (this.#handle ??= await this.#begin(device, device.newStates()));
  }

  /** @param {boolean} needed */
  [LOSE](needed) {
    this.#lost ||= needed && this.#handle !== undefined;
    this.#handle = undefined;
  }

  /**
   * @param {Device} from
   * @param {Device} to
   */
  async [MOVE](from, to) {
    if (this.#handle === undefined) return;
    const handle = to.newStates();
    for (const k of this.#all.states.keys()) await to.writeState(handle, k, await from.readState(this.#handle, k));
    this.#handle = handle;
  }

  #check() {
    if (this.#disposed) throw new SingeError("disposed", "the session was disposed of");
  }

  /** @param {string} name */
  #index(name) {
    return this.#all.states.findIndex((state) => state.name === name);
  }

  /**
   * @param {string} name
   * @returns {Promise<never>}
   */
  #refuse(name) {
    const names = this.#all.states.map((state) => state.name);
    return /** @type {Promise<never>} */ (checkNames({ [name]: undefined }, names, "state", "this model has"));
  }

  /**
   * `task(device)` in its turn. A device that turns out to be lost is opened again, and then the task is done once more or fails.
   * @template T
   * @param {(device: Device) => Promise<T>} task
   * @param {boolean} [again]
   * @returns {Promise<T>}
   */
  async #turn(task, again) {
    this.#check();
    const { state, model } = this.#all;
    return state.inTurn(async () => {
      const wasLost = this.#lost;
      try {
        return await task(state.now.device);
      } catch (error) {
        if (/** @type {SingeError} */ (error).code !== "lost" || wasLost || state.gpuDevice) throw error;
        state.now.device.dispose();
        this.#all.lose(this);
        await model.start(state.now.name);
        if (!again) throw error;
        return task(state.now.device);
      }
    });
  }
}

/**
 * A copy of a state's new elements: the caller may change the array before they are written.
 * @param {State} state
 * @param {Unchecked} given
 * @returns {TypedArray}
 */
function fitting({ name, dtype, shape }, given) {
  const count = shape.reduce((product, d) => product * d, 1);
  const isHalf = dtype === "float16" && given?.constructor?.name === "Float16Array";
  const data = isHalf ? new Uint16Array(given.buffer, given.byteOffset, given.length) : given;
  if (data instanceof ARRAYS[dtype] && data.length === count && !(dtype === "bool" && data.some((x) => x > 1))) return copyOf(data);
  const got = ArrayBuffer.isView(given) ? `${given.constructor.name} of ${/** @type {TypedArray} */ (given).length}` : given === null ? "null" : typeof given;
  const expected = `${ARRAYS[dtype].name} (${dtype}) of ${count} elements, shape (${shape.join(", ")})`;
  throw new SingeError("input", `state ${JSON.stringify(name)}: got ${got}, expected ${expected}`);
}
