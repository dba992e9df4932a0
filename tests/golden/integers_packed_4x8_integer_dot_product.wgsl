@group(0) @binding(0) var<storage, read> b0: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read> b1: array<i32>;
@group(0) @binding(2) var<storage, read_write> b2: array<vec4<i32>>;
var<workgroup> halves: array<array<vec4<u32>, 8>, 8>;
var<workgroup> odds: array<array<vec4<u32>, 8>, 8>;
var<workgroup> weights: array<array<vec4<u32>, 8>, 8>;

fn four_bytes(word: i32) -> vec4<i32> {
  return (vec4<i32>(word) << vec4<u32>(24u, 16u, 8u, 0u)) >> vec4<u32>(24u);
}

fn packed_bytes(x: vec4<i32>) -> u32 {
  let bytes = vec4<u32>(x & vec4<i32>(255i)) << vec4<u32>(0u, 8u, 16u, 24u);
  return bytes.x | bytes.y | bytes.z | bytes.w;
}

fn load_a(m: i32, k: i32) -> vec4<f32> {
  return b0[((m * 256i) + k) / 4i];
}

fn load_b(k: i32, n: i32) -> vec4<i32> {
  return four_bytes(b1[((k * 512i) + n) / 4i]);
}

fn store_c(m: i32, n: i32, a0: vec4<i32>) {
  b2[((m * 512i) + n) / 4i] = a0;
}

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
  let tile = i32(group.x + group.y * groups.x);
  let column = tile % 16i * 32i;
  let strip = tile / 16i;
  let row = strip % 16i * 32i;
  let batch = strip / 16i;
  let x = i32(lane) % 8i;
  let y = i32(lane) / 8i;
  var h0 = vec4<i32>();
  var o0 = vec4<i32>();
  var h1 = vec4<i32>();
  var o1 = vec4<i32>();
  var h2 = vec4<i32>();
  var o2 = vec4<i32>();
  var h3 = vec4<i32>();
  var o3 = vec4<i32>();
  for (var base = 0i; base < 256i; base += 32i) {
    let a0 = vec4<i32>(load_a(row + y * 4i + 0i, base + x * 4i));
    halves[x][y].x = packed_bytes(a0 >> vec4<u32>(1u));
    odds[x][y].x = packed_bytes(a0 & vec4<i32>(1i));
    let a1 = vec4<i32>(load_a(row + y * 4i + 1i, base + x * 4i));
    halves[x][y].y = packed_bytes(a1 >> vec4<u32>(1u));
    odds[x][y].y = packed_bytes(a1 & vec4<i32>(1i));
    let a2 = vec4<i32>(load_a(row + y * 4i + 2i, base + x * 4i));
    halves[x][y].z = packed_bytes(a2 >> vec4<u32>(1u));
    odds[x][y].z = packed_bytes(a2 & vec4<i32>(1i));
    let a3 = vec4<i32>(load_a(row + y * 4i + 3i, base + x * 4i));
    halves[x][y].w = packed_bytes(a3 >> vec4<u32>(1u));
    odds[x][y].w = packed_bytes(a3 & vec4<i32>(1i));
    let b0s = load_b(base + y * 4i + 0i, column + x * 4i);
    let b1s = load_b(base + y * 4i + 1i, column + x * 4i);
    let b2s = load_b(base + y * 4i + 2i, column + x * 4i);
    let b3s = load_b(base + y * 4i + 3i, column + x * 4i);
    weights[y][x].x = packed_bytes(vec4<i32>(b0s.x, b1s.x, b2s.x, b3s.x));
    weights[y][x].y = packed_bytes(vec4<i32>(b0s.y, b1s.y, b2s.y, b3s.y));
    weights[y][x].z = packed_bytes(vec4<i32>(b0s.z, b1s.z, b2s.z, b3s.z));
    weights[y][x].w = packed_bytes(vec4<i32>(b0s.w, b1s.w, b2s.w, b3s.w));
    workgroupBarrier();
    for (var word = 0i; word < 8i; word++) {
      let half = halves[word][y];
      let odd = odds[word][y];
      let weight = weights[word][x];
      h0 += vec4<i32>(dot4I8Packed(half.x, weight.x), dot4I8Packed(half.x, weight.y), dot4I8Packed(half.x, weight.z), dot4I8Packed(half.x, weight.w));
      o0 += vec4<i32>(dot4I8Packed(odd.x, weight.x), dot4I8Packed(odd.x, weight.y), dot4I8Packed(odd.x, weight.z), dot4I8Packed(odd.x, weight.w));
      h1 += vec4<i32>(dot4I8Packed(half.y, weight.x), dot4I8Packed(half.y, weight.y), dot4I8Packed(half.y, weight.z), dot4I8Packed(half.y, weight.w));
      o1 += vec4<i32>(dot4I8Packed(odd.y, weight.x), dot4I8Packed(odd.y, weight.y), dot4I8Packed(odd.y, weight.z), dot4I8Packed(odd.y, weight.w));
      h2 += vec4<i32>(dot4I8Packed(half.z, weight.x), dot4I8Packed(half.z, weight.y), dot4I8Packed(half.z, weight.z), dot4I8Packed(half.z, weight.w));
      o2 += vec4<i32>(dot4I8Packed(odd.z, weight.x), dot4I8Packed(odd.z, weight.y), dot4I8Packed(odd.z, weight.z), dot4I8Packed(odd.z, weight.w));
      h3 += vec4<i32>(dot4I8Packed(half.w, weight.x), dot4I8Packed(half.w, weight.y), dot4I8Packed(half.w, weight.z), dot4I8Packed(half.w, weight.w));
      o3 += vec4<i32>(dot4I8Packed(odd.w, weight.x), dot4I8Packed(odd.w, weight.y), dot4I8Packed(odd.w, weight.z), dot4I8Packed(odd.w, weight.w));
    }
    workgroupBarrier();
  }
  let c0 = h0 * 2i + o0;
  store_c(row + y * 4i + 0i, column + x * 4i, c0);
  let c1 = h1 * 2i + o1;
  store_c(row + y * 4i + 1i, column + x * 4i, c1);
  let c2 = h2 * 2i + o2;
  store_c(row + y * 4i + 2i, column + x * 4i, c2);
  let c3 = h3 * 2i + o3;
  store_c(row + y * 4i + 3i, column + x * 4i, c3);
}
