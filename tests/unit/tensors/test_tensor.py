"""Tensors compute what NumPy computes, on every device, eager and fused; their errors say what to do."""

from __future__ import annotations

import copy
import operator
import pickle
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from beside_numpy import Operation, check, check_operation

import singe as sg
from singe.dtypes import DTYPES
from singe.ops import ROWS

RNG = np.random.default_rng(5)
A = RNG.normal(size=(3, 4)).astype(np.float32)
B = RNG.uniform(0.5, 2, (3, 4)).astype(np.float32)
INTS = RNG.integers(-5, 6, (3, 4))
POSITIVE = RNG.integers(1, 6, (3, 4))
M = RNG.normal(size=(4, 5)).astype(np.float32)
X = RNG.normal(size=(2, 3, 7, 9)).astype(np.float32)
BOOLS = RNG.random((3, 4)) > 0.5
CUBE = np.arange(60).reshape(3, 4, 5)


OPERATIONS: dict[str, Operation] = {
    "add": (lambda a, b: a + b, None, (A, B)),
    "add a number": (lambda a: 1.5 + a + 2, None, (A,)),
    "sub": (lambda a, b: a - b, None, (A, B)),
    "sub from a number": (lambda a: 1 - a, None, (A,)),
    "mul by a row": (lambda a, b: a * b[0], None, (A, B)),
    "div": (lambda a, b: a / b, None, (A, B)),
    "div a number": (lambda b: 1 / b, None, (B,)),
    "div integers": (lambda i, j: i / j, lambda i, j: (i / j).astype(np.float32), (INTS, POSITIVE)),
    "div integers by a number": (lambda i: i / 2, None, (INTS,)),
    "an integer and a float": (lambda i: i * 0.5, None, (INTS,)),
    "integers and floats": (lambda i, a: i + a, None, (INTS, A)),
    "bools and integers": (lambda b, i: b * 2 + i, None, (BOOLS, INTS)),
    "matmul": (lambda a, m: a @ m, None, (A, M)),
    "matmul of a vector": (lambda a, m: a[0] @ m, None, (A, M)),
    "matmul of integers and floats": (lambda i, m: i @ m, None, (INTS, M)),
    "square": (lambda a: a**2, None, (A,)),
    "seventh power": (lambda b: b**7, None, (B,)),
    "power zero": (lambda a: a**0, None, (A,)),
    "negative power": (lambda b: b**-3, None, (B,)),
    "root": (lambda b: b**0.5, None, (B,)),
    "power of a half": (lambda b: b**-1.5, None, (B,)),
    "integer power": (lambda i: i**3, None, (INTS,)),
    "any power": (lambda b, a: b**0.3 + b**a + 2**a, None, (B, A)),
    "high power": (lambda b: (b / 2) ** 20, None, (B,)),
    "remainder and whole quotient": (lambda i, j: i % j + i // j, None, (INTS, POSITIVE)),
    "remainder of floats": (lambda a, b: a % b + a // b + 5 % b, None, (A, B)),
    "shifts": (lambda i, j: (i << j) + (i >> 1), None, (INTS, POSITIVE)),
    "functions without a row": (lambda b: b.log1p() + b.atan2(b) + b.trunc(), lambda b: np.log1p(b) + np.arctan2(b, b) + np.trunc(b), (B,)),
    "exp of integers": (lambda i: i.exp(), lambda i: np.exp(i).astype(np.float32), (INTS,)),
    "neg and abs": (lambda a: abs(-a), None, (A,)),
    "equal": (lambda i, j: i == j, None, (INTS, POSITIVE)),
    "not equal": (lambda i, j: i != j, None, (INTS, POSITIVE)),
    "less": (lambda a, b: a < b, None, (A, B)),
    "at most": (lambda i: i <= 2, None, (INTS,)),
    "greater": (lambda a: a > 0, None, (A,)),
    "at least": (lambda a, i: a >= i, None, (A, INTS)),
    "logic": (lambda a, b: (a > 0) & (b < 1) | ~(a < 0.5) ^ (b > 1), None, (A, B)),
    "bits": (lambda i, j: (i & j) | (i ^ 3) & ~j, None, (INTS, POSITIVE)),
    "where": (lambda a, b: sg.where(a > 0, b, 0.0), lambda a, b: np.where(a > 0, b, np.float32(0)), (A, B)),
    "a row with attributes": (lambda a: a.leaky_relu(alpha=0.3), lambda a: np.where(a < 0, a * np.float32(0.3), a), (A,)),
    "a row of two": (lambda a: a.maximum(0.25), lambda a: np.maximum(a, np.float32(0.25)), (A,)),
    "clip": (lambda a: a.clip(-0.5, 0.5), None, (A,)),
    "clip below": (lambda a: a.clip(low=0), lambda a: a.clip(0, None), (A,)),
    "cast": (lambda a: a.cast("int32"), lambda a: a.astype(np.int32), (A * 10,)),
    "half": (lambda a: a.half(), lambda a: a.astype(np.float16), (A,)),
    "sum": (lambda a: a.sum(), None, (A,)),
    "sum of bools": (lambda b: b.sum(0), None, (BOOLS,)),
    "mean": (lambda a: a.mean((0, -1), keepdims=True), None, (A,)),
    "mean of integers": (lambda i: i.mean(1), lambda i: i.mean(1).astype(np.float32), (INTS,)),
    "max": (lambda a: a.amax(1), lambda a: a.max(1), (A,)),
    "min": (lambda i: i.amin(-1, keepdims=True), lambda i: i.min(-1, keepdims=True), (INTS,)),
    "any": (lambda b: b.amax(1), lambda b: b.max(1), (BOOLS,)),
    "prod": (lambda j: j.prod(0), None, (POSITIVE,)),
    "argmax": (lambda a: a.argmax(1), None, (A,)),
    "argmin of all": (lambda a: a.argmin(), None, (A,)),
    "softmax": (lambda a: a.softmax(0), lambda a: np.exp(a) / np.exp(a).sum(0), (A,)),
    "reshape": (lambda a: a.reshape(2, -1), None, (A,)),
    "flatten": (lambda c: c.flatten(1), lambda c: c.reshape(3, 20), (CUBE,)),
    "transposes": (lambda c: c.permute(2, 0, 1).mT, lambda c: c.transpose(2, 1, 0), (CUBE,)),
    "T": (lambda a: a.T, None, (A,)),
    "squeeze": (lambda a: a.unsqueeze(1).unsqueeze(-1).squeeze(1), lambda a: a[..., None], (A,)),
    "squeeze of a longer axis": (lambda a: a.unsqueeze(1).squeeze((0, 1)), lambda a: a, (A,)),
    "expand": (lambda a: a.unsqueeze(0).expand(2, -1, 4), lambda a: np.broadcast_to(a, (2, 3, 4)), (A,)),
    "pad": (lambda a: a.pad([(1, 0), (0, 2)], value=7), lambda a: np.pad(a, [(1, 0), (0, 2)], constant_values=7), (A,)),
    "pad by reflection": (lambda a: a.pad(2, "reflect"), lambda a: np.pad(a, 2, "reflect"), (A,)),
    "concat": (lambda a, i: sg.concat([a, i], 1), lambda a, i: np.concatenate([a, i], 1), (A, INTS)),
    "stack": (lambda a, b: sg.stack([a, b], -1), lambda a, b: np.stack([a, b], -1), (A, B)),
    "split": (lambda a: a.split([1, 3], 1)[1], lambda a: a[:, 1:], (A,)),
    "take": (lambda c: c.take([1, -1, 1], 1), lambda c: c.take([1, 3, 1], 1), (CUBE,)),
    "zeros like": (lambda i: sg.zeros_like(i) + 1, np.ones_like, (INTS,)),
}  # fmt: skip


@pytest.mark.parametrize("name", OPERATIONS)
def test_operation(name: str, on: sg.Device) -> None:
    check_operation(OPERATIONS[name], on)


KEYS: dict[str, Any] = {
    "integer": 1,
    "negative": (-1, -2, -3),
    "slice": (slice(1, None), slice(None, -1)),
    "steps": (slice(None, None, 2), slice(None, None, -1), slice(3, 0, -2)),
    "empty": (slice(2, 1),),
    "dots": (..., 2),
    "dots in the middle": (0, ..., slice(1, 3)),
    "new axes": (None, 1, None, slice(None), None),
    "array": np.array([2, 0, -1]),
    "list along an axis": (slice(1, None), [3, 0, 3]),
    "matrix of indices": (slice(None), slice(1, 3), np.array([[0, 1], [4, -5]])),
    "integer beside an array": (1, [0, 2], slice(None, None, -1)),
    "two arrays": (slice(None), [0, 3, -1], np.array([[1], [4]])),
    "arrays apart": ([0, 2], slice(None), [1, -5]),
    "an integer and an array apart": (0, slice(None), [1, 3]),
    "arrays apart by dots of no axes": (slice(None), [0, 2], ..., [1, -5]),
    "three arrays and a new axis": (None, [2, 0], [1, 1], [[0], [4]]),
    "mask": CUBE % 3 == 0,
    "mask of some axes": (slice(1, None), CUBE[0] % 2 == 0),
    "mask of one axis": (slice(None), [True, False, False, True], slice(None, None, -2)),
    "mask and array": ([True, False, True], [1, 3]),
    "mask of nothing": np.zeros((3, 4), bool),
    "bool": (True, 0),
    "numpy's integers": (np.int64(2), slice(np.int32(1), None)),
}


@pytest.mark.parametrize("name", KEYS)
def test_index(name: str, on: sg.Device) -> None:
    check(sg.tensor(CUBE, device=on)[KEYS[name]], CUBE[KEYS[name]])


def test_index_by_a_tensor(on: sg.Device) -> None:
    index = sg.tensor([2, -1], device=on)
    check(sg.tensor(CUBE, device=on)[:, index], CUBE[:, [2, -1]])
    check(sg.tensor(CUBE, device=on)[:, :, index[0]], CUBE[:, :, 2])


def _windows(x: np.ndarray, size: int, stride: int) -> np.ndarray:
    return np.lib.stride_tricks.sliding_window_view(x, (size, size), (2, 3))[:, :, ::stride, ::stride]


def test_several_results(on: sg.Device) -> None:
    """A row of several results gives a tuple of tensors; the length of some only the elements tell."""
    a = sg.tensor(A, device=on)
    most, places = a.top_k(k=2, axis=1, largest=True)
    check(most, -np.sort(-A, axis=1)[:, :2])
    check(places, np.argsort(-A, axis=1)[:, :2])
    check(most + places.cast("float32"), -np.sort(-A, axis=1)[:, :2] + np.argsort(-A, axis=1)[:, :2])
    found = sg.tensor(POSITIVE, device=on).unique(return_index=True, return_inverse=True, return_counts=True)
    for got, want in zip(found, np.unique(POSITIVE, True, True, True), strict=True):
        check(got, want.reshape(got.shape))


def test_conv(on: sg.Device) -> None:
    w = RNG.normal(size=(6, 3, 3, 3)).astype(np.float32)
    bias = RNG.normal(size=6).astype(np.float32)
    padded = np.pad(X, [(0, 0), (0, 0), (1, 1), (1, 1)])
    want = np.einsum("nchwij,ocij->nohw", _windows(padded, 3, 2), w) + bias[:, None, None]
    x = sg.tensor(X, device=on)
    check(x.conv(w, bias, stride=2, padding=1), want)
    assert x.conv(w, padding="same").shape == (2, 6, 7, 9)
    depthwise = np.einsum("nchwij,cij->nchw", _windows(X, 3, 1), w[:3, 0])
    check(x.conv(w[:3, :1], groups=3), depthwise)


def test_pools(on: sg.Device) -> None:
    x = sg.tensor(X, device=on)
    check(x.max_pool(3, 2), _windows(X, 3, 2).max((-2, -1)))
    check(x.avg_pool(2), _windows(X, 2, 2).mean((-2, -1)))
    ones = np.pad(np.ones_like(X), [(0, 0), (0, 0), (1, 1), (1, 1)])
    padded = np.pad(X, [(0, 0), (0, 0), (1, 1), (1, 1)])
    sums = _windows(padded, 3, 2).sum((-2, -1))
    check(x.avg_pool(3, 2, 1), sums / 9)
    check(x.avg_pool(3, 2, 1, count_include_pad=False), sums / _windows(ones, 3, 2).sum((-2, -1)))
    assert x.max_pool(2, ceil_mode=True).shape == (2, 3, 4, 5)
    last = X[:, :, 6:, 8:].mean((-2, -1))  # what an overhanging window holds, and no more
    np.testing.assert_allclose(x.avg_pool(2, ceil_mode=True).numpy()[:, :, -1, -1], last, rtol=1e-5)
    check(x.adaptive_avg_pool(1), X.mean((2, 3), keepdims=True))
    check(x.adaptive_avg_pool((7, 3)), X.reshape(2, 3, 7, 3, 3).mean(-1))


def test_interpolate(on: sg.Device) -> None:
    x = sg.tensor(X, device=on)
    check(x.interpolate(scale=2), X.repeat(2, 2).repeat(2, 3))
    check(x.interpolate((14, 3)), X.repeat(2, 2)[..., ::3])
    check(x.interpolate((7, 3), mode="area"), X.reshape(2, 3, 7, 3, 3).mean(-1))
    check(x.interpolate(scale_factor=(1, 0.4), mode="area"), X.reshape(2, 3, 7, 3, 3).mean(-1))
    row = sg.tensor([[[0.0, 1.0]]], device=on)
    check(row.interpolate(4, mode="linear"), np.array([[[0, 0.25, 0.75, 1]]], np.float32))
    check(row.interpolate(3, mode="linear", align_corners=True), np.array([[[0, 0.5, 1]]], np.float32))


# --- properties ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (1.5, "float32"), (3, "int64"), (True, "bool"), ([[1, 2], [3, 4]], "int64"), ([1, 2.5], "float32"), ([], "float32"),
        (np.float64(2), "float32"), (np.arange(3, dtype=np.int32), "int32"), (np.ones(2, np.float16), "float16"),
    ],
)  # fmt: skip
def test_natural_dtypes(data: Any, kind: str) -> None:
    x = sg.tensor(data)
    assert x.dtype.name == kind
    np.testing.assert_array_equal(x.numpy(), np.asarray(data))


