// Kernel text's types and functions (gpu/README.md), and the library of words.py, in CUDA C++17. NVRTC compiles it before each
// kernel, with no header of CUDA's toolkit. All functions are the device's.
using i8 = signed char;
using u8 = unsigned char;
using i16 = short;
using u16 = unsigned short;
using i32 = int;
using u32 = unsigned;
using i64 = long long;
using u64 = unsigned long long;
using f32 = float;
using f64 = double;

struct f16 {
  u16 bits;
  f16() = default;
  explicit f16(f32 x) { asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(x)); }
  explicit operator f32() const { f32 x; asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(bits)); return x; }
};

struct bf16;

// --- vectors and arrays, whose constructors without arguments do nothing, so that workgroup memory may hold them -----------------

template <class T, int N> struct vec;
template <class T> using vec2 = vec<T, 2>;
template <class T> using vec3 = vec<T, 3>;
template <class T> using vec4 = vec<T, 4>;

template <class T> struct alignas(2 * sizeof(T)) vec<T, 2> {
  T x, y;
  vec() = default;
  explicit vec(T a) : x(a), y(a) {}
  vec(T a, T b) : x(a), y(b) {}
  T &operator[](u32 i) { return i == 0 ? x : y; }
  T operator[](u32 i) const { return i == 0 ? x : y; }
};
template <class T> struct vec<T, 3> {
  T x, y, z;
  vec() = default;
  vec(T a, T b, T c) : x(a), y(b), z(c) {}
};
template <class T> struct alignas(4 * sizeof(T)) vec<T, 4> {
  T x, y, z, w;
  vec() = default;
  explicit vec(T a) : x(a), y(a), z(a), w(a) {}
  vec(T a, T b, T c, T d) : x(a), y(b), z(c), w(d) {}
  vec(vec2<T> a, vec2<T> b) : x(a.x), y(a.y), z(b.x), w(b.y) {}
  template <class U> explicit vec(const vec<U, 4> &a) : x(T(a.x)), y(T(a.y)), z(T(a.z)), w(T(a.w)) {}
  T &operator[](u32 i) { return (&x)[i]; }
  T operator[](u32 i) const { return i == 0 ? x : i == 1 ? y : i == 2 ? z : w; }
  vec2<T> xy() const { return {x, y}; }
  vec2<T> zw() const { return {z, w}; }
};

template <class T, int N> struct array {
  T parts[N];
  array() = default;
  template <class... U> explicit array(T first, U... rest) : parts{first, rest...} {}
  T &operator[](u32 i) { return parts[i]; }
  const T &operator[](u32 i) const { return parts[i]; }
};

template <class T> struct atomic { T value; };

#define BOTH(OP) \
  template <class T> vec2<T> operator OP(const vec2<T> &a, const vec2<T> &b) { return {T(a.x OP b.x), T(a.y OP b.y)}; } \
  template <class T> vec4<T> operator OP(const vec4<T> &a, const vec4<T> &b) { \
    return {T(a.x OP b.x), T(a.y OP b.y), T(a.z OP b.z), T(a.w OP b.w)}; \
  } \
  template <class T, int N> vec<T, N> operator OP(const vec<T, N> &a, T b) { return a OP vec<T, N>(b); } \
  template <class T, int N> vec<T, N> operator OP(T a, const vec<T, N> &b) { return vec<T, N>(a) OP b; } \
  template <class T, int N> void operator OP##=(vec<T, N> &a, const vec<T, N> &b) { a = a OP b; } \
  template <class T, int N> void operator OP##=(vec<T, N> &a, T b) { a = a OP b; }
BOTH(+) BOTH(-) BOTH(*) BOTH(/) BOTH(%) BOTH(&) BOTH(|) BOTH(^)
#define SHIFT(OP) \
  template <class T> vec4<T> operator OP(const vec4<T> &a, const vec4<u32> &b) { \
    return {a.x OP b.x, a.y OP b.y, a.z OP b.z, a.w OP b.w}; \
  }
SHIFT(<<) SHIFT(>>)
#define TEST(OP) \
  template <class T> vec4<bool> operator OP(const vec4<T> &a, const vec4<T> &b) { \
    return {a.x OP b.x, a.y OP b.y, a.z OP b.z, a.w OP b.w}; \
  }
TEST(<) TEST(>) TEST(<=) TEST(>=) TEST(==) TEST(!=)
template <class T> vec4<T> operator-(const vec4<T> &a) { return {-a.x, -a.y, -a.z, -a.w}; }
template <class T, int N> vec<T, N> operator~(const vec<T, N> &a) { return a ^ T(~T(0)); }

