"""The pages of the site that are tasks: faces are found, people cut out, voices and notes heard and noise taken away, of samples,
files, the camera and the microphone, and without a network after one visit."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import Any, Final

import pytest
from browsers import plain
from desk import Desk
from packages import axe, findings
from sites import demos_build, demos_script, served, until
from tiny_translator import translator_of

import singe as sg

Image = pytest.importorskip("PIL.Image", reason="Pillow is not here")
build: Final = demos_build()
pytestmark = pytest.mark.slow
tasks: Final = demos_script("task_pages")
PAGES: Final = {name: page for name, page in tasks.TASK_PAGES.items() if page.medium == "picture"}
HEARING: Final = {name: page for name, page in tasks.TASK_PAGES.items() if page.medium == "sound"}
SPEAKING: Final = {name: page for name, page in tasks.TASK_PAGES.items() if page.medium == "speech"}
SAMPLE: Final = build.HERE / tasks.sample_address("astronaut.jpg")
KEPT: Final = """async (names) => {
  const own = (await caches.keys()).find((name) => name.startsWith("singe-site"));
  const urls = own ? (await (await caches.open(own)).keys()).map(({ url }) => url) : [];
  return names.every((name) => urls.some((url) => url.includes(`/${name}?`)));
}"""


def pages_alone(cache: Path, pages: Mapping[str, Any]) -> Path:
    """A site of these pages alone."""
    shared = ("tasks/", "front-offline.js")
    said: list[str] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(demos_script("kept"), "CACHE", cache)
        files = {k: v for k, v in build.page_files().items() if k.startswith(shared)}
        try:
            for name, page in pages.items():
                files |= tasks.task_files(name, page, "0", said.append)
        except sg.InputError as e:
            pytest.skip(str(e))
        build.write_site(files, cache / "out")
    return cache / "out"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    hands = PAGES["hands"]
    two = replace(hands, bundles={place: hands.bundles[place] for place in ("model", "face")})
    return pages_alone(tmp_path_factory.mktemp("cache"), {**PAGES, "hands": two})


@pytest.fixture(scope="module")
def hearing(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return pages_alone(tmp_path_factory.mktemp("cache"), HEARING)


@pytest.fixture(scope="module")
def speaking(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return pages_alone(tmp_path_factory.mktemp("cache"), SPEAKING)


@pytest.fixture
def camera(browser: Any, tmp_path: Path) -> Iterator[Any]:
    """A Chromium whose camera shows a person."""
    file, held = tmp_path / "camera.mjpeg", BytesIO()
    with Image.open(SAMPLE) as person:
        person.crop((0, 0, 512, 384)).resize((640, 480)).save(held, "JPEG")
    file.write_bytes(2 * held.getvalue())
    switches = "--use-fake-ui-for-media-stream", "--use-fake-device-for-media-stream"
    with plain(browser, *switches, f"--use-file-for-fake-video-capture={file}") as found:
        yield found


def opened(page: Any, address: str) -> Desk:
    """A page of a task on wasm."""
    desk = Desk(page)
    page.goto(address)
    desk.ready()
    desk.item("backend").select_option("wasm")
    said(page, "Ready on wasm")
    return desk


def said(page: Any, text: str) -> None:
    page.locator("[data-testid=status][data-state=ready]", has_text=text).wait_for()


def saved(page: Any, folder: Path) -> Any:
    with page.expect_download() as download:
        page.get_by_test_id("save").click()
    download.value.save_as(folder / "saved.png")
    with Image.open(folder / "saved.png") as found:
        return found.convert("RGBA")


@pytest.mark.parametrize("width", [1280, 390])
def test_faces_of_samples_and_files_are_found(site: Path, address: str, browser: Any, width: int) -> None:
    context = browser.new_context(viewport={"width": width, "height": 844})
    page = context.new_page()
    desk = opened(page, f"{address}detect/")
    page.get_by_role("button", name=tasks.SAMPLES["astronaut.jpg"]).focus()
    page.keyboard.press("Enter")
    said(page, "1 found")
    assert desk.item("top-1").inner_text().startswith("face: 9")
    desk.item("file").set_input_files(site / "tasks/samples/photographer.jpg")
    page.locator("[data-testid=top-1]", has_text="face: 7").wait_for()
    assert float(desk.value("time")) > 0
    assert "kB for WebAssembly" in desk.item("size").inner_text()
    assert desk.fits()
    assert desk.small_targets() == []
    assert desk.console.complaints == []
    context.close()


def test_people_are_cut_out_to_a_transparent_picture(address: str, browser: Any, tmp_path: Path) -> None:
    context = browser.new_context(viewport={"width": 390, "height": 844})
    page = context.new_page()
    desk = opened(page, f"{address}cutout/")
    desk.item("sample-0").click()
    said(page, "Done on wasm")
    alpha = saved(page, tmp_path).getchannel("A")
    assert alpha.size == (512, 512)
    assert alpha.getpixel((225, 150)) > 200, "the face stays"
    assert alpha.getpixel((330, 40)) < 50, "the wall goes"
    assert desk.fits()
    assert desk.console.complaints == []
    context.close()


def test_the_page_of_hands_has_faces_too(address: str, browser: Any) -> None:
    context = browser.new_context(viewport={"width": 390, "height": 844})
    page = context.new_page()
    desk = opened(page, f"{address}hands/")
    desk.item("sample-0").click()
    said(page, "2 found")
    assert {desk.item(f"top-{k}").inner_text()[:10].strip() for k in (1, 2)} == {"Left hand:", "Right hand"}
    assert "4.0 MB for WebAssembly" in desk.item("size").inner_text()
    desk.item("model").select_option("./face/")
    said(page, "Ready on wasm")
    desk.item("sample-1").click()
    said(page, "1 found")
    assert desk.item("top-1").inner_text().startswith("face: ")
    assert desk.fits()
    assert desk.small_targets() == []
    assert desk.console.complaints == []
    context.close()


@pytest.mark.parametrize("name", PAGES)
def test_the_camera_is_followed_until_it_is_stopped(address: str, camera: Any, name: str) -> None:
    page = camera.new_context().new_page()
    desk = opened(page, f"{address}{name}/")
    desk.item("camera").click()
    page.locator("[data-testid=time]", has_text="frames a second").wait_for()
    said(page, "1 found" if name == "detect" else "Done on wasm")
    assert int(desk.item("time").get_attribute("data-rate")) > 0
    assert desk.item("canvas").get_attribute("width") == "640"
    page.get_by_role("button", name="Stop").click()
    page.get_by_role("button", name="Camera", exact=True).wait_for()
    assert desk.console.complaints == []


@pytest.mark.parametrize("name", PAGES)
def test_a_task_runs_without_a_network_after_one_visit(site: Path, browser: Any, name: str) -> None:
    runs_without_a_network(site, browser, name)


@pytest.mark.full
@pytest.mark.parametrize("name", HEARING)
def test_a_task_that_hears_runs_without_a_network_too(hearing: Path, browser: Any, name: str) -> None:
    runs_without_a_network(hearing, browser, name)


def runs_without_a_network(site: Path, browser: Any, name: str) -> None:
    page = browser.new_context().new_page()
    with served(site) as address:
        page.goto(f"{address}{name}/")
        until(page, "navigator.serviceWorker.controller !== null")
        desk = opened(page, f"{address}{name}/")
        desk.item("sample-0").click()
        said(page, "Done on wasm")
        samples = [*map(tasks.sample_address, tasks.TASK_PAGES[name].samples)]
        needed = [f"{name}/index.html", f"{name}/model/singe-tasks.js", f"{name}/model/model.json", *samples]
        until(page, f"({KEPT})({needed})")
        until(page, "caches.open('singe').then((c) => c.keys()).then((all) => all.length > 2)")
    page.context.set_offline(True)
    desk = opened(page, f"{address}{name}/")
    desk.item("sample-1").click()
    said(page, "Done on wasm")
    page.context.close()


@pytest.mark.parametrize("name", PAGES)
@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 390)])
def test_axe_finds_nothing_with_an_answer(address: str, browser: Any, scheme: str, width: int, name: str) -> None:
    context = browser.new_context(viewport={"width": width, "height": 844}, color_scheme=scheme)
    page = context.new_page()
    desk = opened(page, f"{address}{name}/")
    desk.item("sample-0").click()
    said(page, "Done on wasm")
    assert findings(page, axe()) == []
    context.close()


@pytest.mark.full
@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 390)])
def test_sounds_are_heard(hearing: Path, browser: Any, tmp_path: Path, scheme: str, width: int) -> None:
    context = browser.new_context(viewport={"width": width, "height": 844}, color_scheme=scheme)
    answers = {"sounds": "found", "clean": "Done on wasm"}
    with served(hearing) as address:
        for name, answer in answers.items():
            page = context.new_page()
            desk = opened(page, f"{address}{name}/")
            page.get_by_role("button", name=tasks.SAMPLES[HEARING[name].samples[0]]).focus()
            page.keyboard.press("Enter")
            said(page, answer)
            assert float(desk.value("time")) > 0
            assert desk.item("before").is_visible()
            assert desk.item("after").is_visible() == (name == "clean")
            assert desk.fits()
            assert desk.small_targets() == []
            assert findings(page, axe()) == [], name
            assert desk.console.complaints == []
            page.close()
        page = context.new_page()
        desk = opened(page, f"{address}sounds/")
        desk.item("model").select_option("./notes/")
        said(page, "Ready on wasm")
        desk.item("sample-1").click()
        said(page, "found")
        assert "0.0" in desk.item("top-1").inner_text(), "the tune begins at once"
        with page.expect_download() as download:
            desk.item("save").click()
        download.value.save_as(tmp_path / "notes.mid")
        assert (tmp_path / "notes.mid").read_bytes().startswith(b"MThd\0\0\0\6\0\0\0\1")
        assert not desk.item("microphone").is_visible(), "notes are of whole sounds"
        desk.item("model").select_option("./word/")
        said(page, "Ready on wasm")
        assert desk.item("microphone").is_visible()
        desk.item("sample-2").click()
        said(page, "1 found")
        assert "Okay Nabu at 4." in desk.item("top-1").inner_text()
        assert desk.console.complaints == []
    context.close()


@pytest.mark.full
def test_the_microphone_is_heard_until_it_is_stopped(hearing: Path, browser: Any) -> None:
    fan = hearing / tasks.sample_address("fan.wav")
    switches = "--use-fake-ui-for-media-stream", "--use-fake-device-for-media-stream"
    shown = {"sounds": "[data-speaking=true]", "clean": "[data-heard]"}
    with plain(browser, *switches, f"--use-file-for-fake-audio-capture={fan}") as found, served(hearing) as address:
        for name, mark in shown.items():
            page = found.new_context(permissions=["microphone"]).new_page()
            desk = opened(page, f"{address}{name}/")
            desk.item("microphone").click()
            page.locator(f"[data-testid=canvas]{mark}").wait_for()
            page.get_by_role("button", name="Stop").click()
            said(page, "Stopped.")
            assert desk.item("after").is_visible() == (name == "clean")
            assert desk.console.complaints == []


@pytest.mark.full
@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 390)])
def test_what_is_said_is_written_down(speaking: Path, browser: Any, tmp_path: Path, scheme: str, width: int) -> None:
    context = browser.new_context(viewport={"width": width, "height": 844}, color_scheme=scheme)
    with served(speaking) as address:
        page = context.new_page()
        desk = opened(page, f"{address}speech/")
        desk.item("model").select_option("./hear/")
        said(page, "Ready on wasm")
        page.get_by_role("button", name=tasks.SAMPLES["talk.wav"]).focus()
        page.keyboard.press("Enter")
        said(page, "Done on wasm")
        assert "is the window still open?" in desk.item("part-1").inner_text()
        assert float(desk.value("time")) > 0
        with page.expect_download() as download:
            desk.item("srt").click()
        download.value.save_as(tmp_path / "said.srt")
        assert (tmp_path / "said.srt").read_text().startswith("1\n00:00:00,000 --> ")
        desk.item("part-1").get_by_role("button").click()
        page.locator(".heard").wait_for()
        desk.item("before").evaluate("player => player.pause()")
        assert desk.fits()
        assert desk.small_targets() == []
        assert findings(page, axe()) == []
        assert desk.console.complaints == []
    context.close()


@pytest.mark.full
def test_what_the_microphone_hears_is_written_down(speaking: Path, browser: Any) -> None:
    talk = speaking / tasks.sample_address("talk.wav")
    switches = "--use-fake-ui-for-media-stream", "--use-fake-device-for-media-stream"
    with plain(browser, *switches, f"--use-file-for-fake-audio-capture={talk}") as found, served(speaking) as address:
        page = found.new_context(permissions=["microphone"]).new_page()
        desk = opened(page, f"{address}speech/")
        desk.item("model").select_option("./hear/")
        said(page, "Ready on wasm")
        desk.item("microphone").click()
        page.locator("[data-testid=part-1]", has_text="morning").wait_for()
        page.get_by_role("button", name="Stop").click()
        said(page, "Done on wasm")
        # Chromium's fake microphone loses sound where the machine is busy, so the words of the end may be others.
        assert re.search("[a-z]{2}", desk.item("part-1").inner_text())
        assert desk.console.complaints == []


@pytest.mark.full
@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 390)])
def test_a_text_is_read_aloud(speaking: Path, browser: Any, tmp_path: Path, scheme: str, width: int) -> None:
    context = browser.new_context(viewport={"width": width, "height": 844}, color_scheme=scheme)
    with served(speaking) as address:
        page = context.new_page()
        desk = Desk(page)
        page.goto(f"{address}speech/")
        desk.item("text").fill("Hello. How are you?")
        desk.item("backend").select_option("wasm")
        desk.item("speak").click()
        page.locator("[data-testid=save]:enabled").wait_for()
        with page.expect_download() as download:
            desk.item("save").click()
        download.value.save_as(tmp_path / "said.wav")
        assert (tmp_path / "said.wav").read_bytes().startswith(b"RIFF")
        assert desk.fits()
        assert desk.small_targets() == []
        assert findings(page, axe()) == []
        assert desk.console.complaints == []
    context.close()


@pytest.mark.full
def test_a_text_is_translated_by_a_model_of_ones_own(tmp_path: Path, browser: Any) -> None:
    """The zoo's cannot be fetched by tests: the page is the same."""
    row = tasks.TASK_PAGES["translate"]
    folder = str(translator_of(tmp_path / "of", "m2m_100"))
    own = replace(row, bundles={"model": replace(row.bundles["model"], model=folder)})
    with served(pages_alone(tmp_path / "cache", {"translate": own})) as address, browser.new_page() as page:
        desk = opened(page, f"{address}translate/")
        page.select_option("#from", "en")
        page.select_option("#to", "de")
        page.fill("#text", "hello world")
        page.click("#ask")
        said(page, "Done on wasm")
        shown = desk.item("said").inner_text()
    with sg.task("translate", folder, device="numpy") as translate:
        assert shown == translate("hello world", src_lang="en", tgt_lang="de").text
