"""Runs that were recorded: read from their folders, listed, compared, shown as pages."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import pytest
from made_runs import events

from singe.errors import FormatError, InputError
from singe.tools.cli import main
from singe.tools.runs import describe_runs
from singe.train.events import BatchEnded, EpochEnded, Listener, RunBegan, Stopped
from singe.train.monitor.logs import CsvLog, FactsLog, ReportLog, SqliteLog
from singe.train.monitor.reports import differing, find_runs, read_run, report, titles

PACES = {"slow": 0.4, "quick": 1.6}


def record(folder: Path, name: str, pace: float = 0.9, epochs: int = 6, batches: int = 20) -> Path:
    """A folder of a run, as a Learner leaves it."""
    folder.mkdir(parents=True)
    tell = listeners(folder)
    for event in events(epochs, batches, name=name, pace=pace):
        for listener in tell:
            listener(event)
    return folder


def listeners(folder: Path) -> list[Listener]:
    return [FactsLog(folder / "run.json"), CsvLog(folder / "epochs.csv"), SqliteLog(folder / "batches.sqlite")]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of two runs."""
    folder = tmp_path_factory.mktemp("runs")
    for name, pace in PACES.items():
        record(folder / name, name, pace)
    return folder


def test_a_run_is_read_as_it_was_told(runs: Path) -> None:
    run = read_run(runs / "quick")
    assert (run.name, run.device, run.planned, run.reason) == ("quick", "wasm (wasmtime 50.0.1)", 6, "finished")
    assert run.settings == {"optimizer": "AdamW", "lr": "0.0016", "batch": "64", "seed": "0"}
    assert run.metrics == ["loss", "accuracy", "f1", "perplexity", "lr"]
    told = [event.values["valid"]["loss"] for event in events(6, 20, pace=1.6) if isinstance(event, EpochEnded)]
    assert run.points("valid", "loss") == list(zip(map(float, range(1, 7)), told, strict=True))
    assert run.best("loss") == (min(told), told.index(min(told)) + 1)
    assert run.best("accuracy") == (max(y for _, y in run.points("valid", "accuracy")), told.index(min(told)) + 1)
    assert run.best("lr") is None


def test_batches_are_read_as_averages(runs: Path) -> None:
    run = read_run(runs / "quick")
    told = [event for event in events(6, 20, pace=1.6) if isinstance(event, BatchEnded) and event.phase == "train"]
    every = run.batches("loss", 1000)
    assert [y for _, y in every] == [event.values["loss"] for event in told]
    assert [x for x, _ in every] == pytest.approx([e.epoch - 1 + e.batch / 20 for e in told])
    few = run.batches("loss", 10)
    assert 10 <= len(few) <= 11
    assert few == sorted(few)
    assert run.batches("no such metric", 10) == []


def test_runs_are_found_and_told_apart(runs: Path, tmp_path: Path) -> None:
    assert [run.name for run in find_runs(runs)] == ["slow", "quick"]
    assert [run.name for run in find_runs(runs / "slow")] == ["slow"]
    assert differing(find_runs(runs)) == ["lr"]
    for name in ("a", "b/c"):
        shutil.copytree(runs / "slow", tmp_path / name)
    assert titles(find_runs(tmp_path)) == ["a", "c"]
    with pytest.raises(InputError, match="no such folder"):
        find_runs(tmp_path / "nothing")


def test_a_run_that_goes_on_keeps_its_beginning_and_adds_its_seconds(tmp_path: Path) -> None:
    folder = record(tmp_path / "run", "run", epochs=2)
    path = folder / "run.json"
    facts = json.loads(path.read_bytes())
    path.write_text(json.dumps({**facts, "began": "2020-02-02T02:02:02+00:00", "seconds": 1000.0}))
    log = FactsLog(path)
    log(RunBegan("run", 4, {"train": 20}, "numpy", epoch=3, step=40))
    assert read_run(folder).reason == "running"
    log(Stopped("patience", 4, 1.0, "no better loss"))
    run = read_run(folder)
    assert run.began is not None
    assert run.began.year == 2020
    assert 1000 <= run.seconds < 1010
    assert (run.reason, run.message, run.planned) == ("patience", "no better loss", 4)


def test_a_run_that_was_killed_and_one_without_facts_are_read(runs: Path, tmp_path: Path) -> None:
    folder = tmp_path / "killed"
    folder.mkdir()
    tell = listeners(folder)
    for event in list(events(6, 20))[:80]:
        for listener in tell:
            listener(event)
    run = read_run(folder)
    assert (run.reason, len(run.epochs)) == ("running", 2)
    assert "running, or killed" in report([run])
    shutil.copytree(folder, tmp_path / "left")  # as it is without the process that writes
    parts = [tmp_path / "left" / f"batches.sqlite{end}" for end in ("", "-wal")]
    before = [part.read_bytes() for part in parts]
    assert before[1]
    assert read_run(tmp_path / "left").batches("loss", 10) == run.batches("loss", 10)
    assert [part.read_bytes() for part in parts] == before
    shutil.copytree(runs / "slow", tmp_path / "bare")
    for name in ("run.json", "batches.sqlite"):
        (tmp_path / "bare" / name).unlink()
    run = read_run(tmp_path / "bare")
    assert (run.name, len(run.epochs), run.batches("loss", 10)) == ("bare", 6, [])
    assert "<svg" in report([run])


