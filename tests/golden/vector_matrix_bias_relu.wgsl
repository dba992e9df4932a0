@group(0) @binding(0) var<storage, read> b0: array<f32>;
@group(0) @binding(1) var<storage, read> b1: array<f32>;
@group(0) @binding(2) var<storage, read> b2: array<f32>;
@group(0) @binding(3) var<storage, read_write> b3: array<f32>;
var<workgroup> parts: array<f32, 256>;

fn is_nan(x: f32) -> bool { return (bitcast<u32>(x) & 0x7fffffffu) > 0x7f800000u; }

fn max_number(a: f32, number: f32) -> f32 { return select(max(a, number), a, is_nan(a)); }

fn load_a(m: i32, k: i32) -> f32 {
  return b0[k];
}

fn load_b(k: i32, n: i32) -> f32 {
  return b1[((k * 320i) + n)];
}

fn store_c(m: i32, n: i32, a0: f32) {
  b3[n] = max_number((a0 + b2[n]), 0.0f);
}

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
  let tile = i32(group.x + group.y * groups.x);
  let column = tile % 40i * 8i;
  let strip = tile / 40i;
  let row = strip % 1i * 1i;
  let batch = strip / 1i;
  let side = column + i32(lane) % 8i;
  var total = f32(0);
  for (var base = i32(lane) / 8i; base < 128i; base += 32i) {
    total += load_a(row, base) * load_b(base, side);
  }
  parts[lane] = total;
  workgroupBarrier();
  if (lane < 8u) {
    for (var slice = 1u; slice < 32u; slice++) {
      total += parts[lane + slice * 8u];
    }
    store_c(row, side, total);
  }
}
