struct Kernel {
ReadPort<vec4<f32>> b0;
ReadPort<vec4<f32>> b1;
ReadPort<vec4<f32>> b2;
WrittenPort<vec4<f32>> b3;
const vec4<i32> *sizes;
array<array<vec4<f32>, 4>, 64> &tile_a;
array<array<vec4<f32>, 8>, 64> &tile_b;
vec4<f32> load_a(const i32 m, const i32 k) {
  if (m >= sizes[0].x) { return vec4<f32>(0); }
  return b0[((m * 128) + k) / 4];
}
vec4<f32> load_b(const i32 k, const i32 n) {
  return b1[((k * 320) + n) / 4];
}
void store_c(const i32 m, const i32 n, const vec4<f32> a0) {
  if (m >= sizes[0].x) { return; }
  b3[((m * 320) + n) / 4] = max_float((a0 + b2[n / 4]), vec4<f32>(0.0f));
}
void main(const vec3<u32> group, const vec3<u32> groups, const u32 lane) {
  const auto tile = i32(group.x + group.y * groups.x);
  if (tile >= sizes[0].y) { return; }
  const auto column = tile % 10 * 32;
  const auto strip = tile / 10;
  const auto row = strip % sizes[0].z * 16;
  const auto batch = strip / sizes[0].z;
  const auto member = i32(lane) % 32;
  const auto x = member % 8;
  const auto y = member / 8;
  const auto slice = i32(lane) / 32;
  const auto a_deep0 = member % 4 * 4;
  const auto a_side0 = member / 4;
  auto next_a0_0 = vec4<f32>();
  auto next_a0_1 = vec4<f32>();
  auto next_a0_2 = vec4<f32>();
  auto next_a0_3 = vec4<f32>();
  const auto b_deep0 = member / 8;
  const auto b_side0 = member % 8;
  auto next_b0 = vec4<f32>();
  const auto b_deep1 = (member + 32) / 8;
  const auto b_side1 = (member + 32) % 8;
  auto next_b1 = vec4<f32>();
  const auto b_deep2 = (member + 64) / 8;
  const auto b_side2 = (member + 64) % 8;
  auto next_b2 = vec4<f32>();
  const auto b_deep3 = (member + 96) / 8;
  const auto b_side3 = (member + 96) % 8;
  auto next_b3 = vec4<f32>();
  auto c0_0 = vec4<f32>();
  auto c1_0 = vec4<f32>();
  auto c2_0 = vec4<f32>();
  auto c3_0 = vec4<f32>();
  for (auto base = 0; ; base += 64) {
    next_a0_0 = load_a(row + a_side0 * 4, base + slice * 16 + a_deep0);
    next_a0_1 = load_a(row + a_side0 * 4 + 1, base + slice * 16 + a_deep0);
    next_a0_2 = load_a(row + a_side0 * 4 + 2, base + slice * 16 + a_deep0);
    next_a0_3 = load_a(row + a_side0 * 4 + 3, base + slice * 16 + a_deep0);
    next_b0 = load_b(base + slice * 16 + b_deep0, column + b_side0 * 4);
    next_b1 = load_b(base + slice * 16 + b_deep1, column + b_side1 * 4);
    next_b2 = load_b(base + slice * 16 + b_deep2, column + b_side2 * 4);
    next_b3 = load_b(base + slice * 16 + b_deep3, column + b_side3 * 4);
    if (base > 0) {
      for (auto first = 0; first < 16; first += 4) {
        const auto left0_0 = tile_a[slice * 16 + first][y];
        const auto right0_0 = tile_b[slice * 16 + first][x];
        c0_0 += left0_0.x * right0_0;
        c1_0 += left0_0.y * right0_0;
        c2_0 += left0_0.z * right0_0;
        c3_0 += left0_0.w * right0_0;
        const auto left1_0 = tile_a[slice * 16 + first + 1][y];
        const auto right1_0 = tile_b[slice * 16 + first + 1][x];
        c0_0 += left1_0.x * right1_0;
        c1_0 += left1_0.y * right1_0;
        c2_0 += left1_0.z * right1_0;
        c3_0 += left1_0.w * right1_0;
        const auto left2_0 = tile_a[slice * 16 + first + 2][y];
        const auto right2_0 = tile_b[slice * 16 + first + 2][x];
        c0_0 += left2_0.x * right2_0;
        c1_0 += left2_0.y * right2_0;
        c2_0 += left2_0.z * right2_0;
        c3_0 += left2_0.w * right2_0;
        const auto left3_0 = tile_a[slice * 16 + first + 3][y];
        const auto right3_0 = tile_b[slice * 16 + first + 3][x];
        c0_0 += left3_0.x * right3_0;
        c1_0 += left3_0.y * right3_0;
        c2_0 += left3_0.z * right3_0;
        c3_0 += left3_0.w * right3_0;
      }
      workgroupBarrier();
    }
    if (base >= 128) { break; }
    if (member < 16) {
      tile_a[slice * 16 + a_deep0][a_side0] = vec4<f32>(next_a0_0.x, next_a0_1.x, next_a0_2.x, next_a0_3.x);
      tile_a[slice * 16 + a_deep0 + 1][a_side0] = vec4<f32>(next_a0_0.y, next_a0_1.y, next_a0_2.y, next_a0_3.y);
      tile_a[slice * 16 + a_deep0 + 2][a_side0] = vec4<f32>(next_a0_0.z, next_a0_1.z, next_a0_2.z, next_a0_3.z);
      tile_a[slice * 16 + a_deep0 + 3][a_side0] = vec4<f32>(next_a0_0.w, next_a0_1.w, next_a0_2.w, next_a0_3.w);
    }
    tile_b[slice * 16 + b_deep0][b_side0] = next_b0;
    tile_b[slice * 16 + b_deep1][b_side1] = next_b1;
    tile_b[slice * 16 + b_deep2][b_side2] = next_b2;
    tile_b[slice * 16 + b_deep3][b_side3] = next_b3;
    workgroupBarrier();
  }
  if (slice > 0) {
    tile_b[((slice - 1) * 4 + 0) * 4 + y][x] = c0_0;
    tile_b[((slice - 1) * 4 + 1) * 4 + y][x] = c1_0;
    tile_b[((slice - 1) * 4 + 2) * 4 + y][x] = c2_0;
    tile_b[((slice - 1) * 4 + 3) * 4 + y][x] = c3_0;
  }
  workgroupBarrier();
  if (slice > 0) { return; }
  for (auto other = 0; other < 3; other++) {
    c0_0 += tile_b[(other * 4 + 0) * 4 + y][x];
    c1_0 += tile_b[(other * 4 + 1) * 4 + y][x];
    c2_0 += tile_b[(other * 4 + 2) * 4 + y][x];
    c3_0 += tile_b[(other * 4 + 3) * 4 + y][x];
  }
  const auto top = row + y * 4;
  const auto left = column + x * 4;
  store_c(top, left, c0_0);
  store_c(top + 1, left, c1_0);
  store_c(top + 2, left, c2_0);
  store_c(top + 3, left, c3_0);
}
};
extern "C" __global__ void __launch_bounds__(128) run(Read b0, Read b1, Read b2, Written b3, Sizes sizes) {
__shared__ array<array<vec4<f32>, 4>, 64> tile_a;
__shared__ array<array<vec4<f32>, 8>, 64> tile_b;
Kernel kernel{ReadPort<vec4<f32>>(b0), ReadPort<vec4<f32>>(b1), ReadPort<vec4<f32>>(b2), WrittenPort<vec4<f32>>(b3), sizes.data, tile_a, tile_b};
kernel.main({blockIdx.x, blockIdx.y, blockIdx.z}, {gridDim.x, gridDim.y, gridDim.z}, threadIdx.x);
}
