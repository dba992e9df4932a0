/**
 * Indices among a run's inputs.
 *
 * Contract: `checkRanges(program, tensors, sizes)` throws a SingeError of the code "input" if an input that is a typed array
 * has an index out of range, as the program's `ranges` say; those of a GPUBuffer stay unread.
 */

/** @import { AnyElements, IndexRange, Program, Sizes, Unchecked } from "../types/program.d.ts" */

import { IS, SingeError, check, evaluate, isDim } from "../program/singe-format.js";

/** @param {unknown} value */
const isWhole = (value) => Number.isSafeInteger(value);
/**
 * @param {Unchecked} range
 * @param {Program} program
 */
const isRange = ({ input, part, least, most, ignored, text }, { inputs, buffers }) =>
  IS.count(input) &&
  input < inputs.length &&
  [least, most].every((dim) => isDim(dim)) &&
  (ignored === null || isWhole(ignored)) &&
  IS.text(text) &&
  (part === null || (Array.isArray(part) && part.length === buffers[inputs[input]].shape.length && part.every(isAxis)));
/** @param {Unchecked} axis */
const isAxis = (axis) => isDim(axis?.start) && isWhole(axis.step) && axis.step !== 0 && isDim(axis.count);

/**
 * @param {Program} program
 * @param {{ data: unknown, shape: number[] }[]} tensors
 * @param {Sizes} sizes
 */
export function checkRanges(program, tensors, sizes) {
  const { ranges = [] } = program;
  check(ranges, [IS.object], "ranges");
  for (const range of ranges) {
    if (!isRange(range, program)) throw new SingeError("format", "a range of the program is no range");
    const { data, shape } = tensors[range.input];
    if (ArrayBuffer.isView(data)) checkRange(range, /** @type {AnyElements} */ (/** @type {unknown} */ (data)), shape, sizes, program.buffers[program.inputs[range.input]].name);
  }
}

/**
 * @param {IndexRange} range
 * @param {AnyElements} data
 * @param {number[]} shape
 * @param {Sizes} sizes
 * @param {string} name
 */
function checkRange({ part, least, most, ignored, text }, data, shape, sizes, name) {
  const [low, high] = [evaluate(least, sizes), evaluate(most, sizes)];
  const isWrong = (/** @type {number | bigint} */ x) => (x < low || x > high) && Number(x) !== ignored;
  const found = part ? firstOf(data, shape, part, sizes, isWrong) : data.find(isWrong);
  if (found === undefined) return;
  const beside = ignored === null ? "" : `, or ${ignored} for places that do not count`;
  throw new SingeError("input", `input ${JSON.stringify(name)}: ${text}: got ${found}, expected from ${low} to ${high}${beside}`);
}

/**
 * The first element of a part of an array for which a test holds.
 * @param {AnyElements} data
 * @param {number[]} shape
 * @param {NonNullable<IndexRange["part"]>} part
 * @param {Sizes} sizes
 * @param {(x: number | bigint) => boolean} test
 * @returns {number | bigint | undefined}
 */
function firstOf(data, shape, part, sizes, test, axis = 0, offset = 0) {
  if (axis === shape.length) return test(data[offset]) ? data[offset] : undefined;
  const start = evaluate(part[axis].start, sizes);
  for (let k = 0, count = evaluate(part[axis].count, sizes); k < count; k++) {
    const place = start + k * part[axis].step;
    if (place < 0 || place >= shape[axis]) return undefined;
    const found = firstOf(data, shape, part, sizes, test, axis + 1, offset * shape[axis] + place);
    if (found !== undefined) return found;
  }
  return undefined;
}
