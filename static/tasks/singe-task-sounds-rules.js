/**
 * Scores of sounds become what a person reads: segments of voices, and notes.
 *
 * Contract: the same as core/singe/tasks/sound/voices.py and notes.py, number by number, which the tests compare with the makers' own code.
 */

/** A voice ends at a score that is lower by this than that at which it begins. */
const SLACK = 0.15;

/**
 * In samples: silence of `silence` ends a voice, voices shorter than `speech` are left out of a whole sound, `pad` is added at both ends.
 * @typedef {{ threshold: number, speech: number, silence: number, pad: number, step: number }} VoiceRules
 */

/**
 * The first sample of each segment of a whole sound, and the one after its last.
 * @param {ArrayLike<number>} scores
 * @param {number} count
 * @param {VoiceRules} rules
 * @returns {[number, number][]}
 */
export function voicesIn(scores, count, rules) {
  const least = Math.max(rules.threshold - SLACK, 0.01);
  /** @type {[number, number][]} */
  const found = [];
  let [start, quiet] = [-1, 0];
  for (let k = 0; k < scores.length; k++) {
    const now = rules.step * k;
    if (scores[k] >= rules.threshold) {
      quiet = 0;
      if (start < 0) start = now;
    } else if (scores[k] < least && start >= 0) {
      quiet ||= now;
      if (now - quiet < rules.silence) continue;
      if (quiet - start > rules.speech) found.push([start, quiet]);
      [start, quiet] = [-1, 0];
    }
  }
  if (start >= 0 && count - start > rules.speech) found.push([start, count]);
  return padded(found, count, rules.pad);
}

/**
 * With a margin at both ends, or half of the silence where it is short.
 * @param {[number, number][]} found
 * @param {number} count
 * @param {number} pad
 */
function padded(found, count, pad) {
  found.forEach((segment, k) => {
    const next = found[k + 1];
    if (k === 0) segment[0] = Math.trunc(Math.max(0, segment[0] - pad));
    const silence = next ? next[0] - segment[1] : 2 * pad;
    if (silence < 2 * pad) {
      segment[1] += Math.floor(silence / 2);
      next[0] = Math.trunc(Math.max(0, next[0] - Math.floor(silence / 2)));
    } else {
      segment[1] = Math.trunc(Math.min(count, segment[1] + pad));
      if (next) next[0] = Math.trunc(Math.max(0, next[0] - pad));
    }
  });
  return found;
}

/** The same of scores as they come: a voice's beginning is known at once, its end after some silence. */
export class VoiceFollower {
  #rules;
  #now = 0;
  #quiet = 0;
  #sum = 0;
  #count = 0;
  /** @type {number | null} the first sample of the voice that goes on */
  start = null;

  /** @param {VoiceRules} rules */
  constructor(rules) {
    this.#rules = rules;
  }

