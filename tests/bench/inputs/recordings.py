"""The recorded inputs of a model, cut to one item."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from singe.model.files import load


def first_items(model: Path) -> dict[str, np.ndarray]:
    """The first item of each input in the `.npz` beside a model; an input whose first dimension is not open stays whole."""
    arrays = np.load(model.with_suffix(".npz"))
    shapes = {spec.name: spec.shape for spec in load(model, "numpy").inputs}

    def first(name: str, array: np.ndarray) -> np.ndarray:
        shape = shapes[name]
        return array if shape is not None and (not shape or isinstance(shape[0], int)) else array[:1]

    return {k[3:]: first(k[3:], arrays[k]) for k in arrays.files if k.startswith("in:")}
