"""The scalar vocabulary: words mean what they say, simplification never changes a value, index arithmetic is exact."""

from __future__ import annotations

import itertools
import random
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from singe.dtypes import DType, bool_, dtype, float32, int32, int64, uint8, uint32, uint64
from singe.errors import DTypeError
from singe.ir import affine, scalar
from singe.ir.arrays import NUMPY, convert
from singe.ir.derivative import derivative
from singe.ir.scalar import WORDS, Expr, const, var
from singe.shapes import Shape, Size, known, product, size

N, M = size("N"), size("M")
VALUES = {
    bool_: np.array([False, True]),
    int32: np.array([0, 1, -1, 2, -7, 9, 31, 33, 2**31 - 1, -(2**31)], np.int32),
    int64: np.array([0, 1, -1, 2, -7, 9, 63, 65, 2**63 - 1, -(2**63)], np.int64),
    float32: np.array([0.0, -0.0, 1.0, -1.0, 0.5, 1.5, -2.5, 1e-40, 3e38, np.inf, -np.inf, np.nan], np.float32),
}


def value_of(e: Expr, env: Mapping[Expr, np.ndarray], sizes: Mapping[str, int] | None = None) -> np.ndarray:
    """The value of an expression over arrays, computed with NumPy."""

    def step(x: Expr, args: tuple[np.ndarray, ...]) -> Any:
        if x.word == "const":
            return np.asarray(x.value, x.dtype.numpy)
        if x.word == "size":
            return np.asarray(known(x.value, sizes or {}), np.int32)
        if x.word == "var":
            return env[x]
        return np.asarray(scalar.function(x)(*args))

    with np.errstate(all="ignore"):
        return scalar.fold([e], step)[0]


# --- words -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("word", [w for w, row in WORDS.items() if row.result != "given"])
@pytest.mark.parametrize("kind", [bool_, int32, int64, float32], ids=str)
def test_constants_fold_to_what_numpy_gives(word: str, kind: DType) -> None:
    """Each word on all values of a kind, folded one by one, against the whole array at once."""
    row = WORDS[word]
    if not scalar._KINDS[row.kinds](kind):
        with pytest.raises(DTypeError):
            scalar.make(word, tuple(const(1, kind) for _ in range(row.arity)), kind)
        return
    kinds = [bool_, kind, kind] if word == "select" else [kind] * row.arity
    for given in itertools.product(*(VALUES[k] for k in kinds)):
        folded = scalar.make(word, tuple(const(v.item(), k) for v, k in zip(given, kinds, strict=True)), kind)
        with np.errstate(all="ignore"):
            want = np.asarray(NUMPY[word](*(np.asarray(v) for v in given)))
        assert folded.word == "const"
        assert folded.dtype is dtype(want.dtype)
        np.testing.assert_array_equal(np.asarray(folded.value, want.dtype), want)


def test_integers_divide_toward_zero_and_wrap() -> None:
    for a, b in itertools.product(range(-9, 10), [-4, -1, 1, 3]):
        quotient = abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
        assert scalar.div(const(a, int32), const(b, int32)).value == quotient
        assert scalar.rem(const(a, int32), const(b, int32)).value == a - b * quotient
    assert scalar.add(const(2**31 - 1, int32), 1).value == -(2**31)
    assert scalar.mul(const(2**62, int64), 4).value == 0
    assert const(2**32 + 5, int32).value == 5
    assert scalar.shr(const(-8, int32), 1).value == -4
    assert scalar.shl(const(1, int32), 33).value == 2


def test_nan_wins_and_halves_go_to_even() -> None:
    nan = const(float("nan"), float32)
    for found in (scalar.minimum(nan, 1.0), scalar.maximum(1.0, nan), scalar.clip(nan, 0.0, 1.0)):
        assert np.isnan(found.value)
    assert [scalar.round_(const(v, float32)).value for v in (0.5, 1.5, 2.5, -0.5, -1.5)] == [0, 2, 2, 0, -2]
    assert scalar.isnan(nan).value is True
    assert scalar.eq(nan, nan).value is False


@pytest.mark.parametrize(("value", "to", "want"), [
    (2.9, int32, 2), (-2.9, int32, -2), (float("nan"), int32, 0), (3e9, int32, 2**31 - 1), (float("-inf"), int32, -(2**31)),
    (1e30, int64, 2**63 - 1), (-1e30, int64, -(2**63)), (float("nan"), bool_, True), (0.0, bool_, False), (-0.0, bool_, False),
])  # fmt: skip
def test_casts_from_float(value: float, to: DType, want: Any) -> None:
    assert scalar.cast(const(value, float32), to).value == want


