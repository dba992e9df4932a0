/**
 * Checks of arguments: unknown names, and AbortSignals. Apart from singe-format.js because of a bug of Parcel: it omits from a
 * worker a module that all its scripts share, if that module imports another on demand.
 */

import { SingeError } from "./singe-format.js";

/**
 * Refuse the first name of `given` that is none of `names`; `whose` says who takes these.
 * @param {object} given
 * @param {string[]} names
 * @param {string} kind
 * @param {string} whose
 */
export async function checkNames(given, names, kind, whose) {
  const other = Object.keys(given).find((name) => !names.includes(name));
  if (other === undefined) return;
  const { hint } = await import("./singe-names.js").catch(() => /** @type {{ hint?: undefined }} */ ({}));
  const advice = hint?.(other, names) ?? `${whose} ${names.join(", ") || "none"}`;
  throw new SingeError("input", `unknown ${kind} ${JSON.stringify(other)}: ${advice}`);
}

export const stateless = () => new SingeError("input", "this model has no states: no sessions, no steps of training");

export const keyless = () => new SingeError("input", "this model draws no random numbers of its own, so there is nothing to seed");

/**
 * A run with checked options, or none: what `start` promises, or the code "aborted" as soon as the signal says so.
 * @template T
 * @param {{ outputs?: unknown, signal?: AbortSignal } | undefined} options
 * @param {() => Promise<T>} start
 * @returns {Promise<T>}
 */
export function runWith(options, start) {
  const { outputs, signal, ...unknown } = options ?? {};
  if (Object.keys(unknown).length) return /** @type {Promise<never>} */ (checkNames(unknown, ["outputs", "signal"], "option", "a run takes"));
  if (!signal) return start();
  if (!signal.addEventListener) throw new SingeError("input", `signal: got ${typeof signal}, expected an AbortSignal`);
  return new Promise((done, fail) => {
    const stop = () => fail(new SingeError("aborted", "the run was aborted", signal.reason));
    if (signal.aborted) return stop();
    signal.addEventListener("abort", stop);
    start()
      .then(done, fail)
      .finally(() => signal.removeEventListener("abort", stop));
  });
}
