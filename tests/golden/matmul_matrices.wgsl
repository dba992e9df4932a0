enable f16;
enable subgroups;
enable chromium_experimental_subgroup_matrix;

@group(0) @binding(0) var<storage, read> b0: array<vec4<u32>>;
@group(0) @binding(1) var<storage, read> b1: array<vec4<u32>>;
@group(0) @binding(2) var<storage, read> b2: array<vec4<f16>>;
@group(0) @binding(3) var<storage, read_write> b3: array<vec4<f16>>;
@group(0) @binding(4) var<uniform> sizes: array<vec4<i32>, 1>;
var<workgroup> tile_a: array<vec4<u32>, 576>;
var<workgroup> tile_b: array<vec4<u32>, 1152>;

fn are_nan(x: vec4<f32>) -> vec4<bool> {
  return (bitcast<vec4<u32>>(x) & vec4<u32>(0x7fffffffu)) > vec4<u32>(0x7f800000u);
}

fn max_numbers(a: vec4<f32>, number: vec4<f32>) -> vec4<f32> { return select(max(a, number), a, are_nan(a)); }

fn load_a(m: i32, k: i32) -> vec4<u32> {
  if (m >= sizes[0].y) { return vec4<u32>(0); }
  return b0[((m * 128i) + k) >> 3u];
}

fn load_b(k: i32, n: i32) -> vec4<u32> {
  return b1[((k * 320i) + n) >> 3u];
}

fn store_c(m: i32, n: i32, a0: vec4<f32>) {
  if (m >= sizes[0].y) { return; }
  let v1 = max_numbers((a0 + vec4<f32>(b2[n / 4i])), vec4<f32>(0.0f));
  b3[((m * 320i) + n) / 4i] = vec4<f16>(f16(v1.x), f16(v1.y), f16(v1.z), f16(v1.w));
}

fn drain(m: i32, n: i32, first: u32, member: u32, sum0: subgroup_matrix_result<f32, 16, 16>) {
  subgroupMatrixStore<row_major>(&tile_b, first + 0u, sum0, 4u);
  workgroupBarrier();
  for (var at = member; at < 64u; at += 32u) {
    let total = bitcast<vec4<f32>>(tile_b[first + at]);
    let side = n + i32(at % 4u) * 4i;
    store_c(m + i32(at / 4u), side, total);
  }
  workgroupBarrier();
}