def test_creation() -> None:
    check(sg.zeros((2, 3)), np.zeros((2, 3)))
    check(sg.ones(2, "int32"), np.ones(2, int))
    check(sg.full((1, 2), 7), np.full((1, 2), 7))
    check(sg.arange(2, 10, 3), np.arange(2, 10, 3))
    check(sg.arange(0, 1, 0.25), np.arange(0, 1, 0.25))
    check(sg.eye(2, 3), np.eye(2, 3))
    assert sg.zeros_like(sg.ones(3, "int32")).dtype is sg.int32
    assert sg.zeros(1).device is sg.device("numpy")


def test_a_tensor_is_never_the_callers_memory(on: sg.Device) -> None:
    data = np.ones(3, np.float32)
    x = sg.tensor(data, device=on)
    data[:] = 5
    x.numpy()[:] = 6
    assert x.tolist() == [1, 1, 1]


def test_as_python_values(on: sg.Device) -> None:
    x = sg.tensor([[1, 2]], device=on)
    assert x.tolist() == [[1, 2]]
    assert len(x) == 1
    assert [t.tolist() for t in x[0]] == [1, 2]
    assert (x[0, 1].item(), float(x[0, 0]), int(x[0, 1]), bool(x[0, 0] > 5)) == (2, 1.0, 2, False)
    assert "abc"[sg.tensor(1, device=on)] == "b"
    assert np.asarray(x).dtype == np.int64
    assert (x.ndim, x.size, x.shape) == (2, 2, (1, 2))


