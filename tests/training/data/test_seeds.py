"""Orders, samples and changes of data without a seed of their own: those that `sg.manual_seed` decides."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import singe as sg
from singe import data

ITEMS = data.Dataset.of(np.arange(200))
IMAGES = np.random.default_rng(0).random((8, 1, 6, 6), np.float32)


def draws() -> list[np.ndarray]:
    """Everything of this room that draws without a seed."""
    loader = data.Loader(ITEMS, 50, shuffle=True, transform=lambda batch, draws: batch + draws.uniform())
    return [
        *[np.concatenate(list(loader)) for _ in range(2)],
        ITEMS.shuffle().batch(range(200)),
        ITEMS.sample(50).batch(range(50)),
        ITEMS.sample(50, replacement=True).batch(range(50)),
        data.RandomCrop(4)(IMAGES).ravel(),
    ]


def test_manual_seed_decides_orders_samples_and_changes() -> None:
    found: list[list[Any]] = []
    for seed in (1, 1, 2, None):
        if seed is not None:
            sg.manual_seed(seed)
        found.append(draws())
    first, same, other, further = found
    for a, b in zip(first, same, strict=True):
        np.testing.assert_array_equal(a, b)
    every = [x.tobytes() for case in (first, other, further) for x in case]
    assert len({*every}) == len(every)


def test_a_loader_without_a_seed_goes_on_with_that_of_its_state() -> None:
    loader, other = (data.Loader(ITEMS, 40, shuffle=True) for _ in range(2))
    batches = iter(loader)
    next(batches)
    state = loader.state()
    other.resume(state)
    for a, b in zip(batches, other, strict=True):
        np.testing.assert_array_equal(a, b)
    for a, b in zip(loader, other, strict=True):
        np.testing.assert_array_equal(a, b)
    with pytest.raises(sg.InputError, match="seed"):
        data.Loader(ITEMS, 40, shuffle=True, seed=1).resume(state)
