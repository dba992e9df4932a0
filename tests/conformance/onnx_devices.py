"""Shared by the conformance tests: ONNX's devices, the files of the onnx package, comparing outputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from devices import MORE

from singe.dtypes import outward, own, widened
from singe.errors import SingeError
from singe.onnx.model import read_tensor
from singe.runtime.devices import device as open_device

DEVICES = {"CPU": "numpy", "WASM": "wasm", "WEBGPU": "webgpu", **{name.upper(): name for name in MORE}}
"""ONNX's names of devices ↦ our backends."""
ONNX_DATA = Path(pytest.importorskip("onnx").__file__).parent / "backend" / "test" / "data"
MODELS = Path(__file__).parents[2].parent / "shared" / "models"


@cache
def _absence(device: str) -> str | None:
    try:
        open_device(DEVICES[device])
    except SingeError as e:
        return f"{device} is absent: {e}"
    return None


def need(device: str) -> None:
    """Skip the test, with the reason, if the device is not available."""
    reason = _absence(device)
    if reason:
        pytest.skip(reason)


def data_sets(folder: Path) -> list[tuple[list[np.ndarray], list[np.ndarray]]]:
    """The inputs and outputs that are stored beside a model."""

    def tensors(place: Path, kind: str) -> list[np.ndarray]:
        files = sorted(place.glob(f"{kind}_*.pb"), key=lambda p: int(p.stem.split("_")[1]))
        return [outward(np.asarray(read_tensor(p))) for p in files]

    return [(tensors(place, "input"), tensors(place, "output")) for place in sorted(folder.glob("test_data_set_*"))]


def array_of(given: Any) -> Any:
    """A tensor of a case, a list of such, or None; types that NumPy lacks are in ONNX's form."""
    if isinstance(given, list):
        return [array_of(x) for x in given]
    return read_tensor(given.SerializeToString()) if hasattr(given, "SerializeToString") else given


def tensors(values: Any) -> list[Any]:
    """The tensors in lists of them, in which an optional that holds nothing is None."""
    if isinstance(values, (list, tuple)):
        return [x for value in values for x in tensors(value)]
    return [] if values is None else [values]


def _form(value: Any) -> Any:
    """The lists and Nones of a value."""
    return [_form(x) for x in value] if isinstance(value, (list, tuple)) else value is None


def check(got: Sequence[Any], wanted: Sequence[Any], rtol: float, atol: float) -> None:
    """Check that outputs are equal in number, dtype and shape, and close in value; also within lists."""
    assert _form(got) == _form(wanted)
    for mine, theirs in zip(tensors(got), tensors(wanted), strict=True):
        mine, theirs = own(mine), own(theirs)
        assert mine.dtype == theirs.dtype
        assert mine.shape == theirs.shape
        if mine.dtype.names:  # a type that NumPy lacks
            mine, theirs = widened(mine), widened(theirs)
        if theirs.dtype == object:  # strings
            np.testing.assert_array_equal(mine, theirs)
            continue
        np.testing.assert_allclose(mine, theirs, rtol=rtol, atol=atol)


def check_relative(got: Mapping[str, np.ndarray], wanted: Mapping[str, np.ndarray], bound: float) -> None:
    """Check that no output differs by more than `bound`, relative to its largest value."""
    assert got.keys() == wanted.keys()
    for name, theirs in wanted.items():
        mine = got[name]
        assert mine.shape == theirs.shape
        error = np.abs(mine - theirs).max() / np.abs(theirs).max()
        assert error <= bound, f"{name}: off by {error:.2e} of the largest value"