@pytest.mark.parametrize("kind", [d for d in DTYPES.values() if d.held and d.kind != "string"], ids=str)
def test_elements_that_numpy_lacks_are_read_as_numbers(kind: sg.DType, on: sg.Device) -> None:
    x = sg.tensor([[1, 0]] if kind.kind != "int" else [[-1, 0]], kind, on)
    first = -1 if kind.kind == "int" else 1
    least = x[0, 1].item()  # float8_e8m0fnu has no zero
    assert x.tolist() == [[first, least]]
    assert (x[0, 0].item(), float(x[0, 0]), int(x[0, 0]), bool(x[0, 0])) == (first, first, first, True)
    assert bool(x[0, 1]) is (least != 0)
    assert np.asarray(x, np.float32).tolist() == [[first, least]]
    assert repr(x).startswith(f"tensor([[{first}")
    assert np.asarray(x).dtype == np.asarray(x, kind).dtype == x.numpy().dtype == getattr(ml_dtypes, kind.name)


def test_integers_out_of_range_are_refused() -> None:
    for make in (
        lambda: sg.tensor([300, -1], dtype="uint8"),
        lambda: sg.tensor(np.array([1, -2]), dtype="uint64"),
        lambda: sg.tensor([2**63], dtype="int64"),
        lambda: sg.full((2,), -129, "int8"),
        lambda: sg.full((2,), 8, "int4"),
        lambda: sg.full((2,), float("nan"), "int32"),
        lambda: sg.full_like(sg.tensor([1], "uint8"), 256),
        lambda: sg.arange(300, dtype="uint8"),
    ):
        with pytest.raises(sg.DTypeError, match="does not fit"):
            make()
    assert sg.tensor(np.array([255, 0]), dtype="uint8").tolist() == [255, 0]
    assert sg.tensor([-8, 7], dtype="int4").tolist() == [-8, 7]


