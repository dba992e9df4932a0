"""Gradients of every layer, by its inputs and parameters, equal PyTorch's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from grad_cases import CASES, Case, seed, values, weights
from recorded import recorded

import singe as sg
from singe import nn

TOLERANCE = {"numpy": 1e-5, "wasm": 1e-5, "webgpu": 1e-4}
"""The error allowed, relative to the largest value."""
ELSEWHERE = {
    *(f"{kind}Dropout" for kind in ("", "Alpha", "FeatureAlpha")), *(f"Dropout{rank}d" for rank in (1, 2, 3)), "GaussianNoise",
    "TransformerEncoder", "TransformerDecoder", "Sequential", "Module", "LoRA", "WeightNorm", "SpectralNorm", "RotaryEmbedding", "SinusoidalPositions",
    "DeformConv2d", "PackedLinear", "MaxUnpool1d", "MaxUnpool2d", "MaxUnpool3d", "CrossMapLRN2d", "FractionalMaxPool2d", "FractionalMaxPool3d",
}  # fmt: skip
"""Layers that are others in a row, that PyTorch lacks, that are random, that take places, or whose results module_cases.py
compares. Losses have their own tests."""


@pytest.fixture(params=["numpy", *(pytest.param(d, marks=pytest.mark.slow) for d in ("wasm", "webgpu"))])
def device(request: pytest.FixtureRequest) -> sg.Device:
    try:
        return sg.device(request.param)
    except sg.DeviceError as e:
        pytest.skip(f"no {request.param} here: {e}")


def flat(tree: Any) -> list[Any]:
    return [t for part in tree for t in flat(part)] if isinstance(tree, (tuple, list)) else [tree]


def gradients(case: Case, device: sg.Device) -> dict[str, np.ndarray]:
    layer = getattr(nn, case.layer)(*case.arguments, **case.options)
    layer = layer.train() if case.training else layer.eval()
    names = dict(layer.named_parameters())
    given = values(case)
    arrays = {f"input {k}": a for k, a in enumerate(flat(given)) if a.dtype.kind == "f"}
    arrays |= weights({name: t.shape for name, t in names.items()})

    def loss(by: dict[str, sg.Tensor]) -> sg.Tensor:
        number = iter(range(100))

        def placed(part: Any) -> Any:
            if isinstance(part, tuple):
                return tuple(map(placed, part))
            k = next(number)
            return by[f"input {k}"] if part.dtype.kind == "f" else sg.tensor(part, device=device)

        model = layer.with_state({name: by[name] for name in names}, strict=False)
        results = [y for y in flat(model(*placed(given))) if y is not None]
        parts = [(y * sg.tensor(seed(y.shape), device=device)).sum() for y in results]
        return sum(parts[1:], parts[0])

    found = sg.grad(loss)({k: sg.tensor(a, device=device) for k, a in arrays.items()})
    return {k: g.numpy() for k, g in found.items()}


@pytest.mark.parametrize("name", CASES)
def test_gradients_of_layers_equal_pytorchs(name: str, device: sg.Device) -> None:
    found = gradients(CASES[name], device)
    wanted = {k.removeprefix(f"{name}/"): v for k, v in recorded("grads").items() if k.startswith(f"{name}/")}
    assert found.keys() == wanted.keys()
    most = max(np.abs(v).max() for v in wanted.values())
    for key, want in wanted.items():
        error = np.abs(found[key].ravel() - want).max()
        assert error <= TOLERANCE[device.name] * most, f"{key}: {error} of {most}"


def test_every_layer_is_compared() -> None:
    made = {n for n in nn.__all__ if isinstance(getattr(nn, n), type) and issubclass(getattr(nn, n), nn.Module)}
    compared = {case.layer for case in CASES.values()} | ELSEWHERE
    assert not {n for n in made - compared if not n.endswith("Loss")}
