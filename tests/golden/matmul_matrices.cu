struct Kernel {
ReadPort<vec4<u32>> b0;
ReadPort<vec4<u32>> b1;
ReadPort<vec4<f16>> b2;
WrittenPort<vec4<f16>> b3;
const vec4<i32> *sizes;
array<vec4<u32>, 576> &tile_a;
array<vec4<u32>, 1152> &tile_b;
vec4<u32> load_a(const i32 m, const i32 k) {
  if (m >= sizes[0].y) { return vec4<u32>(0); }
  return b0[((m * 128) + k) >> 3u];
}
vec4<u32> load_b(const i32 k, const i32 n) {
  return b1[((k * 320) + n) >> 3u];
}
void store_c(const i32 m, const i32 n, const vec4<f32> a0) {
  if (m >= sizes[0].y) { return; }
  const auto v1 = max_float((a0 + vec4<f32>(b2[n / 4])), vec4<f32>(0.0f));
  b3[((m * 320) + n) / 4] = vec4<f16>(f16(v1.x), f16(v1.y), f16(v1.z), f16(v1.w));
}
void drain(const i32 m, const i32 n, const u32 first, const u32 member, const subgroup_matrix_result<f32, 16, 16> sum) {
  subgroupMatrixStore<row_major>(&tile_b, first, sum, 4u);
  workgroupBarrier();
  for (auto at = member; at < 64u; at += 32u) {
    const auto total = bitcast<vec4<f32>>(tile_b[first + at]);
    const auto side = n + i32(at % 4u) * 4;
    store_c(m + i32(at / 4u), side, total);
  }
  workgroupBarrier();
}
void main(const vec3<u32> group, const vec3<u32> groups, const u32 lane) {
const u32 member = lane & 31, members = 32;
const u32 subgroup = lane >> 5;
  const auto tile = i32(group.x + group.y * groups.x);
  if (tile >= sizes[0].z) { return; }
  const auto column = tile % 5 * 64;
  const auto strip = tile / 5;
  const auto row = strip % sizes[0].w * 32;
  const auto batch = strip / sizes[0].w;
  const auto upper = subgroup / 2u % 2u * 16u;
  const auto left = subgroup % 2u * 32u;
  const auto a_line0 = i32(lane) / 8;
  const auto a_unit0 = i32(lane) % 8;
  auto next_a0 = vec4<u32>();
  const auto a_line1 = (i32(lane) + 128) / 8;
  const auto a_unit1 = (i32(lane) + 128) % 8;
  auto next_a1 = vec4<u32>();
  const auto b_line0 = i32(lane) / 8;
  const auto b_unit0 = i32(lane) % 8;
  auto next_b0 = vec4<u32>();
  const auto b_line1 = (i32(lane) + 128) / 8;
  const auto b_unit1 = (i32(lane) + 128) % 8;
  auto next_b1 = vec4<u32>();
  const auto b_line2 = (i32(lane) + 256) / 8;
  const auto b_unit2 = (i32(lane) + 256) % 8;
  auto next_b2 = vec4<u32>();
  const auto b_line3 = (i32(lane) + 384) / 8;
  const auto b_unit3 = (i32(lane) + 384) % 8;
  auto next_b3 = vec4<u32>();
  auto c0_0 = subgroup_matrix_result<f32, 16, 16>();
  auto c0_1 = subgroup_matrix_result<f32, 16, 16>();
  next_a0 = load_a(row + a_line0, 0 + a_unit0 * 8);
  next_a1 = load_a(row + a_line1, 0 + a_unit1 * 8);
  next_b0 = load_b(0 + b_line0, column + b_unit0 * 8);
  next_b1 = load_b(0 + b_line1, column + b_unit1 * 8);
  next_b2 = load_b(0 + b_line2, column + b_unit2 * 8);
  next_b3 = load_b(0 + b_line3, column + b_unit3 * 8);
  tile_a[0 + a_line0 * 9 + a_unit0] = next_a0;
  tile_a[0 + a_line1 * 9 + a_unit1] = next_a1;
  tile_b[0 + b_line0 * 9 + b_unit0] = next_b0;
  tile_b[0 + b_line1 * 9 + b_unit1] = next_b1;
  tile_b[0 + b_line2 * 9 + b_unit2] = next_b2;
  tile_b[0 + b_line3 * 9 + b_unit3] = next_b3;
  workgroupBarrier();
  for (auto base = 0; base < 128; base += 128) {
    next_a0 = load_a(row + a_line0, base + 64 + a_unit0 * 8);
    next_a1 = load_a(row + a_line1, base + 64 + a_unit1 * 8);
    next_b0 = load_b(base + 64 + b_line0, column + b_unit0 * 8);
    next_b1 = load_b(base + 64 + b_line1, column + b_unit1 * 8);
    next_b2 = load_b(base + 64 + b_line2, column + b_unit2 * 8);
    next_b3 = load_b(base + 64 + b_line3, column + b_unit3 * 8);
    const auto a0_0 = subgroupMatrixLoad<subgroup_matrix_left<f16, 16, 16>, row_major>(&tile_a, (upper + 0u) * 9u + 0u, 9u);
    const auto b0_0 = subgroupMatrixLoad<subgroup_matrix_right<f16, 16, 16>, row_major>(&tile_b, (left + 0u) / 8u + 0u, 9u);
    c0_0 = subgroupMatrixMultiplyAccumulate(a0_0, b0_0, c0_0);
    const auto b0_1 = subgroupMatrixLoad<subgroup_matrix_right<f16, 16, 16>, row_major>(&tile_b, (left + 16u) / 8u + 0u, 9u);
    c0_1 = subgroupMatrixMultiplyAccumulate(a0_0, b0_1, c0_1);
    const auto a1_0 = subgroupMatrixLoad<subgroup_matrix_left<f16, 16, 16>, row_major>(&tile_a, (upper + 0u) * 9u + 2u, 9u);
    const auto b1_0 = subgroupMatrixLoad<subgroup_matrix_right<f16, 16, 16>, row_major>(&tile_b, (left + 0u) / 8u + 144u, 9u);
    c0_0 = subgroupMatrixMultiplyAccumulate(a1_0, b1_0, c0_0);
    const auto b1_1 = subgroupMatrixLoad<subgroup_matrix_right<f16, 16, 16>, row_major>(&tile_b, (left + 16u) / 8u + 144u, 9u);
    c0_1 = subgroupMatrixMultiplyAccumulate(a1_0, b1_1, c0_1);
    const auto a2_0 = subgroupMatrixLoad<subgroup_matrix_left<f16, 16, 16>, row_major>(&tile_a, (upper + 0u) * 9u + 4u, 9u);
    const auto b2_0 = subgroupMatrixLoad<subgroup_matrix_right<f16, 16, 16>, row_major>(&tile_b, (left + 0u) / 8u + 288u, 9u);
    c0_0 = subgroupMatrixMultiplyAccumulate(a2_0, b2_0, c0_0);
    const auto b2_1 = subgroupMatrixLoad<subgroup_matrix_right<f16, 16, 16>, row_major>(&tile_b, (left + 16u) / 8u + 288u, 9u);
    c0_1 = subgroupMatrixMultiplyAccumulate(a2_0, b2_1, c0_1);
    const auto a3_0 = subgroupMatrixLoad<subgroup_matrix_left<f16, 16, 16>, row_major>(&tile_a, (upper + 0u) * 9u + 6u, 9u);
    const auto b3_0 = subgroupMatrixLoad<subgroup_matrix_right<f16, 16, 16>, row_major>(&tile_b, (left + 0u) / 8u + 432u, 9u);
    c0_0 = subgroupMatrixMultiplyAccumulate(a3_0, b3_0, c0_0);
    const auto b3_1 = subgroupMatrixLoad<subgroup_matrix_right<f16, 16, 16>, row_major>(&tile_b, (left + 16u) / 8u + 432u, 9u);
    c0_1 = subgroupMatrixMultiplyAccumulate(a3_0, b3_1, c0_1);
    tile_a[288 + a_line0 * 9 + a_unit0] = next_a0;
    tile_a[288 + a_line1 * 9 + a_unit1] = next_a1;
    tile_b[576 + b_line0 * 9 + b_unit0] = next_b0;
    tile_b[576 + b_line1 * 9 + b_unit1] = next_b1;
    tile_b[576 + b_line2 * 9 + b_unit2] = next_b2;
    tile_b[576 + b_line3 * 9 + b_unit3] = next_b3;
    workgroupBarrier();
    next_a0 = load_a(row + a_line0, base + 128 + a_unit0 * 8);
    next_a1 = load_a(row + a_line1, base + 128 + a_unit1 * 8);
    next_b0 = load_b(base + 128 + b_line0, column + b_unit0 * 8);
    next_b1 = load_b(base + 128 + b_line1, column + b_unit1 * 8);
    next_b2 = load_b(base + 128 + b_line2, column + b_unit2 * 8);
    next_b3 = load_b(base + 128 + b_line3, column + b_unit3 * 8);
    const auto a4_0 = subgroupMatrixLoad<subgroup_matrix_left<f16, 16, 16>, row_major>(&tile_a, (upper + 0u) * 9u + 288u, 9u);
    const auto b4_0 = subgroupMatrixLoad<subgroup_matrix_right<f16, 16, 16>, row_major>(&tile_b, (left + 0u) / 8u + 576u, 9u);
    c0_0 = subgroupMatrixMultiplyAccumulate(a4_0, b4_0, c0_0);
    const auto b4_1 = subgroupMatrixLoad<subgroup_matrix_right<f16, 16, 16>, row_major>(&tile_b, (left + 16u) / 8u + 576u, 9u);
    c0_1 = subgroupMatrixMultiplyAccumulate(a4_0, b4_1, c0_1);
    const auto a5_0 = subgroupMatrixLoad<subgroup_matrix_left<f16, 16, 16>, row_major>(&tile_a, (upper + 0u) * 9u + 290u, 9u);
    const auto b5_0 = subgroupMatrixLoad<subgroup_matrix_right<f16, 16, 16>, row_major>(&tile_b, (left + 0u) / 8u + 720u, 9u);
    c0_0 = subgroupMatrixMultiplyAccumulate(a5_0, b5_0, c0_0);
    const auto b5_1 = subgroupMatrixLoad<subgroup_matrix_right<f16, 16, 16>, row_major>(&tile_b, (left + 16u) / 8u + 720u, 9u);
    c0_1 = subgroupMatrixMultiplyAccumulate(a5_0, b5_1, c0_1);
    const auto a6_0 = subgroupMatrixLoad<subgroup_matrix_left<f16, 16, 16>, row_major>(&tile_a, (upper + 0u) * 9u + 292u, 9u);
    const auto b6_0 = subgroupMatrixLoad<subgroup_matrix_right<f16, 16, 16>, row_major>(&tile_b, (left + 0u) / 8u + 864u, 9u);
    c0_0 = subgroupMatrixMultiplyAccumulate(a6_0, b6_0, c0_0);
    const auto b6_1 = subgroupMatrixLoad<subgroup_matrix_right<f16, 16, 16>, row_major>(&tile_b, (left + 16u) / 8u + 864u, 9u);
    c0_1 = subgroupMatrixMultiplyAccumulate(a6_0, b6_1, c0_1);
    const auto a7_0 = subgroupMatrixLoad<subgroup_matrix_left<f16, 16, 16>, row_major>(&tile_a, (upper + 0u) * 9u + 294u, 9u);
    const auto b7_0 = subgroupMatrixLoad<subgroup_matrix_right<f16, 16, 16>, row_major>(&tile_b, (left + 0u) / 8u + 1008u, 9u);
    c0_0 = subgroupMatrixMultiplyAccumulate(a7_0, b7_0, c0_0);
    const auto b7_1 = subgroupMatrixLoad<subgroup_matrix_right<f16, 16, 16>, row_major>(&tile_b, (left + 16u) / 8u + 1008u, 9u);
    c0_1 = subgroupMatrixMultiplyAccumulate(a7_0, b7_1, c0_1);
    tile_a[0 + a_line0 * 9 + a_unit0] = next_a0;
    tile_a[0 + a_line1 * 9 + a_unit1] = next_a1;
    tile_b[0 + b_line0 * 9 + b_unit0] = next_b0;
    tile_b[0 + b_line1 * 9 + b_unit1] = next_b1;
    tile_b[0 + b_line2 * 9 + b_unit2] = next_b2;
    tile_b[0 + b_line3 * 9 + b_unit3] = next_b3;
    workgroupBarrier();
  }
  drain(row + i32(upper) + 0, column + i32(left) + 0, subgroup * 64u, member, c0_0);
  drain(row + i32(upper) + 0, column + i32(left) + 16, subgroup * 64u, member, c0_1);
}
};
extern "C" __global__ void __launch_bounds__(128) run(Read b0, Read b1, Read b2, Written b3, Sizes sizes) {
__shared__ array<vec4<u32>, 576> tile_a;
__shared__ array<vec4<u32>, 1152> tile_b;
Kernel kernel{ReadPort<vec4<u32>>(b0), ReadPort<vec4<u32>>(b1), ReadPort<vec4<f16>>(b2), WrittenPort<vec4<f16>>(b3), sizes.data, tile_a, tile_b};
kernel.main({blockIdx.x, blockIdx.y, blockIdx.z}, {gridDim.x, gridDim.y, gridDim.z}, threadIdx.x);
}
