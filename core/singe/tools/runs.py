"""`singe runs`: a table that compares training runs, and reports of some as a page."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from ..errors import InputError, SingeError
from ..files import write
from ..report import LEFT, RIGHT, Column, fields, table
from ..train.events import ENDS
from ..train.monitor.plot_scales import duration, number
from ..train.monitor.reports import RunRecord, differing, find_runs, is_run, read_run, report, titles


def describe_runs(folder: Path, width: int | None = None, tell: Callable[[SingeError], object] | None = None) -> str:
    """A table of the runs in a folder: their best values, and the settings in which they differ. width: as of `table`; tell: as
    of `find_runs`."""
    runs = find_runs(folder, tell)
    if not runs:
        return f"no runs in {folder}"
    judged = list(dict.fromkeys(metric for run in runs for metric in run.metrics if run.best(metric)))
    settings = differing(runs)
    columns: list[Column] = [
        ("run", LEFT),
        ("began", LEFT),
        ("device", LEFT),
        ("epochs", RIGHT),
        ("time", RIGHT),
        ("end", LEFT),
        *((f"best {metric} (epoch)", RIGHT) for metric in judged),
        *((name, LEFT) for name in settings),
    ]
    rows = [
        [
            name,
            f"{run.began:%Y-%m-%d %H:%M}" if run.began else "",
            run.device,
            f"{len(run.epochs)}/{run.planned}" if run.planned else len(run.epochs),
            duration(run.seconds),
            ENDS.get(run.reason, run.reason),
            *(_best(run, metric) for metric in judged),
            *(run.settings.get(setting, "") for setting in settings),
        ]
        for run, name in zip(runs, titles(runs), strict=True)
    ]
    return table(columns, rows, width)


def _best(run: RunRecord, metric: str) -> str:
    best = run.best(metric)
    return "" if best is None else f"{number(best[0])} ({best[1]})"


def write_report(folder: Path, names: Sequence[str], out: Path, tell: Callable[[SingeError], object]) -> str:
    """Write the page of one run, or that which compares several; returns what there is to say of it. tell: gets the error of each
    run that is left out as it cannot be read, unless that is all of them."""
    runs: list[RunRecord] = []
    refused: list[SingeError] = []
    for name in names:
        try:
            run = _named(folder, name)
            report([run])  # reads all that the folder has, and keeps it
        except SingeError as e:
            refused.append(e)
        else:
            runs.append(run)
    if not runs and refused:
        raise refused[0]
    for error in refused:
        tell(error)
    write(out, [report(runs).encode()])
    return fields([("wrote", out), ("runs", len(runs))])


def _named(folder: Path, name: str) -> RunRecord:
    for path in (Path(name), folder / name):
        if is_run(path):
            return read_run(path)
    refused: list[SingeError] = []
    found = find_runs(folder, refused.append) if folder.is_dir() else []
    chosen = [run for run, title in zip(found, titles(found), strict=True) if title == name]
    if chosen:
        return chosen[0]
    there = ", ".join(titles(found)) or "none"
    unread = f", and what cannot be read: {refused[0]}" if refused else ""
    raise InputError(f"{name}: no such run; {folder} has {there}{unread}")
