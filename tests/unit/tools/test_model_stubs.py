"""Stubs, the small files in the place of models: they are valid ONNX, name the bundle beside them, and replace no model."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import singe as sg
from singe.errors import InputError
from singe.onnx.model import read_model
from singe.program.bundle_reader import STUB
from singe.tools.cli import main
from singe.tools.export.stub import MOST_BYTES, export_folder, export_stub, is_stub

onnx = pytest.importorskip("onnx")


def double() -> sg.Model:
    return sg.Model.of(lambda x: x * 2, {"x": ("N", 3)}, name="double")


def write_onnx(path: Path, external: str = "") -> None:
    """A model of one product; external: the name of a second file, which then holds its weights."""
    helper = onnx.helper
    weights = onnx.numpy_helper.from_array(np.ones((3, 400), np.float32), "w")
    given, made = (helper.make_tensor_value_info(name, 1, ["N", n]) for name, n in (("x", 3), ("y", 400)))
    graph = helper.make_graph([helper.make_node("MatMul", ["x", "w"], ["y"])], "g", [given], [made], [weights])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    path.parent.mkdir(parents=True, exist_ok=True)
    onnx.save(model, path, save_as_external_data=bool(external), location=external or None, size_threshold=0)


def told_by(file: Path) -> dict[str, Any]:
    kind, _, entry = read_model(file).metadata[STUB].partition(" ")
    assert kind == "stub"
    return json.loads(entry)


@pytest.mark.parametrize("url", [None, "/models/{a}/m.onnx.singe/"])
def test_a_stub_is_valid_onnx_and_names_its_bundle(tmp_path: Path, url: str | None) -> None:
    file = tmp_path / "m.onnx"
    export_stub(double(), file, url=url, targets=["wasm"])
    assert file.stat().st_size < 600 <= MOST_BYTES
    onnx.checker.check_model(onnx.load(file))
    manifest = (tmp_path / "m.onnx.singe" / "model.json").read_bytes()
    expected = {"bundle": "m.onnx.singe", "sha256": hashlib.sha256(manifest).hexdigest()}
    assert told_by(file) == expected | ({} if url is None else {"url": url.rstrip("/")})
    assert read_model(file).metadata[STUB].count("{") == 1
    assert is_stub(file)
    export_stub(double(), file, targets=["wasm"])  # once more, in its own place
    with pytest.raises(InputError, match=r"m\.onnx: a stub, .* give its bundle, .*m\.onnx\.singe"):
        sg.load(file)
    assert sg.load(tmp_path / "m.onnx.singe").outputs


def test_a_file_that_is_no_stub_is_not_replaced_unless_it_is_forced(tmp_path: Path) -> None:
    write_onnx(tmp_path / "m.onnx")
    (tmp_path / "n.onnx").write_text("text")
    for name in ("m", "n"):
        with pytest.raises(InputError, match="no stub is there; give another name, or --force"):
            export_stub(double(), tmp_path / f"{name}.onnx", targets=["wasm"])
    export_stub(double(), tmp_path / "m.onnx", force=True, targets=["wasm"])
    assert is_stub(tmp_path / "m.onnx")
    with pytest.raises(InputError, match=r"ends with \.onnx"):
        export_stub(double(), tmp_path / "model", targets=["wasm"])


def test_a_folder_becomes_one_of_stubs(tmp_path: Path) -> None:
    """External data is in the bundles; an empty file is in its place, for code that fetches it. What cannot be exported is
    left out with its reason, and the rest is copied as it is."""
    source, out = tmp_path / "hub", tmp_path / "public" / "hub"
    write_onnx(source / "onnx" / "model.onnx", external="model.onnx_data")
    write_onnx(source / "onnx" / "model_quantized.onnx")
    (source / "onnx" / "broken.onnx").write_bytes(b"\x08")
    (source / "config.json").write_text('{"model_type": "bert"}')
    (source / ".git").mkdir()
    (source / ".git" / "HEAD").write_text("ref")
    stubs = export_folder(source, out, url="/hub/", targets=["wasm"])
    assert stubs.copied == ("config.json",)
    written = ["onnx/model.onnx", "onnx/model_quantized.onnx"]
    assert list(stubs.bundles) == written
    assert list(stubs.left_out) == ["onnx/broken.onnx"]
    for name in written:
        assert told_by(out / name)["url"] == f"/hub/{name}.singe"
    names = {
        path.relative_to(out).as_posix()
        for path in out.rglob("*")
        if path.is_file() and ".singe" not in path.as_posix()
    }
    assert names == {"config.json", "onnx/model.onnx", "onnx/model.onnx_data", "onnx/model_quantized.onnx"}
    assert (out / "onnx" / "model.onnx_data").read_bytes() == b""
    assert (out / "config.json").read_bytes() == (source / "config.json").read_bytes()
    again = export_folder(source, out, targets=["wasm"])  # over what it wrote
    assert list(again.bundles) == written
    assert "url" not in told_by(out / "onnx" / "model.onnx")


def write_layers(path: Path, *layers: int) -> None:
    """A model of products; two models have the same weights for the same number of a layer."""
    helper = onnx.helper
    draws = {k: np.random.default_rng(k).normal(size=(160, 160)).astype(np.float32) for k in layers}
    weights = [onnx.numpy_helper.from_array(w, f"w{k}") for k, w in draws.items()]
    nodes = [helper.make_node("MatMul", [f"x{i}", f"w{k}"], [f"x{i + 1}"]) for i, k in enumerate(layers)]
    ends = [helper.make_tensor_value_info(name, 1, ["N", 160]) for name in ("x0", f"x{len(layers)}")]
    graph = helper.make_graph(nodes, "g", ends[:1], ends[1:], weights)
    path.parent.mkdir(parents=True, exist_ok=True)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)


@pytest.mark.slow
def test_weights_of_several_models_are_stored_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """They are with the first model that has them; those of models in other folders are not."""
    models = {"a/decoder.onnx": (1, 2), "a/encoder.onnx": (4,), "a/last.v2.onnx": (3, 5), "a/past.onnx": (2, 3, 1), "b/past.onnx": (1, 2)}  # fmt: skip
    hub, out = tmp_path / "hub", tmp_path / "out"
    for name, layers in models.items():
        write_layers(hub / name, *layers)
    assert main(["export", str(hub), "--hub", "-o", str(out)]) == 0
    assert "weights are in decoder.onnx.singe/ and last.v2.onnx.singe/, too" in capsys.readouterr().out
    manifests = {name: json.loads((out / f"{name}.singe" / "model.json").read_bytes()) for name in models}
    for target in ("wasm", "webgpu"):
        places = {
            k: {w["file"].rpartition("/")[0] for w in m["targets"][target]["weights"]} for k, m in manifests.items()
        }
        assert places.pop("a/past.onnx") == {"../decoder.onnx.singe", "../last.v2.onnx.singe"}
        assert all(of == {""} for of in places.values())
    x = np.random.default_rng(0).normal(size=(3, 160)).astype(np.float32)
    for name in models:
        found, expected = (sg.load(path)(x) for path in (out / f"{name}.singe", hub / name))
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)


def test_a_folder_is_not_written_into_itself(tmp_path: Path) -> None:
    write_onnx(tmp_path / "hub" / "model.onnx")
    for out in ("hub", "hub/out", "."):
        with pytest.raises(InputError, match="must be apart"):
            export_folder(tmp_path / "hub", tmp_path / out)
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match=r"no \.onnx file"):
        export_folder(tmp_path / "empty", tmp_path / "out")


def test_the_command_writes_stubs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_onnx(tmp_path / "hub" / "m.onnx")
    one, all_ = tmp_path / "one.onnx", tmp_path / "all"
    assert (
        main(
            ["export", str(tmp_path / "hub" / "m.onnx"), "-o", str(one), "--stub", "--targets", "wasm", "--url", "/one"]
        )
        == 0
    )
    assert told_by(one)["url"] == "/one"
    assert f"singe serve {one}.singe" in capsys.readouterr().out
    assert main(["export", str(tmp_path / "hub"), "-o", str(all_), "--hub", "--targets", "wasm"]) == 0
    assert is_stub(all_ / "m.onnx")
    assert "m.onnx  a stub; its bundle has" in capsys.readouterr().out
    (tmp_path / "hub" / "bad.onnx").write_bytes(b"\x08")
    assert main(["export", str(tmp_path / "hub"), "-o", str(all_), "--hub", "--targets", "wasm"]) == 1
    assert "bad.onnx  left out: " in capsys.readouterr().out
    for wrong, told in (
        (["--url", "/x"], "--url needs --stub"),
        (["--hub", "--stub"], "--stub cannot be given with --hub"),
    ):
        assert main(["export", str(tmp_path / "hub"), "-o", str(all_), *wrong]) == 2
        assert told in capsys.readouterr().err
