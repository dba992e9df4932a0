"""The pages of the site's language model: a conversation, a text that goes on, and one that is learnt; the model is tiny, its words are
random, but for the tests of SmolLM2."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from desk import Desk
from sites import demos_build, language_of, served, until

import singe as sg

pytestmark = pytest.mark.slow
SENT: Final = "hello <i>you</i>"
HOLD: Final = """const own = fetch;
const held = new Promise((resolve) => { globalThis.goOn = resolve; });
globalThis.fetch = async (...request) => {
  if (navigator.onLine) await held;
  return own(...request);
};"""
"""The page's own first request waits: the model is not loaded before the test lets it."""


@pytest.fixture
def page(browser: Any, site: Path) -> Iterator[Any]:
    if language_of(site) is None:
        pytest.skip("the site was built without a language model: gguf is not installed")
    context = browser.new_context(viewport={"width": 390, "height": 844})
    yield context.new_page()
    context.close()


def reached(page: Any, *names: str) -> None:
    """These controls lie in the window, and nothing covers them."""
    for name in names:
        middle = "e => { const r = e.getBoundingClientRect(); return document.elementFromPoint(r.x + r.width / 2, r.y + r.height / 2) === e; }"
        assert page.get_by_test_id(name).evaluate(middle), name


def test_a_conversation_goes_on_without_a_network(page: Any, site: Path) -> None:
    """What is typed while the model loads is sent when it is ready; after one visit nothing is fetched."""
    with served(site) as address:
        desk = Desk(page)
        page.add_init_script(HOLD)
        page.goto(f"{address}chat/")
        desk.item("prompt").fill(SENT)
        page.keyboard.press("Enter")
        assert "as soon as" in desk.item("waiting").inner_text()
        assert desk.item("prompt").input_value() == SENT
        desk.item("send").click()
        assert desk.item("waiting").inner_text() == ""
        desk.item("send").click()
        page.evaluate("goOn()")
        page.get_by_test_id("again").wait_for()
        assert page.locator("[data-testid=messages] p").first.inner_text() == SENT
        assert desk.item("waiting").inner_text() == ""
        reached(page, "backend", "temperature", "prompt", "send", "clear")
        assert desk.fits()
        needed = "model/model.json", "model/singe-language.js"
        kept = """async () => {
          const urls = (await (await caches.open((await caches.keys()).find((n) => n.startsWith("singe-site")))).keys()).map(({ url }) => url);
          return NEEDED.every((name) => urls.some((url) => url.includes(name)));
        }""".replace("NEEDED", str(list(needed)))
        until(page, f"({kept})()")
    page.context.set_offline(True)
    page.goto(f"{address}chat/")
    desk.item("prompt").fill("more")
    page.keyboard.press("Enter")
    page.get_by_test_id("again").wait_for()


def test_a_text_is_completed(page: Any, site: Path) -> None:
    with served(site) as address:
        desk = Desk(page)
        page.goto(f"{address}write/")
        desk.item("text").fill("hello")
        page.locator("[data-testid=take]:enabled").wait_for()
        desk.ready()
        words = page.get_by_test_id("ahead").text_content()
        assert words
        page.keyboard.press("Escape")
        assert desk.item("take").is_disabled()
        desk.item("text").fill("hello")
        page.locator("[data-testid=take]:enabled").wait_for()
        desk.ready()
        page.keyboard.press("Tab")
        assert desk.item("text").input_value() == "hello" + words
        assert page.evaluate("document.activeElement.id") == "text"
        # The words ahead stand where they will be.
        boxes = "['written', 'text'].map((id) => document.getElementById(id)).map((e) => getComputedStyle(e.closest('.behind') ?? e).font)"
        assert len(set(page.evaluate(boxes))) == 1
        assert desk.fits()
        assert desk.console.complaints == []


def test_a_text_is_learnt(page: Any, site: Path, tmp_path: Path) -> None:
    """The model's weights are fetched once, although the step uses them too; what is learnt is a file that Python reads."""
    fetched: list[str] = []
    page.on("request", lambda request: fetched.append(request.url))
    with served(site) as address:
        desk = Desk(page)
        page.goto(f"{address}tune/")
        desk.ready()
        desk.item("backend").select_option("wasm")
        desk.ready()
        desk.item("text").fill("hello world, hello all of you")
        desk.item("prompt").fill("hello")
        desk.item("go").click()
        desk.ready()
        before = desk.item("before").inner_text()
        assert desk.item("after").inner_text() == ""
        desk.item("most").fill("30")
        losses = []
        for steps in ("30", "60"):
            desk.item("train").click()
            desk.ready()
            assert desk.value("steps") == steps
            losses.append(float(desk.value("loss")))
        assert losses[1] < losses[0]
        after = desk.item("after").inner_text()
        assert after != before == desk.item("before").inner_text()
        with page.expect_download() as waiting:
            desk.item("download").click()
        waiting.value.save_as(tmp_path / "adapter.gguf")
        path = language_of(site)
        assert path is not None
        llm = sg.language.load(path, "numpy", context=512, activations="float32")
        llm.adapters["a"] = sg.language.load_adapter(llm, tmp_path / "adapter.gguf")
        assert "hello" + llm.adapter("a").generate("hello", temperature=0, max_tokens=40).text == after
        assert desk.fits()
        assert desk.small_targets() == []
        assert desk.console.complaints == []
        weights = [url for url in fetched if "/weights-" in url]
        assert weights
        assert not [url for url in weights if "/step/" in url and "shared" in url]
        desk.item("anew").click()
        desk.ready()
        assert (desk.value("steps"), desk.item("after").inner_text()) == ("0", "")
    page.context.set_offline(True)
    page.goto(f"{address}tune/")
    desk.item("backend").select_option("wasm")
    desk.ready()


@pytest.fixture(scope="module")
def smollm2(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A site with the pages of SmolLM2."""
    build = demos_build()
    said: list[str] = []
    language = build.language_model(said.append)
    if language is None:
        pytest.skip(said[-1])
    names = ("tune/", "train/", "shared/", "style.css", "front-offline.js", build.MISSING)
    needed = {name: path for name, path in build.page_files().items() if name.startswith(names)}
    out = tmp_path_factory.mktemp("smollm2") / "site"
    build.write_site(build.with_language(needed, language, build.source_stamp(), said.append), out)
    return out


@pytest.mark.nightly  # four steps take minutes where other tests run beside them
def test_smollm2_learns_a_text(browser: Any, smollm2: Path) -> None:
    page = browser.new_page()
    with served(smollm2) as address:
        desk = Desk(page)
        page.goto(f"{address}tune/")
        desk.ready()
        desk.item("backend").select_option("wasm")
        desk.ready()
        losses = []
        for steps in ("1", "3"):
            desk.item("most").fill(steps)
            desk.item("train").click()
            desk.ready()
            losses.append(float(desk.value("loss")))
        assert desk.value("steps") == "4"
        assert losses[1] < losses[0]
        assert desk.item("after").inner_text()
    page.close()


@pytest.mark.full
def test_smollm2_knows_a_capital(browser: Any, smollm2: Path) -> None:
    page = browser.new_page()
    with served(smollm2) as address:
        desk = Desk(page)
        page.goto(f"{address}chat/")
        desk.item("backend").select_option("wasm")
        desk.item("temperature").fill("0")
        desk.item("prompt").fill("What is the capital of France?")
        page.keyboard.press("Enter")
        page.get_by_test_id("again").wait_for()
        assert "Paris" in page.locator("[data-testid=messages] p").nth(1).inner_text()
        assert "tokens a second" in desk.item("status").inner_text()
    page.close()
