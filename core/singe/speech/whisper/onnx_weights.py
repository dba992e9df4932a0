"""The weights in ONNX files of a Whisper, under Hugging Face's names: exporters leave the names of biases, and those of the layers in the
names of nodes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import numpy as np

from ...errors import FormatError
from ...language.encoder_decoders.onnx_files import ENCODER, FIRST, MERGED
from ...onnx.model import OnnxGraph, OnnxNode, read_model
from ...weights.stored import StoredArray, present

_COPY: Final = re.compile(r"_merged_\d+$")
_PRODUCT: Final = re.compile(r"/(.+)/MatMul")
_ENCODER: Final = "model.encoder."
_POSITIONS: Final = "model.encoder.embed_positions.weight"


def onnx_weights(files: Mapping[str, Path]) -> dict[str, StoredArray]:
    """Those of an encoder and of a decoder. A FormatError if their products are not of floats."""
    found: dict[str, StoredArray] = {}
    for path, prefix in ((files[ENCODER], _ENCODER), (files[MERGED if MERGED in files else FIRST], "")):
        graph = read_model(path).graph
        arrays = {name: x for name, x in graph.initializers.items() if x.dtype.kind == "f" and x.ndim}
        found |= {
            f"{prefix}{_COPY.sub('', name)}": present(x)
            for name, x in arrays.items()
            if "::" not in name and "/" not in name
        }
        for node in _nodes(graph):
            given = [arrays[name] for name in node.inputs if name in arrays]
            named = _PRODUCT.fullmatch(node.name)
            if node.op_type == "MatMul" and named is not None and given:
                found[f"{prefix}{named[1].replace('/', '.')}.weight"] = present(np.ascontiguousarray(given[0].T))
            elif node.op_type == "Add" and prefix and given and given[0].ndim == 2:
                found[_POSITIONS] = present(given[0])
            elif "Integer" in node.op_type or node.op_type.startswith(("Dequantize", "MatMulNBits")):
                raise FormatError(
                    f"{path}: has the op {node.op_type}: weights are taken of files with plain floats; give those, or model.safetensors"
                )
    return found


def _nodes(graph: OnnxGraph) -> Iterator[OnnxNode]:
    """Those of a graph, and of its branches."""
    for node in graph.nodes:
        yield node
        for value in node.attributes.values():
            if isinstance(value, OnnxGraph):
                yield from _nodes(value)