// --- ports: a read beyond one gives its last element, which nothing uses ---------------------------------------------------------

struct Read { const void *data; u64 bytes; };
struct Written { void *data; u64 bytes; };
struct Sizes { const vec4<i32> *data; u64 bytes; };

template <class T> struct ReadPort {
  const T *data;
  u32 last;
  explicit ReadPort(Read port) : data((const T *)port.data), last(u32(port.bytes / sizeof(T)) - 1) {}
  T operator[](u32 i) const;
};
template <class T> struct WrittenPort {
  T *data;
  u32 last;
  explicit WrittenPort(Written port) : data((T *)port.data), last(u32(port.bytes / sizeof(T)) - 1) {}
  T &operator[](u32 i) const { return data[i < last ? i : last]; }
};

// An element that nothing writes while the kernel runs, by the cache for these.
template <int BYTES> struct Cached;
#define CACHED(BYTES, TYPE) template <> struct Cached<BYTES> { using type = TYPE; };
CACHED(1, u8) CACHED(2, u16) CACHED(4, u32) CACHED(8, uint2) CACHED(16, uint4)

template <class To, class From> To bitcast(From x) {
  static_assert(sizeof(To) == sizeof(From), "bitcast: equal sizes");
  To y;
  memcpy(&y, &x, sizeof(To));
  return y;
}

template <class T> T ReadPort<T>::operator[](u32 i) const {
  return bitcast<T>(__ldg((const typename Cached<sizeof(T)>::type *)(data + (i < last ? i : last))));
}

// --- built-in functions -----------------------------------------------------------------------------------------------------------

template <class T> T select(T no, T yes, bool condition) { return condition ? yes : no; }
template <class T> vec2<T> select(vec2<T> no, vec2<T> yes, bool condition) { return condition ? yes : no; }
template <class T> vec4<T> select(vec4<T> no, vec4<T> yes, vec4<bool> c) {
  return {c.x ? yes.x : no.x, c.y ? yes.y : no.y, c.z ? yes.z : no.z, c.w ? yes.w : no.w};
}
#define BY_PARTS(NAME) \
  template <class T> vec2<T> NAME(vec2<T> a, vec2<T> b) { return {NAME(a.x, b.x), NAME(a.y, b.y)}; } \
  template <class T> vec4<T> NAME(vec4<T> a, vec4<T> b) { \
    return {NAME(a.x, b.x), NAME(a.y, b.y), NAME(a.z, b.z), NAME(a.w, b.w)}; \
  }
BY_PARTS(min) BY_PARTS(max)
#define OF_PARTS(NAME) \
  template <class T> vec4<T> NAME(vec4<T> a) { return {NAME(a.x), NAME(a.y), NAME(a.z), NAME(a.w)}; }
inline f32 round(f32 x) { return rintf(x); }
inline f64 round(f64 x) { return rint(x); }
OF_PARTS(abs) OF_PARTS(floor) OF_PARTS(ceil) OF_PARTS(round)
template <class T> T clamp(T x, T low, T high) { return min(max(x, low), high); }
inline f32 dot(vec4<f32> a, vec4<f32> b) { return a.x * b.x + a.y * b.y + a.z * b.z + a.w * b.w; }
inline i32 dot4I8Packed(u32 a, u32 b) { return __dp4a(i32(a), i32(b), 0); }
inline i32 extractBits(i32 x, u32 at, u32 count) { return x << (32 - count - at) >> (32 - count); }
inline u32 extractBits(u32 x, u32 at, u32 count) { return x << (32 - count - at) >> (32 - count); }
inline u32 firstTrailingBit(u32 x) { return u32(__ffs(i32(x))) - 1; }
inline void workgroupBarrier() { __syncthreads(); }
inline void subgroupBarrier() { __syncwarp(); }

inline u32 atomicLoad(const atomic<u32> *place) { return *(const volatile u32 *)&place->value; }
inline void atomicStore(atomic<u32> *place, u32 x) { *(volatile u32 *)&place->value = x; }
inline u32 atomicAnd(atomic<u32> *place, u32 x) { return atomicAnd(&place->value, x); }
inline u32 atomicOr(atomic<u32> *place, u32 x) { return atomicOr(&place->value, x); }

