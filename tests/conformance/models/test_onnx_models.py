"""The models of the onnx package whose ops Singe has, compared with the outputs stored with them."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx_devices import DEVICES, ONNX_DATA, check, data_sets, need

from singe.dtypes import DTYPES
from singe.errors import SingeError
from singe.onnx.backend import prepare
from singe.onnx.importer import unsupported_ops
from singe.onnx.model import read_model, read_tensor

RTOL, ATOL = 1e-3, 1e-5
SLOW_DEVICES = ("WEBGPU",)
"""Devices on which the light models take long without a GPU."""
EXCEPTIONS = {
    "light_squeezenet-CPU": "its 1,000 logits are 1e10 each and must be equal to the bit (an ulp is 1,024), or softmax makes them 0 and 1",
}


@lru_cache(maxsize=1)
def small_models() -> dict[str, Path]:
    """The folders of the small models whose ops Singe has."""
    found = {}
    for path in sorted(ONNX_DATA.glob("*/*/model.onnx")):
        try:
            model = read_model(path)
        except SingeError:
            continue
        dtypes = {v.dtype for v in model.graph.inputs}
        if not unsupported_ops(model) and dtypes <= DTYPES.keys():
            found[path.parent.name] = path.parent
    return found


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", small_models())
def test_small_model(name: str, device: str) -> None:
    need(device)
    folder = small_models()[name]
    rep = prepare(folder / "model.onnx", device)
    for inputs, outputs in data_sets(folder):
        check(rep.run(inputs), outputs, RTOL, ATOL)


def light_models() -> list[Any]:
    def marks(name: str, device: str) -> list[pytest.MarkDecorator]:
        slow = [pytest.mark.slow] if device in SLOW_DEVICES else []
        reason = EXCEPTIONS.get(f"{name}-{device}")
        return [*slow, pytest.mark.xfail(reason=reason, strict=False)] if reason else slow

    paths = sorted((ONNX_DATA / "light").glob("*.onnx"))
    return [pytest.param(p, d, id=f"{p.stem}-{d}", marks=marks(p.stem, d)) for p in paths for d in DEVICES]


@pytest.mark.parametrize(("path", "device"), light_models())
def test_light_model(path: Path, device: str) -> None:
    """Whole networks over constant weights; the input is the one that ONNX's own runner makes."""
    need(device)
    rep = prepare(path, device)
    shape = [d for d in rep.model.inputs[0].shape or () if isinstance(d, int)]
    count = int(np.prod(shape))
    (got,) = rep.run((np.arange(count).reshape(shape) / count).astype(np.float32))
    check([got], [np.asarray(read_tensor(path.with_name(f"{path.stem}_output_0.pb")))], RTOL, ATOL)
