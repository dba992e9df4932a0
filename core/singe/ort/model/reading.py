"""The model of a session's file, decoded."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final

import numpy as np

from ...dtypes import own
from ...onnx.importer import declared_inputs
from ...onnx.model import FORMAT, OnnxModel, OnnxValue
from ...onnx.tensors import Files
from ...onnx.wire import INT64, TEXT, Format, Schema, many, one
from ..descriptions import ModelMetadata
from .interface import Interface

OVERRIDABLE_SINCE: Final = 4
"""The version of ONNX's format since which an input with a value in the file may be given another one."""


def decoded(data: memoryview, name: str, folder: Path | None, beside: Mapping[str, bytes]) -> OnnxModel:
    """The model of these bytes. name: for errors. folder: where the files are that it refers to. beside: bytes of such files by name."""
    files = Files(folder)
    files.by_location.update({k: memoryview(v) for k, v in beside.items()})
    return FORMAT.decode(data, "ModelProto", name, files)


def interface_of(model: OnnxModel, data: memoryview, name: str) -> Interface:
    """What a model says of itself; data: its bytes."""
    required, graph = declared_inputs(model), model.graph
    others = [v for v in graph.inputs if v.name not in required] if model.ir_version >= OVERRIDABLE_SINCE else []
    metadata = _METADATA.decode(data, "ModelProto", name)
    return Interface(tuple(required.values()), tuple(others), graph.outputs, model.files, metadata)


def with_sizes(model: OnnxModel, sizes: Mapping[str, int]) -> OnnxModel:
    """The model with numbers for the sizes of these names."""
    if not sizes:
        return model

    def sized(value: OnnxValue) -> OnnxValue:
        if value.type is None or value.shape is None:
            return value
        shape = tuple(sizes.get(d, d) if isinstance(d, str) else d for d in value.shape)
        return replace(value, type=replace(value.type, shape=shape))

    graph = model.graph
    made = replace(graph, inputs=tuple(map(sized, graph.inputs)), outputs=tuple(map(sized, graph.outputs)))
    return replace(model, graph=made)


def with_weights(model: OnnxModel, weights: Mapping[str, np.ndarray]) -> OnnxModel:
    """The model with these weights in place of those of its file."""
    if not weights:
        return model
    found = {**model.graph.initializers, **{name: own(array) for name, array in weights.items()}}
    return replace(model, graph=replace(model.graph, initializers=found))


UNVERSIONED: Final = (1 << 63) - 1
"""What onnxruntime says of a model that names no version of its own."""
_METADATA: Final = Format(
    {
        "ModelProto": Schema(
            lambda m, _, __: ModelMetadata(
                m.get("producer_name", ""),
                m.get("graph", ("", ""))[0],
                m.get("domain", ""),
                m.get("doc_string", ""),
                m.get("graph", ("", ""))[1],
                m.get("model_version", UNVERSIONED),
                dict(m.get("metadata_props", ())),
            ),
            {
                2: one("producer_name", TEXT),
                4: one("domain", TEXT),
                5: one("model_version", INT64),
                6: one("doc_string", TEXT),
                7: one("graph", "GraphProto"),
                14: many("metadata_props", "StringStringEntryProto"),
            },
        ),
        "GraphProto": Schema(
            lambda m, _, __: (m.get("name", ""), m.get("doc_string", "")),
            {2: one("name", TEXT), 10: one("doc_string", TEXT)},
        ),
        "StringStringEntryProto": Schema(
            lambda m, _, __: (m.get("key", ""), m.get("value", "")), {1: one("key", TEXT), 2: one("value", TEXT)}
        ),
    }
)
"""The fields of a model's file that describe it; the rest is skipped."""
