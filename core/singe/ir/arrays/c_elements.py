"""The scalar vocabulary in C++, and the text of a kernel that computes several elementwise rows in one pass over their arrays.

The text is CUDA's and HIP's; compiled for a CPU it is a function, which tests call. Values have their compute types, and a row's result
is rounded to the type in which it would be stored, so that the numbers are those of one row after another.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias

import numpy as np

from ...dtypes import (
    DType,
    bfloat16,
    bool_,
    float16,
    float32,
    float64,
    int8,
    int16,
    int32,
    int64,
    uint8,
)
from ...late_dataclass import dataclass
from .. import scalar
from ..scalar import Expr
from .adapter import ElementwiseRow

STORED: Final[Mapping[DType, str]] = {
    bool_: "bool", int8: "signed char", uint8: "unsigned char", int16: "short", int32: "int", int64: "long long",
    float16: "f16", bfloat16: "bf16", float32: "float", float64: "double",
}  # fmt: skip
"""Element type ↦ how arrays hold it."""
PRELUDE: Final = """\
#if defined(__CUDACC__) || defined(__CUDACC_RTC__)
struct f16 {
  unsigned short bits;
  f16() = default;
  __device__ explicit f16(float x) { asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(x)); }
  __device__ explicit operator float() const { float x; asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(bits)); return x; }
};
#define FUNCTION __device__ __forceinline__
#else
typedef _Float16 f16;
#ifdef __HIPCC_RTC__
#define FUNCTION __device__ inline
#else
#include <cmath>
#define FUNCTION inline
#endif
#endif
template <class To, class From> FUNCTION To same_bits(From x) { union { From from; To to; } u; u.from = x; return u.to; }
struct bf16 {
  unsigned short bits;
  bf16() = default;
  FUNCTION explicit bf16(float x) {
    unsigned b = same_bits<unsigned>(x);
    bits = x != x ? 0x7fc0 : (unsigned short)((b + 0x7fff + ((b >> 16) & 1)) >> 16);
  }
  FUNCTION explicit operator float() const { return same_bits<float>((unsigned)bits << 16); }
};
template <class T> FUNCTION T least(T a, T b) { return a != a ? a : b != b ? b : b < a ? b : a; }
template <class T> FUNCTION T most(T a, T b) { return a != a ? a : b != b ? b : a < b ? b : a; }
template <class T> FUNCTION T quotient(T a, T b) { return b == 0 ? 0 : b == -1 ? T(0ull - (unsigned long long)a) : a / b; }
template <class T> FUNCTION T remainder_of(T a, T b) { return b == 0 || b == -1 ? 0 : a % b; }
template <class T, class From> FUNCTION T integer(From x, T low, T high) {
  return x != x ? 0 : x <= (From)low ? low : x >= (From)high ? high : (T)x;
}
template <class T, int N> struct alignas(N * sizeof(T)) several { T of[N]; };
"""
_SUFFIXED: Final = {word: word for word in ("sqrt", "exp", "log", "sin", "cos", "tanh", "floor", "ceil")} | {
    "round": "rint"
}
_TEXTS: Final[Mapping[str, tuple[str, str]]] = {
    "add": ("({0} + {1})", "({t})((unsigned long long){0} + (unsigned long long){1})"),
    "sub": ("({0} - {1})", "({t})((unsigned long long){0} - (unsigned long long){1})"),
    "mul": ("({0} * {1})", "({t})((unsigned long long){0} * (unsigned long long){1})"),
    "div": ("({0} / {1})", "quotient({0}, {1})"),
    "neg": ("(-{0})", "({t})(0ull - (unsigned long long){0})"),
    "min": ("least({0}, {1})", "least({0}, {1})"),
    "max": ("most({0}, {1})", "most({0}, {1})"),
    "abs": ("fabs{s}({0})", "({t})({0} < 0 ? 0ull - (unsigned long long){0} : (unsigned long long){0})"),
    "rem": ("fmod{s}({0}, {1})", "remainder_of({0}, {1})"),
    **{word: (f"{name}{{s}}({{0}})", "") for word, name in _SUFFIXED.items()},
    "isnan": ("({0} != {0})", ""),
    "eq": ("({0} == {1})", "({0} == {1})"),
    "lt": ("({0} < {1})", "({0} < {1})"),
    "le": ("({0} <= {1})", "({0} <= {1})"),
    "and": ("", "({t})({0} & {1})"),
    "or": ("", "({t})({0} | {1})"),
    "xor": ("", "({t})({0} ^ {1})"),
    "not": ("", "({t})(~{0})"),
    "shl": ("", "({t})((unsigned long long){0} << ({1} & {last}))"),
    "shr": ("", "({0} >> ({1} & {last}))"),
    "bits": ("same_bits<{to}>({0})", ""),
    "of_bits": ("", "same_bits<{to}>({0})"),
    "select": ("({0} ? {1} : {2})", "({0} ? {1} : {2})"),
}
"""Words ↦ their texts for floats, and for integers and bools."""


def _word(e: Expr, args: Sequence[str]) -> str:
    kind = e.args[-1].dtype
    text = "(!{0})" if e.word == "not" and kind is bool_ else _TEXTS[e.word][not kind.is_float]
    facts = {"t": STORED[kind], "s": "f" if kind is float32 else "", "last": kind.bits - 1, "to": STORED[e.dtype]}
    return text.format(*args, **facts)


def _cast(e: Expr, args: Sequence[str]) -> str:
    kind, to = e.args[0].dtype, e.dtype
    if to is bool_:
        return f"({args[0]} != 0)"
    if kind.is_float and to.is_int:
        least, most = (literal(limit, to) for limit in to.limits)
        return f"integer<{STORED[to]}>({args[0]}, {least}, {most})"
    return f"({STORED[to]})({args[0]})"


def _rounded(e: Expr, args: Sequence[str]) -> str:
    return f"({STORED[e.dtype]})({STORED[e.value]})({args[0]})"


WORDS: Final[Mapping[str, Callable[[Expr, Sequence[str]], str]]] = scalar.complete(
    "C++", {**dict.fromkeys(_TEXTS, _word), "cast": _cast, "rounded": _rounded}
)
"""Words ↦ the text of an expression, of it and the texts of its arguments."""


def literal(value: bool | int | float, kind: DType) -> str:
    """A constant of a compute type."""
    if kind is bool_:
        return "true" if value else "false"
    if kind.is_int:
        least = kind.limits[0]
        text = f"{value}{'ll' if kind is int64 else ''}"
        return f"({least + 1}{'ll' if kind is int64 else ''} - 1)" if value == least else f"({text})"
    if math.isfinite(value):
        return f"({float(np.float32(value))!r}f)" if kind is float32 else f"({float(value)!r})"
    bits = "(-1)" if math.isnan(value) else "0x7f800000" if value > 0 else "(int)0xff800000"
    return f"({STORED[kind]})same_bits<float>({bits})"


def fits(row: ElementwiseRow, kinds: Sequence[DType], gives: DType, attrs: Mapping[str, Any]) -> bool:
    """Whether the text can compute a row of such inputs."""
    if not all(kind in STORED and kind.compute in STORED for kind in (*kinds, gives)):
        return False
    (value,) = (row.value(_parameters(kinds), gives, attrs),)
    parts = list(scalar.postorder([value]))
    known = all(e.word in ("const", "var") or e.word in WORDS for e in parts)
    return known and all(e.dtype in STORED and (e.word != "rounded" or e.value in STORED) for e in parts)


def count_of_words(row: ElementwiseRow, kinds: Sequence[DType], gives: DType, attrs: Mapping[str, Any]) -> int:
    """How many words a row's expression has."""
    value = scalar.unrounded(row.value(_parameters(kinds), gives, attrs), gives)
    return sum(e.word not in ("const", "var") for e in scalar.postorder([value]))


