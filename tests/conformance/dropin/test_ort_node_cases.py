"""ONNX's own test runner over singe.ort: its node cases pass as they do over Singe's own backend."""

from __future__ import annotations

import unittest
import warnings
from typing import Any, Final

import numpy as np
import pytest
from onnx_devices import DEVICES, need

from singe import ort

BackendTest = pytest.importorskip("onnx.backend.test").BackendTest
PASSING: Final = 1873
"""How many cases pass at least; tests/conformance/nodes/test_onnx_runner.py says why others cannot."""


def over(device: str) -> type[ort.backend.OnnxRuntimeBackend]:
    """The backend on a device, under the name "CPU", which is the one that the runner asks for."""

    class Backend(ort.backend.OnnxRuntimeBackend):
        @classmethod
        def prepare(cls, model: Any, device: str | None = None, **_: Any) -> ort.backend.OnnxRuntimeBackendRep:
            session = ort.InferenceSession(
                model.SerializeToString(), providers=[("SingeExecutionProvider", {"device": name})]
            )
            return ort.backend.prepare(session)

    name = DEVICES[device]
    return Backend


def outcomes(device: str) -> tuple[int, dict[str, str]]:
    """How many cases pass, and those that fail with the end of what the runner says."""
    passed, failed = 0, {}
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")  # the cases overflow and divide by zero on purpose while they are made
        cases = BackendTest(over(device), __name__).test_cases["OnnxBackendNodeModelTest"]
        for test in [t for t in dir(cases) if t.endswith("_cpu")]:
            result = unittest.TestResult()
            cases(test).run(result)
            faults = [text for _, text in (*result.errors, *result.failures, *result.skipped)]
            if faults:
                failed[test] = faults[0][-300:]
            else:
                passed += 1
    return passed, failed


@pytest.mark.slow
@pytest.mark.full
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("device", ["CPU", "WASM"])
def test_the_node_cases_pass(device: str) -> None:
    need(device)
    passed, failed = outcomes(device)
    assert passed >= PASSING, failed
