"""onnxruntime.transformers.io_binding_helper: the types of a session's inputs and outputs, as NumPy's and as PyTorch's."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from importlib import import_module
from typing import Any, Final

import numpy as np

from ...dtypes import DTYPES, DType, string
from ...errors import InputError
from ..descriptions import NodeArg, tensor_type
from ..session import InferenceSession

_DTYPES: Final[Mapping[str, DType]] = {tensor_type(name): kind for name, kind in DTYPES.items() if kind is not string}


class TypeHelper:
    """Types by onnxruntime's texts, as `tensor(float)`."""

    @staticmethod
    def get_input_type(ort_session: InferenceSession, name: str) -> str:
        """The type of an input."""
        return _named("input", ort_session.get_inputs(), name).type

    @staticmethod
    def get_output_type(ort_session: InferenceSession, name: str) -> str:
        """The type of an output."""
        return _named("output", ort_session.get_outputs(), name).type

    @staticmethod
    def ort_type_to_numpy_type(ort_type: str) -> type[np.generic]:
        """NumPy's type of the elements."""
        found = _dtype(ort_type)
        if found.held:
            raise InputError(f"{ort_type} not found: NumPy has no type of these elements")
        return found.numpy.type

    @staticmethod
    def ort_type_to_torch_type(ort_type: str) -> Any:
        """PyTorch's type of the elements."""
        name = _dtype(ort_type).name
        found = getattr(import_module("torch"), name, None)
        if found is None:
            raise InputError(f"{ort_type}: this PyTorch has no torch.{name}")
        return found

    @staticmethod
    def get_io_numpy_type_map(ort_session: InferenceSession) -> dict[str, type[np.generic]]:
        """The name of each input and output ↦ NumPy's type of its elements."""
        ends = (*ort_session.get_inputs(), *ort_session.get_outputs())
        return {end.name: TypeHelper.ort_type_to_numpy_type(end.type) for end in ends}


def _named(what: str, ends: Iterable[NodeArg], name: str) -> NodeArg:
    found = {end.name: end for end in ends}
    if name not in found:
        raise InputError(f"{what} name {name} not found; the {what}s are {', '.join(found) or 'none'}")
    return found[name]


def _dtype(ort_type: str) -> DType:
    if ort_type not in _DTYPES:
        raise InputError(f"{ort_type} not found; expected the type of a tensor of numbers, as tensor(float)")
    return _DTYPES[ort_type]
