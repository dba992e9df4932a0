"""The zoo's OCR reads what is drawn: lines of several sizes, a page that is turned a little, and one that stands on its head."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import singe as sg
from singe import zoo
from singe.errors import InputError

pytestmark = [pytest.mark.slow, pytest.mark.full]
TEXTS = (
    "The quick brown fox jumps over the lazy dog in the afternoon",
    "and sleeps, 12345.",
    "Invoice No. 2026-11-29",
    "Total: 1,234.56 EUR",
)
RIGHT = "right column"


@pytest.fixture(scope="module", params=["numpy", "wasm"])
def read(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SINGE_CACHE", str(tmp_path_factory.mktemp("zoo")))
        try:
            for file in zoo.models["ppocr-tiny"].files:
                zoo.fetch(f"zoo:ppocr-tiny/{file.name}")
        except InputError as e:
            pytest.skip(f"cannot be fetched here: {e}")
        yield sg.task("ocr", device=request.param)


def page(degrees: float) -> Any:
    image = pytest.importorskip("PIL.Image", reason="Pillow is not here")
    fonts, pens = pytest.importorskip("PIL.ImageFont"), pytest.importorskip("PIL.ImageDraw")
    picture = image.new("RGB", (960, 600), "white")
    pen = pens.Draw(picture)
    for k, text in enumerate(TEXTS):
        pen.text((80, 80 + 110 * k), text, fill=(20, 20, 60), font=fonts.load_default(size=24 + 6 * (k % 3)))
    pen.text((600, 80 + 110 * 3), RIGHT, fill="black", font=fonts.load_default(size=24))
    return picture.rotate(degrees, fillcolor="white", resample=image.Resampling.BICUBIC)


@pytest.mark.parametrize("degrees", [0, 3, -5, 10, 180])
def test_drawn_pages_are_read_in_order(read: Any, degrees: float, tmp_path: Path) -> None:
    found = read(page(degrees))
    assert [line.text for line in found] == [*TEXTS, RIGHT]
    assert all(line.score > 0.9 for line in found)
