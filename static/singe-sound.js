/**
 * Sounds become tensors, as core/singe/files/sounds makes them: one channel, at the rate of the model.
 *
 * Contract: `soundToTensor(sound, rate)` takes what an AudioBuffer has and returns the mean of its channels, resampled.
 * `resample(samples, rate, wanted)` gives samples another rate, by a sinc function in a Kaiser window; `Resampler` does it block by
 * block. `microphone()` gives blocks of what is heard. All return new arrays. `toWav` and `toMidi` make files of samples and of notes. What does not fit is a SingeError with the code "input".
 */

/** @import { Microphone, Sound } from "./types/public.d.ts" */

import { SingeError } from "./program/singe-format.js";

/** How many zero crossings of the sinc function are used on each side of a sample; the window's shape; where the filter has fallen to a half. */
const [CROSSINGS, BETA, EDGE] = [48, 9, 0.94];
/** The most weights that are kept; those of unusual rates are computed anew for each sample. */
const MOST_KEPT = 2 ** 20;

/** @param {string} what */
const refuse = (what) => new SingeError("input", `sound: ${what}`);

/**
 * The mean of a sound's channels, at `rate` samples a second.
 * @param {Sound} sound
 * @param {number} rate
 * @returns {Float32Array}
 */
export function soundToTensor(sound, rate) {
  const count = sound?.numberOfChannels;
  if (!(count > 0 && sound.getChannelData)) throw refuse("expected an AudioBuffer, as decodeAudioData gives it");
  const channels = Array.from({ length: count }, (_, k) => sound.getChannelData(k));
  const mean = Float64Array.from(channels[0], (_, k) => channels.reduce((sum, channel) => sum + channel[k], 0) / count);
  return resample(mean, sound.sampleRate, rate);
}

/**
 * Samples of `rate` a second as samples of `wanted` a second, by a sinc function in a Kaiser window. Frequencies that are too
 * high for the new rate are left out; before and after the samples is silence. Both rates are whole numbers.
 * @param {ArrayLike<number>} samples
 * @param {number} rate
 * @param {number} wanted
 * @returns {Float32Array}
 */
export function resample(samples, rate, wanted) {
  const isBig = typeof (/** @type {unknown} */ (samples?.[0])) === "bigint";
  if (isBig || !(samples?.length >= 0)) throw refuse(`got samples of type ${isBig ? "bigint" : typeof samples}, expected an array of numbers`);
  const resampler = new Resampler(rate, wanted);
  const [most, last] = [resampler.push(samples), resampler.finish()];
  const whole = new Float32Array(most.length + last.length);
  whole.set(most);
  whole.set(last, most.length);
  return whole;
}

/**
 * Takes blocks of any size with `push`, and gives the samples of the new rate that they complete; `finish` gives those that are
 * left. All together are what `resample` makes of the whole; where the rates are equal, those that come.
 */
export class Resampler {
  #passes;
  #up;
  #down;
  #cutoff; // of the frequencies of what comes in
  #reach;
  /** @type {Map<number, Float64Array> | null} */
  #kept;
  #held = new Float64Array();
  #first = 0; // the number of the first sample that is held
  #count = 0;
  #made = 0;

  /**
   * @param {number} rate
   * @param {number} wanted
   */
  constructor(rate, wanted) {
    for (const given of [rate, wanted]) {
      if (!(Number.isSafeInteger(given) && given > 0)) throw refuse(`got a rate of ${given}, expected a whole number of samples a second`);
    }
    this.#passes = rate === wanted;
    const shared = divisor(rate, wanted);
    this.#up = wanted / shared;
    this.#down = rate / shared;
    this.#cutoff = Math.min(1, wanted / rate) * EDGE;
    this.#reach = Math.ceil(CROSSINGS / this.#cutoff);
    this.#kept = this.#up * 2 * this.#reach <= MOST_KEPT ? new Map() : null;
    this.#start();
  }

