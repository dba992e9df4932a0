"""@ricky0123/vad-web, unmodified, bundled over Singe and over onnxruntime-web: speech is found in the same places,
and heard through the microphone."""

from __future__ import annotations

import wave
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest
from browsers import plain
from packaged import installed, write_pages
from pages import HEADERS
from sites import served_plainly

from singe.tools.export.stub import export_folder

pytestmark = [pytest.mark.slow, pytest.mark.nightly]

VAD: Final = "0.0.31"
DEVICES: Final = ("wasm", "webgpu")
"""For each there are bundles that have it alone, so that a package which names no device runs on it."""
APP: Final = """
import { MicVAD, NonRealTimeVAD } from "@ricky0123/vad-web";

const ortConfig = (ort) => Object.assign(ort.env.wasm, { wasmPaths: "/node_modules/onnxruntime-web/dist/", numThreads: 1 });

/** Listen to the microphone until some stretches of speech have ended: how many samples each has. */
globalThis.heard = async (baseAssetPath, count) => {
  const lengths = [];
  const { promise, resolve, reject } = Promise.withResolvers();
  const onSpeechEnd = (audio) => lengths.push(audio.length) === count && resolve();
  const limits = { positiveSpeechThreshold: 0.5, negativeSpeechThreshold: 0.25, minSpeechMs: 100, redemptionMs: 100 };
  const vad = await MicVAD.new({ baseAssetPath, onnxWASMBasePath: "/node_modules/onnxruntime-web/dist/", ortConfig, onSpeechEnd, ...limits });
  vad.start();
  setTimeout(reject, 180000, new Error(`only ${lengths.length} stretches of speech were heard`));
  await promise;
  await vad.destroy?.();
  return lengths;
};

/** Three sounds like vowels, and what is found in them. */
globalThis.segments = async (modelURL) => {
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
    modules = installed(f"vad-{VAD}", f"@ricky0123/vad-web@{VAD}")
    folder = tmp_path_factory.mktemp("vad")
    write_pages(folder, modules, APP)
    package = modules / "@ricky0123" / "vad-web" / "dist"
    models = folder / "given"
    models.mkdir()
    legacy = "silero_vad_legacy.onnx"
    (models / legacy).write_bytes((package / legacy).read_bytes())
    for device in DEVICES:
        assert not export_folder(models, folder / device, targets=[device]).left_out
    worklet = "vad.worklet.bundle.min.js"
    for given in ("given", *DEVICES):
        (folder / given / worklet).write_bytes((package / worklet).read_bytes())
    return folder


def test_speech_is_found_where_it_is_over_onnxruntime_web(browser: Any, site: Path) -> None:
    found = {}
    with served_plainly(site, HEADERS) as address:
        for name, models in (("own", "given"), *(("singe", device) for device in DEVICES)):
            page = browser.new_page()
            page.set_default_timeout(180_000)
            page.goto(f"{address}{name}.html")
            page.wait_for_function("() => !!globalThis.segments")
            found[models] = page.evaluate("url => segments(url)", f"./{models}/silero_vad_legacy.onnx")
            page.close()
    assert len(found["given"]) > 1
    for device in DEVICES:
        assert found[device] == found["given"], device


def write_speech(path: Path) -> None:
    """Three sounds like vowels in three seconds, as `segments` has them, as a .wav file."""
    rate = 16000
    t = np.arange(3 * rate) / rate
    pitch = 120 + 20 * np.sin(6 * np.pi * t)
    sound = np.zeros(len(t))
    for n in range(1, 30):
        at = n * pitch
        loudness = sum(
            much * np.exp(-(((at - f) / wide) ** 2))
            for f, wide, much in ((600, 300, 1), (1400, 400, 0.5), (2600, 500, 0.3))
        )
        sound += np.sin(2 * np.pi * at * t) * loudness
    sound *= np.where(t % 1 > 0.6, 0, 0.15 * (0.6 + 0.4 * np.sin(10 * np.pi * t)))
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(rate)
        file.writeframes((sound.clip(-1, 1) * 32767).astype("<i2").tobytes())


def test_speech_is_heard_through_the_microphone(browser: Any, site: Path, tmp_path: Path) -> None:
    """The browser plays a file, again and again, as the microphone."""
    write_speech(tmp_path / "speech.wav")
    devices = ("--use-fake-ui-for-media-stream", "--use-fake-device-for-media-stream")
    file = f"--use-file-for-fake-audio-capture={tmp_path / 'speech.wav'}"
    policy = "--autoplay-policy=no-user-gesture-required"
    with plain(browser, *devices, file, policy) as other, served_plainly(site, HEADERS) as address:
        for name, models in (("own", "given"), ("singe", "wasm")):
            page = other.new_page()
            page.goto(f"{address}{name}.html")
            page.wait_for_function("() => !!globalThis.heard")
            lengths = page.evaluate("base => heard(base, 3)", f"/{models}/")
            assert len(lengths) >= 3, name
            assert all(1600 < length < 64000 for length in lengths), (name, lengths)
            page.close()
