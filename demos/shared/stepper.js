/**
 * Steps of training, and readings with the weights that they have reached, through singe.js: two exported bundles in workers.
 *
 * Contract, which python-stepper.js has too: `weights` is [{ name, dtype, shape }], the first layer's first. `step({ x, y })`
 * gives { loss, logits } of a batch, `answer(x, size)` the logits of images, `read(name)` the elements of a weight. `put(arrays,
 * done)` goes on from other weights, in the order of `weights`, after so many steps; `reset()` from the first ones. `dispose()`
 * frees all. Calls are not to overlap.
 */

import { load } from "../singe.js";
import { SIDE } from "./strokes.js";

/** How the states of a step are called: sg.train.TrainStep. */
const MODEL = "model.";
const COUNT = "optimizer.step";

export class Stepper {
  weights;
  #step;
  #session;
  #read;
  #reader;
  /** Whether the reader's weights are those of the step. */
  #given = true;

  /** folder: that of the bundles `step`, whose states are weights and moments, and `read`, whose weights are states too. */
  static async open({ folder, device, onProgress }) {
    const amounts = {};
    const told = (part) => (progress) => {
      amounts[part] = progress;
      const sum = (what) => Object.values(amounts).reduce((a, b) => a + b[what], 0);
      onProgress?.({ ...progress, loaded: sum("loaded"), total: sum("total") });
    };
    const opened = (part) => load(`${folder}${part}/`, { device, worker: true, onProgress: told(part) });
    return new Stepper(...(await Promise.all([opened("step"), opened("read")])));
  }

  constructor(step, read) {
    this.#step = step;
    this.#read = read;
    this.#session = step.session();
    this.#reader = read.session();
    this.weights = this.#reader.states.map(({ name, dtype, shape }) => ({ name: name.slice(MODEL.length), dtype, shape }));
  }

  async step(batch) {
    this.#given = false;
    const { loss, logits } = await this.#session.step(batch);
    return { loss: loss.data[0], logits: logits.data };
  }

  async answer(x, size) {
    if (!this.#given) await Promise.all(this.weights.map(async ({ name }) => this.#reader.write(MODEL + name, await this.read(name))));
    this.#given = true;
    return (await this.#reader.run({ x: { data: x, shape: [size, 1, SIDE, SIDE] } })).logits.data;
  }

  read(name) {
    return this.#session.read(MODEL + name);
  }

  async put(arrays, done) {
    await this.reset();
    for (const [k, { name }] of this.weights.entries()) await this.#session.write(MODEL + name, arrays[k]);
    await this.#session.write(COUNT, Int32Array.of(done));
  }

  async reset() {
    this.#given = false;
    await this.#session.reset();
  }

  async dispose() {
    await Promise.all([this.#step.dispose(), this.#read.dispose()]);
  }
}
