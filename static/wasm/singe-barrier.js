/**
 * Synchronises the threads of a run through a few words of shared memory.
 *
 * Contract: a call has parts, at least one per thread. Each part is a ticket; ticket numbers continue from run to run.
 * Tickets below OPEN may be taken, NEXT is the first that is not taken, DONE counts finished parts. A free thread takes
 * the next ticket, so a descheduled thread delays nobody. A waiting thread spins for a while, then sleeps; a page's main
 * thread may not sleep. After `fail()` no thread waits for a part.
 *
 * If other programs need the cores, the system deschedules a thread for some milliseconds, and if that happens within a
 * part, all threads wait. So after a caller has waited long, workers yield between parts, before they are descheduled.
 */

/** @import { ThreadPart } from "../types/program.d.ts" */

/** Words, each in cache lines of its own. GO is odd while PLAN and BASE, a run's first ticket, are being changed. */
const [GO, PLAN, BASE, OPEN, NEXT, DONE, FAILED, SLEEPING, CROWDED] = [0, 32, 64, 96, 128, 160, 192, 224, 256];
const WORDS = 288;
/** Instead of a plan's number: return to the event loop. */
export const LEAVE = -1;

const SPINS_PER_LOOK = 1024;
/** How long to spin: waking a thread takes up to a millisecond, as long as many calls. */
const AWAKE_MS = 1;
const NAP_MS = 100;
/** If a caller waits this long for a part, its worker was descheduled. For the next RUNS, workers yield after a TURN each. */
const CROWD = { WAIT_MS: 0.7, RUNS: 32, TURN_MS: 2.5, REST_MS: 0.05 };

/**
 * Whether a ticket comes before another; numbers wrap to negative after 2³¹.
 * @param {number} ticket
 * @param {number} other
 */
const before = (ticket, other) => ((ticket - other) | 0) < 0;

/**
 * A part's arguments: the addresses and sizes of this run, and the part.
 * @param {ThreadPart} part
 */
export function argumentsOf({ given, words, at, count, own }) {
  for (let k = 0; k < count; k++) given[k] = words[at + k];
  if (own) given[own.port] = words[own.spaces] + own.turn * words[own.spaces + 1];
  return given;
}

export class Barrier {
  #sleeps;
  /** When this thread yields next. */
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

  /**
   * Tell the others that a run of this plan begins, or to LEAVE.
   * @param {number} plan
   */
  announce(plan) {
    Atomics.add(this.words, GO, 1);
    Atomics.store(this.words, PLAN, plan);
    Atomics.store(this.words, BASE, Atomics.load(this.words, OPEN));
    if (Atomics.load(this.words, CROWDED)) Atomics.sub(this.words, CROWDED, 1);
    Atomics.add(this.words, GO, 1);
    this.#wake(GO);
  }

  /**
   * Do a call together with all free threads. `late()` is called now and then; if it returns true the run fails.
   * @param {number} parts
   * @param {(part: number) => void} act
   * @param {() => boolean} late
   * @param {() => void} [meanwhile]
   */
  share(parts, act, late, meanwhile) {
    const base = Atomics.load(this.words, OPEN);
    const end = (base + parts) | 0;
    Atomics.store(this.words, OPEN, end);
    this.#wake(OPEN);
    meanwhile?.();
    this.#work(base, end, act);
    this.#until(
      DONE,
      (done) => !before(done, end),
      (waited) => {
        if (waited > CROWD.WAIT_MS) Atomics.store(this.words, CROWDED, CROWD.RUNS);
        return late();
      },
    );
    if (this.failed) throw new Error("a worker failed");
  }

  /** The state that a worker compares with to notice the next run. */
  get seen() {
    return Atomics.load(this.words, GO);
  }

  // --- the workers

  /**
   * The next run, or LEAVE, after the one that was `seen`.
   * @param {number} seen
   */
  next(seen) {
    for (;;) {
      const go = this.#until(GO, (value) => value !== seen && value % 2 === 0);
      const found = { seen: go, plan: Atomics.load(this.words, PLAN), base: Atomics.load(this.words, BASE) };
      if (Atomics.load(this.words, GO) === go) return found;
    }
  }

  /**
   * Take part in a run with `count` tickets until the last is taken; the run may be over already.
   * @param {number} base
   * @param {number} tickets
   * @param {(part: number) => void} act
   */
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

  /**
   * Take and do open tickets before `end` (the run's first is `base`); returns the first that was not open.
   * @param {number} base
   * @param {number} end
   * @param {(part: number) => void} act
   * @returns {number}
   */
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

  /** @param {number} word */
  #wake(word) {
    if (Atomics.load(this.words, SLEEPING)) Atomics.notify(this.words, word);
  }

  /**
   * Wait until a word's value `holds`, or the run has failed.
   * @param {number} word
   * @param {(value: number) => boolean} holds
   * @param {(waited: number) => boolean} [late]
   * @returns {number}
   */
  #until(word, holds, late = () => false) {
    /** @type {number | undefined} */
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