def test_arrays_meet_tensors_on_the_tensors_device(on: sg.Device) -> None:
    x = sg.tensor(A, device=on)
    for got in (B * x, x * B, np.float64(2) * x, x @ M.astype(np.float64), A.T @ x):
        assert got.device is on
        assert got.dtype is sg.float32


@pytest.mark.parametrize(
    "name", ["add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "lt", "le", "gt", "ge", "eq", "ne"]
)
def test_operators_of_arrays_and_numpys_numbers_are_the_tensors(name: str) -> None:
    function = getattr(operator, name)
    whole = np.arange(1, 13, dtype=np.int64).reshape(3, 4)
    for given, x in (
        (A + 3, A + 2),
        (whole, whole),
        (np.float32(2), A + 3),
        (np.int64(2), whole),
        (np.array(2.0, np.float32), A + 3),
    ):
        found = function(given, sg.tensor(x))
        assert isinstance(found, sg.Tensor)
        np.testing.assert_allclose(found.numpy(), function(given, x), rtol=1e-4)


def test_numpys_functions_work_or_say_what_to_write() -> None:
    x, array = sg.tensor(A), np.array(A)
    assert isinstance(np.sort(x), np.ndarray)
    assert isinstance(np.sum(x), sg.Tensor)
    for call, text in {
        (lambda: np.exp(x), r"np.exp: .*write x.exp\(\), or np.exp of x.numpy\(\)"),
        (lambda: np.add(x, x), r"write x.add\(y\)"),
        (lambda: np.add(array, x, out=array.copy()), r"write np.add of x.numpy\(\)"),
        (lambda: np.add.reduce(x), r"write np.add of x.numpy\(\)"),
        (lambda: np.cbrt(x), r"write np.cbrt of x.numpy\(\)"),
    }:
        with pytest.raises(sg.InputError, match=text):
            call()


def test_numbers_take_the_tensors_dtype() -> None:
    assert (sg.tensor([1], "uint8") + 1).dtype is sg.uint8
    assert (sg.tensor([1.0], "float16") * 2.5).dtype is sg.float16
    assert (sg.tensor([True]) + 1).dtype is sg.int64
    assert (sg.tensor([1]) + 1.5).dtype is sg.float32


def test_tensors_are_compared_by_value_and_hashed_by_identity() -> None:
    x, y = sg.tensor([1, 2]), sg.tensor([1, 2])
    assert (x == y).tolist() == [True, True]
    assert len({x, y}) == 2
    assert (x == "other") is False
    assert (x != None) is True  # noqa: E711


def test_repr() -> None:
    assert repr(sg.tensor([1, 2])) == "tensor([1, 2], shape=(2,), dtype=int64, device=numpy)"
    assert "fusion(numpy)" in repr(sg.tensor(1.0, device=sg.Fusion(sg.Numpy())))
    assert "..." in repr(sg.zeros((100, 100)))
    for shape in ((30, 30), (100, 100), (4, 5, 6, 7), (8, 9, 10, 11), (999, 1)):
        lines = repr(sg.ones(shape)).splitlines()
        assert len(lines) <= 13
        assert max(map(len, lines)) < 200
        assert lines[-1].endswith(f"shape={shape}, dtype=float32, device=numpy)")


def test_rows_are_methods_but_for_those_of_the_compiler() -> None:
    x = sg.tensor([0.5])
    shown = set(dir(x))
    for name, row in ROWS.items():
        written = hasattr(sg.Tensor, name) and getattr(getattr(sg.Tensor, name), "row", None) is not row
        assert written or row.public == (name in shown) == callable(getattr(x, name, None)), name
    for name in ("dot_blocks", "moved_last", "range_size", "reduce_sum"):
        assert not ROWS[name].public
        with pytest.raises(AttributeError, match="no method"):
            getattr(x, name)
        with pytest.raises(AttributeError):
            getattr(sg, name)


def test_methods_say_what_they_do_and_what_they_take() -> None:
    assert "window" in (sg.Tensor.unfold.__doc__ or "")
    assert all(getattr(sg.Tensor, name).__doc__ for name in ROWS if hasattr(sg.Tensor, name))
    x = sg.tensor(A)
    assert x.update_slice(B[:1], 2, 0)[2].tolist() == B[0].tolist()
    assert x.update_slice(B[:1], (sg.tensor(1), 0))[1].tolist() == B[0].tolist()
    assert x.gather(1, sg.tensor([[3], [-1], [0]])).tolist() == A[[0, 1, 2], [3, 3, 0]][:, None].tolist()
    np.testing.assert_array_equal(x.top_k(2, axis=0)[0].numpy(), np.sort(A, 0)[:0:-1])
    with pytest.raises(sg.InputError, match=r"gather_nd\(x, index, batch\): missing a required argument"):
        x.gather_nd(batch=0)


def test_copies_and_pickles(on: sg.Device) -> None:
    x = sg.tensor(A, device=on)
    assert copy.copy(x) is x
    first, second = copy.deepcopy([x, x])
    assert first is second is not x
    assert first._value is not x._value
    np.testing.assert_array_equal(first.numpy(), A)
    again = pickle.loads(pickle.dumps(x))
    np.testing.assert_array_equal(again.numpy(), A)
    assert again.device.label == x.device.label


def test_moving_between_devices(on: sg.Device) -> None:
    x = sg.tensor(A)
    moved = x.to(on)
    assert moved.device is on
    assert moved.to(on) is moved
    np.testing.assert_array_equal(moved.to("numpy").numpy(), A)


def test_to_takes_dtypes_and_tensors(on: sg.Device) -> None:
    x = sg.tensor(A, device=on)
    for made in (
        x.to(sg.float16),
        x.to("float16"),
        x.to(np.float16),
        x.to(dtype="float16"),
        x.to(sg.ones((1,), "float16", on)),
    ):
        assert (made.dtype, made.device) == (sg.float16, on)
    moved = x.to("numpy", sg.int32)
    assert (moved.dtype, moved.device.name) == (sg.int32, "numpy")
    assert x.cpu().device.name == "numpy"
    with pytest.raises(sg.InputError, match="at most one of each"):
        x.to(sg.float16, sg.float32)


def test_fusion_frees_what_has_been_computed() -> None:
    x = sg.tensor(A, device=sg.Fusion(sg.Numpy()))
    y = x + 1
    y.numpy()
    assert not y._value.node.inputs


# --- errors ----------------------------------------------------------------------------------------------------------

FAULTS: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "unknown method": (lambda: sg.tensor(A).soft_max(), AttributeError, "a tensor has no method 'soft_max'$"),
    "two devices": (lambda: sg.tensor(A) + sg.tensor(A, device=sg.Fusion(sg.Numpy())), sg.DeviceError, r"<device fusion\(numpy\)> meets one of <device numpy>"),
    "backward": (lambda: sg.tensor(A).backward(), sg.DeviceError, "does not record gradients"),
    "shapes": (lambda: sg.tensor(A) + sg.tensor(M), sg.ShapeError, r"\(3, 4\), \(4, 5\) do not broadcast"),
    "matmul": (lambda: sg.tensor(A) @ sg.tensor(A), sg.ShapeError, "inner sizes 4 and 3"),
    "a number too large": (lambda: sg.tensor([1], "uint8") + 300, sg.DTypeError, "300 does not fit uint8"),
    "exp of strings": (lambda: sg.tensor(["a"]).exp(), sg.DTypeError, "cast them first"),
    "an attribute": (lambda: sg.tensor(A).elu(beta=1), sg.DTypeError, "no attribute beta"),
    "truth of several": (lambda: bool(sg.tensor(A)), sg.ShapeError, "ambiguous"),
    "item of several": (lambda: sg.tensor(A).item(), sg.ShapeError, "12 elements"),
    "reshape": (lambda: sg.tensor(A).reshape(5, -1), sg.ShapeError, "cannot be divided"),
    "view as another dtype": (lambda: sg.tensor(A).view(sg.int32), sg.InputError, r"x.bit_cast\(to=dtype\)"),
    "index out of range": (lambda: sg.tensor(A)[3], sg.InputError, "got 3, expected from -3 to 2"),
    "array out of range": (lambda: sg.tensor(A)[[0, 5]], sg.InputError, "got 5, expected from -3 to 2"),
    "too many indices": (lambda: sg.tensor(A)[0, 0, 0], sg.ShapeError, "3 axes are indexed"),
    "mask": (lambda: sg.tensor(A)[[True, False]], sg.ShapeError, r"mask \(2,\) over the axes \(3,\)"),
    "index by floats": (lambda: sg.tensor(A)[sg.tensor(A)], sg.InputError, "expected integers or bools"),
    "assignment": (lambda: sg.tensor(A).__setitem__(0, 1), sg.InputError, r"x.at\[key\].set"),
    "a string as index": (lambda: sg.tensor(A)["x"], sg.InputError, "got 'x', a str"),
    "ragged lists": (lambda: sg.tensor([[1], [2, 3]]), sg.InputError, "lists of equal lengths"),
    "dates": (lambda: sg.tensor(np.zeros(2, "M8[s]")), sg.DTypeError, "M8"),
    "interpolate": (lambda: sg.tensor(X).interpolate(2, mode="lanczos"), sg.InputError, "expected one of nearest"),
    "same padding": (lambda: sg.tensor(X).conv(X, stride=2, padding="same"), sg.InputError, "only stride 1"),
    "pool without batch": (lambda: sg.tensor(A).max_pool(2), sg.ShapeError, "unsqueeze"),
}  # fmt: skip


