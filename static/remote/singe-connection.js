/**
 * A connection to a server of Singe's devices: messages go out in batches, answers to questions come back.
 *
 * Contract: `connect(remote)` gives a Connection, or fails with a SingeError. What is said is sent by the next `flush`. A connection
 * that is lost rejects all that waits with the code "lost", and so does it whatever is asked later. What comes from the server is
 * checked against what was asked for before it is used. core/singe/runtime/remote/protocol.py says what the messages are.
 */

/** @import { DType, RemoteOptions } from "../types/public.d.ts" */
/** @import * as types from "../types/public.d.ts" */
/** @import { Unchecked } from "../types/program.d.ts" */

/** @typedef {{ name: string, values: Unchecked[], bytes: Uint8Array<ArrayBuffer> }} Reply */
/** @typedef {{ done(reply: Reply): void, fail(error: SingeError): void, size?: number }} Asked */

import { ARRAYS, FORMAT, IS, SingeError, need } from "../program/singe-format.js";

const SPOKEN = `singe-remote/1 ${FORMAT}`;
const MOST_HEADER_BYTES = 1 << 18;
const MOST_FRAME_BYTES = (1 << 20) + MOST_HEADER_BYTES;
/** How many frames go out before the server has taken some of them. */
const UNDER_WAY = 48;
const PATIENCE_MS = 30_000;
const LENGTH_BYTES = 4;

/**
 * An error's class in Python ↦ its code here; others are "device".
 * @type {Record<string, types.Code>}
 */
const CODES = {
  InputError: "input",
  ShapeError: "input",
  DTypeError: "input",
  OutOfRange: "input",
  FormatError: "format",
  UnsupportedOp: "format",
  DeviceLost: "lost",
  RemoteDisconnected: "lost",
};

/** @param {unknown} text */
export const encoded = (text) => new TextEncoder().encode(String(text));

/**
 * @param {RemoteOptions} remote
 * @returns {Promise<Connection>}
 */
export async function connect({ url, token = "" }) {
  const connection = new Connection(url);
  const late = setTimeout(() => connection.lose("it says nothing"), PATIENCE_MS);
  try {
    await connection.greet(token);
    return connection;
  } finally {
    clearTimeout(late);
  }
}

export class Connection {
  sent = 0;
  received = 0;
  trips = 0;
  /** What the server lends: the device's name, and the target of its programs. */
  device = "";
  target = "";
  /**
   * Why nothing is answered any more.
   * @type {SingeError | undefined}
   */
  lost;
  /** @type {WebSocket} */
  #socket;
  #numbers = 0;
  /** @type {string[]} */
  #said = [];
  /** @type {Uint8Array<ArrayBuffer>[]} */
  #parts = [];
  /** @type {Uint8Array<ArrayBuffer>[]} */
  #frames = [];
  #under = 0;
  #taken = 0;
  /** @type {Map<number, Asked>} */
  #asked = new Map();
  /** @type {(value?: unknown) => void} */
  #opened = () => {};
  /**
   * The batch that comes.
   * @type {{ rows: [name: string, ...values: Unchecked][], bytes: Uint8Array<ArrayBuffer>, filled: number } | undefined}
   */
  #coming;

  /** @param {string} url */
  constructor(url) {
    this.url = url;
    try {
      this.#socket = new WebSocket(url);
    } catch (cause) {
      throw new SingeError("device", `remote: ${url} cannot be reached: ${/** @type {Error} */ (cause).message}`, cause);
    }
    this.#socket.binaryType = "arraybuffer";
    this.#socket.onopen = () => this.#opened();
    this.#socket.onclose = ({ code, reason }) => this.lose(reason || `the connection was closed with code ${code}`);
    this.#socket.onmessage = ({ data }) => this.#guarded(() => this.#take(data));
  }

