struct Kernel {
ReadPort<f32> b0;
WrittenPort<f32> b1;
const vec4<i32> *sizes;
void main(const vec3<u32> group, const vec3<u32> groups, const u32 lane) {
  for (auto point = i32(group.x * 64u + lane); point < sizes[0].x; point += i32(groups.x) * 64) {
    const auto g0 = point;
    f32 a0 = (-inf());
    const auto v1 = (g0 * 1000);
    for (auto r0 = 0; r0 < 1000; r0++) {
      a0 = max_float(a0, b0[(v1 + r0)]);
    }
    f32 a1 = 0.0f;
    for (auto r0 = 0; r0 < 1000; r0++) {
      a1 = (a1 + exp((b0[(v1 + r0)] - a0)));
    }
    for (auto r0 = 0; r0 < 1000; r0++) {
      const auto v2 = (v1 + r0);
      b1[v2] = (exp((b0[v2] - a0)) / a1);
    }
  }
}
};
extern "C" __global__ void __launch_bounds__(64) run(Read b0, Written b1, Sizes sizes) {
Kernel kernel{ReadPort<f32>(b0), WrittenPort<f32>(b1), sizes.data};
kernel.main({blockIdx.x, blockIdx.y, blockIdx.z}, {gridDim.x, gridDim.y, gridDim.z}, threadIdx.x);
}
