@group(0) @binding(0) var<storage, read> b0: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read> b1: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read_write> b2: array<vec4<f32>>;
var<workgroup> parts: array<array<vec4<f32>, 256>, 1>;

fn are_nan(x: vec4<f32>) -> vec4<bool> {
  return (bitcast<vec4<u32>>(x) & vec4<u32>(0x7fffffffu)) > vec4<u32>(0x7f800000u);
}

fn max_numbers(a: vec4<f32>, number: vec4<f32>) -> vec4<f32> { return select(max(a, number), a, are_nan(a)); }

fn min_numbers(a: vec4<f32>, number: vec4<f32>) -> vec4<f32> { return select(min(a, number), a, are_nan(a)); }

fn load_a(t0: i32, m: i32, k: i32) -> vec4<f32> {
  let v1 = (k / 72i);
  let v2 = ((k / 24i) % 3i);
  return select(vec4<f32>(0.0f), b0[(((((m * 24i) + (v1 * 336i)) + (v2 * 24i)) + (k % 24i)) + -360i) / 4i], ((bitcast<u32>((((m / 14i) + v1) + -1i)) < 14u) && (bitcast<u32>((((m % 14i) + v2) + -1i)) < 14u)));
}

fn load_b(t0: i32, k: i32, n: i32) -> vec4<f32> {
  return b1[((k * 48i) + n) / 4i];
}

fn store_c(t0: i32, m: i32, n: i32, a0: vec4<f32>) {
  b2[((m * 48i) + n) / 4i] = min_numbers(max_numbers(a0, vec4<f32>(0.0f)), vec4<f32>(6.0f));
}

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
  let tile = i32(group.x + group.y * groups.x);
  let column = tile % 3i * 16i;
  let strip = tile / 3i;
  let row = strip % 196i * 1i;
  let batch = strip / 196i;
  let side = column + i32(lane) % 4i * 4i;
  let slice = i32(lane) / 4i;
  var c0 = vec4<f32>();
  for (var deep = slice * 4i; deep < 216i; deep += 256i) {
    let a0 = load_a(0i, row, deep);
    let right0 = load_b(0i, deep, side);
    let right1 = load_b(0i, deep + 1i, side);
    let right2 = load_b(0i, deep + 2i, side);
    let right3 = load_b(0i, deep + 3i, side);
    c0 += a0.x * right0;
    c0 += a0.y * right1;
    c0 += a0.z * right2;
    c0 += a0.w * right3;
  }
  parts[0][lane] = c0;
  workgroupBarrier();
  if (slice < 16i) {
    for (var other = lane + 64u; other < 256u; other += 64u) {
      c0 += parts[0][other];
    }
    parts[0][lane] = c0;
  }
  workgroupBarrier();
  if (slice > 0i) { return; }
  for (var other = lane + 4u; other < 64u; other += 4u) {
    c0 += parts[0][other];
  }
  store_c(0i, row, side, c0);
}
