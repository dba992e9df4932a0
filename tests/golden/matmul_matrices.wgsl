enable f16;
enable subgroups;
enable chromium_experimental_subgroup_matrix;

@group(0) @binding(0) var<storage, read> b0: array<vec4<u32>>;
@group(0) @binding(1) var<storage, read> b1: array<vec4<u32>>;
@group(0) @binding(2) var<storage, read> b2: array<vec4<f16>>;
@group(0) @binding(3) var<storage, read_write> b3: array<vec4<f16>>;
@group(0) @binding(4) var<uniform> sizes: array<vec4<i32>, 2>;
var<workgroup> tile_a: array<vec4<u32>, 320>;
var<workgroup> tile_b: array<vec4<u32>, 320>;

fn is_nan(x: f32) -> bool { return (bitcast<u32>(x) & 0x7fffffffu) > 0x7f800000u; }

fn max_number(a: f32, number: f32) -> f32 { return select(max(a, number), a, is_nan(a)); }

fn load_a(m: i32, k: i32) -> vec4<u32> {
  if (m >= sizes[0].x) { return vec4<u32>(0); }
  return b0[((m * 128i) + k) / 8i];
}

fn load_b(k: i32, n: i32) -> vec4<u32> {
  return b1[((k * 320i) + n) / 8i];
}

fn store_c(m: i32, n: i32, a0: vec4<f32>) {
  if (m >= sizes[0].x) { return; }
  let v1 = vec4<f32>(b2[n / 4i]);
  b3[((m * 320i) + n) / 4i] = vec4<f16>(f16(max_number((a0.x + v1.x), 0.0f)), f16(max_number((a0.y + v1.y), 0.0f)), f16(max_number((a0.z + v1.z), 0.0f)), f16(max_number((a0.w + v1.w), 0.0f)));
}

fn drain(m: i32, n: i32, first: u32, member: u32, sum: subgroup_matrix_result<f32, 16, 16>) {
  subgroupMatrixStore<row_major>(&tile_b, first, sum, 4u);
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
  if (tile >= sizes[0].w) { return; }
  let column = tile % 10i * 32i;
  let strip = tile / 10i;
  let row = strip % sizes[1].x * 32i;
  let batch = strip / sizes[1].x;
  let upper = subgroup / 2u * 16u;
  let left = subgroup % 2u * 16u;
  let a_line0 = i32(lane) / 4i;
  let a_unit0 = i32(lane) % 4i;
  var next_a0 = vec4<u32>();
  let b_line0 = i32(lane) / 4i;
  let b_unit0 = i32(lane) % 4i;
  var next_b0 = vec4<u32>();
  var c0_0 = subgroup_matrix_result<f32, 16, 16>();
  next_a0 = load_a(row + a_line0, 0i + a_unit0 * 8i);
  next_b0 = load_b(0i + b_line0, column + b_unit0 * 8i);
  tile_a[0i + a_line0 * 5i + a_unit0] = next_a0;
  tile_b[0i + b_line0 * 5i + b_unit0] = next_b0;
  workgroupBarrier();
  for (var base = 0i; base < 128i; base += 64i) {
    next_a0 = load_a(row + a_line0, base + 32i + a_unit0 * 8i);
    next_b0 = load_b(base + 32i + b_line0, column + b_unit0 * 8i);
    let a0_0 = subgroupMatrixLoad<subgroup_matrix_left<f16, 16, 16>, row_major>(&tile_a, (upper + 0u) * 5u + 0u, 5u);
    let b0_0 = subgroupMatrixLoad<subgroup_matrix_right<f16, 16, 16>, row_major>(&tile_b, (left + 0u) / 8u + 0u, 5u);
    c0_0 = subgroupMatrixMultiplyAccumulate(a0_0, b0_0, c0_0);
    let a1_0 = subgroupMatrixLoad<subgroup_matrix_left<f16, 16, 16>, row_major>(&tile_a, (upper + 0u) * 5u + 2u, 5u);
    let b1_0 = subgroupMatrixLoad<subgroup_matrix_right<f16, 16, 16>, row_major>(&tile_b, (left + 0u) / 8u + 80u, 5u);
    c0_0 = subgroupMatrixMultiplyAccumulate(a1_0, b1_0, c0_0);
    tile_a[160i + a_line0 * 5i + a_unit0] = next_a0;
    tile_b[160i + b_line0 * 5i + b_unit0] = next_b0;
    workgroupBarrier();
    next_a0 = load_a(row + a_line0, base + 64i + a_unit0 * 8i);
    next_b0 = load_b(base + 64i + b_line0, column + b_unit0 * 8i);
    let a2_0 = subgroupMatrixLoad<subgroup_matrix_left<f16, 16, 16>, row_major>(&tile_a, (upper + 0u) * 5u + 160u, 5u);
    let b2_0 = subgroupMatrixLoad<subgroup_matrix_right<f16, 16, 16>, row_major>(&tile_b, (left + 0u) / 8u + 160u, 5u);
    c0_0 = subgroupMatrixMultiplyAccumulate(a2_0, b2_0, c0_0);
    let a3_0 = subgroupMatrixLoad<subgroup_matrix_left<f16, 16, 16>, row_major>(&tile_a, (upper + 0u) * 5u + 162u, 5u);
    let b3_0 = subgroupMatrixLoad<subgroup_matrix_right<f16, 16, 16>, row_major>(&tile_b, (left + 0u) / 8u + 240u, 5u);
    c0_0 = subgroupMatrixMultiplyAccumulate(a3_0, b3_0, c0_0);
    tile_a[0i + a_line0 * 5i + a_unit0] = next_a0;
    tile_b[0i + b_line0 * 5i + b_unit0] = next_b0;
    workgroupBarrier();
  }
  drain(row + i32(upper) + 0i, column + i32(left) + 0i, subgroup * 64u, member, c0_0);
}
