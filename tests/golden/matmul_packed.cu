struct Kernel {
ReadPort<vec4<i32>> b0;
ReadPort<vec4<f32>> b1;
ReadPort<vec4<f32>> b2;
WrittenPort<vec4<f32>> b3;
array<vec4<u32>, 1088> &larger;
array<vec4<u32>, 512> &smaller;
array<vec4<u32>, 576> &words;
array<vec4<f32>, 128> &scales;
array<f32, 128> &row_scales;
vec4<f32> load_a(const i32 m, const i32 k) {
  return b2[((m * 1024) + k) / 4];
}
void store_c(const i32 m, const i32 n, const vec4<f32> a0) {
  b3[((m * 2048) + n) / 4] = a0;
}
void main(const vec3<u32> group, const vec3<u32> groups, const u32 lane) {
const u32 member = lane & 31, members = 32;
const u32 subgroup = lane >> 5;
  const auto tile = i32(group.x + group.y * groups.x);
  const auto column = tile % 32 * 64;
  const auto strip = tile / 32;
  const auto row = strip % 8 * 16;
  const auto batch = strip / 8;
  const auto slice = subgroup / 2u;
  const auto upper = subgroup / 2u % 1u * 16u;
  const auto left = subgroup % 2u * 32u;
  auto c0_0 = subgroup_matrix_result<f32, 16, 16>();
  auto c0_1 = subgroup_matrix_result<f32, 16, 16>();
  const auto a_line0 = i32(lane) / 4 % 16;
  const auto a_deep0 = i32(lane) / 64 * 32 + i32(lane) % 4 * 8;
  auto next_a0_0 = vec4<f32>();
  auto next_a0_1 = vec4<f32>();
  auto next_words0 = vec4<u32>();
  auto next_scales0 = vec4<f32>();
  next_a0_0 = load_a(row + a_line0, 0 + a_deep0 + 0);
  next_a0_1 = load_a(row + a_line0, 0 + a_deep0 + 4);
  next_words0 = bitcast<vec4<u32>>(b0[(((0) / 8 + i32(lane) / 16) * 2048 + column + i32(lane) % 16 * 4) / 4]);
  if (i32(lane) < 64) {
    next_scales0 = b1[((0 + i32(lane) / 16 * 32) / 32 * 2048 + column + i32(lane) % 16 * 4) / 4];
  }
  const auto scale0 = scaleOfUnits(next_a0_0, next_a0_1);
  larger[i32(0u) * 256 + i32(lane)] = largerParts(next_a0_0 * scale0, next_a0_1 * scale0);
  smaller[i32(0u) * 256 + i32(lane)] = smallerParts(next_a0_0 * scale0, next_a0_1 * scale0);
  if (i32(lane) % 4 == 0) {
    row_scales[i32(0u) * 64 + i32(lane) / 4] = powerBack(scale0);
  }
  words[i32(0u) * 288 + i32(lane) / 16 * 18 + i32(lane) % 16] = next_words0;
  if (i32(lane) < 64) {
    scales[i32(0u) * 64 + i32(lane) / 16 * 16 + i32(lane) % 16] = next_scales0;
  }
  workgroupBarrier();
  auto half = 0u;
  for (auto base = 0; base < 1024; base += 128) {
    if (base + 128 < 1024) {
      next_a0_0 = load_a(row + a_line0, base + 128 + a_deep0 + 0);
      next_a0_1 = load_a(row + a_line0, base + 128 + a_deep0 + 4);
      next_words0 = bitcast<vec4<u32>>(b0[(((base + 128) / 8 + i32(lane) / 16) * 2048 + column + i32(lane) % 16 * 4) / 4]);
      if (i32(lane) < 64) {
        next_scales0 = b1[((base + 128 + i32(lane) / 16 * 32) / 32 * 2048 + column + i32(lane) % 16 * 4) / 4];
      }
    }
    const auto part = half * 4u + slice;
    const auto rows0 = packedLeft(&larger, &smaller, part * 64u + (upper + 0u) * 4u);
    const auto columns0 = packedRight<4, 8>(&words, part * 72u + (left + 0u) / 4u, 18u);
    c0_0 = addScaled(c0_0, multiplyPacked(rows0, columns0), &row_scales, part * 16u + upper + 0u, &scales, part * 16u + (left + 0u) / 4u);
    const auto columns1 = packedRight<4, 8>(&words, part * 72u + (left + 16u) / 4u, 18u);
    c0_1 = addScaled(c0_1, multiplyPacked(rows0, columns1), &row_scales, part * 16u + upper + 0u, &scales, part * 16u + (left + 16u) / 4u);
    half = 1u - half;
    if (base + 128 < 1024) {
      const auto scale0 = scaleOfUnits(next_a0_0, next_a0_1);
      larger[i32(half) * 256 + i32(lane)] = largerParts(next_a0_0 * scale0, next_a0_1 * scale0);
      smaller[i32(half) * 256 + i32(lane)] = smallerParts(next_a0_0 * scale0, next_a0_1 * scale0);
      if (i32(lane) % 4 == 0) {
        row_scales[i32(half) * 64 + i32(lane) / 4] = powerBack(scale0);
      }
      words[i32(half) * 288 + i32(lane) / 16 * 18 + i32(lane) % 16] = next_words0;
      if (i32(lane) < 64) {
        scales[i32(half) * 64 + i32(lane) / 16 * 16 + i32(lane) % 16] = next_scales0;
      }
    }
    workgroupBarrier();
  }
  subgroupMatrixStore<row_major>(&larger, (slice * 16u + upper + 0u) * 17u + (left + 0u) / 4u, c0_0, 17u);
  subgroupMatrixStore<row_major>(&larger, (slice * 16u + upper + 0u) * 17u + (left + 16u) / 4u, c0_1, 17u);
  workgroupBarrier();
  for (auto at = i32(lane); at < 256; at += 256) {
    const auto place = at / 16 * 17 + at % 16;
    const auto total = bitcast<vec4<f32>>(larger[place + 0]) + bitcast<vec4<f32>>(larger[place + 272]) + bitcast<vec4<f32>>(larger[place + 544]) + bitcast<vec4<f32>>(larger[place + 816]);
    const auto side = column + at % 16 * 4;
    store_c(row + at / 16, side, total);
  }
}
};
extern "C" __global__ void __launch_bounds__(256) run(Read b0, Read b1, Read b2, Written b3) {
__shared__ array<vec4<u32>, 1088> larger;
__shared__ array<vec4<u32>, 512> smaller;
__shared__ array<vec4<u32>, 576> words;
__shared__ array<vec4<f32>, 128> scales;
__shared__ array<f32, 128> row_scales;
Kernel kernel{ReadPort<vec4<i32>>(b0), ReadPort<vec4<f32>>(b1), ReadPort<vec4<f32>>(b2), WrittenPort<vec4<f32>>(b3), larger, smaller, words, scales, row_scales};
kernel.main({blockIdx.x, blockIdx.y, blockIdx.z}, {gridDim.x, gridDim.y, gridDim.z}, threadIdx.x);
}