@pytest.mark.parametrize("name", FAULTS)
def test_errors_say_what_to_do(name: str) -> None:
    operation, kind, text = FAULTS[name]
    with pytest.raises(kind, match=text):
        operation()


# --- threads ---------------------------------------------------------------------------------------------------------


def test_threads_share_a_tensor(on: sg.Device) -> None:
    x = sg.tensor(A, device=on)
    fused = (x * 2 + 1).exp()  # under Fusion not computed yet: eight threads ask for it at once

    def work(k: int) -> np.ndarray:
        return ((fused - k).relu() @ x.T + fused[:, :1]).numpy()

    with ThreadPoolExecutor(8) as pool:
        got = list(pool.map(work, [k % 4 for k in range(16)]))
    whole = np.exp(A * 2 + 1)
    for k, y in enumerate(got):
        np.testing.assert_allclose(y, np.maximum(whole - k % 4, 0) @ A.T + whole[:, :1], rtol=1e-4, atol=1e-4)


def test_shapes_that_make_no_sense_are_refused() -> None:
    with pytest.raises(sg.InputError, match=r"as in zeros\(2, 3\)"):
        sg.zeros(2, 3, "int32", "numpy")
    with pytest.raises(sg.InputError, match=r"as in ones\(2, 3\)"):
        sg.ones("2")
    for shape in (-1, (2, -3)):
        with pytest.raises(sg.ShapeError, match="negative"):
            sg.zeros(shape)
    with pytest.raises(sg.ShapeError, match="from axis 1 to axis 0"):
        sg.zeros((2, 3)).flatten(1, 0)
