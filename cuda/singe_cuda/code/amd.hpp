// What AMD's cards have of kernel text's functions, in HIP: the rest of prelude.cuh. Their waves have 32 or 64 invocations, of which each 32 are
// a subgroup.
inline u16 bits_of_f16(f32 x) { return bitcast<u16>(_Float16(x)); }
inline f32 f32_of_bits(u16 bits) { return f32(bitcast<_Float16>(bits)); }
#define ROUNDED_PRODUCT(T) \
  inline T product(T a, T b) { \
    _Pragma("clang fp contract(off)") \
    return a * b; \
  }
ROUNDED_PRODUCT(f32) ROUNDED_PRODUCT(f64)

template <class T> T from_member(T x, int far) { return __shfl_xor(x, far, 32); }
inline bool subgroupAny(bool x) { return subgroupMax(i32(x)) != 0; }
