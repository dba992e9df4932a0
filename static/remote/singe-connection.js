/**
 * A connection to a server of Singe's devices: messages go out in batches, answers to questions come back.
 *
 * Contract: `connect(remote)` gives a Connection, or fails with a SingeError. What is said is sent by the next `flush`. When the link
 * is lost, it is made again at once, as long as the server keeps the session: batches that it has not done are sent again, answers
 * that were lost are asked for again, and what waits goes on. If it cannot be made, what waits fails with the code "lost", and the next
 * `flush` tries again; when the time for that is over, or the session has ended, `check` throws why. What comes from the server is
 * checked against what was asked for before it is used. core/singe/runtime/remote/protocol.py says what the messages are.
 */

/** @import { DType, RemoteOptions } from "../types/public.d.ts" */
/** @import * as types from "../types/public.d.ts" */
/** @import { Unchecked } from "../types/program.d.ts" */

/** @typedef {Uint8Array<ArrayBuffer>} Bytes */
/** @typedef {{ name: string, values: Unchecked[], bytes: Bytes }} Reply */
/** @typedef {[name: string, ...values: unknown[]]} Message */
/** @typedef {{ dtype: DType, shape?: number[] }} Expected the dtype of a value, and its shape if that is known */
/**
 * A question. batch: the number of that which asks. again: how its answer is asked for if it was lost, where that can be.
 * expected: of a value. isOver: who waited for it was told that it will not come.
 * @typedef {{ batch: number, again?: Message, expected?: Expected, isOver?: boolean, done(reply: Reply): void, fail(error: SingeError): void }} Asked
 */

import { ARRAYS, FORMAT, IS, SingeError, countOf, need } from "../program/singe-format.js";

const SPOKEN = `singe-remote/1 ${FORMAT}`;
const MOST_HEADER_BYTES = 1 << 18;
const MOST_FRAME_BYTES = (1 << 20) + MOST_HEADER_BYTES;
/** How many frames go out before the server has taken some of them. */
const UNDER_WAY = 48;
const PATIENCE_MS = 30_000;
/** How long what may be freed waits for something else to be said. */
const FREE_MS = 2;
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
  const connection = new Connection(url, token);
  await connection.begin();
  return connection;
}

/**
 * The frames of a batch: its header, and the bytes that follow.
 * @param {string[]} messages
 * @param {Bytes[]} parts
 */
function framesOf(messages, parts) {
  const header = encoded(`[${messages.join()}]`);
  need(header.length <= MOST_HEADER_BYTES, `a batch of ${messages.length} messages is too much`);
  const size = parts.reduce((sum, part) => sum + part.length, LENGTH_BYTES + header.length);
  const first = new Uint8Array(Math.min(MOST_FRAME_BYTES, size));
  new DataView(first.buffer).setUint32(0, header.length, true);
  first.set(header, LENGTH_BYTES);
  const frames = [first];
  let filled = LENGTH_BYTES + header.length;
  for (const part of parts) {
    const fits = Math.min(part.length, first.length - filled);
    first.set(part.subarray(0, fits), filled);
    filled += fits;
    for (let at = fits; at < part.length; at += MOST_FRAME_BYTES) frames.push(part.subarray(at, at + MOST_FRAME_BYTES));
  }
  return frames;
}

export class Connection {
  sent = 0;
  received = 0;
  trips = 0;
  /** What the server lends: the device's name, and the target of its programs. */
  device = "";
  target = "";
  /**
   * Why the session is over.
   * @type {SingeError | undefined}
   */
  lost;
  #token;
  /** The name of the session: who has it may come back. */
  #session = "";
  #graceMs = 0;
  /**
   * When the link was lost, while there is none.
   * @type {number | undefined}
   */
  #lostAt;
  /** @type {WebSocket | undefined} */
  #socket;
  /**
   * While the server has not answered the greeting: who waits for that.
   * @type {{ done(values: Unchecked[]): void, fail(error: unknown): void } | undefined}
   */
  #greeting;
  #numbers = 0;
  /** Of batches: how many were sent, or tried to; and done. */
  #batches = 0;
  #done = 0;
  /**
   * Batches that may not be done yet.
   * @type {{ number: number, frames: Bytes[] }[]}
   */
  #log = [];
  /** @type {string[]} */
  #said = [];
  /** @type {Bytes[]} */
  #parts = [];
  /** @type {number[]} */
  #freed = [];
  /** @type {Bytes[]} */
  #frames = [];
  /** Of frames of this link: how many were sent, and taken by the server. */
  #under = 0;
  #taken = 0;
  /** @type {(() => void)[]} */
  #passing = [];
  /** @type {Map<number, Asked>} */
  #asked = new Map();
  /**
   * The batch that comes.
   * @type {{ rows: [name: string, ...values: Unchecked][], bytes: Bytes, filled: number } | undefined}
   */
  #coming;

  /**
   * @param {string} url
   * @param {string} token
   */
  constructor(url, token) {
    this.url = url;
    this.#token = token;
  }

