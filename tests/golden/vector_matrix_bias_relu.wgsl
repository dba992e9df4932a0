@group(0) @binding(0) var<storage, read> b0: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read> b1: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> b2: array<vec4<f32>>;
@group(0) @binding(3) var<storage, read_write> b3: array<vec4<f32>>;
var<workgroup> parts: array<array<vec4<f32>, 256>, 1>;

fn are_nan(x: vec4<f32>) -> vec4<bool> {
  return (bitcast<vec4<u32>>(x) & vec4<u32>(0x7fffffffu)) > vec4<u32>(0x7f800000u);
}

fn max_numbers(a: vec4<f32>, number: vec4<f32>) -> vec4<f32> { return select(max(a, number), a, are_nan(a)); }

fn load_a(m: i32, k: i32) -> vec4<f32> {
  return b0[k / 4i];
}

fn load_b(k: i32, n: i32) -> vec4<f32> {
  return b1[((k * 320i) + n) / 4i];
}

fn store_c(m: i32, n: i32, a0: vec4<f32>) {
  b3[n / 4i] = max_numbers((a0 + b2[n / 4i]), vec4<f32>(0.0f));
}

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
  let tile = i32(group.x + group.y * groups.x);
  let column = tile % 10i * 32i;
  let strip = tile / 10i;
  let row = strip % 1i * 1i;
  let batch = strip / 1i;
  let side = column + i32(lane) % 8i * 4i;
  let slice = i32(lane) / 8i;
  var c0 = vec4<f32>();
  for (var deep = slice * 4i; deep < 128i; deep += 128i) {
    let a0 = load_a(row, deep);
    let right0 = load_b(deep, side);
    let right1 = load_b(deep + 1i, side);
    let right2 = load_b(deep + 2i, side);
    let right3 = load_b(deep + 3i, side);
    c0 += a0.x * right0;
    c0 += a0.y * right1;
    c0 += a0.z * right2;
    c0 += a0.w * right3;
  }
  parts[0][lane] = c0;
  workgroupBarrier();
  if (slice < 16i) {
    for (var other = lane + 128u; other < 256u; other += 128u) {
      c0 += parts[0][other];
    }
    parts[0][lane] = c0;
  }
  workgroupBarrier();
  if (slice > 0i) { return; }
  for (var other = lane + 8u; other < 128u; other += 8u) {
    c0 += parts[0][other];
  }
  store_c(row, side, c0);
}
