/**
 * A network in training: steps, evaluations and readings with the weights that it has reached.
 *
 * Contract: `Trainer.open` takes `python`: whether Python in a worker makes the steps (python-stepper.js, the network called
 * `network`), or singe.js (stepper.js, the bundles in `folder`). Calls are done in turn, so weights are always those of one
 * step. `history` has what the steps told.
 */

import { largest, softmax } from "./answer.js";
import { Batches, PIXELS, imageOf, toUnit } from "./digits.js";
import { Stepper } from "./stepper.js";

/** Of ../train/model.py: images in a step, and at once in an evaluation. */
export const BATCH = 64;
const READ = 250;
const CLASSES = 10;

export class Trainer {
  /** Steps made. */
  done = 0;
  /** For each step its loss and its part of right answers; for each evaluation [step, part of right answers]. */
  history = { losses: [], rights: [], tests: [] };
  batches;
  #stepper;
  #prepared;
  #last = Promise.resolve();
  #test;

  static async open({ python = false, digits, ...given }) {
    const Kind = python ? (await import("./python-stepper.js")).PythonStepper : Stepper;
    return new Trainer(await Kind.open(given), digits);
  }

  constructor(stepper, { train, test }) {
    this.#stepper = stepper;
    this.#test = test;
    this.batches = new Batches(train, BATCH);
  }

  /** One step. The next batch is made while it runs. */
  step() {
    return this.#inTurn(async () => {
      const batch = this.#prepared ?? this.batches.next();
      const running = this.#stepper.step(batch);
      this.#prepared = this.batches.next();
      const { loss, logits } = await running;
      this.done++;
      this.history.losses.push(loss);
      this.history.rights.push(rightsOf(logits, batch.y.data) / BATCH);
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
      const end = performance.now() + 1000 * seconds;
      const wrong = [];
      let count = 0;
      for (most = Math.min(most, this.#test.count); count < most && (!count || performance.now() < end); ) {
        const size = Math.min(READ, most - count);
        const x = new Float32Array(size * PIXELS);
        toUnit(this.#test.images.subarray(count * PIXELS, (count + size) * PIXELS), x);
        const logits = await this.#stepper.answer(x, size);
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
      return softmax(await this.#stepper.answer(Float32Array.from(image), 1));
    });
  }

  /** The present weights, as tensors of a file. */
  tensors() {
    return this.#inTurn(() => Promise.all(this.#stepper.weights.map(async (weight) => ({ ...weight, data: await this.#stepper.read(weight.name) }))));
  }

  /** The present weights of the first layer. */
  firstLayer() {
    const [{ name, shape }] = this.#stepper.weights;
    return this.#inTurn(async () => ({ shape, data: await this.#stepper.read(name) }));
  }

  /** Go on from these weights, after so many steps. */
  async put(tensors, done) {
    const given = new Map(tensors.map((tensor) => [tensor.name, tensor]));
    const arrays = this.#stepper.weights.map(({ name, shape }) => {
      const found = given.get(name);
      if (!found) throw new Error(`These are weights of another network: ${name} is missing.`);
      if (`${found.shape}` !== `${shape}`) {
        throw new Error(`These are weights of another network: ${name} has the shape [${found.shape}], expected [${shape}].`);
      }
      return found.data;
    });
    return this.#inTurn(async () => {
      await this.#stepper.put(arrays, done);
      this.#begin(done);
    });
  }

  reset() {
    return this.#inTurn(async () => {
      await this.#stepper.reset();
      this.#begin(0);
    });
  }

  dispose() {
    return this.#stepper.dispose();
  }

  #begin(done) {
    this.done = done;
    const past = new Array(done).fill(NaN);
    this.history = { losses: past, rights: [...past], tests: [] };
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
