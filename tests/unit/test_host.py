"""What runs on the host: the closed list in compiler/host.py, and what a page has of it."""

from __future__ import annotations

import re

import pytest

from singe.compiler.host import IN_SCRIPTS
from singe.dtypes import float32, float64
from singe.errors import InputError
from singe.graph import Builder, Graph
from singe.model.model import Model
from singe.ops import ROWS, Opaque
from singe.runtime.assets import static_folder
from singe.tools.export import make_bundle

NOT_IN_SCRIPTS: dict[str, str] = {}
"""Opaque rows that a page cannot run without Python ↦ why."""


def test_pages_have_every_opaque_op() -> None:
    text = (static_folder() / "singe-host.js").read_text("utf-8")
    table = text[text.index("export const OPS = {") :]
    assert set(re.findall(r"^  (\w+)[:,]", table, re.MULTILINE)) == IN_SCRIPTS
    assert {name for name, row in ROWS.items() if isinstance(row, Opaque)} == {
        name for name in IN_SCRIPTS if isinstance(ROWS[name], Opaque)
    } | NOT_IN_SCRIPTS.keys()


def test_a_bundle_of_what_a_page_cannot_run_is_refused() -> None:
    """Wasm computes in float64, and a page has top_k of it; elsewhere all such ops are named."""
    b = Builder()
    x = b.input("x", (4,), float32)
    wide = b.cast(x, to=float64)
    model = Model(Graph((x,), (b.exp(wide), b.top_k(wide, axis=0, k=2, largest=True)[0]), ("y", "z")), "numpy")
    assert make_bundle(model, ["wasm"]).manifest["targets"].keys() == {"wasm"}
    with pytest.raises(InputError, match=r"webgpu.*cast \(wgsl does not compute float64\); exp \(wgsl.*Python") as e:
        make_bundle(model, ["webgpu"])
    assert "top_k" not in str(e.value)
