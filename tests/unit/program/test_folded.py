"""Lists of a bundle's manifest in which repeated rows are written once."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import singe as sg
from singe.errors import InputError
from singe.program.folded import folded, repeated, unfolded
from singe.tools.export import bundle

SCRIPT = Path(__file__).parents[3] / "static" / "program" / "singe-folded.js"
LAYERS = 12


def program(layers: int = LAYERS) -> dict[str, Any]:
    """Of layers that differ in where their weights are, between a beginning and an end."""

    def buffer(name: str, kind: str, number: int) -> dict[str, Any]:
        return {"name": name, "shape": [[[1, "T"]], 8], "place": [kind, number]}

    buffers = [buffer("ids", "input", 0)]
    words = [3, 1, 4]
    for k in range(layers):
        buffers += [buffer("words", "weights", 256 * 7 * k), buffer("scale", "weights", 256 * (7 * k + 5))]
        buffers += [buffer(f"{part}", "slot", j) for j, part in enumerate(("norm", "product", "sum", "gate"))]
        words += [0, k % 5, 9 * k, 9 * k + 4, 17, 2 * k, 0, 1, 2]
    part = {"buffers": [*buffers, buffer("y", "output", 0)], "words": [*words, 7, 7]}
    return {**part, "slots": 4, "specialised": [{**part, "sizes": {"T": 1}}]}


def test_rows_that_repeat_are_written_once() -> None:
    whole = program()
    short = folded(whole)
    assert unfolded(short) == whole
    assert len(short["buffers"]) < len(program(4)["buffers"])
    assert len(folded(program(4 * LAYERS))["buffers"]) == len(short["buffers"])


WRONG = (
    [1], [2, [0] * 9], [0, [1]], [1, []], [1 << 30, [1, 1]], [-1, [1]], [1.5, [1, 1]], ["2", [1]], [2, "12"], [1, ["1"]], [1, [0.5]], [1, [1 << 60]],
)  # fmt: skip


@pytest.mark.parametrize("row", WRONG)
def test_what_cannot_be_unfolded_is_refused(row: Any) -> None:
    with pytest.raises(ValueError, match=r"repeat|unpack"):
        unfolded({"buffers": [], "words": [1, 2, row]})


def test_all_lists_together_have_a_bound() -> None:
    part = {"buffers": [], "words": [1, [1 << 21, [0]]]}
    with pytest.raises(ValueError, match="at most"):
        unfolded({**part, "specialised": [part, part]})


@pytest.mark.slow
def test_an_export_folds_no_more_than_readers_unfold(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def layers(x: sg.Tensor) -> sg.Tensor:
        for k in range(24):
            x = (x @ np.full((8, 8), k / 64, np.float32)).softmax()
        return x

    model = sg.Model.of(layers, {"x": (2, 8)}, "numpy")
    monkeypatch.setattr(bundle, "WORTH_A_TRIP", 0)

    def exported(*targets: str) -> dict[str, Any]:
        sg.export(model, tmp_path, targets or ["wasm"])
        return json.loads((tmp_path / "model.json").read_bytes())

    both = exported("wasm", "webgpu")["targets"]
    assert {k: entry["program"]["target"] for k, entry in both.items()} == {"wasm": "wasm", "webgpu": "wgsl"}
    x = np.linspace(-1, 1, 16, dtype=np.float32).reshape(2, 8)
    np.testing.assert_allclose(sg.load(tmp_path, "wasm")(x), model(x), rtol=1e-5)
    manifest = exported()
    assert not (tmp_path / "program-wasm.json").exists()
    assert manifest["targets"]["wasm"]["program"]["target"] == "wasm"
    assert manifest["folded"]
    monkeypatch.setattr(bundle, "MAX_ROWS", repeated(manifest["targets"]["wasm"]["program"]) - 1)
    assert "folded" not in exported()
    monkeypatch.setattr(bundle, "MAX_MANIFEST_BYTES", 1000)
    with pytest.raises(InputError, match=r"model\.json would have \d+ bytes, and at most 1000 are read"):
        exported()


@pytest.mark.slow
def test_javascript_unfolds_the_same() -> None:
    node = shutil.which("node")
    if node is None:
        pytest.skip("no node here")
    body = f"""const {{ unfolded }} = await import({json.dumps(SCRIPT.as_uri())});
    const short = {json.dumps(folded(program()))};
    const inFile = await unfolded({{ file: "a", bytes: 1, sha256: "{"0" * 64}" }}, {{ json: async () => structuredClone(short) }});
    const whole = await unfolded(short);
    const once = JSON.stringify(whole);
    const isSame = [inFile, await unfolded(whole)].every((again) => JSON.stringify(again) === once);
    const refused = [];
    const part = {{ words: [1, [2 ** 21, [0]]] }};
    const programs = {json.dumps(WRONG)}.map((row) => ({{ words: [1, 2, row] }}));
    for (const program of [...programs, {{ ...part, specialised: [{{ ...part }}, {{ ...part }}] }}]) {{
      try {{ await unfolded(program); }} catch ({{ code }}) {{ refused.push(code); }}
    }}
    console.log(JSON.stringify([whole, isSame, refused]));"""
    done = subprocess.run(
        [node, "--input-type=module", "-e", body], capture_output=True, text=True, timeout=60, check=True
    )
    assert json.loads(done.stdout) == [program(), True, ["format"] * (len(WRONG) + 1)]
