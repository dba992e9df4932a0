"""Special functions, scans and scatters give what PyTorch recorded (tests/training/recording/record_functions.py), and their gradients."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from devices import RUNNERS
from function_cases import CASES, GRADIENTS, arguments

import singe as sg

RECORDED = Path(__file__).parents[1] / "recorded" / "functions.npz"


@pytest.fixture(scope="module")
def recorded() -> Any:
    with np.load(RECORDED) as found:
        return dict(found)


@RUNNERS
@pytest.mark.parametrize("name", CASES)
def test_results_are_those_of_pytorch(name: str, device_name: str, recorded: Any) -> None:
    case = CASES[name]
    result = case.call(*(sg.tensor(a, device=device_name) for a in arguments(case)))
    parts = result if isinstance(result, tuple) else (result,)
    for k, part in enumerate(parts):
        expected = recorded[f"{name}/{k}"]
        assert part.dtype == sg.dtype(expected.dtype)
        np.testing.assert_allclose(part.numpy(), expected, rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize("name", GRADIENTS)
def test_gradients_are_those_of_pytorch(name: str, recorded: Any) -> None:
    case = CASES[name]
    first, *others = (sg.tensor(a) for a in arguments(case))

    def total(x: sg.Tensor) -> sg.Tensor:
        result = case.call(x, *others)
        return (result[0] if isinstance(result, tuple) else result).sum()

    np.testing.assert_allclose(sg.grad(total)(first)[first].numpy(), recorded[f"{name}/gradient"], rtol=2e-4, atol=2e-5)
