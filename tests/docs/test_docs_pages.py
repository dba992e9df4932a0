"""The documentation's site in Chromium: what axe-core finds, whether pages fit a phone, and what the front page fetches."""

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
CONNECTIONS: Final = 6
"""How many files a browser fetches from one server at the same time, at least."""
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
def test_the_front_page_takes_two_trips_and_few_bytes(browser: Any, address: str) -> None:
    """The document, and what it names: on a line of 100 ms and 10 Mbit/s the search answers a key within half a second."""
    page = browser.new_page()
    sizes: dict[str, int] = {}
    page.on("requestfinished", lambda request: sizes.update({request.url: request.sizes()["responseBodySize"]}))
    response = page.goto(f"{address}index.html", wait_until="networkidle")
    assert response is not None
    document = response.text()
    later = [url for url in sizes if url != response.url]
    assert [url for url in later if url.removeprefix(address) not in document] == [], "asked for in a third trip"
    assert 0 < len(later) <= CONNECTIONS
    assert sum(sizes.values()) < BYTES
    page.keyboard.press("/")
    page.keyboard.type("conv2d")
    until(page, "document.querySelectorAll('#found li').length > 3")
    page.close()


@pytest.mark.slow
def test_the_search_finds_pages_by_other_words(browser: Any, address: str) -> None:
    page = browser.new_page()
    page.goto(f"{address}index.html")
    wanted = {
        "LLM": "guides/language", "Whisper": "models", "CDN": "deploy", "csp": "deploy", "Safari": "deploy", "offline": "deploy",
        "progress bar": "start/page", "React": "frameworks", "webcam": "pictures",
    }  # fmt: skip
    for words, path in wanted.items():
        page.fill("#query", words)
        page.wait_for_function(
            "words => [...document.querySelectorAll('#found li')].length && query.value === words", arg=words
        )
        found = page.locator("#found a").evaluate_all("links => links.slice(0, 3).map((a) => a.href)")
        assert any(path in url for url in found), (words, found)
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
