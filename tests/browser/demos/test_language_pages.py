"""The pages of the site's language model: a conversation, and a text that goes on; the model is tiny, its words are random,
but for one test, of SmolLM2."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from desk import PATIENCE, Desk
from sites import demos_build, language_of, served, until

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
        page.get_by_test_id("again").wait_for(timeout=PATIENCE)
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
    page.get_by_test_id("again").wait_for(timeout=PATIENCE)


def test_a_text_is_completed(page: Any, site: Path) -> None:
    with served(site) as address:
        desk = Desk(page)
        page.goto(f"{address}write/")
        desk.item("text").fill("hello")
        page.locator("[data-testid=take]:enabled").wait_for(timeout=PATIENCE)
        desk.ready()
        words = page.get_by_test_id("ahead").text_content()
        assert words
        page.keyboard.press("Escape")
        assert desk.item("take").is_disabled()
        desk.item("text").fill("hello")
        page.locator("[data-testid=take]:enabled").wait_for(timeout=PATIENCE)
        desk.ready()
        page.keyboard.press("Tab")
        assert desk.item("text").input_value() == "hello" + words
        assert page.evaluate("document.activeElement.id") == "text"
        # The words ahead stand where they will be.
        boxes = "['written', 'text'].map((id) => document.getElementById(id)).map((e) => getComputedStyle(e.closest('.behind') ?? e).font)"
        assert len(set(page.evaluate(boxes))) == 1
        assert desk.fits()
        assert desk.console.complaints == []


@pytest.mark.full
def test_smollm2_knows_a_capital(browser: Any, tmp_path: Path) -> None:
    build = demos_build()
    said: list[str] = []
    language = build.language_model(said.append)
    if language is None:
        pytest.skip(said[-1])
    missing = {build.MISSING: build.HERE / build.MISSING, "front-offline.js": build.HERE / "front" / "front-offline.js"}
    files = build.with_language(missing, language, build.source_stamp(), said.append)
    build.write_site(files, tmp_path / "site")
    page = browser.new_page()
    with served(tmp_path / "site") as address:
        desk = Desk(page)
        page.goto(f"{address}chat/")
        desk.item("backend").select_option("wasm")
        desk.item("temperature").fill("0")
        desk.item("prompt").fill("What is the capital of France?")
        page.keyboard.press("Enter")
        page.get_by_test_id("again").wait_for(timeout=PATIENCE)
        assert "Paris" in page.locator("[data-testid=messages] p").nth(1).inner_text()
        assert "tokens a second" in desk.item("status").inner_text()
    page.close()
