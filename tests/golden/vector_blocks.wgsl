@group(0) @binding(0) var<storage, read> b0: array<vec4<i32>>;
@group(0) @binding(1) var<storage, read> b1: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> b2: array<vec4<f32>>;
@group(0) @binding(3) var<storage, read_write> b3: array<vec4<f32>>;
var<workgroup> parts: array<array<vec4<f32>, 256>, 4>;

fn load_a(m: i32, k: i32) -> vec4<f32> {
  if (m >= 1i) { return vec4<f32>(0); }
  return b2[k / 4i];
}

fn load_b(q: i32, n: i32) -> array<vec4<f32>, 4> {
  let v1 = b0[(n + ((q / 2i) * 512i)) / 4i];
  let v2 = b1[(n + ((q / 8i) * 512i)) / 4i];
  return array<vec4<f32>, 4>(((vec4<f32>(((v1 >> bitcast<vec4<u32>>(vec4<i32>(((q % 2i) * 16i)))) & vec4<i32>(15i))) - vec4<f32>(8.0f)) * v2), ((vec4<f32>(((v1 >> bitcast<vec4<u32>>(vec4<i32>(((((q % 2i) * 4i) + 1i) * 4i)))) & vec4<i32>(15i))) - vec4<f32>(8.0f)) * v2), ((vec4<f32>(((v1 >> bitcast<vec4<u32>>(vec4<i32>(((((q % 2i) * 4i) + 2i) * 4i)))) & vec4<i32>(15i))) - vec4<f32>(8.0f)) * v2), ((vec4<f32>(((v1 >> bitcast<vec4<u32>>(vec4<i32>(((((q % 2i) * 4i) + 3i) * 4i)))) & vec4<i32>(15i))) - vec4<f32>(8.0f)) * v2));
}

fn store_c(m: i32, n: i32, a0: vec4<f32>) {
  if (m >= 1i) { return; }
  b3[n / 4i] = vec4<f32>(a0.x, a0.y, a0.z, a0.w);
}

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
  let tile = i32(group.x + group.y * groups.x);
  let column = tile % 32i * 16i;
  let strip = tile / 32i;
  let row = strip % 1i * 4i;
  let batch = strip / 1i;
  let side = column + i32(lane) % 4i * 4i;
  let slice = i32(lane) / 4i;
  var c0 = vec4<f32>();
  var c1 = vec4<f32>();
  var c2 = vec4<f32>();
  var c3 = vec4<f32>();
  for (var deep = slice * 4i; deep < 2048i; deep += 256i) {
    let a0 = load_a(row, deep);
    let a1 = load_a(row + 1i, deep);
    let a2 = load_a(row + 2i, deep);
    let a3 = load_a(row + 3i, deep);
    let rights = load_b(deep / 4i, side);
    c0 += a0.x * rights[0];
    c1 += a1.x * rights[0];
    c2 += a2.x * rights[0];
    c3 += a3.x * rights[0];
    c0 += a0.y * rights[1];
    c1 += a1.y * rights[1];
    c2 += a2.y * rights[1];
    c3 += a3.y * rights[1];
    c0 += a0.z * rights[2];
    c1 += a1.z * rights[2];
    c2 += a2.z * rights[2];
    c3 += a3.z * rights[2];
    c0 += a0.w * rights[3];
    c1 += a1.w * rights[3];
    c2 += a2.w * rights[3];
    c3 += a3.w * rights[3];
  }
  parts[0][lane] = c0;
  parts[1][lane] = c1;
  parts[2][lane] = c2;
  parts[3][lane] = c3;
  workgroupBarrier();
  if (slice < 8i) {
    for (var other = lane + 32u; other < 256u; other += 32u) {
      c0 += parts[0][other];
      c1 += parts[1][other];
      c2 += parts[2][other];
      c3 += parts[3][other];
    }
    parts[0][lane] = c0;
    parts[1][lane] = c1;
    parts[2][lane] = c2;
    parts[3][lane] = c3;
  }
  workgroupBarrier();
  if (slice > 0i) { return; }
  for (var other = lane + 4u; other < 32u; other += 4u) {
    c0 += parts[0][other];
    c1 += parts[1][other];
    c2 += parts[2][other];
    c3 += parts[3][other];
  }
  store_c(row, side, c0);
  store_c(row + 1i, side, c1);
  store_c(row + 2i, side, c2);
  store_c(row + 3i, side, c3);
}
