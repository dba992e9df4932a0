enable f16;

@group(0) @binding(0) var<storage, read> b0: array<f16>;
@group(0) @binding(1) var<storage, read_write> b1: array<f16>;
@group(0) @binding(2) var<uniform> sizes: array<vec4<i32>, 1>;

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
  for (var point = i32(group.x * 64u + lane); point < sizes[0].x; point += i32(groups.x) * 64i) {
    let g0 = point;
    b1[g0] = f16((f32(b0[g0]) + 1.0f));
  }
}
