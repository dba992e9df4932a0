"""The bundle of a quantised model is as small as the model: its weights stay integers, and targets share them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from networks.quantised_nets import WAYS, plain, quantised

from singe.compiler.compile import compile_graph
from singe.compiler.target import find_target
from singe.errors import FormatError
from singe.model.files import load
from singe.model.model import Model
from singe.program.bundle_reader import read_bundled
from singe.program.program import ProgramData
from singe.program.weight_codecs import StoredPart, decode, places, read_piece
from singe.tools.export.bundle import Bundle, draft, export
from singe.tools.export.targets import page_targets

MODELS = Path(__file__).parents[4] / "shared" / "models"
TARGETS = tuple(page_targets())


def model(data: bytes, folder: Path) -> Model:
    path = folder / "model.onnx"
    path.write_bytes(data)
    return load(path, "numpy")


def files_of(bundle: Bundle, targets: Sequence[str] = TARGETS) -> dict[str, bytes]:
    """What is of these targets, and the manifest: all but scripts and the page."""
    found = {"model.json": bundle.files["model.json"]}
    for name in targets:
        target = bundle.manifest["targets"][name]
        modules = target["modules"]
        for entry in (*target["weights"], *([modules] if "file" in modules else modules.values())):
            found[entry["file"]] = bundle.files[entry["file"]]
    return found


def size(bundle: Bundle) -> int:
    return sum(map(len, files_of(bundle, tuple(bundle.manifest["targets"])).values()))


def constants(program: ProgramData) -> list[bytes]:
    """The bytes of all weights, in the order of the buffers."""
    every = [b for p in program.programs for b in p.buffers if b.place[0] == "weights"]
    return [program.view(b).tobytes() for b in every]


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
def test_a_bundle_is_as_small_as_its_model(way: str, tmp_path: Path) -> None:
    data = quantised(way, 256)
    given = model(data, tmp_path)
    for name in TARGETS:
        assert size(draft(given, [name]).alone()) <= 1.1 * len(data), name
    both = draft(given).alone()
    assert size(both) <= 1.2 * len(data)


@pytest.mark.slow
@pytest.mark.skipif(not (MODELS / "minilm_l6_v2_int8.onnx").exists(), reason="needs ../shared/models")
def test_a_bundle_is_as_small_as_a_real_model() -> None:
    path = MODELS / "minilm_l6_v2_int8.onnx"
    given, whole = load(path, "numpy"), path.stat().st_size
    for name in TARGETS:
        assert size(draft(given, [name]).alone()) <= 1.1 * whole, name
    assert size(draft(given).alone()) <= 1.2 * whole


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
def test_the_weights_are_those_of_the_kernels_bit_by_bit(way: str, tmp_path: Path) -> None:
    given = model(quantised(way, 70), tmp_path)
    bundle = export(given, tmp_path / "out")
    for name, target in page_targets().items():
        found = read_bundled(tmp_path / "out", bundle.manifest, name)
        assert constants(found) == constants(compile_graph(given.graph(), find_target(target)))


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
def test_a_page_fetches_nothing_that_only_the_other_target_needs(way: str, tmp_path: Path) -> None:
    """Each target's files hold as much as those of a bundle for it alone, but for zeros between arrays."""
    given = model(quantised(way, 70), tmp_path)
    both = draft(given).alone()
    for name in TARGETS:
        alone = draft(given, [name]).alone()
        fetched, wanted = (sum(w["bytes"] for w in b.manifest["targets"][name]["weights"]) for b in (both, alone))
        assert fetched <= 1.02 * wanted
    wasm, webgpu = ({w["file"] for w in both.manifest["targets"][name]["weights"]} for name in TARGETS)
    assert wasm & webgpu


@pytest.mark.slow
def test_a_model_of_floats_is_stored_as_before(tmp_path: Path) -> None:
    """No file needs decoding, and both targets together take no more than each alone."""
    given = model(plain(64), tmp_path)
    both = draft(given).alone()
    assert not any("parts" in w for t in both.manifest["targets"].values() for w in t["weights"])
    alone = [draft(given, [name]).alone() for name in TARGETS]
    for bundle, name in zip(alone, TARGETS, strict=True):
        program = compile_graph(given.graph(), find_target(page_targets()[name]))
        weights = [bundle.files[w["file"]] for w in bundle.manifest["targets"][name]["weights"]]
        assert b"".join(weights) == program.weights.tobytes()
    together = size(both)
    assert together < sum(map(size, alone)) - len(alone[0].files["model.json"]) // 2


# --- the order of elements --------------------------------------------------------------------------------------------


def test_digits_say_where_an_index_goes() -> None:
    assert places(7, [(2, 3), (2, 100), (2, 1000)]).tolist() == [0, 3, 100, 103, 1000, 1003, 1100]
    assert places(1, [(1, 0)]).tolist() == [0]


def test_elements_and_sums_go_where_the_order_says() -> None:
    values = np.arange(-6, 6, dtype=np.int8).reshape(3, 4)
    part = StoredPart("bytes", 8, values, order=[[(3, 1)], [(2, 4), (2, 16)]], sums=8)
    block = decode([part], 48)
    for row in range(3):
        for column in range(4):
            at = 8 + row + 4 * (column % 2) + 16 * (column // 2)
            assert block.view(np.int8)[at] == values[row, column]
            assert block[at - row + 8 : at - row + 12].view(np.int32)[0] == values[:, column].sum()
    entry = {"file": "w", "bytes": 12, "decoded": 48, "parts": [part.facts(0)]}
    assert read_piece(entry, part.stored()).tobytes() == block.tobytes()


@pytest.mark.parametrize(
    "changed",
    [
        {"order": [[[3, 1]]]}, {"order": [[[2, 1]], [[4, 4]]]}, {"order": [[[3, 1]], [[4, 400]]]}, {"order": None},
        {"order": [[[3, -1]], [[4, 4]]]}, {"order": [[[3, 1 << 47]], [[4, 1 << 47]]]}, {"sums": 6}, {"sums": 4000},
        {"sums": -4}, {"encoding": "integers"}, {"at": 2}, {"order": [[[3, 1]], [[4, 3]]]},
    ],
)  # fmt: skip
def test_a_hostile_order_is_refused(changed: dict[str, Any]) -> None:
    part = {"encoding": "bytes", "at": 0, "shape": [3, 4], "order": [[[3, 1]], [[4, 4]]], "sums": 16, **changed}
    entry = {"file": "w", "bytes": 12, "decoded": 48, "parts": [part]}
    with pytest.raises((FormatError, ValueError, TypeError)):
        read_piece(entry, bytes(12))
