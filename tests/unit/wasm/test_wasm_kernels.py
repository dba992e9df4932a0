"""Plain kernels on the target "wasm" compute what the interpreter computes, at both levels of SIMD."""

from __future__ import annotations

import numpy as np
import pytest
from devices import few
from wasm_checks import TARGET, check, execute, g, r

from singe.dtypes import (
    ALL,
    STORED,
    DType,
    bool_,
    dtype,
    float16,
    float32,
    float64,
    int8,
    int32,
    int64,
    uint8,
    uint16,
    uint32,
    uint64,
)
from singe.ir import affine
from singe.ir import scalar as s
from singe.ir.kernel import Kernel, Port, Reduce, Store
from singe.shapes import size
from singe_wasm.kernels.lanes import lane_cost
from singe_wasm.levels import LEVELS
from singe_wasm.target import WasmTarget

FLOATS = np.array(
    [
        0.0,
        -0.0,
        1.0,
        -1.0,
        0.5,
        -0.5,
        1.5,
        2.5,
        -2.5,
        3.7,
        -3.7,
        np.inf,
        -np.inf,
        np.nan,
        1e-40,
        -1e-40,
        1.2e-38,
        88.0,
        89.5,
        -87.0,
        -103.5,
        -104.5,
        3e38,
        1e9,
        -1e10,
        2147483648.0,
    ],
    np.float32,
)
EXTREMES = {
    float32: FLOATS,
    int32: np.array([0, 1, -1, 2, 3, -3, 7, -8, 31, 33, 2**31 - 1, -(2**31), 1000, -1001], np.int32),
    int64: np.array([0, 1, -1, 2, 3, -3, 7, -8, 31, 65, 2**63 - 1, -(2**63), 2**40, -(2**40) - 1], np.int64),
    uint32: np.array([0, 1, 2, 3, 7, 31, 33, 2**31 - 1, 2**31, 2**32 - 1], np.uint32),
    uint64: np.array([0, 1, 2, 3, 7, 31, 65, 2**32, 2**63 - 1, 2**63, 2**64 - 1], np.uint64),
    float64: np.concatenate([FLOATS.astype(np.float64), [1e300, -1e-310, 709.9, -745.0]]),
    bool_: np.array([False, True, True, False]),
}


def _word_cases() -> list[tuple[str, object]]:
    return [
        (w, d)
        for w, row in s.WORDS.items()
        if w not in ("cast", "rounded", "select")
        for d in EXTREMES
        if s._KINDS[row.kinds](d)
    ]


@pytest.mark.slow
@pytest.mark.parametrize(("word", "kind"), _word_cases(), ids=str)
def test_every_word_on_extremes(word: str, kind: DType) -> None:
    values = EXTREMES[kind]
    arity = s.WORDS[word].arity
    pairs = np.meshgrid(*[values] * arity)
    columns = [np.ascontiguousarray(p.reshape(-1)) for p in pairs]
    if word in ("div", "rem") and kind.is_int:
        keep = columns[1] != 0  # a zero divisor gives some value: it is only run
        zero = [np.where(keep, c, 0).astype(c.dtype) for c in columns]
        _word(word, kind, zero, compare=False)
        columns = [c[keep] for c in columns]
        smallest = columns[0] == np.iinfo(columns[0].dtype).min
        minus_one = columns[1] == -1 if kind.kind == "int" else False
        columns = [c[~(smallest & minus_one)] for c in columns]
    if word in ("sin", "cos"):
        columns = [c[~(np.abs(c) > 1e6) | np.isinf(c)] for c in columns]
    _word(word, kind, columns)


def _word(word: str, kind: object, columns: list[np.ndarray], compare: bool = True) -> None:
    port = dtype(columns[0].dtype)
    count = len(columns[0])
    at = g(0, count)
    value = s.make(word, tuple(s.load(i, at, port) for i in range(len(columns))), port)
    out = np.zeros(count, value.dtype.numpy)
    kernel = Kernel(
        (*[Port(port) for _ in columns], Port(dtype(out.dtype), True)), (count,), (), (Store(len(columns), at, value),)
    )
    if compare:
        check(kernel, [*columns, out], rtol=4e-7, atol=1e-7 if word in ("sin", "cos") else 0)
    else:
        execute(kernel, [*columns, out], {}, "simd", ())


