/**
 * Lists of a program in which rows that repeat are written once.
 *
 * Contract: `unfolded(program, files)` has the lists in place of the folded ones, which static/README.md describes; what the rows are,
 * others check. The program may be in a file. One without folds stays as it is. singe-checks.js imports this where a manifest is folded.
 */

import { FILE, SingeError, check } from "./singe-format.js";

/** @import { ReadsJson, Unchecked } from "../types/program.d.ts" */

const LISTS = ["buffers", "words"];
const MOST_ROWS = 2 ** 22;

/**
 * @param {Unchecked} given
 * @param {ReadsJson} files
 */
export async function unfolded(given, files) {
  if (given?.file) check(given, FILE, "program");
  const program = given?.file ? await files.json(given) : given;
  const room = { rows: MOST_ROWS };
  for (const part of [program, ...(Array.isArray(program?.specialised) ? program.specialised : [])]) {
    for (const name of LISTS) if (Array.isArray(part?.[name])) part[name] = listOf(part[name], name, room);
  }
  return program;
}

/**
 * @param {Unchecked[]} rows
 * @param {string} name
 * @param {{ rows: number }} room how many rows may still be repeated
 */
function listOf(rows, name, room) {
  /** @type {Unchecked[]} */
  const out = [];
  for (const row of rows) {
    if (!Array.isArray(row)) {
      out.push(row);
      continue;
    }
    const [turns, steps] = row;
    const count = Array.isArray(steps) && Number.isSafeInteger(turns) && steps.length <= out.length ? turns * steps.length : 0;
    if (!(count > 0 && count <= room.rows && steps.every(Number.isSafeInteger))) {
      throw new SingeError("format", `${name}: rows repeat as ${JSON.stringify(row).slice(0, 80)}, after ${out.length}, with room for ${room.rows}`);
    }
    room.rows -= count;
    for (let k = 0; k < count; k++) {
      const before = out[out.length - steps.length];
      const step = steps[k % steps.length];
      out.push(typeof before === "number" ? before + step : { ...before, place: [before?.place?.[0], before?.place?.[1] + step] });
    }
  }
  return out;
}
