"""Weights in fewer bytes, decoded by singe.js: in node and in Chromium, on both devices,
from valid and hostile files."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest
from bundles import MODELS, STATIC, model_case, weighty_graph
from sites import served

from singe import load, tensor
from singe.compiler.array_target import ARRAYS
from singe.compiler.compile import compile_graph, compile_with_uses
from singe.compiler.target import find_target
from singe.language.layers import PackedTokenTable
from singe.model.model import Model
from singe.model.program import Program
from singe.nn import PackedLinear
from singe.program.weight_codecs import decode, read_piece
from singe.runtime.devices import device as open_device
from singe.tools.export.bundle import draft, export
from singe.tools.export.stored.storage import encode, output_channels
from singe.tools.export.targets import page_targets

DTYPES: Final = ("float16", "int8")
SIX: Final = ("mnist_cnn", "magika", "efficientnet_lite0", "basic_pitch", "ppocr_cls", "ppocr_det")
RUN: Final = """async ({ runner, url, device, x, shape }) => {
  const { load } = await import(runner);
  const progress = [];
  const model = await load(url, { device, onProgress: ({ loaded, total }) => progress.push([loaded, total]) });
  const { y } = await model.run({ x: { data: Float32Array.from(x), shape } });
  await model.dispose();
  return { y: Array.from(y.data), last: progress.at(-1) };
}"""


@pytest.fixture(scope="module", params=DTYPES)
def stored(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A bundle whose weights are in several files, with arrays split between files; and its dtype."""
    folder = tmp_path_factory.mktemp("stored") / request.param
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("singe.tools.export.stored.weights.PIECE", 4096)
        export(Model(weighty_graph(), "numpy"), folder, dtype=request.param)
    return folder, request.param


def answer(dtype: str, x: np.ndarray) -> np.ndarray:
    """The graph's output in NumPy, with the weights as they are stored."""
    channels = output_channels(*compile_with_uses(weighty_graph(), find_target("wasm")))
    whole = compile_graph(weighty_graph(), ARRAYS)
    weights = decode(encode(whole, dtype, channels)[0], whole.weights.size)
    return Program(replace(whole, weights=weights), open_device("numpy")).run([x])[0]


