"""The pages of docs/measurements are what their script writes of the figures."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
from snippets import ROOT

sys.path.insert(0, str(ROOT / "docs" / "measurements"))
import draw

NAMES = sorted(path.stem for path in (draw.HERE / "data").glob("*.csv") if path.stem != "runs")


def test_pages_and_plots_are_what_the_script_writes() -> None:
    stale = [path.name for path, text in draw.files() if not path.is_file() or path.read_text("utf-8") != text]
    assert stale == [], "python docs/measurements/draw.py writes them"
    assert {path.name for path, _ in draw.files()} >= {"README.md", *(f"{name}.svg" for name in draw.PLOTS)}


def test_a_changed_figure_changes_the_page_and_the_plot(monkeypatch: pytest.MonkeyPatch) -> None:
    real = draw.rows_of

    def changed(name: str) -> list[list[str]]:
        head, *rows = real(name)
        return (
            [head, [rows[0][0], *("7.25" for _ in head[1:])], *rows[1:]] if name == "wasm-products" else [head, *rows]
        )

    page, plot = draw.HERE / "wasm-kernels.md", draw.HERE / "wasm-products.svg"
    before: dict[Any, str] = dict(draw.files())
    monkeypatch.setattr(draw, "rows_of", changed)
    after = dict(draw.files())
    assert {path for path in before if before[path] != after[path]} == {page, plot}
    assert "7.25" in after[page]
    assert "7.25" in after[plot]


def test_every_table_is_shown_once_and_says_how_it_was_measured() -> None:
    shown = sorted(name for path in draw.HERE.glob("*.md") for name in draw.TABLE.findall(path.read_text("utf-8")))
    assert shown == NAMES
    head, *runs = draw.rows_of("runs")
    assert head == ["table", "machine", "date", "command"]
    assert sorted(name for name, *_ in runs) == NAMES
    assert all(machine and date for _, machine, date, _ in runs)


def test_every_row_of_the_data_has_all_columns_with_different_names() -> None:
    for name in NAMES:
        head, *rows = draw.rows_of(name)
        assert len(set(head)) == len(head), name
        assert rows, name
        assert all(len(row) == len(head) for row in rows), name


def test_every_page_is_in_the_list_and_no_more_than_a_dozen() -> None:
    pages = sorted(path.name for path in draw.HERE.glob("*.md"))
    listed = (draw.HERE / "README.md").read_text("utf-8")
    assert len(pages) <= 12
    assert [name for name in pages if name != "README.md" and f"]({name})" not in listed] == []


@pytest.mark.slow
def test_the_script_starts() -> None:
    script = [sys.executable, str(draw.HERE / "draw.py"), "--help"]
    assert subprocess.run(script, capture_output=True, text=True, timeout=60, check=False).stdout.startswith("usage: ")
