"""Small networks as onnxruntime's tools quantise them, beside exact arithmetic on every device, for several batch sizes.

A rounding that falls the other way moves a quantised value by a step, and what is computed from it by a few.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx_devices import DEVICES, need

from singe import load

pytest.importorskip("onnxruntime.quantization")
import onnx
from quantised_models import FORMS, NETWORKS, check_quantised, expected_quantised, inputs_of, quantised


@pytest.fixture(scope="module", params=[(n, f) for n in NETWORKS for f in FORMS], ids=" ".join)
def made(request: Any, tmp_path_factory: pytest.TempPathFactory) -> tuple[onnx.ModelProto, bytes]:
    network, form = request.param
    model = NETWORKS[network]()
    folder: Path = tmp_path_factory.mktemp("quantised")
    return model, quantised(model, form, folder)


@pytest.mark.parametrize("device", DEVICES)
def test_model(made: tuple[onnx.ModelProto, bytes], device: str) -> None:
    need(device)
    plain, model = made
    ours = load(model, DEVICES[device])
    for x, wanted in expected_quantised(plain, model):
        check_quantised(np.asarray(ours(x)), wanted)


def test_products_are_of_integers_on_wasm(made: tuple[onnx.ModelProto, bytes]) -> None:
    """Those with weights that are large enough."""
    need("WASM")
    plain, model = made
    kernels = load(model, "wasm").program({"x": inputs_of(plain, 1).shape}).data.kernels
    assert sum("_integers" in k.label for k in kernels) >= 2
