/**
 * Which subgroup matrices a GPUDevice offers to kernels; loaded if it has some.
 *
 * Contract: `abilities(device)` is the set of words of `requires` that the device supports; see static/README.md.
 */

const MEMORY = 32768;
const SUBGROUP = 32;

/** @param {GPUDevice} device */
export function abilities({ features, limits, adapterInfo }) {
  const { subgroupMinSize, subgroupMaxSize, subgroupMatrixConfigs = [] } = adapterInfo ?? {};

  const wide = limits.maxComputeWorkgroupStorageSize >= MEMORY;
  const even = subgroupMinSize === SUBGROUP && subgroupMaxSize === SUBGROUP;
  const kinds = wide && even ? [...subgroupMatrixConfigs] : [];
  /** @param {NonNullable<GPUAdapterInfo["subgroupMatrixConfigs"]> extends Iterable<infer T> ? T : never} config */
  const word = ({ componentType, resultComponentType, M, N, K }) => `subgroup-matrix-${componentType}-${resultComponentType}-${M}x${N}x${K}`;
  return new Set([...features, ...kinds.map(word)]);
}
