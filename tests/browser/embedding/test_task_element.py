"""`<singe-task>` of texts, of sounds and of what is said: what is typed or chosen is answered as Python answers, and a kind that does not fit is said."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest
import tiny_whisper
from small_texts import folder_of, of_pairs, token_vectors
from sound_models import of, talk

import singe as sg
from singe.files.sounds import wav_bytes
from singe.tools.serving.folder_server import Server

pytestmark = pytest.mark.full
PAGE: Final = """<!doctype html><meta charset="utf-8"><singe-task src="/{kind}/" {attributes}></singe-task><script type="module">
import "/{kind}/singe-element.js";
globalThis.events = [];
for (const type of ["load", "result", "error"]) {{
  document.querySelector("singe-task").addEventListener(type, ({{ detail }}) => events.push([type, detail.code ?? detail.info?.kind ?? detail]));
}}
</script>"""
HEARD: Final = """() => new Promise((done) => {
  const sound = document.querySelector("singe-task").shadowRoot.querySelector("audio");
  const tell = () => done([sound.hidden, sound.duration]);
  sound.readyState ? tell() : sound.addEventListener("loadedmetadata", tell);
})"""
"""Whether the field of the sound is hidden, and how long it is."""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Server, Path]]:
    root = tmp_path_factory.mktemp("element")
    beside = folder_of(root / "files")
    sg.export(sg.task("embed", token_vectors(), beside=beside), root / "embed", ["wasm"])
    sg.export(sg.task("rerank", of_pairs(1), beside=beside), root / "rerank", ["wasm"])
    for kind in ("voices", "denoise"):
        sg.export(sg.task(kind, of(kind)), root / kind, ["wasm"])
    hear = sg.task("transcribe", tiny_whisper.hugging_face(root / "whisper"), device="numpy")
    sg.export(hear, root / "transcribe", ["wasm"])
    (root / "talk.wav").write_bytes(wav_bytes(np.tile(talk(1), 3), 22050))
    with Server(root, port=0) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server, root
        server.shutdown()


@pytest.fixture
def page(browser: Any) -> Iterator[Any]:
    context = browser.new_context()
    yield context.new_page()
    context.close()


def placed(site: tuple[Server, Path], page: Any, kind: str, attributes: str, text: str) -> None:
    server, root = site
    (root / "element.html").write_text(PAGE.format(kind=kind, attributes=attributes))
    page.goto(f"{server.address}element.html")
    said(page, text)


def said(page: Any, text: str) -> None:
    page.get_by_role("status").filter(has_text=text).wait_for()


def test_a_text_is_typed_and_answered(site: tuple[Server, Path], page: Any) -> None:
    placed(site, page, "embed", 'device="wasm"', "ready on wasm")
    page.get_by_label("A text").fill("the cat sat")
    page.get_by_role("button", name="Answer").click()
    said(page, "ms on wasm")
    assert page.get_by_role("listitem").all_inner_texts() == ["A vector of 8 numbers"]
    vector = page.evaluate("[...events.at(-1)[1].vector]")
    wanted = sg.task("embed", site[1] / "embed", device="wasm")("the cat sat").vector
    np.testing.assert_allclose(vector, wanted, atol=1e-6)
    assert page.evaluate("document.querySelector('singe-task').ask('a dog').then(({ vector }) => vector.length)") == 8


def test_settings_are_attributes(site: tuple[Server, Path], page: Any) -> None:
    documents = ["the cat", "a dog sat on the mat."]
    placed(site, page, "rerank", f'device="wasm" documents="{documents[0]}&#10;{documents[1]}"', "ready on wasm")
    page.get_by_label("A text").fill("dogs")
    page.get_by_role("button", name="Answer").click()
    said(page, "ms on wasm")
    wanted = sg.task("rerank", site[1] / "rerank", device="wasm")("dogs", documents=documents)
    shown = [text.split("\n")[0] for text in page.get_by_role("listitem").all_inner_texts()]
    assert shown == [one.label for one in wanted]


def test_a_sound_is_chosen_and_answered(site: tuple[Server, Path], page: Any) -> None:
    placed(site, page, "voices", 'device="wasm"', "ready on wasm")
    page.get_by_label("A sound").set_input_files(str(site[1] / "talk.wav"))
    said(page, "ms on wasm")
    wanted = sg.task("voices", of("voices"), device="numpy")(site[1] / "talk.wav")
    shown = [text.split("\n")[0] for text in page.get_by_role("listitem").all_inner_texts()]
    assert shown == [f"{one.start:.2f} to {one.end:.2f} s" for one in wanted]
    assert shown


def test_a_sound_that_is_made_can_be_heard(site: tuple[Server, Path], page: Any) -> None:
    placed(site, page, "denoise", 'device="wasm"', "ready on wasm")
    page.get_by_label("A sound").set_input_files(str(site[1] / "talk.wav"))
    said(page, "ms on wasm")
    hidden, duration = page.evaluate(HEARD)
    assert not hidden
    assert duration == pytest.approx(3 * len(talk(1)) / 22050, abs=0.05)


def test_what_is_said_is_shown_with_its_parts(site: tuple[Server, Path], page: Any) -> None:
    placed(site, page, "transcribe", 'device="wasm"', "ready on wasm")
    page.get_by_label("A sound").set_input_files(str(site[1] / "talk.wav"))
    said(page, "ms on wasm")
    wanted = sg.task("transcribe", site[1] / "whisper", device="numpy")(site[1] / "talk.wav")
    text, *parts = page.get_by_role("listitem").all_inner_texts()
    assert wanted.chunks
    assert text == wanted.text
    assert [part.split("\n")[0] for part in parts] == [
        f"{one.start:.2f} to {one.end:.2f} s: {one.text.strip()}" for one in wanted.chunks
    ]


def test_a_kind_that_does_not_fit_is_said(site: tuple[Server, Path], page: Any) -> None:
    placed(
        site,
        page,
        "embed",
        'kind="camera"',
        'kind: got "camera", and the task takes text',
    )
    assert page.evaluate("events.at(-1)") == ["error", "input"]
