@group(0) @binding(0) var<storage, read> b0: array<u32>;
@group(0) @binding(1) var<storage, read_write> b1: array<atomic<u32>>;
@group(0) @binding(2) var<uniform> sizes: array<vec4<i32>, 1>;

fn half_of(pair: u32, index: i32) -> f32 { return unpack2x16float(pair >> (16u * (u32(index) & 1u))).x; }

fn half_bits(x: f32) -> u32 {
  // To the nearest, ties to even: of pack2x16float the rounding is open, and so are numbers too large.
  let size = bitcast<u32>(x) & 0x7fffffffu;
  let small = u32(round(bitcast<f32>(min(size, 0x38800000u)) * 16777216.0f));
  let normal = ((size + 0xfffu + ((size >> 13u) & 1u)) >> 13u) - 0x1c000u;
  let finite = select(normal, small, size < 0x38800000u);
  let bits = select(select(finite, 0x7c00u, size >= 0x477ff000u), 0x7e00u, size > 0x7f800000u);
  return bits | ((bitcast<u32>(x) >> 16u) & 0x8000u);
}

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
  for (var point = i32(group.x * 64u + lane); point < sizes[0].x; point += i32(groups.x) * 64i) {
    let g0 = point;
    { let at = g0; let shift = 16u * (u32(at) & 1u); atomicAnd(&b1[at / 2i], 0xffff0000u >> shift); atomicOr(&b1[at / 2i], half_bits((half_of(b0[(g0) / 2i], g0) + 1.0f)) << shift); }
  }
}
