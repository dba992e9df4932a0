@group(0) @binding(0) var<storage, read> b0: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read> b1: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read_write> b2: array<vec4<f32>>;
var<workgroup> parts: array<array<vec4<f32>, 256>, 4>;

fn are_nan(x: vec4<f32>) -> vec4<bool> {
  return (bitcast<vec4<u32>>(x) & vec4<u32>(0x7fffffffu)) > vec4<u32>(0x7f800000u);
}

fn max_f32s(a: vec4<f32>, b: vec4<f32>) -> vec4<f32> {
  return select(select(max(a, b), b, are_nan(b)), a, are_nan(a));
}

fn max_numbers(a: vec4<f32>, number: vec4<f32>) -> vec4<f32> { return select(max(a, number), a, are_nan(a)); }

fn load_a(t0: i32, q: i32, k: i32) -> array<vec4<f32>, 4> {
  let v1 = (q / 7i);
  let v2 = (k / 72i);
  let v3 = ((v1 * 672i) + (v2 * 336i));
  let v4 = (q % 7i);
  let v5 = (v4 * 48i);
  let v6 = ((k / 24i) % 3i);
  let v7 = (v6 * 24i);
  let v8 = ((v3 + v5) + v7);
  let v9 = (k % 24i);
  let v10 = (v1 * 2i);
  let v11 = (bitcast<u32>(((v10 + v2) + -1i)) < 14u);
  let v12 = (v4 * 2i);
  let v13 = (bitcast<u32>(((v12 + v6) + -1i)) < 14u);
  let v14 = (bitcast<u32>((((v12 + 1i) + v6) + -1i)) < 14u);
  let v15 = (((v3 + 336i) + v5) + v7);
  let v16 = (bitcast<u32>((((v10 + 1i) + v2) + -1i)) < 14u);
  return array<vec4<f32>, 4>(select(vec4<f32>(0.0f), b0[((v8 + v9) + -360i) / 4i], (v11 && v13)), select(vec4<f32>(0.0f), b0[(((v8 + 24i) + v9) + -360i) / 4i], (v11 && v14)), select(vec4<f32>(0.0f), b0[((v15 + v9) + -360i) / 4i], (v16 && v13)), select(vec4<f32>(0.0f), b0[(((v15 + 24i) + v9) + -360i) / 4i], (v16 && v14)));
}

fn load_b(t0: i32, k: i32, n: i32) -> vec4<f32> {
  return b1[((k * 48i) + n) / 4i];
}

fn store_c(t0: i32, m: i32, n: i32, a0: vec4<f32>, a1: vec4<f32>, a2: vec4<f32>, a3: vec4<f32>) {
  b2[((m * 48i) + n) / 4i] = max_f32s(max_f32s(max_f32s(max_numbers(a0, vec4<f32>(0.0f)), max_numbers(a1, vec4<f32>(0.0f))), max_numbers(a2, vec4<f32>(0.0f))), max_numbers(a3, vec4<f32>(0.0f)));
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
    let a0 = load_a(0i, row / 4i, deep);
    let right0 = load_b(0i, deep, side);
    let right1 = load_b(0i, deep + 1i, side);
    let right2 = load_b(0i, deep + 2i, side);
    let right3 = load_b(0i, deep + 3i, side);
    c0 += a0[0].x * right0;
    c1 += a0[1].x * right0;
    c2 += a0[2].x * right0;
    c3 += a0[3].x * right0;
    c0 += a0[0].y * right1;
    c1 += a0[1].y * right1;
    c2 += a0[2].y * right1;
    c3 += a0[3].y * right1;
    c0 += a0[0].z * right2;
    c1 += a0[1].z * right2;
    c2 += a0[2].z * right2;
    c3 += a0[3].z * right2;
    c0 += a0[0].w * right3;
    c1 += a0[1].w * right3;
    c2 += a0[2].w * right3;
    c3 += a0[3].w * right3;
  }
  parts[0][lane] = c0;
  parts[1][lane] = c1;
  parts[2][lane] = c2;
  parts[3][lane] = c3;
  workgroupBarrier();
  if (slice < 16i) {
    for (var other = lane + 64u; other < 256u; other += 64u) {
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
  for (var other = lane + 4u; other < 64u; other += 4u) {
    c0 += parts[0][other];
    c1 += parts[1][other];
    c2 += parts[2][other];
    c3 += parts[3][other];
  }
  store_c(0i, (row) / 4i, side, c0, c1, c2, c3);
}
