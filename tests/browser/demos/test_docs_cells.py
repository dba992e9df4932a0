"""Pages of the documentation whose blocks of Python run in the reader's browser."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from sites import ROOT, Console, until

pytest.importorskip("markdown_it")
sys.path.insert(0, str(ROOT / "docs"))
from docsite.build import source_text
from docsite.contents import pages
from docsite.markdown import CELLS

NOTEBOOKS: Final = [p.path for p in pages() if CELLS in source_text(p)]
RESTING: Final = "!document.querySelector('button.run[data-running]')"


@pytest.fixture
def page(browser: Any, python_site: Path, address: str) -> Iterator[Any]:
    context = browser.new_context(service_workers="block")
    yield context.new_page()
    context.close()


@pytest.mark.slow
@pytest.mark.parametrize("name", NOTEBOOKS)
def test_all_cells_of_a_page_run(name: str, page: Any, address: str) -> None:
    console = Console(page)
    page.goto(f"{address}docs/{name}.html")
    page.locator("button.run").last.click()
    until(page, RESTING)
    said = [(s.inner_text(), o.text_content()) for s, o in zip(page.locator(".cell-status").all(), page.locator("pre.output").all(), strict=True)]  # fmt: skip
    assert said
    assert all(status == "" for status, _ in said), said
    assert any(output for _, output in said)
    assert console.complaints == []


@pytest.mark.slow
def test_cells_are_changed_fail_and_stop(page: Any, address: str) -> None:
    requests: list[str] = []
    page.on("request", lambda request: requests.append(request.url))
    page.goto(f"{address}docs/start/tour.html")
    page.wait_for_selector("button.run")
    page.wait_for_timeout(300)
    assert not [r for r in requests if "python" in r.rsplit("/docs/", 1)[0]], "Python is fetched when a cell is run"
    first, output, status = (page.locator(s).first for s in ("pre.cell code", "pre.output", ".cell-status"))
    first.fill("x = 6\nprint('é')\nx * 7")
    first.press("Control+Enter")
    page.wait_for_selector("button.run[data-running]")
    until(page, RESTING)
    assert output.text_content() == "é\n42\n"
    first.fill("x / 0")
    page.locator("button.run").first.click()
    until(page, RESTING)
    assert re.search(r"ZeroDivisionError", output.text_content())
    assert "_pyodide" not in output.text_content()
    assert status.text_content() == "The cell failed."
    first.fill("x = 8\nwhile True: pass")
    page.locator("button.run").first.click()
    until(page, "document.querySelector('.cell-status').textContent === 'Running …'")
    assert page.locator("button.run:enabled").count() == 1
    page.locator("button.run").first.click()
    until(page, RESTING)
    assert status.text_content() == "Stopped."
    assert output.text_content().endswith("KeyboardInterrupt\n")
    first.fill("print(x)\ninput()")
    page.locator("button.run").first.click()
    until(page, RESTING)
    assert output.text_content().startswith("8\n"), "names stay"
    assert "nothing can answer here" in output.text_content()
    first.fill("sum(range(10**11))")
    page.locator("button.run").first.click()
    until(page, "document.querySelector('.cell-status').textContent === 'Running …'")
    page.wait_for_timeout(300)
    page.locator("button.run").first.click()
    until(page, "document.querySelector('.cell-status').textContent.includes('Stop again')")
    page.locator("button.run").first.click()
    until(page, RESTING)
    assert "the names of all cells are gone" in status.text_content()


@pytest.mark.slow
def test_cells_draw(page: Any, address: str) -> None:
    """Pictures and curves, as the prompt does; the next run of the cell removes them."""
    console = Console(page)
    page.goto(f"{address}docs/start/tour.html")
    first, drawn = page.locator("pre.cell code").first, page.locator(".drawn").first

    def run(source: str) -> None:
        first.fill(source)
        page.locator("button.run").first.click()
        until(page, RESTING)
        assert page.locator(".cell-status").first.text_content() == ""

    run("import numpy as np\nnp.eye(32)")
    assert drawn.locator("img").get_attribute("alt") == "32 × 32 pixels, black is 0, white is 1"
    until(page, "document.querySelector('.drawn img').naturalWidth === 224")
    run("np.sin(np.arange(100) / 9)")
    assert drawn.locator("svg path").count() == 1
    assert drawn.locator("svg").bounding_box()["width"] > 200
    run("1 + 1")
    assert drawn.locator("*").count() == 0
    assert console.complaints == []


def test_a_site_without_python_has_no_cells(tmp_path: Path) -> None:
    import docsite  # noqa: PLC0415 (after the path is set)

    docsite.build(tmp_path / "docs", say=lambda text: None)
    text = (tmp_path / "docs/start/tour.html").read_text()
    assert "cells.js" not in text
    assert "data-python" not in text
