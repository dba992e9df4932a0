struct Kernel {
ReadPort<vec4<u32>> b0;
ReadPort<vec4<u32>> b1;
ReadPort<vec4<f16>> b2;
WrittenPort<vec4<f16>> b3;
const vec4<i32> *sizes;
array<vec4<u32>, 864> &tile_a;
array<vec4<u32>, 1728> &tile_b;
void copy_a(const i32 m, const i32 k, const i32 to) {
  if (m >= sizes[0].y) { tile_a[to] = vec4<u32>(0u); return; }
  copyAhead(&tile_a[to], b0, ((m * 128) + k) >> 3u);
}
void copy_b(const i32 k, const i32 n, const i32 to) {
  copyAhead(&tile_b[to], b1, ((k * 320) + n) >> 3u);
}
void store_c(const i32 m, const i32 n, const vec4<f32> a0) {
  if (m >= sizes[0].y) { return; }
  const auto v1 = max_float((a0 + vec4<f32>(b2[n / 4])), vec4<f32>(0.0f));
  b3[((m * 320) + n) / 4] = vec4<f16>(f16(v1.x), f16(v1.y), f16(v1.z), f16(v1.w));
}
void drain(const i32 m, const i32 n, const u32 first, const u32 member, const subgroup_matrix_result<f32, 16, 16> sum0, const subgroup_matrix_result<f32, 16, 16> sum1) {
  subgroupMatrixStore<row_major>(&tile_b, first + 0u, sum0, 9u);
  subgroupMatrixStore<row_major>(&tile_b, first + 4u, sum1, 9u);
  subgroupBarrier();
  for (auto at = member; at < 128u; at += 32u) {
    const auto total = bitcast<vec4<f32>>(tile_b[first + at / 8u * 9u + at % 8u]);
    const auto side = n + i32(at % 8u) * 4;
    store_c(m + i32(at / 8u), side, total);
  }
  subgroupBarrier();
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
  const auto a_line1 = (i32(lane) + 128) / 8;
  const auto a_unit1 = (i32(lane) + 128) % 8;
  const auto b_line0 = i32(lane) / 8;
  const auto b_unit0 = i32(lane) % 8;
  const auto b_line1 = (i32(lane) + 128) / 8;
  const auto b_unit1 = (i32(lane) + 128) % 8;
  const auto b_line2 = (i32(lane) + 256) / 8;
  const auto b_unit2 = (i32(lane) + 256) % 8;
  const auto b_line3 = (i32(lane) + 384) / 8;
  const auto b_unit3 = (i32(lane) + 384) % 8;
  auto c0_0 = subgroup_matrix_result<f32, 16, 16>();
  auto c0_1 = subgroup_matrix_result<f32, 16, 16>();
  if (0 < 128) {
    copy_a(row + a_line0, 0 + a_unit0 * 8, 0 + a_line0 * 9 + a_unit0);
    copy_a(row + a_line1, 0 + a_unit1 * 8, 0 + a_line1 * 9 + a_unit1);
    copy_b(0 + b_line0, column + b_unit0 * 8, 0 + b_line0 * 9 + b_unit0);
    copy_b(0 + b_line1, column + b_unit1 * 8, 0 + b_line1 * 9 + b_unit1);
    copy_b(0 + b_line2, column + b_unit2 * 8, 0 + b_line2 * 9 + b_unit2);
    copy_b(0 + b_line3, column + b_unit3 * 8, 0 + b_line3 * 9 + b_unit3);
  }
  copiesEnd();
  if (64 < 128) {
    copy_a(row + a_line0, 64 + a_unit0 * 8, 288 + a_line0 * 9 + a_unit0);
    copy_a(row + a_line1, 64 + a_unit1 * 8, 288 + a_line1 * 9 + a_unit1);
    copy_b(64 + b_line0, column + b_unit0 * 8, 576 + b_line0 * 9 + b_unit0);
    copy_b(64 + b_line1, column + b_unit1 * 8, 576 + b_line1 * 9 + b_unit1);
    copy_b(64 + b_line2, column + b_unit2 * 8, 576 + b_line2 * 9 + b_unit2);
    copy_b(64 + b_line3, column + b_unit3 * 8, 576 + b_line3 * 9 + b_unit3);
  }
  copiesEnd();
  for (auto base = 0; base < 128; base += 192) {
    copiesWait<1>();
    workgroupBarrier();
    if (base + 128 < 128) {
      copy_a(row + a_line0, base + 128 + a_unit0 * 8, 576 + a_line0 * 9 + a_unit0);
      copy_a(row + a_line1, base + 128 + a_unit1 * 8, 576 + a_line1 * 9 + a_unit1);
      copy_b(base + 128 + b_line0, column + b_unit0 * 8, 1152 + b_line0 * 9 + b_unit0);
      copy_b(base + 128 + b_line1, column + b_unit1 * 8, 1152 + b_line1 * 9 + b_unit1);
      copy_b(base + 128 + b_line2, column + b_unit2 * 8, 1152 + b_line2 * 9 + b_unit2);
      copy_b(base + 128 + b_line3, column + b_unit3 * 8, 1152 + b_line3 * 9 + b_unit3);
    }
    copiesEnd();
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
    if (base + 64 >= 128) { break; }
    copiesWait<1>();
    workgroupBarrier();
    if (base + 192 < 128) {
      copy_a(row + a_line0, base + 192 + a_unit0 * 8, 0 + a_line0 * 9 + a_unit0);
      copy_a(row + a_line1, base + 192 + a_unit1 * 8, 0 + a_line1 * 9 + a_unit1);
      copy_b(base + 192 + b_line0, column + b_unit0 * 8, 0 + b_line0 * 9 + b_unit0);
      copy_b(base + 192 + b_line1, column + b_unit1 * 8, 0 + b_line1 * 9 + b_unit1);
      copy_b(base + 192 + b_line2, column + b_unit2 * 8, 0 + b_line2 * 9 + b_unit2);
      copy_b(base + 192 + b_line3, column + b_unit3 * 8, 0 + b_line3 * 9 + b_unit3);
    }
    copiesEnd();
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
    if (base + 128 >= 128) { break; }
    copiesWait<1>();
    workgroupBarrier();
    if (base + 256 < 128) {
      copy_a(row + a_line0, base + 256 + a_unit0 * 8, 288 + a_line0 * 9 + a_unit0);
      copy_a(row + a_line1, base + 256 + a_unit1 * 8, 288 + a_line1 * 9 + a_unit1);
      copy_b(base + 256 + b_line0, column + b_unit0 * 8, 576 + b_line0 * 9 + b_unit0);
      copy_b(base + 256 + b_line1, column + b_unit1 * 8, 576 + b_line1 * 9 + b_unit1);
      copy_b(base + 256 + b_line2, column + b_unit2 * 8, 576 + b_line2 * 9 + b_unit2);
      copy_b(base + 256 + b_line3, column + b_unit3 * 8, 576 + b_line3 * 9 + b_unit3);
    }
    copiesEnd();
    const auto a8_0 = subgroupMatrixLoad<subgroup_matrix_left<f16, 16, 16>, row_major>(&tile_a, (upper + 0u) * 9u + 576u, 9u);
    const auto b8_0 = subgroupMatrixLoad<subgroup_matrix_right<f16, 16, 16>, row_major>(&tile_b, (left + 0u) / 8u + 1152u, 9u);
    c0_0 = subgroupMatrixMultiplyAccumulate(a8_0, b8_0, c0_0);
    const auto b8_1 = subgroupMatrixLoad<subgroup_matrix_right<f16, 16, 16>, row_major>(&tile_b, (left + 16u) / 8u + 1152u, 9u);
    c0_1 = subgroupMatrixMultiplyAccumulate(a8_0, b8_1, c0_1);
    const auto a9_0 = subgroupMatrixLoad<subgroup_matrix_left<f16, 16, 16>, row_major>(&tile_a, (upper + 0u) * 9u + 578u, 9u);
    const auto b9_0 = subgroupMatrixLoad<subgroup_matrix_right<f16, 16, 16>, row_major>(&tile_b, (left + 0u) / 8u + 1296u, 9u);
    c0_0 = subgroupMatrixMultiplyAccumulate(a9_0, b9_0, c0_0);
    const auto b9_1 = subgroupMatrixLoad<subgroup_matrix_right<f16, 16, 16>, row_major>(&tile_b, (left + 16u) / 8u + 1296u, 9u);
    c0_1 = subgroupMatrixMultiplyAccumulate(a9_0, b9_1, c0_1);
    const auto a10_0 = subgroupMatrixLoad<subgroup_matrix_left<f16, 16, 16>, row_major>(&tile_a, (upper + 0u) * 9u + 580u, 9u);
    const auto b10_0 = subgroupMatrixLoad<subgroup_matrix_right<f16, 16, 16>, row_major>(&tile_b, (left + 0u) / 8u + 1440u, 9u);
    c0_0 = subgroupMatrixMultiplyAccumulate(a10_0, b10_0, c0_0);
    const auto b10_1 = subgroupMatrixLoad<subgroup_matrix_right<f16, 16, 16>, row_major>(&tile_b, (left + 16u) / 8u + 1440u, 9u);
    c0_1 = subgroupMatrixMultiplyAccumulate(a10_0, b10_1, c0_1);
    const auto a11_0 = subgroupMatrixLoad<subgroup_matrix_left<f16, 16, 16>, row_major>(&tile_a, (upper + 0u) * 9u + 582u, 9u);
    const auto b11_0 = subgroupMatrixLoad<subgroup_matrix_right<f16, 16, 16>, row_major>(&tile_b, (left + 0u) / 8u + 1584u, 9u);
    c0_0 = subgroupMatrixMultiplyAccumulate(a11_0, b11_0, c0_0);
    const auto b11_1 = subgroupMatrixLoad<subgroup_matrix_right<f16, 16, 16>, row_major>(&tile_b, (left + 16u) / 8u + 1584u, 9u);
    c0_1 = subgroupMatrixMultiplyAccumulate(a11_0, b11_1, c0_1);
  }
  copiesWait<0>();
  workgroupBarrier();
  drain(row + i32(upper) + 0, column + i32(left) + 0, subgroup * 144u, member, c0_0, c0_1);
}
};
extern "C" __global__ void __launch_bounds__(128) run(Read b0, Read b1, Read b2, Written b3, Sizes sizes) {
__shared__ array<vec4<u32>, 864> tile_a;
__shared__ array<vec4<u32>, 1728> tile_b;
Kernel kernel{ReadPort<vec4<u32>>(b0), ReadPort<vec4<u32>>(b1), ReadPort<vec4<f16>>(b2), WrittenPort<vec4<f16>>(b3), sizes.data, tile_a, tile_b};
kernel.main({blockIdx.x, blockIdx.y, blockIdx.z}, {gridDim.x, gridDim.y, gridDim.z}, threadIdx.x);
}
