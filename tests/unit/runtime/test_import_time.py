"""`import singe` is quick, and does not import modules that only some users need."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

LIMIT = 250
"""Milliseconds of CPU time beyond NumPy's own import; the goal is 100, but a busy machine is slow."""
LAZY = (
    "importlib.metadata",
    "wgpu",
    "wasmtime",
    "singe.onnx",
    "singe.array_api",
    "singe.metrics",
    "singe.optim",
    "singe.random",
    "singe.data",
    "singe.train",
    "PIL",
    "difflib",
)

SCRIPT = """
import time, sys
import numpy
start = time.process_time()
import singe
print((time.process_time() - start) * 1000)
print(*sys.modules)
"""


@pytest.mark.slow
def test_import_time(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"} | {
        "PYTHONPYCACHEPREFIX": str(tmp_path)
    }
    runs = [
        subprocess.run(
            [sys.executable, "-c", SCRIPT], env=environment, capture_output=True, text=True, check=True
        ).stdout
        for _ in range(4)
    ]
    times = [float(out.split("\n")[0]) for out in runs]
    with capsys.disabled():
        print(f"\nimport singe: {min(times[1:]):.0f} ms beyond NumPy, {times[0]:.0f} ms while its bytecode is written")
    assert min(times[1:]) < LIMIT
    assert not set(LAZY) & set(runs[-1].split("\n")[1].split())
