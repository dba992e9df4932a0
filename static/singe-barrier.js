/**
 * What the threads of a run share besides their memory: a few words, and how one waits for another.
 *
 * Contract: words are changed by Atomics only. Parts are tickets, numbered on from run to run: below OPEN they may be
 * taken, NEXT is the first that nobody took, DONE counts those that are done. Whoever is free takes the next, so that a
 * thread that the system does not let run holds nobody up. Whoever waits spins for a while, then sleeps, other than a
 * page's main thread, which may not. FAILED is not 0 once a run cannot end.
 */

/** Words, each in cache lines of its own. GO is odd while PLAN and BASE, a run's first ticket, are being changed. */
export const [GO, PLAN, BASE, OPEN, NEXT, DONE, FAILED, SLEEPING] = [0, 32, 64, 96, 128, 160, 192, 224];
export const WORDS = 256;
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

  /** Change a word that others may sleep on. */
  set(word, value) {
    Atomics.store(this.#control, word, value);
    this.#wake(word);
  }

  #wake(word) {
    if (Atomics.load(this.#control, SLEEPING)) Atomics.notify(this.#control, word);
  }

  /** Take tickets below OPEN, up to `end`, and do them; whether there was one. */
  work(end, act) {
    const control = this.#control;
    for (let some = false; ; ) {
      const ticket = Atomics.load(control, NEXT);
      if (ticket >= Math.min(end, Atomics.load(control, OPEN))) return some;
      if (Atomics.compareExchange(control, NEXT, ticket, ticket + 1) !== ticket) continue;
      act(ticket);
      Atomics.add(control, DONE, 1);
      this.#wake(DONE);
      some = true;
    }
  }

  /** Until a word's value `holds`, or a run has failed; `late()` is asked now and then, and true is an error. */
  until(word, holds, late = () => false) {
    const control = this.#control;
    let start;
    for (let spins = 1; ; spins++) {
      const value = Atomics.load(control, word);
      if (holds(value)) return value;
      if (spins % SPINS_PER_LOOK) continue;
      if (Atomics.load(control, FAILED) && word !== GO) return value;
      if (late()) throw new Error("a worker does not answer");
      start ??= performance.now();
      if (!this.#sleeps || performance.now() - start < AWAKE_MS) continue;
      Atomics.add(control, SLEEPING, 1);
      Atomics.wait(control, word, value, NAP_MS);
      Atomics.sub(control, SLEEPING, 1);
    }
  }
}
