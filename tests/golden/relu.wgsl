@group(0) @binding(0) var<storage, read> b0: array<f32>;
@group(0) @binding(1) var<storage, read_write> b1: array<f32>;

fn is_nan(x: f32) -> bool { return (bitcast<u32>(x) & 0x7fffffffu) > 0x7f800000u; }

fn max_number(a: f32, number: f32) -> f32 { return select(max(a, number), a, is_nan(a)); }

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
  let point = i32((group.x + group.y * groups.x) * 64u + lane);
  if (point >= 1000i) { return; }
  let g0 = point;
  b1[g0] = max_number(b0[g0], 0.0f);
}
