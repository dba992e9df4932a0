/**
 * The memory that the page and the worker with Python share: an interrupt, and the answer to input().
 *
 * Contract: the first byte is Pyodide's interrupt buffer; a 2 in it raises KeyboardInterrupt. A buffer of one byte has no
 * room for answers. In a longer one an int32 and a text in UTF-8 follow: the worker writes WAITING and waits; the page
 * writes the text and then its length, or STOPPED.
 */

const INTERRUPT = 2;
const WAITING = -1;
const STOPPED = -2;
const [STATE, TEXT, ROOM] = [4, 8, 1 << 16];

const state = (shared) => new Int32Array(shared, STATE, 1);

function finish(shared, value) {
  Atomics.store(state(shared), 0, value);
  Atomics.notify(state(shared), 0);
}

export const interruptBuffer = (shared) => new Uint8Array(shared, 0, 1);
export const canAnswer = (shared) => (shared?.byteLength ?? 0) > TEXT;

// --- the page --------------------------------------------------------------------------------------------------------

/** The memory; undefined where the page is not isolated, or the browser shares none. */
export const createShared = () => (canShare() ? new SharedArrayBuffer(TEXT + ROOM) : undefined);
const canShare = () => globalThis.crossOriginIsolated && typeof SharedArrayBuffer === "function";

/** Interrupt what computes; and what waits for an answer, where there is room for answers. */
export function interrupt(shared) {
  interruptBuffer(shared)[0] = INTERRUPT;
  if (canAnswer(shared)) finish(shared, STOPPED);
}

/** Nothing is to be interrupted any more. */
export function clearInterrupt(shared) {
  interruptBuffer(shared)[0] = 0;
}

/** Answer input(); an error if the text is too long. */
export function giveAnswer(shared, text) {
  const bytes = new TextEncoder().encode(text);
  if (bytes.length > ROOM) throw new RangeError(`The answer has ${bytes.length} bytes; at most ${ROOM} are taken. Shorten it.`);
  new Uint8Array(shared, TEXT).set(bytes);
  finish(shared, bytes.length);
}

// --- the worker ------------------------------------------------------------------------------------------------------

/** Call `ask`, then wait for the answer; undefined if it was interrupted. */
export function awaitAnswer(shared, ask) {
  Atomics.store(state(shared), 0, WAITING);
  if (interruptBuffer(shared)[0] !== INTERRUPT) {
    ask();
    Atomics.wait(state(shared), 0, WAITING);
  }
  const length = Atomics.load(state(shared), 0);
  if (length >= 0) return new TextDecoder().decode(new Uint8Array(shared, TEXT, length).slice());
  clearInterrupt(shared); // the caller raises KeyboardInterrupt
  return undefined;
}
