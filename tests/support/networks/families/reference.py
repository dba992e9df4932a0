"""What onnxruntime computes of a family, and how near to it a device must be."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from peer import answers, session

from .family import Feeds
from .table import FAMILIES


def file_of(name: str) -> bytes:
    return FAMILIES[name].make().SerializeToString()


def expected(name: str) -> list[tuple[Feeds, Feeds]]:
    """A family's cases, and their outputs."""
    theirs = session(file_of(name))
    return [(feeds, answers(theirs, feeds)) for feeds in FAMILIES[name].cases(np.random.default_rng(0))]


def check_family(name: str, got: Mapping[str, np.ndarray], wanted: Mapping[str, np.ndarray]) -> None:
    """Check that integers are equal, and floats within the family's bound, relative to the largest of an output."""
    assert got.keys() == wanted.keys()
    for key, theirs in wanted.items():
        mine = got[key]
        assert (mine.dtype, mine.shape) == (theirs.dtype, theirs.shape), key
        if theirs.dtype.kind != "f":
            np.testing.assert_array_equal(mine, theirs, key)
            continue
        error = np.abs(mine - theirs).max() / np.abs(theirs).max()
        assert error <= FAMILIES[name].bound, f"{key}: off by {error:.2e} of the largest value"
