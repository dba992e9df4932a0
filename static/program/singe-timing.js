/** Statistics of run times: when there are enough, and which of two ways is faster. */

const RUNS = 5;
const MOST_RUNS = 60;
const LONG_ENOUGH_MS = 30; // a page's timer has a resolution of about 0.1 ms
const WORTH = 0.9; // a change must save at least this part of the time

/** @param {number[]} times */
const sum = (times) => times.reduce((total, time) => total + time, 0);

/** @param {number[]} times */
export const enough = (times) => times.length > RUNS && (sum(times) >= LONG_ENOUGH_MS || times.length > MOST_RUNS);

/**
 * The mean of the faster half, which leaves out disturbed runs.
 * @param {number[]} times
 */
function typical(times) {
  const half = times.toSorted((a, b) => a - b).slice(0, Math.ceil(times.length / 2));
  return sum(half) / half.length;
}

/**
 * Whether changing saves enough time.
 * @param {number[]} from
 * @param {number[]} to
 */
export const pays = (from, to) => typical(to) < WORTH * typical(from);
