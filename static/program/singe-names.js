/**
 * The nearest of the known names to an unknown one. singe-arguments.js loads this when it refuses a name.
 */

/**
 * How many letters must be put in, left out or exchanged to make one word of another.
 * @param {string} a
 * @param {string} b
 * @returns {number}
 */
function distance(a, b) {
  let row = Array.from({ length: b.length + 1 }, (_, k) => k);
  for (const [i, letter] of [...a.toLowerCase()].entries()) {
    row = row.reduce(
      (next, up, k) => {
        const same = letter === b[k - 1]?.toLowerCase() ? 0 : 1;
        return [...next, k ? Math.min(up + 1, next[k - 1] + 1, row[k - 1] + same) : i + 1];
      },
      /** @type {number[]} */ ([]),
    );
  }
  return row[b.length];
}

/**
 * Words of other libraries ↦ those that are used here.
 * @type {Record<string, string>}
 */
const OTHER_WORDS = {
  abortSignal: "signal",
  backend: "device",
  dims: "shape",
  executionProviders: "device",
  numThreads: "threads",
  progress_callback: "onProgress",
  provider: "device",
  type: "dtype",
  values: "data",
};

/**
 * What to say of a name that is none of `names`: the nearest of them, if a third of the letters or less are others.
 * @param {string} name
 * @param {string[]} names
 * @returns {string | undefined}
 */
export function hint(name, names) {
  const isPart = (/** @type {string} */ known) => name.length > 2 && known.toLowerCase().includes(name.toLowerCase());
  const rank = (/** @type {string} */ known) => (known === OTHER_WORDS[name] ? 0 : distance(known, name));
  const isNear = (/** @type {string} */ known) => rank(known) <= Math.floor((Math.min(known.length, name.length) + 1) / 3) || isPart(known);
  const [near] = names.filter(isNear).sort((a, b) => rank(a) - rank(b));
  return near && `did you mean ${near}?`;
}