DAMAGE: dict[str, tuple[str, Callable[[Path], object]]] = {
    "run.json: not JSON": ("run.json", lambda p: p.write_text("{")),
    "run.json: expected an object": ("run.json", lambda p: p.write_text("[]")),
    "run.json: epochs is": ("run.json", lambda p: p.write_text('{"format": "singe-run/1", "epochs": "many"}')),
    "epochs.csv: not a table": ("epochs.csv", lambda p: p.write_text("epoch,seconds,train.loss\n1,x,2\n")),
    "epochs.csv: not a table ": ("epochs.csv", lambda p: p.write_bytes(b"\xff\xfe\x00")),
    "batches.sqlite: cannot be read": ("batches.sqlite", lambda p: p.write_bytes(b"not a table" * 1000)),
}


@pytest.mark.parametrize("message", DAMAGE)
def test_a_damaged_file_is_named(runs: Path, tmp_path: Path, message: str) -> None:
    shutil.copytree(runs / "slow", tmp_path / "run")
    for path in (tmp_path / "run").glob("batches.sqlite-*"):
        path.unlink()
    name, damage = DAMAGE[message]
    damage(tmp_path / "run" / name)
    with pytest.raises(FormatError, match=message.strip()):
        report([read_run(tmp_path / "run")])


# --- pages ------------------------------------------------------------------------------------------------------------


class Page(HTMLParser):
    """A page's tags, of which each must be closed by its own, and what it loads."""

    EMPTY = ("meta", "!doctype")

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.loads: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.loads += [f"{k}={v}" for k, v in attrs if k in ("src", "href", "style") or k.startswith("on")]
        if tag not in self.EMPTY:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def figures(text: str) -> list[ElementTree.Element]:
    """The plots of a page."""
    parts = text.split("<svg ")[1:]
    return [ElementTree.fromstring("<svg " + part.split("</svg>")[0] + "</svg>") for part in parts]


def test_a_page_has_a_plot_of_each_metric_and_loads_nothing(runs: Path) -> None:
    text = report([read_run(runs / "quick")])
    page = Page(text)
    assert page.open == []
    assert page.loads == []
    assert "script" not in page.tags
    assert len(figures(text)) == 5
    loss = figures(text)[0]
    assert len(loss.findall("circle")) == 12
    assert len(loss.findall("path[@class='faint c0']")) == 1
    assert [c.findtext("title") for c in loss.findall("circle")][-1] == "valid, epoch 6: 0.1184 (best)"


def test_what_only_batches_have_is_plotted_of_them(tmp_path: Path) -> None:
    for name in ("a", "b"):
        folder = tmp_path / name
        folder.mkdir()
        for listener in listeners(folder):
            listener(RunBegan(name, 1, {"train": 3}, "numpy"))
            for batch in (1, 2, 3):
                listener(BatchEnded(1, "train", batch, {"loss": 1.0 / batch, "lr": 0.1}, 1.0, step=batch))
            listener(EpochEnded(1, {"train": {"loss": 0.5}}, 3.0))
            listener(Stopped("finished", 1, 3.0))
    for runs in ([read_run(tmp_path / "a")], find_runs(tmp_path)):
        loss, rate = figures(report(runs))
        assert loss.get("aria-label") == "loss by epoch"
        assert rate.get("aria-label") == "lr by epoch"
        assert len(rate.findall("path[@class='smooth c0']")) == 1


