// What NVIDIA's cards have of kernel text's functions: the rest of prelude.cuh, and what only they have.
inline u16 bits_of_f16(f32 x) { u16 bits; asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(x)); return bits; }
inline f32 f32_of_bits(u16 bits) { f32 x; asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(bits)); return x; }
inline f32 product(f32 a, f32 b) { return __fmul_rn(a, b); }
inline f64 product(f64 a, f64 b) { return __dmul_rn(a, b); }
inline i32 dot4I8Packed(u32 a, u32 b) { return __dp4a(i32(a), i32(b), 0); }

constexpr u32 ALL = 0xffffffffu;
template <class T> T from_member(T x, int far) { return __shfl_xor_sync(ALL, x, far); }
inline bool subgroupAny(bool x) { return __any_sync(ALL, x); }
inline void subgroupBarrier() { __syncwarp(); }

struct bf16;

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
template <Order ORDER, int N, class T, int COLUMNS, int ROWS> void subgroupMatrixStore(
    array<vec4<u32>, N> *tile, u32 at, const subgroup_matrix_result<T, COLUMNS, ROWS> &m, u32 stride) {
  const u32 lane = threadIdx.x & 31;
  T *to = (T *)&tile->parts[at];
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
// A matrix of bytes, of 32 along the depth, lies in the registers of one of halves, of 16.
template <class B, class M> M subgroupMatrixMultiplyAccumulate(const subgroup_matrix_left<i8, 32, 16> &a, const B &b, const M &c) {
  M d = c;
  for (int half = 0; half < 2; half++) {
    i32 *s = d.sums + 4 * half;
    asm volatile("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+r"(s[0]), "+r"(s[1]), "+r"(s[2]), "+r"(s[3])
        : "r"(a.halves[0]), "r"(a.halves[1]), "r"(a.halves[2]), "r"(a.halves[3]), "r"(b.halves[2 * half]), "r"(b.halves[2 * half + 1]));
  }
  return d;
}
inline subgroup_matrix_result<i32, 16, 16> operator+(const subgroup_matrix_result<i32, 16, 16> &a, const subgroup_matrix_result<i32, 16, 16> &b) {
  subgroup_matrix_result<i32, 16, 16> c;
  for (int k = 0; k < 8; k++) c.sums[k] = a.sums[k] + b.sums[k];
  return c;
}
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

// --- matrices of packed weights, by rows of floats in two parts: 32 along the depth, whose order is free --------------------------------

// A lane takes a unit of eight neighbours of a row or a column, as four pairs of numbers four apart.
struct packed_left { u32 larger[8], smaller[8]; };
struct packed_right { u32 pairs[2][4]; };

inline u32 pairOf(f32 a, f32 b) {
  u32 pair;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(b), "f"(a));
  return pair;
}
inline f32 rest(f32 x, u16 large) { return fabsf(x) == __int_as_float(0x7f800000) ? 0 : x - f32_of_bits(large); }
inline u32 restsOf(f32 a, f32 b) {
  const u32 large = pairOf(a, b);
  return pairOf(rest(a, u16(large)), rest(b, u16(large >> 16)));
}
// Floats rounded to 16 bits, and what is left of them.
inline vec4<u32> largerParts(const vec4<f32> &a, const vec4<f32> &b) {
  return {pairOf(a.x, b.x), pairOf(a.y, b.y), pairOf(a.z, b.z), pairOf(a.w, b.w)};
}
inline vec4<u32> smallerParts(const vec4<f32> &a, const vec4<f32> &b) {
  return {restsOf(a.x, b.x), restsOf(a.y, b.y), restsOf(a.z, b.z), restsOf(a.w, b.w)};
}
// The power of two that brings the largest of the units of four neighbouring lanes to 2^14, and the one that brings it back.
inline f32 scaleOfUnits(const vec4<f32> &a, const vec4<f32> &b) {
  const vec4<f32> both = max(abs(a), abs(b));
  f32 most = fmaxf(fmaxf(both.x, both.y), fmaxf(both.z, both.w));
  most = fmaxf(most, from_member(most, 1));
  most = fmaxf(most, from_member(most, 2));
  return __int_as_float(min(268 - (__float_as_int(most) >> 23), 253) << 23);
}
inline f32 powerBack(f32 power) { return __int_as_float((254 << 23) - __float_as_int(power)); }
// Of the units of four neighbouring lanes.
inline f32 sumOfUnits(const vec4<f32> &a, const vec4<f32> &b) {
  f32 sum = a.x + a.y + a.z + a.w + (b.x + b.y + b.z + b.w);
  sum += from_member(sum, 1);
  return sum + from_member(sum, 2);
}