def _parameters(kinds: Sequence[DType]) -> list[Expr]:
    return [scalar.var(f"x{i}", kind.compute) for i, kind in enumerate(kinds)]


@dataclass(frozen=True)
class Member:
    """A row of a kernel: each of its arguments is the number of one of the kernel's inputs, or, from their count on, of a member before
    it."""

    row: ElementwiseRow
    attrs: Mapping[str, Any]
    kinds: tuple[DType, ...]
    gives: DType
    args: tuple[int, ...]


Layout: TypeAlias = "tuple[tuple[int, ...], tuple[tuple[int, ...], ...]]"
"""The lengths of axes, and of each array by how many elements a step along each axis goes."""


def layout_of(shape: Sequence[int], strides: Sequence[Sequence[int]]) -> Layout:
    """The same elements with as few axes as possible. strides: of arrays of this shape."""
    axes: list[tuple[int, list[int]]] = []
    for d, *steps in zip(shape, *strides, strict=True):
        if d == 1:
            continue
        if axes and all(before == step * d for before, step in zip(axes[-1][1], steps, strict=True)):
            axes[-1] = axes[-1][0] * d, steps
        else:
            axes.append((d, steps))
    axes = axes or [(1, [0 for _ in strides])]
    return tuple(d for d, _ in axes), tuple(zip(*(steps for _, steps in axes), strict=True))


