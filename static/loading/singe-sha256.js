/**
 * Incremental SHA-256 (FIPS 180-4), for streamed bytes and for pages without SubtleCrypto.
 *
 * Contract: call `update` any number of times, then `hex` once.
 */

const PRIMES = (() => {
  /** @type {number[]} */
  const found = [];
  for (let n = 2; found.length < 64; n++) if (found.every((p) => n % p)) found.push(n);
  return found;
})();
const fraction = (/** @type {number} */ x) => ((x - Math.floor(x)) * 2 ** 32) | 0;
const ROUNDS = Int32Array.from(PRIMES, (p) => fraction(Math.cbrt(p)));
const START = Int32Array.from(PRIMES.slice(0, 8), (p) => fraction(Math.sqrt(p)));

export class Sha256 {
  #state = START.slice();
  #schedule = new Int32Array(64);
  #rest = new Uint8Array(64);
  #length = 0;

  /** @param {Uint8Array} bytes */
  update(bytes) {
    const waiting = this.#length % 64;
    this.#length += bytes.length;
    const first = waiting ? 64 - waiting : 0;
    this.#rest.set(bytes.subarray(0, first), waiting);
    if (bytes.length < first) return;
    if (waiting) this.#blocks(this.#rest, 0, 64);
    const end = first + Math.floor((bytes.length - first) / 64) * 64;
    this.#blocks(bytes, first, end);
    this.#rest.set(bytes.subarray(end));
  }

  hex() {
    const bits = this.#length * 8;
    const tail = new Uint8Array(((this.#length + 72) & -64) - this.#length);
    tail[0] = 0x80;
    const view = new DataView(tail.buffer);
    view.setUint32(tail.length - 8, Math.floor(bits / 2 ** 32));
    view.setUint32(tail.length - 4, bits >>> 0);
    this.update(tail);
    return Array.from(this.#state, (word) => (word >>> 0).toString(16).padStart(8, "0")).join("");
  }

  /**
   * @param {Uint8Array} bytes
   * @param {number} from
   * @param {number} to
   */
  #blocks(bytes, from, to) {
    const w = this.#schedule;
    const state = this.#state;
    for (let at = from; at < to; at += 64) {
      for (let i = 0, k = at; i < 16; i++, k += 4) {
        w[i] = (bytes[k] << 24) | (bytes[k + 1] << 16) | (bytes[k + 2] << 8) | bytes[k + 3];
      }
      for (let i = 16; i < 64; i++) {
        const x = w[i - 15];
        const y = w[i - 2];
        const s0 = ((x >>> 7) | (x << 25)) ^ ((x >>> 18) | (x << 14)) ^ (x >>> 3);
        const s1 = ((y >>> 17) | (y << 15)) ^ ((y >>> 19) | (y << 13)) ^ (y >>> 10);
        w[i] = (w[i - 16] + s0 + w[i - 7] + s1) | 0;
      }
      let a = state[0],
        b = state[1],
        c = state[2],
        d = state[3];
      let e = state[4],
        f = state[5],
        g = state[6],
        h = state[7];
      for (let i = 0; i < 64; i++) {
        const s1 = ((e >>> 6) | (e << 26)) ^ ((e >>> 11) | (e << 21)) ^ ((e >>> 25) | (e << 7));
        const t1 = (h + s1 + ((e & f) ^ (~e & g)) + ROUNDS[i] + w[i]) | 0;
        const s0 = ((a >>> 2) | (a << 30)) ^ ((a >>> 13) | (a << 19)) ^ ((a >>> 22) | (a << 10));
        const t2 = (s0 + ((a & b) ^ (a & c) ^ (b & c))) | 0;
        h = g;
        g = f;
        f = e;
        e = (d + t1) | 0;
        d = c;
        c = b;
        b = a;
        a = (t1 + t2) | 0;
      }
      state[0] += a;
      state[1] += b;
      state[2] += c;
      state[3] += d;
      state[4] += e;
      state[5] += f;
      state[6] += g;
      state[7] += h;
    }
  }
}
