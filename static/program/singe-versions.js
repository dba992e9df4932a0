/**
 * Whether a bundle and a runner of different versions fit.
 *
 * Contract: `checkVersions(manifest, SingeError, VERSION)` throws unless the bundle is for this runner, and the runner for
 * this bundle. singe-format.js imports this file where the versions differ, and so gives it its error and its version.
 */

/** @import * as format from "./singe-format.js" */
/** @import { Manifest } from "../types/program.d.ts" */

/** The oldest Singe whose bundles this runner reads. */
const OLDEST = "0.1.0";

/** @param {string} version */
const rank = (version) => version.split(".").reduce((sum, part) => 1e5 * sum + Number(part), 0);

/**
 * @param {Pick<Manifest, "singe" | "runner">} manifest
 * @param {typeof format.SingeError} SingeError
 * @param {string} VERSION
 */
export function checkVersions({ singe, runner: { least, below } }, SingeError, VERSION) {
  const here = rank(VERSION);
  if (rank(singe) >= rank(OLDEST) && here >= rank(least) && here < rank(below)) return;
  const found = `the bundle, by Singe ${singe}, needs a runner from ${least} to below ${below}`;
  throw new SingeError("format", `${found}; this is ${VERSION}, for bundles from ${OLDEST} on: export again, or use its own singe.js`);
}