def test_casts_between_integers_wrap() -> None:
    assert scalar.cast(const(2**32 + 7, int64), int32).value == 7
    assert scalar.cast(const(-1, int32), int64).value == -1
    assert convert(np.array([256, -1], np.int32), uint8.numpy).tolist() == [0, 255]


def test_expressions_are_interned_and_typed() -> None:
    x = var("x", float32)
    assert x + 1.0 is x + 1.0
    assert 1.0 + x is x + 1.0
    assert const(0.0, float32) is not const(-0.0, float32)
    assert const(float("nan"), float32) is const(float("nan"), float32)
    assert var("i", int32, 1) is const(0, int32)
    with pytest.raises(DTypeError):
        scalar.add(x, var("i", int32))
    with pytest.raises(DTypeError):
        scalar.select(x, x, x)
    with pytest.raises(TypeError, match="no truth value"):
        bool(x < 1.0)


# --- simplification --------------------------------------------------------------------------------------------------


def random_pair(rng: random.Random, kind: DType, leaves: Mapping[DType, list[Expr]], depth: int) -> tuple[Expr, Expr]:
    """A random expression twice: made by the constructors that simplify, and without simplification."""
    if depth == 0 or rng.random() < 0.1:
        leaf = (
            rng.choice(leaves[kind])
            if rng.random() < 0.6
            else const(rng.choice([0, 1, -1, 2, 3.5]) if kind is not bool_ else rng.random() < 0.5, kind)
        )
        return leaf, leaf
    words = [
        w
        for w, row in WORDS.items()
        if row.result != "given"
        and w not in ("select", "bits", "of_bits")
        and (kind is bool_ if row.result == "bool" else scalar._KINDS[row.kinds](kind))
    ]
    word = rng.choice([*words, "select", "cast"])
    if word == "select":
        parts = [random_pair(rng, k, leaves, depth - 1) for k in (bool_, kind, kind)]
    elif word == "cast":
        parts = [random_pair(rng, rng.choice([k for k in leaves if k is not kind]), leaves, depth - 1)]
    else:
        row = WORDS[word]
        inner = rng.choice([k for k in leaves if scalar._KINDS[row.kinds](k)]) if row.result == "bool" else kind
        parts = [random_pair(rng, inner, leaves, depth - 1) for _ in range(row.arity)]
    smart = scalar.make(word, tuple(p[0] for p in parts), kind)
    plain = scalar._make(word, tuple(p[1] for p in parts), kind)
    return smart, plain


@pytest.mark.parametrize("kind", [bool_, int32, int64, float32], ids=str)
def test_smart_constructors_never_change_meaning(kind: DType) -> None:
    for seed in range(60):
        rng = random.Random(f"{kind} {seed}")
        noise = np.random.default_rng(seed)
        leaves = {k: [var(f"{k}{i}", k) for i in range(2)] for k in VALUES}
        env = {v: noise.choice(VALUES[k], 64) for k, some in leaves.items() for v in some}
        smart, plain = random_pair(rng, kind, leaves, 5)
        np.testing.assert_array_equal(
            *np.broadcast_arrays(value_of(smart, env), value_of(plain, env)), f"{plain}\nbecame {smart}"
        )


def test_rules_do_something() -> None:
    """The random test would pass without any rule: these are the ones that must fire."""
    x, i, p = var("x", float32), var("i", int32), var("p", bool_)
    same = [
        (x + const(0.0, float32), x),
        (x * 1.0, x),
        (x / 1.0, x),
        (scalar.neg(-x), x),
        (i + 0, i),
        (i * 1, i),
        (~~p, p),
        (p & True, p),
        (p | False, p),
    ]
    for found, want in [
        *same,
        ((i + 3) + 4, i + 7),
        ((i * 3) * 4, i * 12),
        (i - 3, i + -3),
        (i * 0, const(0, int32)),
        (scalar.minimum(x, x), x),
    ]:
        assert found is want
    assert scalar.select(const(True, bool_), x, -x) is x
    assert (x * 0.0).word == "mul"
    assert scalar.eq(x, x).word == "eq"


