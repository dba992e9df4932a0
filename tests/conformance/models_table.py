"""Writes docs/models.md: the families of models that tests run.

`python tests/conformance/models_table.py` writes the file; test_families.py checks that it is current.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))

from networks.families import DOMAINS, Family

PAGE: Final = Path(__file__).parents[2] / "docs" / "models.md"
HEAD: Final = """# Models

The families of models that are tested, from ONNX files as PyTorch's two exporters, Optimum, tf2onnx, paddle2onnx and others
write them. `tests/conformance/models_table.py` writes this page from tests/support/networks/families.

Each family is a small network with random weights and the family's nodes. It runs on `numpy`, `wasm` and `webgpu`, and as a
bundle in a page of Chromium, at several sizes from one compilation, and agrees with onnxruntime. BERT, ModernBERT, T5, ViT,
Whisper, GPT-2 and Llama are tested by tests/conformance/models/test_transformers.py, with what onnxruntime's optimiser makes of
them; whole models by tests/conformance/models/test_real_models.py.
"""


def page() -> str:
    parts = [HEAD]
    for domain, families in DOMAINS.items():
        rows = [f"| {f.models} | {f.shape} | {_limits(f)} |" for f in families.values()]
        parts.append(
            "\n".join([f"## {domain}\n", "| models | what is tested | in a page |", "| --- | --- | --- |", *rows, ""])
        )
    return "\n".join(parts)


def _limits(f: Family) -> str:
    if f.host:
        return f"no: {f.host}"
    shapes = (f"`{name}`" for name in f.numbers)
    return f"yes, with numbers for the shape of {', '.join(shapes)} (`--input-shape`)" if f.numbers else "yes"


if __name__ == "__main__":
    PAGE.write_text(page())
