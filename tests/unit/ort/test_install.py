"""`import onnxruntime` finds singe.ort after `install()`, where none is installed or with force=True, and only then."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest

import singe
from singe import ort

ROOT = Path(__file__).parents[3]
NEEDED = ("numpy", "numpy.libs")


def python(text: str, *folders: Path) -> str:
    """What Python prints that finds Singe and these folders, and no others."""
    path = [Path(singe.__file__).parents[1], *(ROOT / name for name in ("webgpu", "wasm", "gpu", "cuda")), *folders]
    lines = f"import sys\nsys.path += {list(map(str, path))!r}\n{text}"
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", lines], capture_output=True, text=True, timeout=120, check=False
    )
    assert not done.returncode, done.stderr
    return done.stdout


@pytest.fixture
def bare(tmp_path: Path) -> Path:
    """A folder with NumPy, and without onnxruntime."""
    site = Path(np.__file__).parents[1]
    for name in NEEDED:
        if (site / name).exists():
            (tmp_path / name).symlink_to(site / name)
    return tmp_path


USES = """
import singe.ort
singe.ort.install({})
import onnxruntime
print(onnxruntime.__name__)
"""


@pytest.mark.slow
def test_it_stands_in_where_none_is_installed(bare: Path) -> None:
    said = python(
        USES.format("")
        + """
import importlib.metadata, importlib.util
import onnxruntime as ort
import onnxruntime.capi.onnxruntime_pybind11_state as state
from onnxruntime import InferenceSession, SessionOptions
from onnxruntime.capi import _pybind_state
from onnxruntime.capi.onnxruntime_inference_collection import OrtValue
from onnxruntime.capi._pybind_state import Fail
assert ort is singe.ort and state.Fail is Fail is _pybind_state.Fail and OrtValue is ort.OrtValue
assert importlib.metadata.version("onnxruntime") == ort.__version__
assert importlib.util.find_spec("onnxruntime") is not None
assert "onnxruntime" in {d.metadata["Name"] for d in importlib.metadata.distributions()}
singe.ort.install()  # once more does nothing
assert importlib.util.find_spec("onnxruntime.capi") is not None
lacking = ("tools", "quantization", "transformers.optimizer", "training")
assert not any(importlib.util.find_spec(f"onnxruntime.{name}") for name in lacking)  # to ask is no error
for name in (*lacking, "session"):
    try:
        __import__(f"onnxruntime.{name}")
    except ModuleNotFoundError as e:
        assert e.name == f"onnxruntime.{name}" and "singe.ort stands in" in str(e), e
    else:
        raise AssertionError(name)
try:
    from onnxruntime import SparseTensor
except ImportError:
    print("good")
""",
        bare,
    )
    assert said.split() == ["singe.ort", "good"]


@pytest.mark.slow
def test_an_installed_one_stays_without_force(bare: Path) -> None:
    (bare / "onnxruntime").mkdir()
    (bare / "onnxruntime" / "__init__.py").write_text("here = 1")
    assert python(USES.format(""), bare).split() == ["onnxruntime"]
    assert python(USES.format("force=True"), bare).split() == ["singe.ort"]


@pytest.mark.slow
def test_one_that_is_imported_already_is_not_replaced_in_silence(bare: Path) -> None:
    (bare / "onnxruntime.py").write_text("here = 1")
    said = python(
        """
import onnxruntime
import singe.ort
singe.ort.install()
print(onnxruntime.here)
try:
    singe.ort.install(force=True)
except singe.InputError as e:
    print("imported already" in str(e))
""",
        bare,
    )
    assert said.split() == ["1", "True"]


@pytest.mark.slow
def test_import_singe_does_not_import_it(bare: Path) -> None:
    assert python("import singe\nprint([m for m in sys.modules if m.startswith('singe.ort')])", bare).strip() == "[]"


@pytest.mark.slow
@pytest.mark.parametrize(
    "first", ["onnxruntime", "onnxruntime.capi.onnxruntime_pybind11_state", "singe.ort, onnxruntime.backend"]
)
def test_the_wheel_stands_in(bare: Path, tmp_path: Path, first: str) -> None:
    """Unpacked, as pip does, it makes any first import find singe.ort, and its metadata meet requirements."""
    wheel = ort.write_wheel(tmp_path / "wheels")
    assert wheel.name == f"onnxruntime-{ort.__version__}-py3-none-any.whl"
    assert wheel.stat().st_size < 2000
    assert wheel.read_bytes() == ort.write_wheel(tmp_path / "again").read_bytes()
    with zipfile.ZipFile(wheel) as package:
        package.extractall(bare)
        names = {line.split(",")[0] for line in package.read(package.namelist()[-1]).decode().splitlines()}
        assert names == set(package.namelist())
    said = python(
        f"""
import {first}
import onnxruntime, singe.ort, importlib.metadata
from onnxruntime.capi.onnxruntime_pybind11_state import Fail
assert onnxruntime is singe.ort and Fail is onnxruntime.capi._pybind_state.Fail
print(importlib.metadata.version("onnxruntime"), importlib.metadata.requires("onnxruntime"))
""",
        bare,
    )
    assert said.split() == [ort.__version__, "['singe']"]