constexpr u32 ALL = 0xffffffffu;
template <class T, class F> T over_subgroup(T x, F combine) {
  for (int far = 16; far; far >>= 1) x = combine(x, __shfl_xor_sync(ALL, x, far));
  return x;
}
template <class T> T subgroupAdd(T x) { return over_subgroup(x, [](T a, T b) { return T(a + b); }); }
template <class T> T subgroupMul(T x) { return over_subgroup(x, [](T a, T b) { return T(a * b); }); }
template <class T> T subgroupMax(T x) { return over_subgroup(x, [](T a, T b) { return max(a, b); }); }
template <class T> T subgroupMin(T x) { return over_subgroup(x, [](T a, T b) { return min(a, b); }); }
inline bool subgroupAny(bool x) { return __any_sync(ALL, x); }

// --- matrices of 16 × 16 over tensor cores: a subgroup's registers, as mma.m16n8k16 takes them -----------------------------------------

enum Order { row_major, col_major };
template <class T, int COLUMNS, int ROWS> struct subgroup_matrix_left { u32 halves[4]; static constexpr bool left = true; };
template <class T, int COLUMNS, int ROWS> struct subgroup_matrix_right { u32 halves[4]; static constexpr bool left = false; };
template <class T, int COLUMNS, int ROWS> struct subgroup_matrix_result {
  T sums[8];
  subgroup_matrix_result() : sums{} {}
};

// A float32 is the sum of two numbers of as many digits as a tensor core reads (TF32), but for the last bit of 24, so that three products
// of such numbers are one of float32 (the fourth is below its digits).
struct InTwo {
  f32 large[8], small[8];
  void set(int k, u32 bits) {
    large[k] = __uint_as_float((bits + 0x1000) & 0xffffe000);
    small[k] = __uint_as_float(bits) - large[k];
  }
};
template <int COLUMNS, int ROWS> struct subgroup_matrix_left<f32, COLUMNS, ROWS> : InTwo { static constexpr bool left = true; };
template <int COLUMNS, int ROWS> struct subgroup_matrix_right<f32, COLUMNS, ROWS> : InTwo { static constexpr bool left = false; };

// Where that is asked for, a float32 is rounded to such a number.
struct tf32;
struct InOne {
  f32 large[8];
  void set(int k, u32 bits) { asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(*(u32 *)(large + k)) : "f"(__uint_as_float(bits))); }
};
template <int COLUMNS, int ROWS> struct subgroup_matrix_left<tf32, COLUMNS, ROWS> : InOne { static constexpr bool left = true; };
template <int COLUMNS, int ROWS> struct subgroup_matrix_right<tf32, COLUMNS, ROWS> : InOne { static constexpr bool left = false; };

inline void loadFour(u32 *to, const void *from) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
      : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3]) : "r"(u32(__cvta_generic_to_shared(from))) : "memory");
}
// Elements of 32 bits, as mma.m16n8k8 takes them, twice along the depth: a line of 16 bytes of a matrix of 8 × 8 holds four.
template <class M, bool TURNED> M loadSingles(const vec4<u32> *corner, u32 stride) {
  const u32 lane = threadIdx.x & 31, part = lane >> 3, line = lane & 7;
  u32 found[8];
  for (u32 step = 0; step < 2; step++) {
    if constexpr (TURNED) {
      for (u32 k = 0; k < 4; k++) {
        const u32 down = M::left ? k & 1 : k >> 1, along = M::left ? k >> 1 : k & 1;
        found[4 * step + k] = ((const u32 *)(corner + (8 * step + 4 * along + (lane & 3)) * stride))[8 * down + (lane >> 2)];
      }
    } else {
      const u32 down = M::left ? part & 1 : part >> 1, along = M::left ? part >> 1 : part & 1;
      loadFour(found + 4 * step, corner + (line + 8 * down) * stride + 2 * step + along);
    }
  }
  M m;
  for (int k = 0; k < 8; k++) m.set(k, found[k]);
  return m;
}

