"""Transforms that are divided into shorter ones, or computed by convolutions, agree with NumPy's in float64."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from devices import NUMPY
from rows.references import REFERENCES

from singe.dtypes import float32
from singe.errors import ShapeError
from singe.graph import Builder, Graph
from singe.model.model import Model
from singe.ops.products import fourier

LENGTHS = {
    "of one product": 97,
    "of a prime length, as one product": 509,
    "of two": 200,
    "of three": 18432,
    "by a convolution": 521,
    "of one that is by convolutions": 1042,
}


def _run(device: str, x: np.ndarray, **attrs: Any) -> np.ndarray:
    b = Builder()
    node = b.input("x", x.shape, float32)
    return Model(Graph((node,), (b.dft(node, **attrs),), ("y",)), device)(x)


@NUMPY
@pytest.mark.parametrize("inverse", [False, True])
@pytest.mark.parametrize("parts", [1, 2])
@pytest.mark.parametrize("kind", LENGTHS)
def test_long_transforms(kind: str, parts: int, inverse: bool, device_name: str) -> None:
    x = np.random.default_rng(0).standard_normal((2, LENGTHS[kind], parts)).astype(np.float32)
    reference = REFERENCES["dft"]
    assert reference is not None
    wanted = reference(x.astype(np.float64), axis=1, inverse=inverse)
    got = _run(device_name, x, axis=1, inverse=inverse)
    assert np.abs(got - wanted).max() <= 2e-6 * np.abs(wanted).max()


def test_lengths_are_what_they_say() -> None:
    """The table above meets every way in which a transform is computed."""
    assert LENGTHS["by a convolution"] > fourier.MAX_PRIME_LENGTH
    assert fourier.MAX_DIRECT_LENGTH < LENGTHS["of a prime length, as one product"] <= fourier.MAX_PRIME_LENGTH


def test_an_odd_inverse_of_half_a_transform_is_real() -> None:
    x = np.random.default_rng(0).standard_normal((3, 301)).astype(np.float32)
    half = np.fft.rfft(x)
    parts = np.stack([np.real(half), np.imag(half)], -1).astype(np.float32)
    got = _run("numpy", parts, axis=1, inverse=True, onesided=True, length=301)
    np.testing.assert_allclose(got[..., 0], x, atol=2e-6)


def test_axes_and_parts_that_do_not_fit_are_refused() -> None:
    b = Builder()
    x = b.input("x", (2, 4, 3), float32)
    for attrs in ({"axis": 1}, {"axis": 2}):
        with pytest.raises(ShapeError, match="dft: axis"):
            b.dft(x, **attrs)