@pytest.mark.parametrize(
    ("word", "low", "high", "ulps"),
    [
        ("exp", -103, 88.7, 2),
        ("log", 1e-38, 3e38, 2),
        ("sin", -1e5, 1e5, 4),
        ("cos", -1e5, 1e5, 4),
        ("tanh", -12, 12, 6),
        ("tanh", -0.1, 0.1, 4),
    ],
)
def test_functions_are_accurate_to_a_few_units(word: str, low: float, high: float, ulps: int) -> None:
    rng = np.random.default_rng(1)
    x = np.exp(rng.uniform(np.log(low), np.log(high), 20001)) if word == "log" else rng.uniform(low, high, 20001)
    x = x.astype(np.float32)
    at = g(0, x.size)
    kernel = Kernel(
        (Port(float32), Port(float32, True)),
        (x.size,),
        (),
        (Store(1, at, s.make(word, (s.load(0, at, float32),), float32)),),
    )
    got = execute(kernel, [x, np.zeros_like(x)], {}, "simd", ())[1]
    exact = getattr(np, word)(x.astype(np.float64))
    error = np.abs(got - exact) / np.maximum(
        np.spacing(np.abs(exact).astype(np.float32)), 1e-7 / ulps if word in ("sin", "cos") else 0
    )
    assert error.max() <= ulps, (x[error.argmax()], error.max())


def test_fmod_is_exact() -> None:
    rng = np.random.default_rng(2)
    a, b = (np.ldexp(rng.uniform(-1, 1, 4000), rng.integers(-140, 127, 4000)).astype(np.float32) for _ in range(2))
    _word("rem", float32, [a, b])


COMPUTED = [d for d in ALL if d in WasmTarget.dtypes]


def extremes(kind: DType, count: int) -> np.ndarray:
    """Values of a dtype: special floats, integers at the ends of their range, or all codes of a byte."""
    if kind in STORED:
        return np.resize(np.arange(256), count).astype(kind.held).view(kind.numpy)
    limits = [*kind.limits, 0, 1, 2, 3, 100] if kind.is_int else []
    numbers = FLOATS if kind.is_float else np.array(limits or [False, True], kind.numpy)
    return s.convert(np.resize(numbers, count), kind.numpy)


@few(5, "source", COMPUTED, ids=str)
def test_casts_and_storage(source: DType) -> None:
    """To every type, a few at a time: what each kernel's ports may be is a matter of the target's limit alone. All codes of a
    byte fill whole vectors, and three more elements do not."""
    count = 256 + 3
    values = extremes(source, count)
    for start in range(0, len(COMPUTED), 7):
        to = COMPUTED[start : start + 7]
        at = g(0, count)
        stores = [Store(1 + k, at, s.wrap(s.cast(s.load(0, at, source), d.compute), d)) for k, d in enumerate(to)]
        kernel = Kernel((Port(source), *(Port(d, True) for d in to)), (count,), (), tuple(stores))
        check(kernel, [values, *(np.zeros(count, d.numpy) for d in to)])


def test_all_float16_bit_patterns_go_through_float32() -> None:
    bits = np.arange(65536, dtype=np.uint16)
    at = g(0, bits.size)
    widen = Kernel((Port(float16), Port(float32, True)), (bits.size,), (), (Store(1, at, s.load(0, at, float16)),))
    wide = execute(widen, [bits, np.zeros(bits.size, np.float32)], {}, "simd", ())[1]
    np.testing.assert_array_equal(wide, bits.view(np.float16).astype(np.float32))
    narrow = Kernel((Port(float32), Port(float16, True)), (bits.size,), (), (Store(1, at, s.load(0, at, float32)),))
    back = execute(narrow, [wide, np.zeros(bits.size, np.float16)], {}, "simd", ())[1]
    number = ~np.isnan(wide)
    np.testing.assert_array_equal(back.view(np.uint16)[number], bits[number])
    assert np.isnan(back[~number]).all()


