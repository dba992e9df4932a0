@group(0) @binding(0) var<storage, read> b0: array<f32>;
@group(0) @binding(1) var<storage, read_write> b1: array<f32>;
@group(0) @binding(2) var<uniform> sizes: array<vec4<i32>, 1>;
var<workgroup> a0_parts: array<f32, 256>;
var<workgroup> a1_parts: array<f32, 256>;

var<private> inf_bits: u32 = 0x7f800000u;

fn inf() -> f32 { return bitcast<f32>(inf_bits); }

fn is_nan(x: f32) -> bool { return (bitcast<u32>(x) & 0x7fffffffu) > 0x7f800000u; }

fn max_f32(a: f32, b: f32) -> f32 { return select(select(max(a, b), b, is_nan(b)), a, is_nan(a)); }

fn div_near(a: f32, b: f32) -> f32 {
  // Devices divide to within 2.5 units in the last place: what is left over gives the nearest number, so that ties are rounded as ties.
  // It is computed in integers, as a multiple of the last places: compilers reorder sums of floats, and fma may round its product.
  let near = a / b;
  let parts = vec3<u32>(bitcast<u32>(a), bitcast<u32>(b), bitcast<u32>(near));
  let powers = (parts >> vec3<u32>(23u)) & vec3<u32>(0xffu);
  let digits = (parts & vec3<u32>(0x7fffffu)) | vec3<u32>(0x800000u);
  let shift = powers.x + 150u - powers.y - powers.z;
  let left = bitcast<i32>((digits.x << (shift & 31u)) - digits.y * digits.z);
  // Below a power of two the last places are half as large.
  let twice = select(2i * left, 4i * left, left < 0i && digits.z == 0x800000u);
  let unit = bitcast<i32>(digits.y);
  let steps = i32(twice > unit) + i32(twice > 3i * unit) - i32(twice < -unit) - i32(twice < -3i * unit);
  let normal = all(powers - vec3<u32>(1u) < vec3<u32>(254u));
  return select(near, bitcast<f32>(bitcast<i32>(near) + steps), normal);
}

fn div_f32(a: f32, b: f32) -> f32 {
  let scale = select(1.0f, 0.25f, abs(b) > 8.507059e37f);
  return div_near(a * scale, b * scale);
}

fn exp_f32(x: f32) -> f32 {
  return select(select(exp(clamp(x, -110.0f, 88.8f)), inf(), x > 88.8f), x, is_nan(x));
}

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
  let point = i32(group.x + group.y * groups.x);
  if (point >= sizes[0].x) { return; }
  let g0 = point;
  var a0_part: f32 = (-inf());
  let v1 = (g0 * 1000i);
  for (var r0 = i32(lane); r0 < 1000i; r0 += 256i) {
    a0_part = max_f32(a0_part, b0[(v1 + r0)]);
  }
  a0_parts[lane] = a0_part;
  workgroupBarrier();
  for (var half = 128u; half > 0u; half >>= 1u) {
    if (lane < half) {
      a0_parts[lane] = max_f32(a0_parts[lane], a0_parts[lane + half]);
    }
    workgroupBarrier();
  }
  let a0 = a0_parts[0];
  var a1_part: f32 = 0.0f;
  for (var r0 = i32(lane); r0 < 1000i; r0 += 256i) {
    a1_part = (a1_part + exp_f32((b0[(v1 + r0)] - a0)));
  }
  a1_parts[lane] = a1_part;
  workgroupBarrier();
  for (var half = 128u; half > 0u; half >>= 1u) {
    if (lane < half) {
      a1_parts[lane] = (a1_parts[lane] + a1_parts[lane + half]);
    }
    workgroupBarrier();
  }
  let a1 = a1_parts[0];
  for (var r0 = i32(lane); r0 < 1000i; r0 += 256i) {
    let v2 = (v1 + r0);
    b1[v2] = div_f32(exp_f32((b0[v2] - a0)), a1);
  }
}
