"""Bundles for all browser tests, made once, and what they need of the machine."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from bundles import GRAPHS, MODELS, model_graph, write_bundle


@pytest.fixture(scope="session")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The folder of a bundle by name: a graph of our own, or a model of the shared folder."""
    root = tmp_path_factory.mktemp("bundles")

    def made(name: str) -> Path:
        if name not in GRAPHS and not (MODELS / f"{name}.onnx").exists():
            pytest.skip(f"no model {name} in {MODELS}")
        folder = root / name
        if not folder.exists():
            write_bundle(GRAPHS[name]() if name in GRAPHS else model_graph(name), folder, name)
        return folder

    return made
