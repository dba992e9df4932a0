"""Gradients of layers by their inputs and parameters, or results, equal PyTorch's, recorded by record_modules.py, on every device."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from module_cases import CASES, factors, inputs, weights
from recorded import recorded

import singe as sg
from singe import nn

TOLERANCE = {"numpy": 1e-5, "wasm": 1e-5, "webgpu": 1e-4}
"""The error allowed, relative to the largest value."""
QUICK = ("Linear", "Conv2d", "BatchNorm2d", "LSTM", "MultiheadAttention")
"""Those that `make quick` compares, on numpy."""


def weighted_sum(layer: nn.Module, *given: sg.Tensor) -> sg.Tensor:
    y = layer(*given)
    y = y[0] if isinstance(y, tuple) else y
    return (y * factors(y.shape)).sum()


def cases() -> list[Any]:
    return [
        pytest.param(name, device, marks=() if device == "numpy" and name in QUICK else pytest.mark.slow)
        for device in TOLERANCE
        for name in CASES
    ]


@pytest.mark.parametrize(("name", "device_name"), cases())
def test_gradients_of_layers_are_pytorchs(name: str, device_name: str) -> None:
    try:
        device = sg.device(device_name)
    except sg.DeviceError as e:
        pytest.skip(f"no {device_name} here: {e}")
    case = CASES[name]
    layer = case.build(nn)
    if "out of training" not in name:
        layer = layer.train()
    layer = layer.with_state(weights({k: t.shape for k, t in layer.named_parameters()}), strict=False).to(device)
    arrays = [sg.tensor(a, device=device) for a in inputs(case)]
    found: dict[str, Any] = {}
    if case.result:
        y = layer(*arrays)
        found["result"] = y[0] if isinstance(y, tuple) else y
    elif list(layer.parameters()):
        found |= dict(sg.grad(weighted_sum)(layer, *arrays).items())
    if case.integers is None and not case.result:
        by_inputs = sg.grad(lambda given: weighted_sum(layer, *given))(arrays)
        found |= {f"input{k}": by_inputs[x] for k, x in enumerate(arrays) if x.dtype.is_float}
    want = {k.removeprefix(f"{name}/"): a for k, a in recorded("modules").items() if k.startswith(f"{name}/")}
    assert found.keys() == want.keys()
    limit = TOLERANCE[device_name] * max(np.abs(a).max() for a in want.values())
    errors = {k: np.abs(found[k].numpy() - a).max() for k, a in want.items()}
    assert max(errors.values()) <= limit, f"errors of {errors}, expected at most {limit}"