  /** Begin the session. */
  async begin() {
    try {
      await this.#greet();
    } catch (error) {
      this.lost = error instanceof SingeError ? error : this.#unanswered(/** @type {Error} */ (error).message);
      throw this.lost;
    }
  }

  /** Throws why the session is over, if it is. */
  check() {
    if (this.#lostAt !== undefined && !this.#greeting && performance.now() - this.#lostAt > this.#graceMs) {
      this.#end(new SingeError("lost", `remote: the connection to ${this.url} was lost, and so is the session there`));
    }
    if (this.lost) throw this.lost;
  }

  /** A number for an array, a program, a block of weights or a question. */
  next() {
    return ++this.#numbers;
  }

  /**
   * Have a message sent by the next `flush`. Its parts must not change any more: they may have to be sent again.
   * @param {string} name
   * @param {unknown[]} values
   * @param {Bytes[]} [parts]
   */
  say(name, values, parts = []) {
    this.#said.push(JSON.stringify([name, ...values]));
    this.#parts.push(...parts);
  }

  /**
   * A question: the number to say it with, and its answer.
   * @param {(number: number) => Message} [again] how the answer is asked for if it was lost
   * @param {Expected} [expected] of a value
   */
  ask(again, expected) {
    const number = this.next();
    /** @type {Promise<Reply>} */
    const answer = new Promise((done, fail) => {
      if (this.lost) fail(this.lost);
      else this.#asked.set(number, { batch: this.#batches + 1, again: again?.(number), expected, done, fail });
    });
    return { number, answer };
  }

