"""Reports of training runs in a page: on a phone and on a desk, in the light and in the dark."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "training" / "runs"))

from made_runs import events

from singe.train.monitor.logs import CsvLog, FactsLog, SqliteLog
from singe.train.monitor.reports import find_runs, report

SEEN = """() => ({
    wide: document.documentElement.scrollWidth,
    back: getComputedStyle(document.body).backgroundColor,
    plots: [...document.querySelectorAll("svg")].map(s => s.getBoundingClientRect().width),
    text: Math.min(...[...document.querySelectorAll("svg text")].map(t => t.getBoundingClientRect().height)),
})"""


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """A report of a run, and one that compares three."""
    folder = tmp_path_factory.mktemp("runs")
    for pace in (0.4, 0.9, 1.6):
        run = folder / f"a-run-with-a-rather-long-name-{pace}"
        run.mkdir()
        tell = [FactsLog(run / "run.json"), CsvLog(run / "epochs.csv"), SqliteLog(run / "batches.sqlite")]
        for event in events(6, 20, name=run.name, pace=pace):
            for listener in tell:
                listener(event)
    runs = find_runs(folder)
    return {"one": report(runs[:1]), "three": report(runs)}


@pytest.mark.parametrize("name", ["one", "three"])
@pytest.mark.parametrize("width", [390, 1280])
def test_a_report_fits_its_page_in_the_light_and_in_the_dark(
    browser: Any, pages: dict[str, str], name: str, width: int
) -> None:
    page = browser.new_page(viewport={"width": width, "height": 800})
    problems: list[str] = []
    page.on("console", lambda message: problems.append(message.text))
    page.on("requestfailed", lambda request: problems.append(request.url))
    backs = set()
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        page.set_content(pages[name])
        seen = page.evaluate(SEEN)
        assert seen["wide"] <= width
        assert len(seen["plots"]) == 5
        assert all(320 <= plot <= width for plot in seen["plots"])
        assert seen["text"] >= 9
        backs.add(seen["back"])
    assert len(backs) == 2
    assert problems == []
    page.close()