// Each of the four matrices of 8 × 8 has a line for every lane of its eight; two of them lie along a line of the tile.
template <class M, Order ORDER, int N> M subgroupMatrixLoad(const array<vec4<u32>, N> *tile, u32 at, u32 stride) {
  constexpr bool turned = M::left == (ORDER == col_major);
  if constexpr (sizeof(M) > 16) return loadSingles<M, turned>(tile->parts + at, stride);
  else {
  const u32 lane = threadIdx.x & 31, part = lane >> 3, line = lane & 7;
  // The parts in the order of the instruction's registers: of the left side first down the rows, of the right first along the depth.
  constexpr bool down_first = M::left != turned;
  const u32 down = down_first ? part & 1 : part >> 1, along = down_first ? part >> 1 : part & 1;
  const u32 from = u32(__cvta_generic_to_shared(&tile->parts[at + (line + 8 * down) * stride + along]));
  M found;
  if constexpr (turned)
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
        : "=r"(found.halves[0]), "=r"(found.halves[1]), "=r"(found.halves[2]), "=r"(found.halves[3]) : "r"(from) : "memory");
  else
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
        : "=r"(found.halves[0]), "=r"(found.halves[1]), "=r"(found.halves[2]), "=r"(found.halves[3]) : "r"(from) : "memory");
  return found;
  }
}
template <Order ORDER, int N, class M> void subgroupMatrixStore(array<vec4<u32>, N> *tile, u32 at, const M &m, u32 stride) {
  const u32 lane = threadIdx.x & 31;
  f32 *to = (f32 *)&tile->parts[at];
  for (int k = 0; k < 8; k++) {
    const u32 row = (lane >> 2) + (k & 2 ? 8 : 0), column = (lane & 3) * 2 + (k & 1) + (k & 4 ? 8 : 0);
    to[row * stride * 4 + column] = m.sums[k];
  }
}
#define MULTIPLY(TYPE, NAME) \
  template <class B, class M> M subgroupMatrixMultiplyAccumulate(const subgroup_matrix_left<TYPE, 16, 16> &a, const B &b, const M &c) { \
    M d = c; \
    for (int half = 0; half < 2; half++) { \
      f32 *s = d.sums + 4 * half; \
      asm volatile("mma.sync.aligned.m16n8k16.row.col.f32." NAME "." NAME ".f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};" \
          : "+f"(s[0]), "+f"(s[1]), "+f"(s[2]), "+f"(s[3]) \
          : "r"(a.halves[0]), "r"(a.halves[1]), "r"(a.halves[2]), "r"(a.halves[3]), "r"(b.halves[2 * half]), "r"(b.halves[2 * half + 1])); \
    } \
    return d; \
  }
MULTIPLY(f16, "f16") MULTIPLY(bf16, "bf16")
template <class M> bool areFinite(const M &m) {
  f32 none = 0;
  for (int k = 0; k < 8; k++) none += m.sums[k] * 0;
  return none == 0;
}
inline void multiplyParts(f32 *s, const f32 *a, const f32 *b) {
  asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(s[0]), "+f"(s[1]), "+f"(s[2]), "+f"(s[3])
      : "r"(__float_as_uint(a[0])), "r"(__float_as_uint(a[1])), "r"(__float_as_uint(a[2])), "r"(__float_as_uint(a[3])),
        "r"(__float_as_uint(b[0])), "r"(__float_as_uint(b[1])));
}
// A tensor core's sums are cut off, not rounded: they begin at 0 each time, so that this does not add up along the depth.
template <class B, class M> M subgroupMatrixMultiplyAccumulate(const subgroup_matrix_left<f32, 16, 16> &a, const B &b, const M &c) {
  M d;
  for (int step = 0; step < 2; step++)
    for (int half = 0; half < 2; half++) {
      const int at = 4 * step, to = 4 * half, from = 4 * step + 2 * half;
      multiplyParts(d.sums + to, a.small + at, b.large + from);
      multiplyParts(d.sums + to, a.large + at, b.small + from);
    }
  for (int step = 0; step < 2; step++)
    for (int half = 0; half < 2; half++) multiplyParts(d.sums + 4 * half, a.large + 4 * step, b.large + 4 * step + 2 * half);
  for (int k = 0; k < 8; k++) d.sums[k] = c.sums[k] + d.sums[k];
  return d;
}

template <class B, class M> M subgroupMatrixMultiplyAccumulate(const subgroup_matrix_left<tf32, 16, 16> &a, const B &b, const M &c) {
  M d = c;
  for (int step = 0; step < 2; step++)
    for (int half = 0; half < 2; half++) multiplyParts(d.sums + 4 * half, a.large + 4 * step, b.large + 4 * step + 2 * half);
  return d;
}

// --- wide products: four subgroups multiply straight from workgroup memory, by Hopper's wgmma, and go on meanwhile ----------------------

