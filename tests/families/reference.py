"""What onnxruntime computes of a family, and how near to it a device must be."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import onnxruntime

from .family import Feeds
from .table import FAMILIES


def file_of(name: str) -> bytes:
    return FAMILIES[name].make().SerializeToString()


def expected(name: str) -> list[tuple[Feeds, Feeds]]:
    """A family's cases, and their outputs."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(file_of(name), options)
    names = [o.name for o in session.get_outputs()]
    cases = FAMILIES[name].cases(np.random.default_rng(0))
    return [(feeds, dict(zip(names, session.run(names, feeds), strict=True))) for feeds in cases]


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
