"""Bundles: the manifest has the Program's header, the files its bytes; folders with other contents are not touched."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import numpy as np
import pointing
import pytest
from networks.quantised_nets import quantised
from small_texts import folder_of, token_vectors
from tiny_language import tiny_gguf

import singe as sg
from singe import __version__
from singe.compiler.compile import compile_graph
from singe.compiler.target import find_target
from singe.dtypes import float32, int64
from singe.errors import InputError
from singe.files.assets import static_folder
from singe.files.places import MANIFEST
from singe.graph import Builder, Graph, specialise
from singe.model.files import load
from singe.model.model import Model
from singe.program.container import ALIGN, encode_dim
from singe.program.folded_texts import unfolded_texts
from singe.program.format import header, made
from singe.program.program import Buffer, ProgramData
from singe.shapes import bytes_text, size
from singe.tasks.picture.spec import PictureSpec
from singe.tools import cli
from singe.tools.export.bundle import Bundle, draft, export
from singe.tools.export.describing import describe_bundle
from singe.tools.export.language import spoken_of
from singe.tools.export.page.snippet import snippet, version
from singe.tools.export.stored.weights import PIECE
from singe.tools.export.targets import page_targets

OWN = ("/program", "/preparation", "/options", "/settings", "/task/files")
"""Parts of a manifest whose fields another document names."""
DOCUMENT = Path(__file__).parents[3] / "static" / "README.md"
MODELS = Path(__file__).parents[4] / "shared" / "models"


def dense() -> Graph:
    """relu(x · w + b), with a symbolic batch."""
    b = Builder()
    x = b.input("x", (size("N"), 3), float32)
    w = b.const(np.arange(6, dtype=np.float32).reshape(3, 2) - 2)
    return Graph((x,), (b.relu(b.add(b.matmul(x, w), b.const(np.array([0.5, -0.5], np.float32)))),), ("y",))


def two() -> Graph:
    """Two inputs, two outputs, fixed shapes, no weights."""
    b = Builder()
    x, y = b.input("x:0", (2, 3), float32), b.input("y", (), float32)
    return Graph((x, y), (b.add(x, y), b.exp(x)), ("sum", "powers"))


def picture() -> Graph:
    """A graph with a picture as its input."""
    b = Builder()
    x = b.input("pixels", (1, 3, 8, 6), float32)
    return Graph((x,), (b.relu(b.add(x, b.const(np.ones((3, 1, 1), np.float32)))),), ("y",))


def contractions() -> Graph:
    """A convolution and a product with weights large enough for int8, a bias beyond the range of float16,
    an int64 table."""
    b = Builder()
    rng = np.random.default_rng(5)
    x, i = b.input("x", (size("N"), 4, 6, 6), float32), b.input("i", (size("N"), 1), int64)
    w = (
        rng.normal(size=(17, 4, 3, 3)).astype(np.float32)
        * np.logspace(-9, 3, 17, dtype=np.float32)[:, None, None, None]
    )
    y = b.relu(b.conv(x, b.const(w), strides=(1, 1), dilations=(1, 1), before=(1, 1), after=(1, 1), group=1))
    y = b.matmul(b.reshape(y, shape=(size("N"), 17 * 36)), b.const(rng.normal(size=(17 * 36, 5)).astype(np.float32)))
    y = b.add(y, b.const(np.array([1e9, 0, -2, 0.5, 1], np.float32)))
    table = b.const(np.array([3, -4, 5], np.int64))
    return Graph((x, i), (y, b.add(i, table)), ("y", "j"))


GRAPHS: dict[str, Callable[[], Graph]] = {"dense": dense, "two": two, "picture": picture}


def model(graph: Graph, name: str = "model") -> Model:
    return Model(graph, "numpy", name)


def compiled(graph: Graph, target: str) -> ProgramData:
    return compile_graph(graph, find_target(page_targets()[target]))


def unindented(texts: Mapping[str, Any]) -> dict[str, str]:
    """Without indentation."""
    return {name: re.sub(r"(?m)^[ \t]+", "", text) for name, text in texts.items()}


def check(bundle: Bundle, graph: Graph) -> None:
    """Check that the bundle has the graph's compiled Programs, byte by byte; its weights may be in another order."""
    manifest = json.loads(bundle.files[MANIFEST])
    assert manifest == bundle.manifest
    assert manifest["inputs"] == [
        {"name": x.name, "dtype": x.dtype.name, "shape": [encode_dim(d) for d in x.shape]} for x in graph.inputs
    ]
    assert [p["name"] for p in manifest["outputs"]] == list(graph.output_names)
    for name, target in manifest["targets"].items():
        program = compiled(graph, name)
        pieces = [read(bundle, w) for w in target["weights"]]
        whole = made(target["program"], program.modules, np.frombuffer(b"".join(pieces), np.uint8), name)
        moved = replace(whole, buffers=tuple(map(replace_place, whole.buffers, program.buffers)))
        assert header(moved) == header(replace(program, facts={k: v for k, v in program.facts.items() if k != "fused"}))
        assert [weights_of(whole, b) for b in whole.buffers] == [weights_of(program, b) for b in program.buffers]
        assert all(len(p) % ALIGN == 0 for p in pieces[:-1])
        assert all(len(p) <= PIECE for p in pieces)
        if name == "wasm":
            assert {k: read(bundle, m) for k, m in target["modules"].items()} == program.modules
        else:
            assert unfolded_texts(json.loads(read(bundle, target["modules"]))) == unindented(program.modules)


