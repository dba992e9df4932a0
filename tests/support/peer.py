"""onnxruntime, beside which tests run models: on the CPU, on one thread, without its warnings."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

onnxruntime = pytest.importorskip("onnxruntime")


def session(model: Any, as_written: bool = False) -> Any:
    """A session of a ModelProto, of bytes, or of a file. as_written: node by node, without its optimisations."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    if as_written:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    given = model if isinstance(model, bytes) else str(model) if isinstance(model, (str, Path)) else None
    data = model.SerializeToString() if given is None else given
    return onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])


def answers(opened: Any, feeds: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The outputs of a session, by name."""
    names = [output.name for output in opened.get_outputs()]
    return dict(zip(names, opened.run(names, dict(feeds)), strict=True))
