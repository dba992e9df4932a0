@group(0) @binding(0) var<storage, read> b0: array<f32>;
@group(0) @binding(1) var<storage, read> b1: array<f32>;
@group(0) @binding(2) var<storage, read> b2: array<f32>;
@group(0) @binding(3) var<storage, read_write> b3: array<vec4<f32>>;
@group(0) @binding(4) var<storage, read> b4: array<vec4<f32>>;

fn is_nan(x: f32) -> bool { return (bitcast<u32>(x) & 0x7fffffffu) > 0x7f800000u; }

fn weight_of(x: f32) -> f32 {
  // exp(x) of a number that is not positive; NaN stays.
  return select(exp(max(x, -110.0f)), x, is_nan(x));
}

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
  let number = i32(group.x + group.y * groups.x);
  if (number >= 148i) { return; }
  let column = i32(lane) % 16i;
  let line = i32(lane) / 16i % 1i;
  let row = number * 4i + i32(lane) / 16i;
  let first = min(row, 591i - 1i) * 4i;
  var top = -3.4028234663852886e+38f;
  var total = 0.0f;
  var sum = vec4<f32>();
  for (var split = line; split < 4i; split += 1i) {
    let at = (first + split) * 17i;
    let told = b4[at + 16i];
    let value = b4[at + min(column, 15i)];
    let most = max(top, told.x);
    let factor = weight_of(top - most);
    let share = weight_of(told.x - most);
    sum = sum * factor + value * share;
    total = total * factor + told.y * share;
    top = most;
  }
  if (row < 591i) {
     {
      let y = (sum * (1.0f / max(total, 1.0f)));
      if (column < 16i) { b3[((row) * 64i + (column) * 4i) / 4i] = vec4<f32>(y.x, y.y, y.z, y.w); }
    }
  }
}
