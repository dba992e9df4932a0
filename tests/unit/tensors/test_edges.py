"""Values and gradients where formulas have 0 · ∞: those that PyTorch gives."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np
import pytest

import singe as sg
from singe import nn
from singe.errors import InputError, OutOfRange

GRADIENTS: Final[dict[str, tuple[Callable[[Any], Any], list[float], list[float]]]] = {
    "expm1": (lambda x: x.expm1(), [-50, 0, 0.5, 20, 50], np.exp([-50, 0, 0.5, 20, 50]).tolist()),
    "pow 1.5": (lambda x: x**1.5, [0, 1, 4], [0, 1.5, 3]),
    "norm": (lambda x: x.norm(), [0, 0], [0, 0]),
    "norm 3": (lambda x: x.norm(3), [0, 0], [0, 0]),
    "norm 0.5": (lambda x: x.norm(0.5), [0, 4], [0, 1]),
    "cdist 3": (lambda x: x.reshape(1, 2).cdist(x.reshape(1, 2), 3), [1, 1], [0, 0]),
    "renorm": (lambda x: x.reshape(1, 2).renorm(3, 0, 1), [0, 0], [1, 1]),
    "std": (lambda x: x.std(), [1, 1, 1], [0, 0, 0]),
    "normalize": (lambda x: x.reshape(1, 2).normalize(), [0, 0], [1e12, 1e12]),
    "cosine_similarity": (lambda x: x.cosine_similarity(sg.ones(2, device=x.device), 0), [0, 0], [1e8 / math.sqrt(2)] * 2),
    "xlogy": (lambda x: x.xlogy(sg.tensor([2, 0, 3, math.inf], device=x.device)), [0, 0, 2, 0], [math.log(2), 0, math.log(3), 0]),
    "acosh": (lambda x: x.acosh(), [1, 2], [math.inf, 1 / math.sqrt(3)]),
}  # fmt: skip
"""A function, a place, and the gradient of the sum there."""


@pytest.mark.parametrize("name", GRADIENTS)
@pytest.mark.parametrize("device", ["numpy", "wasm"])
def test_gradients_are_finite_where_they_are(name: str, device: str) -> None:
    if device == "wasm":
        pytest.importorskip("wasmtime")
    function, place, wanted = GRADIENTS[name]
    x = sg.tensor(np.float32(place), device=device)
    found = sg.grad(lambda x: function(x).sum())(x)[x]
    np.testing.assert_allclose(found.numpy(), wanted, rtol=1e-4)


def test_what_numpy_computes_has_no_gradient_and_says_so() -> None:
    """It was left out of the gradient of a sum in silence otherwise."""
    x = sg.tensor([[2.0, 1.0], [0.0, 3.0]], device=sg.Autodiff("numpy"), requires_grad=True)
    for function in (sg.linalg.det, sg.linalg.inv, lambda m: m.cast("float64").log2(), lambda m: sg.fft.rfft(m).abs()):
        with pytest.raises(InputError, match=r"has no gradient; detach\(\)"):
            function(x)
        function(x.detach())


def test_integrals_along_an_axis_take_the_places_of_that_axis() -> None:
    rng = np.random.default_rng(0)
    y, x = rng.normal(size=(3, 3)).astype(np.float32), np.cumsum(rng.random((3, 3)), 0).astype(np.float32)
    wanted = ((y[1:] + y[:-1]) / 2 * np.diff(x, axis=0)).cumsum(0)
    np.testing.assert_allclose(sg.trapezoid(sg.tensor(y), sg.tensor(x), dim=0).numpy(), wanted[-1], rtol=1e-5)
    np.testing.assert_allclose(sg.tensor(y).cumulative_trapezoid(sg.tensor(x), dim=0).numpy(), wanted, rtol=1e-5)
    several = sg.tensor(np.stack([y, y]))  # places of fewer axes broadcast
    for values in sg.trapezoid(several, sg.tensor(x), dim=1).numpy():
        np.testing.assert_allclose(values, wanted[-1], rtol=1e-5)


def test_lengths_may_be_numbers_of_numpy() -> None:
    three = np.int64(3)
    assert sg.broadcast_shapes(three, (2, 1)) == (2, 3)
    assert [int(i) for i in sg.unravel_index(sg.tensor(2), three)] == [2]
    assert sg.tensor([1.0, 2.0]).vander(three).shape == (2, 3)
    with pytest.raises(InputError, match="got -1 columns"):
        sg.tensor([1.0, 2.0]).vander(-1)
    assert sg.fft.fftshift(sg.arange(4), np.int64(0)).tolist() == [2, 3, 0, 1]


def test_distances_of_every_order() -> None:
    a, b = sg.tensor([[1.0, 2.0]]), sg.tensor([[4.0, -2.0]])
    for p, wanted in ((math.inf, 4), (0.0, 2), (1, 7), (2, 5), (3, 91 ** (1 / 3))):
        np.testing.assert_allclose(sg.pairwise_distance(a, b, p=p).numpy(), [wanted], rtol=1e-5)
    np.testing.assert_allclose(nn.TripletMarginLoss(p=math.inf)(a, b, a + 1).item(), 4, rtol=1e-5)


def test_corners_stay_corners_at_every_scale() -> None:
    x = sg.arange(7).float().reshape(1, 1, 7)
    assert sg.interpolate(x, scale_factor=0.5, mode="linear", align_corners=True).tolist() == [[[0, 3, 6]]]


def test_elements_that_do_not_count_stay() -> None:
    x, ones = sg.full((2, 2), math.nan), sg.ones(2, 2)
    for found in (x.addmm(ones, ones, beta=0), x.addbmm(sg.ones(1, 2, 2), sg.ones(1, 2, 2), beta=0)):
        assert found.tolist() == [[2, 2], [2, 2]]
    row = sg.tensor([math.inf, math.nan, 1.0, 2.0])
    found = row.scatter_reduce(0, sg.tensor([2, 2]), sg.tensor([3.0, 4.0]), "mean")
    np.testing.assert_allclose(found.numpy(), [math.inf, math.nan, 8 / 3, 2])
    assert sg.tensor([1, 2]).flip(()).tolist() == sg.array_api.flip(sg.tensor([1, 2]), axis=()).tolist() == [1, 2]


def test_xlogy_of_infinity_and_a_number() -> None:
    assert sg.tensor([math.inf, 0.0, 2.0]).xlogy(2).tolist() == [math.inf, 0, np.float32(2 * math.log(2))]


def test_parts_begin_and_end_at_open_sizes() -> None:
    places = sg.arange(20).float().reshape(10, 2)
    model = sg.Model.of(lambda x: x + places.narrow(0, 0, x.shape[0]), {"x": ("N", 2)}, "numpy")
    assert model(np.zeros((3, 2), np.float32)).tolist() == [[0, 1], [2, 3], [4, 5]]
    last = sg.Model.of(lambda x: x.narrow(0, x.shape[0] - 1, 1), {"x": ("N", 2)}, "numpy")
    assert last(np.float32([[0, 1], [2, 3]])).tolist() == [[2, 3]]


@pytest.mark.parametrize(("start", "length"), [(2, 5), (3, -1), (-9, 2), (4, 1), (5, 0)])
def test_a_part_beyond_the_axis_is_refused(start: int, length: int) -> None:
    with pytest.raises(OutOfRange, match=f"narrow: got {length} elements from {start}, of the 4"):
        sg.arange(4).narrow(0, start, length)