def width_of(layout: Layout) -> int:
    """How many elements that lie one behind the other a thread may take."""
    lengths, strides = layout
    fit = all(s[-1] == 0 or (s[-1] == 1 and all(step % 4 == 0 for step in s[:-1])) for s in strides)
    return 4 if fit and lengths[-1] % 4 == 0 else 1


def kernel_text(
    inputs: Sequence[DType], members: Sequence[Member], outputs: Sequence[int], layout: Layout, width: int
) -> str:
    """The kernel "joined" of pointers to the inputs, then to the outputs, and of how many threads there are: those members. layout: of the
    inputs, then of the outputs; each thread computes `width` elements. Arrays without gaps have one text, whatever their lengths are."""
    lengths, strides = layout
    results = [members[k].gives for k in outputs]
    pointers = [f"const {STORED[kind]} *a{i}" for i, kind in enumerate(inputs)]
    pointers += [f"{STORED[kind]} *b{i}" for i, kind in enumerate(results)]
    pointers.append("unsigned n")
    count = math.prod(lengths)
    few = count < 2**31
    lines = [
        "  I i = I(blockIdx.x) * blockDim.x + threadIdx.x;",
        f"  if (i >= {'n' if few else count // width}) return;",
        f"  i *= {width};",
    ]
    for axis in range(len(lengths) - 1, 0, -1):
        lines += [f"  const I c{axis} = i % {lengths[axis]};", f"  i /= {lengths[axis]};"]
    lines.append("  const I c0 = i;")
    names = [f"a{i}" for i in range(len(inputs))] + [f"b{i}" for i in range(len(results))]
    for name, steps in zip(names, strides, strict=True):
        terms = [f"c{axis} * {step}" for axis, step in enumerate(steps) if step]
        lines.append(f"  {name} += {' + '.join(terms) or '0'};")
    wide = [steps[-1] == 1 and width > 1 for steps in strides]
    for i, kind in enumerate(inputs):
        held = f"several<{STORED[kind]}, {width}>"
        lines.append(f"  const {held} p{i} = *(const {held} *)a{i};" if wide[i] else f"  const auto p{i} = *a{i};")
    lines += [f"  several<{STORED[kind]}, {width}> q{i};" for i, kind in enumerate(results)]
    lines += ["  #pragma unroll", f"  for (int j = 0; j < {width}; j++) {{"]
    values = [f"({STORED[kind.compute]})p{i}{'.of[j]' if wide[i] else ''}" for i, kind in enumerate(inputs)]
    for k, value in enumerate(values):
        lines.append(f"    const {STORED[inputs[k].compute]} v{k} = {value};")
    for k, member in enumerate(members, len(inputs)):
        lines += _member_lines(member, k)
    lines += [f"    q{i}.of[j] = r{k + len(inputs)};" for i, k in enumerate(outputs)]
    lines.append("  }")
    for i in range(len(results)):
        held = f"several<{STORED[results[i]]}, {width}>"
        lines.append(f"  *({held} *)b{i} = q{i};")
    index = "unsigned" if few else "unsigned long long"
    body = "\n".join(lines)
    return f'{PRELUDE}typedef {index} I;\nextern "C" __global__ void joined({", ".join(pointers)}) {{\n{body}\n}}\n'


def _member_lines(member: Member, k: int) -> list[str]:
    """The lines that compute a member: r{k} as it is stored, v{k} as others read it."""
    lines: list[str] = []
    named = dict(zip(_parameters(member.kinds), (f"v{i}" for i in member.args), strict=True))

    def step(e: Expr, args: tuple[str, ...]) -> str:
        if e.word == "var":
            return named[e]
        if e.word == "const":
            return literal(e.value, e.dtype)
        name = f"t{k}_{len(lines)}"
        lines.append(f"    const {STORED[e.dtype]} {name} = {WORDS[e.word](e, args)};")
        return name

    value = row_value(member)
    (found,) = scalar.fold([value], step)
    gives = member.gives
    stored = f"({found} != 0)" if gives is bool_ else f"({STORED[gives]})({found})"
    lines.append(f"    const {STORED[gives]} r{k} = {stored};")
    lines.append(f"    const {STORED[gives.compute]} v{k} = ({STORED[gives.compute]})r{k};")
    return lines


def row_value(member: Member) -> Expr:
    """The expression of a member, of the variables x0, x1, …."""
    return scalar.unrounded(member.row.value(_parameters(member.kinds), member.gives, member.attrs), member.gives)
