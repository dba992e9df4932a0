"""ONNX's node cases. To make them takes seconds, so the processes of a run make them once, in tests/.cache."""

from __future__ import annotations

import fcntl
import pickle
import warnings
from functools import cache
from pathlib import Path
from typing import Any, Final

import numpy as np
import onnx
from onnx.backend.test import loader

FOLDER: Final = Path(__file__).parents[1] / ".cache"


@cache
def every_case() -> list[Any]:
    FOLDER.mkdir(exist_ok=True)
    path = FOLDER / f"onnx-{onnx.__version__}-numpy-{np.__version__}.pickle"
    with path.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if path.exists():
            return pickle.loads(path.read_bytes())
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the cases overflow and divide by zero on purpose while they are made
            cases = loader.load_model_tests(kind="node")
        part = path.with_suffix(".part")
        part.write_bytes(pickle.dumps(cases))
        part.replace(path)
        return cases
