@group(0) @binding(0) var<storage, read> b0: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read> b1: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read_write> b2: array<vec4<f32>>;
var<workgroup> parts: array<array<vec4<f32>, 256>, 4>;

fn is_nan(x: f32) -> bool { return (bitcast<u32>(x) & 0x7fffffffu) > 0x7f800000u; }

fn max_f32(a: f32, b: f32) -> f32 { return select(select(max(a, b), b, is_nan(b)), a, is_nan(a)); }

fn max_number(a: f32, number: f32) -> f32 { return select(max(a, number), a, is_nan(a)); }

fn load_a(t0: i32, m: i32, k: i32) -> vec4<f32> {
  if (k >= 216i) { return vec4<f32>(0); }
  let v1 = ((min(max((((((m / 28i) * 2i) + ((m / 2i) % 2i)) + (k / 72i)) + -1i), 0i), 13i) * 336i) + (min(max(((((((m / 4i) % 7i) * 2i) + (m % 2i)) + ((k / 24i) % 3i)) + -1i), 0i), 13i) * 24i));
  let v2 = (((((m / 28i) * 2i) + ((m / 2i) % 2i)) + (k / 72i)) + -1i);
  let v3 = ((((((m / 4i) % 7i) * 2i) + (m % 2i)) + ((k / 24i) % 3i)) + -1i);
  return select(vec4<f32>(0.0f), b0[(v1 + (k % 24i)) / 4i], (((0i <= v2) && (v2 < 14i)) && ((0i <= v3) && (v3 < 14i))));
}

fn load_b(t0: i32, k: i32, n: i32) -> vec4<f32> {
  if (k >= 216i) { return vec4<f32>(0); }
  return b1[((k * 48i) + n) / 4i];
}

fn store_c(t0: i32, m: i32, n: i32, a0: vec4<f32>, a1: vec4<f32>, a2: vec4<f32>, a3: vec4<f32>) {
  let v4 = max_f32(max_f32(max_f32(max_number(a0.x, 0.0f), max_number(a1.x, 0.0f)), max_number(a2.x, 0.0f)), max_number(a3.x, 0.0f));
  let v5 = max_f32(max_f32(max_f32(max_number(a0.y, 0.0f), max_number(a1.y, 0.0f)), max_number(a2.y, 0.0f)), max_number(a3.y, 0.0f));
  let v6 = max_f32(max_f32(max_f32(max_number(a0.z, 0.0f), max_number(a1.z, 0.0f)), max_number(a2.z, 0.0f)), max_number(a3.z, 0.0f));
  let v7 = max_f32(max_f32(max_f32(max_number(a0.w, 0.0f), max_number(a1.w, 0.0f)), max_number(a2.w, 0.0f)), max_number(a3.w, 0.0f));
  b2[((m * 48i) + n) / 4i] = vec4<f32>(v4, v5, v6, v7);
}

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
  let tile = i32(group.x + group.y * groups.x);
  let column = tile % 3i * 16i;
  let strip = tile / 3i;
  let row = strip % 49i * 4i;
  let batch = strip / 49i;
  let side = column + i32(lane) % 4i * 4i;
  let slice = i32(lane) / 4i;
  var c0 = vec4<f32>();
  var c1 = vec4<f32>();
  var c2 = vec4<f32>();
  var c3 = vec4<f32>();
  for (var deep = slice * 4i; deep < 216i; deep += 256i) {
    let a0 = load_a(0i, row, deep);
    let a1 = load_a(0i, row + 1i, deep);
    let a2 = load_a(0i, row + 2i, deep);
    let a3 = load_a(0i, row + 3i, deep);
    let right0 = load_b(0i, deep, side);
    let right1 = load_b(0i, deep + 1i, side);
    let right2 = load_b(0i, deep + 2i, side);
    let right3 = load_b(0i, deep + 3i, side);
    c0 += a0.x * right0;
    c1 += a1.x * right0;
    c2 += a2.x * right0;
    c3 += a3.x * right0;
    c0 += a0.y * right1;
    c1 += a1.y * right1;
    c2 += a2.y * right1;
    c3 += a3.y * right1;
    c0 += a0.z * right2;
    c1 += a1.z * right2;
    c2 += a2.z * right2;
    c3 += a3.z * right2;
    c0 += a0.w * right3;
    c1 += a1.w * right3;
    c2 += a2.w * right3;
    c3 += a3.w * right3;
  }
  parts[0][lane] = c0;
  parts[1][lane] = c1;
  parts[2][lane] = c2;
  parts[3][lane] = c3;
  workgroupBarrier();
  if (slice < 8i) {
    for (var other = lane + 32u; other < 256u; other += 32u) {
      c0 += parts[0][other];
      c1 += parts[1][other];
      c2 += parts[2][other];
      c3 += parts[3][other];
    }
    parts[0][lane] = c0;
    parts[1][lane] = c1;
    parts[2][lane] = c2;
    parts[3][lane] = c3;
  }
  workgroupBarrier();
  if (slice > 0i) { return; }
  for (var other = lane + 4u; other < 32u; other += 4u) {
    c0 += parts[0][other];
    c1 += parts[1][other];
    c2 += parts[2][other];
    c3 += parts[3][other];
  }
  store_c(0i, (row) / 4i, side, c0, c1, c2, c3);
}