  /** @param {string} token */
  async greet(token) {
    const ready = this.#question(0);
    const opened = new Promise((done) => (this.#opened = done));
    await Promise.race([opened, ready]);
    this.say("hello", [SPOKEN, token, ""]);
    this.flush();
    const { name, values } = await ready;
    need(name === "ready" && [1, 2].every((k) => IS.text(values[k])), `the server at ${this.url} is none of Singe's devices`);
    [, this.device, this.target] = values;
  }

  /** A number for an array, a program, a block of weights or a question. */
  next() {
    return ++this.#numbers;
  }

  /**
   * Have a message sent by the next `flush`. Its parts must not change before they are.
   * @param {string} name
   * @param {unknown[]} values
   * @param {Uint8Array<ArrayBuffer>[]} [parts]
   */
  say(name, values, parts = []) {
    this.#said.push(JSON.stringify([name, ...values]));
    this.#parts.push(...parts);
  }

  /**
   * A question: the number to say it with, and its answer. bytes: those of the answer, if that is known.
   * @param {number} [size]
   */
  ask(size) {
    const number = this.next();
    return { number, answer: this.#question(number, size) };
  }

  /**
   * @param {number} number
   * @param {number} [size]
   * @returns {Promise<Reply>}
   */
  #question(number, size) {
    if (this.lost) return Promise.reject(this.lost);
    return new Promise((done, fail) => this.#asked.set(number, { done, fail, size }));
  }

  /** Send what was said, in one batch. */
  flush() {
    const header = encoded(`[${this.#said.join()}]`);
    need(header.length <= MOST_HEADER_BYTES, `a batch of ${this.#said.length} messages is too much`);
    const start = new Uint8Array(LENGTH_BYTES + header.length);
    new DataView(start.buffer).setUint32(0, header.length, true);
    start.set(header, LENGTH_BYTES);
    const rest = new Uint8Array(
      Math.min(
        MOST_FRAME_BYTES,
        this.#parts.reduce((sum, part) => sum + part.length, start.length),
      ),
    );
    rest.set(start);
    let filled = start.length;
    for (let part of this.#parts) {
      const fits = Math.min(part.length, rest.length - filled);
      rest.set(part.subarray(0, fits), filled);
      filled += fits;
      if (fits && filled === rest.length) this.#frames.push(rest);
      for (part = part.subarray(fits); part.length; part = part.subarray(MOST_FRAME_BYTES)) this.#frames.push(part.subarray(0, MOST_FRAME_BYTES));
    }
    if (!this.#parts.some((part) => part.length) || filled < rest.length) this.#frames.push(rest);
    this.#said = [];
    this.#parts = [];
    this.trips++;
    this.#pass();
  }

  /** Send as many frames as may be under way. */
  #pass() {
    while (!this.lost && this.#frames.length && this.#under - this.#taken < UNDER_WAY) {
      const [frame] = this.#frames.splice(0, 1);
      this.#socket.send(frame);
      this.#under++;
      this.sent += frame.length;
    }
  }

  /** @param {() => void} take */
  #guarded(take) {
    try {
      take();
    } catch (error) {
      this.#end(new SingeError("lost", `remote: what the server at ${this.url} sent is wrong: ${/** @type {Error} */ (error).message}`, error));
    }
  }

  /** @param {unknown} frame */
  #take(frame) {
    need(frame instanceof ArrayBuffer, "text");
    this.received += frame.byteLength;
    let bytes = new Uint8Array(frame);
    if (!this.#coming) {
      need(bytes.length >= LENGTH_BYTES, `a frame of ${bytes.length} bytes`);
      const end = LENGTH_BYTES + new DataView(frame).getUint32(0, true);
      need(end <= Math.min(bytes.length, LENGTH_BYTES + MOST_HEADER_BYTES), `a header of ${end} bytes`);
      const rows = JSON.parse(new TextDecoder().decode(bytes.subarray(LENGTH_BYTES, end)));
      need(Array.isArray(rows) && rows.every((row) => Array.isArray(row) && IS.text(row[0])), "no list of messages");
      const size = rows.reduce((sum, row) => sum + this.#sizeOf(row), 0);
      this.#coming = { rows, bytes: new Uint8Array(size), filled: 0 };
      bytes = bytes.subarray(end);
    }
    const { rows, bytes: all, filled } = this.#coming;
    need(filled + bytes.length <= all.length, "more bytes than were announced");
    all.set(bytes, filled);
    this.#coming.filled += bytes.length;
    if (this.#coming.filled < all.length) return;
    this.#coming = undefined;
    let at = 0;
    for (const row of rows) {
      const size = this.#sizeOf(row);
      this.#hear(row, all.subarray(at, (at += size)));
    }
    this.#pass();
  }

  /**
   * The bytes that follow a message, which are those of a value that was asked for.
   * @param {Unchecked[]} row
   */
  #sizeOf([name, number, dtype, shape, size]) {
    if (name !== "value") return 0;
    const asked = this.#asked.get(number);
    need(IS.dtype(dtype) && Array.isArray(shape) && shape.every(IS.count), "a value without dtype or shape");
    const own = shape.reduce((product, d) => product * d, ARRAYS[/** @type {DType} */ (dtype)].BYTES_PER_ELEMENT);
    need(asked && size === own && (asked.size ?? own) === own, `${size} bytes for ${dtype}(${shape.join(", ")})`);
    return own;
  }

  /**
   * @param {Unchecked[]} row
   * @param {Uint8Array<ArrayBuffer>} bytes
   */
  #hear([name, ...values], bytes) {
    if (name === "ack") {
      this.#taken = values[1];
    } else if (name === "bye") {
      this.#end(this.device ? new SingeError("lost", `remote: the session at ${this.url} has ended: ${values[1]}`) : errorOf(values[0], this.url, values[1]));
    } else {
      const number = name === "ready" ? 0 : values[0];
      const asked = this.#asked.get(number);
      need(asked, `an answer ${name} to no question`);
      this.#asked.delete(number);
      if (name === "error") asked.fail(errorOf(values[1], this.url, values[2]));
      else asked.done({ name, values, bytes });
    }
  }

  /** @param {string} why */
  lose(why) {
    if (this.device) return this.#end(new SingeError("lost", `remote: the connection to ${this.url} was lost: ${why}`));
    const page = globalThis.location?.origin;
    const advice = `start one there: singe host --device wasm; if one runs, let it take this page: --origin ${page}`;
    this.#end(new SingeError("device", `remote: no server answers at ${this.url}: ${page ? advice : why}`));
  }

  /** Free what the server has for us. */
  leave() {
    if (this.lost) return;
    this.say("leave", []);
    this.flush();
    this.#end(new SingeError("disposed", `remote: the session at ${this.url} was ended`));
  }

  /** @param {SingeError} error */
  #end(error) {
    this.lost ??= error;
    const waiting = [...this.#asked.values()];
    this.#asked.clear();
    this.#frames = [];
    this.#socket.onclose = this.#socket.onmessage = null;
    this.#socket.close();
    for (const { fail } of waiting) fail(this.lost);
  }
}

/**
 * The error that the server had.
 * @param {unknown} kind
 * @param {string} url
 * @param {unknown} text
 */
const errorOf = (kind, url, text) => new SingeError(Object.hasOwn(CODES, String(kind)) ? CODES[String(kind)] : "device", `remote: ${url}: ${text}`);