  /**
   * Have arrays freed, with what is said next or soon.
   * @param {number[]} ids
   */
  free(ids) {
    const soon = () => {
      if (this.#freed.length && this.#isThere()) this.#send();
    };
    if (!this.#freed.length) setTimeout(soon, FREE_MS);
    this.#freed.push(...ids);
  }

  /** Send what was said, in one batch. */
  flush() {
    this.trips++;
    this.#send();
  }

  /** Waits until all that was flushed is on its way. */
  async passed() {
    if (this.#frames.length) await new Promise((done) => this.#passing.push(() => done(undefined)));
  }

  #isThere() {
    return this.#socket && !this.#greeting;
  }

  #send() {
    if (this.#freed.length) this.say("free", [this.#freed.splice(0)]);
    const frames = framesOf(this.#said, this.#parts);
    this.#said = [];
    this.#parts = [];
    this.#log.push({ number: ++this.#batches, frames });
    if (this.#isThere()) {
      this.#frames.push(...frames);
      this.#pass();
    } else if (!this.#greeting && !this.lost) {
      this.#comeBack("the connection was lost before");
    }
  }

  /** Send as many frames as may be under way. */
  #pass() {
    while (this.#socket && this.#frames.length && this.#under - this.#taken < UNDER_WAY) {
      const [frame] = this.#frames.splice(0, 1);
      this.#put(frame);
      this.#under++;
    }
    if (!this.#frames.length) for (const go of this.#passing.splice(0)) go();
  }

  /** @param {Bytes} frame */
  #put(frame) {
    this.#socket?.send(frame);
    this.sent += frame.length;
  }

  // --- the link

  /** Connect, and begin the session or come back to it. A SingeError: the server refuses; another error: it cannot be reached. */
  async #greet() {
    /** @type {Promise<Unchecked[]>} */
    const answered = new Promise((done, fail) => (this.#greeting = { done, fail }));
    const late = setTimeout(() => this.#close("it says nothing"), PATIENCE_MS);
    try {
      const socket = opened(this.url);
      this.#socket = socket;
      socket.binaryType = "arraybuffer";
      socket.onopen = () => this.#put(framesOf([JSON.stringify(["hello", SPOKEN, this.#token, this.#session])], [])[0]);
      socket.onclose = ({ code, reason }) => this.#close(reason || `it was closed with code ${code}`);
      socket.onmessage = ({ data }) => this.#guarded(() => this.#take(data));
      const [session, device, target, , grace, done] = await answered;
      Object.assign(this, { device, target });
      [this.#session, this.#graceMs] = [session, 1000 * grace];
      this.#forget(done);
    } catch (error) {
      this.#drop();
      throw error;
    } finally {
      clearTimeout(late);
      this.#greeting = undefined;
    }
  }

  /** Leave the link, and what was to be sent by it. */
  #drop() {
    const socket = this.#socket;
    if (socket) socket.onopen = socket.onclose = socket.onmessage = null;
    socket?.close();
    this.#socket = this.#coming = undefined;
    this.#frames = [];
    this.#under = this.#taken = 0;
  }

  /**
   * The link is gone.
   * @param {string} why
   */
  #close(why) {
    this.#drop();
    if (this.#greeting) this.#greeting.fail(new Error(why));
    else this.#comeBack(why);
    this.#pass();
  }

  /**
   * Connect to the session again, and have the server do what it has not done.
   * @param {string} why
   */
  async #comeBack(why) {
    this.#lostAt ??= performance.now();
    try {
      await this.#greet();
      this.#lostAt = undefined;
      this.#frames.push(...this.#log.flatMap(({ frames }) => frames));
      this.#askAgain();
      this.#pass();
    } catch (error) {
      if (error instanceof SingeError) return this.#end(new SingeError("lost", `${error.message}; what was on the device is lost`, error));
      const told = `remote: the connection to ${this.url} was lost: ${why}, and then: ${/** @type {Error} */ (error).message}`;
      const again = `the next call connects again, for ${this.#graceMs / 1000} s, and what was called before is done then, once`;
      this.#giveUp(new SingeError("lost", `${told}; ${again}`));
    }
  }

  /** Ask again for answers that were lost: those of batches that are done. */
  #askAgain() {
    const asked = [...this.#asked].filter(([, { batch }]) => batch <= this.#done);
    for (const [number, one] of asked) {
      if (one.again && !one.isOver) {
        this.say(one.again[0], one.again.slice(1));
        one.batch = this.#batches + 1;
      } else {
        this.#asked.delete(number);
        one.fail(new SingeError("lost", `remote: an answer of ${this.url} was lost with the connection; what was called is done`));
      }
    }
    if (this.#said.length) this.#send();
  }

  /**
   * So many batches are done.
   * @param {number} done
   */
  #forget(done) {
    this.#done = done;
    while (this.#log.length && this.#log[0].number <= done) this.#log.shift();
  }

  // --- what comes

  /** @param {() => void} take */
  #guarded(take) {
    try {
      take();
    } catch (error) {
      const wrong = `remote: what the server at ${this.url} sent is wrong: ${/** @type {Error} */ (error).message}`;
      this.#end(new SingeError(this.device ? "lost" : "device", wrong, error));
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
    const expected = this.#asked.get(number)?.expected;
    need(Array.isArray(shape) && shape.every(IS.count), "a value without a shape");
    need(expected?.dtype === dtype, `a value of type ${dtype}, which nobody asked for`);
    const own = countOf(shape) * ARRAYS[/** @type {DType} */ (dtype)].BYTES_PER_ELEMENT;
    need(size === own && (expected?.shape ?? shape).join() === shape.join(), `${size} bytes for ${dtype}(${shape.join(", ")})`);
    return own;
  }

  /**
   * @param {Unchecked[]} row
   * @param {Bytes} bytes
   */
  #hear([name, ...values], bytes) {
    if (this.#greeting) {
      if (name === "bye") return this.#greeting.fail(errorOf(values[0], this.url, values[1]));
      const isReady = name === "ready" && values.slice(0, 3).every(IS.text) && Number.isFinite(values[4]) && IS.count(values[5]);
      need(isReady, "it is none of Singe's devices");
      this.#greeting.done(values);
    } else if (name === "ack") {
      this.#taken = values[1];
      this.#forget(values[0]);
    } else if (name === "bye") {
      this.#end(new SingeError("lost", `remote: the session at ${this.url} has ended: ${values[1]}`));
    } else {
      const asked = this.#asked.get(values[0]);
      need(asked, `an answer ${name} to no question`);
      this.#asked.delete(values[0]);
      if (name === "error") asked.fail(errorOf(values[1], this.url, values[2]));
      else asked.done({ name, values, bytes });
    }
  }

  // --- the end

  /**
   * The error where no server has answered yet.
   * @param {string} why
   */
  #unanswered(why) {
    const page = globalThis.location?.origin;
    const advice = `start one there: singe host --device wasm; if one runs, let it take this page: --origin ${page}`;
    return new SingeError("device", `remote: no server answers at ${this.url}: ${page ? advice : why}`);
  }

  /** Free what the server has for us. */
  leave() {
    if (this.lost) return;
    this.say("leave", []);
    if (this.#isThere()) this.#send();
    this.#end(new SingeError("disposed", `remote: the session at ${this.url} was ended`));
  }

  /**
   * Fail what waits. Answers may come when the session is there again.
   * @param {SingeError} error
   */
  #giveUp(error) {
    for (const asked of this.#asked.values()) {
      asked.isOver = true;
      asked.fail(error);
    }
  }

  /** @param {SingeError} error */
  #end(error) {
    this.lost ??= error;
    this.#giveUp(this.lost);
    this.#greeting?.fail(this.lost);
    this.#asked.clear();
    this.#log = [];
    this.#drop();
    this.#pass();
  }
}

/** @param {string} url */
function opened(url) {
  try {
    return new WebSocket(url);
  } catch (cause) {
    throw new SingeError("device", `remote: ${url} cannot be reached: ${/** @type {Error} */ (cause).message}`, cause);
  }
}

/**
 * The error that the server had.
 * @param {unknown} kind
 * @param {string} url
 * @param {unknown} text
 */
const errorOf = (kind, url, text) => new SingeError(Object.hasOwn(CODES, String(kind)) ? CODES[String(kind)] : "device", `remote: ${url}: ${text}`);
