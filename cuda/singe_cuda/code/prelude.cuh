// Kernel text's types and functions (gpu/README.md), and the library of words.py, in C++17, as CUDA and HIP have it. What differs between
// their cards, and is declared here alone, is in nvidia.cuh and amd.hpp. The compiler reads both before each kernel, with no header of
// a toolkit. All functions are the device's.
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

inline u16 bits_of_f16(f32 x);
inline f32 f32_of_bits(u16 bits);
struct f16 {
  u16 bits;
  f16() = default;
  explicit f16(f32 x) : bits(bits_of_f16(x)) {}
  explicit operator f32() const { return f32_of_bits(bits); }
};

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
inline f32 nearest(f32 x) { return rintf(x); }
inline f64 nearest(f64 x) { return rint(x); }
OF_PARTS(abs) OF_PARTS(floor) OF_PARTS(ceil) OF_PARTS(nearest)
template <class T> T clamp(T x, T low, T high) { return min(max(x, low), high); }
inline f32 dot(vec4<f32> a, vec4<f32> b) { return a.x * b.x + a.y * b.y + a.z * b.z + a.w * b.w; }
inline i32 extractBits(i32 x, u32 at, u32 count) { return x << (32 - count - at) >> (32 - count); }
inline u32 extractBits(u32 x, u32 at, u32 count) { return x << (32 - count - at) >> (32 - count); }
inline u32 firstTrailingBit(u32 x) { return u32(__ffs(i32(x))) - 1; }
inline void workgroupBarrier() { __syncthreads(); }

inline u32 atomicLoad(const atomic<u32> *place) { return *(const volatile u32 *)&place->value; }
inline void atomicStore(atomic<u32> *place, u32 x) { *(volatile u32 *)&place->value = x; }
inline u32 atomicAnd(atomic<u32> *place, u32 x) { return atomicAnd(&place->value, x); }
inline u32 atomicOr(atomic<u32> *place, u32 x) { return atomicOr(&place->value, x); }

// The value of the invocation of the subgroup, of 32, whose number differs in the bits of `far`.
template <class T> T from_member(T x, int far);
template <class T, class F> T over_subgroup(T x, F combine) {
  for (int far = 16; far; far >>= 1) x = combine(x, from_member(x, far));
  return x;
}
template <class T> T subgroupAdd(T x) { return over_subgroup(x, [](T a, T b) { return T(a + b); }); }
template <class T> T subgroupMul(T x) { return over_subgroup(x, [](T a, T b) { return T(a * b); }); }
template <class T> T subgroupMax(T x) { return over_subgroup(x, [](T a, T b) { return max(a, b); }); }
template <class T> T subgroupMin(T x) { return over_subgroup(x, [](T a, T b) { return min(a, b); }); }
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
inline f32 product(f32 a, f32 b);
inline f64 product(f64 a, f64 b);
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
