@group(0) @binding(0) var<storage, read> b0: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read> b1: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read_write> b2: array<vec4<f32>>;
var<workgroup> tile_a: array<array<vec4<f32>, 4>, 64>;
var<workgroup> tile_b: array<array<vec4<f32>, 4>, 64>;

fn is_nan(x: f32) -> bool { return (bitcast<u32>(x) & 0x7fffffffu) > 0x7f800000u; }

fn max_number(a: f32, number: f32) -> f32 { return select(max(a, number), a, is_nan(a)); }

fn min_number(a: f32, number: f32) -> f32 { return select(min(a, number), a, is_nan(a)); }

fn load_a(t0: i32, m: i32, k: i32) -> vec4<f32> {
  if (m >= 196i || k >= 216i) { return vec4<f32>(0); }
  let v1 = ((min(max((((m / 14i) + (k / 72i)) + -1i), 0i), 13i) * 336i) + (min(max((((m % 14i) + ((k / 24i) % 3i)) + -1i), 0i), 13i) * 24i));
  let v2 = (((m / 14i) + (k / 72i)) + -1i);
  let v3 = (((m % 14i) + ((k / 24i) % 3i)) + -1i);
  return select(vec4<f32>(0.0f), b0[(v1 + (k % 24i)) / 4i], (((0i <= v2) && (v2 < 14i)) && ((0i <= v3) && (v3 < 14i))));
}

fn load_b(t0: i32, k: i32, n: i32) -> vec4<f32> {
  if (k >= 216i) { return vec4<f32>(0); }
  return b1[((k * 48i) + n) / 4i];
}