template <int N> void loadParts(u32 *to, const array<vec4<u32>, N> *parts, u32 at) {
  for (u32 down = 0; down < 2; down++) {
    const vec4<u32> unit = parts->parts[at + 32 * down + (threadIdx.x & 31)];
    to[down] = unit.x, to[2 + down] = unit.y, to[4 + down] = unit.z, to[6 + down] = unit.w;
  }
}
template <int N, int M> packed_left packedLeft(const array<vec4<u32>, N> *larger, const array<vec4<u32>, M> *smaller, u32 at) {
  packed_left found;
  loadParts(found.larger, larger, at);
  loadParts(found.smaller, smaller, at);
  return found;
}
// A number is that of 2^10 + number, less that and the zero: all of this is exact.
template <int BITS, int ZERO, int N> packed_right packedRight(const array<vec4<u32>, N> *words, u32 at, u32 stride) {
  packed_right found;
  for (u32 half = 0; half < 2; half++) {
    const u32 member = threadIdx.x & 31, column = 4 * at + 8 * half + (member >> 2), unit = member & 3;
    const u32 *from = (const u32 *)words->parts + column;
    for (u32 k = 0; k < 4; k++) {
      u32 &to = found.pairs[half][k];
      u32 numbers;
      if constexpr (BITS == 4) numbers = (from[4 * stride * unit] >> (4 * k)) & 0x000f000f;
      else numbers = __byte_perm(from[8 * stride * unit], from[8 * stride * unit + 4 * stride], k | (4 + k) << 8) & 0x00ff00ff;
      asm("sub.rn.f16x2 %0, %1, %2;" : "=r"(to) : "r"(numbers | 0x64006400), "r"(0x64006400 + ZERO * 0x10001));
    }
  }
  return found;
}
inline void multiplyPairs(f32 *s, const u32 *a, const u32 *b) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(s[0]), "+f"(s[1]), "+f"(s[2]), "+f"(s[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
inline subgroup_matrix_result<f32, 16, 16> multiplyPacked(const packed_left &a, const packed_right &b) {
  subgroup_matrix_result<f32, 16, 16> d;
  for (int step = 0; step < 2; step++)
    for (int half = 0; half < 2; half++) multiplyPairs(d.sums + 4 * half, a.smaller + 4 * step, b.pairs[half] + 2 * step);
  for (int step = 0; step < 2; step++)
    for (int half = 0; half < 2; half++) multiplyPairs(d.sums + 4 * half, a.larger + 4 * step, b.pairs[half] + 2 * step);
  return d;
}
// At 16 rows and 16 columns.
template <class M, int R, int N> M addScaled(
    const M &c, const M &dot, const array<f32, R> *rows, u32 row, const array<vec4<f32>, N> *columns, u32 at) {
  M d;
  const f32 *across = (const f32 *)(columns->parts + at) + 2 * (threadIdx.x & 3), *down = rows->parts + row + ((threadIdx.x & 31) >> 2);
  for (int k = 0; k < 8; k++) d.sums[k] = c.sums[k] + down[k & 2 ? 8 : 0] * across[(k & 1) + (k & 4 ? 8 : 0)] * dot.sums[k];
  return d;
}
template <class M, int R, int N> M lessZeros(const M &c, const array<f32, R> *rows, u32 row, const array<vec4<f32>, N> *columns, u32 at) {
  M d;
  const f32 *across = (const f32 *)(columns->parts + at) + 2 * (threadIdx.x & 3), *down = rows->parts + row + ((threadIdx.x & 31) >> 2);
  for (int k = 0; k < 8; k++) d.sums[k] = c.sums[k] - down[k & 2 ? 8 : 0] * across[(k & 1) + (k & 4 ? 8 : 0)];
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
