/**
 * The device "remote": a bundle's program runs on a device that a server lends.
 *
 * Contract: `loadElsewhere(fits, url, options)` is what `load` of singe.js does where its arguments are not those of a device of this
 * page: it loads for `device: "remote"`, or says what is wrong. The program is sent once, and its weights if the server does not have
 * them; a run sends its inputs and reads its outputs in one round trip, and does not wait for those before it. Which of the bundle's
 * programs it is, the server's device decides. A session that is over fails the run that waits; the next one begins another, as with a
 * GPU that was lost.
 */

/** @import { LoadOptions, Model as PublicModel, TypedArray } from "../types/public.d.ts" */
/** @import { Answer, Device as AnyDevice, DeviceName, Manifest, ModelState, Sizes, Target, Unchecked, Wanted } from "../types/program.d.ts" */
/** @import { Connection } from "./singe-connection.js" */

import { Files, folderOf } from "../loading/singe-files.js";
import { Model, Opened } from "../model/singe-model.js";
import { runWith } from "../program/singe-arguments.js";
import { checkManifest, checkTarget } from "../program/singe-checks.js";
import { unfoldedTexts } from "../program/singe-folded-texts.js";
import { ARRAYS, SingeError, namesIn, shapeOf, spanOf, sumOf } from "../program/singe-format.js";
import { connect, encoded } from "./singe-connection.js";

/** The target of a server's device ↦ what has such programs in a bundle. */
const HOLDERS = new Map(
  /** @type {[string, "wasm" | "webgpu"][]} */ ([
    ["wasm", "wasm"],
    ["wgsl", "webgpu"],
  ]),
);

/**
 * fits: whether each argument fits a device of this page.
 * @param {unknown[]} fits
 * @param {string | URL} url
 * @param {LoadOptions} [options]
 * @returns {Promise<PublicModel>}
 */
export async function loadElsewhere(fits, url, options) {
  const { worker: _, device, remote, threads = 0, onProgress, onDevice, signal, gpuDevice, cache = true, ...unknown } = options ?? {};
  const folder = /** @type {URL} */ (folderOf(url));
  const called = [onProgress, onDevice].map((call) => call?.call ?? !call);
  const own = [folder, true, Number.isInteger(threads), ...called, signal?.addEventListener ?? !signal, !gpuDevice, !Object.keys(unknown).length];
  const all = device === "remote" ? own : fits;
  if (!all.every(Boolean)) return (await import("../model/singe-advice.js")).refuse(all, url, { ...options });
  if (typeof remote?.url !== "string" || !["string", "undefined"].includes(typeof remote.token)) {
    throw new SingeError("input", 'remote: expected { url, token }, such as { url: "ws://127.0.0.1:3000", token: "…" }');
  }
  const files = new Files(folder, cache, signal, onProgress);
  /** @type {Connection} */
  let connection;
  /** @type {Promise<Connection> | undefined} */
  let first = connect(remote);
  first.catch(() => {});
  /** @type {Model | undefined} */
  let model;
  try {
    const manifest = await checkManifest(await files.manifest("model.json"));
    const open = async (/** @type {DeviceName} */ _, from = new Files(folder, cache)) => {
      const before = first ? undefined : connection.lost;
      connection = await (first ?? connect(remote)).catch((error) => {
        throw before ? new SingeError("lost", before.message, error) : error;
      });
      first = undefined;
      try {
        const target = await targetFor(connection, manifest, from);
        return new Opened(/** @type {DeviceName} */ ("remote"), target.program, await send(connection, target, from));
      } catch (error) {
        connection.leave();
        throw error;
      }
    };
    const tell = (/** @type {"ready"} */ phase) => queueMicrotask(() => files.tell({ phase }));
    const state = { open, auto: false, threads: 1, store: undefined, onDevice, gpuDevice, tell };
    model = new RemoteModel(manifest, /** @type {ModelState} */ (/** @type {unknown} */ (state)));
    await model.start(/** @type {DeviceName} */ ("remote"), files);
    files.tell({ phase: "ready" });
    files.stop(true);
    const traffic = () => ({ url: remote.url, device: connection.device, sent: connection.sent, received: connection.received, trips: connection.trips });
    Object.defineProperty(model, "remote", { get: traffic, enumerable: true });
    model.profile = async () => {
      throw new SingeError("device", "remote: a run is measured where it happens: singe bench --profile, on the server's machine");
    };
    return /** @type {PublicModel} */ (/** @type {unknown} */ (model));
  } catch (error) {
    files.stop();
    model?.dispose().catch(() => {});
    first?.then((opened) => opened.leave()).catch(() => {});
    await import("../model/singe-advice.js").then(({ advise }) => advise(/** @type {SingeError} */ (error), folder)).catch(() => {});
    throw error;
  }
}