# --- derivatives -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(40))
def test_derivatives_agree_with_differences(seed: int) -> None:
    rng = random.Random(seed)
    x, y = var("x", float32), var("y", float32)

    def build(depth: int) -> Expr:
        if depth == 0:
            return rng.choice([x, y, const(0.7, float32), const(-1.3, float32)])
        a, b = build(depth - 1), build(depth - 1)
        bounded = scalar.tanh(a)
        return rng.choice([
            lambda: a + b, lambda: a - b, lambda: a * bounded, lambda: a / (scalar.tanh(b) + 2.0), lambda: scalar.minimum(a, b), lambda: scalar.maximum(a, b),
            lambda: scalar.exp(bounded), lambda: scalar.log(bounded + 1.5), lambda: scalar.sqrt(bounded + 1.5), lambda: scalar.sin(a), lambda: scalar.cos(a),
            lambda: bounded, lambda: scalar.absolute(a), lambda: -a, lambda: scalar.select(a < b, a, b * 2.0),
        ])()  # fmt: skip

    e = build(4)
    at = {x: np.float64(0.3712), y: np.float64(-0.8123)}
    found = derivative(e, [x, y])

    def wide(f: Expr, env: Mapping[Expr, Any]) -> float:
        """The value of an expression in float64, so that differences are accurate."""

        def step(n: Expr, args: tuple[Any, ...]) -> Any:
            if n.word == "const":
                return np.float64(n.value) if n.dtype is float32 else n.value
            return env[n] if n.word == "var" else NUMPY[n.word](*args)

        return float(scalar.fold([f], step)[0])

    for leaf, d in zip((x, y), found, strict=True):
        h = 1e-6
        want = (wide(e, {**at, leaf: at[leaf] + h}) - wide(e, {**at, leaf: at[leaf] - h})) / (2 * h)
        assert wide(d, at) == pytest.approx(want, rel=1e-5, abs=1e-6), f"{e} by {leaf}"


# --- index arithmetic ------------------------------------------------------------------------------------------------

SIZES = {"N": 3, "M": 5}
SHAPES: list[Shape] = [
    (),
    (4,),
    (2, 3),
    (3, 1, 4),
    (1, 1),
    (2, 5, 3, 2),
    (N, 4),
    (2, N),
    (N, M),
    (N, 2, M),
    (N * 2, 3),
    (M, 1, N),
]


def numbers(shape: Shape) -> tuple[int, ...]:
    return tuple(known(d, SIZES) for d in shape)


def grid(shape: Shape, names: str = "i") -> tuple[list[Expr], dict[Expr, np.ndarray]]:
    """Loop variables over a shape, and their values at every point."""
    variables = [var(f"{names}{k}", int32, d) for k, d in enumerate(shape)]
    return variables, dict(zip(variables, np.indices(numbers(shape), np.int32), strict=True))


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_flatten_counts_in_row_major_order(shape: Shape) -> None:
    variables, env = grid(shape)
    flat = value_of(affine.flatten(variables, shape), env, SIZES)
    want = np.arange(int(known(product(shape), SIZES))).reshape(numbers(shape))
    np.testing.assert_array_equal(np.broadcast_to(flat, want.shape), want)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (a, b)
        for a in SHAPES
        for b in SHAPES
        if numbers(a) != () and known(product(a), SIZES) == known(product(b), SIZES)
    ],
    ids=str,
)
def test_reshapes_agree_with_numpy(old: Shape, new: Shape) -> None:
    """unflatten(flatten(·)) walks the new shape as NumPy's unravel_index does, and back again is where it began."""
    variables, env = grid(new)
    places = affine.unflatten(affine.flatten(variables, new), old)
    want = np.unravel_index(np.arange(int(np.prod(numbers(new)))).reshape(numbers(new)), numbers(old))
    for got, exact in zip(places, want, strict=True):
        np.testing.assert_array_equal(np.broadcast_to(value_of(got, env, SIZES), exact.shape), exact)
    if product(old) == product(new):
        assert affine.flatten(affine.unflatten(affine.flatten(variables, new), old), old) is affine.flatten(
            variables, new
        )


def test_substitution_keeps_the_meaning() -> None:
    """Divisions that are simplified again give the same results, also for dividends that may be negative."""
    for seed in range(60):
        rng = random.Random(seed)
        (outer, inner), env = grid((3, 8))
        whole = var("whole", int32, 24)
        e: Expr = whole - rng.choice([0, 0, 7])
        for _ in range(rng.randint(1, 3)):
            by = rng.choice([2, 3, 4, 8, 16])
            e = rng.choice([scalar.div, scalar.rem])(e * rng.choice([1, 2]) + rng.choice([0, 1, 8]), const(by, int32))
        swap = {whole: outer * 8 + inner}
        plain, simpler = scalar.substitute(e, swap), affine.substitute(e, swap)
        np.testing.assert_array_equal(value_of(simpler, env, SIZES), value_of(plain, env, SIZES))


