"""The zoo's models of speech: what the voice says is what the other writes down."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import singe as sg
from singe.errors import InputError

pytestmark = [pytest.mark.slow, pytest.mark.full]
TEXT = "It was the best of times. It was the worst of times, said Dr. Smith in 1859."


@pytest.fixture(scope="module", autouse=True)
def _cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Nothing is fetched into the folder of the user."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SINGE_CACHE", str(tmp_path_factory.mktemp("zoo")))
        for model in ("joe", "kokoro", "whisper-tiny-en"):
            try:
                for file in sg.zoo.models[model].files:
                    sg.zoo.fetch(f"zoo:{model}/{file.name}")
            except InputError as e:
                pytest.skip(f"cannot be fetched here: {e}")
        yield


@pytest.mark.parametrize("device", ["wasm", "numpy"])
def test_what_is_said_is_written_down(device: str, tmp_path: Path) -> None:
    sound = sg.task("speak", device="wasm")(TEXT)
    sound.save(tmp_path / "said.wav")
    answer = sg.task("transcribe", device=device)(tmp_path / "said.wav")
    assert answer.text == TEXT
    assert [round(part.end) for part in answer.chunks] == [2, 6]


@pytest.mark.parametrize("speaker", ["af_heart", "bm_george"])
def test_what_kokoro_says_is_written_down(speaker: str, tmp_path: Path) -> None:
    text = "The quick brown fox jumps over the lazy dog, and eight boys found nine old houses."
    sg.task("speak", "zoo:kokoro", device="wasm")(text, speaker=speaker).save(tmp_path / "said.wav")
    heard = sg.task("transcribe", device="wasm")(tmp_path / "said.wav").text
    assert heard.replace(",", "") == text.replace(",", "")
