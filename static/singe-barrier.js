/**
 * How the threads of a run know what to do: a few words of shared memory, and how one waits for another.
 *
 * Contract: a step is parts, at least one for each thread. Parts are tickets, numbered on from run to run: those below OPEN
 * may be taken, NEXT is the first that nobody took, DONE counts those that are done. Whoever is free takes the next, so that
 * a thread that the system does not let run holds nobody up. Whoever waits spins for a while, then sleeps, other than a
 * page's main thread, which may not. After `fail()` nobody waits for a part any more.
 *
 * Where other programs want the cores, the system stops a thread after some milliseconds, for as long, and if that is
 * within a part, all wait. So once a caller has waited long, workers give way between parts, before they are stopped.
 */

/** Words, each in cache lines of its own. GO is odd while PLAN and BASE, a run's first ticket, are being changed. */
const [GO, PLAN, BASE, OPEN, NEXT, DONE, FAILED, SLEEPING, CROWDED] = [0, 32, 64, 96, 128, 160, 192, 224, 256];
const WORDS = 288;
/** In the place of a plan's number: go back to the event loop. */
export const LEAVE = -1;

const SPINS_PER_LOOK = 1024;
/** Spinning: to be woken takes up to a millisecond, as long as many steps. */
const AWAKE_MS = 1;
const NAP_MS = 100;
/** A caller that waits so long for a part: its worker was stopped. For the next RUNS workers give way, after a TURN each. */
const CROWD = { WAIT_MS: 0.7, RUNS: 32, TURN_MS: 2.5, REST_MS: 0.05 };

/** Whether a ticket comes before another: after 2³¹ they are negative numbers. */
const before = (ticket, other) => ((ticket - other) | 0) < 0;

export class Barrier {
  #sleeps;
  /** When this thread gives way. */
  #due = Infinity;

  constructor(words = new Int32Array(new SharedArrayBuffer(4 * WORDS))) {
    this.words = words;
    try {
      Atomics.wait(words, FAILED, 1, 0);
      this.#sleeps = true;
    } catch {
      this.#sleeps = false;
    }
  }

  // --- the caller of a run

  /** Tell the others that a run of this plan begins, or to LEAVE. */
  announce(plan) {
    Atomics.add(this.words, GO, 1);
    Atomics.store(this.words, PLAN, plan);
    Atomics.store(this.words, BASE, Atomics.load(this.words, OPEN));
    if (Atomics.load(this.words, CROWDED)) Atomics.sub(this.words, CROWDED, 1);
    Atomics.add(this.words, GO, 1);
    this.#wake(GO);
  }

  /** Do a step, with whoever else is free, who begin `meanwhile`; `late()` is asked now and then, and true is an error. */
  share(parts, act, late, meanwhile) {
    const base = Atomics.load(this.words, OPEN);
    const end = (base + parts) | 0;
    Atomics.store(this.words, OPEN, end);
    this.#wake(OPEN);
    meanwhile?.();
    this.#work(base, end, act);
    this.#until(DONE, (done) => !before(done, end), (waited) => {
      if (waited > CROWD.WAIT_MS) Atomics.store(this.words, CROWDED, CROWD.RUNS);
      return late();
    });
    if (this.failed) throw new Error("a worker failed");
  }

  /** What a worker has seen that listens for the next run. */
  get seen() {
    return Atomics.load(this.words, GO);
  }

  // --- the workers

  /** The next run, or LEAVE, after the one that was `seen`. */
  next(seen) {
    for (;;) {
      const go = this.#until(GO, (value) => value !== seen && value % 2 === 0);
      const found = { seen: go, plan: Atomics.load(this.words, PLAN), base: Atomics.load(this.words, BASE) };
      if (Atomics.load(this.words, GO) === go) return found;
    }
  }

  /** Take part in a run of so many tickets, until the last is taken: by now it may be over. */
  join(base, tickets, act) {
    const end = (base + tickets) | 0;
    this.#due = Atomics.load(this.words, CROWDED) ? performance.now() + CROWD.TURN_MS : Infinity;
    const left = () => before(Atomics.load(this.words, NEXT), end);
    while (left() && !this.failed) {
      const next = this.#work(base, end, act);
      this.#until(OPEN, (open) => before(next, open) || !left());
    }
  }

  // --- both

  get failed() {
    return Atomics.load(this.words, FAILED) !== 0;
  }

  fail() {
    Atomics.store(this.words, FAILED, 1);
  }

  /** Take open tickets before `end`, the run's first being `base`, and do them; the first that was not open. */
  #work(base, end, act) {
    for (;;) {
      const ticket = Atomics.load(this.words, NEXT);
      if (!before(ticket, end) || !before(ticket, Atomics.load(this.words, OPEN))) return ticket;
      if (Atomics.compareExchange(this.words, NEXT, ticket, ticket + 1) !== ticket) continue;
      act((ticket - base) | 0);
      Atomics.add(this.words, DONE, 1);
      this.#wake(DONE);
      if (this.#due < Infinity && performance.now() > this.#due) this.#giveWay();
    }
  }

  #giveWay() {
    Atomics.wait(this.words, FAILED, 0, CROWD.REST_MS);
    this.#due = performance.now() + CROWD.TURN_MS;
  }

  #wake(word) {
    if (Atomics.load(this.words, SLEEPING)) Atomics.notify(this.words, word);
  }

  /** Until a word's value `holds`, or a run has failed. */
  #until(word, holds, late = () => false) {
    let start;
    for (let spins = 1; ; spins++) {
      const value = Atomics.load(this.words, word);
      if (holds(value)) return value;
      if (spins % SPINS_PER_LOOK) continue;
      if (this.failed && word !== GO) return value;
      start ??= performance.now();
      const waited = performance.now() - start;
      if (late(waited)) throw new Error("a worker does not answer");
      if (!this.#sleeps || waited < AWAKE_MS) continue;
      Atomics.add(this.words, SLEEPING, 1);
      Atomics.wait(this.words, word, value, NAP_MS);
      Atomics.sub(this.words, SLEEPING, 1);
    }
  }
}
