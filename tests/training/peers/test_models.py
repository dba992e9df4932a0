"""Whole models are trained as PyTorch's: losses, gradients, statistics and weights over steps of SGD, on every device."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from model_cases import CASES, RATE, batches
from recorded import recorded

import singe as sg
from singe import nn

TOLERANCE = {"numpy": 1e-5, "wasm": 1e-5, "webgpu": 1e-4}
"""The error allowed, relative to the largest value of all gradients, or all weights, of a step."""


def under(prefix: str) -> dict[str, np.ndarray]:
    """What was recorded under a prefix, by the rest of its name."""
    return {k.removeprefix(prefix): array for k, array in recorded("models").items() if k.startswith(prefix)}


def on(name: str) -> sg.Device:
    try:
        return sg.device(name)
    except sg.DeviceError as e:
        pytest.skip(f"no {name} here: {e}")


def loss_of(model: Any, *batch: sg.Tensor) -> Any:
    *inputs, target = batch
    with nn.observing() as seen:
        value = nn.CrossEntropyLoss()(model(*inputs), target)
    return value, model.with_modules(seen)


def close(got: dict[str, Any], want: dict[str, np.ndarray], tolerance: float) -> None:
    limit = tolerance * max(np.abs(a).max() for a in want.values())
    errors = {name: np.abs(np.asarray(got[name]) - a).max() for name, a in want.items()}
    assert got.keys() == want.keys()
    assert max(errors.values()) <= limit, f"errors of {errors}, expected at most {limit}"


@pytest.mark.parametrize("device_name", [pytest.param(n, marks=pytest.mark.slow) for n in TOLERANCE])
@pytest.mark.parametrize("name", CASES)
def test_models_are_trained_as_pytorchs(name: str, device_name: str) -> None:
    device, tolerance, case = on(device_name), TOLERANCE[device_name], CASES[name]
    model = case.build(nn).with_state(under(f"{name}/first/")).train().to(device)
    step_of = sg.value_and_grad(loss_of, has_aux=True)
    for step, batch in enumerate(batches(case)):
        (loss, after), gradients = step_of(model, *(sg.tensor(a, device=device) for a in batch))
        want = under(f"{name}/{step}/")
        assert abs(float(loss) - want["loss"]) <= tolerance * 2
        if len(want) > 1:
            close(dict(gradients.items()) | {"loss": loss}, want, tolerance)
        model = after.map_parameters(lambda path, t, by=gradients: t - RATE * by[path])
    close(model.state_dict(), under(f"{name}/last/"), tolerance)