// How a tile lies there: lines of 128 bytes, whose eight vectors are in another order in each of eight lines; eight lines take 1,024 bytes,
// and blocks of 64 lines lie beside each other where a line across the depth is longer.
template <int N> u64 wideTile(const array<vec4<u32>, N> *tile, u32 at) {
  return u64(u32(__cvta_generic_to_shared(&tile->parts[at])) >> 4) | u64(8192 >> 4) << 16 | u64(1024 >> 4) << 32 | u64(1) << 62;
}
// What invocations wrote to workgroup memory themselves is seen by wgmma after this.
inline void wideBarrier() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  __syncthreads();
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}
inline void wideEnd() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
template <int N> void wideWait() { asm volatile("wgmma.wait_group.sync.aligned %0;" :: "n"(N) : "memory"); }

#define TEN(A) "%" #A "0, %" #A "1, %" #A "2, %" #A "3, %" #A "4, %" #A "5, %" #A "6, %" #A "7, %" #A "8, %" #A "9, "
#define TO_29 "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, " TEN(1) TEN(2)
#define TO_59 TO_29 TEN(3) TEN(4) TEN(5)
#define TO_119 TO_59 TEN(6) TEN(7) TEN(8) TEN(9) TEN(10) TEN(11)
#define SUMS(I) "+f"(s[I].sums[0]), "+f"(s[I].sums[1]), "+f"(s[I].sums[2]), "+f"(s[I].sums[3]), \
    "+f"(s[I].sums[4]), "+f"(s[I].sums[5]), "+f"(s[I].sums[6]), "+f"(s[I].sums[7])
#define SUMS_4(I) SUMS(I), SUMS(I + 1), SUMS(I + 2), SUMS(I + 3)
#define SUMS_8(I) SUMS_4(I), SUMS_4(I + 4)
#define WIDE(COLUMNS, TYPE, LIST, LEFT, RIGHT, A, B, ...) \
  asm volatile("wgmma.mma_async.sync.aligned.m64n" #COLUMNS "k16.f32." TYPE "." TYPE " {" LIST "}, %" #LEFT ", %" #RIGHT ", 1, 1, 1, %" #A ", %" #B ";" \
      : __VA_ARGS__ : "l"(left), "l"(right), "n"(LEFT_ORDER == col_major), "n"(RIGHT_ORDER == row_major))
#define WIDE_OF(TYPE, NAME) \
  template <Order LEFT_ORDER, Order RIGHT_ORDER, int COUNT> void addWide(TYPE *, subgroup_matrix_result<f32, 16, 16> *s, u64 left, u64 right) { \
    if constexpr (COUNT == 4) WIDE(64, NAME, TO_29 "%30, %31", 32, 33, 34, 35, SUMS_4(0)); \
    else if constexpr (COUNT == 8) WIDE(128, NAME, TO_59 "%60, %61, %62, %63", 64, 65, 66, 67, SUMS_8(0)); \
    else WIDE(256, NAME, TO_119 "%120, %121, %122, %123, %124, %125, %126, %127", 128, 129, 130, 131, SUMS_8(0), SUMS_8(8)); \
  }
WIDE_OF(f16, "f16") WIDE_OF(bf16, "bf16")
template <class T, Order LEFT, Order RIGHT, int COUNT, int M, int N> void multiplyWide(
    array<subgroup_matrix_result<f32, 16, 16>, COUNT> *sums, const array<vec4<u32>, M> *a, u32 at_a, const array<vec4<u32>, N> *b, u32 at_b) {
  addWide<LEFT, RIGHT, COUNT>((T *)nullptr, sums->parts, wideTile(a, at_a), wideTile(b, at_b));
}

// --- copies to workgroup memory while an invocation goes on ------------------------------------------------------------------------------

template <class T> void copyAhead(T *to, const ReadPort<T> &from, u32 i) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;"
      :: "r"(u32(__cvta_generic_to_shared(to))), "l"(from.data + (i < from.last ? i : from.last)) : "memory");
}
// The copies since the last end are one group.
inline void copiesEnd() { asm volatile("cp.async.commit_group;" ::: "memory"); }
// All groups but the last N have arrived.
template <int N> void copiesWait() { asm volatile("cp.async.wait_group %0;" :: "n"(N) : "memory"); }

// --- the library: NaN, halves, bytes ------------------------------------------------------------------------------------------------

inline f32 nan() { return __int_as_float(0x7fc00000); }
inline f32 inf() { return __int_as_float(0x7f800000); }
template <class T> bool is_nan(T x) { return x != x; }
inline vec4<bool> are_nan(vec4<f32> x) { return x != x; }
#define WITH_NAN(NAME, PLAIN) \
  template <class T> T NAME(T a, T b) { return a != a ? a : b != b ? b : PLAIN(a, b); } \
  template <class T> vec4<T> NAME(vec4<T> a, vec4<T> b) { \
    return {NAME(a.x, b.x), NAME(a.y, b.y), NAME(a.z, b.z), NAME(a.w, b.w)}; \
  }
