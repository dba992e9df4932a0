@group(0) @binding(0) var<storage, read> b0: array<vec2<u32>>;
@group(0) @binding(1) var<storage, read> b1: array<vec2<u32>>;
@group(0) @binding(2) var<storage, read> b2: array<vec2<u32>>;
@group(0) @binding(3) var<storage, read_write> b3: array<vec2<u32>>;
@group(0) @binding(4) var<uniform> sizes: array<vec4<i32>, 1>;
var<workgroup> parts: array<array<vec4<f32>, 256>, 1>;

fn are_nan(x: vec4<f32>) -> vec4<bool> {
  return (bitcast<vec4<u32>>(x) & vec4<u32>(0x7fffffffu)) > vec4<u32>(0x7f800000u);
}

fn max_numbers(a: vec4<f32>, number: vec4<f32>) -> vec4<f32> { return select(max(a, number), a, are_nan(a)); }

fn four_halves(pairs: vec2<u32>) -> vec4<f32> { return vec4<f32>(unpack2x16float(pairs.x), unpack2x16float(pairs.y)); }

fn pair_of(x: f32, y: f32) -> u32 { return half_bits(x) | (half_bits(y) << 16u); }

fn half_bits(x: f32) -> u32 {
  // To the nearest, ties to even: of pack2x16float the rounding is open, and so are numbers too large.
  let size = bitcast<u32>(x) & 0x7fffffffu;
  let small = u32(round(bitcast<f32>(min(size, 0x38800000u)) * 16777216.0f));
  let normal = ((size + 0xfffu + ((size >> 13u) & 1u)) >> 13u) - 0x1c000u;
  let finite = select(normal, small, size < 0x38800000u);
  let bits = select(select(finite, 0x7c00u, size >= 0x477ff000u), 0x7e00u, size > 0x7f800000u);
  return bits | ((bitcast<u32>(x) >> 16u) & 0x8000u);
}

fn load_a(m: i32, k: i32) -> vec4<f32> {
  return four_halves(b0[((m * 128i) + k) / 4i]);
}

fn load_b(k: i32, n: i32) -> vec4<f32> {
  return four_halves(b1[((k * 320i) + n) / 4i]);
}

fn store_c(m: i32, n: i32, a0: vec4<f32>) {
  let v1 = max_numbers((a0 + four_halves(b2[n / 4i])), vec4<f32>(0.0f));
  b3[((m * 320i) + n) / 4i] = vec2<u32>(pair_of(v1.x, v1.y), pair_of(v1.z, v1.w));
}

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
  let tile = i32(group.x + group.y * groups.x);
  if (tile >= sizes[0].x) { return; }
  let column = tile % 10i * 32i;
  let strip = tile / 10i;
  let row = strip % sizes[0].y * 1i;
  let batch = strip / sizes[0].y;
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