  /**
   * The segment that ends with this score, and its mean score.
   * @param {number} score
   * @returns {[start: number, end: number, score: number] | null}
   */
  push(score) {
    const rules = this.#rules;
    this.#now += rules.step;
    if (this.start !== null) this.#add(score);
    if (score >= rules.threshold) {
      this.#quiet = 0;
      if (this.start === null) {
        this.start = Math.trunc(Math.max(0, this.#now - rules.pad - rules.step));
        this.#sum = this.#count = 0;
        this.#add(score);
      }
    } else if (score < rules.threshold - SLACK && this.start !== null) {
      this.#quiet ||= this.#now;
      if (this.#now - this.#quiet >= rules.silence) return this.end(Math.trunc(this.#quiet + rules.pad - rules.step));
    }
    return null;
  }

  /** @param {number} score */
  #add(score) {
    this.#sum += score;
    this.#count++;
  }

  /**
   * End the voice that goes on: at a sample, or where the sound ends.
   * @returns {[start: number, end: number, score: number] | null}
   */
  end(at = this.#now) {
    if (this.start === null) return null;
    const start = this.start;
    this.start = null;
    this.#quiet = 0;
    return [start, at, this.#sum / this.#count];
  }
}

/** The mean of the last scores of a wake word: it is heard at the first that is over the threshold. */
export class WordFollower {
  #facts;
  /** @type {number[]} */
  #scores = [];
  #rows = 0;
  #heard = false;

  /** @param {{ label: string, threshold: number, meanOf: number, step: number, after: number }} facts in seconds */
  constructor(facts) {
    this.#facts = facts;
  }

  /**
   * The words that are heard now, and the means.
   * @param {ArrayLike<number>} scores
   */
  push(scores) {
    const { label, threshold, meanOf, step, after } = this.#facts;
    const words = [];
    const means = new Float32Array(scores.length);
    for (let k = 0; k < scores.length; k++) {
      this.#rows++;
      this.#scores = [...this.#scores, scores[k]].slice(-meanOf);
      const mean = this.#scores.length === meanOf ? this.#scores.reduce((sum, x) => sum + x, 0) / meanOf : 0;
      means[k] = mean;
      if (mean > threshold && !this.#heard) words.push({ label, score: mean, at: this.#rows * step + after });
      this.#heard = mean > threshold;
    }
    return { words, means };
  }
}

/** The part of a window that must be of the sound, but for the first. */
const COVERAGE = 0.75;

/** @typedef {{ rate: number, step: number, before: number, after: number }} WindowFacts */

/** @type {(spec: WindowFacts) => number} */
const windowOf = ({ step, before, after }) => step + after - before;

/** @type {(count: number, spec: WindowFacts) => number} */
export const windowsOf = (count, spec) => 1 + Math.max(0, Math.floor((count - COVERAGE * windowOf(spec)) / spec.step));

/**
 * The number of the speaker, the start and the end of each turn.
 * @param {readonly Float32Array[]} vectors of windows, of length 1
 * @param {readonly (readonly [start: number, end: number])[]} segments when somebody speaks
 * @param {number} seconds
 * @param {WindowFacts} spec
 * @param {number} threshold
 * @param {number} count of speakers, 0 if it is unknown
 */
export function turnsOf(vectors, segments, seconds, spec, threshold, count) {
  const middle = windowOf(spec) / 2 / spec.rate;
  const step = spec.step / spec.rate;
  const edges = [0, ...vectors.slice(1).map((_, k) => middle + step * (k + 0.5)), Math.max(seconds, 0)];
  /** @type {[number, number, number][]} */
  const parts = [];
  for (const [start, end] of segments.slice().sort((a, b) => a[0] - b[0] || a[1] - b[1])) {
    vectors.forEach((_, k) => {
      const [from, to] = [Math.max(start, edges[k]), Math.min(end, edges[k + 1])];
      if (to > from) parts.push([k, from, to]);
    });
  }
  const spoken = [...new Set(parts.map(([k]) => k))].sort((a, b) => a - b);
  const found = voicesOf(
    spoken.map((k) => Array.from(vectors[k])),
    threshold,
    count,
  );
  const voices = new Map(spoken.map((k, at) => [k, found[at]]));
  /** @type {[number, number, number][]} */
  const turns = [];
  for (const [k, start, end] of parts) {
    const last = turns[turns.length - 1];
    const voice = /** @type {number} */ (voices.get(k));
    if (last && last[0] === voice && start - last[2] < 1e-9) last[2] = end;
    else turns.push([voice, start, end]);
  }
  return turns;
}

/** @type {(a: readonly number[], b: readonly number[]) => number} */
const product = (a, b) => a.reduce((sum, x, k) => sum + x * b[k], 0);

/** @type {(x: readonly number[]) => number[]} */
function unit(x) {
  const length = Math.max(Math.sqrt(product(x, x)), 1e-12);
  return x.map((value) => value / length);
}

/** @type {(values: readonly number[]) => number} */
const greatest = (values) => values.reduce((best, value, k) => (value > values[best] ? k : best), 0);

/** @type {(a: readonly number[], b: readonly number[]) => number[]} */
const added = (a, b) => a.map((x, k) => x + b[k]);

/**
 * The number of the voice of each vector of length 1, in the order in which they speak first.
 * @param {readonly number[][]} vectors
 * @param {number} threshold
 * @param {number} count
 */
export function voicesOf(vectors, threshold, count) {
  /** @type {Voice[]} */
  const voices = [];
  for (const vector of vectors) {
    const alike = voices.map(({ mean }) => product(vector, mean));
    const best = greatest(alike);
    const isKnown = voices.length > 0 && alike[best] >= threshold;
    const sum = isKnown ? added(voices[best].sum, vector) : vector;
    voices[isKnown ? best : voices.length] = { sum, mean: unit(sum) };
  }
  const means = joined(voices, threshold, count);
  const nearest = vectors.map((vector) => greatest(means.map((mean) => product(vector, mean))));
  const order = [...new Set(nearest)];
  return nearest.map((k) => order.indexOf(k));
}

/** @typedef {{ sum: number[], mean: number[] }} Voice */

/**
 * The means of the voices that are left when the two that are the most alike were joined, again and again. Of each voice only the later one that
 * is the most like it is kept: of all pairs of a long sound there are too many.
 * @param {(Voice | null)[]} voices
 * @param {number} threshold
 * @param {number} count
 */
function joined(voices, threshold, count) {
  /** @type {(k: number) => { alike: number, other: number }} */
  const nearestOf = (k) => {
    let best = { alike: -Infinity, other: k };
    for (let other = k + 1; other < voices.length; other++) {
      const alike = alikeness(voices[k], voices[other]);
      if (alike > best.alike) best = { alike, other };
    }
    return best;
  };
  const pairs = voices.map((_, k) => nearestOf(k));
  for (let left = voices.length; left > 1; left--) {
    const i = greatest(pairs.map(({ alike }) => alike));
    const { alike, other: j } = pairs[i];
    if (count ? left <= count : alike < threshold) break;
    const sum = added(/** @type {Voice} */ (voices[i]).sum, /** @type {Voice} */ (voices[j]).sum);
    voices[i] = { sum, mean: unit(sum) };
    voices[j] = null;
    for (let k = 0; k < j; k++) {
      const own = pairs[k];
      if (k === i || own.other === i || own.other === j) pairs[k] = nearestOf(k);
      else if (k < i) {
        const alike = alikeness(voices[k], voices[i]);
        if (alike > own.alike || (alike === own.alike && i < own.other)) pairs[k] = { alike, other: i };
      }
    }
    pairs[j] = { alike: -Infinity, other: j };
  }
  return voices.flatMap((voice) => (voice ? [voice.mean] : []));
}

/** @type {(a: Voice | null, b: Voice | null) => number} */
const alikeness = (a, b) => (a && b ? product(a.mean, b.mean) : -Infinity);

const [LOWEST, KEYS, BINS, QUIET, REACH] = [21, 88, 264, 11, 25];
const [HOP, RATE, WINDOW] = [256, 22050, 172];
const SHIFT = (HOP / RATE) * (WINDOW - 43844 / HOP) + 0.0018;

/**
 * pitch: a number of MIDI; bends: thirds of a semitone from it, over the note's time.
 * @typedef {{ start: number, end: number, pitch: number, score: number, bends: number[] }} MusicNote
 */

/**
 * The notes of scores of keys and of beginnings (frames × 88), and of fine pitches (frames × 264).
 * @param {{ keys: Float32Array, onsets: Float32Array, contours: Float32Array }} scores
 * @param {{ threshold: number, onset: number, min_length: number }} settings
 * @returns {MusicNote[]}
 */
export function notesIn({ keys, onsets, contours }, settings) {
  const time = (/** @type {number} */ frame) => (frame * HOP) / RATE - SHIFT * Math.floor(frame / WINDOW);
  const length = Math.round((settings.min_length * RATE) / HOP);
  return spans(keys, onsets, settings.onset, settings.threshold, length)
    .map(([a, b, key]) => ({ start: time(a), end: time(b), pitch: key + LOWEST, score: mean(keys, a, b, key), bends: bendsOf(contours, a, b, key) }))
    .sort((x, y) => x.start - y.start || x.pitch - y.pitch || x.end - y.end);
}

/** @type {(keys: Float32Array, a: number, b: number, key: number) => number} */
function mean(keys, a, b, key) {
  let sum = 0;
  for (let frame = a; frame < b; frame++) sum += keys[frame * KEYS + key];
  return Math.fround(sum / (b - a));
}

/**
 * The first frame, the one after the last, and the key of each note.
 * @param {Float32Array} keys
 * @param {Float32Array} onsets
 * @param {number} leastOnset
 * @param {number} leastKey
 * @param {number} leastLength
 */
function spans(keys, onsets, leastOnset, leastKey, leastLength) {
  const count = keys.length / KEYS;
  /** @type {[number, number, number][]} */
  const found = [];
  if (count < 3) return found;
  const [starts, left] = [withRises(onsets, keys, count), keys.slice()];
  const clear = (/** @type {number} */ frame, /** @type {number} */ key) => left.fill(0, frame * KEYS + Math.max(0, key - 1), frame * KEYS + Math.min(KEYS, key + 2));
  for (let place = (count - 1) * KEYS - 1; place >= KEYS; place--) {
    if (!(starts[place] >= leastOnset && starts[place] > starts[place - KEYS] && starts[place] > starts[place + KEYS])) continue;
    const [start, key] = [Math.floor(place / KEYS), place % KEYS];
    let [frame, quiet] = [start + 1, 0];
    for (; frame < count - 1 && quiet < QUIET; frame++) quiet = left[frame * KEYS + key] < leastKey ? quiet + 1 : 0;
    if (frame - quiet - start <= leastLength) continue;
    for (let k = start; k < frame - quiet; k++) clear(k, key);
    found.push([start, frame - quiet, key]);
  }
  const loud = Array.from(left.keys()).filter((place) => left[place] > leastKey);
  const order = left.slice();
  for (const place of loud.sort((a, b) => order[b] - order[a] || a - b)) {
    if (!left[place]) continue; // a note that is louder has it
    left[place] = 0;
    const [middle, key] = [Math.floor(place / KEYS), place % KEYS];
    const walk = (/** @type {1 | -1} */ way) => {
      let [frame, quiet] = [middle + way, 0];
      for (; (way > 0 ? frame < count - 1 : frame > 0) && quiet < QUIET; frame += way) {
        quiet = left[frame * KEYS + key] < leastKey ? quiet + 1 : 0;
        clear(frame, key);
      }
      return frame - way - way * quiet;
    };
    const [end, start] = [walk(1), walk(-1)];
    if (end - start > leastLength) found.push([start, end, key]);
  }
  return found;
}

/**
 * Where a key rises within two frames a note begins, too, though the model says nothing of it.
 * @param {Float32Array} onsets
 * @param {Float32Array} keys
 * @param {number} count
 */
function withRises(onsets, keys, count) {
  const rises = new Float32Array(keys.length);
  let [highest, top] = [0, -Infinity];
  for (let place = 2 * KEYS; place < count * KEYS; place++) {
    rises[place] = Math.max(0, Math.min(keys[place] - keys[place - KEYS], keys[place] - keys[place - 2 * KEYS]));
    highest = Math.max(highest, rises[place]);
  }
  for (const onset of onsets) top = Math.max(top, onset);
  return highest ? onsets.map((onset, place) => Math.max(onset, (top * rises[place]) / highest)) : onsets;
}

/**
 * The likeliest pitch of each frame, as bins from the key's own.
 * @param {Float32Array} contours
 * @param {number} a
 * @param {number} b
 * @param {number} key
 */
function bendsOf(contours, a, b, key) {
  const middle = 3 * key;
  const [first, last] = [Math.max(0, middle - REACH), Math.min(BINS, middle + REACH + 1)];
  return Array.from({ length: b - a }, (_, k) => {
    let [best, most] = [first, -Infinity];
    for (let bin = first; bin < last; bin++) {
      const score = contours[(a + k) * BINS + bin] * Math.exp(-0.5 * ((bin - middle) / 5) ** 2);
      if (score > most) [best, most] = [bin, score];
    }
    return best - middle;
  });
}
