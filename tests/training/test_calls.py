"""Methods of Tensor, and functions, called as PyTorch's users call them give what PyTorch gives, with its dtypes: beside recorded
results."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Final

import function_calls
import numpy as np
import pytest
from call_cases import CALLS, OPERANDS, parts

import singe as sg

RECORDED: Final = np.load(Path(__file__).parent / "recorded" / "calls.npz")


def test_a_hundred_methods_are_called() -> None:
    assert len({name for text in CALLS for name in re.findall(r"\.(\w+)\(", text)}) > 100


@pytest.mark.slow
@pytest.mark.parametrize("name", ["numpy", "wasm", "webgpu"])
def test_calls_give_what_pytorch_gives(name: str) -> None:
    try:
        device = sg.device(name)
    except sg.DeviceError as e:
        pytest.skip(f"no {name} here: {e}")
    given = {**OPERANDS, **function_calls.OPERANDS}
    names: dict[str, Any] = {key: sg.tensor(array, array.dtype, device) for key, array in given.items()}
    names |= {"torch": sg, "F": sg, "inf": float("inf")}
    wrong = {text: difference(text, number, names) for number, text in enumerate(CALLS + function_calls.CALLS)}
    assert {text: said for text, said in wrong.items() if said} == {}


def difference(text: str, number: int, names: dict[str, Any]) -> str:
    """How the result of a call differs from PyTorch's; nothing if it does not."""
    try:
        found = parts(eval(text, dict(names)))
    except Exception as e:
        return f"{type(e).__name__}: {e}"
    wanted = [RECORDED[f"{number}/{k}"] for k in range(sum(f.startswith(f"{number}/") for f in RECORDED.files))]
    if len(found) != len(wanted):
        return f"{len(found)} results in place of {len(wanted)}"
    for got, want in zip(found, wanted, strict=True):
        array: Any = got.numpy() if isinstance(got, sg.Tensor) else np.asarray(got)
        if (array.shape, array.dtype) != (want.shape, want.dtype):
            return f"{array.dtype}{array.shape} in place of {want.dtype}{want.shape}"
        if not np.allclose(array, want, rtol=2e-5, atol=2e-5, equal_nan=True):
            return f"{array} in place of {want}"
    return ""
