// Kernel text's types and built-in functions, as gpu/README.md lists them, in C++20. They are declared, not defined:
// it is their types that a compiler checks.
using i32 = int;
using u32 = unsigned;
using f32 = float;
struct f16 { f16() = default; explicit f16(f32); explicit operator f32() const; };

template <class T, int N> struct vec;
template <class T> using vec2 = vec<T, 2>;
template <class T> using vec3 = vec<T, 3>;
template <class T> using vec4 = vec<T, 4>;
template <class T> struct vec<T, 2> { T x, y; vec(); explicit vec(T); vec(T, T); T &operator[](u32); T operator[](u32) const; };
template <class T> struct vec<T, 3> { T x, y, z; vec(); explicit vec(T); vec(T, T, T); T operator[](u32) const; };
template <class T> struct vec<T, 4> {
  T x, y, z, w;
  vec(); explicit vec(T); vec(T, T, T, T);
  vec(vec2<T>, vec2<T>); template <class U> explicit vec(const vec<U, 4> &);
  T &operator[](i32); T operator[](i32) const;
  vec2<T> xy() const; vec2<T> zw() const;
};
template <class T, int N = 0> struct array {
  array() = default;
  template <class... U> explicit array(U...) requires(sizeof...(U) == N);
  T &operator[](auto); const T &operator[](auto) const;
};
template <class T> struct atomic {};

#define BOTH(OP) \
  template <class T, int N> vec<T, N> operator OP(const vec<T, N> &, const vec<T, N> &); \
  template <class T, int N> vec<T, N> operator OP(const vec<T, N> &, T); \
  template <class T, int N> vec<T, N> operator OP(T, const vec<T, N> &); \
  template <class T, int N> void operator OP##=(vec<T, N> &, const vec<T, N> &); \
  template <class T, int N> void operator OP##=(vec<T, N> &, T);
BOTH(+) BOTH(-) BOTH(*) BOTH(/) BOTH(%) BOTH(&) BOTH(|) BOTH(^)
#define SHIFT(OP) template <class T, int N> vec<T, N> operator OP(const vec<T, N> &, const vec<u32, N> &);
SHIFT(<<) SHIFT(>>)
#define TEST(OP) template <class T, int N> vec<bool, N> operator OP(const vec<T, N> &, const vec<T, N> &);
TEST(<) TEST(>) TEST(<=) TEST(>=) TEST(==) TEST(!=)
template <class T, int N> vec<T, N> operator-(const vec<T, N> &);
template <class T, int N> vec<T, N> operator~(const vec<T, N> &);

template <class T> T select(T, T, bool);
template <class T, int N> vec<T, N> select(vec<T, N>, vec<T, N>, vec<bool, N>);
template <class To, class From> To bitcast(From) requires(sizeof(To) == sizeof(From));
template <class T> T min(T, T); template <class T> T max(T, T); template <class T> T clamp(T, T, T);
template <class T> T abs(T); template <class T> T floor(T); template <class T> T round(T); template <class T> T trunc(T);
f32 exp(f32); f32 log(f32); f32 sqrt(f32); f32 sin(f32); f32 cos(f32); f32 tanh(f32); f32 fma(f32, f32, f32);
template <int N> bool any(vec<bool, N>); template <int N> bool all(vec<bool, N>);
f32 dot(vec4<f32>, vec4<f32>); i32 dot4I8Packed(u32, u32);
i32 extractBits(i32, u32, u32); u32 extractBits(u32, u32, u32); u32 firstTrailingBit(u32); u32 countLeadingZeros(u32);
vec2<f32> unpack2x16float(u32); u32 pack2x16float(vec2<f32>); u32 pack4xI8(vec4<i32>); vec4<i32> unpack4xI8(u32);
u32 atomicLoad(const atomic<u32> *); void atomicStore(atomic<u32> *, u32);
u32 atomicAnd(atomic<u32> *, u32); u32 atomicOr(atomic<u32> *, u32);
void workgroupBarrier();

template <class T> T subgroupAdd(T); template <class T> T subgroupMul(T);
template <class T> T subgroupMax(T); template <class T> T subgroupMin(T); bool subgroupAny(bool);
enum Order { row_major, col_major };
template <class T, int COLUMNS, int ROWS> struct subgroup_matrix_left { using of = T; };
template <class T, int COLUMNS, int ROWS> struct subgroup_matrix_right { using of = T; };
template <class T, int COLUMNS, int ROWS> struct subgroup_matrix_result { using of = T; };
template <class M, Order O, int N> M subgroupMatrixLoad(const array<vec4<u32>, N> *, u32, u32);
template <Order O, int N, class M> void subgroupMatrixStore(array<vec4<u32>, N> *, u32, M, u32);
template <class T, class U, int N, int K, int M>
subgroup_matrix_result<U, N, M> subgroupMatrixMultiplyAccumulate(
    subgroup_matrix_left<T, K, M>, subgroup_matrix_right<T, N, K>, subgroup_matrix_result<U, N, M>);
