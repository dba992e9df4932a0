"""More of PyTorch's methods and functions, beside NumPy, on every device: statistics, special functions, pieces and products."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from beside_numpy import Operation, check_operation
from devices import EAGER

import singe as sg
from singe.errors import DTypeError, InputError, ShapeError

RNG = np.random.default_rng(11)
A = RNG.normal(size=(4, 5)).astype(np.float32)
B = RNG.normal(size=(4, 5)).astype(np.float32)
I = RNG.integers(-3, 4, (4, 5))
J = RNG.integers(0, 5, (4, 5))
V = np.sort(RNG.normal(size=9)).astype(np.float32)
HOLES = np.where(RNG.random((4, 5)) < 0.3, np.float32(np.nan), A)
ENDS = np.array([np.inf, -np.inf, np.nan, 0.0, -0.0, 1.0, -2.0], np.float32)
NUMBERS = np.array([1.0, 2.0, np.nan, np.nan, 3.0, -1.0, 0.5], np.float32)
CUBE = np.arange(24, dtype=np.float32).reshape(2, 3, 4)


def last_place(x: np.ndarray, found: np.ndarray) -> np.ndarray:
    """The last index at which the running extreme along axis 1 was met."""
    return np.maximum.accumulate(np.where(x == found, np.arange(x.shape[1]), 0), 1)


def heaviside(x: np.ndarray) -> np.ndarray:
    return np.heaviside(x, np.float32(0.5))


METHODS: dict[str, Operation] = {
    "atan2": (lambda a, b: a.atan2(b), np.arctan2, (A, B)),
    "atan2 at the ends": (lambda a: a.unsqueeze(1).atan2(a), lambda a: np.arctan2(a[:, None], a), (ENDS,)),
    "hypot and logaddexp": (lambda a, b: a.hypot(b) + a.logaddexp(b), lambda a, b: np.hypot(a, b) + np.logaddexp(a, b), (A, B)),
    "logaddexp2": (lambda a, b: a.logaddexp2(b), np.logaddexp2, (A, B)),
    "copysign": (lambda a, b: a.copysign(b) * b.signbit(), lambda a, b: np.copysign(a, b) * np.signbit(b), (A, B)),
    "nextafter": (lambda a, b: a.nextafter(b), np.nextafter, (A, B)),
    "whole quotients": (lambda i: i // 2 + i // -3, lambda i: i // 2 + i // -3, (I,)),
    "integer powers": (lambda i, j: i.pow(j), np.power, (I, J)),
    "fmax and fmin": (lambda a, b: a.fmax(b) - a.fmin(b), lambda a, b: np.fmax(a, b) - np.fmin(a, b), (ENDS[1:], NUMBERS[1:])),
    "fmax with a number": (lambda a: a.fmax(1.5), lambda a: np.fmax(a, np.float32(1.5)), (HOLES,)),
    "heaviside": (lambda a: a.heaviside(0.5), heaviside, (ENDS,)),
    "xlogy": (lambda i, a: i.cast("float32").xlogy(a.abs()), lambda i, a: i * np.log(np.abs(a)), (I, A)),
    "sinc": (lambda a: (a * (a > 0)).sinc(), lambda a: np.sinc(a * (a > 0)), (A,)),
    "ldexp": (lambda a, i: a.ldexp(i), np.ldexp, (A, I)),
    "hardshrink": (lambda a: a.hardshrink(0.3), lambda a: np.where(np.abs(a) > 0.3, a, 0), (A,)),
    "infinities": (lambda a: a.isposinf() | a.isneginf(), np.isinf, (ENDS,)),
    "nansum": (lambda a: a.nansum(0), lambda a: np.nansum(a, 0), (HOLES,)),
    "nanmean": (lambda a: a.nanmean(1, keepdim=True), lambda a: np.nanmean(a, 1, keepdims=True), (HOLES,)),
    "quantile": (lambda a: a.quantile(0.3, dim=1), lambda a: np.quantile(a, 0.3, 1).astype(a.dtype), (A,)),
    "quantiles of all": (lambda a: a.quantile([0.0, 0.25, 1.0]), lambda a: np.quantile(a, [0, 0.25, 1]).astype(a.dtype), (A,)),
    "nearest quantile": (lambda a: a.quantile(0.6, 0, keepdim=True, interpolation="nearest"),
                         lambda a: np.quantile(a, 0.6, 0, keepdims=True, method="nearest"), (A,)),
    "quantile beside NaN": (lambda a: a.quantile(0.5, 0), lambda a: np.quantile(a, 0.5, 0).astype(a.dtype), (HOLES,)),
    "cummax": (lambda i: i.cummax(1).values, lambda i: np.maximum.accumulate(i, 1), (I,)),
    "places of cummax": (lambda i: i.cummax(dim=1).indices, lambda i: last_place(i, np.maximum.accumulate(i, 1)), (I,)),
    "cummin": (lambda a: a.cummin(0).values, lambda a: np.minimum.accumulate(a, 0), (HOLES,)),
    "places of cummin": (lambda i: i.cummin(1).indices, lambda i: last_place(i, np.minimum.accumulate(i, 1)), (I,)),
    "histc": (lambda a: a.histc(6, -1, 1), lambda a: np.histogram(a, 6, (-1, 1))[0].astype(np.float32), (A,)),
    "histc of all": (lambda a: a.histc(7), lambda a: np.histogram(a, 7)[0].astype(np.float32), (A,)),
    "cov": (lambda a: a.cov() + a.cov(correction=0), lambda a: np.cov(a) + np.cov(a, ddof=0), (A,)),
    "corrcoef": (lambda a: a.corrcoef(), np.corrcoef, (A,)),
    "searchsorted": (lambda v, a: v.searchsorted(a) * 100 + v.searchsorted(a, right=True),
                     lambda v, a: v.searchsorted(a) * 100 + v.searchsorted(a, "right"), (V, np.concatenate([A.ravel(), V, ENDS]))),
    "bucketize": (lambda a: a.bucketize([-1.0, 0.0, 0.5]), lambda a: np.digitize(a, [-1, 0, 0.5], right=True), (A,)),
    "isin": (lambda i: i.isin(sg.tensor([1, 3], device=i.device)), lambda i: np.isin(i, [1, 3]), (I,)),
    "argwhere and msort": (lambda i: i.msort().argwhere(), lambda i: np.argwhere(np.sort(i, 0)), (I,)),
    "kron": (lambda a, i: a.kron(i[0]), lambda a, i: np.kron(a, i[0]).astype(np.float32), (A, I.astype(np.float32))),
    "inner and vdot": (lambda a, b: a.inner(b) + a[0].vdot(b[1]), lambda a, b: np.inner(a, b) + np.vdot(a[0], b[1]), (A, B)),
    "dist": (lambda a, b: a.dist(b, 1), lambda a, b: np.abs(a - b).sum(), (A, B)),
    "tensor_split": (lambda c: sg.cat(sg.tensor_split(c, 3, dim=2)[::-1], 2), lambda c: np.concatenate(np.array_split(c, 3, 2)[::-1], 2), (CUBE,)),
    "tensor_split at places": (lambda c: sg.cat(c.tensor_split([1, 3], 2)[::-1], 2), lambda c: np.concatenate(np.split(c, [1, 3], 2)[::-1], 2), (CUBE,)),
    "new tensors": (lambda a: a.new_zeros(2, 3) + a.new_ones((2, 3)) + a.new_full((3,), 2) + a.new_tensor([1, 2, 3]),
                    lambda a: np.array([[4, 5, 6]] * 2, np.float32), (A,)),
    "tensordot": (lambda c: sg.tensordot(c, c, dims=([1, 2], [1, 2])) + sg.tensordot(c[0], c.permute(1, 2, 0)),
                  lambda c: np.tensordot(c, c, ([1, 2], [1, 2])) + np.tensordot(c[0], c.transpose(1, 2, 0)), (CUBE,)),
    "columns": (lambda a: sg.dstack([sg.column_stack([a[0], a[1]]), sg.column_stack([a[2], a[3]])]),
                lambda a: np.dstack([np.column_stack([a[0], a[1]]), np.column_stack([a[2], a[3]])]), (A,)),
    "at least": (lambda a: sg.atleast_3d(a) + sg.atleast_2d(a[0])[0, 0] + sg.atleast_1d(a[0, 0]),
                 lambda a: np.atleast_3d(a) + 2 * a[0, 0], (A,)),
    "block_diag": (lambda a, b: sg.block_diag(a, b[0])[3:],
                   lambda a, b: np.block([[a, 0 * a], [0 * b[:1], b[:1]]])[3:], (A, B)),
    "cartesian_prod": (lambda a, b: sg.cartesian_prod(a[0], b[0]), lambda a, b: np.stack(np.meshgrid(a[0], b[0], indexing="ij"), -1).reshape(-1, 2), (A, B)),
    "broadcast_tensors": (lambda a: sg.broadcast_tensors(a[0], a)[0], lambda a: np.broadcast_to(a[0], a.shape), (A,)),
    "trapezoid": (lambda a: sg.trapezoid(a, dx=0.5, axis=0), lambda a: np.trapezoid(a, dx=0.5, axis=0), (A,)),
    "std_mean": (lambda a: sg.std_mean(a, 0)[0] + sg.var_mean(a, 0)[1], lambda a: a.std(0, ddof=1) + a.mean(0), (A,)),
}  # fmt: skip


@EAGER
@pytest.mark.parametrize("name", METHODS)
def test_method(name: str, on: sg.Device) -> None:
    check_operation(METHODS[name], on)


def test_functions_of_shapes_and_indices() -> None:
    assert sg.broadcast_shapes((3, 1), (4,), 1) == (3, 4)
    np.testing.assert_array_equal(sg.tril_indices(3, 4, 1).numpy(), np.stack(np.tril_indices(3, 1, 4)))
    np.testing.assert_array_equal(sg.triu_indices(3, 4).numpy(), np.stack(np.triu_indices(3, 0, 4)))
    assert sg.is_tensor(sg.zeros(1))
    assert not sg.is_tensor(1)


def test_dtypes_combine_as_operators_say() -> None:
    assert sg.result_type(sg.zeros(1), sg.zeros(1, dtype="int64")) == sg.float32
    assert sg.result_type(sg.arange(3), 2.5) == sg.float32
    assert sg.promote_types("uint8", sg.int8) == sg.int16
    assert (sg.long, sg.bool, sg.float, sg.half) == (sg.int64, sg.bool_, sg.float32, sg.float16)
    kinds = ("bool", "uint8", "int32", "float32", "complex64")
    found = [[sg.can_cast(a, b) for b in kinds] for a in kinds]
    np.testing.assert_array_equal(found, np.arange(5)[:, None].clip(max=4) <= np.array([0, 2, 2, 3, 4]))


def test_arguments_that_are_missing_say_what_to_write() -> None:
    x = sg.tensor(A)
    calls: dict[str, Callable[[], Any]] = {
        "out": lambda: sg.exp(x, out=x), "requires_grad": lambda: sg.randn(2, requires_grad=True), "generator": lambda: sg.rand(2, generator=1),
    }  # fmt: skip
    for name, call in calls.items():
        with pytest.raises(InputError, match=f"there is no argument {name}=; in its place: "):
            call()


def test_draws_of_poisson_and_of_integers_like_others() -> None:
    sg.manual_seed(4)
    drawn = sg.poisson(sg.full((2000,), 3.0))
    assert drawn.dtype == "float32"
    np.testing.assert_allclose([drawn.mean().item(), drawn.var().item()], [3, 3], atol=0.3)
    like = sg.randint_like(sg.zeros((2, 3), dtype="int32"), 4, 6)
    assert (like.shape, like.dtype) == ((2, 3), "int32")
    assert set(like.flatten().tolist()) <= {4, 5}


def test_a_search_and_a_filled_tensor_are_traced() -> None:
    """They run on the device: nothing waits for elements, and sizes may be open."""

    def found(x: sg.Tensor) -> sg.Tensor:
        edges = x.new_tensor([0.0, 1.0, 2.0])
        return sg.array_api.searchsorted(edges, x, side="right") + x.new_full(x.shape, x.shape[0], "int64")

    model = sg.Model.of(found, {"x": ("N",)}, "wasm")
    x = np.array([-1, 0, 0.5, 2, np.nan], np.float32)
    np.testing.assert_array_equal(model(x), np.searchsorted([0, 1, 2], x, "right") + 5)


def test_numbers_beside_a_search_have_the_tensors_dtype() -> None:
    places = sg.tensor([0.1, 0.2], "float64")
    assert places.searchsorted([0.1, 0.2]).tolist() == [0, 1]
    assert places.bucketize([0.1, 0.2]).tolist() == [0, 1]


def test_draws_follow_the_weights(on: sg.Device) -> None:
    sg.manual_seed(3)
    weights = sg.tensor([[1.0, 0.0, 3.0], [0.0, 2.0, 2.0]], device=on)
    drawn = sg.multinomial(weights, 4000, replacement=True).numpy()
    shares = np.stack([np.bincount(row, minlength=3) / 4000 for row in drawn])
    np.testing.assert_allclose(shares, [[0.25, 0, 0.75], [0, 0.5, 0.5]], atol=0.04)
    assert {tuple(sorted(row)) for row in sg.multinomial(weights, 2).tolist()} == {(0, 2), (1, 2)}


@EAGER
def test_normal_and_bernoulli_draw_by_their_arguments(on: sg.Device) -> None:
    sg.manual_seed(4)
    mean, std = sg.tensor([[0.0], [10.0]], device=on), sg.tensor([0.0] * 50 + [2.0] * 5000, device=on)
    drawn = sg.normal(mean, std)
    assert drawn.shape == (2, 5050)
    assert drawn.device is on
    y = drawn.numpy()
    np.testing.assert_array_equal(y[:, :50], [[0] * 50, [10] * 50])
    np.testing.assert_allclose(y[:, 50:].mean(1), [0, 10], atol=0.15)
    np.testing.assert_allclose(y[:, 50:].std(1), 2, atol=0.1)
    for draw in (
        lambda: sg.normal(3, 2, (4000,), device=on),
        lambda: sg.normal(mean=3.0, std=2.0, size=(4000,), device=on),  # pyright: ignore[reportCallIssue]
        lambda: sg.normal(sg.full((4000,), 3.0, device=on), 2), lambda: sg.normal(3, std=sg.full((4000,), 2.0, device=on)),
    ):  # fmt: skip
        y = draw().numpy()
        assert abs(y.mean() - 3) < 0.2
        assert abs(y.std() - 2) < 0.15
    assert sg.normal(sg.zeros(3, dtype=sg.float16)).dtype is sg.float16
    shares = sg.tensor([0.0, 0.25, 1.0], device=on).expand(4000, 3)
    for y in (sg.bernoulli(shares), shares.bernoulli()):
        assert {*np.unique(y.numpy())} == {0, 1}
        np.testing.assert_allclose(y.numpy().mean(0), [0, 0.25, 1], atol=0.03)
    y = sg.zeros((4000,), dtype=sg.int64, device=on).bernoulli(0.75)
    assert y.dtype is sg.int64
    assert abs(y.numpy().mean() - 0.75) < 0.03


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda x: x.quantile(1.5), InputError),
        (lambda x: x[:0].quantile(0.5), ShapeError),
        (lambda x: x.histc(0), InputError),
        (lambda x: x.tensor_split(0), ShapeError),
        (lambda x: sg.multinomial(x[0].abs(), 9), InputError),
        (lambda x: sg.normal(0, 1), InputError),
        (lambda x: sg.normal(0, -1, (2,)), InputError),
        (lambda x: sg.normal(x, 1, (2,)), InputError),
        (lambda x: sg.normal(None, 1, (2,)), InputError),  # pyright: ignore[reportArgumentType]
        (lambda x: sg.normal(0, 1, (2,), dtype="int64"), DTypeError),
        (lambda x: x.long().bernoulli(), DTypeError),
        (lambda x: sg.block_diag(x.unsqueeze(0)), InputError),
        (lambda x: sg.tensordot(x, x, ([0, 1], [0])), ShapeError),
        (lambda x: sg.tensordot(x.reshape(2, 10), x.reshape(10, 2), ([0, 1], [0, 1])), ShapeError),
        (lambda x: sg.tensordot(x[0], x[0], 2), ShapeError),
    ],
)
def test_what_makes_no_sense_is_refused(call: Callable[[sg.Tensor], Any], error: type[Exception]) -> None:
    with pytest.raises(error):
        call(sg.tensor(A))
