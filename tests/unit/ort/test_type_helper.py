"""onnxruntime.transformers.io_binding_helper names the types of a session's inputs and outputs, as optimum asks for them."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from calls import SEQUENCE, TWO, session, typed
from onnx import TensorProto as T

import singe as sg
from singe import ort
from singe.ort.transformers.io_binding_helper import TypeHelper

TYPES: dict[int, Any] = {
    T.FLOAT: np.float32, T.DOUBLE: np.float64, T.FLOAT16: np.float16, T.INT64: np.int64,
    T.INT32: np.int32, T.INT8: np.int8, T.UINT8: np.uint8, T.UINT16: np.uint16, T.BOOL: np.bool_,
}  # fmt: skip


@pytest.mark.parametrize("kind", TYPES, ids=T.DataType.Name)
def test_types_of_inputs_by_numpys_and_pytorchs_names(kind: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """PyTorch's types have the names of NumPy's; its module here has no others."""
    s = session(ort, typed(kind))
    text = TypeHelper.get_input_type(s, "x")
    assert text == TypeHelper.get_output_type(s, "z") == s.get_inputs()[0].type
    assert np.dtype(TypeHelper.ort_type_to_numpy_type(text)) == TYPES[kind]
    assert TypeHelper.get_io_numpy_type_map(s) == dict.fromkeys("xz", TypeHelper.ort_type_to_numpy_type(text))
    name = np.dtype(TYPES[kind]).name
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(**{name: f"torch.{name}"}))
    assert TypeHelper.ort_type_to_torch_type(text) == f"torch.{name}"


def test_what_has_no_such_type_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(sg.InputError, match="input name q not found; the inputs are x, y"):
        TypeHelper.get_input_type(session(ort, TWO), "q")
    with pytest.raises(ValueError, match="expected the type of a tensor"):
        TypeHelper.ort_type_to_numpy_type(session(ort, SEQUENCE).get_inputs()[0].type)
    with pytest.raises(ValueError, match="NumPy has no type"):
        TypeHelper.ort_type_to_numpy_type("tensor(bfloat16)")
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace())
    with pytest.raises(sg.InputError, match=r"no torch\.float32"):
        TypeHelper.ort_type_to_torch_type("tensor(float)")
