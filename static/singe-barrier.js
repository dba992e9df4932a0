/**
 * What the threads of a run share besides their memory: a few words, and how one waits for the others.
 *
 * Contract: words are changed by Atomics only. Whoever waits spins for a while, then sleeps, other than a page's main
 * thread, which may not. ARRIVED counts arrivals since GO changed; a run is over for everyone when FAILED is not 0.
 */

/** Words, each in a cache line of its own. */
export const [GO, PLAN, ARRIVED, FAILED, SLEEPING] = [0, 32, 64, 96, 128];
export const WORDS = 160;
/** In the place of a plan's number: go back to the event loop. */
export const LEAVE = -1;

const SPINS_PER_LOOK = 1024;
/** Spinning: to be woken takes up to a millisecond, as long as many steps. */
const AWAKE_MS = 1;
const NAP_MS = 100;

export class Barrier {
  #control;
  #sleeps;

  constructor(control) {
    this.#control = control;
    try {
      Atomics.wait(control, FAILED, 1, 0);
      this.#sleeps = true;
    } catch {
      this.#sleeps = false;
    }
  }

  /** One more is there, of `due` in all. */
  arrive(due) {
    if (Atomics.add(this.#control, ARRIVED, 1) + 1 < due) return;
    if (Atomics.load(this.#control, SLEEPING)) Atomics.notify(this.#control, ARRIVED);
  }

  /** Until so many are there; `late()` is asked now and then, and true is an error. */
  wait(due, late = () => false) {
    this.#until(ARRIVED, (count) => count >= due || Atomics.load(this.#control, FAILED), late);
  }

  /** The next value of GO after `seen`. */
  next(seen) {
    this.#until(GO, (value) => value !== seen);
    return Atomics.load(this.#control, GO);
  }

  #until(word, holds, late = () => false) {
    const control = this.#control;
    let start;
    for (let spins = 1; ; spins++) {
      const value = Atomics.load(control, word);
      if (holds(value)) return;
      if (spins % SPINS_PER_LOOK) continue;
      if (late()) throw new Error("a worker does not answer");
      start ??= performance.now();
      if (!this.#sleeps || performance.now() - start < AWAKE_MS) continue;
      Atomics.add(control, SLEEPING, 1);
      Atomics.wait(control, word, value, NAP_MS);
      Atomics.sub(control, SLEEPING, 1);
    }
  }
}
