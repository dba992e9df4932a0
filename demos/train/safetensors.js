/**
 * Weights as a file: safetensors, as Singe and PyTorch read and write them.
 *
 * Contract: a tensor is { name, dtype, shape, data } with a typed array; `metadata` holds strings by name. `readTensors`
 * throws an Error that says what is wrong with the file.
 */

const KINDS = { F32: ["float32", Float32Array], I32: ["int32", Int32Array], I64: ["int64", BigInt64Array] };

const isRecord = (value) => typeof value === "object" && value !== null && !Array.isArray(value);
const isCount = (value) => Number.isSafeInteger(value) && value >= 0;

export function writeTensors(tensors, metadata) {
  const head = { __metadata__: metadata };
  let at = 0;
  for (const { name, dtype, shape, data } of tensors) {
    const [kind] = Object.entries(KINDS).find(([, [known]]) => known === dtype);
    head[name] = { dtype: kind, shape, data_offsets: [at, (at += data.byteLength)] };
  }
  const text = new TextEncoder().encode(JSON.stringify(head));
  const length = Math.ceil(text.length / 8) * 8; // numbers begin at a multiple of eight
  const file = new Uint8Array(8 + length + at).fill(32, 8, 8 + length);
  new DataView(file.buffer).setBigUint64(0, BigInt(length), true);
  file.set(text, 8);
  for (const { name, data } of tensors) {
    file.set(new Uint8Array(data.buffer, data.byteOffset, data.byteLength), 8 + length + head[name].data_offsets[0]);
  }
  return file;
}

export function readTensors(buffer) {
  const wrong = new Error("This is no safetensors file.");
  if (buffer.byteLength < 8) throw wrong;
  const length = Number(new DataView(buffer).getBigUint64(0, true));
  if (length > buffer.byteLength - 8) throw wrong;
  let head;
  try {
    head = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 8, length)));
  } catch {
    throw wrong;
  }
  if (!isRecord(head)) throw wrong;
  const { __metadata__: metadata = {}, ...named } = head;
  if (!isRecord(metadata)) throw wrong;
  const tensors = Object.entries(named).map(([name, entry]) => {
    const { dtype, shape, data_offsets: offsets } = entry ?? {};
    if (![shape, offsets].every((list) => Array.isArray(list) && list.every(isCount))) throw wrong;
    if (!Object.hasOwn(KINDS, dtype)) throw new Error(`${name} is of the type ${dtype}; expected ${Object.keys(KINDS).join(", ")}.`);
    const [known, Numbers] = KINDS[dtype];
    const [begin, end] = offsets;
    const bytes = shape.reduce((a, b) => a * b, 1) * Numbers.BYTES_PER_ELEMENT;
    if (end - begin !== bytes || 8 + length + end > buffer.byteLength) throw new Error(`${name} is cut off: the file is damaged.`);
    return { name, dtype: known, shape, data: new Numbers(buffer.slice(8 + length + begin, 8 + length + end)) };
  });
  return { tensors, metadata };
}
