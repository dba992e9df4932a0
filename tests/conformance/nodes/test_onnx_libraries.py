"""ONNX's node cases over the arrays of PyTorch, JAX and CuPy. JAX compiles each for 0.15 s, so it takes every eighth case."""

from __future__ import annotations

from typing import Any, Final

import pytest
from test_onnx_nodes import EXCEPTIONS, cases, check_case

from singe.errors import DeviceError
from singe.model.model import Model
from singe.onnx.backend import BackendRep
from singe.onnx.source import OnnxSource
from singe.runtime.devices import device as open_device

EVERY: Final = {"torch:cpu": 1, "jax": 8, "cupy": 1}
QUICK: Final = 80
"""Of these cases of a library `make test` takes one."""


def parameters() -> list[Any]:
    names = [name for name in cases() if ("CPU", name) not in EXCEPTIONS]
    return [
        pytest.param(
            library, name, id=f"{library}-{name}", marks=pytest.mark.slow if k % QUICK == 0 else pytest.mark.full
        )
        for library, every in EVERY.items()
        for k, name in enumerate(names[::every])
    ]


@pytest.mark.parametrize(("library", "name"), parameters())
def test_node_of_a_library(library: str, name: str) -> None:
    try:
        on = open_device(library)
    except DeviceError as e:
        pytest.skip(f"no {library} here: {e}")
    case, model, data_sets = cases()[name]
    rep = BackendRep(Model(OnnxSource(model), on, model.path))
    for inputs, outputs in data_sets:
        check_case(case, rep.run(inputs), outputs)
