"""singe.ort answers each call of onnxruntime's interface as the installed onnxruntime: the same values, the same classes of exceptions."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import pytest
from calls import CALLS, narrow

from singe import ort

peer: Any = pytest.importorskip("onnxruntime", reason="no package onnxruntime: pip install onnxruntime")
OTHERWISE: Final[Mapping[str, str]] = {
    "a cut file": "both refuse it; where it is cut decides what they miss first",
}
"""Calls that are answered otherwise, on purpose ↦ why."""
PLAIN: Final = (TypeError, ValueError, RuntimeError, AttributeError)
"""Python's own exceptions that onnxruntime raises."""


def outcome(module: Any, name: str) -> Any:
    """The answer of a call, or the name of the class of its exception."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return CALLS[name](module)
        except Exception as e:
            own = type(e).__name__
            if hasattr(peer.capi.onnxruntime_pybind11_state, own):
                return "exception", own
            return "exception", next((c.__name__ for c in PLAIN if isinstance(e, c)), "Exception")


def assert_equal(found: Any, expected: Any) -> None:
    if hasattr(expected, "numpy") and hasattr(expected, "data_type"):
        assert_equal(found.numpy(), expected.numpy())
    elif isinstance(expected, np.ndarray):
        assert isinstance(found, np.ndarray)
        assert found.shape == expected.shape
        assert found.dtype == expected.dtype
        if expected.dtype == object:
            assert found.tolist() == expected.tolist()
        else:
            np.testing.assert_allclose(found, expected, rtol=1e-6)
    elif isinstance(expected, dict):
        assert isinstance(found, dict)
        assert found.keys() == expected.keys()
        for key, value in expected.items():
            assert_equal(found[key], value)
    elif isinstance(expected, float):
        assert found == pytest.approx(expected, rel=1e-5)
    elif isinstance(expected, (list, tuple)):
        assert isinstance(found, (list, tuple))
        assert len(found) == len(expected)
        for x, y in zip(found, expected, strict=True):
            assert_equal(x, y)
    else:
        assert found == expected


@pytest.mark.parametrize("name", CALLS)
def test_answers_as_onnxruntime(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    if name.startswith("CUDA") and "CUDAExecutionProvider" in ort.get_available_providers():
        pytest.skip("here is an NVIDIA GPU, which onnxruntime for the CPU does not use")
    peer.set_default_logger_severity(4)
    expected, found = outcome(peer, name), outcome(ort, name)
    if name in OTHERWISE:
        assert (found[0], expected[0]) == ("exception", "exception")
    else:
        assert_equal(found, expected)


def test_exceptions_of_all_names() -> None:
    theirs = peer.capi.onnxruntime_pybind11_state
    ours = ort.capi.onnxruntime_pybind11_state
    names = {n for n, c in vars(theirs).items() if isinstance(c, type) and issubclass(c, Exception)}
    assert len(names) >= 15
    assert names <= {n for n, c in vars(ours).items() if isinstance(c, type) and issubclass(c, Exception)}


def test_messages_begin_as_onnxruntimes() -> None:
    """Programs read the number and the name that a message begins with."""

    def message(module: Any) -> str:
        with pytest.raises(module.capi.onnxruntime_pybind11_state.InvalidArgument) as caught:
            CALLS["a wrong rank"](module)
        return str(caught.value)

    assert message(ort).startswith(
        "[ONNXRuntimeError] : 2 : INVALID_ARGUMENT : Invalid rank for input: x Got: 1 Expected: 2"
    )
    assert message(ort)[:60] == message(peer)[:60]


@pytest.mark.parametrize("module", ["", "capi.onnxruntime_pybind11_state"])
def test_names_that_it_lacks_are_listed(module: str) -> None:
    """A public name of onnxruntime is there, or is among those of which the README says that they are not."""
    theirs, ours = peer, ort
    for part in module.split(".") if module else ():
        theirs, ours = getattr(theirs, part), getattr(ours, part)
    absent = {n for n in vars(theirs) if n[0] != "_" and n not in vars(ours)}
    needed = {
        "InferenceSession",
        "SessionOptions",
        "RunOptions",
        "OrtValue",
        "NodeArg",
        "get_available_providers",
        "Fail",
    }
    assert not absent & needed


def test_narrow_floats_are_taken() -> None:
    """What NumPy lacks is taken and given in the types of ml_dtypes."""
    (found,) = narrow(ort)
    assert found.dtype.name == "bfloat16"
    assert found.astype(np.float32).tolist() == [1, 1]
