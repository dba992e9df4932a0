"""Random keys of integers, slices, None, `...`, integer arrays and masks select and replace what they do in NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import singe as sg

KEYS = 400


def drawn_key(rng: np.random.Generator, shape: tuple[int, ...]) -> tuple[Any, ...]:
    """A key for arrays of this shape; NumPy may refuse it."""
    key: list[Any] = []
    common = [(), (2,), (3, 2)][rng.integers(3)]
    axis = 0
    while axis < len(shape) and rng.random() < 0.9:
        d = shape[axis]
        kinds: list[Callable[[], Any]] = [
            lambda: None,
            lambda: ...,
            lambda: int(rng.integers(-d, d)),  # noqa: B023 (called at once)
            lambda: slice([None, 0, 1, -2][rng.integers(4)], [None, 3, -1][rng.integers(3)], [None, 2, -1][rng.integers(3)]),
            lambda: rng.integers(-d, d, common if rng.random() < 0.7 else ()),  # noqa: B023
            lambda: rng.random(d) < 0.5,  # noqa: B023
        ]  # fmt: skip
        item = kinds[rng.choice(6, p=[0.1, 0.1, 0.2, 0.2, 0.25, 0.15])]()
        if item is Ellipsis:
            if any(i is Ellipsis for i in key):
                continue
            axis += int(rng.integers(len(shape) - axis + 1))
        elif item is not None:
            axis += 1
        key.append(item)
    return tuple(key)


@pytest.mark.slow
@pytest.mark.parametrize("wrapped", [False, True], ids=["arrays", "tensors"])
def test_random_keys(wrapped: bool) -> None:
    rng = np.random.default_rng(29)
    tried = 0
    for _ in range(KEYS):
        shape = tuple(int(d) for d in rng.integers(1, 5, rng.integers(1, 5)))
        array = np.arange(np.prod(shape)).reshape(shape)
        key = drawn_key(rng, shape)
        try:
            want = array[key]
        except IndexError:
            continue
        tried += 1
        given = tuple(sg.tensor(i) if wrapped and isinstance(i, np.ndarray) else i for i in key)
        got = sg.tensor(array)[given]
        assert got.shape == want.shape, (shape, key)
        np.testing.assert_array_equal(got.numpy(), want, err_msg=f"{shape} {key}")
        replaced = array.copy()
        replaced[key] = -1
        np.testing.assert_array_equal(sg.tensor(array).at[given].set(-1).numpy(), replaced, err_msg=f"{shape} {key}")
    assert tried > KEYS * 0.8


@pytest.mark.parametrize("wrapped", [False, True], ids=["arrays", "tensors"])
@pytest.mark.parametrize(
    "place",
    [lambda m: (m, 0), lambda m: (0, m), lambda m: (..., m, 0), lambda m: (None, m, slice(None), [0])],
)
def test_a_mask_beside_other_items_has_the_shape_of_its_axes(place: Callable[[Any], Any], wrapped: bool) -> None:
    array = np.arange(64).reshape(4, 4, 4)
    x = sg.tensor(array)
    short, fitting = np.array([True, False]), np.array([True, False, True, False])
    np.testing.assert_array_equal(x[place(sg.tensor(fitting) if wrapped else fitting)].numpy(), array[place(fitting)])
    with pytest.raises(IndexError):
        array[place(short)]
    key = place(sg.tensor(short) if wrapped else short.tolist())
    with pytest.raises(sg.ShapeError, match="mask of shape"):
        x[key]
    with pytest.raises(sg.ShapeError, match="mask of shape"):
        x.at[key].set(0)


BEYOND: dict[str, Callable[[sg.Tensor, Any], Any]] = {
    "key": lambda x, i: x[i],
    "key beside another": lambda x, i: x[i, [0, 1]],
    "replaced": lambda x, i: x.at[i].set(0.0),
    "take": lambda x, i: x.take(i, 0),
    "index_select": lambda x, i: x.index_select(0, i),
    "gather": lambda x, i: x.gather(0, sg.tensor(i).reshape(2, 1)),
    "take_along_dim": lambda x, i: x.take_along_dim(sg.tensor(i).reshape(2, 1), 0),
    "scatter": lambda x, i: x.scatter(0, sg.tensor(i).reshape(2, 1), 1.0),
    "embedding": lambda x, i: sg.nn.Embedding(3, 2)(sg.tensor(i)),
}


@pytest.mark.parametrize("name", BEYOND)
@pytest.mark.parametrize("kind", [list, np.array, sg.tensor])
def test_known_indices_beyond_an_axis_are_an_index_error(name: str, kind: Callable[[Any], Any]) -> None:
    x = sg.tensor(np.arange(12.0).reshape(3, 4))
    for indices in ([0, 3], [-4, 0]):
        with pytest.raises(IndexError, match="expected from -3 to 2"):
            BEYOND[name](x, kind(indices))
    BEYOND[name](x, kind([-3, 2]))


def test_indices_on_a_device_count_from_the_end(on: sg.Device) -> None:
    rows = np.arange(12.0, dtype=np.float32).reshape(3, 4)
    x = sg.tensor(rows, device=on)
    check = x[sg.tensor([-1, -3, 2], device=on)]
    np.testing.assert_array_equal(check.numpy(), rows[[-1, -3, 2]])
