"""A model's values as onnxruntime computes them, if it is installed; only this module needs it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ...errors import DeviceError, InputError
from ...files.places import local_file


def onnxruntime_here() -> Any:
    """The package, or an error that says how to get it."""
    try:
        import onnxruntime  # noqa: PLC0415
    except ImportError as e:
        raise DeviceError("--against onnxruntime: it is not installed; pip install onnxruntime") from e
    return onnxruntime


def peer_values(path: str, arrays: Mapping[str, np.ndarray], names: Sequence[str]) -> dict[str, np.ndarray]:
    """The values with these names in an ONNX file, computed without optimisations."""
    ort = onnxruntime_here()
    path = str(local_file(path))
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    options.add_session_config_entry("session.model_external_initializers_file_folder_path", str(Path(path).parent))
    try:
        session = ort.InferenceSession(_with_outputs(path, names), options, providers=["CPUExecutionProvider"])
        found = session.run(list(names), dict(arrays))
    except Exception as e:  # onnxruntime's errors have no common base
        raise InputError(f"{path}: onnxruntime cannot run it: {e}") from e
    return dict(zip(names, map(np.asarray, found), strict=True))


def _with_outputs(path: str, names: Sequence[str]) -> bytes:
    """The file with more outputs. A message that occurs twice in a protobuf file is merged: its lists are joined. So a
    second graph follows, which has only the outputs; those that the first one has already are left out."""
    from ...onnx.model import read_model  # noqa: PLC0415

    declared = {v.name for v in read_model(path).graph.outputs}
    outputs = b"".join(_field(12, _field(1, name.encode())) for name in names if name not in declared)
    return Path(path).read_bytes() + _field(7, outputs)


def _field(number: int, data: bytes) -> bytes:
    """A length-delimited field."""
    return bytes((number << 3 | 2,)) + _varint(len(data)) + data


def _varint(value: int) -> bytes:
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes((*out, value))
