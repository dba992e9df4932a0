@group(0) @binding(0) var<storage, read> b0: array<vec4<i32>>;
@group(0) @binding(1) var<storage, read> b1: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> b2: array<vec4<f32>>;
@group(0) @binding(3) var<storage, read_write> b3: array<vec4<f32>>;
var<workgroup> parts: array<array<vec4<f32>, 256>, 1>;

fn load_a(m: i32, k: i32) -> vec4<f32> {
  return b2[k / 4i];
}

fn load_b(q: i32, n: i32) -> array<vec4<f32>, 4> {
  let v1 = (q % 2i);
  let v2 = (v1 * 4i);
  let v3 = b0[(n + ((q / 2i) * 512i)) / 4i];
  let v4 = b1[(n + ((q / 8i) * 512i)) / 4i];
  let v5 = (vec4<f32>(((v3 >> (bitcast<vec4<u32>>(vec4<i32>(((v2 + 1i) * 4i))) & vec4<u32>(31u))) & vec4<i32>(15i))) - vec4<f32>(8.0f));
  let v6 = (vec4<f32>(((v3 >> (bitcast<vec4<u32>>(vec4<i32>(((v2 + 2i) * 4i))) & vec4<u32>(31u))) & vec4<i32>(15i))) - vec4<f32>(8.0f));
  let v7 = (vec4<f32>(((v3 >> (bitcast<vec4<u32>>(vec4<i32>(((v2 + 3i) * 4i))) & vec4<u32>(31u))) & vec4<i32>(15i))) - vec4<f32>(8.0f));
  return array<vec4<f32>, 4>(((vec4<f32>(((v3 >> (bitcast<vec4<u32>>(vec4<i32>((v1 * 16i))) & vec4<u32>(31u))) & vec4<i32>(15i))) - vec4<f32>(8.0f)) * v4), (v5 * v4), (v6 * v4), (v7 * v4));
}

fn store_c(m: i32, n: i32, a0: vec4<f32>) {
  b3[n / 4i] = a0;
}

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
  let tile = i32(group.x + group.y * groups.x);
  let column = tile % 32i * 16i;
  let strip = tile / 32i;
  let row = strip % 1i * 1i;
  let batch = strip / 1i;
  let side = column + i32(lane) % 4i * 4i;
  let slice = i32(lane) / 4i;
  var c0 = vec4<f32>();
  for (var deep = slice * 4i; deep < 2048i; deep += 256i) {
    let a0 = load_a(row, deep);
    let rights = load_b(deep / 4i, side);
    c0 += a0.x * rights[0];
    c0 += a0.y * rights[1];
    c0 += a0.z * rights[2];
    c0 += a0.w * rights[3];
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
  store_c(row, side, c0);
}
