"""What cannot be computed is a SingeError that says what to do, and not an error of NumPy or of Python."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import singe as sg

X = sg.ones(3, 3)
ANY: Any = X
LINALG = sg.array_api.linalg
NN: Any = sg.nn

FAULTS: dict[str, tuple[Callable[[], Any], str]] = {
    "cholesky": (lambda: LINALG.cholesky(-sg.eye(3)), r"cholesky of \(3, 3\): .*; expected symmetric matrices"),
    "inv": (lambda: LINALG.inv(X), r"inv of \(3, 3\): Singular matrix; .* sg.pinverse\(x\)"),
    "solve": (lambda: LINALG.solve(X, X), r"solve of \(3, 3\) and \(3, 3\): Singular matrix"),
    "solve on two devices": (
        lambda: LINALG.solve(X, X.to(sg.Fusion("numpy"))),
        "a value of .* meets one of .*; move one of them",
    ),
    "not square": (lambda: LINALG.inv(sg.ones(2, 3)), "expected square matrices"),
    "eye": (lambda: sg.eye(-1), r"eye: the shape is \(-1, -1\), expected no negative dimensions"),
    "linspace": (lambda: sg.linspace(0, 1, -1), "linspace: the shape is"),
    "logspace": (lambda: sg.logspace(0, 1, -1), "logspace: the shape is"),
    "clamp": (lambda: ANY.clamp("a"), "clamp: got 'a', a str, as min, expected a Tensor"),
    "gather": (lambda: ANY.gather(0, 1), "gather: got the index 1, expected a tensor of integers"),
    "sum": (lambda: ANY.sum("a"), "the axis is 'a'"),
    "load": (lambda: sg.load(3), "load: got 3, expected a path, a URL, bytes or a ModelProto"),  # pyright: ignore[reportArgumentType]
    "examples": (
        lambda: sg.compile(sg.Model.of(lambda x: x, {"x": (2,)}, "numpy"), X, X),
        "got 2 examples, expected one for each input: x",
    ),
    "cat": (lambda: sg.cat(ANY), r"concat: got one tensor, of \(3, 3\), expected several in a list"),
    "in": (lambda: "a" in ANY, "'a'"),
    "repeat_interleave": (
        lambda: ANY.repeat_interleave("a"),
        "got the repeats 'a', expected an integer, or one for each",
    ),
    "quantile": (lambda: ANY.quantile("a"), "q is 'a', expected a number from 0 to 1"),
    "nanquantile": (lambda: ANY.nanquantile("a"), "nanquantile: q is 'a', expected a number"),
    "one_hot": (lambda: sg.arange(3).one_hot("a"), "num_classes is 'a', expected an integer"),  # pyright: ignore[reportArgumentType]
    "histc": (lambda: ANY.histc("a"), "the number of bins is 'a', expected an integer"),
    "max_pool1d": (lambda: ANY.reshape(1, 3, 3).max_pool1d("a"), "kernel_size: got 'a', expected one number or 1"),
    "tril_indices": (lambda: sg.tril_indices("a", 2), "row is 'a', expected an integer"),  # pyright: ignore[reportArgumentType]
    "text in linspace": (lambda: sg.linspace("a", 1, 2), "start is 'a', expected a number"),  # pyright: ignore[reportArgumentType]
    "hann_window": (lambda: sg.hann_window("a"), "window_length is 'a', expected an integer"),  # pyright: ignore[reportArgumentType]
    "MaxPool2d": (lambda: NN.MaxPool2d("a"), "kernel_size: got 'a', expected one number or 2"),
    "MaxPool1d": (lambda: NN.MaxPool1d([1, 2]), r"kernel_size: got \[1, 2\], expected one number or 1"),
    "AvgPool2d": (lambda: NN.AvgPool2d(2, (1, "a")), "stride: an element is 'a', expected an integer"),
    "LPPool2d": (lambda: NN.LPPool2d(2, "a"), "kernel_size: got 'a'"),
    "AdaptiveAvgPool2d": (lambda: NN.AdaptiveAvgPool2d("a"), "output_size: got 'a', expected one number or 2"),
    "Dropout": (lambda: NN.Dropout("a"), "Dropout: p is 'a', expected a number"),
    "GroupNorm": (lambda: NN.GroupNorm("a", 2), "num_groups is 'a', expected an integer"),
    "an integer beyond int64": (
        lambda: sg.arange(3) + 2**70,
        "1180591620717411303424 does not fit int64: .*cast the tensor first",
    ),
    "an integer beyond a bool": (lambda: (X > 0) + 2**70, "1180591620717411303424 does not fit int64"),
    "an integer beyond floats": (lambda: X + 10**400, "an integer of 1329 bits does not fit float32"),
    "an integer that has no digits": (lambda: sg.arange(3) + 10**5000, "an integer of 16610 bits does not fit int64"),
    "elements beyond int64": (lambda: sg.tensor([1, 2**70]), "1180591620717411303424 does not fit int64"),
    "linspace of an integer beyond floats": (
        lambda: sg.linspace(0, 10**400, 3),
        "end is an integer of 1329 bits, expected a number",
    ),
    "arange to infinity": (lambda: sg.arange(float("inf")), "arange: got 0 to inf by 1, expected finite numbers"),
    "arange to NaN": (lambda: sg.arange(0, float("nan")), "arange: got 0 to nan by 1"),
    "arange of too many": (lambda: sg.arange(10**12), "at most 2147483647 elements"),
    "fft of nothing": (lambda: sg.fft.fft(sg.zeros(2, 0)), r"fft of float32\(2, 0\), axis=-1: .*at least one element"),
    "irfftn of nothing": (lambda: sg.fft.irfftn(sg.zeros(2, 0)), r"irfftn of float32\(2, 0\): .*at least one element"),
    "fft of an axis that is missing": (
        lambda: sg.fft.fft(X, dim=2),
        r"fft of float32\(3, 3\), axis=2.*expected axes of the tensor",
    ),
    "fftfreq": (lambda: sg.fft.fftfreq(0), "fftfreq: got 0 samples at distances 1.0, expected at least 1"),
    "bincount of a negative": (
        lambda: sg.tensor([-1, 2]).bincount(),
        "bincount: got the element -1, expected integers from 0",
    ),
    "bincount of a large number": (lambda: sg.tensor([2**40]).bincount(), "bincount: got the element 1099511627776"),
    "bincount of a negative length": (
        lambda: sg.arange(2).bincount(minlength=-1),
        "minlength is -1, expected 0 or more",
    ),
    "bincount of too few weights": (lambda: sg.arange(2).bincount([1.0]), r"weights of \(1,\), expected \(2,\)"),
    "MultiheadAttention": (lambda: NN.MultiheadAttention("a", 2), "embed_dim is 'a', expected an integer"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_errors_are_singes_and_say_what_to_do(fault: str) -> None:
    call, message = FAULTS[fault]
    with pytest.raises(sg.SingeError, match=message):
        call()


def test_a_file_without_a_graph_is_asked_about_once() -> None:
    with pytest.raises(sg.FormatError, match=r"there is no graph; is this an ONNX model\?$"):
        sg.load(b"")


def test_a_tensor_contains_what_any_element_equals(on: sg.Device) -> None:
    x = sg.tensor([[1.0, 2.0], [3.0, 4.0]], device=on)
    assert 3.0 in x
    assert 5.0 not in x
    assert sg.tensor([7.0, 4.0], device=on) in x


def test_nothing_is_answered_as_pytorch_answers_it(on: sg.Device) -> None:
    nothing, x = sg.zeros(0, device=on), sg.ones(3, device=on)
    assert np.isnan(nothing.nanmedian().item())
    for function in (nothing.nanmedian, lambda axis: nothing.nanquantile(0.5, axis)):
        with pytest.raises(sg.ShapeError, match=r"axis 0 of \(0,\) has no elements, expected some"):
            function(0)
    values, places, counts = nothing.unique_consecutive(return_inverse=True, return_counts=True)
    assert values.shape == places.shape == counts.shape == (0,)
    assert sg.zeros(0, 3, device=on).unique_consecutive(dim=0).shape == (0, 3)
    assert sg.zeros(0, 4, 3, 3, device=on).local_response_norm(2).shape == (0, 4, 3, 3)
    np.testing.assert_array_equal(x.masked_scatter(x > 1, nothing).numpy(), x.numpy())
    with pytest.raises(sg.ShapeError, match=r"masked_scatter: the source of \(0,\) has no elements"):
        x.masked_scatter(x > 0, nothing)


def test_integers_beyond_64_bits_meet_floats_as_floats(on: sg.Device) -> None:
    x = sg.tensor([1.0, 2.0], device=on)
    np.testing.assert_array_equal((x * 2**70).numpy(), np.array([2**70, 2**71], np.float32))
    np.testing.assert_array_equal((x < 2**70).numpy(), [True, True])
    np.testing.assert_array_equal(sg.full((2,), -(2**70), sg.float32, on).numpy(), np.full(2, -(2.0**70), np.float32))


def test_round_and_divmod_are_those_of_numpy(on: sg.Device) -> None:
    x = sg.tensor([-2.5, 1.25, 7.0], device=on)
    np.testing.assert_array_equal(round(x).numpy(), np.round(x.numpy()))
    np.testing.assert_allclose(round(x, 1).numpy(), np.round(x.numpy(), 1), rtol=1e-6)
    for got, want in zip(divmod(x, 2), divmod(x.numpy(), 2), strict=True):
        np.testing.assert_allclose(got.numpy(), want)
    for got, want in zip(divmod(9.0, x), divmod(9.0, x.numpy()), strict=True):
        np.testing.assert_allclose(got.numpy(), want)


def test_an_array_is_the_left_of_a_tensor() -> None:
    x = sg.tensor(np.full((2, 3), 3, np.float32))
    quotient, rest = divmod(np.full((2, 3), 7, np.float32), x)
    np.testing.assert_array_equal(quotient.numpy(), np.full((2, 3), 2))
    np.testing.assert_array_equal(rest.numpy(), np.ones((2, 3)))
    total = np.ones((2, 3), np.float32)
    total += x  # pyright: ignore[reportOperatorIssue]
    np.testing.assert_array_equal(np.asarray(total), np.full((2, 3), 4))


def test_numbers_of_numpy_are_sizes_axes_and_shapes() -> None:
    x = sg.tensor(np.ones((2, 3), np.float32))
    pieces = x.split(np.int64(2), 1)  # pyright: ignore[reportCallIssue, reportArgumentType]
    assert [part.shape for part in pieces] == [(2, 2), (2, 1)]
    assert sg.linalg.norm(x, 2, np.int64(0)).shape == (3,)
    assert sg.nn.FractionalMaxPool2d(1, output_ratio=np.float32(0.5)).output_ratio == (0.5, 0.5)  # pyright: ignore[reportArgumentType]
    one, zero = np.int64(1), np.int64(0)
    assert x.roll(one, zero).shape == x.roll(one).shape == (2, 3)
    assert x.movedim(zero, one).shape == (3, 2)
    assert [part.shape for part in x.tensor_split(np.int64(2), one)] == [(2, 2), (2, 1)]
    assert sg.tensor([1.0]).polygamma(one).item() == sg.tensor([1.0]).polygamma(1).item()
    assert sg.tensordot(x, x, (1, 1)).shape == (2, 2)
    assert sg.tensordot(x, x.T, one).shape == (2, 2)
    assert sg.interpolate(x.reshape(1, 2, 3), scale_factor=np.float32(2)).shape == (1, 2, 6)
    model = sg.Model.of(lambda x: x + 1, {"x": ("N", 3)}, "numpy")
    assert model.program({"x": np.array([2, 3])}) is model.program({"x": (2, 3)})  # pyright: ignore[reportArgumentType]
