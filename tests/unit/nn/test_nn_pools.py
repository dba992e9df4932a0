"""Pools that give the places of maxima, and those whose windows are at random distances, beside NumPy."""

from __future__ import annotations

import math
from itertools import product
from typing import Any

import numpy as np
import pytest
from devices import NUMPY, RUNNERS, runners, slow

import singe as sg
from singe import nn

RNG = np.random.default_rng(3)
SPACES = {1: (9,), 2: (7, 8), 3: (5, 6, 4)}


def draw(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


def as_array(x: Any) -> np.ndarray:
    return x.numpy() if isinstance(x, sg.Tensor) else x


def maxima(x: np.ndarray, windows: list[list[list[range]]]) -> tuple[np.ndarray, np.ndarray]:
    """Values and places; windows: for each row of x (rows, *space), and for each axis, the elements of every window."""
    sizes = [len(w) for w in windows[0]]
    values, places = np.empty((len(x), *sizes), x.dtype), np.empty((len(x), *sizes), np.int64)
    for row, (part, axes) in enumerate(zip(x, windows, strict=True)):
        for place in product(*map(range, sizes)):
            inside = list(product(*(axis[k] for axis, k in zip(axes, place, strict=True))))
            best = max(inside, key=lambda at: part[at])
            values[(row, *place)] = part[best]
            places[(row, *place)] = np.ravel_multi_index(best, part.shape)
    return values, places


@RUNNERS
@pytest.mark.parametrize("kind", ["float32", "float16"])
def test_the_place_of_the_largest_is_that_of_the_first_nan(kind: str, device_name: str) -> None:
    n = math.nan
    x = sg.tensor([[[1, n, 2, n], [n, 3, n, 0], [1, 2, 3, 4], [n, n, 0, 4]]], kind, device_name)
    values, places = x.max_pool2d(2, return_indices=True)
    np.testing.assert_array_equal(values.numpy(), np.array([[[n, n], [n, 4]]], kind))
    np.testing.assert_array_equal(places.numpy(), [[[1, 3], [12, 11]]])


@NUMPY
@pytest.mark.parametrize(("rank", "size"), [(1, 4), (1, 1), (2, (3, 5)), (2, (7, 2)), (3, (5, 2, 3)), (3, 1)])
def test_adaptive_pools_give_the_places_of_maxima(rank: int, size: Any, device_name: str) -> None:
    on = sg.device(device_name)
    x = draw(2, 3, *SPACES[rank])
    sizes = (size,) * rank if isinstance(size, int) else size
    axes = [
        [range(k * d // n, -(-(k + 1) * d // n)) for k in range(n)] for d, n in zip(SPACES[rank], sizes, strict=True)
    ]
    values, places = maxima(x.reshape(6, *SPACES[rank]), [axes] * 6)
    layer = getattr(nn, f"AdaptiveMaxPool{rank}d")(size, return_indices=True)
    given = sg.tensor(x, device=on)
    method = getattr(given, f"adaptive_max_pool{rank}d")(size, return_indices=True)
    compiled = sg.Model.of(layer, {"x": ("N", *x.shape[1:])}, on)(x)
    for found in (layer(given), method, list(compiled.values())):
        np.testing.assert_array_equal(as_array(found[0]), values.reshape(2, 3, *sizes))
        np.testing.assert_array_equal(as_array(found[1]), places.reshape(2, 3, *sizes))
    np.testing.assert_array_equal(layer(given[0])[1].numpy(), places.reshape(2, 3, *sizes)[0])


@pytest.mark.slow
def test_places_in_an_open_space_are_those_of_one_window() -> None:
    x = draw(2, 3, 4, 5)
    of = sg.Model.of(nn.AdaptiveMaxPool2d(1, return_indices=True), {"x": (2, 3, "H", 5)})
    np.testing.assert_array_equal(list(of(x).values())[1].ravel(), x.reshape(6, -1).argmax(1))
    with pytest.raises(sg.ShapeError):
        sg.Model.of(nn.AdaptiveMaxPool2d((1, 2), return_indices=True), {"x": (2, 3, "H", 5)})


def intervals(number: float, length: int, count: int, window: int) -> list[range]:
    """The windows along an axis, as PyTorch makes them of a random number."""
    step = np.float32(length - window) / np.float32(max(count - 1, 1))
    first = np.float32(number)
    starts = [int((np.float32(k) + first) * step) - int(first * step) for k in range(count - 1)]
    return [range(s, s + window) for s in (*starts, length - window)]


@runners("numpy", *slow("wasm", "webgpu"))
@pytest.mark.parametrize(
    ("rank", "kernel", "size"), [(2, 2, (4, 5)), (2, (3, 1), (1, 8)), (3, 2, (3, 4, 3)), (3, (1, 2, 3), 2)]
)
def test_fractional_pools_are_pytorchs_of_given_numbers(rank: int, kernel: Any, size: Any, device_name: str) -> None:
    on = sg.device(device_name)
    space, x = SPACES[rank], draw(2, 3, *SPACES[rank])
    numbers = RNG.random((2, 3, rank), np.float32)
    sizes, kernels = ((n,) * rank if isinstance(n, int) else n for n in (size, kernel))
    order = (1, 0) if rank == 2 else (0, 1, 2)  # of pictures the first number is the width's
    windows = [
        [intervals(row[order[k]], space[k], sizes[k], kernels[k]) for k in range(rank)]
        for row in numbers.reshape(6, rank)
    ]
    values, places = maxima(x.reshape(6, *space), windows)
    layer = getattr(nn, f"FractionalMaxPool{rank}d")(kernel, size, return_indices=True, _random_samples=numbers).to(on)
    given = sg.tensor(x, device=on)
    found = layer(given)
    np.testing.assert_array_equal(found[0].numpy(), values.reshape(2, 3, *sizes))
    np.testing.assert_array_equal(found[1].numpy(), places.reshape(2, 3, *sizes))
    seed = draw(*values.shape)
    wanted = np.zeros((6, int(np.prod(space))), np.float32)
    for row, (at, part) in enumerate(zip(places.reshape(6, -1), seed.reshape(6, -1), strict=True)):
        np.add.at(wanted[row], at, part)
    weights = sg.tensor(seed.reshape(2, 3, *sizes), device=on)
    gradient = sg.grad(lambda x: (layer(x)[0] * weights).sum())(given)[given]
    np.testing.assert_allclose(gradient.numpy().reshape(6, -1), wanted, rtol=1e-5, atol=1e-6)


@pytest.mark.slow
def test_fractional_pools_draw_their_numbers() -> None:
    x = sg.tensor(draw(2, 3, 20, 30))
    layer = nn.FractionalMaxPool2d(2, output_ratio=(0.5, 0.4), rng=0)
    assert layer(x).shape == (2, 3, 10, 12)
    assert layer(x[0]).shape == (3, 10, 12)
    assert not layer(x).equal(layer(x))
    with nn.drawing(3):
        first = layer(x)
    with nn.drawing(3):
        assert layer(x).equal(first)
    given = nn.FractionalMaxPool2d(2, 5, _random_samples=np.zeros((1, 3, 2)))
    assert [name for name, _ in given.named_buffers()] == ["_random_samples"]
    assert not list(given.parameters())
    step = sg.compile(lambda x, key: _keyed(layer, x, key), x, sg.random.key(3))
    np.testing.assert_array_equal(step(x, sg.random.key(3)), first.numpy())


def _keyed(layer: Any, x: Any, key: Any) -> Any:
    with nn.drawing(key):
        return layer(x)


FAULTS: dict[str, tuple[Any, type[Exception], str]] = {
    "no size": (lambda: nn.FractionalMaxPool2d(2), sg.InputError, "either output_size or output_ratio"),
    "both": (lambda: nn.FractionalMaxPool2d(2, 3, 0.5), sg.InputError, "either output_size or output_ratio"),
    "ratio": (lambda: nn.FractionalMaxPool3d(2, output_ratio=1.5), sg.InputError, "output_ratio is 1.5"),
    "too many": (
        lambda: nn.FractionalMaxPool2d(3, 8)(sg.ones(1, 1, 9, 9)), sg.ShapeError, r"got \(9, 9\) elements of space",
    ),
    "numbers": (
        lambda: nn.FractionalMaxPool2d(2, 3, _random_samples=np.zeros((1, 1, 2)))(sg.ones(2, 1, 9, 9)),
        sg.ShapeError, r"_random_samples is \(1, 1, 2\), expected \(2, 1, 2\)",
    ),
    "a negative norm": (lambda: nn.Embedding(2, 3, max_norm=-1.0), sg.InputError, "max_norm is -1.0"),
}  # fmt: skip


@pytest.mark.parametrize("name", FAULTS)
def test_what_pools_cannot_do_is_said(name: str) -> None:
    call, kind, text = FAULTS[name]
    with pytest.raises(kind, match=text):
        call()


def test_gradients_of_rows_that_max_norm_scales_are_pytorchs() -> None:
    """PyTorch scales the weight before it looks rows up: gradients do not go through the factor."""
    layer = nn.Embedding(3, 2, max_norm=0.1, rng=0)
    index, seed = sg.tensor([2, 0, 2]), sg.tensor(draw(3, 2))
    found = sg.grad(lambda w: (layer.replace(weight=w)(index) * seed).sum())(layer.weight)[layer.weight]
    wanted = np.zeros((3, 2), np.float32)
    np.add.at(wanted, [2, 0, 2], seed.numpy())
    np.testing.assert_allclose(found.numpy(), wanted, rtol=1e-6)
    np.testing.assert_allclose(layer(index).norm(2, 1).numpy(), 0.1, rtol=1e-5)