@compute @workgroup_size(128)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) lane: u32,
        @builtin(subgroup_invocation_id) member: u32, @builtin(subgroup_size) members: u32,
        @builtin(subgroup_id) subgroup: u32) {
  let tile = i32(group.x + group.y * groups.x);
  if (tile >= sizes[0].z) { return; }
  let column = tile % 5i * 64i;
  let strip = tile / 5i;
  let row = strip % sizes[0].w * 32i;
  let batch = strip / sizes[0].w;
  let upper = subgroup / 2u % 2u * 16u;
  let left = subgroup % 2u * 32u;
  let a_line0 = i32(lane) / 8i;
  let a_unit0 = i32(lane) % 8i;
  var next_a0 = vec4<u32>();
  let a_line1 = (i32(lane) + 128i) / 8i;
  let a_unit1 = (i32(lane) + 128i) % 8i;
  var next_a1 = vec4<u32>();
  let b_line0 = i32(lane) / 8i;
  let b_unit0 = i32(lane) % 8i;
  var next_b0 = vec4<u32>();
  let b_line1 = (i32(lane) + 128i) / 8i;
  let b_unit1 = (i32(lane) + 128i) % 8i;
  var next_b1 = vec4<u32>();
  let b_line2 = (i32(lane) + 256i) / 8i;
  let b_unit2 = (i32(lane) + 256i) % 8i;
  var next_b2 = vec4<u32>();
  let b_line3 = (i32(lane) + 384i) / 8i;
  let b_unit3 = (i32(lane) + 384i) % 8i;
  var next_b3 = vec4<u32>();
  var c0_0 = subgroup_matrix_result<f32, 16, 16>();
  var c0_1 = subgroup_matrix_result<f32, 16, 16>();
  next_a0 = load_a(row + a_line0, 0i + a_unit0 * 8i);
  next_a1 = load_a(row + a_line1, 0i + a_unit1 * 8i);
  next_b0 = load_b(0i + b_line0, column + b_unit0 * 8i);
  next_b1 = load_b(0i + b_line1, column + b_unit1 * 8i);
  next_b2 = load_b(0i + b_line2, column + b_unit2 * 8i);
  next_b3 = load_b(0i + b_line3, column + b_unit3 * 8i);
  tile_a[0i + a_line0 * 9i + a_unit0] = next_a0;
  tile_a[0i + a_line1 * 9i + a_unit1] = next_a1;
  tile_b[0i + b_line0 * 9i + b_unit0] = next_b0;
  tile_b[0i + b_line1 * 9i + b_unit1] = next_b1;
  tile_b[0i + b_line2 * 9i + b_unit2] = next_b2;
  tile_b[0i + b_line3 * 9i + b_unit3] = next_b3;
  workgroupBarrier();
  for (var base = 0i; base < 128i; base += 128i) {
    next_a0 = load_a(row + a_line0, base + 64i + a_unit0 * 8i);
    next_a1 = load_a(row + a_line1, base + 64i + a_unit1 * 8i);
    next_b0 = load_b(base + 64i + b_line0, column + b_unit0 * 8i);
    next_b1 = load_b(base + 64i + b_line1, column + b_unit1 * 8i);
    next_b2 = load_b(base + 64i + b_line2, column + b_unit2 * 8i);
    next_b3 = load_b(base + 64i + b_line3, column + b_unit3 * 8i);
    let a0_0 = subgroupMatrixLoad<subgroup_matrix_left<f16, 16, 16>, row_major>(&tile_a, (upper + 0u) * 9u + 0u, 9u);
    let b0_0 = subgroupMatrixLoad<subgroup_matrix_right<f16, 16, 16>, row_major>(&tile_b, (left + 0u) / 8u + 0u, 9u);
    c0_0 = subgroupMatrixMultiplyAccumulate(a0_0, b0_0, c0_0);
    let b0_1 = subgroupMatrixLoad<subgroup_matrix_right<f16, 16, 16>, row_major>(&tile_b, (left + 16u) / 8u + 0u, 9u);
    c0_1 = subgroupMatrixMultiplyAccumulate(a0_0, b0_1, c0_1);
    let a1_0 = subgroupMatrixLoad<subgroup_matrix_left<f16, 16, 16>, row_major>(&tile_a, (upper + 0u) * 9u + 2u, 9u);
    let b1_0 = subgroupMatrixLoad<subgroup_matrix_right<f16, 16, 16>, row_major>(&tile_b, (left + 0u) / 8u + 144u, 9u);
    c0_0 = subgroupMatrixMultiplyAccumulate(a1_0, b1_0, c0_0);
    let b1_1 = subgroupMatrixLoad<subgroup_matrix_right<f16, 16, 16>, row_major>(&tile_b, (left + 16u) / 8u + 144u, 9u);
    c0_1 = subgroupMatrixMultiplyAccumulate(a1_0, b1_1, c0_1);
    let a2_0 = subgroupMatrixLoad<subgroup_matrix_left<f16, 16, 16>, row_major>(&tile_a, (upper + 0u) * 9u + 4u, 9u);
    let b2_0 = subgroupMatrixLoad<subgroup_matrix_right<f16, 16, 16>, row_major>(&tile_b, (left + 0u) / 8u + 288u, 9u);
    c0_0 = subgroupMatrixMultiplyAccumulate(a2_0, b2_0, c0_0);
    let b2_1 = subgroupMatrixLoad<subgroup_matrix_right<f16, 16, 16>, row_major>(&tile_b, (left + 16u) / 8u + 288u, 9u);
    c0_1 = subgroupMatrixMultiplyAccumulate(a2_0, b2_1, c0_1);
    let a3_0 = subgroupMatrixLoad<subgroup_matrix_left<f16, 16, 16>, row_major>(&tile_a, (upper + 0u) * 9u + 6u, 9u);
    let b3_0 = subgroupMatrixLoad<subgroup_matrix_right<f16, 16, 16>, row_major>(&tile_b, (left + 0u) / 8u + 432u, 9u);
    c0_0 = subgroupMatrixMultiplyAccumulate(a3_0, b3_0, c0_0);
    let b3_1 = subgroupMatrixLoad<subgroup_matrix_right<f16, 16, 16>, row_major>(&tile_b, (left + 16u) / 8u + 432u, 9u);
    c0_1 = subgroupMatrixMultiplyAccumulate(a3_0, b3_1, c0_1);
    tile_a[288i + a_line0 * 9i + a_unit0] = next_a0;
    tile_a[288i + a_line1 * 9i + a_unit1] = next_a1;
    tile_b[576i + b_line0 * 9i + b_unit0] = next_b0;
    tile_b[576i + b_line1 * 9i + b_unit1] = next_b1;
    tile_b[576i + b_line2 * 9i + b_unit2] = next_b2;
    tile_b[576i + b_line3 * 9i + b_unit3] = next_b3;
    workgroupBarrier();
    next_a0 = load_a(row + a_line0, base + 128i + a_unit0 * 8i);
    next_a1 = load_a(row + a_line1, base + 128i + a_unit1 * 8i);
    next_b0 = load_b(base + 128i + b_line0, column + b_unit0 * 8i);
    next_b1 = load_b(base + 128i + b_line1, column + b_unit1 * 8i);
    next_b2 = load_b(base + 128i + b_line2, column + b_unit2 * 8i);
    next_b3 = load_b(base + 128i + b_line3, column + b_unit3 * 8i);
    let a4_0 = subgroupMatrixLoad<subgroup_matrix_left<f16, 16, 16>, row_major>(&tile_a, (upper + 0u) * 9u + 288u, 9u);
    let b4_0 = subgroupMatrixLoad<subgroup_matrix_right<f16, 16, 16>, row_major>(&tile_b, (left + 0u) / 8u + 576u, 9u);
    c0_0 = subgroupMatrixMultiplyAccumulate(a4_0, b4_0, c0_0);
    let b4_1 = subgroupMatrixLoad<subgroup_matrix_right<f16, 16, 16>, row_major>(&tile_b, (left + 16u) / 8u + 576u, 9u);
    c0_1 = subgroupMatrixMultiplyAccumulate(a4_0, b4_1, c0_1);
    let a5_0 = subgroupMatrixLoad<subgroup_matrix_left<f16, 16, 16>, row_major>(&tile_a, (upper + 0u) * 9u + 290u, 9u);
    let b5_0 = subgroupMatrixLoad<subgroup_matrix_right<f16, 16, 16>, row_major>(&tile_b, (left + 0u) / 8u + 720u, 9u);
    c0_0 = subgroupMatrixMultiplyAccumulate(a5_0, b5_0, c0_0);
    let b5_1 = subgroupMatrixLoad<subgroup_matrix_right<f16, 16, 16>, row_major>(&tile_b, (left + 16u) / 8u + 720u, 9u);
    c0_1 = subgroupMatrixMultiplyAccumulate(a5_0, b5_1, c0_1);
    let a6_0 = subgroupMatrixLoad<subgroup_matrix_left<f16, 16, 16>, row_major>(&tile_a, (upper + 0u) * 9u + 292u, 9u);
    let b6_0 = subgroupMatrixLoad<subgroup_matrix_right<f16, 16, 16>, row_major>(&tile_b, (left + 0u) / 8u + 864u, 9u);
    c0_0 = subgroupMatrixMultiplyAccumulate(a6_0, b6_0, c0_0);
    let b6_1 = subgroupMatrixLoad<subgroup_matrix_right<f16, 16, 16>, row_major>(&tile_b, (left + 16u) / 8u + 864u, 9u);
    c0_1 = subgroupMatrixMultiplyAccumulate(a6_0, b6_1, c0_1);
    let a7_0 = subgroupMatrixLoad<subgroup_matrix_left<f16, 16, 16>, row_major>(&tile_a, (upper + 0u) * 9u + 294u, 9u);
    let b7_0 = subgroupMatrixLoad<subgroup_matrix_right<f16, 16, 16>, row_major>(&tile_b, (left + 0u) / 8u + 1008u, 9u);
    c0_0 = subgroupMatrixMultiplyAccumulate(a7_0, b7_0, c0_0);
    let b7_1 = subgroupMatrixLoad<subgroup_matrix_right<f16, 16, 16>, row_major>(&tile_b, (left + 16u) / 8u + 1008u, 9u);
    c0_1 = subgroupMatrixMultiplyAccumulate(a7_0, b7_1, c0_1);
    tile_a[0i + a_line0 * 9i + a_unit0] = next_a0;
    tile_a[0i + a_line1 * 9i + a_unit1] = next_a1;
    tile_b[0i + b_line0 * 9i + b_unit0] = next_b0;
    tile_b[0i + b_line1 * 9i + b_unit1] = next_b1;
    tile_b[0i + b_line2 * 9i + b_unit2] = next_b2;
    tile_b[0i + b_line3 * 9i + b_unit3] = next_b3;
    workgroupBarrier();
  }
  drain(row + i32(upper) + 0i, column + i32(left) + 0i, subgroup * 64u, member, c0_0);
  drain(row + i32(upper) + 0i, column + i32(left) + 16i, subgroup * 64u, member, c0_1);
}
