@group(0) @binding(0) var<storage, read> b0: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read> b1: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> b2: array<vec4<f32>>;
@group(0) @binding(3) var<storage, read_write> b3: array<f32>;
@group(0) @binding(4) var<storage, read_write> b4: array<vec4<f32>>;
var<workgroup> left: array<array<array<vec4<f32>, 8>, 2>, 8>;
var<workgroup> right: array<array<array<vec4<f32>, 16>, 4>, 8>;
var<workgroup> tops: array<array<array<vec2<f32>, 8>, 16>, 1>;

var<private> inf_bits: u32 = 0x7f800000u;

fn inf() -> f32 { return bitcast<f32>(inf_bits); }

fn is_nan(x: f32) -> bool { return (bitcast<u32>(x) & 0x7fffffffu) > 0x7f800000u; }

fn load_q(line: i32, at: i32) -> vec4<f32> {
  return b0[line * 16i + at];
}

fn load_k(line: i32, at: i32) -> vec4<f32> {
  return b1[line * 16i + at];
}

fn load_v(line: i32, at: i32) -> vec4<f32> {
  return b2[line * 16i + at];
}

fn limit_of(row: i32) -> i32 { return 197i; }

fn weight_of(x: f32) -> f32 {
  // exp(x) of a number that is not positive; NaN stays.
  return select(exp(max(x, -110.0f)), x, is_nan(x));
}

fn score_of(sum: f32, key: i32, limit: i32, mask: i32) -> f32 {
  return select(-inf(), sum * 0.125f, key < limit);
}

