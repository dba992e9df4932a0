"""What a session says of its model: NodeArgs, metadata, and the names of types, as `tensor(float)`."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import field
from typing import Any, Final

import numpy as np

from ..dtypes import DTYPES, DType
from ..late_dataclass import dataclass
from ..onnx.model import OnnxType, OnnxValue
from ..onnx.tensors import ELEMENTS
from ..shapes import Size
from .errors import ValueKindError

_RENAMED: Final = {
    "float32": "float", "float64": "double", "float4_e2m1fn": "float4e2m1", "float6_e2m3fn": "float6e2m3",
    "float6_e3m2fn": "float6e3m2", "float8_e4m3fn": "float8e4m3fn", "float8_e4m3fnuz": "float8e4m3fnuz", "float8_e5m2": "float8e5m2",
    "float8_e5m2fnuz": "float8e5m2fnuz", "float8_e8m0fnu": "float8e8m0",
}  # fmt: skip
"""Singe's name of an element type ↦ onnxruntime's, where they differ."""
CODES: Final[Mapping[str, int]] = {element.name: code for code, element in ELEMENTS.items()}
"""The name of an element type ↦ its number in ONNX."""


@dataclass(frozen=True, eq=False)
class NodeArg:
    """An input or output: its name, its type, and its shape, with names or None for sizes that a run decides."""

    name: str
    type: str
    shape: list[int | str | None]


@dataclass(frozen=True)
class ModelMetadata:
    """What a model's file says of itself."""

    producer_name: str = ""
    graph_name: str = ""
    domain: str = ""
    description: str = ""
    graph_description: str = ""
    version: int = 0
    custom_metadata_map: dict[str, str] = field(default_factory=dict)


def tensor_type(dtype: str | None) -> str:
    """The type of a tensor with such elements, as onnxruntime writes it."""
    return f"tensor({_RENAMED.get(dtype or '', dtype)})"


def type_text(kind: OnnxType | None) -> str:
    """A type of a file, as onnxruntime writes it."""
    if kind is None:
        return ""
    if kind.kind == "tensor":
        return tensor_type(kind.dtype)
    if kind.kind == "sparse_tensor":
        return f"sparse_{tensor_type(kind.dtype)}"
    if kind.kind == "map":
        return f"map({_RENAMED.get(kind.dtype or '', kind.dtype)},{type_text(kind.of)})"
    return f"{'seq' if kind.kind == 'sequence' else kind.kind}({type_text(kind.of)})"


def node_arg(value: OnnxValue, known: Sequence[int | str | Size] | None = None, names: Container[str] = ()) -> NodeArg:
    """An input or output of a file. known: the shape that the model's ops give it, which has numbers where the file has names, and names
    of inputs' sizes, `names`, where the file says nothing."""
    kind, shape = value.type, value.shape
    if kind is not None and kind.kind == "optional" and kind.of is not None:
        shape = kind.of.shape
    if known is None or (kind is not None and kind.kind != "tensor"):
        merged = list(shape or ())
    elif shape is None:
        merged = [d if isinstance(d, int) else str(d) if str(d) in names else None for d in known]
    else:
        merged = (
            [k if isinstance(k, int) else d for d, k in zip(shape, known, strict=True)]
            if len(shape) == len(known)
            else list(shape)
        )
    return NodeArg(value.name, type_text(kind), merged)


def element_of(element_type: Any) -> DType:
    """The DType that a program names by a NumPy type or by ONNX's number."""
    if isinstance(element_type, int) and not isinstance(element_type, bool):
        name = ELEMENTS[element_type].name if element_type in ELEMENTS else ""
    else:
        named: Any = element_type
        try:
            name = np.dtype(named).name
        except TypeError:
            name = ""
    if name not in DTYPES:
        raise ValueKindError(
            f"element_type: got {element_type!r:.80}, expected a NumPy type such as numpy.float32, or one of ONNX's numbers, 1 to {max(ELEMENTS)}"
        )
    return DTYPES[name]