def test_float32_to_float16_rounds_to_even() -> None:
    x = np.random.default_rng(3).integers(0, 2**32, 100_000, dtype=np.uint64).astype(np.uint32).view(np.float32)
    ties = (
        np.arange(1, 31744, dtype=np.uint16).view(np.float16).astype(np.float64)
        + np.arange(31743, dtype=np.uint16).view(np.float16)
    ) / 2
    x = np.concatenate([x, ties.astype(np.float32), np.float32([65519.9, 65520, 1e-8, 2**-25, 2**-24 * 1.5])])
    at = g(0, x.size)
    kernel = Kernel((Port(float32), Port(float16, True)), (x.size,), (), (Store(1, at, s.load(0, at, float32)),))
    got = execute(kernel, [x, np.zeros(x.size, np.float16)], {}, "simd", ())[1]
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(got, x.astype(np.float16))


def _random(count: int, kind: object = float32) -> np.ndarray:
    rng = np.random.default_rng(count)
    return (rng.standard_normal(count) * 4).astype(kind.numpy)  # pyright: ignore[reportAttributeAccessIssue]


@pytest.mark.parametrize("count", [0, 1, 3, 4, 5, 16, 19, 67])
def test_symbolic_elementwise(count: int) -> None:
    n = size("N")
    at = g(0, n)
    x, y = s.load(0, at, float32), s.load(1, at, uint8)
    value = s.select(s.lt(x, 0.5), s.cast(y + at, float32), s.exp(s.minimum(x, 3.0)))
    stages = (Store(2, at, value), Store(3, at, s.isnan(value) | s.lt(x, 0)))
    kernel = Kernel((Port(float32), Port(uint8), Port(float32, True), Port(bool_, True)), (n,), (), stages)
    check(
        kernel,
        [_random(count), np.arange(count, dtype=np.uint8), np.zeros(count, np.float32), np.zeros(count, bool)],
        {"N": count},
    )


@pytest.mark.parametrize("kind", [int8, uint8], ids=str)
@pytest.mark.parametrize("columns", [15, 16, 37, 76])
@pytest.mark.parametrize("is_open", [False, True])
def test_bytes_that_are_folded_along_another_axis(kind: DType, columns: int, is_open: bool) -> None:
    """Four vectors of them are one load."""
    rows, width = 3, size("N") if is_open else columns
    i, k = g(0, width), r(0, rows)
    bytes_ = s.cast(s.load(0, k * s.size(width) + i, int32), float32)
    fold = Reduce("a0", "add", bytes_ * s.load(1, k, float32))
    ports = (Port(kind), Port(float32), Port(float32, True))
    kernel = Kernel(ports, (width,), (rows,), (fold, Store(2, i, fold.accumulator + 1)))
    values = np.random.default_rng(columns).integers(0, 256, rows * columns).astype(np.uint8).view(kind.numpy)
    check(kernel, [values, np.array([1, -2, 3], np.float32), np.zeros(columns, np.float32)], {"N": columns})


@pytest.mark.parametrize("word", ["add", "mul", "max", "min"])
@pytest.mark.parametrize("kind", [float32, int32, int64], ids=str)
@few(3, ("rows", "columns"), [(1, 1), (2, 3), (5, 7), (4, 16), (9, 37), (70, 5)])
def test_reductions_over_either_axis(word: str, kind: object, rows: int, columns: int) -> None:
    for axis in (0, 1):
        kept, folded = (columns, rows) if axis == 0 else (rows, columns)
        i, k = g(0, kept), r(0, folded)
        fold = Reduce("a0", word, s.load(0, k * columns + i if axis == 0 else i * columns + k, kind))  # pyright: ignore[reportArgumentType]
        kernel = Kernel((Port(kind), Port(kind, True)), (kept,), (folded,), (fold, Store(1, i, fold.accumulator + 1)))  # pyright: ignore[reportArgumentType]
        values = (
            _random(rows * columns, kind)
            if word != "mul"
            else (1 + _random(rows * columns, kind) / 8).astype(kind.numpy)
        )  # pyright: ignore[reportAttributeAccessIssue]
        check(kernel, [values, np.zeros(kept, kind.numpy)], rtol=1e-4, atol=1e-4)  # pyright: ignore[reportAttributeAccessIssue]


