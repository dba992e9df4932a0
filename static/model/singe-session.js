/**
 * Sessions of a model with states: each session keeps its own states from run to run; the weights are shared.
 *
 * Contract: `new Sessions(model, state)` serves a Model of singe-model.js: `state` is shared by its runs, and `model.run(
 * inputs, options, session)` is a run. Everything that a session does is queued in order with all runs of the model.
 * States are on the device. If the device is lost, calls of a session fail with the code "lost" until `reset()`; the
 * model's own session, which `model.run` uses, fails once and then starts again.
 */

import { checkNames } from "../program/singe-arguments.js";
import { ARRAYS, SingeError, copyOf, shownShape } from "../program/singe-format.js";

const describeStates = ({ states, buffers }) =>
  states.map(({ name, buffer }) => ({ name, dtype: buffers[buffer].dtype, shape: shownShape(buffers[buffer].shape) }));

export class Sessions {
  #live = new Set();

  constructor(model, state) {
    Object.assign(this, { model, state, states: describeStates(state.now.program) });
    this.own = this.open();
    /** A step of training is a run: an own method, before that of models without states. */
    model.step = (batch, options) => model.run(batch, options);
  }

  open() {
    const session = new Session(this);
    this.#live.add(session);
    return session;
  }

  /** The device's handle of a session's states. */
  handleOf(session) {
    return session[ON](this.state.now.device);
  }

  close(session) {
    this.#live.delete(session);
  }

  /** The device was lost in a run of `running`. */
  lose(running) {
    for (const session of this.#live) session[LOSE](session !== running || session !== this.own);
  }

  /** Another device takes the place of the one that has the states. */
  async move(from, to) {
    for (const session of this.#live) await session[MOVE](from, to);
  }
}

/** What sessions do for this module alone. */
const [ON, LOSE, MOVE] = ["on", "lose", "move"].map(Symbol);

class Session {
  #all;
  /** The device's handle, once something needs it. */
  #handle;
  #lost = false;
  #disposed;

  constructor(all) {
    this.#all = all;
  }

  get states() {
    return this.#all.states.map((state) => ({ ...state, shape: [...state.shape] }));
  }

  async run(inputs, options) {
    this.#check();
    return this.#all.model.run(inputs, options, this);
  }

  async step(batch, options) {
    return this.run(batch, options);
  }

  /** Set all states to their initial values. */
  async reset() {
    const task = async (device) => {
      this.#lost = false;
      if (this.#handle !== undefined) await device.resetStates(this.#handle);
    };
    return this.#turn(task, true);
  }

  async read(name) {
    const k = this.#index(name);
    return k < 0 ? this.#refuse(name) : this.#turn((device) => device.readState(this[ON](device), k));
  }

  async write(name, data) {
    const k = this.#index(name);
    if (k < 0) return this.#refuse(name);
    const given = fitting(this.#all.states[k], data);
    return this.#turn((device) => device.writeState(this[ON](device), k, given));
  }

  /** A new session with the states that this one will have after all pending calls. */
  copy() {
    this.#check();
    const copy = this.#all.open();
    copy.#lost = true; // until it has them
    const done = this.#turn(async (device) => {
      if (this.#handle !== undefined) copy.#handle = await device.copyStates(this.#handle);
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

  /** The handle of its states on the model's device. */
  [ON](device) {
    if (this.#lost) {
      this.#lost = this !== this.#all.own;
      throw new SingeError("lost", "the states of this session went with the device that they were on: reset() begins anew");
    }
    return (this.#handle ??= device.newStates());
  }

  [LOSE](needed) {
    this.#lost ||= needed && this.#handle !== undefined;
    this.#handle = undefined;
  }

  async [MOVE](from, to) {
    if (this.#handle === undefined) return;
    const handle = to.newStates();
    for (const k of this.#all.states.keys()) await to.writeState(handle, k, await from.readState(this.#handle, k));
    this.#handle = handle;
  }

  #check() {
    if (this.#disposed) throw new SingeError("disposed", "the session was disposed of");
  }

  #index(name) {
    return this.#all.states.findIndex((state) => state.name === name);
  }

  #refuse(name) {
    const names = this.#all.states.map((state) => state.name);
    return checkNames({ [name]: undefined }, names, "state", "this model has");
  }

  /** `task(device)` in its turn. A device that turns out to be lost is opened again, and then the task is done once more or fails. */
  async #turn(task, again) {
    this.#check();
    const { state, model } = this.#all;
    return state.inTurn(async () => {
      const wasLost = this.#lost;
      try {
        return await task(state.now.device);
      } catch (error) {
        if (error.code !== "lost" || wasLost || state.gpuDevice) throw error;
        state.now.device.dispose();
        this.#all.lose(this);
        await model.start(state.now.name);
        if (!again) throw error;
        return task(state.now.device);
      }
    });
  }
}

/** A copy of a state's new elements: the caller may change the array before they are written. */
function fitting({ name, dtype, shape }, given) {
  const count = shape.reduce((product, d) => product * d, 1);
  const isHalf = dtype === "float16" && given?.constructor?.name === "Float16Array";
  const data = isHalf ? new Uint16Array(given.buffer, given.byteOffset, given.length) : given;
  if (data instanceof ARRAYS[dtype] && data.length === count && !(dtype === "bool" && data.some((x) => x > 1))) return copyOf(data);
  const got = ArrayBuffer.isView(given) ? `${given.constructor.name} of ${given.length}` : given === null ? "null" : typeof given;
  const expected = `${ARRAYS[dtype].name} (${dtype}) of ${count} elements, shape (${shape.join(", ")})`;
  throw new SingeError("input", `state ${JSON.stringify(name)}: got ${got}, expected ${expected}`);
}
