// What HIP's compiler declares, as far as kernels use it, for a C++ compiler of the host: it is the types that it checks.
#include <cmath>
#include <cstring>
#define __global__
#define __launch_bounds__(N)
#define __shared__ static
#define _Float16 Float16
struct Float16 { unsigned short bits; explicit Float16(float); explicit operator float() const; Float16() = default; };
struct uint2 { unsigned x, y; };
struct uint4 { unsigned x, y, z, w; };
struct { unsigned x, y, z; } const threadIdx{}, blockIdx{}, gridDim{};
void __syncthreads();
template <class T> T __ldg(const T *p) { return *p; }
template <class T> T __shfl_xor(T x, int far, int width);
int __ffs(int x);
float __int_as_float(int x);
unsigned atomicAnd(unsigned *p, unsigned x);
unsigned atomicOr(unsigned *p, unsigned x);
using std::abs, std::ceil, std::cos, std::exp, std::floor, std::fmod, std::log, std::memcpy, std::sin, std::sqrt, std::tanh, std::isnan;
template <class T> T min(T a, T b) { return a < b ? a : b; }
template <class T> T max(T a, T b) { return a < b ? b : a; }
