"""The page that classifies pictures, in Chromium: samples, files, drops, pastes, the camera, and invalid files."""

from __future__ import annotations

import time
import zlib
from base64 import b64encode
from collections.abc import Callable, Iterator
from io import BytesIO
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest
from browsers import plain
from desk import LOOKS, Desk, desk
from sites import ROOT

Image = pytest.importorskip("PIL.Image")

SAMPLES: Final = ROOT / "demos" / "classify" / "samples"
CLASSES: Final = {"cat": 285, "coffee": 967, "flower": 985, "temple": 698, "rocket": 657}
"""The class of each sample, in the order of the page: Egyptian cat, espresso, daisy, palace, missile."""
ORIENTATION: Final = 0x0112
"""EXIF's tag for the orientation."""
CAMERA: Final = ("--use-fake-device-for-media-stream", "--use-fake-ui-for-media-stream")


@pytest.fixture(scope="module")
def classify(browser: Any, address: str) -> Iterator[Desk]:
    with desk(browser, f"{address}classify/") as found:
        yield found


@pytest.fixture(autouse=True)
def on_wasm(request: pytest.FixtureRequest) -> None:
    """Tests that share the page begin on WebAssembly, with the first sample."""
    if "classify" in request.fixturenames:
        found = request.getfixturevalue("classify")
        found.choose("wasm")
        show_sample(found, "cat")


def runs(found: Desk) -> int:
    """The number of runs in the table."""
    cells = found.item("compared").locator("tbody tr td:last-child").all_inner_texts()
    return sum(int(text) for text in cells)


def after(found: Desk, act: Any) -> None:
    """Call a function that shows a picture, and wait until the picture is classified."""
    before = runs(found)
    act()
    until = time.monotonic() + 240
    while runs(found) == before and found.item("status").get_attribute("data-state") != "error":
        assert time.monotonic() < until, "no picture was read"
        time.sleep(0.05)
    found.ready()


def show_sample(found: Desk, name: str) -> None:
    after(found, found.item(f"sample-{list(CLASSES).index(name)}").click)


def assert_shows(found: Desk, name: str) -> None:
    """Check that top-1 is the sample's class, and that names, bars and figures agree."""
    assert found.value("top-1") == str(CLASSES[name])
    bars = [
        float(found.item(f"top-{k}").evaluate("(e) => e.parentNode.style.getPropertyValue('--value')"))
        for k in range(1, 6)
    ]
    assert bars == sorted(bars, reverse=True)
    assert 0 < bars[-1] < sum(bars) <= 1.001
    assert len({found.value(f"top-{k}") for k in range(1, 6)}) == 5
    assert all(found.item(f"top-{k}").inner_text() for k in range(1, 6))
    assert float(found.value("time")) > 0


def seen(found: Desk) -> np.ndarray:
    """The pixels that the network sees."""
    data = found.item("view").evaluate(
        "(view) => [...view.getContext('2d').getImageData(0, 0, view.width, view.height).data]"
    )
    return np.array(data, np.float64).reshape(224, 224, 4)[..., :3]


def seen_until(found: Desk, shows: Callable[[np.ndarray], bool]) -> np.ndarray:
    """The first pixels of which that is so; a slow machine takes a while from one picture to the next."""
    until = time.monotonic() + 240
    while not shows(picture := seen(found)):
        assert time.monotonic() < until, "the picture stands still"
        time.sleep(0.05)
    return picture


def upload(found: Desk, name: str, data: bytes, kind: str = "image/jpeg") -> None:
    found.item("file").set_input_files({"name": name, "mimeType": kind, "buffer": data})


def refused(found: Desk, *words: str) -> None:
    """Check that the page's error has these words, and that the page continues to work."""
    found.await_state("error")
    text = found.item("status").inner_text()
    for word in words:
        assert word in text, text
    show_sample(found, "coffee")
    assert_shows(found, "coffee")


@pytest.mark.parametrize("name", CLASSES)
def test_samples(classify: Desk, name: str) -> None:
    show_sample(classify, name)
    assert_shows(classify, name)


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["webgpu", "numpy"])
def test_samples_on_each_backend(classify: Desk, backend: str) -> None:
    if classify.item("backend").locator(f"option[value={backend}]").is_disabled():
        pytest.skip(classify.item("reasons").inner_text())
    classify.choose(backend)
    for name in CLASSES if backend == "numpy" else ("cat", "temple"):  # WebGPU runs in software here
        show_sample(classify, name)
        assert_shows(classify, name)