/**
 * The bundle's program for the server's device.
 * @param {Connection} connection
 * @param {Manifest} manifest
 * @param {Files} files
 */
function targetFor({ url, device, target }, manifest, files) {
  const holder = HOLDERS.get(target);
  if (holder && manifest.targets[holder]) return checkTarget(manifest, holder, /** @type {"wasm" | "wgsl"} */ (target), files);
  const has = Object.keys(manifest.targets);
  const advice = holder ? `export it again: singe export MODEL --targets ${[...has, holder].join()}` : `lend another there: singe host --device ${has[0]}`;
  throw new SingeError("device", `remote: the device ${device} at ${url} runs programs for ${target}, and the bundle has those of ${has.join(", ")}; ${advice}`);
}

/**
 * Send the program and its weights, and wait until the server has prepared it.
 * @param {Connection} connection
 * @param {Target} target
 * @param {Files} files
 * @returns {Promise<AnyDevice>}
 */
async function send(connection, { program, modules, weights }, files) {
  const isText = program.target === "wgsl";
  const [id, held] = [connection.next(), connection.ask()];
  connection.say("weights", [held.number, id, weights.map(({ sha256 }) => sha256).join()]);
  connection.flush();
  const isThere = weights.length > 0 && (await held.answer).values[1]?.bytes === sumOf(weights);
  const sent = isThere ? [] : weights;
  files.expect([...(isText ? [modules] : Object.values(modules)), ...sent]);
  const block = new Uint8Array(sumOf(sent));
  /** @type {[name: string, code: Uint8Array<ArrayBuffer>][]} */
  const codes = isText
    ? Object.entries(unfoldedTexts(await files.json(modules))).map(([name, text]) => [name, encoded(text)])
    : await Promise.all(Object.entries(modules).map(async ([name, file]) => /** @type {[string, Uint8Array<ArrayBuffer>]} */ ([name, await files.bytes(file)])));
  await files.each(sent, (file, at) => files.into(file, block.subarray(at, at + spanOf(file))));
  files.tell({ phase: "compile" });
  const head = encoded(JSON.stringify(program));
  const number = connection.next();
  const listed = codes.map(([name, code]) => [name, isText, code.length]);
  const parts = [head, ...codes.map(([, code]) => code)];
  connection.say("program", [number, head.length, listed, [[0, id, sumOf(weights), !isThere]]], isThere ? parts : [...parts, block]);
  const prepared = connection.ask((again) => ["sync", again]);
  connection.say("sync", [prepared.number]);
  connection.flush();
  await prepared.answer;
  return new Device(connection, program, number);
}

/** Runs are sent in the order of the calls, and do not wait for the answers of earlier ones. */
class RemoteModel extends Model {
  /** @type {Model["run"]} */
  async run(inputs, options, session) {
    const answered = async () => {
      const found = await super.run(inputs, options, session);
      return Object.fromEntries(await Promise.all(Object.entries(found).map(async ([name, answer]) => [name, await answer])));
    };
    return runWith(options, answered);
  }
}

/**
 * A program on a server. A run ends when it is sent: its outputs are promises, for which RemoteModel waits.
 * @implements {AnyDevice}
 */
class Device {
  memory = { gpu: 0, wasm: 0, js: 0 };
  /** The first run ends when it is done, as `onProgress` tells. */
  #hasRun = false;

  /**
   * @param {Connection} connection
   * @param {Target["program"]} program
   * @param {number} number
   */
  constructor(connection, program, number) {
    this.connection = connection;
    this.program = program;
    this.number = number;
  }

