/**
 * Steps of training, and readings with the weights that they have reached, by Singe's Python in a worker: what stepper.js says,
 * for the networks of ../train/model.py. ../train/python/in_page.py is the Python of it.
 */

import { PYTHON } from "./engines.js";
import { askPython } from "./python.js";

export class PythonStepper {
  weights;
  #number;

  static async open({ network, device, onProgress }) {
    const { number, weights } = await askPython({ do: "train", python: PYTHON.href, network, device }, onProgress);
    return new PythonStepper(number, weights);
  }

  constructor(number, weights) {
    this.#number = number;
    this.weights = weights;
  }

  step({ x, y }) {
    return this.#call("step", x.data, y.data);
  }

  answer(x) {
    return this.#call("answer", x);
  }

  read(name) {
    return this.#call("read", name);
  }

  put(arrays, done) {
    return this.#call("put", arrays, done);
  }

  reset() {
    return this.#call("reset");
  }

  dispose() {
    return askPython({ do: "drop", number: this.#number });
  }

  #call(method, ...given) {
    return askPython({ do: "call", number: this.#number, method, given });
  }
}
