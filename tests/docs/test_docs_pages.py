"""The documentation's site in Chromium: what axe-core finds, whether pages fit a phone, and how soon the front page is there."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any, Final

import pytest
from snippets import ROOT

pytest.importorskip("markdown_it")
pytest.importorskip("pygments")
sys.path.insert(0, str(ROOT / "docs"))
sys.path.insert(0, str(ROOT / "tests" / "browser"))
import docsite
from browsers import chromium
from packages import axe, findings
from sites import Console, served, until

PAGES: Final = (
    "index", "start/tour", "guides/export", "guides/sounds", "book/compiler", "python/singe.optim", "reference/javascript",
    "reference/errors", "reference/ops", "comparison/peers",
)  # fmt: skip
LOOKS: Final = (("light", 1280), ("dark", 360))
LATENCY_MS: Final = 100
INTERACTIVE_MS: Final = 1000
BYTES: Final = 60_000


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The site, as a part of one that has Python."""
    folder = tmp_path_factory.mktemp("docs") / "site"
    docsite.build(folder, say=lambda text: None, python="./")
    with served(folder) as found:
        yield found


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium(()) as found:
        yield found


@pytest.mark.slow
@pytest.mark.parametrize("name", PAGES)
def test_axe_finds_nothing(name: str, browser: Any, address: str) -> None:
    script = axe()
    for scheme, width in LOOKS:
        context = browser.new_context(viewport={"width": width, "height": 800}, color_scheme=scheme)
        page = context.new_page()
        console = Console(page)
        page.goto(f"{address}{name}.html")
        assert findings(page, script) == [], f"{name}, {scheme}, {width}"
        assert console.complaints == []
        context.close()


@pytest.mark.slow
def test_every_page_fits_a_phone(browser: Any, address: str) -> None:
    """What is wider, tables and code, moves within the page."""
    page = browser.new_page(viewport={"width": 360, "height": 800})
    for path in docsite.pages():
        page.goto(f"{address}{path.path}.html")
        assert page.evaluate("document.documentElement.scrollWidth") <= 360, path.path
    page.close()


@pytest.mark.slow
def test_the_front_page_is_soon_there(browser: Any, address: str) -> None:
    """On a line of 100 ms and 10 Mbit/s, the search answers a key within a second of the start of the navigation."""
    page = browser.new_page()
    sizes: list[int] = []
    page.on("requestfinished", lambda request: sizes.append(request.sizes()["responseBodySize"]))
    session = page.context.new_cdp_session(page)
    session.send("Network.enable")
    limits = {"latency": LATENCY_MS, "downloadThroughput": 10e6 / 8, "uploadThroughput": 10e6 / 8}
    session.send("Network.emulateNetworkConditions", {"offline": False, **limits})
    page.goto(f"{address}index.html")
    took = page.evaluate("performance.getEntriesByType('navigation')[0].domContentLoadedEventEnd")
    assert took < INTERACTIVE_MS
    assert sum(sizes) < BYTES
    page.keyboard.press("/")
    page.keyboard.type("conv2d")
    until(page, "document.querySelectorAll('#found li').length > 3", 10)
    page.close()


@pytest.mark.slow
def test_the_search_shows_whole_words_around_a_word(browser: Any, address: str) -> None:
    page = browser.new_page(viewport={"width": 1280, "height": 800})
    page.goto(f"{address}index.html")
    for words in ("dispose", "model dispose"):
        page.fill("#query", words)
        page.wait_for_selector("#found li small")
        shown = [text.removeprefix("… ").removesuffix(" …") for text in page.locator("#found small").all_inner_texts()]
        whole = page.evaluate(
            "(shown) => shown.every((text) => SINGE_INDEX.some((entry) => ` ${entry[3]} `.includes(` ${text} `)))",
            shown,
        )
        assert whole, shown
        assert any("dispose" in text.lower() for text in shown)
    page.close()
