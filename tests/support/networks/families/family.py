"""What a family of models is: how its small network is made, and on what it is run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import onnx

Feeds = dict[str, np.ndarray]


@dataclass(frozen=True)
class Family:
    """A row of the table. `cases` are inputs, of several sizes where sizes are open; `bound` is on the differences,
    relative to the largest value of an output."""

    models: str
    """The models that people run of it, for docs/models.md."""
    shape: str
    """What is particular in its graph, for docs/models.md."""
    make: Callable[[], onnx.ModelProto]
    cases: Callable[[np.random.Generator], Sequence[Feeds]]
    bound: float = 2e-5
    numbers: Mapping[str, Sequence[int]] = field(default_factory=dict)
    """Inputs whose shapes must be numbers in a bundle, which serves the cases that have them. In Python such a model is
    compiled again for other shapes."""
    host: str = ""
    """What `singe.js` lacks of it; empty: nothing."""


def normal(rng: np.random.Generator, *shape: int) -> np.ndarray:
    return rng.standard_normal(shape).astype(np.float32)
