"""Sizes are canonical: different ways to compute a dimension give equal Sizes, with the values of Python's integers."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest

from singe import shapes
from singe.errors import ShapeError, SizeNeeded
from singe.program.container import decode_dim, encode_dim
from singe.shapes import (
    Dim,
    Size,
    broadcast,
    ceildiv,
    dim_max,
    dim_min,
    divides,
    evaluate,
    floordiv,
    known,
    product,
    size,
    strides,
    symbols,
)

N, M = size("N"), size("M")


def random_dim(rng: random.Random, depth: int = 4) -> tuple[Dim, Callable[[dict[str, int]], int]]:
    """A random dimension, and a function that computes it with plain integers."""
    if depth == 0 or rng.random() < 0.15:
        name = rng.choice(["N", "M", ""])
        if name:
            return size(name), lambda s: s[name]
        value = rng.randint(-5, 9)
        return value, lambda s: value
    (a, f), (b, g) = random_dim(rng, depth - 1), random_dim(rng, depth - 1)
    by = rng.randint(1, 5)
    cases: list[tuple[Dim, Callable[[dict[str, int]], int]]] = [
        (a + b, lambda s: f(s) + g(s)),
        (a - b, lambda s: f(s) - g(s)),
        (a * b, lambda s: f(s) * g(s)),
        (-a, lambda s: -f(s)),
        (floordiv(a, by), lambda s: f(s) // by),
        (a % by, lambda s: f(s) % by),
        (ceildiv(a, by), lambda s: -(-f(s) // by)),
        (dim_max(a, b), lambda s: max(f(s), g(s))),
        (dim_min(a, b), lambda s: min(f(s), g(s))),
    ]
    return rng.choice(cases)


@pytest.mark.slow
def test_arithmetic_means_what_integers_mean() -> None:
    for seed in range(200):
        rng = random.Random(seed)
        dim, exact = random_dim(rng)
        for n in (0, 1, 2, 7):
            for m in (1, 3, 12):
                assert known(dim, {"N": n, "M": m}) == exact({"N": n, "M": m}), f"{dim} at N={n}, M={m}"
        half = evaluate(dim, {"N": 4})
        assert symbols(half) <= {"M"}
        assert known(half, {"M": 5}) == exact({"N": 4, "M": 5})
        assert decode_dim(encode_dim(dim)) == dim
        assert hash(decode_dim(encode_dim(dim))) == hash(dim)


def test_equal_dimensions_are_equal() -> None:
    assert (N + 1) * (M - 2) == N * M - 2 * N + M - 2
    assert (N + M) * (N - M) == N * N - M * M
    assert dim_min(N, 1) + dim_max(N - 1, 0) == N
    assert dim_max(N, M) + dim_min(N, M) == N + M
    assert ceildiv(ceildiv(N, 2), 2) == ceildiv(N, 4)
    assert ceildiv(N, 2) == (N - 1) // 2 + 1
    assert N - N == 0
    assert isinstance(N - N, int)
    assert 2 * N + 3 - N - N == 3
    assert N != M
    assert N + 1 != N
    assert {N * 2: 1}[N + N] == 1
    assert dim_max(N, N) == N


def test_division_is_exact_where_it_can_be_seen() -> None:
    assert floordiv(6 * N * M, 3 * N) == 2 * M
    assert floordiv(4 * N + 3, 4) == N
    assert floordiv(4 * N + 9, 4) == N + 2
    assert floordiv(N * (M + 1), M + 1) == N
    assert (6 * N) % 3 == 0
    assert divides(4 * N + 8, 4)
    assert not divides(4 * N + 2, 4)
    assert not divides(N, 0)
    past = N * dim_max(64 - M, 0)
    assert (32 * past - 2048 * N) // (4 * past - 256 * N) == 8
    assert (N + 1) * (M + 2) * (M - N) // ((M + 2) * (N + 1)) == M - N
    assert not divides(N * N + 2, N + 1)
    assert floordiv(N + 1, N + 1) == 1
    assert str(floordiv(N + 1, 2)) == "((N + 1) // 2)"


def test_sums_divide_their_products() -> None:
    sides = (N + 2, 3 * M - N // 4)
    area = sides[0] * sides[1]
    for whole, part, quotient in (
        (area, sides[0], sides[1]),
        (6 * N * area, 2 * area, 3 * N),
        (N * N - 1, N - 1, N + 1),
    ):
        assert divides(whole, part)
        assert whole // part == quotient
    for whole, part in ((area + 1, sides[0]), (3 * area, 2 * area), (sides[0], area), (N * N - 2, N - 1)):
        assert not divides(whole, part)
        assert known(whole // part, {"N": 9, "M": 7}) == known(whole, {"N": 9, "M": 7}) // known(part, {"N": 9, "M": 7})


def test_what_stands_in_many_places_is_computed_once() -> None:
    dim: Dim = N
    for k in range(1, 40):
        dim = dim_max(dim // 2, dim - k) if k % 2 else dim_min(dim, dim % 7 + M)
        if isinstance(dim, Size) and dim.atoms > 1000:
            break
    assert symbols(dim) == {"N", "M"}
    assert isinstance(known(dim, {"N": 1000, "M": 5}), int)


def test_zero_divides_nothing() -> None:
    for a in (7, N):
        with pytest.raises(ShapeError, match="by zero"):
            floordiv(a, 0)
        with pytest.raises(ShapeError, match="by zero"):
            shapes.remainder(a, 0)
    with pytest.raises(ShapeError, match="by zero"):
        known(floordiv(M, N), {"N": 0, "M": 4})
    with pytest.raises(ShapeError, match="by zero"):
        known(M % N, {"N": 0, "M": 4})  # pyright: ignore[reportArgumentType]


def deep(levels: int) -> Any:
    data: Any = 1
    for _ in range(levels):
        data = [[1, ["max", data, [[1, "N"]]]]]
    return data


@pytest.mark.parametrize(
    "data",
    [
        *(
            None,
            True,
            1.5,
            "N",
            {},
            [1],
            [[]],
            [["N"]],
            [[1.0, "N"]],
            [[1, 2]],
            [[1, None]],
            [[1, ["max", 1]]],
            [[1, ["pow", 2, 3]]],
        ),
        *(
            [[1, ["div", 1, 0]]],
            [[1, ["mod", [[1, "N"]], 0]]],
            [[1, ["max", "N", 1]]],
            [[1, [["max"], 1, 2]]],
            deep(40),
        ),
    ],
)
def test_hostile_data_is_refused(data: Any) -> None:
    with pytest.raises(ShapeError):
        decode_dim(data)


def test_a_name_that_is_missing_is_named() -> None:
    with pytest.raises(ShapeError, match="depends on M, which no input gives"):
        known(N + M, {"N": 1})


def test_broadcasting_follows_numpys_rule() -> None:
    assert broadcast([(2, 1, 3), (4, 1)]) == (2, 4, 3)
    assert broadcast([(N, 1), (3,), ()]) == (N, 3)
    assert broadcast([]) == ()
    assert broadcast([(0, 1), (1, 5)]) == (0, 5)
    for unequal in ([(2,), (3,)], [(N,), (M,)], [(N,), (2,)]):
        with pytest.raises(ShapeError, match="do not broadcast"):
            broadcast(unequal)


def test_a_dimension_of_at_most_one_broadcasts() -> None:
    """It is not 1 where the size is 0: then a run must want nothing of it."""
    one = dim_min(N, 1)
    with shapes.deferring() as checks:
        assert broadcast([(M, 1), (one, 16)]) == (M, 16)
        assert broadcast([(one, 5), (3, 1), (one,)]) == (3, 5)
        assert broadcast([(one,), (dim_min(N + 1, 1),), (one,)]) == (one,)
    for m, n, holds in ((0, 0, True), (3, 0, False), (0, 4, True), (3, 4, True)):
        assert all(known(c, {"M": m, "N": n}) >= 0 for c in list(checks)[:1]) == holds
    with pytest.raises(SizeNeeded, match="is 1 depends on the run"):
        broadcast([(M,), (one,)])


def test_strides_and_products() -> None:
    assert strides((2, N, 3)) == (3 * N, 3, 1)
    assert strides(()) == ()
    assert product((2, N, 3)) == 6 * N
    assert product(()) == 1
    assert isinstance(N * 1, Size)
    assert N * 0 == 0


def test_axes_are_checked() -> None:
    assert shapes.axis_of(-1, 3, "op") == 2
    assert shapes.axes_of((-1, 0), 3, "op") == (0, 2)
    with pytest.raises(ShapeError, match="axis 3 is out of range for rank 3"):
        shapes.axis_of(3, 3, "op")
    with pytest.raises(ShapeError, match="name one axis twice"):
        shapes.axes_of((0, -3), 3, "op")
