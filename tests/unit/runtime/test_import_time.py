"""`import singe` is quick, and does not import modules that only some users need."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

LIMIT = 4
"""Times the CPU time of NumPy's own import: both take longer on a busy machine. The goal is 100 ms on an idle one."""
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
start = time.process_time()
import numpy
middle = time.process_time()
import singe
end = time.process_time()
print((end - middle) * 1000, (middle - start) * 1000)
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
    times, numpys = zip(*(map(float, out.split("\n")[0].split()) for out in runs), strict=True)
    with capsys.disabled():
        told = f"import singe: {min(times[1:]):.0f} ms after {min(numpys[1:]):.0f} of NumPy's"
        print(f"\n{told}, {times[0]:.0f} ms while its bytecode is written")
    assert min(times[1:]) < LIMIT * min(numpys[1:])
    assert not set(LAZY) & set(runs[-1].split("\n")[1].split())
