"""Where PyTorch and NumPy differ, methods of Tensor and functions of singe have PyTorch's meaning; what is ambiguous is
refused. docs/tensors.md says the rule."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from beside_numpy import Operation, check_operation
from devices import EAGER

import singe as sg

RNG = np.random.default_rng(5)
A = RNG.normal(size=(3, 4)).astype(np.float32)
B = RNG.normal(size=(3, 4)).astype(np.float32)
V = RNG.normal(size=(2, 3)).astype(np.float32)
W = RNG.normal(size=(2, 3)).astype(np.float32)
I = RNG.integers(-5, 6, (3, 4))
SQUARES = np.arange(16, dtype=np.float32).reshape(1, 1, 4, 4) ** 2
CUBE = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
HOLES = np.array([[np.inf, -np.inf, 0.5, np.nan]], np.float32)
MOST = np.finfo(np.float32).max


def lower_median(x: np.ndarray) -> np.ndarray:
    return np.sort(x, 1)[:, (x.shape[1] - 1) // 2]


METHODS: dict[str, Operation] = {
    "max along an axis": (lambda a: a.max(1).values, lambda a: a.max(1), (A,)),
    "its indices": (lambda a: a.max(dim=1, keepdim=True)[1], lambda a: a.argmax(1, keepdims=True), (A,)),
    "min of bools": (lambda a: (a > 0).min(0).indices, lambda a: (a > 0).argmin(0), (A,)),
    "max of two": (lambda a, b: a.max(b), np.maximum, (A, B)),
    "median": (lambda a: a.median(1).values, lower_median, (A,)),
    "median of all": (lambda i: i.median(), lambda i: np.sort(i, None)[5], (I,)),
    "median of NaN": (lambda a: a.median(1).values, lambda a: np.array([np.nan]), (HOLES,)),
    "kthvalue": (lambda i: i.kthvalue(2, dim=0, keepdim=True).values, lambda i: np.sort(i, 0)[1:2], (I,)),
    "take": (lambda a: a.take([[0, 5], [-1, 1]]), lambda a: a.take([[0, 5], [-1, 1]]), (A,)),
    "unique": (lambda i: i.unique(), np.unique, (I,)),
    "inverse of unique": (lambda i: i.unique(return_inverse=True)[1], lambda i: np.unique(i, return_inverse=True)[1].reshape(i.shape), (I,)),
    "transpose by names": (lambda c: c.transpose(dim0=0, dim1=-1), lambda c: c.swapaxes(0, -1), (CUBE,)),
    "transpose by order": (lambda c: c.transpose(2, 0, 1) + c.transpose((2, 0, 1)), lambda c: 2 * c.transpose(2, 0, 1), (CUBE,)),
    "dims": (lambda c: c.flip(dims=(0, 2)).permute(dims=(1, 0, 2)), lambda c: np.flip(c, (0, 2)).transpose(1, 0, 2), (CUBE,)),
    "size and shape": (lambda c: c.reshape(shape=(6, 4)).expand(size=(2, 6, 4)), lambda c: np.stack([c.reshape(6, 4)] * 2), (CUBE,)),
    "names of arguments": (lambda c: c.split(split_size=2, dim=1)[1].clip(min=3, max=20).take_along_dim(indices=sg.zeros((2, 1, 4), "int64", c.device), dim=1),
                           lambda c: c[:, 2:].clip(3, 20), (CUBE,)),
    "unbiased": (lambda a: a.std(dim=1, unbiased=False), lambda a: a.std(1), (A,)),
    "dtype of a sum": (lambda i: i.sum(dtype="float32") + i.cumsum(0, dtype=sg.float32), lambda i: (i.sum() + i.cumsum(0)).astype(np.float32), (I,)),
    "addcmul": (lambda a, b: a.addcmul(b, b, value=2) + a.addcdiv(b, b), lambda a, b: a + 2 * b * b + a + 1, (A, B)),
    "addmm": (lambda v, w: sg.zeros(2, 2, device=v.device).addmm(v, w.T, alpha=3), lambda v, w: 3 * v @ w.T, (V, W)),
    "clamp_min": (lambda a: a.clamp_min(0).clamp_max(1), lambda a: a.clip(0, 1), (A,)),
    "nan_to_num": (lambda a: a.nan_to_num(), lambda a: np.nan_to_num(a) / MOST * MOST, (HOLES,)),
    "nan_to_num of numbers": (lambda a: a.nan_to_num(7.0, 8.0, 9.0), lambda a: np.array([[8, 9, 0.5, 7]], np.float32), (HOLES,)),
    "isclose": (lambda a: a.isclose(a + 1e-7) & a.isclose(a, equal_nan=True), lambda a: np.isfinite(a) | False, (A,)),
    "isclose of infinities": (lambda a: a.isclose(a), lambda a: np.isclose(a, a), (HOLES,)),
    "diff": (lambda a: a.diff(2, dim=0), lambda a: np.diff(a, 2, 0), (A,)),
    "cross": (lambda v, w: v.cross(w), np.cross, (V, W)),
    "diag_embed": (lambda v: v.diag_embed(1), lambda v: np.stack([np.diag(row, 1) for row in v]), (V,)),
    "rot90": (lambda c: c.rot90(1, (1, 2)) + c.rot90(-3, dims=(1, 2)), lambda c: 2 * np.rot90(c, 1, (1, 2)), (CUBE,)),
    "rot90 thrice": (lambda c: c.rot90(3), lambda c: np.rot90(c, 3), (CUBE,)),
    "unflatten": (lambda c: c.unflatten(-1, (2, -1)), lambda c: c.reshape(2, 3, 2, 2), (CUBE,)),
    "frac and exp2": (lambda a: a.frac() + a.exp2(), lambda a: a - np.trunc(a) + 2**a, (A,)),
    "logit": (lambda a: a.sigmoid().logit(), lambda a: a, (A,)),
    "degrees": (lambda a: a.rad2deg() - a.deg2rad(), lambda a: np.rad2deg(a) - np.deg2rad(a), (A,)),
    "hstack, vstack": (lambda v, w: sg.vstack([sg.hstack([v, w])[0], v.repeat(1, 2)]), lambda v, w: np.vstack([np.hstack([v, w])[0], np.tile(v, 2)]), (V, W)),
    "meshgrid of a list": (lambda v, w: sg.meshgrid([v[0], w[1]])[1], lambda v, w: np.meshgrid(v[0], w[1], indexing="ij")[1], (V, W)),
    "grid_sample beyond the border": (  # the numbers are PyTorch's
        lambda p, g: p.grid_sample(g, "bicubic", "border", False), lambda p, g: np.array([[[[-0.5625, 108.5, 226.01953, 199.375]]]], np.float32),
        (SQUARES, np.array([[[[-1.25, -1.125], [-1.25, 0.5], [1.125, 1.25], [0.25, 1.125]]]], np.float32)),
    ),
    "NumPy's sum": (np.sum, np.sum, (A,)),
    "NumPy's mean and std": (lambda a: np.mean(a, axis=1) + np.std(a, axis=1), lambda a: np.mean(a, axis=1) + np.std(a, axis=1), (A,)),
}  # fmt: skip


@EAGER
@pytest.mark.parametrize("name", METHODS)
def test_method(name: str, on: sg.Device) -> None:
    check_operation(METHODS[name], on)


FAULTS: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "max of several axes": (lambda: sg.tensor(A).max((0, 1)), sg.InputError, "use amax"),
    "max of nothing": (lambda: sg.zeros(0).max(), ValueError, "is empty"),
    "amin along an empty axis": (lambda: sg.zeros(3, 0).amin(1), ValueError, "axis 1 of \\(3, 0\\) is empty"),
    "argmax of nothing": (lambda: sg.zeros(2, 0).argmax(), ValueError, "is empty"),
    "dot of stacks": (lambda: sg.tensor(CUBE).dot(CUBE), sg.ShapeError, "use matmul"),
    "outer of matrices": (lambda: sg.tensor(A).outer(A), sg.ShapeError, "two vectors"),
    "reshape by a letter": (lambda: sg.tensor(A).reshape("a"), sg.InputError, r"expected integers, as in reshape\(2, 3\)"),
    "expand by floats": (lambda: sg.tensor(A).expand(2.0, 3.0), sg.InputError, "expected integers"),
    "randint without a shape": (lambda: sg.randint(3), sg.InputError, "got no shape"),
    "an array of lists": (lambda: sg.from_numpy([1]), sg.InputError, "use tensor"),  # pyright: ignore[reportArgumentType]
}  # fmt: skip


@pytest.mark.parametrize("name", FAULTS)
def test_what_is_ambiguous_or_wrong_is_refused(name: str) -> None:
    operation, kind, text = FAULTS[name]
    with pytest.raises(kind, match=text):
        operation()


def test_the_extreme_of_no_rows_is_no_error_where_there_are_none() -> None:
    assert sg.zeros((0, 3)).amax(1).shape == (0,)
    assert sg.zeros(0).logsumexp().item() == -np.inf
    assert not sg.zeros(0).any()


def test_equal_and_allclose_are_bools() -> None:
    x = sg.tensor(A)
    assert x.equal(A) is True
    assert x.equal(A[:2]) is False
    assert sg.equal(x, x + 1) is False
    assert x.allclose(A + 1e-7) is True
    assert sg.allclose(x, x + 1) is False
    assert sg.isclose(x, x).numpy().all()


def test_size_is_a_number_and_may_be_called() -> None:
    x = sg.tensor(CUBE)
    assert x.size == 24
    assert x.numel() == 24
    assert x.size() == (2, 3, 4)
    assert x.size(-1) == 4
    assert (sg.tensor([True]) * x.size).dtype == "int64"
    with pytest.raises(sg.ShapeError, match="out of range"):
        x.size(3)


def test_functions_make_what_pytorchs_make() -> None:
    assert sg.zeros(2, 3).shape == sg.ones((2, 3)).shape == sg.empty(size=(2, 3)).shape == (2, 3)
    assert (sg.zeros(4).shape, sg.ones(()).shape, sg.zeros([2, 0]).shape) == ((4,), (), (2, 0))
    assert sg.zeros((2, 3), "int32").dtype == sg.ones(2, 3, dtype="int32").dtype == "int32"
    assert sg.from_numpy(np.ones(2)).dtype == "float64"
    x = sg.as_tensor([1, 2])
    assert sg.asarray(x) is x
    sg.manual_seed(1)
    drawn = [
        sg.rand(2, 3),
        sg.randn((2, 3)),
        sg.randint(0, 5, size=(2, 3)),
        sg.rand_like(sg.tensor(V)),
        sg.randint(5, (2, 3)),
    ]
    assert {y.shape for y in drawn} == {(2, 3)}
    assert int(drawn[4].amax()) < 5
    sg.manual_seed(1)
    assert sg.rand(2, 3).equal(drawn[0])
    assert sorted(sg.randperm(4).tolist()) == [0, 1, 2, 3]


SPECIAL = np.array(
    [0.0, -0.0, 1.0, -1.0, 0.3, -0.3, 1e-6, -1e-6, 2.5, -2.5, 80.0, -80.0, np.inf, -np.inf, np.nan], np.float32
)
LOGARITHMS: dict[str, np.ufunc] = {
    "isfinite": np.isfinite, "trunc": np.trunc, "log2": np.log2, "log10": np.log10, "log1p": np.log1p, "expm1": np.expm1,
}  # fmt: skip


@pytest.mark.parametrize("name", LOGARITHMS)
def test_functions_composed_of_rows_are_exact_and_can_be_traced(name: str, on: sg.Device) -> None:
    for kind, close in (("float32", 2e-6), ("float16", 2e-3)):
        array = SPECIAL.astype(kind)
        with np.errstate(all="ignore"):
            want = LOGARITHMS[name](array)
        got = getattr(sg.tensor(array, device=on), name)()
        assert got.dtype == want.dtype
        np.testing.assert_allclose(got.numpy(), want, rtol=close)
    program = sg.Model.of(getattr(sg.Tensor, name), {"x": ("N",)}, on.name)
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(program(SPECIAL), LOGARITHMS[name](SPECIAL), rtol=2e-6)
