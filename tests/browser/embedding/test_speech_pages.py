"""Tasks that speak, in Chromium: pages say what Python says, whole and sentence by sentence, and play and save it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest
from tiny_voice import RATE, kokoro_in, voice_in

import singe as sg
from singe.files.sounds import sound_of
from singe.tools.serving.folder_server import Server

TEXT: Final = "ab, c. mr. de! " + "hello world " * 100 + "costs 3.5."


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Server, Path]]:
    root = tmp_path_factory.mktemp("speech")
    sg.export(sg.task("speak", voice_in(root)), root / "speak", targets=["wasm"])
    with Server(root, port=0) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server, root
        server.shutdown()


SAY: Final = """async (text) => {
  const { task } = await import("/speak/singe-tasks.js");
  const speak = await task("/speak/");
  const plain = ({ audio, sample_rate, text }) => ({ audio: [...audio], sample_rate, text });
  const answers = [await speak(text), ...(await speak([text, "ab"], { seed: 7, speed: 2 }))];
  answers.push(...(await Promise.all([speak(text), speak(text, { seed: null })])));
  const parts = [];
  await speak.stream(text, (now) => parts.push(now)).done;
  async function* letters() {
    yield* text;
  }
  const others = [];
  await speak.stream(letters(), (now) => others.push(now), { seed: 7, speed: 2 }).done;
  const stopped = [];
  const own = speak.stream(text, (now) => {
    stopped.push(now);
    own.stop();
  });
  await own.done;
  const wrong = [];
  for (const settings of [{ speed: 0 }, { pace: 1 }, { speaker: 3 }]) wrong.push(await speak("a", settings).catch(({ message }) => message));
  wrong.push(await speak(3).catch(({ message }) => message));
  await speak.close();
  return [...[answers, parts, others, stopped].map((list) => list.map(plain)), wrong];
}"""


@pytest.mark.slow
def test_a_page_says_what_python_says(site: tuple[Server, Path], browser: Any) -> None:
    server, root = site
    page = browser.new_page()
    page.goto(f"{server.address}speak/")
    answers, parts, others, stopped, wrong = page.evaluate(SAY, TEXT)
    page.close()
    speak = sg.task("speak", root / "voice.onnx", device="numpy")
    wanted = [speak(TEXT), *speak([TEXT, "ab"], seed=7, speed=2), speak(TEXT)]
    for answer, own in zip(answers, wanted, strict=False):
        np.testing.assert_allclose(answer["audio"], own.audio, atol=1e-5)
        assert (answer["sample_rate"], answer["text"]) == (RATE, own.text)
    assert not np.allclose(answers[-1]["audio"], wanted[0].audio)
    for found, settings in ((parts, {}), (others, {"seed": 7, "speed": 2})):
        own = list(speak.stream(TEXT, **settings))
        assert [part["text"] for part in found] == [part.text for part in own]
        np.testing.assert_allclose(
            np.concatenate([part["audio"] for part in found]), np.concatenate([part.audio for part in own]), atol=1e-5
        )
    assert len(stopped) == 1
    told = ["speak: speed 0", "speak: got pace; expected some of speed", "speak: speaker 3", "speak: got number"]
    assert [text.split(",")[0] for text in wrong] == told


CASES: Final = (
    ("Ab, ba.", {}),
    ("ba a!", {"phonemes": True, "speaker": "bf_emma", "speed": 2}),
    ("a" * 700, {"phonemes": True, "speaker": 1}),
)
SAY_EACH: Final = """async (cases) => {
  const { task } = await import("/kokoro/public/singe-tasks.js");
  const speak = await task("/kokoro/public/");
  const answers = [];
  for (const [text, settings] of cases) answers.push([...(await speak(text, settings)).audio]);
  const wrong = await speak("a", { speaker: "joe" }).catch(({ message }) => message);
  await speak.close();
  return [answers, wrong];
}"""


@pytest.mark.slow
def test_a_page_has_the_speakers_of_kokoro(site: tuple[Server, Path], browser: Any) -> None:
    server, root = site
    (root / "kokoro").mkdir()
    folder = kokoro_in(root / "kokoro")
    (folder / "cmudict.dict").write_text("ab AH0 B\nba B AH0\n")
    speak = sg.task("speak", folder, device="numpy")
    sg.export(speak, folder / "public", targets=["wasm"])
    page = browser.new_page()
    page.goto(server.address)
    answers, wrong = page.evaluate(SAY_EACH, CASES)
    page.close()
    for answer, (text, settings) in zip(answers, CASES, strict=True):
        own = speak(text, **settings).audio
        assert own.any()
        np.testing.assert_allclose(answer, own, rtol=1e-6)
    assert wrong.startswith("speak: speaker")


@pytest.mark.slow
def test_the_page_of_a_bundle_plays_and_saves(site: tuple[Server, Path], browser: Any) -> None:
    server, root = site
    page = browser.new_page()
    wrong: list[str] = []
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("console", lambda message: wrong.append(message.text) if "Content Security" in message.text else None)
    page.goto(f"{server.address}speak/")
    page.wait_for_selector("#status[data-state=ready]")
    page.fill("#text", "ab, c. de!")
    page.click("#speak")
    page.wait_for_selector("#save:enabled")
    page.wait_for_selector("#status[data-state=ready]")
    assert page.inner_text("#said") == "ab, c. de!"
    with page.expect_download() as saved:
        page.click("#save")
    saved.value.save_as(root / "saved.wav")
    sound = sound_of(root / "saved.wav")
    assert sound.rate == RATE
    wanted = sg.task("speak", root / "voice.onnx", device="numpy")("ab, c. de!").audio
    np.testing.assert_allclose(sound.samples, wanted, atol=1e-3)
    page.fill("#text", "ab. " * 100)
    page.click("#speak")
    page.wait_for_selector("#said mark")
    page.click("#stop")
    page.wait_for_selector("#status[data-state=ready]")
    assert page.inner_text("#status") == "Stopped."
    assert not wrong
    page.close()