def node(script: str, *arguments: str, given: Any = None) -> Any:
    """The JSON that a script prints."""
    program = shutil.which("node")
    if program is None:
        pytest.skip("no node here")
    done = subprocess.run(
        [program, "--input-type=module", "-e", script, *arguments],
        input=json.dumps(given), capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


READ: Final = 'const given = JSON.parse((await import("fs")).readFileSync(0, "utf8"));\n'


def check(found: dict[str, Any], folder: Path, dtype: str, device: str, x: np.ndarray) -> None:
    """Check that the output is that of the stored weights, and that progress counted stored bytes."""
    expected = answer(dtype, x)
    y = np.array(found["y"]).reshape(expected.shape)
    assert np.abs(y - expected).max() <= 1e-5 * np.abs(expected).max()
    target = json.loads((folder / "model.json").read_text())["targets"][device]
    weights = sum(w["bytes"] for w in target["weights"])
    loaded, total = found["last"]
    assert loaded == total
    assert weights < total < weights + 200_000, "stored bytes, and the modules'"
    assert all(w["bytes"] <= 4096 for w in target["weights"])


def inputs() -> np.ndarray:
    return np.random.default_rng(0).normal(size=(2, 5, 7, 6)).astype(np.float32)


def asked(runner: str, url: str, device: str, x: np.ndarray) -> dict[str, Any]:
    return {"runner": runner, "url": url, "device": device, "x": x.reshape(-1).tolist(), "shape": list(x.shape)}


def test_node(stored: tuple[Path, str]) -> None:
    folder, dtype = stored
    given = asked((folder / "singe.js").as_uri(), folder.as_uri(), "wasm", inputs())
    found = node(f"{READ}console.log(JSON.stringify(await ({RUN})(given)));", given=given)
    check(found, folder, dtype, "wasm", inputs())


@pytest.fixture(scope="module")
def page(browser: Any, stored: tuple[Path, str]) -> Iterator[Any]:
    with served(stored[0]) as address, browser.new_page() as page:
        page.goto(f"{address}model.json")
        yield page


@pytest.mark.parametrize("device", ["wasm", "webgpu"])
def test_chromium(page: Any, stored: tuple[Path, str], device: str) -> None:
    folder, dtype = stored
    check(page.evaluate(RUN, asked("/singe.js", "./", device, inputs())), folder, dtype, device, inputs())


ROWS: Final = 17_000
TABLE: Final = """async ({ runner, url, ids }) => {
  const { load } = await import(runner);
  try {
    const model = await load(url, { device: "wasm" });
    return Array.from((await model.run({ ids: Int32Array.from(ids) })).output.data);
  } catch ({ code, message }) {
    return { code, message };
  }
}"""


def table(folder: Path, ids: np.ndarray) -> tuple[Path, np.ndarray]:
    """A bundle of a model that gathers rows of a matrix and multiplies with it, for both targets; its file of this matrix, and the
    output for these rows."""
    rng = np.random.default_rng(2)
    packed = PackedLinear(512, ROWS, 4, 32)
    words = rng.integers(-(2**31), 2**31, (64, ROWS), dtype=np.int32)
    scale = rng.standard_normal((16, ROWS)).astype(np.float32)
    held = packed.replace(words=tensor(words), scale=tensor(scale), zero=tensor(np.float32(8)))
    rows = PackedTokenTable(held)
    model = Model.of(lambda ids: held(rows(ids)), {"ids": ("T",)}, open_device("numpy"), dtypes={"ids": "int32"})
    export(model, folder)
    weights = json.loads((folder / "model.json").read_text())["targets"]["wasm"]["weights"]
    (long,) = [w for w in weights if "hashes" in w]
    assert long["bytes"] == words.nbytes
    assert len(long["hashes"]) == 2
    return folder / long["file"], np.asarray(model(ids))


@pytest.mark.full
def test_a_long_file_is_checked_and_ordered_by_stretches(tmp_path: Path) -> None:
    ids = np.array([0, 9, ROWS - 1], np.int32)
    file, wanted = table(tmp_path / "table", ids)
    folder = file.parent
    given = {"runner": (folder / "singe.js").as_uri(), "url": folder.as_uri(), "ids": ids.tolist()}
    script = f"{READ}console.log(JSON.stringify(await ({TABLE})(given)));"
    found = np.array(node(script, given=given)).reshape(wanted.shape)
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-3 * np.abs(wanted).max())
    data = bytearray(file.read_bytes())
    data[4_100_000] ^= 1
    file.write_bytes(data)
    said = node(script, given=given)
    assert said["code"] == "format"
    assert "does not match its sha256" in said["message"]


# --- the decoder by itself -------------------------------------------------------------------------------------------

DECODE: Final = f"""{READ}
const {{ decoder }} = await import({json.dumps((STATIC / "loading" / "singe-decode.js").as_uri())});
const answers = given.map(({{ entry, data, chunk }}) => {{
  try {{
    const out = new Uint8Array(entry.decoded);
    const bytes = Buffer.from(data, "base64");
    const take = decoder(entry, (bytes, at) => {{
      if (at % 4 || bytes.length % 4) throw new Error(`${{bytes.length}} bytes at ${{at}}`);
      out.set(bytes, at);
    }});
    for (let at = 0; at < bytes.length; at += chunk) take(bytes.subarray(at, at + chunk));
    return Buffer.from(out).toString("base64");
  }} catch ({{ name, code, message }}) {{
    return {{ name, code, message }};
  }}
}});
console.log(JSON.stringify(answers));"""


def case(entry: dict[str, Any], data: bytes, chunk: int) -> dict[str, Any]:
    from base64 import b64encode  # noqa: PLC0415

    return {"entry": entry, "data": b64encode(data).decode(), "chunk": chunk}


