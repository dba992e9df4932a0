"""A cast to a narrower float rounds, also where the value is never stored: on every device as NumPy and ml_dtypes round."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import singe as sg
from singe import DType
from singe.compiler.fuse import fuse
from singe.dtypes import DTYPES
from singe.graph import Builder, Graph
from singe.ir import scalar
from singe.ir.kernel import Kernel

NARROW = [d for d in DTYPES.values() if d.coding]


def twin(kind: DType) -> np.dtype[Any]:
    return np.dtype(getattr(ml_dtypes, kind.name)) if kind.held else kind.numpy


def interesting(kind: DType) -> np.ndarray:
    """All numbers of a type, the ones between and beside them, and what is beyond."""
    codes = np.arange(1 << kind.bits, dtype=np.uint16 if kind.bits == 16 else np.uint8)
    finite = codes.view(twin(kind)).astype(np.float32)
    finite = np.unique(finite[np.isfinite(finite)])
    middle = ((finite[1:].astype(np.float64) + finite[:-1]) / 2).astype(np.float32)
    ends = np.array([0.0, -0.0, 1e-45, -1e-40, 1e38, -1e38, 3.4028235e38, np.inf, -np.inf, np.nan], np.float32)
    with np.errstate(over="ignore", invalid="ignore"):
        beyond = np.abs(finite).max() * np.array([1 + 2.0**-k for k in range(1, 20)], np.float32)
        points = np.concatenate([finite, middle, beyond, -beyond, ends])
        beside = [np.nextafter(points, np.float32(way)) for way in (np.inf, -np.inf)]
    return np.concatenate([points, *beside]).astype(np.float32)


def expected(x: np.ndarray, kind: DType) -> np.ndarray:
    """Rounded by ml_dtypes."""
    with np.errstate(all="ignore"):
        if kind.coding and not kind.coding.signed:  # ml_dtypes makes NaN of zero, and rounds up the least numbers
            x = np.where((x >= 0) & (x < 1.5 * 2.0**-127), np.float32(2.0**-127), x)
        return x.astype(twin(kind)).astype(np.float32)


def same_bits(got: np.ndarray, want: np.ndarray, x: np.ndarray, what: str) -> None:
    """NaN where NaN is expected, otherwise the same bits."""
    nan = np.isnan(want)
    np.testing.assert_array_equal(np.isnan(got), nan, what)
    wrong = np.flatnonzero(~nan & (got.view(np.int32) != want.view(np.int32)))
    assert not wrong.size, [(what, x[i], got[i], want[i]) for i in wrong[:5]]


@pytest.mark.parametrize("kind", NARROW, ids=str)
def test_a_cast_and_back_rounds_to_nearest_even(device_name: str, run_graph: Any, kind: DType) -> None:
    x = interesting(kind)
    if device_name == "webgpu":  # where subnormal floats may count as zeros
        want = expected(x, kind)
        x = x[(np.abs(x) >= 2.0**-126) & ((want == 0) | ~(np.abs(want) < 2.0**-126)) | (x == 0) | np.isnan(x)]
    want = expected(x, kind)

    b = Builder()
    given = b.input("x", x.shape, sg.float32)
    y = b.cast(b.cast(given, to=kind, saturate=False), to=sg.float32)
    (got,) = run_graph(Graph((given,), (y,), ("y",)), [x])
    same_bits(got, want, x, f"{kind} on {device_name}")


def test_casts_within_a_kernel_round_as_numpy_rounds_whole_arrays(run_graph: Any) -> None:
    """Between other ops, behind a product, and of a value that is stored too."""
    rng = np.random.default_rng(3)
    x, w = rng.normal(size=(6, 16)).astype(np.float32), rng.integers(-3, 4, (16, 8)).astype(np.float32)
    b = Builder()
    given = b.input("x", x.shape, sg.float32), b.input("w", w.shape, sg.float32)
    half = b.cast(b.neg(given[0]), to=sg.float16)
    wide = b.cast(half, to=sg.float32)
    product = b.cast(b.cast(b.dot(wide, given[1]), to=sg.bfloat16), to=sg.float32)
    outputs = (half, b.mul(wide, wide), b.add(product, b.const(1.0)))
    got = run_graph(Graph(given, outputs, ("half", "squares", "product")), [x, w])
    halves = (-x).astype(np.float16)
    wides = halves.astype(np.float32)
    products = (wides @ w).astype(ml_dtypes.bfloat16).astype(np.float32)  # sums of few halves by integers are exact
    for mine, theirs in zip(got, (halves, wides * wides, products + 1), strict=True):
        np.testing.assert_array_equal(mine, theirs)


def test_only_a_cast_that_no_store_repeats_costs_anything() -> None:
    b = Builder()
    x = b.input("x", (8,), sg.float32)
    half = b.cast(x, to=sg.float16)

    def words(*outputs: Any) -> int:
        _, groups = fuse(Graph((x,), outputs, tuple(f"y{k}" for k in range(len(outputs)))), 8)
        kernels = [g.kernel for g in groups]
        assert all(isinstance(k, Kernel) for k in kernels)
        return sum(e.word == "rounded" for k in kernels for e in scalar.postorder(k.roots))  # pyright: ignore[reportAttributeAccessIssue]

    assert words(half) == 0
    assert words(b.add(half, half)) == 1
    assert words(b.cast(b.cast(half, to=sg.float32), to=sg.float16)) == 0
