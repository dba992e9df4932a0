/**
 * A network in training: steps of an exported training step, and readings with the weights that it has reached.
 *
 * `Trainer.open` loads two bundles: `step`, whose states are weights and moments, and `read`, the same network for any
 * number of images, whose weights are states too. Weights are copied from one to the other when they have changed.
 * Calls are done in turn, so weights are always those of one step. `history` has what the steps told.
 */

import { load } from "../singe.js";
import { largest, softmax } from "./answer.js";
import { SIDE } from "./strokes.js";
import { Batches, PIXELS, imageOf, toUnit } from "./digits.js";

/** Of ../train/model.py: images in a step, and at once in an evaluation. */
export const BATCH = 64;
const READ = 250;
const CLASSES = 10;
const MODEL = "model.";
const COUNT = "optimizer.step";

export class Trainer {
  /** Steps made. */
  done = 0;
  /** For each step its loss and its part of right answers; for each evaluation [step, part of right answers]. */
  history = { losses: [], rights: [], tests: [] };
  batches;
  #step;
  #session;
  #read;
  #reader;
  /** The step whose weights the reader has. */
  #given = 0;
  #prepared;
  #last = Promise.resolve();
  #test;

  static async open({ folder, device, digits, onProgress }) {
    const amounts = {};
    const told = (part) => (progress) => {
      amounts[part] = progress;
      const sum = (what) => Object.values(amounts).reduce((a, b) => a + b[what], 0);
      onProgress?.({ ...progress, loaded: sum("loaded"), total: sum("total") });
    };
    const opened = (part) => load(`${folder}${part}/`, { device, worker: true, onProgress: told(part) });
    const [step, read] = await Promise.all([opened("step"), opened("read")]);
    return new Trainer(step, read, digits);
  }

  constructor(step, read, { train, test }) {
    this.#step = step;
    this.#read = read;
    this.#session = step.session();
    this.#reader = read.session();
    this.#test = test;
    this.batches = new Batches(train, BATCH);
  }

  /** What weights there are: the first one is that of the first layer. */
  get weights() {
    return this.#reader.states;
  }

  /** One step. The next batch is made while it runs. */
  step() {
    return this.#inTurn(async () => {
      const batch = this.#prepared ?? this.batches.next();
      const running = this.#session.step(batch);
      this.#prepared = this.batches.next();
      const { loss, logits } = await running;
      this.done++;
      this.history.losses.push(loss.data[0]);
      this.history.rights.push(rightsOf(logits.data, batch.y.data) / BATCH);
    });
  }

  /** What is taught from now on is in the next step. */
  teach(taught) {
    this.batches.taught = taught;
    this.#prepared = undefined;
  }

  vary(varied) {
    this.batches.varied = varied;
    this.#prepared = undefined;
  }

  /**
   * Read the first `most` test images, for at most some seconds: how many were read, which part of them rightly, and the
   * wrong ones, { image, label, read, sure }, the surest first.
   */
  evaluate(most, seconds = Infinity) {
    return this.#inTurn(async () => {
      await this.#give();
      const end = performance.now() + 1000 * seconds;
      const wrong = [];
      let count = 0;
      for (most = Math.min(most, this.#test.count); count < most && (!count || performance.now() < end); ) {
        const size = Math.min(READ, most - count);
        const x = new Float32Array(size * PIXELS);
        toUnit(this.#test.images.subarray(count * PIXELS, (count + size) * PIXELS), x);
        const logits = await this.#answer(x, size);
        for (let k = 0; k < size; k++) {
          const label = this.#test.labels[count + k];
          const parts = softmax(logits.subarray(k * CLASSES, (k + 1) * CLASSES));
          const read = largest(parts);
          if (read !== label) wrong.push({ image: imageOf(this.#test, count + k), label, read, sure: parts[read] });
        }
        count += size;
      }
      const right = 1 - wrong.length / count;
      this.history.tests.push([this.done, right]);
      return { count, right, wrong: wrong.sort((a, b) => b.sure - a.sure) };
    });
  }

  /** Ten probabilities for one image of 784 values from 0 to 1. */
  read(image) {
    return this.#inTurn(async () => {
      await this.#give();
      return softmax(await this.#answer(Float32Array.from(image), 1));
    });
  }

  /** The present weights, as tensors of a file. */
  tensors() {
    return this.#inTurn(() => this.#tensors());
  }

  /** The present weights of the first layer. */
  firstLayer() {
    const [{ name, shape }] = this.weights;
    return this.#inTurn(async () => ({ shape, data: await this.#session.read(name) }));
  }

  /** Go on from these weights, after so many steps. */
  async put(tensors, done) {
    const given = new Map(tensors.map((tensor) => [tensor.name, tensor]));
    for (const { name, shape } of this.weights) {
      const found = given.get(name.slice(MODEL.length));
      if (!found) throw new Error(`These are weights of another network: ${name.slice(MODEL.length)} is missing.`);
      if (`${found.shape}` !== `${shape}`) {
        throw new Error(`These are weights of another network: ${found.name} has the shape [${found.shape}], expected [${shape}].`);
      }
    }
    return this.#inTurn(async () => {
      await this.#session.reset();
      for (const { name } of this.weights) await this.#session.write(name, given.get(name.slice(MODEL.length)).data);
      await this.#session.write(COUNT, Int32Array.of(done));
      this.#begin(done);
    });
  }

  reset() {
    return this.#inTurn(async () => {
      await this.#session.reset();
      this.#begin(0);
    });
  }

  async dispose() {
    await Promise.all([this.#step.dispose(), this.#read.dispose()]);
  }

  #begin(done) {
    this.done = done;
    this.#given = undefined;
    const past = new Array(done).fill(NaN);
    this.history = { losses: past, rights: [...past], tests: [] };
  }

  async #tensors() {
    const names = this.weights.map(({ name }) => name);
    const read = await Promise.all(names.map((name) => this.#session.read(name)));
    return this.weights.map(({ name, dtype, shape }, k) => ({ name: name.slice(MODEL.length), dtype, shape, data: read[k] }));
  }

  /** Give the reader the present weights. */
  async #give() {
    if (this.#given === this.done) return;
    await Promise.all((await this.#tensors()).map(({ name, data }) => this.#reader.write(MODEL + name, data)));
    this.#given = this.done;
  }

  async #answer(x, size) {
    return (await this.#reader.run({ x: { data: x, shape: [size, 1, SIDE, SIDE] } })).logits.data;
  }

  #inTurn(work) {
    const done = this.#last.then(work);
    this.#last = done.catch(() => {});
    return done;
  }
}

function rightsOf(logits, labels) {
  let right = 0;
  labels.forEach((label, k) => (right += largest(logits.subarray(k * CLASSES, (k + 1) * CLASSES)) === label));
  return right;
}
