"""`singe.array_api` gives what array-api-strict gives, the reference that has the standard's names and nothing else, for
arrays of every dtype, on every device; test_array_api_suite.py runs the consortium's own tests."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from devices import EAGER

import singe as sg
from singe import array_api as xp

strict = pytest.importorskip("array_api_strict")

RNG = np.random.default_rng(3)
DTYPES = ("int8", "uint8", "int32", "int64", "float32", "float64", "complex64")
FLOATS = ("float32", "float64", "complex64")
INTS = ("int8", "uint8", "int32", "int64")
REALS = ("int8", "uint8", "int32", "int64", "float32", "float64")


def drawn(kind: str, shape: tuple[int, ...] = (3, 4)) -> np.ndarray:
    numbers = RNG.uniform(0.25, 0.95, shape)
    if kind.startswith("complex"):
        numbers = numbers + 1j * RNG.uniform(0.25, 0.95, shape)
    return (numbers if kind in FLOATS else np.floor(numbers * 10)).astype(kind)


Call = Callable[[Any, Any, Any], Any]
UNARY = ("abs", "acos", "acosh", "asin", "asinh", "atan", "atanh", "cos", "cosh", "exp", "expm1", "log", "log10", "log1p", "log2", "reciprocal", "sign",
         "sin", "sinh", "sqrt", "tan", "tanh", "negative", "square", "isfinite", "isinf", "isnan", "conj")  # fmt: skip
BINARY = ("add", "subtract", "multiply", "equal", "not_equal")
ORDERED = ("less", "greater_equal", "maximum", "minimum", "remainder", "floor_divide")
WHOLE = ("bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_left_shift", "bitwise_right_shift")
CALLS: dict[str, tuple[Call, tuple[str, ...]]] = {
    **{n: (lambda m, x, y, n=n: getattr(m, n)(x if n != "acosh" else m.add(x, m.ones_like(x))), FLOATS) for n in UNARY},
    **{n: (lambda m, x, y, n=n: getattr(m, n)(x, y), DTYPES) for n in BINARY},
    **{n: (lambda m, x, y, n=n: getattr(m, n)(x, m.add(y, m.ones_like(y))), REALS) for n in ORDERED},
    **{n: (lambda m, x, y, n=n: getattr(m, n)(x, m.remainder(y, m.full_like(y, 4))), INTS) for n in WHOLE},
    "divide": (lambda m, x, y: m.divide(x, y), FLOATS),
    "pow": (lambda m, x, y: m.pow(x, y), FLOATS),
    "logaddexp": (lambda m, x, y: m.logaddexp(x, y), FLOATS[:2]),
    "number operands": (lambda m, x, y: 2 * x + y - 1, DTYPES),
    "sum": (lambda m, x, y: m.sum(x, axis=1), DTYPES),
    "prod": (lambda m, x, y: m.prod(x, axis=(0, 1), keepdims=True), DTYPES),
    "mean": (lambda m, x, y: m.mean(x, axis=0), FLOATS[:2]),
    "var": (lambda m, x, y: m.var(x, axis=0, correction=1), FLOATS[:2]),
    "max": (lambda m, x, y: m.max(x, axis=-1), REALS),
    "argmin": (lambda m, x, y: m.argmin(x, axis=0), REALS),
    "cumulative_sum": (lambda m, x, y: m.cumulative_sum(x, axis=1, include_initial=True), DTYPES),
    "diff": (lambda m, x, y: m.diff(x, axis=0, n=2), DTYPES),
    "sort": (lambda m, x, y: m.sort(x, axis=0, descending=True), REALS),
    "argsort": (lambda m, x, y: m.argsort(x, axis=1), REALS),
    "unique_values": (lambda m, x, y: m.sort(m.unique_values(x)), REALS),
    "searchsorted": (lambda m, x, y: m.searchsorted(m.sort(x[0, :]), y[1, :]), REALS),
    "where": (lambda m, x, y: m.where(m.equal(x, y), x, y), DTYPES),
    "clip": (lambda m, x, y: m.clip(x, 1, 5), REALS),
    "concat": (lambda m, x, y: m.concat([x, y], axis=None), DTYPES),
    "stack": (lambda m, x, y: m.stack([x, y], axis=-1), DTYPES),
    "flip and roll": (lambda m, x, y: m.roll(m.flip(x, axis=0), 3), DTYPES),
    "repeat and tile": (lambda m, x, y: m.tile(m.repeat(x, 2, axis=0), (2, 1)), DTYPES),
    "mask": (lambda m, x, y: x[m.equal(x, x[0:1, 0:1])], DTYPES),
    "integer arrays": (lambda m, x, y: x[m.asarray([0, 2], device=x.device), m.asarray([1, -1], device=x.device)], DTYPES),
    "take_along_axis": (lambda m, x, y: m.take_along_axis(x, m.asarray([[0, 1], [1, 3], [2, 2]], device=x.device), axis=1), DTYPES),
    "tril": (lambda m, x, y: m.tril(x, k=1), DTYPES),
    "matmul": (lambda m, x, y: m.matmul(x, m.matrix_transpose(y)), DTYPES),
    "tensordot": (lambda m, x, y: m.tensordot(x, y, axes=((0, 1), (0, 1))), DTYPES),
    "vecdot": (lambda m, x, y: m.vecdot(x, y), DTYPES),
    "cross": (lambda m, x, y: m.linalg.cross(x[:, :3], y[:, :3]), DTYPES),
    "det": (lambda m, x, y: m.linalg.det(x[:, :3]), FLOATS),
    "svdvals": (lambda m, x, y: m.linalg.svdvals(x), FLOATS),
    "pinv": (lambda m, x, y: m.linalg.pinv(x), FLOATS),
    "vector_norm": (lambda m, x, y: m.linalg.vector_norm(x, axis=0, ord=3), FLOATS[:2]),
    "fft": (lambda m, x, y: m.fft.fft(m.astype(x, m.complex128)), FLOATS),
    "rfft": (lambda m, x, y: m.fft.rfft(x, n=6), FLOATS[:2]),
    "result_type": (lambda m, x, y: m.astype(x, m.result_type(x, m.int16 if x.dtype in (m.int8, m.uint8, m.int32) else x.dtype)), DTYPES),
}  # fmt: skip


@EAGER
@pytest.mark.parametrize("name", CALLS)
def test_a_function_gives_what_the_reference_gives(name: str, on: sg.Device) -> None:
    call, kinds = CALLS[name]
    for kind in kinds:
        first, second = drawn(kind), drawn(kind)
        want = call(strict, strict.asarray(first), strict.asarray(second))
        got = call(xp, xp.asarray(first, device=on), xp.asarray(second, device=on))
        assert got.shape == want.shape, kind
        assert got.dtype.name == str(want.dtype).removeprefix("array_api_strict."), kind
        close = 1e-11 if "64" in kind and kind != "complex64" and on.name == "numpy" else 2e-4
        np.testing.assert_allclose(got.numpy(), np.asarray(want), rtol=close, atol=close, err_msg=kind)


def test_the_namespace_says_what_it_can_do() -> None:
    info = xp.__array_namespace_info__()
    assert info.default_dtypes()["real floating"] is sg.float32
    assert set(info.dtypes()) == set(strict.__array_namespace_info__().dtypes())
    assert info.dtypes(kind="unsigned integer").keys() == {"uint8", "uint16", "uint32", "uint64"}
    assert sg.device("numpy") in info.devices()
    assert xp.finfo(xp.complex64).bits == 32
    assert xp.iinfo(xp.uint8).max == 255
    assert xp.isdtype(xp.float32, ("integral", "real floating"))
    assert not xp.can_cast(xp.int64, xp.int32)


@pytest.mark.parametrize("axes", [3, -1])
def test_tensordot_over_more_axes_than_there_are_is_refused(axes: int) -> None:
    x = xp.ones((3, 3))
    with pytest.raises(sg.ShapeError, match="tensordot"):
        xp.tensordot(x, x, axes=axes)


def test_decompositions_need_no_functions_of_numpy_2(monkeypatch: pytest.MonkeyPatch) -> None:
    lower = np.linalg.cholesky
    monkeypatch.setattr(np.linalg, "cholesky", lower)
    monkeypatch.delattr(np.linalg, "svdvals", raising=False)
    x = np.array([[4, 1 + 1j], [1 - 1j, 3]], np.complex64)
    upper = xp.linalg.cholesky(xp.asarray(x), upper=True).numpy()
    np.testing.assert_allclose(upper.conj().T @ upper, x, rtol=1e-5)
    assert upper[1, 0] == 0
    np.testing.assert_allclose(xp.linalg.svdvals(xp.asarray(x)).numpy(), np.linalg.svd(x)[1], rtol=1e-5)
