/** What several runs tell of how long one takes: when there are enough, and which of two ways is the faster. */

const RUNS = 5;
const MOST_RUNS = 60;
const LONG_ENOUGH_MS = 30; // a page's timer counts in steps of about 0.1 ms
const WORTH = 0.9; // of the time, for a change to pay

const sum = (times) => times.reduce((total, time) => total + time, 0);

export const enough = (times) => times.length > RUNS && (sum(times) >= LONG_ENOUGH_MS || times.length > MOST_RUNS);

/** The mean of the faster half: one that was disturbed does not count. */
function typical(times) {
  const half = times.toSorted((a, b) => a - b).slice(0, Math.ceil(times.length / 2));
  return sum(half) / half.length;
}

/** Whether it pays to change. */
export const pays = (from, to) => typical(to) < WORTH * typical(from);
