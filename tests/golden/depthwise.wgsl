@group(0) @binding(0) var<storage, read> b0: array<f32>;
@group(0) @binding(1) var<storage, read> b1: array<f32>;
@group(0) @binding(2) var<storage, read_write> b2: array<f32>;

fn is_nan(x: f32) -> bool { return (bitcast<u32>(x) & 0x7fffffffu) > 0x7f800000u; }

fn max_number(a: f32, number: f32) -> f32 { return select(max(a, number), a, is_nan(a)); }

fn min_number(a: f32, number: f32) -> f32 { return select(min(a, number), a, is_nan(a)); }

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
  let point = i32((group.x + group.y * groups.x) * 64u + lane);
  if (point >= 6272i) { return; }
  let g0 = point / 448i;
  let g1 = (point / 32i) % 14i;
  let g2 = point % 32i;
  var a0: f32 = 0.0f;
  for (var r0 = 0i; r0 < 3i; r0++) {
    let v1 = ((g0 + r0) + -1i);
    let v2 = (bitcast<u32>(v1) < 14u);
    let v3 = (g2 + (v1 * 448i));
    let v4 = (r0 * 96i);
    for (var r1 = 0i; r1 < 3i; r1++) {
      let v5 = ((g1 + r1) + -1i);
      let v6 = (select(0.0f, b0[(v3 + (v5 * 32i))], (v2 && (bitcast<u32>(v5) < 14u))) * b1[((v4 + (r1 * 32i)) + g2)]);
      a0 = (a0 + v6);
    }
  }
  b2[(((g0 * 448i) + (g1 * 32i)) + g2)] = min_number(max_number(a0, 0.0f), 6.0f);
}
