"""Bundles of quantised models, whose targets share their weights, in node and in Chromium, on both devices."""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest
from bundles import RUN, packed, unpacked
from networks.quantised_nets import WAYS, picture, quantised
from pages import node, open_page

from singe.model.files import load
from singe.program.weight_codecs import read_piece
from singe.tools.export.bundle import export

WIDTH: Final = 70
DECODE: Final = """
const { decoder } = await import(given.module);
return given.cases.map(({ entry, data, chunk }) => {
  const out = new Uint8Array(entry.decoded);
  const bytes = Uint8Array.from(atob(data), (c) => c.charCodeAt(0));
  try {
    const take = decoder(entry, (part, at) => out.set(part.subarray(0, out.length - at), at));
    for (let at = 0; at < bytes.length; at += chunk) take(bytes.slice(at, at + chunk));
  } catch ({ code, message }) {
    return `${code}: ${message}`;
  }
  return btoa(Array.from(out, (byte) => String.fromCharCode(byte)).join(""));
});
"""
MODULE: Final = (Path(__file__).parents[3] / "static" / "loading" / "singe-decode.js").as_uri()


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("quantised")
    for way in WAYS:
        (folder / "model.onnx").write_bytes(quantised(way, WIDTH))
        export(load(folder / "model.onnx", "numpy"), folder / way.replace(" ", "-"))
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
def test_it_decodes_bit_by_bit_what_python_does(root: Path, way: str) -> None:
    """In chunks of any length."""
    folder = root / way.replace(" ", "-")
    targets = json.loads((folder / "model.json").read_text())["targets"]
    entries = [w for t in targets.values() for w in t["weights"] if "parts" in w]
    assert any("order" in p for w in entries for p in w["parts"])
    data = [(folder / w["file"]).read_bytes() for w in entries]
    for chunk in (1 << 20, 1000, 7):
        cases = [
            {"entry": w, "data": b64encode(x).decode(), "chunk": chunk} for w, x in zip(entries, data, strict=True)
        ]
        for found, w, x in zip(node(DECODE, module=MODULE, cases=cases), entries, data, strict=True):
            assert b64decode(found) == read_piece(w, x).tobytes(), w["file"]


GOOD: Final = {"encoding": "bytes", "at": 0, "shape": [3, 4], "order": [[[3, 1]], [[4, 4]]], "sums": 16}
BAD: Final[tuple[dict[str, Any], ...]] = (
    {"order": [[[3, 1]]]}, {"order": [[[2, 1]], [[4, 4]]]}, {"order": [[[3, 1]], [[4, 400]]]}, {"order": "toString"},
    {"order": [[[3, -1]], [[4, 4]]]}, {"order": [[[3, 1 << 47]], [[4, 1 << 47]]]}, {"order": [[[3]], [[4, 4]]]},
    {"order": [[[3, 1]], [[0, 4]]]}, {"sums": 6}, {"sums": 4000}, {"sums": -4}, {"sums": "16"}, {"zero": 3},
    {"encoding": "integers"}, {"encoding": "words"}, {"at": 2}, {"order": [[[3, 1]], [[4, 3]]]}, {"scales": [1, 4]},
    {"encoding": "int8", "sums": None, "zero": 1.5}, {"encoding": "int8", "sums": None, "zero": 1e9},
    {"shape": [1 << 40, 4]},
)  # fmt: skip


def test_hostile_orders_are_refused() -> None:
    parts = [GOOD, *({**GOOD, **bad} for bad in BAD)]
    cases = [
        {"entry": {"file": "w", "bytes": 12, "decoded": 48, "parts": [p]}, "data": b64encode(bytes(12)).decode(),
         "chunk": 12}
        for p in ({k: v for k, v in p.items() if v is not None} for p in parts)
    ]  # fmt: skip
    good, *found = node(DECODE, module=MODULE, cases=cases)
    assert b64decode(good) == bytes(48)
    for bad, told in zip(BAD, found, strict=True):
        assert told.startswith("format: w: "), (bad, told)


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
def test_in_node(root: Path, way: str) -> None:
    url = (root / way.replace(" ", "-")).as_uri()
    check(way, node(RUN, url=url, device="wasm", cases=[packed({"x": picture()})]))


@pytest.mark.slow
@pytest.mark.parametrize("device", ["wasm", "webgpu"])
def test_in_chromium(browser: Any, root: Path, device: str) -> None:
    with open_page(browser, root) as page:
        for way in WAYS:
            url = f"/bundles/{way.replace(' ', '-')}"
            check(way, page.run(RUN, url=url, device=device, cases=[packed({"x": picture()})]))


def check(way: str, found: Any) -> None:
    """The answers are those of NumPy, but for values that are rounded to the other integer where they are quantised."""
    (got,) = unpacked(found[0]).values()
    wanted = load(quantised(way, WIDTH), "numpy")(picture())
    off = np.abs(got - wanted) / np.abs(wanted).max()
    assert got.shape == wanted.shape
    assert off.max() < 0.02
    assert np.median(off) < 1e-3
