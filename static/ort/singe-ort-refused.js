/**
 * What onnxruntime says of a run's inputs that do not fit, for code that reads it: some libraries learn a model's sizes so.
 *
 * Contract: `restated` puts onnxruntime's sentence before the message of an error that Singe's run gave.
 */

/** @import { Port } from "../types/public.d.ts" */

const FIX = "Please fix either the inputs/outputs or the model.";

/**
 * @param {unknown} error
 * @param {readonly Port[]} inputs the model's
 * @param {Record<string, { type: string, dims: readonly number[] }>} feeds
 * @returns {unknown} the same error
 */
export function restated(error, inputs, feeds) {
  const { code } = /** @type {{ code?: string }} */ (error);
  const [said] = code === "input" ? inputs.flatMap((input) => refusal(input, feeds[input.name])) : [];
  if (said && error instanceof Error) error.message = `failed to call OrtRun(). ERROR_CODE: 2, ERROR_MESSAGE: ${said}\n${error.message}`;
  return error;
}

/**
 * @param {Port} input
 * @param {{ type: string, dims: readonly number[] }} given
 * @returns {string[]}
 */
function refusal({ name, dtype, shape }, { type, dims }) {
  if (type !== dtype) return [`Unexpected input data type. Actual: (tensor(${named(type)})) , expected: (tensor(${named(dtype)}))`];
  if (dims.length !== shape.length) return [`Invalid rank for input: ${name} Got: ${dims.length} Expected: ${shape.length} ${FIX}`];
  const lines = shape.flatMap((d, k) => (typeof d === "number" && d !== dims[k] ? [`\n index: ${k} Got: ${dims[k]} Expected: ${d}`] : []));
  return lines.length ? [`Got invalid dimensions for input: ${name} for the following indices${lines.join("")}\n ${FIX}`] : [];
}

/** @param {string} dtype */
const named = (dtype) => ({ float32: "float", float64: "double" })[dtype] ?? dtype;