@compute @workgroup_size(128)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
  let number = i32(group.x + group.y * groups.x);
  if (number >= 156i) { return; }
  let split = number % 4i;
  let place = number / 4i;
  let point = place / 13i;
  let first = place % 13i * 16i;
  let origin = point * 197i;
  let lines = point * 197i;
  let begin = split * 64i;
  let end = min(begin + 64i, 197i);
  let x = i32(lane % 16u);
  let y = i32(lane / 16u);
  let copy_at = i32(lane % 8u);
  let copy_line = i32(lane / 8u);
  let copy_column = i32(lane % 16u);
  let copy_four = i32(lane / 16u);
  let row0 = first + y + 0i;
  var sum0_0 = vec4<f32>();
  let row1 = first + y + 8i;
  var sum1_0 = vec4<f32>();
  let limit = limit_of(0i);
  var top0 = vec2<f32>(-3.4028234663852886e+38f);
  var total0 = vec2<f32>();
  var next0 = vec4<f32>();
  var next1 = vec4<f32>();
  var next2 = vec4<f32>();
  var next3 = vec4<f32>();
  var next4 = vec4<f32>();
  next0 = load_q(lines + min(first + copy_line + 0i, 197i - 1i), 0i + copy_at);
  next1 = load_k(origin + min(begin + copy_line + 0i, 197i - 1i), 0i + copy_at);
  next2 = load_k(origin + min(begin + copy_line + 16i, 197i - 1i), 0i + copy_at);
  next3 = load_k(origin + min(begin + copy_line + 32i, 197i - 1i), 0i + copy_at);
  next4 = load_k(origin + min(begin + copy_line + 48i, 197i - 1i), 0i + copy_at);
  for (var base = begin; base < end; base += 64i) {
    var s0_0 = 0.0f;
    var s0_1 = 0.0f;
    var s0_2 = 0.0f;
    var s0_3 = 0.0f;
    var s1_0 = 0.0f;
    var s1_1 = 0.0f;
    var s1_2 = 0.0f;
    var s1_3 = 0.0f;
    for (var start = 0i; start < 16i; start += 8i) {
      left[copy_at][copy_line / 8i + 0i][(copy_line % 8i) ^ (copy_at)] = next0;
      right[copy_at][copy_line / 16i + 0i][(copy_line % 16i) ^ (copy_at)] = next1;
      right[copy_at][copy_line / 16i + 1i][(copy_line % 16i) ^ (copy_at)] = next2;
      right[copy_at][copy_line / 16i + 2i][(copy_line % 16i) ^ (copy_at)] = next3;
      right[copy_at][copy_line / 16i + 3i][(copy_line % 16i) ^ (copy_at)] = next4;
      workgroupBarrier();
      if (start + 8i < 16i) {
        next0 = load_q(lines + min(first + copy_line + 0i, 197i - 1i), start + 8i + copy_at);
        next1 = load_k(origin + min(base + copy_line + 0i, 197i - 1i), start + 8i + copy_at);
        next2 = load_k(origin + min(base + copy_line + 16i, 197i - 1i), start + 8i + copy_at);
        next3 = load_k(origin + min(base + copy_line + 32i, 197i - 1i), start + 8i + copy_at);
        next4 = load_k(origin + min(base + copy_line + 48i, 197i - 1i), start + 8i + copy_at);
      }
      else {
        next0 = select(vec4<f32>(), load_v(origin + min(base + 0i + (copy_four + 0i) / 4i + ((copy_four + 0i) % 4i + 0i) * 16i, 197i - 1i), copy_column), base + 0i + (copy_four + 0i) / 4i + ((copy_four + 0i) % 4i + 0i) * 16i < end);
        next1 = select(vec4<f32>(), load_v(origin + min(base + 0i + (copy_four + 8i) / 4i + ((copy_four + 8i) % 4i + 0i) * 16i, 197i - 1i), copy_column), base + 0i + (copy_four + 8i) / 4i + ((copy_four + 8i) % 4i + 0i) * 16i < end);
        next2 = select(vec4<f32>(), load_v(origin + min(base + 0i + (copy_four + 16i) / 4i + ((copy_four + 16i) % 4i + 0i) * 16i, 197i - 1i), copy_column), base + 0i + (copy_four + 16i) / 4i + ((copy_four + 16i) % 4i + 0i) * 16i < end);
        next3 = select(vec4<f32>(), load_v(origin + min(base + 0i + (copy_four + 24i) / 4i + ((copy_four + 24i) % 4i + 0i) * 16i, 197i - 1i), copy_column), base + 0i + (copy_four + 24i) / 4i + ((copy_four + 24i) % 4i + 0i) * 16i < end);
      }
      for (var at = 0i; at < 8i; at++) {
        let down = (y) ^ (at);
        let across = (x) ^ (at);
        let query0 = left[at][0i][down];
        let query1 = left[at][1i][down];
        let key0 = right[at][0i][across];
        s0_0 = ((((s0_0 + query0.x * key0.x) + query0.y * key0.y) + query0.z * key0.z) + query0.w * key0.w);
        s1_0 = ((((s1_0 + query1.x * key0.x) + query1.y * key0.y) + query1.z * key0.z) + query1.w * key0.w);
        let key1 = right[at][1i][across];
        s0_1 = ((((s0_1 + query0.x * key1.x) + query0.y * key1.y) + query0.z * key1.z) + query0.w * key1.w);
        s1_1 = ((((s1_1 + query1.x * key1.x) + query1.y * key1.y) + query1.z * key1.z) + query1.w * key1.w);
        let key2 = right[at][2i][across];
        s0_2 = ((((s0_2 + query0.x * key2.x) + query0.y * key2.y) + query0.z * key2.z) + query0.w * key2.w);
        s1_2 = ((((s1_2 + query1.x * key2.x) + query1.y * key2.y) + query1.z * key2.z) + query1.w * key2.w);
        let key3 = right[at][3i][across];
        s0_3 = ((((s0_3 + query0.x * key3.x) + query0.y * key3.y) + query0.z * key3.z) + query0.w * key3.w);
        s1_3 = ((((s1_3 + query1.x * key3.x) + query1.y * key3.y) + query1.z * key3.z) + query1.w * key3.w);
      }
      workgroupBarrier();
    }
    let key0 = base + x + 0i;
    s0_0 = score_of(s0_0, key0, limit, 0i);
    s1_0 = score_of(s1_0, key0, limit, 0i);
    let key1 = base + x + 16i;
    s0_1 = score_of(s0_1, key1, limit, 0i);
    s1_1 = score_of(s1_1, key1, limit, 0i);
    let key2 = base + x + 32i;
    s0_2 = score_of(s0_2, key2, limit, 0i);
    s1_2 = score_of(s1_2, key2, limit, 0i);
    let key3 = base + x + 48i;
    s0_3 = score_of(s0_3, key3, limit, 0i);
    s1_3 = score_of(s1_3, key3, limit, 0i);
    tops[0i][x][y] = vec2<f32>(max(max(max(s0_0, s0_1), s0_2), s0_3), max(max(max(s1_0, s1_1), s1_2), s1_3));
    var most0 = top0;
    workgroupBarrier();
    for (var other = 0i; other < 16i; other++) {
      most0 = max(most0, tops[0i][other][y]);
    }
    let factor0 = weight_of(top0.x - most0.x);
    s0_0 = weight_of(s0_0 - most0.x);
    s0_1 = weight_of(s0_1 - most0.x);
    s0_2 = weight_of(s0_2 - most0.x);
    s0_3 = weight_of(s0_3 - most0.x);
    sum0_0 *= factor0;
    let factor1 = weight_of(top0.y - most0.y);
    s1_0 = weight_of(s1_0 - most0.y);
    s1_1 = weight_of(s1_1 - most0.y);
    s1_2 = weight_of(s1_2 - most0.y);
    s1_3 = weight_of(s1_3 - most0.y);
    sum1_0 *= factor1;
    total0 = total0 * vec2<f32>(factor0, factor1) + vec2<f32>((((s0_0 + s0_1) + s0_2) + s0_3), (((s1_0 + s1_1) + s1_2) + s1_3));
    top0 = most0;
    for (var part = 0i; part < 16i; part += 8i) {
      if (x >= part && x < part + 8i) {
        let down = (y) ^ ((x - part));
        left[x - part][0i][down] = vec4<f32>(s0_0, s0_1, s0_2, s0_3);
        left[x - part][1i][down] = vec4<f32>(s1_0, s1_1, s1_2, s1_3);
      }
      right[(copy_four + 0i) / 4i][(copy_four + 0i) % 4i * 1i + copy_column / 16i][copy_column % 16i] = next0;
      right[(copy_four + 8i) / 4i][(copy_four + 8i) % 4i * 1i + copy_column / 16i][copy_column % 16i] = next1;
      right[(copy_four + 16i) / 4i][(copy_four + 16i) % 4i * 1i + copy_column / 16i][copy_column % 16i] = next2;
      right[(copy_four + 24i) / 4i][(copy_four + 24i) % 4i * 1i + copy_column / 16i][copy_column % 16i] = next3;
      workgroupBarrier();
      if (part + 8i < 16i) {
        next0 = select(vec4<f32>(), load_v(origin + min(base + part + 8i + (copy_four + 0i) / 4i + ((copy_four + 0i) % 4i + 0i) * 16i, 197i - 1i), copy_column), base + part + 8i + (copy_four + 0i) / 4i + ((copy_four + 0i) % 4i + 0i) * 16i < end);
        next1 = select(vec4<f32>(), load_v(origin + min(base + part + 8i + (copy_four + 8i) / 4i + ((copy_four + 8i) % 4i + 0i) * 16i, 197i - 1i), copy_column), base + part + 8i + (copy_four + 8i) / 4i + ((copy_four + 8i) % 4i + 0i) * 16i < end);
        next2 = select(vec4<f32>(), load_v(origin + min(base + part + 8i + (copy_four + 16i) / 4i + ((copy_four + 16i) % 4i + 0i) * 16i, 197i - 1i), copy_column), base + part + 8i + (copy_four + 16i) / 4i + ((copy_four + 16i) % 4i + 0i) * 16i < end);
        next3 = select(vec4<f32>(), load_v(origin + min(base + part + 8i + (copy_four + 24i) / 4i + ((copy_four + 24i) % 4i + 0i) * 16i, 197i - 1i), copy_column), base + part + 8i + (copy_four + 24i) / 4i + ((copy_four + 24i) % 4i + 0i) * 16i < end);
      }
      else {
        next0 = load_q(lines + min(first + copy_line + 0i, 197i - 1i), 0i + copy_at);
        next1 = load_k(origin + min(base + 64i + copy_line + 0i, 197i - 1i), 0i + copy_at);
        next2 = load_k(origin + min(base + 64i + copy_line + 16i, 197i - 1i), 0i + copy_at);
        next3 = load_k(origin + min(base + 64i + copy_line + 32i, 197i - 1i), 0i + copy_at);
        next4 = load_k(origin + min(base + 64i + copy_line + 48i, 197i - 1i), 0i + copy_at);
      }
      for (var at = 0i; at < 8i; at++) {
        let down = (y) ^ (at);
        let weight0 = left[at][0i][down];
        let weight1 = left[at][1i][down];
        let value0_0 = right[at][0i][x];
        sum0_0 += weight0.x * value0_0;
        sum1_0 += weight1.x * value0_0;
        let value1_0 = right[at][1i][x];
        sum0_0 += weight0.y * value1_0;
        sum1_0 += weight1.y * value1_0;
        let value2_0 = right[at][2i][x];
        sum0_0 += weight0.z * value2_0;
        sum1_0 += weight1.z * value2_0;
        let value3_0 = right[at][3i][x];
        sum0_0 += weight0.w * value3_0;
        sum1_0 += weight1.w * value3_0;
      }
      workgroupBarrier();
    }
  }
  tops[0i][x][y] = total0;
  var whole0 = vec2<f32>();
  workgroupBarrier();
  for (var other = 0i; other < 16i; other++) {
    whole0 += tops[0i][other][y];
  }
  if (row0 < 197i) {
    if ((x + 0i) < 16i) { b4[(((lines + row0) * 4i + split) * 68i + (x + 0i) * 4i) / 4i] = vec4<f32>(sum0_0.x, sum0_0.y, sum0_0.z, sum0_0.w); }
    if (x == 0i) { b4[(((lines + row0) * 4i + split) * 68i + 64i) / 4i] = vec4<f32>(top0.x, whole0.x, 0.0f, 0.0f); }
  }
  if (row1 < 197i) {
    if ((x + 0i) < 16i) { b4[(((lines + row1) * 4i + split) * 68i + (x + 0i) * 4i) / 4i] = vec4<f32>(sum1_0.x, sum1_0.y, sum1_0.z, sum1_0.w); }
    if (x == 0i) { b4[(((lines + row1) * 4i + split) * 68i + 64i) / 4i] = vec4<f32>(top0.y, whole0.y, 0.0f, 0.0f); }
  }
}