  #start() {
    this.#held = new Float64Array(this.#reach - 1);
    this.#first = 1 - this.#reach;
    this.#count = this.#made = 0;
  }

  /**
   * @param {ArrayLike<number>} samples
   * @returns {Float32Array}
   */
  push(samples) {
    if (this.#passes) return Float32Array.from(samples);
    this.#hold(samples);
    this.#count += samples.length;
    return this.#until(Math.max(0, Math.floor(((this.#count - this.#reach) * this.#up - 1) / this.#down) + 1));
  }

  /** The samples that are left; silence follows. The next block begins another sound. */
  finish() {
    if (this.#passes) return new Float32Array();
    this.#hold(new Float64Array(this.#reach));
    const last = this.#until(Math.ceil((this.#count * this.#up) / this.#down));
    this.#start();
    return last;
  }

  /** @param {ArrayLike<number>} samples */
  #hold(samples) {
    const held = new Float64Array(this.#held.length + samples.length);
    held.set(this.#held);
    held.set(samples, this.#held.length);
    this.#held = held;
  }

  /** @param {number} end */
  #until(end) {
    const found = new Float32Array(Math.max(0, end - this.#made));
    for (let n = 0; n < found.length; n++) {
      const at = (this.#made + n) * this.#down;
      const weights = this.#weights(at % this.#up);
      const first = this.#place(at);
      let sum = 0;
      for (let k = 0; k < weights.length; k++) sum += weights[k] * this.#held[first + k];
      found[n] = sum;
    }
    this.#made += found.length;
    const unused = this.#place(this.#made * this.#down);
    if (unused > 0) {
      this.#held = this.#held.slice(unused);
      this.#first += unused;
    }
    return found;
  }

  /** @param {number} at where the first sample lies that is used for a place, of those that are held */
  #place(at) {
    return Math.floor(at / this.#up) + 1 - this.#reach - this.#first;
  }

  /**
   * The weights of the samples around a place, which lies `part` / `up` of the way between two of them.
   * @param {number} part
   */
  #weights(part) {
    const known = this.#kept?.get(part);
    if (known) return known;
    const around = (/** @type {number} */ k) => (k + 1 - this.#reach - part / this.#up) * this.#cutoff;
    const weights = Float64Array.from({ length: 2 * this.#reach }, (_, k) => weight(around(k)) * this.#cutoff);
    this.#kept?.set(part, weights);
    return weights;
  }
}

/**
 * A sinc function in a Kaiser window, at a distance in zero crossings.
 * @param {number} distance
 */
function weight(distance) {
  const inside = 1 - (distance / CROSSINGS) ** 2;
  if (inside < 0) return 0;
  const angle = Math.PI * distance;
  return (bessel(BETA * Math.sqrt(inside)) / bessel(BETA)) * (angle ? Math.sin(angle) / angle : 1);
}

/**
 * The modified Bessel function of order 0, by its series.
 * @param {number} x
 */
function bessel(x) {
  let [sum, term] = [1, 1];
  for (let k = 1; term > sum * 1e-17; k++) sum += term *= (x / (2 * k)) ** 2;
  return sum;
}

/** @type {(a: number, b: number) => number} */
const divisor = (a, b) => (b ? divisor(b, a % b) : a);

/** Keeps the latest samples that nobody has taken yet; older ones are dropped, and counted. */
export class SampleRing {
  #samples;
  #start = 0;
  length = 0;
  dropped = 0;

  /** @param {number} size the most that it holds */
  constructor(size) {
    this.#samples = new Float32Array(size);
  }

  /** @param {Float32Array} samples */
  write(samples) {
    const size = this.#samples.length;
    const kept = samples.subarray(Math.max(0, samples.length - size));
    const lost = Math.max(0, this.length + samples.length - size);
    this.dropped += lost;
    const fall = Math.min(this.length, lost);
    this.#start = (this.#start + fall) % size;
    this.length -= fall;
    for (let k = 0; k < kept.length; k++) this.#samples[(this.#start + this.length + k) % size] = kept[k];
    this.length += kept.length;
  }

  /** All that it holds, which it lets go of. */
  read() {
    const found = Float32Array.from({ length: this.length }, (_, k) => this.#samples[(this.#start + k) % this.#samples.length]);
    this.#start = this.length = 0;
    return found;
  }
}

/** What runs beside the page: it sends blocks of the mean of the channels. */
const WORKLET = `registerProcessor("singe-microphone", class extends AudioWorkletProcessor {
  block = new Float32Array(1024);
  count = 0;
  process([channels]) {
    const length = channels[0]?.length ?? 0;
    for (let k = 0; k < length; k++) {
      let sum = 0;
      for (const channel of channels) sum += channel[k];
      this.block[this.count++] = sum / channels.length;
      if (this.count === this.block.length) {
        this.port.postMessage(this.block);
        this.count = 0;
      }
    }
    return true;
  }
});`;

/**
 * What a microphone hears, or another MediaStream: an async iterable of blocks, for the stream of a task. Each block is all that came since
 * the one before, at most `seconds` of it.
 * @param {{ stream?: MediaStream, seconds?: number }} [options]
 * @returns {Promise<Microphone>}
 */
export async function microphone({ stream, seconds = 10 } = {}) {
  const heard = stream ?? (await navigator.mediaDevices.getUserMedia({ audio: { echoCancellation: false, noiseSuppression: false, autoGainControl: false } }));
  const context = new AudioContext();
  const address = URL.createObjectURL(new Blob([WORKLET], { type: "text/javascript" }));
  try {
    await context.audioWorklet.addModule(address);
  } finally {
    URL.revokeObjectURL(address);
  }
  const node = new AudioWorkletNode(context, "singe-microphone", { numberOfOutputs: 0 });
  const ring = new SampleRing(Math.ceil(seconds * context.sampleRate));
  let stopped = false;
  let wake = () => {};
  node.port.onmessage = ({ data }) => {
    ring.write(data);
    wake();
  };
  context.createMediaStreamSource(heard).connect(node);
  await context.resume();
  async function* blocks() {
    while (!stopped) {
      if (ring.length) yield ring.read();
      else
        await new Promise((resolve) => {
          wake = () => resolve(undefined);
        });
    }
  }
  const stop = () => {
    stopped = true;
    wake();
    if (!stream) for (const track of heard.getTracks()) track.stop();
    void context.close();
  };
  return {
    sampleRate: context.sampleRate,
    stream: heard,
    get dropped() {
      return ring.dropped;
    },
    stop,
    [Symbol.asyncIterator]: blocks,
  };
}

/**
 * A .wav file of one channel in 16 bits; what is louder than 1 is clipped.
 * @param {ArrayLike<number>} samples
 * @param {number} rate
 */
export function toWav(samples, rate) {
  const view = new DataView(new ArrayBuffer(44 + 2 * samples.length));
  const names = /** @type {[number, string][]} */ ([
    [0, "RIFF"],
    [8, "WAVE"],
    [12, "fmt "],
    [36, "data"],
  ]);
  for (const [at, name] of names) for (let k = 0; k < 4; k++) view.setUint8(at + k, name.charCodeAt(k));
  view.setUint32(4, 36 + 2 * samples.length, true);
  view.setUint32(16, 16, true);
  [1, 1].forEach((one, k) => view.setUint16(20 + 2 * k, one, true));
  view.setUint32(24, rate, true);
  view.setUint32(28, 2 * rate, true);
  [2, 16].forEach((one, k) => view.setUint16(32 + 2 * k, one, true));
  view.setUint32(40, 2 * samples.length, true);
  for (let k = 0; k < samples.length; k++) view.setInt16(44 + 2 * k, Math.round(Math.max(-1, Math.min(1, samples[k])) * 32767), true);
  return new Blob([view], { type: "audio/wav" });
}

/** Of a MIDI file: ticks a beat and a second, its head's track of an electric piano at 120 beats a minute, and a third of a semitone. */
const [TICKS, TICKS_A_SECOND, THIRD] = [220, 440, 4096 / 3];
const TRACK = [0, 255, 81, 3, 7, 161, 32, 0, 192, 4];

/**
 * A MIDI file of notes: that which `save` of Python writes. Notes that others overlap have no bends, which are of all keys at once.
 * @param {readonly { start: number, end: number, pitch: number, score: number, bends?: readonly number[] }[]} notes in seconds
 */
export function toMidi(notes) {
  const ordered = notes.toSorted((a, b) => a.start - b.start || a.end - b.end || a.pitch - b.pitch);
  const ticks = (/** @type {number} */ seconds) => Math.round(seconds * TICKS_A_SECOND);
  const within = (/** @type {number} */ value, /** @type {number} */ least, /** @type {number} */ most) => Math.max(least, Math.min(most, Math.round(value)));
  /** @type {number[][]} ticks, which of those at a time comes first, three bytes */
  const events = [];
  for (const note of ordered) {
    const { start, end, pitch, score, bends = [] } = note;
    const alone = ordered.every((other) => other === note || other.start >= end || other.end <= start);
    events.push([ticks(start), 2, 0x90, pitch, within(127 * score, 1, 127)], [ticks(end), 0, 0x80, pitch, 0]);
    for (const [k, bend] of (alone ? bends : []).entries()) {
      const value = within(bend * THIRD, -8192, 8191) + 8192;
      events.push([ticks(start + ((end - start) * k) / Math.max(1, bends.length - 1)), 1, 0xe0, value & 127, value >> 7]);
    }
  }
  events.sort((a, b) => a.map((value, k) => value - b[k]).find((difference) => difference) ?? 0);
  const bytes = [...TRACK];
  let now = 0;
  for (const [at, , ...event] of events) {
    bytes.push(...sevens(at - now), ...event);
    now = at;
  }
  bytes.push(1, 255, 47, 0);
  const head = new DataView(new ArrayBuffer(22));
  [0x4d546864, 6, 0x00000001, (TICKS << 16) | 0x4d54, 0x726b0000].forEach((word, k) => head.setUint32(4 * k, word));
  head.setUint32(18, bytes.length);
  return new Blob([head, Uint8Array.from(bytes)], { type: "audio/midi" });
}

/**
 * A number as 7 bits a byte, of which the highest says that more follow.
 * @param {number} value
 * @returns {number[]}
 */
const sevens = (value) => [...(value > 127 ? sevens(value >> 7).map((byte) => byte | 128) : []), value & 127];

/** A browser decodes at a rate that it is told: that of the file where its first bytes say it, so that nobody else's filter changes it. */
const USUAL_RATE = 48000;

/**
 * The rate that the first bytes of a file say, or the usual one.
 * @param {ArrayBuffer} bytes
 */
export function rateOf(bytes) {
  const view = new DataView(bytes);
  const name = (/** @type {number} */ at) => (at + 4 <= view.byteLength ? String.fromCharCode(...new Uint8Array(bytes, at, 4)) : "");
  let rate = 0;
  if (name(0) === "fLaC" && view.byteLength >= 22) rate = view.getUint32(18) >>> 12;
  if (name(0) === "RIFF") {
    for (let at = 12; at + 16 <= view.byteLength && !rate; at += 8 + view.getUint32(at + 4, true) + (view.getUint32(at + 4, true) % 2)) {
      if (name(at) === "fmt ") rate = view.getUint32(at + 12, true);
    }
  }
  return rate >= 3000 && rate <= 384000 ? rate : USUAL_RATE;
}

/**
 * The samples of a file, the mean of its channels, at the rate that it has.
 * @param {Blob} file
 * @returns {Promise<{ samples: Float32Array, sampleRate: number }>}
 */
export async function decoded(file) {
  const bytes = await file.arrayBuffer();
  const sampleRate = rateOf(bytes);
  try {
    const sound = await new OfflineAudioContext(1, 1, sampleRate).decodeAudioData(bytes);
    return { samples: soundToTensor(sound, sampleRate), sampleRate };
  } catch (cause) {
    throw new SingeError("input", "sound: this browser cannot decode it; give a .wav, .flac, .mp3 or .ogg file", cause);
  }
}
