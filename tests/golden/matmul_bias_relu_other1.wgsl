@group(0) @binding(0) var<storage, read> b0: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read> b1: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> b2: array<vec4<f32>>;
@group(0) @binding(3) var<storage, read_write> b3: array<vec4<f32>>;
@group(0) @binding(4) var<uniform> sizes: array<vec4<i32>, 1>;
var<workgroup> tile_a: array<array<vec4<f32>, 4>, 64>;
var<workgroup> tile_b: array<array<vec4<f32>, 8>, 64>;

fn are_nan(x: vec4<f32>) -> vec4<bool> {
  return (bitcast<vec4<u32>>(x) & vec4<u32>(0x7fffffffu)) > vec4<u32>(0x7f800000u);
}

fn max_numbers(a: vec4<f32>, number: vec4<f32>) -> vec4<f32> { return select(max(a, number), a, are_nan(a)); }

fn load_a(m: i32, k: i32) -> vec4<f32> {
  if (m >= sizes[0].x) { return vec4<f32>(0); }
  return b0[((m * 128i) + k) / 4i];
}

fn load_b(k: i32, n: i32) -> vec4<f32> {
  return b1[((k * 320i) + n) / 4i];
}

fn store_c(m: i32, n: i32, a0: vec4<f32>) {
  if (m >= sizes[0].x) { return; }
  b3[((m * 320i) + n) / 4i] = max_numbers((a0 + b2[n / 4i]), vec4<f32>(0.0f));
}

@compute @workgroup_size(128)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
  let tile = i32(group.x + group.y * groups.x);
  if (tile >= sizes[0].y) { return; }
  let column = tile % 10i * 32i;
  let strip = tile / 10i;
  let row = strip % sizes[0].z * 16i;
  let batch = strip / sizes[0].z;
  let member = i32(lane) % 32i;
  let x = member % 8i;
  let y = member / 8i;
  let slice = i32(lane) / 32i;
  let a_deep0 = member % 4i * 4i;
  let a_side0 = member / 4i;
  var next_a0_0 = vec4<f32>();
  var next_a0_1 = vec4<f32>();
  var next_a0_2 = vec4<f32>();
  var next_a0_3 = vec4<f32>();
  let b_deep0 = member / 8i;
  let b_side0 = member % 8i;
  var next_b0 = vec4<f32>();
  let b_deep1 = (member + 32i) / 8i;
  let b_side1 = (member + 32i) % 8i;
  var next_b1 = vec4<f32>();
  let b_deep2 = (member + 64i) / 8i;
  let b_side2 = (member + 64i) % 8i;
  var next_b2 = vec4<f32>();
  let b_deep3 = (member + 96i) / 8i;
  let b_side3 = (member + 96i) % 8i;
  var next_b3 = vec4<f32>();
  var c0_0 = vec4<f32>();
  var c1_0 = vec4<f32>();
  var c2_0 = vec4<f32>();
  var c3_0 = vec4<f32>();
  for (var base = 0i; ; base += 64i) {
    next_a0_0 = load_a(row + a_side0 * 4i, base + slice * 16i + a_deep0);
    next_a0_1 = load_a(row + a_side0 * 4i + 1i, base + slice * 16i + a_deep0);
    next_a0_2 = load_a(row + a_side0 * 4i + 2i, base + slice * 16i + a_deep0);
    next_a0_3 = load_a(row + a_side0 * 4i + 3i, base + slice * 16i + a_deep0);
    next_b0 = load_b(base + slice * 16i + b_deep0, column + b_side0 * 4i);
    next_b1 = load_b(base + slice * 16i + b_deep1, column + b_side1 * 4i);
    next_b2 = load_b(base + slice * 16i + b_deep2, column + b_side2 * 4i);
    next_b3 = load_b(base + slice * 16i + b_deep3, column + b_side3 * 4i);
    if (base > 0i) {
      for (var first = 0i; first < 16i; first += 4i) {
        let left0_0 = tile_a[slice * 16i + first][y];
        let right0_0 = tile_b[slice * 16i + first][x];
        c0_0 += left0_0.x * right0_0;
        c1_0 += left0_0.y * right0_0;
        c2_0 += left0_0.z * right0_0;
        c3_0 += left0_0.w * right0_0;
        let left1_0 = tile_a[slice * 16i + first + 1i][y];
        let right1_0 = tile_b[slice * 16i + first + 1i][x];
        c0_0 += left1_0.x * right1_0;
        c1_0 += left1_0.y * right1_0;
        c2_0 += left1_0.z * right1_0;
        c3_0 += left1_0.w * right1_0;
        let left2_0 = tile_a[slice * 16i + first + 2i][y];
        let right2_0 = tile_b[slice * 16i + first + 2i][x];
        c0_0 += left2_0.x * right2_0;
        c1_0 += left2_0.y * right2_0;
        c2_0 += left2_0.z * right2_0;
        c3_0 += left2_0.w * right2_0;
        let left3_0 = tile_a[slice * 16i + first + 3i][y];
        let right3_0 = tile_b[slice * 16i + first + 3i][x];
        c0_0 += left3_0.x * right3_0;
        c1_0 += left3_0.y * right3_0;
        c2_0 += left3_0.z * right3_0;
        c3_0 += left3_0.w * right3_0;
      }
      workgroupBarrier();
    }
    if (base >= 128i) { break; }
    if (member < 16i) {
      tile_a[slice * 16i + a_deep0][a_side0] = vec4<f32>(next_a0_0.x, next_a0_1.x, next_a0_2.x, next_a0_3.x);
      tile_a[slice * 16i + a_deep0 + 1i][a_side0] = vec4<f32>(next_a0_0.y, next_a0_1.y, next_a0_2.y, next_a0_3.y);
      tile_a[slice * 16i + a_deep0 + 2i][a_side0] = vec4<f32>(next_a0_0.z, next_a0_1.z, next_a0_2.z, next_a0_3.z);
      tile_a[slice * 16i + a_deep0 + 3i][a_side0] = vec4<f32>(next_a0_0.w, next_a0_1.w, next_a0_2.w, next_a0_3.w);
    }
    tile_b[slice * 16i + b_deep0][b_side0] = next_b0;
    tile_b[slice * 16i + b_deep1][b_side1] = next_b1;
    tile_b[slice * 16i + b_deep2][b_side2] = next_b2;
    tile_b[slice * 16i + b_deep3][b_side3] = next_b3;
    workgroupBarrier();
  }
  if (slice > 0i) {
    tile_b[((slice - 1i) * 4i + 0i) * 4i + y][x] = c0_0;
    tile_b[((slice - 1i) * 4i + 1i) * 4i + y][x] = c1_0;
    tile_b[((slice - 1i) * 4i + 2i) * 4i + y][x] = c2_0;
    tile_b[((slice - 1i) * 4i + 3i) * 4i + y][x] = c3_0;
  }
  workgroupBarrier();
  if (slice > 0i) { return; }
  for (var other = 0i; other < 3i; other++) {
    c0_0 += tile_b[(other * 4i + 0i) * 4i + y][x];
    c1_0 += tile_b[(other * 4i + 1i) * 4i + y][x];
    c2_0 += tile_b[(other * 4i + 2i) * 4i + y][x];
    c3_0 += tile_b[(other * 4i + 3i) * 4i + y][x];
  }
  let top = row + y * 4i;
  let left = column + x * 4i;
  store_c(top, left, c0_0);
  store_c(top + 1i, left, c1_0);
  store_c(top + 2i, left, c2_0);
  store_c(top + 3i, left, c3_0);
}