@pytest.mark.parametrize(("middle", "axes"), [((3, 4), "outer"), ((3, 6), "both"), ((2, 5), "last")])
def test_reductions_over_two_axes(middle: tuple[int, int], axes: str) -> None:
    a, b, c = 5, *middle
    shape = (a, b, c, 6)
    if axes == "outer":  # over a and c, as pooling does
        grid, inner = (b, 6), (a, c)
        index = affine.flatten((r(0, a), g(0, b), r(1, c), g(1, 6)), shape)
        out = affine.flatten((g(0, b), g(1, 6)), (b, 6))
    elif axes == "both":
        grid, inner = (a,), (b, c, 6)
        index = affine.flatten((g(0, a), r(0, b), r(1, c), r(2, 6)), shape)
        out = g(0, a)
    else:
        grid, inner = (a, b), (c, 6)
        index = affine.flatten((g(0, a), g(1, b), r(0, c), r(1, 6)), shape)
        out = affine.flatten((g(0, a), g(1, b)), (a, b))
    fold = Reduce("a0", "add", s.load(0, index, float32) * s.load(0, index, float32))
    kernel = Kernel((Port(float32), Port(float32, True)), grid, inner, (fold, Store(1, out, s.sqrt(fold.accumulator))))
    check(kernel, [_random(int(np.prod(shape))), np.zeros(int(np.prod(grid)), np.float32)], rtol=1e-4)


@pytest.mark.parametrize("last", [True, False])
@few(3, ("rows", "columns"), [(1, 1), (3, 5), (4, 33), (9, 8), (0, 7), (7, 64)])
@pytest.mark.parametrize("symbolic", [False, True])
def test_softmax(rows: int, columns: int, last: bool, symbolic: bool) -> None:
    m, n = (size("M"), size("N")) if symbolic else (rows, columns)
    i, k = g(0, m if last else n), r(0, n if last else m)
    index = i * s.size(n) + k if last else k * s.size(n) + i
    x = s.load(0, index, float32)
    top = Reduce("a0", "max", x)
    e = s.exp(x - top.accumulator)
    total = Reduce("a1", "add", e)
    kernel = Kernel(
        (Port(float32), Port(float32, True)),
        (m if last else n,),
        (n if last else m,),
        (top, total, Store(1, index, e / total.accumulator, True)),
    )
    check(kernel, [_random(rows * columns), np.zeros(rows * columns, np.float32)], {"M": rows, "N": columns})


