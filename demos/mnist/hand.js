/**
 * "Teach it your hand": a few drawings, with what they are, change the last layers of the network.
 *
 * Contract: `Hand.open(device, key, onProgress)` loads an exported step of training, the same network for reading, and images of
 * MNIST, which are learnt along with the drawings, so that other hands are still read. If something was learnt at an earlier
 * visit it is there again. `drawings` are { image, label }; `learn` and `reset` keep their result in this browser's storage,
 * as far as it has one; `forget` takes back all. `learnt` says whether the weights are others than at first.
 */

import { fetchDigits } from "../shared/digits.js";
import { largest } from "../shared/answer.js";
import { Trainer } from "../shared/trainer.js";

const STEPS = 80;
/** The weights that learning changes. */
const CHANGED = /^(blocks\.3|head)\./;
/** By these a site's weights are told from those of another version. */
const TOLD_BY = "head.bias";

/** A promise of the images, once they were asked for: all backends learn from the same. */
let images;

export class Hand {
  drawings = [];
  learnt = false;
  #key;
  #trainer;
  #first;

  static async open(device, key, onProgress) {
    images ??= fetchDigits("digits.bin", onProgress).catch((error) => {
      images = undefined;
      throw error;
    });
    const digits = await images;
    const hand = new Hand();
    hand.#key = key;
    hand.#trainer = await Trainer.open({ folder: "teach/", device, digits, onProgress });
    hand.#first = await hand.#trainer.tensors();
    await hand.#recall();
    return hand;
  }

  /** Ten probabilities for a picture of values from 0 to 1. */
  read(picture) {
    return this.#trainer.read(picture);
  }

  add(picture, label) {
    this.drawings.push({ image: Uint8Array.from(picture, (ink) => Math.round(255 * ink)), label });
  }

  /** Learn the drawings; what came of it: { steps, seconds, drawings, before, after, others: { count, before, after } }. */
  async learn(onStep) {
    const trainer = this.#trainer;
    trainer.teach(this.drawings);
    const before = { own: await this.#own(), others: await trainer.evaluate(Infinity) };
    const begun = performance.now();
    for (let done = 0; done < STEPS; done++) {
      onStep(done / STEPS);
      await trainer.step();
    }
    const seconds = (performance.now() - begun) / 1000;
    onStep(1);
    this.learnt = true;
    const others = await trainer.evaluate(Infinity);
    const own = await this.#own();
    return {
      steps: STEPS, seconds, drawings: this.drawings.length, before: before.own, after: own,
      others: { count: others.count, before: before.others.right, after: others.right },
      stored: await this.#store(),
    };
  }

  /** The weights of the site again; the drawings stay. */
  async reset() {
    await this.#trainer.reset();
    this.learnt = false;
    await this.#store();
  }

  async forget() {
    this.drawings = [];
    await this.reset();
  }

  dispose() {
    return this.#trainer.dispose();
  }

  /** How many of the drawings it reads. */
  async #own() {
    let right = 0;
    for (const { image, label } of this.drawings) right += largest(await this.read(Float32Array.from(image, (v) => v / 255))) === label;
    return right;
  }

  /** Keep drawings and weights for the next visit; whether that could be done. */
  async #store() {
    try {
      if (!this.drawings.length && !this.learnt) {
        localStorage.removeItem(this.#key);
        return true;
      }
      const tensors = this.learnt ? (await this.#trainer.tensors()).filter(({ name, dtype }) => CHANGED.test(name) && dtype === "float32") : [];
      localStorage.setItem(
        this.#key,
        JSON.stringify({
          of: this.#toldBy(),
          drawings: this.drawings.map(({ image, label }) => ({ label, image: toText(image) })),
          weights: Object.fromEntries(tensors.map(({ name, data }) => [name, toText(data)])),
        }),
      );
      return true;
    } catch {
      return false; // no storage, or it is full
    }
  }

  async #recall() {
    const found = this.#kept();
    if (found?.of !== this.#toldBy()) return;
    this.drawings = found.drawings.map(({ label, image }) => ({ label, image: fromText(image) }));
    if (!Object.keys(found.weights).length) return;
    const data = (tensor) => (tensor.name in found.weights ? new Float32Array(fromText(found.weights[tensor.name]).buffer) : tensor.data);
    await this.#trainer.put(this.#first.map((tensor) => ({ ...tensor, data: data(tensor) })), 0);
    this.learnt = true;
  }

  #kept() {
    try {
      return JSON.parse(localStorage.getItem(this.#key)) ?? undefined;
    } catch {
      return undefined; // no storage, or something else is there
    }
  }

  #toldBy() {
    return toText(this.#first.find(({ name }) => name === TOLD_BY).data);
  }
}

function toText(array) {
  let text = "";
  for (const byte of new Uint8Array(array.buffer, array.byteOffset, array.byteLength)) text += String.fromCharCode(byte);
  return btoa(text);
}

const fromText = (text) => Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
