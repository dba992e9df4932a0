"""`import singe` is quick, and to load a model imports nothing that only others need."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import singe as sg

LIMIT = 1
"""Times the CPU time of NumPy's own import: both take longer on a busy machine."""
MOST_MODULES = 90
NOT_FOR_LOADING = (
    "wgpu",
    "singe.graph",
    "singe.ops",
    "singe.ir.kernel",
    "singe.compiler.compile",
    "singe.compiler.array_target",
    "singe.hints",
    "singe.program.host_checks",
    "singe.onnx",
    "singe.tensors",
    "singe.nn",
    "singe.weights",
    "singe.tools",
    "singe.optim",
    "singe.data",
    "singe.train",
    "singe_wasm.printing",
    "asyncio",
    "PIL",
    "difflib",
    "importlib.metadata",
    "ml_dtypes",
    "logging",
    "secrets",
    "tempfile",
    "wasmtime",
)
"""What a model that was compiled before needs nothing of."""
NOT_FOR_WHAT_IS_KEPT = ("hashlib", "singe.program.bundle_reader", "singe.program.checks")
"""What a Program is checked with that comes from elsewhere."""
NOT_FOR_A_SESSION = (
    *({*NOT_FOR_LOADING, *NOT_FOR_WHAT_IS_KEPT} - {"singe.onnx"}),
    "singe.onnx.importer",
    "singe.onnx.source",
    "singe.random",
)
"""The same of a session of singe.ort, which says what the file does in ONNX's types."""
MOST_MODULES_FOR_LOADING = 79
MOST_MODULES_FOR_A_SESSION = 100

SCRIPT = """
import time, sys
start = time.process_time()
import numpy
middle = time.process_time()
import singe
end = time.process_time()
print((end - middle) * 1000, (middle - start) * 1000)
print(*[name for name in sys.modules if name.startswith("singe")])
"""
LOADING = """
import sys
import numpy as np
import singe as sg
import singe.files.kept
singe.files.kept.SETTLED_NS = 0
sg.load(sys.argv[1], "wasm")(np.ones((2, 3), np.float32))
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
    assert len(runs[-1].split("\n")[1].split()) <= MOST_MODULES


SESSION = """
import sys
import numpy as np
import singe.ort as ort
import singe.files.kept
singe.files.kept.SETTLED_NS = 0
session = ort.InferenceSession(sys.argv[1], providers=[("SingeExecutionProvider", {"device": "wasm"})])
session.run(None, {session.get_inputs()[0].name: np.ones((2, 3), np.float32)})
print(*sys.modules)
"""


def loaded(path: Path, cache: Path, script: str = LOADING) -> set[str]:
    """The modules of a process that loads a model and runs it."""
    done = subprocess.run(
        [sys.executable, "-c", script, str(path)],
        env={**os.environ, "SINGE_CACHE": str(cache)}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return set(done.stdout.split())


@pytest.mark.slow
@pytest.mark.parametrize("form", ["program", "kept"])
def test_a_model_that_was_compiled_before_needs_no_compiler(form: str, tmp_path: Path) -> None:
    """A Program's file, and an ONNX file whose Program an earlier process has kept."""
    path = tmp_path / ("program.singe" if form == "program" else "model.onnx")
    model = sg.Model.of(sg.Tensor.exp, {"x": ("N", 3)}, "wasm")
    if form == "program":
        model.program().save(path)
    else:
        sg.export(model, path)
        loaded(path, tmp_path)
    modules = loaded(path, tmp_path)
    assert not {*NOT_FOR_LOADING, *(NOT_FOR_WHAT_IS_KEPT if form == "kept" else ())} & modules
    assert sum(name.startswith("singe") for name in modules) <= MOST_MODULES_FOR_LOADING


@pytest.mark.slow
def test_a_session_of_a_file_that_was_compiled_before_needs_no_importer(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    sg.export(sg.Model.of(sg.Tensor.exp, {"x": ("N", 3)}, "numpy"), path)
    loaded(path, tmp_path, SESSION)
    modules = loaded(path, tmp_path, SESSION)
    assert not set(NOT_FOR_A_SESSION) & modules
    assert sum(name.startswith("singe") for name in modules) <= MOST_MODULES_FOR_A_SESSION
