@group(0) @binding(0) var<storage, read> b0: array<f32>;
@group(0) @binding(1) var<storage, read> b1: array<f32>;
@group(0) @binding(2) var<storage, read_write> b2: array<f32>;
var<workgroup> tile_a: array<vec4<f32>, 160>;
var<workgroup> tile_b: array<vec4<f32>, 288>;

fn is_nan(x: f32) -> bool { return (bitcast<u32>(x) & 0x7fffffffu) > 0x7f800000u; }

fn max_number(a: f32, number: f32) -> f32 { return select(max(a, number), a, is_nan(a)); }

fn min_number(a: f32, number: f32) -> f32 { return select(min(a, number), a, is_nan(a)); }

fn load_a(t0: i32, m: i32, k: i32) -> f32 {
  if (m >= 196i || k >= 216i) { return f32(0); }
  let v1 = (((m / 14i) + (k / 72i)) + -1i);
  let v2 = (((m % 14i) + ((k / 24i) % 3i)) + -1i);
  let v3 = select(0.0f, b0[(((min(max(v1, 0i), 13i) * 336i) + (min(max(v2, 0i), 13i) * 24i)) + (k % 24i))], (((0i <= v1) && (v1 < 14i)) && ((0i <= v2) && (v2 < 14i))));
  return v3;
}

fn load_b(t0: i32, k: i32, n: i32) -> f32 {
  if (k >= 216i || n >= 48i) { return f32(0); }
  return b1[((k * 48i) + n)];
}

fn store_c(t0: i32, m: i32, n: i32, a0: f32) {
  if (m >= 196i || n >= 48i) { return; }
  b2[((m * 48i) + n)] = min_number(max_number(a0, 0.0f), 6.0f);
}

@compute @workgroup_size(32)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
  let tile = i32(group.x + group.y * groups.x);
  if (tile >= 26i) { return; }
  let column = tile % 2i * 32i;
  let strip = tile / 2i;
  let row = strip % 13i * 16i;
  let batch = strip / 13i;
  let member = i32(lane);
  let x = member % 8i;
  let y = member / 8i;
  var c0_0 = vec4<f32>();
  var c1_0 = vec4<f32>();
  var c2_0 = vec4<f32>();
  var c3_0 = vec4<f32>();
  for (var base = 0i; base < 216i; base += 32i) {
    for (var at = member; at < 128i; at += 32i) {
      let deep = at % 32i;
      let side = at / 32i * 4i;
      tile_a[deep * 5i + side / 4i] = vec4<f32>(load_a(0i, row + side, base + deep), load_a(0i, row + side + 1i, base + deep), load_a(0i, row + side + 2i, base + deep), load_a(0i, row + side + 3i, base + deep));
    }
    for (var at = member; at < 256i; at += 32i) {
      let deep = at / 8i;
      let side = at % 8i * 4i;
      tile_b[deep * 9i + side / 4i] = vec4<f32>(load_b(0i, base + deep, column + side), load_b(0i, base + deep, column + side + 1i), load_b(0i, base + deep, column + side + 2i), load_b(0i, base + deep, column + side + 3i));
    }
    workgroupBarrier();
    for (var deep = 0i; deep < 32i; deep++) {
      let left0 = tile_a[deep * 5i + y];
      let right0 = tile_b[deep * 9i + x];
      c0_0 += left0.x * right0;
      c1_0 += left0.y * right0;
      c2_0 += left0.z * right0;
      c3_0 += left0.w * right0;
    }
    workgroupBarrier();
  }
  let top = row + y * 4i;
  let left = column + x * 4i;
  store_c(0i, top, left, c0_0.x);
  store_c(0i, top, left + 1i, c0_0.y);
  store_c(0i, top, left + 2i, c0_0.z);
  store_c(0i, top, left + 3i, c0_0.w);
  store_c(0i, top + 1i, left, c1_0.x);
  store_c(0i, top + 1i, left + 1i, c1_0.y);
  store_c(0i, top + 1i, left + 2i, c1_0.z);
  store_c(0i, top + 1i, left + 3i, c1_0.w);
  store_c(0i, top + 2i, left, c2_0.x);
  store_c(0i, top + 2i, left + 1i, c2_0.y);
  store_c(0i, top + 2i, left + 2i, c2_0.z);
  store_c(0i, top + 2i, left + 3i, c2_0.w);
  store_c(0i, top + 3i, left, c3_0.x);
  store_c(0i, top + 3i, left + 1i, c3_0.y);
  store_c(0i, top + 3i, left + 2i, c3_0.z);
  store_c(0i, top + 3i, left + 3i, c3_0.w);
}
