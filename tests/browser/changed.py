"""Bundles that a test changes."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from singe.dtypes import float32
from singe.graph import Builder, Graph
from singe.shapes import size

Edit = Callable[[dict[str, Any]], Any]


def edited(source: Path, folder: Path, edit: Edit) -> Path:
    """A copy of a bundle in which the manifest is changed."""
    shutil.copytree(source, folder, dirs_exist_ok=True)
    manifest = json.loads((folder / "model.json").read_text())
    edit(manifest)
    (folder / "model.json").write_text(json.dumps(manifest))
    return folder


def changed_graph() -> Graph:
    b = Builder()
    x = b.input("x", (size("N"), 3), float32)
    return Graph((x,), (b.add(x, b.const(np.array([1, 2, 3], np.float32))),), ("y",))
