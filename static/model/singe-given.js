/**
 * Inputs that are no typed arrays: lists of numbers, and pictures where the bundle says how they become the input.
 *
 * Contract: `elementsOf(inputs, program, image)` returns the inputs with typed arrays in place of these; the rest stays as
 * it is, and is checked later. What does not fit is a SingeError with the code "input".
 */

import { ARRAYS, SingeError, textOf } from "../program/singe-format.js";

const MOST_AXES = 64;

export async function elementsOf(inputs, { inputs: numbers, buffers }, image) {
  const taken = numbers.map((i) => buffers[i]);
  checkNamed(inputs, taken.map(({ name }) => name));
  const found = { ...inputs };
  for (const { name, dtype } of taken) {
    const value = found[name];
    const refuse = (text) => new SingeError("input", `input ${JSON.stringify(name)}: ${text}`);
    if (Array.isArray(value)) found[name] = fromList(value, undefined, dtype, refuse);
    else if (Array.isArray(value?.data)) found[name] = { ...value, ...fromList(value.data, value.shape, dtype, refuse) };
    else if (isPicture(value)) found[name] = await fromPicture(value, image, name, dtype, refuse);
  }
  return found;
}

/** Refuse what is not inputs by name, but one by itself or nothing. */
function checkNamed(inputs, names) {
  const kind = inputs?.constructor?.name;
  const isBare = Object(inputs) !== inputs || ArrayBuffer.isView(inputs) || Array.isArray(inputs) || isPicture(inputs) || kind === "GPUBuffer";
  if (!isBare && (names.includes("data") || inputs.data === undefined)) return;
  const named = names.map((name) => `${/^[a-z_]\w*$/i.test(name) ? name : JSON.stringify(name)}: data`).join(", ");
  const got = inputs === null ? "null" : (kind ?? typeof inputs);
  throw new SingeError("input", `inputs: got ${got}, this model takes them by name: pass { ${named} }`);
}

const isPicture = (value) => /^(Blob|File|Image|Video|HTML|Offscreen)/.test(value?.constructor?.name);

async function fromPicture(picture, image, name, dtype, refuse) {
  if (image?.input !== name) {
    throw refuse("the bundle does not say how a picture becomes it: export with --size (and --mean, --std), or give its elements");
  }
  const [, sign, bits] = /^(u?)int(8|16|32)$/.exec(dtype) ?? [];
  if (!bits && dtype !== "float32") throw refuse(`pictures become float32 or integers of at most 32 bits, and it takes ${dtype}: give its elements`);
  const { pictureToTensor } = await import("../singe-picture.js");
  const [[height, width], c] = [image.size, image.channels];
  const shape = image.layout === "nchw" ? [1, c, height, width] : [1, height, width, c];
  const data = await pictureToTensor(picture, image);
  if (!bits) return { data, shape };
  const least = sign ? 0 : -(2 ** (bits - 1));
  const most = least + 2 ** bits - 1;
  return { data: ARRAYS[dtype].from(data, (x) => Math.min(most, Math.max(least, Math.round(x)))), shape };
}

/** A nested list has the shape of its nesting; a flat one is like a typed array. */
function fromList(list, shape, dtype, refuse) {
  const nesting = [];
  for (let part = list; Array.isArray(part) && nesting.length <= MOST_AXES; part = part[0]) nesting.push(part.length);
  if (nesting.length > MOST_AXES) throw refuse("got a list that holds itself");
  const even = (part, [length, ...rest]) =>
    length === undefined ? !Array.isArray(part) : part.length === length && part.every((inner) => even(inner, rest));
  if (!even(list, nesting)) throw refuse("got lists of several lengths");
  const flat = list.flat(Infinity);
  const data = new ARRAYS[dtype](flat.length);
  flat.forEach((x, k) => (data[k] = element(x, dtype, data, refuse)));
  return nesting.length > 1 ? { data, shape: shape ?? nesting } : { data, shape };
}

function element(x, dtype, data, refuse) {
  const wrong = () => refuse(`got ${typeof x === "bigint" ? `${x}n` : textOf(x)} in a list, expected numbers for ${dtype}`);
  if (dtype === "bool") {
    if ([0, 1, false, true].includes(x)) return Number(x);
    throw wrong();
  }
  if (["float32", "float64"].includes(dtype)) {
    if (typeof x === "number") return x;
    throw wrong();
  }
  const big = data instanceof BigInt64Array || data instanceof BigUint64Array;
  if (!/^u?int\d+$/.test(dtype)) throw refuse(`${dtype} takes its bits, as ${ARRAYS[dtype].name}, no list`);
  if (typeof x !== "bigint" && !Number.isSafeInteger(x)) throw wrong();
  const bits = Number(dtype.match(/\d+/)[0]);
  const whole = BigInt(x);
  const kept = dtype.startsWith("u") ? BigInt.asUintN(bits, whole) : BigInt.asIntN(bits, whole);
  if (kept !== whole) throw wrong();
  return big ? whole : Number(whole);
}