  /**
   * @param {Unchecked[]} inputs
   * @param {Sizes} sizes
   * @param {Wanted} wanted
   * @param {Unchecked} [states]
   * @returns {Promise<Answer[]>}
   */
  async run(inputs, sizes, wanted, states = []) {
    const { connection, program } = this;
    connection.check();
    const caller = wanted === "data" ? undefined : await import("../program/singe-outputs.js");
    caller?.arraysFor([], /** @type {string} */ (wanted));
    const given = inputs.map((data, k) => {
      const buffer = program.buffers[program.inputs[k]];
      return this.#upload(connection.next(), data, shapeOf(buffer, sizes), buffer.dtype);
    });
    const places = program.outputs.map((i) => program.buffers[i].place);
    const made = places.map(([kind]) => (kind === "input" ? null : connection.next()));
    const began = connection.ask((number) => ["sync", number]); // it has the error of a run that failed
    connection.say("run", [this.number, given, states, made, began.number]);
    const values = program.outputs.map((i, k) => this.#read(made[k] ?? given[places[k][1]], i, sizes));
    connection.flush();
    const answers = this.#answered(began.answer, values, [...given, ...made.filter((id) => id !== null)], caller, wanted);
    const each = values.map((_, k) => answers.then((all) => all[k]));
    for (const answer of each) answer.catch(() => {}); // who aborted the run does not wait for it
    await (this.#hasRun && each.length ? connection.passed() : answers);
    this.#hasRun = true;
    return /** @type {Unchecked[]} */ (each);
  }

  /**
   * The outputs of a run, once they are here; then its arrays may be freed.
   * @param {Promise<unknown>} began
   * @param {Promise<Answer>[]} values
   * @param {number[]} ids
   * @param {typeof import("../program/singe-outputs.js") | undefined} caller
   * @param {Wanted} wanted
   */
  async #answered(began, values, ids, caller, wanted) {
    try {
      const [, ...answers] = await Promise.all([began, ...values]);
      const { buffers, outputs } = this.program;
      caller?.filled(Object.fromEntries(answers.map((answer, k) => [buffers[outputs[k]].name, answer])), /** @type {string} */ (wanted));
      return answers;
    } finally {
      this.connection.free(ids);
    }
  }

  /**
   * Send a copy of an array, which the caller may change afterwards.
   * @param {number} id
   * @param {TypedArray} data
   * @param {number[]} shape
   * @param {string} dtype
   */
  #upload(id, data, shape, dtype) {
    const bytes = new Uint8Array(/** @type {ArrayBuffer} */ (data.buffer), data.byteOffset, data.byteLength).slice();
    this.connection.say("upload", [id, dtype, shape, bytes.length], [bytes]);
    return id;
  }

  /**
   * The elements of an array of the server's, for the program's buffer `i`.
   * @param {number} id
   * @param {number} i
   * @param {Sizes} [sizes]
   */
  #read(id, i, sizes = {}) {
    const buffer = this.program.buffers[i];
    const { dtype } = buffer;
    const isKnown = buffer.shape.flatMap(namesIn).every((name) => name in sizes); // others are found in mid-run
    const expected = { dtype, shape: isKnown ? shapeOf(buffer, sizes) : undefined };
    const { number, answer } = this.connection.ask((again) => ["read", again, id], expected);
    this.connection.say("read", [number, id]);
    return answer.then(({ name, values, bytes }) => {
      if (name !== "value") throw new SingeError("lost", `remote: a read was answered with ${name}`);
      return { data: new ARRAYS[dtype](bytes.slice().buffer), shape: values[2], dtype };
    });
  }

  dispose() {
    this.connection.leave();
  }

  // --- states: a session's handle is the list of their numbers

  newStates() {
    const ids = this.program.states.map(() => this.connection.next());
    this.connection.say("states", [this.number, ids]);
    return ids;
  }

  /** @param {Unchecked} ids */
  resetStates(ids) {
    this.freeStates(ids);
    this.connection.say("states", [this.number, ids]);
  }

  /** @param {Unchecked} ids */
  async copyStates(ids) {
    const arrays = this.#readStates(ids);
    const copy = ids.map(() => this.connection.next());
    (await arrays).forEach(({ data }, k) => this.#write(copy[k], k, data));
    return copy;
  }

  /**
   * @param {Unchecked} ids
   * @param {number} k
   */
  async readState(ids, k) {
    return (await this.#readStates([ids[k]], k))[0].data;
  }

  /**
   * @param {Unchecked} ids
   * @param {number} k
   * @param {TypedArray} data
   */
  writeState(ids, k, data) {
    this.freeStates([ids[k]]);
    this.#write(ids[k], k, data);
  }

  /** @param {Unchecked} ids */
  freeStates(ids) {
    this.connection.say("free", [ids]);
  }

  /**
   * @param {number[]} ids
   * @param {number} [from]
   */
  #readStates(ids, from = 0) {
    const arrays = ids.map((id, k) => this.#read(id, this.program.states[from + k].buffer));
    this.connection.flush();
    return Promise.all(arrays);
  }

  /**
   * @param {number} id
   * @param {number} k
   * @param {TypedArray} data
   */
  #write(id, k, data) {
    const { shape, dtype } = this.program.buffers[this.program.states[k].buffer];
    this.#upload(id, data, /** @type {number[]} */ (shape), dtype);
  }
}