def replace_place(buffer: Buffer, other: Buffer) -> Buffer:
    """The buffer at the other's place, if both are in the weights."""
    return replace(buffer, place=other.place) if buffer.place[0] == other.place[0] == "weights" else buffer


def weights_of(program: ProgramData, buffer: Buffer) -> bytes:
    return program.view(buffer).tobytes() if buffer.place[0] == "weights" else b""


def read(bundle: Bundle, entry: dict[str, Any]) -> bytes:
    """A file of the manifest, after a check of its length and hash."""
    data = bundle.files[entry["file"]]
    assert entry == {"file": entry["file"], "bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
    return data


# --- contents ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", GRAPHS)
def test_a_bundle_is_its_programs(name: str) -> None:
    graph = GRAPHS[name]()
    bundle = draft(model(graph, name)).alone()
    assert bundle.manifest["format"] == "singe/3"
    assert (bundle.manifest["singe"], bundle.manifest["name"]) == (__version__, name)
    assert list(bundle.manifest["targets"]) == ["wasm", "webgpu"]
    assert bundle.manifest["image"] is bundle.manifest["labels"] is None
    check(bundle, graph)


def test_weights_are_cut_into_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("singe.tools.export.stored.weights.PIECE", 2 * ALIGN)
    b = Builder()
    x = b.input("x", (1, 300), float32)
    graph = Graph((x,), (b.add(x, b.const(np.arange(300, dtype=np.float32))),), ("y",))
    bundle = draft(model(graph)).alone()
    assert [w["bytes"] for w in bundle.manifest["targets"]["wasm"]["weights"]] == [512, 512, 256]
    check(bundle, graph)


def test_the_weights_of_a_model_without_any_are_no_files() -> None:
    bundle = draft(model(two())).alone()
    assert [t["weights"] for t in bundle.manifest["targets"].values()] == [[], []]


def test_open_sizes_stay_open_and_given_ones_are_numbers() -> None:
    assert draft(model(dense())).alone().manifest["inputs"][0]["shape"] == [[[1, "N"]], 3]
    assert draft(model(specialise(dense(), {"N": 4}))).alone().manifest["inputs"][0]["shape"] == [4, 3]


@pytest.mark.parametrize(("dtype", "warns"), [("float16", False), ("int8", True)])
def test_a_large_error_of_small_weights_is_a_warning(dtype: str, warns: bool) -> None:
    """Rows of one large weight and many small ones, which one scale cannot hold."""
    b = Builder()
    x = b.input("x", (1, 64), float32)
    weights = np.full((64, 64), 0.3, np.float32)
    weights[0] = 100
    sample = {"x": np.ones((1, 64), np.float32)}
    sample["x"][0, 0] = 0
    graph = Graph((x,), (b.matmul(x, b.const(weights)),), ("y",))
    text = describe_bundle(draft(model(graph), dtype=dtype, samples=[sample]).alone())
    assert ("an error is above 5%: store weights with --dtype float16" in text) == warns


def test_an_error_that_random_inputs_cannot_measure_asks_for_others() -> None:
    """The open size has to be 3 or more, and random inputs have 1."""
    b = Builder()
    x, weights = b.input("x", (1, 16, size("N"), 3), float32), b.const(np.ones((16, 16, 3, 3), np.float32))
    y = b.conv(x, weights, strides=(1, 1), dilations=(1, 1), before=(0, 0), after=(0, 0), group=1)
    graph = Graph((x,), (y,), ("y",))
    text = describe_bundle(draft(model(graph), dtype="int8").alone())
    assert re.search(
        r"^error +not measured: .*; give inputs on which the model runs, with --input NAME=FILE$", text, re.M
    )


@pytest.mark.slow
@pytest.mark.skipif(not (MODELS / "mnist_cnn.onnx").exists(), reason="needs ../shared/models")
def test_a_real_model(tmp_path: Path) -> None:
    mnist = load(MODELS / "mnist_cnn.onnx", "numpy")
    bundle = export(mnist, tmp_path / "mnist")
    check(bundle, mnist.graph())
    assert {p.name: p.read_bytes() for p in (tmp_path / "mnist").iterdir()} == bundle.files


def exports(module: bytes) -> set[str]:
    """The names that a WebAssembly module exports."""

    def number(at: int) -> tuple[int, int]:
        value, shift = 0, 0
        while True:
            value |= (module[at] & 127) << shift
            at, shift = at + 1, shift + 7
            if module[at - 1] < 128:
                return value, at

    at, found = 8, set()
    while at < len(module):
        section = module[at]
        length, at = number(at + 1)
        if section == 7:
            count, inside = number(at)
            for _ in range(count):
                size, inside = number(inside)
                found.add(module[inside : inside + size].decode())
                _, inside = number(inside + size + 1)
        at += length
    return found


def called(words: list[int]) -> set[int]:
    """The kernels that words call."""
    found, at = set(), 0
    while at < len(words):
        found.add(words[at])
        at += 2 + words[at + 1]
    return {head for head in found if head >= 0}


@pytest.mark.parametrize("make", [dense, two, picture, contractions])
def test_no_kernel_is_there_that_no_step_runs(make: Callable[[], Graph]) -> None:
    bundle = draft(model(make())).alone()
    for name, target in bundle.manifest["targets"].items():
        program = target["program"]
        assert called(program["words"]) == set(range(len(program["kernels"])))
        entries = {v["entry"] for k in program["kernels"] for v in k["variants"]}
        if name == "wasm":
            there = {f"{k}:{e}" for k, m in target["modules"].items() for e in exports(read(bundle, m))}
            entries |= {f"{k}:run" for k in target["modules"]}  # what makes all calls
        else:
            there = set(json.loads(read(bundle, target["modules"])))
        assert there == entries


def test_webgpu_code_needs_no_feature() -> None:
    program = draft(model(dense()), ["webgpu"]).alone().manifest["targets"]["webgpu"]["program"]
    assert [v["requires"] for k in program["kernels"] for v in k["variants"]] == [[]] * len(program["kernels"])


def test_one_model_is_one_bundle() -> None:
    assert draft(model(dense())).alone().files == draft(model(dense())).alone().files


def test_labels_may_be_a_list_and_a_picture_must_fit_the_input(tmp_path: Path) -> None:
    spec = PictureSpec((28, 28), 1)
    net = Model.of(lambda x: {"y": x.mean(dim=(1, 2, 3))}, {"x": (1, 1, 28, 28)}, "numpy")
    export(net, tmp_path / "list", ["wasm"], picture=spec, labels=["cat", "dog"], dtype="float16")
    assert json.loads((tmp_path / "list" / "labels.json").read_text()) == ["cat", "dog"]
    for wrong in (PictureSpec((28, 28), 3), PictureSpec((20, 28), 1), PictureSpec((28, 28), 1, layout="nhwc")):
        with pytest.raises(InputError, match=r"makes the shape .* but the input is \(1, 1, 28, 28\)"):
            export(net, tmp_path / "wrong", ["wasm"], picture=wrong)


def test_pictures_and_labels() -> None:
    spec = PictureSpec((8, 6), 3, 0.875, (127.0,), (128.0,), "nchw", "pixels")
    bundle = draft(model(picture()), picture=spec, labels={0: "cat", 1: "größer"}).alone()
    assert bundle.manifest["image"] == {
        "input": "pixels", "size": [8, 6], "channels": 3, "crop": 0.875, "mean": [127.0], "std": [128.0], "layout": "nchw",
    }  # fmt: skip
    assert json.loads(bundle.files[bundle.manifest["labels"]]) == ["cat", "größer"]
    gaps = draft(model(picture()), labels={3: "dog"}).alone()
    assert json.loads(gaps.files["labels.json"]) == {"3": "dog"}


def test_kernels_lose_their_indentation_and_lines_that_repeat() -> None:
    texts, made = (
        json.loads(draft(model(dense()), ["webgpu"], readable=readable).alone().files["kernels-webgpu.json"])
        for readable in (True, False)
    )
    assert unfolded_texts(made) == unindented(texts) != texts
    assert [*made] == sorted(texts, key=lambda name: len(texts[name]))


def test_readable_scripts_are_those_of_static() -> None:
    files = draft(model(dense()), readable=True).alone().files
    for path in (*static_folder().rglob("singe*.js"), *static_folder().glob("*.d.ts")):
        if path.name == "singe-python.js":
            assert path.name not in files, "only Pyodide needs it"
        elif path.name.startswith("singe-ort"):
            assert path.name not in files, "only stubs need it"
        elif path.name.startswith(("singe-language", "singe-task-")):
            assert path.name not in files, "only language models or tasks need it"
        else:
            flat = re.sub(r'(?<=")(\.\./|\./)(\w+/)?(?=singe[\w-]*\.js")', "./", path.read_text("utf-8"))
            assert files[path.name].decode() == flat


@pytest.mark.slow
def test_other_scripts_replace_those_of_an_earlier_export(tmp_path: Path) -> None:
    for readable in (True, False):
        bundle = export(model(dense()), tmp_path, readable=readable)
        assert {p.name for p in tmp_path.iterdir()} == set(bundle.files)


def test_a_snippet_names_files_that_are_there_and_a_version_of_their_contents() -> None:
    bundle = draft(model(dense())).alone()
    text = snippet("./model/", bundle.manifest, bundle.files)
    query = f"?v={version(bundle.files)}"
    names = re.findall(r'href="\./model/([^"?]+)(\?[^"]*)"', text)
    assert {q for _, q in names} == {query}
    assert [n for n, _ in names] == ["singe.js", MANIFEST, "kernels-relaxed.wasm", "weights-wasm-0.bin"]
    assert {n for n, _ in names} <= bundle.files.keys()
    assert f'load("./model/{query}", {{ device: "wasm" }})' in text
    assert (
        version(draft(model(dense())).alone().files)
        == version(bundle.files)
        != version(draft(model(two())).alone().files)
    )
    assert "kernels-webgpu.json" in snippet("./m/", draft(model(dense()), ["webgpu"]).alone().manifest, bundle.files)


def test_the_snippet_of_a_task_asks_it() -> None:
    net = sg.Model.of(lambda x: x.mean((2, 3)), {"images": (1, 3, 8, 8)}, "numpy")
    task = sg.task("classify", net, labels=["cat", "dog", "owl"], device="numpy")
    bundle = draft(task.model, task=task.info).alone()
    text = snippet("./what/", bundle.manifest, bundle.files)
    assert f'task("./what/?v={version(bundle.files)}"' in text
    assert "model.run" not in text
    assert 'Label = "cat" | "dog" | "owl";' in bundle.files["model.d.ts"].decode()


def test_what_a_task_has_already_is_refused_by_name(tmp_path: Path) -> None:
    task = sg.task("classify", sg.Model.of(lambda x: x.mean((2, 3)), {"images": (1, 3, 8, 8)}, "numpy"), device="numpy")
    with pytest.raises(InputError, match=r"got .*what\.html, a task is written to a folder, such as .*what$"):
        export(task, tmp_path / "what.html")
    with pytest.raises(InputError, match="got labels and outputs, which a task has already"):
        export(task, tmp_path / "what", labels=["cat"], outputs=["scores"])


def test_chosen_outputs_alone_are_there() -> None:
    bundle = draft(model(two()), outputs=["powers"]).alone()
    assert [x["name"] for x in bundle.manifest["outputs"]] == ["powers"]
    assert "powers: Output<Float32Array>" in bundle.files["model.d.ts"].decode()
    with pytest.raises(InputError, match="outputs: got 'power', expected some of sum, powers"):
        draft(model(two()), outputs=["power"]).alone()


def test_types_have_any_names() -> None:
    b = Builder()
    x = b.input('a "b" */', (size("N"),), float32)
    bundle = draft(Model(Graph((x,), (b.exp(x),), ("0",)), "numpy", "m */ n\nm")).alone()
    text = bundle.files["model.d.ts"].decode()
    assert '"a \\"b\\" */": Input' in text
    assert '"0": Output<Float32Array>' in text
    assert text.startswith("/** The types of m * / n m:")


def test_the_page_allows_its_own_script_and_style_alone() -> None:
    page = draft(model(dense())).alone().files["index.html"].decode()
    for tag in ("script", "style"):
        (text,) = re.findall(rf"<{tag}\b[^>]*>(.*?)</{tag}>", page, re.S)
        assert f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'" in page
        assert f"{tag}-hash" not in page
    page = re.sub(r"'sha256-[^']*'", "", page)
    assert not re.search(r"https?:|//\w|unsafe-inline|unsafe-eval'(?<!wasm-unsafe-eval')|\son\w+=", page)


def test_targets_are_known() -> None:
    for targets in (["cuda"], ["numpy"], []):
        with pytest.raises(InputError, match=r"expected some of wasm, webgpu"):
            draft(model(dense()), targets).alone()


# --- the folder -------------------------------------------------------------------------------------------------------


def test_a_new_bundle_replaces_the_old_one_and_leaves_the_rest(tmp_path: Path) -> None:
    export(model(dense()), tmp_path / "a" / "b", labels={0: "x"})
    (tmp_path / "a" / "b" / "notes.txt").write_text("mine")
    bundle = export(model(two()), tmp_path / "a" / "b", ["wasm"])
    assert {p.name for p in (tmp_path / "a" / "b").iterdir()} == {*bundle.files, "notes.txt"}


@pytest.mark.parametrize("name", ["notes.txt", MANIFEST, ".hidden"])
def test_a_folder_of_others_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text('{"format": "other"}')
    with pytest.raises(InputError, match="not empty, and not a bundle"):
        export(model(two()), tmp_path)
    assert [p.name for p in tmp_path.iterdir()] == [name]


def test_force_shares_a_folder_and_removes_nothing(tmp_path: Path) -> None:
    for name in ("notes.txt", "labels.json"):
        (tmp_path / name).write_text("mine")
    bundle = export(model(two()), tmp_path, force=True)
    assert {p.name for p in tmp_path.iterdir()} == {*bundle.files, "notes.txt", "labels.json"}


def test_a_file_is_no_folder(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("")
    with pytest.raises(InputError, match="a file, expected a folder"):
        export(model(two()), tmp_path / "f")


# --- the command ------------------------------------------------------------------------------------------------------


def test_the_report_has_every_file_and_scripts_in_one_row() -> None:
    bundle = draft(model(dense())).alone()
    text = describe_bundle(bundle)
    rows = text[: text.index("\n\n")].splitlines()[1:-1]
    assert all(re.fullmatch(r".* [\d.]+ k?M?B +[\d.]+ k?M?B", row) for row in rows)
    kinds = re.findall(r"^(\S+) +(?:\((\d+) [a-z ]+\))?", "\n".join(rows), re.M)
    for name in bundle.files:
        assert sum(fnmatchcase(name, kind) for kind, _ in kinds) == 1
    assert sum(int(count or 1) for _, count in kinds) == len(bundle.files)
    assert len(rows) < 15
    assert re.search(r"^wasm +weights 512 B \(.* gzip\); kernels .* \(relaxed\), or .* \(simd\)$", text, re.M)
    main = re.search(r"^scripts +[\d.]+ kB \(([\d.]+ kB) gzip\); rare ones [\d.]+ kB \([\d.]+ kB gzip\)$", text, re.M)
    assert main
    assert main[1] == bytes_text(len(gzip.compress(bundle.files["singe.js"], 6))), "a page starts with this file alone"


@pytest.mark.skipif(not (MODELS / "mnist_cnn.onnx").exists(), reason="needs ../shared/models")
def test_the_command(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    labels = tmp_path / "labels.txt"
    labels.write_text("\n".join("0123456789"))
    pictures = ["--mean", "33.3", "--std", "78.6", "--labels", str(labels)]
    path, out = str(MODELS / "mnist_cnn.onnx"), str(tmp_path / "out")
    assert cli.main(["export", path, "-o", out, "--targets", "wasm", *pictures]) == 0
    assert "singe serve" in capsys.readouterr().out
    manifest = json.loads((tmp_path / "out" / MANIFEST).read_text())
    assert list(manifest["targets"]) == ["wasm"]
    assert (manifest["image"]["size"], manifest["image"]["mean"]) == ([28, 28], [33.3])
    assert json.loads((tmp_path / "out" / "labels.json").read_text()) == list("0123456789")


@pytest.mark.parametrize(
    ("shape", "size"),
    [((1, 3, 24, 32), [24, 32]), ((1, 24, 32, 3), [24, 32]), ((1, 1, 24, 32), None), ((1, 3, 80), None)],
)
def test_coloured_pictures_need_no_options(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, shape: tuple[int, ...], size: list[int] | None
) -> None:
    b = Builder()
    x = b.input("x", shape, float32)
    sg.save(Model(Graph((x,), (b.relu(x),), ("y",)), "numpy"), tmp_path / "m.singe")
    command = ["export", str(tmp_path / "m.singe"), "-o", str(tmp_path / "out"), "--targets", "wasm"]
    assert cli.main(command) == 0
    image = json.loads((tmp_path / "out" / MANIFEST).read_text())["image"]
    told = capsys.readouterr().out
    if size is None:
        assert image is None
        assert "takes pictures" not in told
    else:
        assert (image["size"], image["channels"], image["mean"], image["std"]) == (size, 3, [0], [255])
        assert "x takes pictures of 24 × 32, less 0.0, by 255.0: change that with --size, --mean, --std." in told


def test_other_dtypes_are_refused(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="2"):
        cli.main(["export", "m.onnx", "-o", str(tmp_path), "--dtype", "x"])
    assert "choose from" in capsys.readouterr().err
    with pytest.raises(InputError, match="'x', expected one of float32, float16, int8"):
        draft(model(dense()), dtype="x").alone()


@pytest.mark.slow
@pytest.mark.skipif(not (MODELS / "mnist_cnn.onnx").exists(), reason="needs ../shared/models")
@pytest.mark.parametrize("dtype", ["float16", "int8"])
def test_the_command_reports_bytes_and_error(capsys: pytest.CaptureFixture[str], tmp_path: Path, dtype: str) -> None:
    labels, sample = tmp_path / "labels.txt", tmp_path / "digit.npy"
    labels.write_text("\n".join("0123456789"))
    np.save(sample, np.random.default_rng(1).normal(size=(1, 1, 28, 28)).astype(np.float32))
    path, out = str(MODELS / "mnist_cnn.onnx"), str(tmp_path / "out")
    options = ["--dtype", dtype, "--input", str(sample), "--input", str(sample), "--labels", str(labels)]
    assert cli.main(["export", path, "-o", out, *options]) == 0
    text = capsys.readouterr().out
    assert re.search(rf"^wasm weights +.*{dtype} [\d.]+ kB.*; in memory 1.6 MB$", text, re.M)
    assert re.search(r"^error +\w+: \d\.\de-0[2-6] of the largest value, against float32, on 2 inputs$", text, re.M)
    assert re.search(r"^top-1 +kept in 2 of 2 inputs$", text, re.M)


def test_options_of_pictures_need_a_picture(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    if not (MODELS / "magika.onnx").exists():
        pytest.skip("needs ../shared/models")
    assert cli.main(["export", str(MODELS / "magika.onnx"), "-o", str(tmp_path / "o"), "--mean", "1"]) == 2
    assert "need an input of four axes" in capsys.readouterr().err


# --- the document -----------------------------------------------------------------------------------------------------


def learning(path: Path) -> sg.language.LanguageModel:
    """A model whose adapter is states."""
    llm = sg.language.load(path, "numpy")
    return sg.language.with_states(llm, sg.language.lora(llm, 1))


@pytest.mark.slow
def test_the_document_names_every_field_of_the_manifest_and_no_other(tmp_path: Path) -> None:
    """A row of "The bundle" starts with a path: | `/inputs/name` | … |; a Program's own fields stand above it."""
    documented = set(re.findall(r"^\| `(/[A-Za-z0-9_./*]+)` \|", DOCUMENT.read_text(), re.M))
    spec = PictureSpec((8, 6))
    bundles = [
        draft(model(picture()), picture=spec, labels={0: "a"}).alone(),
        draft(model(contractions()), dtype="int8").alone(),
        *(draft(load(quantised(way, 70), "numpy")).alone() for way in ("dynamic int8", "dynamic uint8")),
        draft((llm := learning(tiny_gguf(tmp_path / "tiny.gguf"))).decoder, spoken=spoken_of(llm)).alone(),
    ]
    colours = Model.of(lambda x: x.mean((2, 3)), {"x": (1, 3, 8, 8)}, "numpy")
    bundles.append(export(sg.task("classify", colours), tmp_path / "task", ["wasm"]))
    bundles.append(export(pointing.task_of(), tmp_path / "chain", ["wasm"]))
    texts = sg.task("embed", token_vectors(), beside=folder_of(tmp_path / "texts"))
    bundles.append(export(texts, tmp_path / "embed", ["wasm"]))
    found: set[str] = set()

    def walk(data: Any, path: str) -> None:
        if isinstance(data, list):
            for item in data:
                walk(item, path)
        elif isinstance(data, dict) and not path.endswith(OWN):
            for key, value in data.items():
                found.add(f"{path}/{key}")
                walk(value, f"{path}/{key}")

    for bundle in bundles:
        walk(bundle.manifest, "")
    names = r"(?<=/modules/)(simd|relaxed)\b|(?<=/facts/errors/)\w+"
    large = {"/folded", *(f"/targets/{target}/weights/hashes" for target in ("wasm", "webgpu"))}
    """Of models with many layers, and of large files: test_stored_weights and test_language_families make such bundles."""
    assert documented == {re.sub(names, "*", f) for f in found} | large


def test_activations_in_integers_need_weights_in_integers_and_wasm(tmp_path: Path) -> None:
    cases: list[dict[str, Any]] = [{"dtype": "float32"}, {"dtype": "float16"}, {"dtype": "int8", "targets": ["webgpu"]}]
    for given in cases:
        with pytest.raises(InputError, match="expected dtype int8 and the target wasm"):
            export(model(dense()), tmp_path, activations="int8", **given)
    with pytest.raises(InputError, match="activations: got 'int4'"):
        export(model(dense()), tmp_path, activations="int4")