WITH_NAN(max_float, max) WITH_NAN(min_float, min)
inline f32 tanh_f32(f32 x) { return tanhf(x); }

inline u32 half_bits(f32 x) { return f16(x).bits; }
inline f32 f32_of_half(u32 bits) { f16 x; x.bits = u16(bits); return f32(x); }
inline f32 half_of(u32 pair, i32 index) { return f32_of_half(index & 1 ? pair >> 16 : pair & 0xffffu); }
inline vec4<f32> four_halves(vec2<u32> p) {
  return {f32_of_half(p.x & 0xffffu), f32_of_half(p.x >> 16), f32_of_half(p.y & 0xffffu), f32_of_half(p.y >> 16)};
}
inline u32 pair_of(f32 x, f32 y) { return half_bits(x) | half_bits(y) << 16; }
inline vec4<i32> four_bytes(i32 x) { return {i32(i8(x)), i32(i8(x >> 8)), i32(i8(x >> 16)), x >> 24}; }
inline vec4<i32> four_unsigned_bytes(u32 x) { return {i32(x & 255), i32(x >> 8 & 255), i32(x >> 16 & 255), i32(x >> 24)}; }
inline u32 packed_bytes(vec4<i32> x) { return (x.x & 255) | (x.y & 255) << 8 | (x.z & 255) << 16 | u32(x.w) << 24; }

// Products that no compiler joins to a sum, so that random numbers are the same on every device. Templates of products use the operators.
inline f32 product(f32 a, f32 b) { return __fmul_rn(a, b); }
inline f64 product(f64 a, f64 b) { return __dmul_rn(a, b); }
inline vec4<f32> product(vec4<f32> a, vec4<f32> b) {
  return {product(a.x, b.x), product(a.y, b.y), product(a.z, b.z), product(a.w, b.w)};
}

// --- 64-bit integers, which templates see as two words --------------------------------------------------------------------------------

inline i64 signed_of(vec2<u32> x) { return i64(u64(x.y) << 32 | x.x); }
inline u64 unsigned_of(vec2<u32> x) { return u64(x.y) << 32 | x.x; }
inline vec2<u32> pair(u64 x) { return {u32(x), u32(x >> 32)}; }
inline vec2<u32> pair(i64 x) { return pair(u64(x)); }

// Division by zero gives 0, as everywhere in Singe; the least number divided by -1 is itself.
template <class T> T quotient(T a, T b) { return b == 0 ? T(0) : T(b) == T(-1) && T(-1) < T(0) ? T(0 - a) : T(a / b); }
template <class T> T remainder_of(T a, T b) { return b == 0 ? T(0) : T(b) == T(-1) && T(-1) < T(0) ? T(0) : T(a % b); }

// --- casts: from floats toward zero, saturating, and NaN to 0; integers wrap ------------------------------------------------------------

template <class To, class From> struct Cast { static To of(From x) { return To(x); } };
#define SATURATING(TO, FROM, TOP, LEAST, HIGHEST) \
  template <> struct Cast<TO, FROM> { \
    static TO of(FROM x) { return x != x ? TO(0) : x >= FROM(TOP) ? TO(HIGHEST) : x <= FROM(LEAST) ? TO(LEAST) : TO(x); } \
  };
#define FROM_FLOATS(TO, TOP, LEAST, HIGHEST) SATURATING(TO, f32, TOP, LEAST, HIGHEST) SATURATING(TO, f64, TOP, LEAST, HIGHEST)
FROM_FLOATS(i32, 2147483648.0, -2147483647 - 1, 2147483647)
FROM_FLOATS(u32, 4294967296.0, 0, 4294967295u)
FROM_FLOATS(i64, 9223372036854775808.0, -9223372036854775807LL - 1, 9223372036854775807LL)
FROM_FLOATS(u64, 18446744073709551616.0, 0, 18446744073709551615ULL)
template <class To, class From> To cast(From x) { return Cast<To, From>::of(x); }
inline vec4<i32> i32s_of_f32s(vec4<f32> x) { return {cast<i32>(x.x), cast<i32>(x.y), cast<i32>(x.z), cast<i32>(x.w)}; }
