"""@ricky0123/vad-web, unmodified, bundled over Singe and over onnxruntime-web: speech is found in the same places."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any, Final

import pytest
from bundles import ROOT, STATIC
from packages import npm
from pages import HEADERS
from sites import served_plainly

from singe.tools.export.package import write_package
from singe.tools.export.stub import export_folder

pytestmark = [pytest.mark.slow, pytest.mark.nightly]

VAD: Final = "0.0.31"
ESBUILD: Final = json.loads((STATIC / "package.json").read_text("utf-8"))["devDependencies"]["esbuild"]
APP: Final = """
import { NonRealTimeVAD } from "@ricky0123/vad-web";

/** Three sounds like vowels, and what is found in them. */
globalThis.segments = async (modelURL) => {
  const ortConfig = (ort) => Object.assign(ort.env.wasm, { wasmPaths: "/node_modules/onnxruntime-web/dist/", numThreads: 1 });
  const limits = { positiveSpeechThreshold: 0.5, negativeSpeechThreshold: 0.25, minSpeechMs: 100, redemptionMs: 100 };
  const vad = await NonRealTimeVAD.new({ modelURL, ortConfig, ...limits });
  const formants = [[600, 300, 1], [1400, 400, 0.5], [2600, 500, 0.3]];
  const loudness = (f) => formants.reduce((sum, [at, wide, much]) => sum + much * Math.exp(-(((f - at) / wide) ** 2)), 0);
  const audio = Float32Array.from({ length: 48000 }, (_, k) => {
    const t = k / 16000;
    const pitch = 120 + 20 * Math.sin(6 * Math.PI * t);
    let x = 0;
    for (let h = 1; h < 30; h++) x += Math.sin(2 * Math.PI * h * pitch * t) * loudness(h * pitch);
    return t % 1 > 0.6 ? 0 : 0.15 * x * (0.6 + 0.4 * Math.sin(10 * Math.PI * t));
  });
  const found = [];
  for await (const { start, end, audio: part } of vad.run(audio, 16000)) found.push([start, end, part.length]);
  return found;
};
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of each runtime, and the models: as they came, and with stubs in their places."""
    place = ROOT / "tests" / ".cache" / f"vad-{VAD}"
    if not (place / "done").exists():
        place.mkdir(parents=True, exist_ok=True)
        (place / "package.json").write_text('{"private": true}')
        npm("install", f"@ricky0123/vad-web@{VAD}", f"esbuild@{ESBUILD}", cwd=place)
        (place / "done").touch()
    folder = tmp_path_factory.mktemp("vad")
    (folder / "node_modules").symlink_to(place / "node_modules")
    (folder / "app.js").write_text(APP)
    write_package(folder / "npm")
    runtime = folder / "npm" / "singe-ort.js"
    singe = [f"--alias:{name}={runtime}" for name in ("onnxruntime-web", "onnxruntime-web/wasm")]
    for name, options in (("own", []), ("singe", singe)):
        command = ["node_modules/.bin/esbuild", "app.js", "--bundle", "--format=esm", f"--outfile={name}.js", *options]
        subprocess.run(command, cwd=folder, check=True, capture_output=True, timeout=60)
        (folder / f"{name}.html").write_text(
            f'<!doctype html><title>{name}</title><script type="module" src="{name}.js"></script>'
        )
    models = folder / "given"
    models.mkdir()
    legacy = "silero_vad_legacy.onnx"
    (models / legacy).write_bytes((place / "node_modules" / "@ricky0123" / "vad-web" / "dist" / legacy).read_bytes())
    assert not export_folder(models, folder / "compiled").left_out
    return folder


def test_speech_is_found_where_it_is_over_onnxruntime_web(browser: Any, site: Path) -> None:
    found = {}
    with served_plainly(site, HEADERS) as address:
        for name, models in (("own", "given"), ("singe", "compiled")):
            page = browser.new_page()
            page.goto(f"{address}{name}.html")
            page.wait_for_function("() => !!globalThis.segments")
            found[name] = page.evaluate("url => segments(url)", f"./{models}/silero_vad_legacy.onnx")
            page.close()
    assert len(found["own"]) > 1
    assert found["singe"] == found["own"]
