"""Writes `tflite_answers.npz`: what TensorFlow Lite's interpreter (the package ai-edge-litert) gives for each of `tflite_cases.py`. Run it beside Singe:

python -m venv litert && litert/bin/pip install ai-edge-litert
PYTHONPATH=core:tests/support litert/bin/python tests/conformance/tflite/make_tflite_answers.py
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
from tflite_cases import CASES, Case


def answers(case: Case) -> list[np.ndarray]:
    """The outputs of the interpreter with its default kernels."""
    from ai_edge_litert.interpreter import Interpreter  # noqa: PLC0415 # pyright: ignore[reportMissingImports]

    engine: Any = Interpreter(model_content=case.data, num_threads=1)
    engine.allocate_tensors()
    for told, array in zip(engine.get_input_details(), case.inputs, strict=True):
        engine.set_tensor(told["index"], array)
    engine.invoke()
    return [engine.get_tensor(told["index"]).copy() for told in engine.get_output_details()]


if __name__ == "__main__":
    found: dict[str, np.ndarray] = {}
    for name, case in CASES.items():
        try:
            made = answers(case)
        except (RuntimeError, ValueError) as e:
            print(f"{name}: {str(e).splitlines()[0][:150]}", file=sys.stderr)
            continue
        found |= {f"{name}/{k}": y for k, y in enumerate(made)}
    np.savez_compressed(Path(__file__).with_name("tflite_answers.npz"), allow_pickle=False, **found)