def test_it_decodes_bit_by_bit_what_python_does(stored: tuple[Path, str]) -> None:
    """Also every float16 there is, in chunks of any length."""
    from base64 import b64decode  # noqa: PLC0415

    folder, _ = stored
    targets = json.loads((folder / "model.json").read_text())["targets"]
    found = [(w, (folder / w["file"]).read_bytes()) for t in targets.values() for w in t["weights"]]
    halves = {"encoding": "float16", "at": 0, "shape": [65536]}
    found.append(
        (
            {"file": "all", "bytes": 2 << 16, "decoded": 4 << 16, "parts": [halves]},
            np.arange(65536, dtype="<u2").tobytes(),
        )
    )
    for chunk in (1 << 20, 1000, 7):
        answers = node(DECODE, given=[case(*f, chunk) for f in found])
        for (entry, data), text in zip(found, answers, strict=True):
            assert isinstance(text, str), text
            got = np.frombuffer(b64decode(text), np.float32)
            with np.errstate(invalid="ignore"):
                expected = read_piece(entry, data).view(np.float32)
            numbers = ~np.isnan(expected)
            assert np.array_equal(got[numbers].view(np.uint32), expected[numbers].view(np.uint32)), entry["file"]
            assert np.isnan(got[~numbers]).all()


def scales_in_turn() -> list[tuple[dict[str, Any], bytes]]:
    """Scales along any axes of any shape, so that every case of the decoder's loops occurs."""
    rng = np.random.default_rng(1)
    out = []
    for shape in ((2, 3, 4, 5), (1, 7, 1, 3), (6,), (5, 1), (3, 40000)):
        for mask in range(1 << len(shape)):
            scales = [n if mask >> k & 1 else 1 for k, n in enumerate(shape)]
            values = rng.integers(-127, 128, shape).astype(np.int8)
            data = rng.normal(size=scales).astype("<f4").tobytes() + values.tobytes()
            part = {"encoding": "int8", "at": 0, "shape": list(shape), "scales": scales}
            out.append(({"file": "w", "bytes": len(data), "decoded": 4 * values.size, "parts": [part]}, data))
    return out


def test_scales_along_any_axes() -> None:
    from base64 import b64decode  # noqa: PLC0415

    found = scales_in_turn()
    answers = node(DECODE, given=[case(*f, 1 << 15) for f in found])
    for (entry, data), text in zip(found, answers, strict=True):
        assert b64decode(text) == read_piece(entry, data).tobytes(), entry


GOOD: Final = {
    "file": "w", "bytes": 24, "decoded": 64,
    "parts": [
        {"encoding": "words", "at": 0, "shape": [2]},
        {"encoding": "int8", "at": 16, "shape": [4, 2], "scales": [1, 2]},
    ],
}  # fmt: skip


def bad(change: Callable[[dict[str, Any]], Any]) -> dict[str, Any]:
    entry = json.loads(json.dumps(GOOD))
    change(entry)
    return entry


HOSTILE: Final[dict[str, Callable[[dict[str, Any]], Any]]] = {
    "unknown encoding": lambda e: e["parts"][0].update(encoding="int4"),
    "an encoding of every object": lambda e: e["parts"][0].update(encoding="toString"),
    "no encoding": lambda e: e["parts"][0].pop("encoding"),
    "no shape": lambda e: e["parts"][0].pop("shape"),
    "an empty shape's element": lambda e: e["parts"][0].update(shape=[2, 0]),
    "a negative axis": lambda e: e["parts"][0].update(shape=[-1, -2]),
    "an axis that is no integer": lambda e: e["parts"][0].update(shape=[1.5]),
    "an axis of text": lambda e: e["parts"][0].update(shape=["2"]),
    "too many elements": lambda e: e["parts"][1].update(shape=[2**47, 2**47]),
    "fewer elements": lambda e: e["parts"][1].update(shape=[3, 2]),
    "overlap": lambda e: e["parts"][1].update(at=4),
    "going back": lambda e: e["parts"].reverse(),
    "within a word": lambda e: e["parts"][1].update(at=18),
    "no place": lambda e: e["parts"][1].pop("at"),
    "a negative place": lambda e: e["parts"][0].update(at=-4),
    "beyond the end": lambda e: e["parts"][1].update(at=36),
    "a wide gap": lambda e: (e["parts"][1].update(at=8 + 256), e.update(decoded=400)),
    "a wide gap at the end": lambda e: e.update(decoded=48 + 256),
    "too little decoded": lambda e: e.update(decoded=44),
    "scales of another rank": lambda e: e["parts"][1].update(scales=[2]),
    "scales that do not fit": lambda e: e["parts"][1].update(scales=[2, 1]),
    "too few scales": lambda e: e["parts"][1].update(scales=[1, 1]),
    "scales that are no list": lambda e: e["parts"][1].update(scales=2),
    "scales of words": lambda e: e["parts"][0].update(scales=[2]),
    "a part that is missing": lambda e: e["parts"].pop(),
    "none": lambda e: e.update(parts=[]),
}