@pytest.mark.parametrize("columns", [3, 4, 5, 20, 33, 36, 70, 130, 419])
@pytest.mark.parametrize("symbolic", [False, True])
def test_long_folds_of_neighbours(columns: int, symbolic: bool) -> None:
    """Variances over 66 rows: many columns are folded at once, and parts may be cut anywhere among them."""
    rows = 66
    m, n = (size("M"), size("N")) if symbolic else (rows, columns)
    i, k = g(0, n), r(0, m)
    x = s.load(0, k * s.size(n) + i, float32)
    total = Reduce("a0", "add", x)
    apart = x - total.accumulator * (1 / rows)
    squares = Reduce("a1", "add", apart * apart)
    stores = (Store(1, i, squares.accumulator), Store(2, k * s.size(n) + i, apart, True))
    kernel = Kernel((Port(float32), Port(float32, True), Port(float32, True)), (n,), (m,), (total, squares, *stores))
    values = [_random(rows * columns), np.zeros(columns, np.float32), np.zeros(rows * columns, np.float32)]
    check(kernel, values, {"M": rows, "N": columns}, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("word", ["max", "min"])
@pytest.mark.parametrize("last", [True, False])
def test_the_largest_and_least_of_what_holds_nan(last: bool, word: str) -> None:
    """A row's extreme is NaN where it has one, wherever that lies; infinities are numbers."""
    rows, columns = 9, 23
    i, k = g(0, rows), r(0, columns)
    index = i * columns + k if last else k * rows + i
    fold = Reduce("a0", word, s.load(0, index, float32))
    kernel = Kernel((Port(float32), Port(float32, True)), (rows,), (columns,), (fold, Store(1, i, fold.accumulator)))
    x = _random(rows * columns).reshape((rows, columns) if last else (columns, rows))
    mine = x if last else x.T
    mine[0, 0] = mine[1, 7] = mine[2, -1] = mine[6, 3] = np.nan
    mine[3, 4], mine[4, 5], mine[5] = np.inf, -np.inf, -np.inf if word == "max" else np.inf
    mine[6, 8] = np.inf
    check(kernel, [x.ravel(), np.zeros(rows, np.float32)])


@pytest.mark.parametrize("kind", [float32, int32, uint8, bool_, int64, float16], ids=str)
def test_transpose(kind: object) -> None:
    a, b, c = 3, 9, 6
    i, j, k = g(0, c), g(1, a), g(2, b)
    value = s.load(0, affine.flatten((j, k, i), (a, b, c)), kind)  # pyright: ignore[reportArgumentType]
    kernel = Kernel(
        (Port(kind), Port(kind, True)), (c, a, b), (), (Store(1, affine.flatten((i, j, k), (c, a, b)), value),)
    )  # pyright: ignore[reportArgumentType]
    check(kernel, [_random(a * b * c, kind), np.zeros(a * b * c, kind.numpy)])  # pyright: ignore[reportAttributeAccessIssue]


@pytest.mark.parametrize("kind", [float32, uint8, bool_], ids=str)
@pytest.mark.parametrize("wide", [3, 9, 32])
@pytest.mark.parametrize("other", [4, 7, 18, 32])
def test_transpose_in_blocks(other: int, wide: int, kind: DType) -> None:
    """Two inputs are read along the first loop, one of them only where it has elements; a third is read along the last."""
    rows = 2
    i, j, k = g(0, other), g(1, rows), g(2, wide)
    shape = (other, rows, wide)
    across = affine.flatten((k, j, i), (wide, rows, other))
    inside = s.and_(s.lt(k, wide - 1), s.lt(i, other - 1))
    padded = s.select(inside, s.load(1, across, kind), s.const(0, kind.compute))
    along = s.load(2, affine.flatten((i, j, k), shape), kind)
    results = [s.load(0, across, kind), padded, along]
    stores = (Store(3 + number, affine.flatten((i, j, k), shape), e) for number, e in enumerate(results))
    kernel = Kernel((*[Port(kind)] * 3, *[Port(kind, True)] * 3), shape, (), tuple(stores))
    count = other * rows * wide
    check(kernel, [*(_random(count, kind) for _ in range(3)), *(np.zeros(count, kind.numpy) for _ in range(3))])


def test_gather_by_an_index_tensor() -> None:
    rows, width, picked = 7, 5, 6
    i, j = g(0, picked), g(1, width)
    row = s.cast(s.load(1, i, int64), int32)
    kernel = Kernel(
        (Port(float32), Port(int64), Port(float32, True)),
        (picked, width),
        (),
        (Store(2, i * width + j, s.load(0, row * width + j, float32)),),
    )
    check(kernel, [_random(rows * width), np.array([0, 6, 3, 3, 1, 5]), np.zeros(picked * width, np.float32)])


def test_loop_variables_as_values_and_padding() -> None:
    h, w = 5, 11
    i, j = g(0, h), g(1, w)
    inside = s.and_(s.le(2, j), s.lt(j, 9))
    x = s.load(0, i * 7 + s.minimum(s.maximum(j - 2, 0), 6), float32)
    value = s.select(inside, x, s.cast(i * 100 + j, float32))
    kernel = Kernel((Port(float32), Port(float32, True)), (h, w), (), (Store(1, i * w + j, value),))
    check(kernel, [_random(35), np.zeros(h * w, np.float32)])


def test_equal_code_is_kept_once() -> None:
    at = g(0, 8)
    relu = Kernel(
        (Port(float32), Port(float32, True)), (8,), (), (Store(1, at, s.maximum(s.load(0, at, float32), 0.0)),)
    )
    double = Kernel((Port(float32), Port(float32, True)), (8,), (), (Store(1, at, s.load(0, at, float32) * 2.0),))
    _, variants = TARGET.link([TARGET.print(k, ()) for k in (relu, double, relu)])
    entries = [v[0].entry for v in variants]
    assert entries == [f"{next(iter(LEVELS))}:{name}" for name in ("k0", "k1", "k0")]


@pytest.mark.parametrize("kind", [float32, int32, uint8])
def test_lanes_that_are_apart(kind: DType) -> None:
    """Elements at a distance, each the largest of some of its neighbours or itself."""
    for step in (2, 3, 5):
        i, j, r = g(0, 3), g(1, 22), s.var("r0", int32, 2)
        length = 22 * step
        x = np.random.default_rng(step).integers(0, 100, 3 * length).astype(kind.numpy)
        out = Port(kind, True)
        value = s.load(0, i * length + j * step + r, kind.compute)
        most = Reduce("a0", "max", value)
        stages = (most, Store(1, i * 22 + j, most.accumulator))
        check(Kernel((Port(kind), out), (3, 22), (2,), stages), [x, np.zeros(66, kind.numpy)])
        taken = s.load(0, i * length + j * step + (step - 1), kind.compute)
        check(Kernel((Port(kind), out), (3, 22), (), (Store(1, i * 22 + j, taken),)), [x, np.zeros(66, kind.numpy)])


@pytest.mark.parametrize("by", [2, 4, 6, 8, 24])
def test_lanes_that_are_divided(by: int) -> None:
    """Depth to space and the like: four lanes stay together where they are divided by a multiple of four."""
    i, j = g(0, 5), g(1, 48)
    block, place = affine.index_div(j, by), affine.index_rem(j, by)
    value = s.load(0, i * 48 + j, float32) + s.load(1, place, float32) * s.load(2, block, float32)
    out = Store(3, block * (5 * by) + i * by + place, value)
    kernel = Kernel((Port(float32), Port(float32), Port(float32), Port(float32, True)), (5, 48), (), (out,))
    rng = np.random.default_rng(by)
    check(
        kernel, [*(rng.standard_normal(n).astype(np.float32) for n in (240, by, 48 // by)), np.zeros(240, np.float32)]
    )
    assert (lane_cost(kernel, [out], j) is not None) == (by % 4 == 0)


@pytest.mark.parametrize("kind", [bool_, int8, uint16, int32, float32])
def test_lanes_that_look_up(kind: DType) -> None:
    """Elements at places that other elements tell; of their sum a part may be negative."""
    i, j = g(0, 3), g(1, 22)
    place = s.load(1, i * 22 + j, int32) * 2 + i * 25 - 7
    out = Store(2, i * 22 + j, s.load(0, place, kind.compute))
    kernel = Kernel((Port(kind), Port(int32), Port(kind, True)), (3, 22), (), (out,))
    rng = np.random.default_rng(1)
    x = rng.integers(0, 2 if kind is bool_ else 100, 75).astype(kind.numpy)
    places = rng.permuted(np.tile(np.arange(4, 15), 6)).astype(np.int32)
    check(kernel, [x, places, np.zeros(66, kind.numpy)])
    assert lane_cost(kernel, [out], j) == 1


@pytest.mark.parametrize("rows", [4, 12, size("N") * 4, size("N")])
def test_sums_whose_weights_several_rows_share(rows: object) -> None:
    """As a picture is resized along its rows: all rows read the same places, four channels each."""
    taps, columns = 3, 5
    i, j, lane, k = g(0, rows), g(1, columns), g(2, 4), r(0, taps)
    place = s.load(1, j * taps + k, int32)
    total = Reduce("a0", "add", s.load(0, i * 28 + place * 4 + lane, float32) * s.load(2, j * taps + k, float32))
    ports = (Port(float32), Port(int32), Port(float32), Port(float32, True))
    kernel = Kernel(ports, (rows, columns, 4), (taps,), (total, Store(3, i * 20 + j * 4 + lane, total.accumulator)))  # pyright: ignore[reportArgumentType]
    count = 12 if not isinstance(rows, int) else rows
    rng = np.random.default_rng(3)
    x, weights = (rng.standard_normal(n).astype(np.float32) for n in (count * 28, columns * taps))
    places = rng.integers(0, 7, columns * taps).astype(np.int32)
    sizes = {} if isinstance(rows, int) else {"N": 12 if rows == size("N") else 3}
    check(kernel, [x, places, weights, np.zeros(count * 20, np.float32)], sizes)
