"""Runs as one static HTML page: plots, tables, settings. It needs no script and no other file."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Final

from ....errors import InputError
from ....texts import in_html
from ...best_value import best_mode
from ...events import ENDS, PHASES, Phase
from ..plot_scales import duration, number
from .chart import Series, chart
from .record import RunRecord, differing, titles

BATCHES: Final = 180
"""Points of a curve of batches."""
COLOURS: Final = 8
STYLE: Final = """
:root { color-scheme: light dark; --back: #fff; --text: #1d2430; --dim: #5b6675; --line: #e3e7ec; --panel: #f7f8fa;
  --c0: #1f77d0; --c1: #d9650b; --c2: #17945a; --c3: #b0379e; --c4: #8a6d00; --c5: #6a55d4; --c6: #c8283c; --c7: #0a8ea0; }
@media (prefers-color-scheme: dark) { :root { --back: #12161c; --text: #e4e8ee; --dim: #97a3b2; --line: #2a313b; --panel: #191f27;
  --c0: #5aaaf7; --c1: #ff9a4a; --c2: #4fca8c; --c3: #e37fd3; --c4: #d9b93c; --c5: #a596ff; --c6: #ff7a85; --c7: #4fcbd9; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 80rem; padding: 1.5rem 1rem 3rem; background: var(--back); color: var(--text);
  font: 0.95rem/1.5 system-ui, sans-serif; }
h1 { margin: 0; font-size: 1.6rem; line-height: 1.2; overflow-wrap: anywhere; }
h2 { margin: 2rem 0 0.6rem; font-size: 1.05rem; }
p { margin: 0.3rem 0 0; color: var(--dim); overflow-wrap: anywhere; }
.key { display: flex; flex-wrap: wrap; gap: 0.2rem 1.2rem; margin: 1.4rem 0 0.6rem; color: var(--dim); font-size: 0.85rem; }
.key span::before, td.run::before { content: ""; display: inline-block; width: 1.1rem; height: 0.2rem; border-radius: 0.1rem;
  margin-right: 0.45rem; vertical-align: 0.22rem; background: var(--c); }
.key .none::before { display: none; }
.tiles { display: grid; grid-template-columns: repeat(auto-fill, minmax(9.5rem, 1fr)); gap: 0.6rem; margin: 1.2rem 0 0; }
.tiles div { padding: 0.6rem 0.8rem; border-radius: 0.5rem; background: var(--panel); min-width: 0; }
.tiles dt { color: var(--dim); font-size: 0.8rem; overflow-wrap: anywhere; }
.tiles dd { margin: 0; font-size: 1.25rem; font-variant-numeric: tabular-nums; }
.tiles small { color: var(--dim); font-size: 0.75rem; }
.plots { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 23rem), 1fr)); gap: 0.8rem; }
figure { margin: 0; padding: 0.7rem 0.6rem 0.2rem; border-radius: 0.5rem; background: var(--panel); max-width: 40rem; }
figcaption { padding-left: 0.3rem; font-weight: 600; overflow-wrap: anywhere; }
figcaption small { color: var(--dim); font-weight: 400; }
svg { display: block; width: 100%; height: auto; }
svg text { fill: var(--dim); font-size: 10.5px; font-variant-numeric: tabular-nums; }
svg .value { text-anchor: end; } svg .epoch { text-anchor: middle; }
.grid { stroke: var(--line); fill: none; }
.line, .smooth, .faint, .dashed { fill: none; stroke: var(--c); stroke-width: 1.8; stroke-linejoin: round; stroke-linecap: round; }
.faint { stroke-width: 1.1; opacity: 0.45; } .dashed { stroke-width: 1.2; stroke-dasharray: 1 4; }
circle { fill: var(--c); } .many { opacity: 0; } .many:hover { opacity: 1; }
.best { fill: var(--panel); stroke: var(--c); stroke-width: 2; }
.table { overflow-x: auto; border-radius: 0.5rem; background: var(--panel); }
table { border-collapse: collapse; width: 100%; font-size: 0.85rem; font-variant-numeric: tabular-nums; }
th, td { padding: 0.3rem 0.8rem; text-align: right; white-space: nowrap; }
th { color: var(--dim); font-weight: 500; } tr + tr td, tbody td { border-top: 1px solid var(--line); }
.left { text-align: left; } td.best { font-weight: 650; fill: none; stroke: none; }
td.long { white-space: normal; overflow-wrap: anywhere; min-width: 12rem; }
summary { cursor: pointer; margin: 2rem 0 0.6rem; font-size: 1.05rem; font-weight: 650; }
"""
_CLASSES: Final = "".join(f".c{i} {{ --c: var(--c{i}); }}\n" for i in range(COLOURS))


def report(runs: Sequence[RunRecord]) -> str:
    """The page of one run, or the comparison of several."""
    if not runs:
        raise InputError("report: no runs are given, expected at least one")
    title, body = (runs[0].name, _one(runs[0])) if len(runs) == 1 else (f"{len(runs)} runs", _several(runs))
    return (
        '<!doctype html>\n<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">\n'
        f"<title>{in_html(title)}</title>\n<style>{STYLE}{_CLASSES}</style>\n{''.join(body)}</html>\n"
    )


# --- one run ----------------------------------------------------------------------------------------------------------


def _one(run: RunRecord) -> Iterator[str]:
    yield f"<h1>{in_html(run.name)}</h1>\n<p>{in_html(_facts(run))}</p>\n"
    if run.message:
        yield f"<p>{in_html(run.message)}</p>\n"
    yield f'<dl class="tiles">{"".join(_tiles(run))}</dl>\n'
    yield '<div class="key"><span class="c0">train</span><span class="c1">valid</span>'
    yield '<span class="none">faint: batches; circled: the best epoch</span></div>\n<div class="plots">'
    for metric in run.plotted:
        yield chart(metric, _curves(run, metric), best_mode(metric, run.modes))
    yield "</div>\n"
    if run.epochs:
        mark = " open" if len(run.epochs) <= 25 else ""
        yield f"<details{mark}><summary>Epochs</summary>{_epochs(run)}</details>\n"
    if run.settings:
        rows = [[in_html(name), in_html(value)] for name, value in run.settings.items()]
        yield f"<h2>Settings</h2>{_table(None, rows, ['left', 'left long'])}\n"


def _facts(run: RunRecord) -> str:
    count = f"{len(run.epochs)}" + (f" of {run.planned}" if run.planned > len(run.epochs) else "")
    parts = [
        f"{ENDS.get(run.reason, run.reason)} after {duration(run.seconds)}",
        f"{count} epoch{'s' * (len(run.epochs) != 1)}",
        run.device,
        f"{run.began:%Y-%m-%d %H:%M}" if run.began else "",
    ]
    return " · ".join(part for part in parts if part)


def _tiles(run: RunRecord) -> Iterator[str]:
    for metric in run.metrics:
        best = run.best(metric)
        if best is not None:
            name = in_html(f"best {run.judged(metric)} {metric}")
            yield f"<div><dt>{name}</dt><dd>{number(best[0])}</dd><small>epoch {best[1]}</small></div>"
    if run.epochs:
        yield f"<div><dt>an epoch</dt><dd>{_seconds(sum(e.seconds for e in run.epochs) / len(run.epochs))}</dd><small>on average</small></div>"


def _seconds(value: float) -> str:
    return duration(value) if value >= 100 else f"{value:.1f} s"


def _curves(run: RunRecord, metric: str) -> list[Series]:
    best = run.best(metric)
    judged = run.judged(metric)
    marks = {judged: best[1]} if best else {}
    return [
        Series("batches", "c0", run.batches(metric, BATCHES), "faint" if metric in run.metrics else "smooth"),
        Series("train", "c0", run.points("train", metric), best=marks.get("train")),
        Series("valid", "c1", run.points("valid", metric), best=marks.get("valid")),
    ]


def _epochs(run: RunRecord) -> str:
    columns: list[tuple[Phase, str]] = [
        (phase, metric) for metric in run.metrics for phase in PHASES if run.points(phase, metric)
    ]
    bests = {(run.judged(m), m): best[1] for m in run.metrics if (best := run.best(m)) is not None}
    rows, classes = [], []
    for epoch in run.epochs:
        values = [epoch.value(phase, metric) for phase, metric in columns]
        rows.append([str(epoch.number), *("" if math.isnan(v) else number(v) for v in values), _seconds(epoch.seconds)])
        classes.append(["", *("best" if bests.get(c) == epoch.number else "" for c in columns), ""])
    heads = ["epoch", *(f"{phase} {metric}" for phase, metric in columns), "time"]
    return _table(heads, rows, None, classes)


# --- several runs -----------------------------------------------------------------------------------------------------


def _several(runs: Sequence[RunRecord]) -> Iterator[str]:
    names = titles(runs)
    metrics = list(dict.fromkeys(metric for run in runs for metric in run.plotted))
    yield f"<h1>{len(runs)} runs</h1>\n"
    yield f'<h2>Results</h2>{_results(runs, names, metrics)}\n<div class="key">'
    yield "".join(f'<span class="c{i % COLOURS}">{in_html(name)}</span>' for i, name in enumerate(names))
    yield '<span class="none">lines: valid, where there is validation; dotted: train; circled: the best epoch</span></div>\n'
    yield '<div class="plots">'
    for metric in metrics:
        series, modes = [], {}
        for i, (run, name) in enumerate(zip(runs, names, strict=True)):
            colour = f"c{i % COLOURS}"
            if metric not in run.metrics:
                series.append(Series(name, colour, run.batches(metric, BATCHES), "smooth"))
                continue
            best, judged = run.best(metric), run.judged(metric)
            modes |= run.modes
            mark = best[1] if best else None
            if judged == "valid":
                series.append(Series(f"{name}, train", colour, run.points("train", metric), "dashed"))
            series.append(Series(f"{name}, {judged}", colour, run.points(judged, metric), best=mark))
        yield chart(metric, series, best_mode(metric, modes))
    yield "</div>\n"
    if settings := differing(runs):
        rows = [[in_html(n), *(in_html(run.settings.get(n, "–")) for run in runs)] for n in settings]
        heads = ["setting", *names]
        yield f"<h2>Settings that differ</h2>{_table(heads, rows, ['left'] + ['left long'] * len(runs))}\n"


def _results(runs: Sequence[RunRecord], names: Sequence[str], metrics: Sequence[str]) -> str:
    judged = [m for m in metrics if any(run.best(m) for run in runs)]
    tops = {m: _top(runs, m) for m in judged}
    rows, classes = [], []
    for i, (run, name) in enumerate(zip(runs, names, strict=True)):
        bests = [run.best(m) for m in judged]
        cells = ["" if b is None else f"{number(b[0])} <small>({b[1]})</small>" for b in bests]
        epochs = f"{len(run.epochs)} of {run.planned}" if run.planned else str(len(run.epochs))
        rows.append(
            [
                in_html(name),
                *cells,
                epochs,
                duration(run.seconds),
                in_html(ENDS.get(run.reason, run.reason)),
                in_html(run.device),
            ]
        )
        marks = ["best" if b is not None and b[0] == tops[m] else "" for m, b in zip(judged, bests, strict=True)]
        classes.append([f"left run c{i % COLOURS}", *marks, "", "", "left", "left"])
    heads = ["run", *(f"best {m} (epoch)" for m in judged), "epochs", "time", "end", "device"]
    lefts = ["left", *[""] * (len(judged) + 2), "left", "left"]
    return _table(heads, rows, lefts, classes)


def _top(runs: Sequence[RunRecord], metric: str) -> float:
    found = [(best[0], best_mode(metric, run.modes)) for run in runs if (best := run.best(metric))]
    return (max if found[0][1] == "most" else min)(value for value, _ in found)


def _table(
    heads: Sequence[str] | None,
    rows: Sequence[Sequence[str]],
    sides: Sequence[str] | None = None,
    classes: Sequence[Sequence[str]] | None = None,
) -> str:
    """A table; its cells are HTML, its heads text. sides: a class for each column; classes: one for each cell."""

    def cell(tag: str, text: str, kind: str) -> str:
        return f'<{tag} class="{kind.strip()}">{text}</{tag}>' if kind.strip() else f"<{tag}>{text}</{tag}>"

    columns = sides or [""] * len(rows[0])
    top = (
        f"<thead><tr>{''.join(cell('th', in_html(h), c) for h, c in zip(heads, columns, strict=True))}</tr></thead>"
        if heads
        else ""
    )
    body = [
        "<tr>" + "".join(cell("td", text, kind) for text, kind in zip(row, kinds, strict=True)) + "</tr>\n"
        for row, kinds in zip(rows, classes or [columns] * len(rows), strict=True)
    ]
    return f'<div class="table"><table>{top}<tbody>{"".join(body)}</tbody></table></div>'
