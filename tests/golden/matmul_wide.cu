struct Kernel {
ReadPort<vec4<u32>> b0;
ReadPort<vec4<u32>> b1;
ReadPort<vec4<f16>> b2;
WrittenPort<vec4<f16>> b3;
array<vec4<u32>, 2048> &tile_a;
array<vec4<u32>, 2048> &tile_b;
void copy_a(const i32 m, const i32 k, const i32 to) {
  copyAhead(&tile_a[to], b0, ((m * 128) + k) >> 3u);
}
void copy_b(const i32 k, const i32 n, const i32 to) {
  copyAhead(&tile_b[to], b1, ((k * 320) + n) >> 3u);
}
void store_c(const i32 m, const i32 n, const vec4<f32> a0) {
  const auto v1 = max_float((a0 + vec4<f32>(b2[n / 4])), vec4<f32>(0.0f));
  b3[((m * 320) + n) / 4] = vec4<f16>(f16(v1.x), f16(v1.y), f16(v1.z), f16(v1.w));
}
void drain(const i32 m, const i32 n, const u32 first, const u32 member, const subgroup_matrix_result<f32, 16, 16> sum0, const subgroup_matrix_result<f32, 16, 16> sum1, const subgroup_matrix_result<f32, 16, 16> sum2, const subgroup_matrix_result<f32, 16, 16> sum3) {
  subgroupMatrixStore<row_major>(&tile_b, first + 0u, sum0, 17u);
  subgroupMatrixStore<row_major>(&tile_b, first + 4u, sum1, 17u);
  subgroupMatrixStore<row_major>(&tile_b, first + 8u, sum2, 17u);
  subgroupMatrixStore<row_major>(&tile_b, first + 12u, sum3, 17u);
  subgroupBarrier();
  for (auto at = member; at < 256u; at += 32u) {
    const auto total = bitcast<vec4<f32>>(tile_b[first + at / 16u * 17u + at % 16u]);
    const auto side = n + i32(at % 16u) * 4;
    store_c(m + i32(at / 16u), side, total);
  }
  subgroupBarrier();
}
void main(const vec3<u32> group, const vec3<u32> groups, const u32 lane) {
const u32 member = lane & 31, members = 32;
const u32 subgroup = lane >> 5;
  const auto tile = i32(group.x + group.y * groups.x);
  const auto column = tile % 5 * 64;
  const auto strip = tile / 5;
  const auto row = strip % 256 * 64;
  const auto batch = strip / 256;
  const auto upper = subgroup / 1u % 4u * 16u;
  const auto left = subgroup % 1u * 64u;
  const auto a_line0 = i32(lane) / 8;
  const auto a_unit0 = i32(lane) % 8;
  const auto a_at0 = (a_unit0 / 8 * 64 + a_line0) * 8 + ((a_unit0 % 8) ^ (a_line0 % 8));
  const auto a_line1 = (i32(lane) + 128) / 8;
  const auto a_unit1 = (i32(lane) + 128) % 8;
  const auto a_at1 = (a_unit1 / 8 * 64 + a_line1) * 8 + ((a_unit1 % 8) ^ (a_line1 % 8));
  const auto a_line2 = (i32(lane) + 256) / 8;
  const auto a_unit2 = (i32(lane) + 256) % 8;
  const auto a_at2 = (a_unit2 / 8 * 64 + a_line2) * 8 + ((a_unit2 % 8) ^ (a_line2 % 8));
  const auto a_line3 = (i32(lane) + 384) / 8;
  const auto a_unit3 = (i32(lane) + 384) % 8;
  const auto a_at3 = (a_unit3 / 8 * 64 + a_line3) * 8 + ((a_unit3 % 8) ^ (a_line3 % 8));
  const auto b_line0 = i32(lane) / 8;
  const auto b_unit0 = i32(lane) % 8;
  const auto b_at0 = (b_unit0 / 8 * 64 + b_line0) * 8 + ((b_unit0 % 8) ^ (b_line0 % 8));
  const auto b_line1 = (i32(lane) + 128) / 8;
  const auto b_unit1 = (i32(lane) + 128) % 8;
  const auto b_at1 = (b_unit1 / 8 * 64 + b_line1) * 8 + ((b_unit1 % 8) ^ (b_line1 % 8));
  const auto b_line2 = (i32(lane) + 256) / 8;
  const auto b_unit2 = (i32(lane) + 256) % 8;
  const auto b_at2 = (b_unit2 / 8 * 64 + b_line2) * 8 + ((b_unit2 % 8) ^ (b_line2 % 8));
  const auto b_line3 = (i32(lane) + 384) / 8;
  const auto b_unit3 = (i32(lane) + 384) % 8;
  const auto b_at3 = (b_unit3 / 8 * 64 + b_line3) * 8 + ((b_unit3 % 8) ^ (b_line3 % 8));
  auto sums = array<subgroup_matrix_result<f32, 16, 16>, 4>();
  if (0 < 128) {
    copy_a(row + a_line0, 0 + a_unit0 * 8, 0 + a_at0);
    copy_a(row + a_line1, 0 + a_unit1 * 8, 0 + a_at1);
    copy_a(row + a_line2, 0 + a_unit2 * 8, 0 + a_at2);
    copy_a(row + a_line3, 0 + a_unit3 * 8, 0 + a_at3);
    copy_b(0 + b_line0, column + b_unit0 * 8, 0 + b_at0);
    copy_b(0 + b_line1, column + b_unit1 * 8, 0 + b_at1);
    copy_b(0 + b_line2, column + b_unit2 * 8, 0 + b_at2);
    copy_b(0 + b_line3, column + b_unit3 * 8, 0 + b_at3);
  }
  copiesEnd();
  if (64 < 128) {
    copy_a(row + a_line0, 64 + a_unit0 * 8, 512 + a_at0);
    copy_a(row + a_line1, 64 + a_unit1 * 8, 512 + a_at1);
    copy_a(row + a_line2, 64 + a_unit2 * 8, 512 + a_at2);
    copy_a(row + a_line3, 64 + a_unit3 * 8, 512 + a_at3);
    copy_b(64 + b_line0, column + b_unit0 * 8, 512 + b_at0);
    copy_b(64 + b_line1, column + b_unit1 * 8, 512 + b_at1);
    copy_b(64 + b_line2, column + b_unit2 * 8, 512 + b_at2);
    copy_b(64 + b_line3, column + b_unit3 * 8, 512 + b_at3);
  }
  copiesEnd();
  for (auto base = 0; base < 128; base += 256) {
    copiesWait<1>();
    wideBarrier();
    multiplyWide<f16, row_major, row_major>(&sums, &tile_a, (upper / 64u * 64u) * 8u + 0u, &tile_b, 0u);
    multiplyWide<f16, row_major, row_major>(&sums, &tile_a, (upper / 64u * 64u) * 8u + 2u, &tile_b, 128u);
    multiplyWide<f16, row_major, row_major>(&sums, &tile_a, (upper / 64u * 64u) * 8u + 4u, &tile_b, 256u);
    multiplyWide<f16, row_major, row_major>(&sums, &tile_a, (upper / 64u * 64u) * 8u + 6u, &tile_b, 384u);
    wideEnd();
    if (base + 128 < 128) {
      copy_a(row + a_line0, base + 128 + a_unit0 * 8, 1024 + a_at0);
      copy_a(row + a_line1, base + 128 + a_unit1 * 8, 1024 + a_at1);
      copy_a(row + a_line2, base + 128 + a_unit2 * 8, 1024 + a_at2);
      copy_a(row + a_line3, base + 128 + a_unit3 * 8, 1024 + a_at3);
      copy_b(base + 128 + b_line0, column + b_unit0 * 8, 1024 + b_at0);
      copy_b(base + 128 + b_line1, column + b_unit1 * 8, 1024 + b_at1);
      copy_b(base + 128 + b_line2, column + b_unit2 * 8, 1024 + b_at2);
      copy_b(base + 128 + b_line3, column + b_unit3 * 8, 1024 + b_at3);
    }
    copiesEnd();
    wideWait<1>();
    if (base + 64 >= 128) { break; }
    copiesWait<1>();
    wideBarrier();
    multiplyWide<f16, row_major, row_major>(&sums, &tile_a, (upper / 64u * 64u) * 8u + 512u, &tile_b, 512u);
    multiplyWide<f16, row_major, row_major>(&sums, &tile_a, (upper / 64u * 64u) * 8u + 514u, &tile_b, 640u);
    multiplyWide<f16, row_major, row_major>(&sums, &tile_a, (upper / 64u * 64u) * 8u + 516u, &tile_b, 768u);
    multiplyWide<f16, row_major, row_major>(&sums, &tile_a, (upper / 64u * 64u) * 8u + 518u, &tile_b, 896u);
    wideEnd();
    if (base + 192 < 128) {
      copy_a(row + a_line0, base + 192 + a_unit0 * 8, 1536 + a_at0);
      copy_a(row + a_line1, base + 192 + a_unit1 * 8, 1536 + a_at1);
      copy_a(row + a_line2, base + 192 + a_unit2 * 8, 1536 + a_at2);
      copy_a(row + a_line3, base + 192 + a_unit3 * 8, 1536 + a_at3);
      copy_b(base + 192 + b_line0, column + b_unit0 * 8, 1536 + b_at0);
      copy_b(base + 192 + b_line1, column + b_unit1 * 8, 1536 + b_at1);
      copy_b(base + 192 + b_line2, column + b_unit2 * 8, 1536 + b_at2);
      copy_b(base + 192 + b_line3, column + b_unit3 * 8, 1536 + b_at3);
    }
    copiesEnd();
    wideWait<1>();
    if (base + 128 >= 128) { break; }
    copiesWait<1>();
    wideBarrier();
    multiplyWide<f16, row_major, row_major>(&sums, &tile_a, (upper / 64u * 64u) * 8u + 1024u, &tile_b, 1024u);
    multiplyWide<f16, row_major, row_major>(&sums, &tile_a, (upper / 64u * 64u) * 8u + 1026u, &tile_b, 1152u);
    multiplyWide<f16, row_major, row_major>(&sums, &tile_a, (upper / 64u * 64u) * 8u + 1028u, &tile_b, 1280u);
    multiplyWide<f16, row_major, row_major>(&sums, &tile_a, (upper / 64u * 64u) * 8u + 1030u, &tile_b, 1408u);
    wideEnd();
    if (base + 256 < 128) {
      copy_a(row + a_line0, base + 256 + a_unit0 * 8, 0 + a_at0);
      copy_a(row + a_line1, base + 256 + a_unit1 * 8, 0 + a_at1);
      copy_a(row + a_line2, base + 256 + a_unit2 * 8, 0 + a_at2);
      copy_a(row + a_line3, base + 256 + a_unit3 * 8, 0 + a_at3);
      copy_b(base + 256 + b_line0, column + b_unit0 * 8, 0 + b_at0);
      copy_b(base + 256 + b_line1, column + b_unit1 * 8, 0 + b_at1);
      copy_b(base + 256 + b_line2, column + b_unit2 * 8, 0 + b_at2);
      copy_b(base + 256 + b_line3, column + b_unit3 * 8, 0 + b_at3);
    }
    copiesEnd();
    wideWait<1>();
    if (base + 192 >= 128) { break; }
    copiesWait<1>();
    wideBarrier();
    multiplyWide<f16, row_major, row_major>(&sums, &tile_a, (upper / 64u * 64u) * 8u + 1536u, &tile_b, 1536u);
    multiplyWide<f16, row_major, row_major>(&sums, &tile_a, (upper / 64u * 64u) * 8u + 1538u, &tile_b, 1664u);
    multiplyWide<f16, row_major, row_major>(&sums, &tile_a, (upper / 64u * 64u) * 8u + 1540u, &tile_b, 1792u);
    multiplyWide<f16, row_major, row_major>(&sums, &tile_a, (upper / 64u * 64u) * 8u + 1542u, &tile_b, 1920u);
    wideEnd();
    if (base + 320 < 128) {
      copy_a(row + a_line0, base + 320 + a_unit0 * 8, 512 + a_at0);
      copy_a(row + a_line1, base + 320 + a_unit1 * 8, 512 + a_at1);
      copy_a(row + a_line2, base + 320 + a_unit2 * 8, 512 + a_at2);
      copy_a(row + a_line3, base + 320 + a_unit3 * 8, 512 + a_at3);
      copy_b(base + 320 + b_line0, column + b_unit0 * 8, 512 + b_at0);
      copy_b(base + 320 + b_line1, column + b_unit1 * 8, 512 + b_at1);
      copy_b(base + 320 + b_line2, column + b_unit2 * 8, 512 + b_at2);
      copy_b(base + 320 + b_line3, column + b_unit3 * 8, 512 + b_at3);
    }
    copiesEnd();
    wideWait<1>();
  }
  wideWait<0>();
  copiesWait<0>();
  workgroupBarrier();
  drain(row + i32(upper) + 0, column + i32(left) + 0, subgroup * 272u, member, sums[0], sums[1], sums[2], sums[3]);
}
};
extern "C" __global__ void __launch_bounds__(128) run(Read b0, Read b1, Read b2, Written b3) {
extern __shared__ __align__(1024) vec4<u32> workgroup[]; // 65536 bytes
array<vec4<u32>, 2048> &tile_a = *(array<vec4<u32>, 2048> *)(workgroup + 0);
array<vec4<u32>, 2048> &tile_b = *(array<vec4<u32>, 2048> *)(workgroup + 2048);
Kernel kernel{ReadPort<vec4<u32>>(b0), ReadPort<vec4<u32>>(b1), ReadPort<vec4<f16>>(b2), WrittenPort<vec4<f16>>(b3), tile_a, tile_b};
kernel.main({blockIdx.x, blockIdx.y, blockIdx.z}, {gridDim.x, gridDim.y, gridDim.z}, threadIdx.x);
}