def test_substitution_leaves_no_division_that_is_none() -> None:
    (outer, inner), _ = grid((3, 8))
    whole = var("whole", int32, 24)
    shuffled = affine.flatten((affine.index_rem(whole, 8), affine.index_div(whole, 8)), (8, 3))
    assert affine.linear(affine.substitute(shuffled, {whole: outer * 8 + inner})) == ({inner: 3, outer: 1}, 0)


def test_index_division_is_division() -> None:
    """On random non-negative sums of loop variables, by numbers and by sizes."""
    for seed in range(150):
        rng = random.Random(seed)
        bounds = [rng.choice([2, 3, 4, N, M, N * 2]) for _ in range(3)]
        variables, env = grid(tuple(bounds))
        e: Expr = const(rng.randint(0, 9), int32)
        for v in variables:
            part = v
            if rng.random() < 0.3:
                part = (
                    affine.index_div(part, rng.choice([2, 3]))
                    if rng.random() < 0.5
                    else affine.index_rem(part, rng.choice([2, N]))
                )
            factor = rng.choice([0, 1, 2, 3, 4, 6, N, M, N * 4])
            e = e + part * scalar.size(factor)
        by = rng.choice([1, 2, 3, 4, 6, N, M, N * 2])
        exact, divisor = value_of(e, env, SIZES), known(by, SIZES)
        np.testing.assert_array_equal(
            *np.broadcast_arrays(value_of(affine.index_div(e, by), env, SIZES), exact // divisor), f"{e} // {by}"
        )
        np.testing.assert_array_equal(
            *np.broadcast_arrays(value_of(affine.index_rem(e, by), env, SIZES), exact % divisor), f"{e} % {by}"
        )
        terms, constant = affine.linear(e)
        np.testing.assert_array_equal(
            *np.broadcast_arrays(value_of(affine.from_linear(terms, constant), env, SIZES), exact)
        )
        low, high = affine.bounds(e)
        assert low is None or known(low, SIZES) <= exact.min()
        assert high is None or known(high, SIZES) >= exact.max()


def test_bounds_and_clamps_hold() -> None:
    """Proved bounds hold, also for sums that may be negative, and a clamp is a clip."""
    for seed in range(100):
        rng = random.Random(seed)
        variables, env = grid(tuple(rng.choice([2, 4, N, M]) for _ in range(2)))
        e: Expr = const(rng.randint(-4, 4), int32)
        for v in variables:
            e = e + v * rng.choice([-3, -1, 1, 2])
        e = rng.choice(
            [
                lambda e: e,
                lambda e: scalar.minimum(e, 5),
                lambda e: scalar.maximum(e, scalar.size(N)),
                lambda e: scalar.clip(e, 0, 7),
            ]
        )(e)
        exact = value_of(e, env, SIZES)
        low, high = affine.bounds(e)
        assert low is None or known(low, SIZES) <= exact.min()
        assert high is None or known(high, SIZES) >= exact.max()
        extent = rng.choice([1, 3, 8, N, M * 2])
        clamped = value_of(affine.clamp(e, extent), env, SIZES)
        np.testing.assert_array_equal(
            *np.broadcast_arrays(clamped, np.clip(exact, 0, known(extent, SIZES) - 1)), f"{e} in {extent}"
        )


def test_simple_indices_stay_simple() -> None:
    i, j = var("i", int32, N), var("j", int32, 4)
    flat = i * 4 + j
    assert affine.index_div(flat, 4) is i
    assert affine.index_rem(flat, 4) is j
    assert affine.below(flat, N * 4)
    assert not affine.below(flat, N * 4 - 1)
    assert affine.unflatten(flat, (N, 4)) == (i, j)
    assert isinstance(affine.bounds(flat)[1], Size)


def test_casts_of_integers_meet_only_where_nothing_is_lost() -> None:
    kinds = [int32, uint32, int64, uint64]
    for first, between, last in itertools.product(kinds, repeat=3):
        x = np.array([-(2**31), -1, 0, 1, 2**31 - 1, 2**40, 2**63 - 1]).astype(first.numpy)
        leaf = var("x", first)
        found = value_of(scalar.cast(scalar.cast(leaf, between), last), {leaf: x})
        assert np.array_equal(found, x.astype(between.numpy).astype(last.numpy)), (first, between, last)
    leaf = var("x", int32)
    assert scalar.cast(scalar.cast(leaf, int64), int32) is leaf