fn store_c(t0: i32, m: i32, n: i32, a0: vec4<f32>) {
  if (m >= 196i) { return; }
  b2[((m * 48i) + n) / 4i] = vec4<f32>(min_number(max_number(a0.x, 0.0f), 6.0f), min_number(max_number(a0.y, 0.0f), 6.0f), min_number(max_number(a0.z, 0.0f), 6.0f), min_number(max_number(a0.w, 0.0f), 6.0f));
}

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
  let tile = i32(group.x + group.y * groups.x);
  let column = tile % 3i * 16i;
  let strip = tile / 3i;
  let row = strip % 13i * 16i;
  let batch = strip / 13i;
  let member = i32(lane) % 16i;
  let x = member % 4i;
  let y = member / 4i;
  let slice = i32(lane) / 16i;
  let a_deep0 = member % 4i * 4i;
  let a_side0 = member / 4i;
  var next_a0_0 = vec4<f32>();
  var next_a0_1 = vec4<f32>();
  var next_a0_2 = vec4<f32>();
  var next_a0_3 = vec4<f32>();
  let b_deep0 = member / 4i;
  let b_side0 = member % 4i;
  var next_b0 = vec4<f32>();
  let b_deep1 = (member + 16i) / 4i;
  let b_side1 = (member + 16i) % 4i;
  var next_b1 = vec4<f32>();
  let b_deep2 = (member + 32i) / 4i;
  let b_side2 = (member + 32i) % 4i;
  var next_b2 = vec4<f32>();
  let b_deep3 = (member + 48i) / 4i;
  let b_side3 = (member + 48i) % 4i;
  var next_b3 = vec4<f32>();
  var c0_0 = vec4<f32>();
  var c1_0 = vec4<f32>();
  var c2_0 = vec4<f32>();
  var c3_0 = vec4<f32>();
  next_a0_0 = load_a(0i, row + a_side0 * 4i, 0i + slice * 16i + a_deep0);
  next_a0_1 = load_a(0i, row + a_side0 * 4i + 1i, 0i + slice * 16i + a_deep0);
  next_a0_2 = load_a(0i, row + a_side0 * 4i + 2i, 0i + slice * 16i + a_deep0);
  next_a0_3 = load_a(0i, row + a_side0 * 4i + 3i, 0i + slice * 16i + a_deep0);
  next_b0 = load_b(0i, 0i + slice * 16i + b_deep0, column + b_side0 * 4i);
  next_b1 = load_b(0i, 0i + slice * 16i + b_deep1, column + b_side1 * 4i);
  next_b2 = load_b(0i, 0i + slice * 16i + b_deep2, column + b_side2 * 4i);
  next_b3 = load_b(0i, 0i + slice * 16i + b_deep3, column + b_side3 * 4i);
  for (var base = 0i; base < 216i; base += 64i) {
    tile_a[slice * 16i + a_deep0][a_side0] = vec4<f32>(next_a0_0.x, next_a0_1.x, next_a0_2.x, next_a0_3.x);
    tile_a[slice * 16i + a_deep0 + 1i][a_side0] = vec4<f32>(next_a0_0.y, next_a0_1.y, next_a0_2.y, next_a0_3.y);
    tile_a[slice * 16i + a_deep0 + 2i][a_side0] = vec4<f32>(next_a0_0.z, next_a0_1.z, next_a0_2.z, next_a0_3.z);
    tile_a[slice * 16i + a_deep0 + 3i][a_side0] = vec4<f32>(next_a0_0.w, next_a0_1.w, next_a0_2.w, next_a0_3.w);
    tile_b[slice * 16i + b_deep0][b_side0] = next_b0;
    tile_b[slice * 16i + b_deep1][b_side1] = next_b1;
    tile_b[slice * 16i + b_deep2][b_side2] = next_b2;
    tile_b[slice * 16i + b_deep3][b_side3] = next_b3;
    workgroupBarrier();
    next_a0_0 = load_a(0i, row + a_side0 * 4i, base + 64i + slice * 16i + a_deep0);
    next_a0_1 = load_a(0i, row + a_side0 * 4i + 1i, base + 64i + slice * 16i + a_deep0);
    next_a0_2 = load_a(0i, row + a_side0 * 4i + 2i, base + 64i + slice * 16i + a_deep0);
    next_a0_3 = load_a(0i, row + a_side0 * 4i + 3i, base + 64i + slice * 16i + a_deep0);
    next_b0 = load_b(0i, base + 64i + slice * 16i + b_deep0, column + b_side0 * 4i);
    next_b1 = load_b(0i, base + 64i + slice * 16i + b_deep1, column + b_side1 * 4i);
    next_b2 = load_b(0i, base + 64i + slice * 16i + b_deep2, column + b_side2 * 4i);
    next_b3 = load_b(0i, base + 64i + slice * 16i + b_deep3, column + b_side3 * 4i);
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
  if (slice > 0i) {
    tile_b[(((slice - 1i) * 4i + 0i) * 16i + member) / 4i][(((slice - 1i) * 4i + 0i) * 16i + member) % 4i] = c0_0;
    tile_b[(((slice - 1i) * 4i + 1i) * 16i + member) / 4i][(((slice - 1i) * 4i + 1i) * 16i + member) % 4i] = c1_0;
    tile_b[(((slice - 1i) * 4i + 2i) * 16i + member) / 4i][(((slice - 1i) * 4i + 2i) * 16i + member) % 4i] = c2_0;
    tile_b[(((slice - 1i) * 4i + 3i) * 16i + member) / 4i][(((slice - 1i) * 4i + 3i) * 16i + member) % 4i] = c3_0;
  }
  workgroupBarrier();
  if (slice > 0i) { return; }
  for (var other = 0i; other < 3i; other++) {
    c0_0 += tile_b[((other * 4i + 0i) * 16i + member) / 4i][((other * 4i + 0i) * 16i + member) % 4i];
    c1_0 += tile_b[((other * 4i + 1i) * 16i + member) / 4i][((other * 4i + 1i) * 16i + member) % 4i];
    c2_0 += tile_b[((other * 4i + 2i) * 16i + member) / 4i][((other * 4i + 2i) * 16i + member) % 4i];
    c3_0 += tile_b[((other * 4i + 3i) * 16i + member) / 4i][((other * 4i + 3i) * 16i + member) % 4i];
  }
  let top = row + y * 4i;
  let left = column + x * 4i;
  store_c(0i, top, left, c0_0);
  store_c(0i, top + 1i, left, c1_0);
  store_c(0i, top + 2i, left, c2_0);
  store_c(0i, top + 3i, left, c3_0);
}
