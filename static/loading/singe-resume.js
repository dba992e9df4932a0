/** What is left of a file whose transfer broke off: asked for only where one did. */

/** @import { Answer } from "./singe-files.js" */

/**
 * A response with the bytes of a file from `at` on; undefined if the server does not give parts.
 * @param {(name: string, options: RequestInit) => Promise<Answer>} ask
 * @param {string} name
 * @param {number} at
 */
export async function restOf(ask, name, at) {
  const answer = await ask(name, { headers: { Range: `bytes=${at}-` } }).catch(() => undefined);
  if (!(answer instanceof Response)) return undefined;
  if (answer.status === 206 && answer.headers.get("content-range")?.startsWith(`bytes ${at}-`)) return answer;
  answer.body?.cancel();
  return undefined;
}
