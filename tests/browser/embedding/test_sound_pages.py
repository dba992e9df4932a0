"""Tasks that hear, in Chromium: pages answer what Python answers for files, arrays and blocks, and hear a microphone."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest
from browsers import plain
from sound_models import of, shared_networks_in, talk, word_of_vectors

import singe as sg
from singe.files.sounds import wav_bytes
from singe.tools.serving.folder_server import Server

RATE: Final = 22050
KINDS: Final = ("voices", "denoise", "notes", "wake-word", "sounds", "speaker", "speakers")
WHOLE: Final = ("notes", "sounds", "speaker", "speakers")
"""Of the medium `sound`, each with a small model of its form, and those of them that take whole sounds."""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Server, Path]]:
    root = tmp_path_factory.mktemp("sounds")
    (root / "talk.wav").write_bytes(wav_bytes(np.tile(talk(1), 3), RATE))
    (root / "index.html").write_text("<!doctype html><title>sounds</title>")
    with Server(root, port=0) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server, root
        server.shutdown()


def exported(root: Path, kind: str) -> None:
    if not (root / kind).exists():
        sg.export(sg.task(kind, of(kind)), root / kind, targets=["wasm"])


ASK: Final = """async ([kind, rate, whole]) => {
  const { task } = await import(`/${kind}/singe-tasks.js`);
  const { decoded } = await import(`/${kind}/singe-sound.js`);
  const ask = await task(`/${kind}/`);
  const given = await decoded(await (await fetch("/talk.wav")).blob());
  const answers = [await ask("/talk.wav"), await ask(given), await ask(given.samples, { sampling_rate: rate })];
  const parts = [];
  if (!whole) {
    async function* blocks() {
      for (let at = 0; at < given.samples.length; at += 3001) yield given.samples.slice(at, at + 3001);
    }
    await ask.stream(blocks(), (now) => parts.push(...(now.audio ?? now.scores)), { sampling_rate: rate }).done;
  }
  const text = JSON.stringify({ answers, parts }, (_, value) => (ArrayBuffer.isView(value) ? [...value] : value));
  await ask.close();
  return JSON.parse(text);
}"""


def plain_numbers(value: Any) -> Any:
    """The numbers of an answer, without the bends, of which a tie may be one or the other."""
    if isinstance(value, list):
        return [[item[name] for name in sorted(item) if name not in ("bends", "label")] for item in value]
    return value["audio" if "audio" in value else "vector"]


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_a_page_answers_what_python_answers(site: tuple[Server, Path], browser: Any, kind: str) -> None:
    server, root = site
    exported(root, kind)
    page = browser.new_page()
    page.goto(server.address)
    found = page.evaluate(ASK, [kind, RATE, kind in WHOLE])
    page.close()
    wanted = sg.task(kind, of(kind), device="numpy")(root / "talk.wav")
    for answer in found["answers"]:
        np.testing.assert_allclose(plain_numbers(answer), plain_numbers(wanted.to_dict()), atol=2e-4)
    if kind not in WHOLE:
        whole = wanted.audio if kind == "denoise" else wanted.scores
        exact = 5e-3 if kind == "wake-word" else 2e-4  # whose features are integers
        np.testing.assert_allclose(found["parts"], whole, atol=exact)


@pytest.mark.full
@pytest.mark.slow
def test_a_wake_word_of_shared_networks_is_heard_in_a_page(site: tuple[Server, Path], browser: Any) -> None:
    server, root = site
    shared_networks_in(root)
    made = sg.task("wake-word", word_of_vectors(), labels=["hey"], beside=root, device="numpy")
    sg.export(made, root / "shared", targets=["wasm"])
    page = browser.new_page()
    page.goto(server.address)
    found = page.evaluate(ASK, ["shared", RATE, False])
    page.close()
    wanted = made(root / "talk.wav")
    assert len(wanted)
    for answer in found["answers"]:
        assert [word["label"] for word in answer] == ["hey"] * len(wanted)
        np.testing.assert_allclose(plain_numbers(answer), plain_numbers(wanted.to_dict()), atol=2e-4)
    np.testing.assert_allclose(found["parts"], wanted.scores, atol=2e-4)


@pytest.mark.slow
def test_the_page_of_a_bundle_hears_a_file_and_a_microphone(site: tuple[Server, Path], browser: Any) -> None:
    server, root = site
    exported(root, "voices")
    fake = f"--use-file-for-fake-audio-capture={root / 'talk.wav'}"
    switches = ("--use-fake-ui-for-media-stream", "--use-fake-device-for-media-stream", fake)
    with plain(browser, *switches) as chromium:
        page = chromium.new_context(permissions=["microphone"]).new_page()
        wrong: list[str] = []
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("console", lambda message: wrong.append(message.text) if "Content Security" in message.text else None)
        page.goto(f"{server.address}voices/")
        page.wait_for_selector("#status[data-state=ready]")
        page.set_input_files("#file", root / "talk.wav")
        page.wait_for_selector("#time[data-value]")
        assert page.locator("#found li").count() >= 1
        page.click("#microphone")
        page.wait_for_selector("#canvas[data-speaking=true]")
        page.click("#microphone")
        page.wait_for_selector("#status[data-state=ready]")
        assert not wrong