def test_a_run_that_ends_leaves_its_page(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    tell = [*listeners(folder), ReportLog(folder / "report.html")]
    for event in events(2, 10):
        assert not (folder / "report.html").exists()
        for listener in tell:
            listener(event)
    assert (folder / "report.html").read_text("utf-8") == report([read_run(folder)])


def test_a_comparison_has_the_curves_of_all_runs(runs: Path) -> None:
    text = report(find_runs(runs))
    page = Page(text)
    assert page.open == []
    assert page.loads == []
    for plot in figures(text)[:4]:
        assert len(plot.findall("path[@class='line c0']")) == len(plot.findall("path[@class='line c1']")) == 1
        assert len(plot.findall("path[@class='dashed c0']")) == 1
    assert "Settings that differ" in text


def test_names_and_settings_of_a_page_are_text(tmp_path: Path) -> None:
    bad = '<script>alert("1")</script>&'
    folder = tmp_path / "run"
    folder.mkdir()
    for listener in listeners(folder):
        listener(RunBegan(bad, 2, {"train": 1}, bad, settings={bad: bad, "deep": {"er": [1, None]}}))
        for epoch in (1, 2):
            values = {bad: 1.0, "nan": float("nan"), "inf": float("inf"), "none": -0.0}
            listener(EpochEnded(epoch, {"train": values, "valid": values}, 1.0))
        listener(Stopped("failed", 1, 1.0, bad))
    text = report([read_run(folder)])
    assert "<script" not in text
    assert "deep.er" in text
    assert "script" not in Page(text).tags
    assert Page(text).open == []
    assert "<script" not in report([read_run(folder)] * 3)


def test_the_size_of_a_page_does_not_grow_with_the_batches(tmp_path: Path) -> None:
    folder = record(tmp_path / "run", "run", epochs=2, batches=10)
    before = len(report([read_run(folder)]))
    with sqlite3.connect(folder / "batches.sqlite") as file:
        rows = [("train", 2, n, 10 + n, "loss", 1 / n, 0.1) for n in range(11, 20_000)]
        file.executemany("INSERT INTO batches VALUES (?, ?, ?, ?, ?, ?, ?)", rows)
    file.close()
    assert len(report([read_run(folder)])) < before + 4000


# --- singe runs -------------------------------------------------------------------------------------------------------


def test_the_table_has_best_values_and_settings_that_differ(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["runs", str(runs)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split()[:6] == ["run", "began", "device", "epochs", "time", "end"]
    assert lines[0].endswith("lr")
    assert [line.split()[0] for line in lines[1:]] == ["slow", "quick"]
    assert "0.1184 (6)" in lines[2]
    assert lines[2].endswith("0.0016")
    assert lines[2].count("finished") == 1


def test_a_table_wider_than_the_terminal_is_cut(runs: Path) -> None:
    whole, cut = describe_runs(runs), describe_runs(runs, 60)
    parts = [part.splitlines() for part in cut.split("\n\n")]
    assert len(parts) > 1
    for part in parts:
        assert [line.split()[0] for line in part] == ["run", "slow", "quick"]
        assert max(map(len, part)) <= 60
    assert sorted(set(whole.split())) == sorted(set(cut.split()))


def test_a_report_is_written_of_runs_by_name_or_folder(
    runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "page.html"
    assert main(["runs", str(runs), "--report", "slow", str(runs / "quick"), "-o", str(out)]) == 0
    assert capsys.readouterr().out == f"wrote  {out}\nruns   2\n"
    assert out.read_text("utf-8") == report([read_run(runs / name) for name in ("slow", "quick")])
    assert main(["runs", str(runs), "--report", "slower"]) == 2
    assert "slower: no such run" in capsys.readouterr().err
    assert main(["runs", str(tmp_path)]) == 0
    assert capsys.readouterr().out == f"no runs in {tmp_path}\n"
    assert main(["runs", str(tmp_path), "-o", "x.html"]) == 2
    assert main(["runs", str(runs), "--report", "slow", "-o", str(tmp_path / "no" / "x.html")]) == 2


def _no_json(folder: Path) -> None:
    (folder / "run.json").write_text("{\x1b[2J")


def _no_epochs(folder: Path) -> None:
    (folder / "epochs.csv").write_text("epoch,seconds\nx\x1b]0;y,1\n")


def _no_table(folder: Path) -> None:
    (folder / "batches.sqlite").write_bytes(b"SQLite format 3\0 but no database \x1b[2J")


BROKEN: dict[str, Callable[[Path], None]] = {
    "run.json": _no_json,
    "epochs.csv": _no_epochs,
    "batches.sqlite": _no_table,
}
"""Files of a run ↦ what spoils them."""


@pytest.mark.parametrize("file", BROKEN)
def test_a_run_that_cannot_be_read_hides_no_other(
    file: str, runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(runs, tmp_path / "all")
    BROKEN[file](tmp_path / "all" / "slow")
    listed = file != "batches.sqlite"  # which a list does not read
    assert main(["runs", str(tmp_path / "all")]) == 2 * listed
    out, err = capsys.readouterr()
    assert "quick" in out
    assert ("slow" not in out.split()) == listed == (len(err.splitlines()) == 1)
    page = tmp_path / "x.html"
    assert main(["runs", str(tmp_path / "all"), "-o", str(page), "--report", "quick", "slow"]) == 2
    out, err = capsys.readouterr()
    assert len(err.splitlines()) == 1
    assert f"slow/{file}" in err
    assert "\x1b" not in err
    assert page.read_text("utf-8") == report([read_run(tmp_path / "all" / "quick")])
    page.unlink()
    assert main(["runs", str(tmp_path / "all"), "-o", str(page), "--report", "slow"]) == 2
    assert not page.exists()
    assert main(["runs", str(tmp_path / "all" / "slow")]) == 2 * listed
