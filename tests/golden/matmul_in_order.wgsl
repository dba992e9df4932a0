@group(0) @binding(0) var<storage, read> b0: array<f32>;
@group(0) @binding(1) var<storage, read> b1: array<f32>;
@group(0) @binding(2) var<storage, read> b2: array<f32>;
@group(0) @binding(3) var<storage, read_write> b3: array<f32>;
@group(0) @binding(4) var<uniform> sizes: array<vec4<i32>, 1>;

fn is_nan(x: f32) -> bool { return (bitcast<u32>(x) & 0x7fffffffu) > 0x7f800000u; }

fn max_number(a: f32, number: f32) -> f32 { return select(max(a, number), a, is_nan(a)); }

fn unknown(x: f32, zero: u32) -> f32 {
  // Compilers take a + b − a for b; what they cannot know is zero keeps them from it.
  return bitcast<f32>(bitcast<u32>(x) ^ zero);
}

fn fuses(zero: u32) -> bool {
  // Devices without a fused step round twice in fma, and lose this product's last bit.
  let x = unknown(1.000244140625f, zero);
  return fma(x, x, -1.00048828125f) > 0.0f;
}

fn upper_bits(x: f32) -> f32 { return bitcast<f32>(bitcast<u32>(x) & 0xfffff000u); }

fn add_product(a: f32, b: f32, total: f32, zero: u32) -> f32 {
  // total + a · b rounded once: a rounded product, a rounded sum, and the errors of both. Halves multiply exactly.
  let p = unknown(a * b, zero);
  let a1 = upper_bits(a);
  let b1 = upper_bits(b);
  let lost = ((a1 * b1 - p) + a1 * (b - b1) + (a - a1) * b1) + (a - a1) * (b - b1);
  let s = unknown(p + total, zero);
  let t = unknown(s - p, zero);
  let r = (p - unknown(s - t, zero)) + (total - t);
  return select(s + (r + lost), s, (bitcast<u32>(s) & 0x7f800000u) == 0x7f800000u);
}

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
  let zero = min(groups.x, 1u) - 1u;
  let once = fuses(zero);
  let point = i32((group.x + group.y * groups.x) * 64u + lane);
  if (point >= sizes[0].x) { return; }
  let g0 = point / 320i;
  let g1 = point % 320i;
  var a0: f32 = 0.0f;
  let v1 = (g0 * 128i);
  for (var r0 = 0i; r0 < 128i; r0++) {
    if (once) {
      a0 = fma(b0[(v1 + r0)], b1[((r0 * 320i) + g1)], a0);
    }
    else {
      a0 = add_product(b0[(v1 + r0)], b1[((r0 * 320i) + g1)], a0, zero);
    }
  }
  b3[((g0 * 320i) + g1)] = max_number((a0 + b2[g1]), 0.0f);
}
