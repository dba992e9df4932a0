@group(0) @binding(0) var<storage, read> b0: array<vec4<i32>>;
@group(0) @binding(1) var<storage, read> b1: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> b2: array<f32>;
@group(0) @binding(3) var<storage, read_write> b3: array<vec4<f32>>;
var<workgroup> row: array<array<vec4<f32>, 512>, 1>;
var<workgroup> sums: array<array<vec4<f32>, 256>, 1>;

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
  let tile = i32(group.x + group.y * groups.x);
  let side = (tile * 2i + i32(lane) % 2i) * 4i;
  let slice = i32(lane) / 2i;
  var next0 = vec4<u32>();
  var next1 = vec4<u32>();
  var next_scale = vec4<f32>();
  if (slice < 128i) {
    let word = slice * 2i;
    let block = word / 4i * 512i + side;
    next0 = bitcast<vec4<u32>>(b0[((word + 0i) * 512i + side) / 4i]);
    next1 = bitcast<vec4<u32>>(b0[((word + 1i) * 512i + side) / 4i]);
    next_scale = b1[block / 4i];
  }
  var c0 = vec4<f32>();
  for (var four = i32(lane); four < 512i; four += 256i) {
    let at = four * 4i;
    row[0][four] = vec4<f32>(b2[at], b2[(at + 1i)] * 0.0625f, b2[(at + 2i)] * 0.00390625f, b2[(at + 3i)] * 0.000244140625f);
  }
  workgroupBarrier();
  for (var unit = slice; unit < 128i; unit += 128i) {
    let word0 = next0;
    let word1 = next1;
    let scale = next_scale;
    if (unit + 128i < 128i) {
      let later = unit + 128i;
      let word = later * 2i;
      let block = word / 4i * 512i + side;
      next0 = bitcast<vec4<u32>>(b0[((word + 0i) * 512i + side) / 4i]);
      next1 = bitcast<vec4<u32>>(b0[((word + 1i) * 512i + side) / 4i]);
      next_scale = b1[block / 4i];
    }
    var dot0 = vec4<f32>();
    let x0_0_0 = row[0][unit * 4i + 0i];
    let x0_0_1 = row[0][unit * 4i + 1i];
    let high0 = word0 >> vec4<u32>(16u);
    let q0_0 = bitcast<vec4<f32>>((word0 & vec4<u32>(15u)) | vec4<u32>(1258291200u)) - vec4<f32>(8388616.0f);
    dot0 += q0_0 * x0_0_0.x;
    let q0_1 = bitcast<vec4<f32>>((word0 & vec4<u32>(240u)) | vec4<u32>(1258291200u)) - vec4<f32>(8388736.0f);
    dot0 += q0_1 * x0_0_0.y;
    let q0_2 = bitcast<vec4<f32>>((word0 & vec4<u32>(3840u)) | vec4<u32>(1258291200u)) - vec4<f32>(8390656.0f);
    dot0 += q0_2 * x0_0_0.z;
    let q0_3 = bitcast<vec4<f32>>((word0 & vec4<u32>(61440u)) | vec4<u32>(1258291200u)) - vec4<f32>(8421376.0f);
    dot0 += q0_3 * x0_0_0.w;
    let q0_4 = bitcast<vec4<f32>>((high0 & vec4<u32>(15u)) | vec4<u32>(1258291200u)) - vec4<f32>(8388616.0f);
    dot0 += q0_4 * x0_0_1.x;
    let q0_5 = bitcast<vec4<f32>>((high0 & vec4<u32>(240u)) | vec4<u32>(1258291200u)) - vec4<f32>(8388736.0f);
    dot0 += q0_5 * x0_0_1.y;
    let q0_6 = bitcast<vec4<f32>>((high0 & vec4<u32>(3840u)) | vec4<u32>(1258291200u)) - vec4<f32>(8390656.0f);
    dot0 += q0_6 * x0_0_1.z;
    let q0_7 = bitcast<vec4<f32>>((high0 & vec4<u32>(61440u)) | vec4<u32>(1258291200u)) - vec4<f32>(8421376.0f);
    dot0 += q0_7 * x0_0_1.w;
    let x1_0_0 = row[0][unit * 4i + 2i];
    let x1_0_1 = row[0][unit * 4i + 3i];
    let high1 = word1 >> vec4<u32>(16u);
    let q1_0 = bitcast<vec4<f32>>((word1 & vec4<u32>(15u)) | vec4<u32>(1258291200u)) - vec4<f32>(8388616.0f);
    dot0 += q1_0 * x1_0_0.x;
    let q1_1 = bitcast<vec4<f32>>((word1 & vec4<u32>(240u)) | vec4<u32>(1258291200u)) - vec4<f32>(8388736.0f);
    dot0 += q1_1 * x1_0_0.y;
    let q1_2 = bitcast<vec4<f32>>((word1 & vec4<u32>(3840u)) | vec4<u32>(1258291200u)) - vec4<f32>(8390656.0f);
    dot0 += q1_2 * x1_0_0.z;
    let q1_3 = bitcast<vec4<f32>>((word1 & vec4<u32>(61440u)) | vec4<u32>(1258291200u)) - vec4<f32>(8421376.0f);
    dot0 += q1_3 * x1_0_0.w;
    let q1_4 = bitcast<vec4<f32>>((high1 & vec4<u32>(15u)) | vec4<u32>(1258291200u)) - vec4<f32>(8388616.0f);
    dot0 += q1_4 * x1_0_1.x;
    let q1_5 = bitcast<vec4<f32>>((high1 & vec4<u32>(240u)) | vec4<u32>(1258291200u)) - vec4<f32>(8388736.0f);
    dot0 += q1_5 * x1_0_1.y;
    let q1_6 = bitcast<vec4<f32>>((high1 & vec4<u32>(3840u)) | vec4<u32>(1258291200u)) - vec4<f32>(8390656.0f);
    dot0 += q1_6 * x1_0_1.z;
    let q1_7 = bitcast<vec4<f32>>((high1 & vec4<u32>(61440u)) | vec4<u32>(1258291200u)) - vec4<f32>(8421376.0f);
    dot0 += q1_7 * x1_0_1.w;
    c0 += scale * dot0;
  }
  sums[0][lane] = c0;
  workgroupBarrier();
  if (slice < 16i) {
    for (var other = lane + 32u; other < 256u; other += 32u) {
      c0 += sums[0][other];
    }
    sums[0][lane] = c0;
  }
  workgroupBarrier();
  if (slice > 0i) { return; }
  for (var other = lane + 2u; other < 32u; other += 2u) {
    c0 += sums[0][other];
  }
  b3[side / 4i] = c0;
}
