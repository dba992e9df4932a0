struct Kernel {
ReadPort<f32> b0;
WrittenPort<f32> b1;
void main(const vec3<u32> group, const vec3<u32> groups, const u32 lane) {
  const auto point = i32((group.x + group.y * groups.x) * 64u + lane);
  if (point >= 1000) { return; }
  const auto g0 = point;
  b1[g0] = max_float(b0[g0], 0.0f);
}
};
extern "C" __global__ void __launch_bounds__(64) run(Read b0, Written b1) {
Kernel kernel{ReadPort<f32>(b0), WrittenPort<f32>(b1)};
kernel.main({blockIdx.x, blockIdx.y, blockIdx.z}, {gridDim.x, gridDim.y, gridDim.z}, threadIdx.x);
}