@pytest.mark.slow
def test_samples_through_python(classify: Desk) -> None:
    if classify.item("python").is_disabled():
        pytest.skip(classify.item("reasons").inner_text())
    for backend in ("wasm", "webgpu"):
        classify.choose(backend, through_python=True)
        show_sample(classify, "temple")
        assert_shows(classify, "temple")
        rows = classify.item("compared").locator("tbody tr").all_inner_texts()
        assert "Python" in rows[-1], rows


def test_the_table_compares(browser: Any, address: str) -> None:
    with desk(browser, f"{address}classify/") as found:
        assert not found.item("compared").is_visible()
        assert found.item("again").is_disabled()
        show_sample(found, "rocket")
        found.item("again").click()
        found.item("compared").get_by_text("11", exact=True).wait_for()
        row = found.item("compared").locator("tbody tr").all_inner_texts()
        assert len(row) == 1
        name, way, load, last, median, count = row[0].split("\t")
        assert (name, way, count) == ("WebAssembly", "JavaScript", "11")
        assert all(text.endswith(" ms") for text in (load, last, median))


# --- ways in -------------------------------------------------------------------------------------------------------------


def test_upload(classify: Desk) -> None:
    after(classify, lambda: upload(classify, "mine.jpg", (SAMPLES / "temple.jpg").read_bytes()))
    assert_shows(classify, "temple")
    assert classify.item("picture").is_visible()


GIVE: Final = """({ type, data, name }) => {
  const bytes = Uint8Array.from(atob(data), (c) => c.charCodeAt(0));
  const given = new DataTransfer();
  given.items.add(new File([bytes], name, { type: "image/jpeg" }));
  const target = document.querySelector("h1");
  if (type === "paste") {
    target.dispatchEvent(new ClipboardEvent("paste", { clipboardData: given, bubbles: true }));
    return;
  }
  for (const step of ["dragenter", "dragover", "drop"]) {
    target.dispatchEvent(new DragEvent(step, { dataTransfer: given, bubbles: true, cancelable: true }));
    if (step === "dragover" && !document.body.classList.contains("dropping")) throw new Error("nothing shows the drop");
  }
}"""


@pytest.mark.parametrize("way", ["drop", "paste"])
def test_drop_and_paste(classify: Desk, way: str) -> None:
    data = b64encode((SAMPLES / "flower.jpg").read_bytes()).decode()
    after(classify, lambda: classify.page.evaluate(GIVE, {"type": way, "data": data, "name": "flower.jpg"}))
    assert_shows(classify, "flower")
    assert "dropping" not in (classify.page.locator("body").get_attribute("class") or "")


COPY: Final = """async (data) => {
  const bytes = Uint8Array.from(atob(data), (c) => c.charCodeAt(0));
  await navigator.clipboard.write([new ClipboardItem({ "image/png": new Blob([bytes], { type: "image/png" }) })]);
}"""


def test_the_paste_button(browser: Any, address: str) -> None:
    options = {"permissions": ["clipboard-read", "clipboard-write"]}
    with desk(browser, f"{address}classify/", **options) as found:
        png = BytesIO()
        Image.open(SAMPLES / "coffee.jpg").save(png, "png")
        found.page.evaluate(COPY, b64encode(png.getvalue()).decode())
        after(found, found.item("paste").click)
        assert_shows(found, "coffee")
        found.page.evaluate("navigator.clipboard.writeText('no picture')")
        found.item("paste").click()
        refused(found, "Clipboard", "no picture")


def test_camera(browser: Any, address: str) -> None:
    with plain(browser, *CAMERA) as other, desk(other, f"{address}classify/", permissions=["camera"]) as found:
        after(found, found.item("camera").click)
        assert found.item("video").is_visible()
        assert found.item("camera").get_attribute("aria-pressed") == "true"
        first = seen_until(found, lambda picture: picture.std() > 5)
        seen_until(found, lambda picture: np.abs(picture - first).max() > 50)  # the fake camera's picture moves
        found.item("camera").click()
        found.item("picture").wait_for(state="visible")
        assert not found.item("video").is_visible()
        found.ready()
        show_sample(found, "rocket")
        assert_shows(found, "rocket")


