"""What PyTorch made, as tests/training/record_*.py wrote it down."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

FOLDER = Path(__file__).parents[1] / "training" / "recorded"


@cache
def recorded(name: str) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """The cases of a recording, by label, and its arrays."""
    with np.load(FOLDER / f"{name}.npz") as file:
        arrays = {key: file[key] for key in file.files}
    return json.loads(arrays.pop("cases").item()), arrays
