"""What PyTorch and others made, as the scripts of tests/training/recording wrote it down."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

FOLDER = Path(__file__).parents[1] / "training" / "recorded"


@cache
def recorded(name: str) -> dict[str, np.ndarray]:
    """The arrays of a recording; many small ones are kept as one, with their names and sizes."""
    with np.load(FOLDER / f"{name}.npz") as file:
        arrays = dict(file)
    if set(arrays) != {"names", "sizes", "values"}:
        return arrays
    parts = np.split(arrays["values"], np.cumsum(arrays["sizes"])[:-1])
    return dict(zip(map(str, arrays["names"]), parts, strict=True))


def recorded_cases(name: str) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """The cases of a recording, by label, and its arrays."""
    arrays = dict(recorded(name))
    return json.loads(arrays.pop("cases").item()), arrays