def test_a_camera_that_is_refused_or_absent(browser: Any, address: str) -> None:
    with desk(browser, f"{address}classify/") as found:
        found.item("camera").click()
        refused(found, "camera")
        assert found.item("camera").get_attribute("aria-pressed") == "false"
        assert not found.item("video").is_visible()


def test_pictures_are_turned_upright(classify: Desk) -> None:
    """A photograph that lies on its side, with EXIF's word on how to turn it, is the upright one."""
    upright = Image.open(SAMPLES / "temple.jpg")
    files = []
    for turn, orientation in ((None, 1), (Image.Transpose.ROTATE_90, 6), (Image.Transpose.ROTATE_180, 3)):
        exif = Image.Exif()
        exif[ORIENTATION] = orientation
        file = BytesIO()
        (upright.transpose(turn) if turn is not None else upright).save(file, "jpeg", quality=95, exif=exif)
        files.append(file.getvalue())
    views = []
    for data in files:
        after(classify, lambda data=data: upload(classify, "turned.jpg", data))
        assert_shows(classify, "temple")
        views.append(seen(classify))
    for view in views[1:]:
        assert np.abs(view - views[0]).mean() < 2
    size = classify.item("picture").evaluate("(e) => [e.naturalWidth, e.naturalHeight]")
    assert size == list(upright.size)


# --- files that are not pictures -----------------------------------------------------------------------------------------


def png(width: int, height: int) -> bytes:
    """A PNG of one colour, which has few bytes at any size."""
    file = BytesIO()
    Image.new("1", (width, height)).save(file, "png")
    return file.getvalue()


def test_huge(classify: Desk) -> None:
    data = png(10_000, 10_000)
    assert len(data) < 1_000_000
    upload(classify, "huge.png", data, "image/png")
    refused(classify, "huge.png", "10000 × 10000", "smaller")


def test_broken(classify: Desk) -> None:
    whole = png(300, 300)
    at = whole.index(b"IDAT") + 4
    broken = whole[:at] + zlib.compress(b"no pixels")[: len(whole) - at] + whole[at + 17 :]
    upload(classify, "broken.png", broken, "image/png")
    refused(classify, "broken.png", "damaged")


@pytest.mark.parametrize(
    ("name", "data"),
    [("notes.jpg", b"These are notes, and no picture at all. " * 9), ("empty.png", b""), ("cut.jpg", b"\xff\xd8\xff\xe0\x00\x10JFIF")],
)  # fmt: skip
def test_no_picture_at_all(classify: Desk, name: str, data: bytes) -> None:
    upload(classify, name, data)
    refused(classify, name)


def test_a_drop_of_words(classify: Desk) -> None:
    classify.page.evaluate(
        """() => {
          const given = new DataTransfer();
          given.setData("text/plain", "words");
          document.body.dispatchEvent(new DragEvent("drop", { dataTransfer: given, bubbles: true, cancelable: true }));
        }"""
    )
    refused(classify, "no file")


def test_a_sample_that_cannot_be_had(browser: Any, address: str) -> None:
    with desk(browser, f"{address}classify/") as found:
        found.page.route("**/samples/cat.jpg", lambda route: route.fulfill(status=503))
        found.item("sample-0").click()
        refused(found, "503")


# --- how it looks --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("look", LOOKS)
def test_looks(browser: Any, address: str, look: str) -> None:
    with desk(browser, f"{address}classify/", **LOOKS[look]) as found:
        found.screenshot(f"classify-{look}-empty")
        show_sample(found, "coffee")
        assert_shows(found, "coffee")
        found.page.evaluate("scrollTo(0, 0)")
        found.screenshot(f"classify-{look}")
        assert found.fits()
        assert found.small_targets() == []
        complaints = [text for text in found.console.complaints if "Service Worker" not in text]
        assert complaints == []


def test_samples_are_small_and_their_origin_is_told() -> None:
    sources = (SAMPLES / "SOURCES.md").read_text("utf-8")
    for name in CLASSES:
        path: Path = SAMPLES / f"{name}.jpg"
        assert path.stat().st_size <= 60_000
        assert path.name in sources