def test_what_does_not_add_up_is_refused() -> None:
    given = [case(bad(change), bytes(24), 24) for change in HOSTILE.values()]
    answers = node(DECODE, given=[*given, case(GOOD, bytes(24), 24)])
    assert isinstance(answers.pop(), str), "the unchanged one is fine"
    for name, found in zip(HOSTILE, answers, strict=True):
        assert isinstance(found, dict), name
        assert (found["name"], found["code"]) == ("SingeError", "format"), (name, found)


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (lambda w: w.update(decoded=2**47), "decodes to"),
        (lambda w: w.update(decoded=-4), "decodes to"),
        (lambda w: w.pop("decoded"), "decodes to"),
        (lambda w: w.update(parts="all"), "parts"),
        (lambda w: w.update(parts=[None]), "parts"),
        (lambda w: w["parts"][0].update(at=1 << 20), "lies at"),
        (lambda w: w.update(decoded=w["decoded"] - 1), "ends within a word"),
        (lambda w: w.update(sha256="0" * 64), "sha256"),
    ],
)
def test_a_manifest_that_lies_is_refused(stored: tuple[Path, str], tmp_path: Path, change: Any, what: str) -> None:
    folder = tmp_path / "bundle"
    shutil.copytree(stored[0], folder)
    manifest = json.loads((folder / "model.json").read_text())
    change(manifest["targets"]["wasm"]["weights"][0])
    (folder / "model.json").write_text(json.dumps(manifest))
    script = f"""{READ}
const {{ load }} = await import(given.runner);
const failed = await load(given.url, {{ device: "wasm" }}).then(() => ({{ code: "none" }}), ({{ code, message }}) => ({{ code, message }}));
console.log(JSON.stringify(failed));"""
    found = node(script, given={"runner": (folder / "singe.js").as_uri(), "url": folder.as_uri()})
    assert found["code"] == "format", found
    assert what in found["message"]


# --- the models ------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", SIX)
def test_models(name: str, dtype: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The effect of smaller weights on a recorded input. It is only printed, since it depends on the model, not the runner."""
    if not (MODELS / f"{name}.onnx").exists():
        pytest.skip(f"no model {name} in {MODELS}")
    given, _ = model_case(name)
    model = load(MODELS / f"{name}.onnx", device="numpy", input_shapes={k: v.shape for k, v in given.items()})
    bundle = draft(model, dtype=dtype, samples=[given]).alone()
    assert bundle.deviation is not None
    assert not bundle.deviation.why_not
    assert all(error is not None for error in bundle.deviation.errors.values())
    for target in page_targets():
        entries = bundle.manifest["targets"][target]["weights"]
        stored, whole = sum(w["bytes"] for w in entries), sum(w["decoded"] for w in entries)
        assert stored <= {"float16": 0.52, "int8": 0.3}[dtype] * whole
        with capsys.disabled():
            print(f"\n{name} {dtype} {target}: {stored} of {whole} bytes; {dict(bundle.deviation.errors)}", end="")
