"""The dashboard's screen: what is known of a run, drawn on a canvas of any size."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from ...events import PHASES
from ..plot_scales import duration, labels, limits, number, powers, ticks
from .canvas import Canvas, Plot, Point, columns
from .history import History, MetricHistory

Span: TypeAlias = Literal["whole", "recent"]
SPANS: Final[tuple[Span, ...]] = ("whole", "recent")
Scale: TypeAlias = Literal["linear", "log"]
SCALES: Final[tuple[Scale, ...]] = ("linear", "log")
MARGIN: Final = 1
LEAST_PLOT: Final = 5
"""Rows that a plot has at least, or is left out."""
VALUE: Final = 9
"""Columns of a number in the table."""
SPARK: Final = 24
DOING: Final = {"train": "training", "valid": "validating"}
QUESTION: Final = "Stop after this batch?"
KEPT: Final = "a checkpoint of it is kept"


@dataclass(slots=True)
class ScreenView:
    """What a person has chosen to see."""

    metric: str | None = None
    """The metric that is plotted; at first the one by which the best epoch is chosen."""
    span: Span = "whole"
    scale: Scale = "linear"
    """Of the values; of those that are not all above 0 it is always linear."""
    asking: bool = False
    """Whether the question whether to stop is shown."""
    stopping: bool = False
    message: str = ""
    """The last line that the program has printed."""


def names(history: History) -> list[str]:
    """The metrics in the order in which they are listed: the one that chooses first, then as they came."""
    chosen = history.chosen
    return sorted(history.metrics, key=lambda name: name != chosen)


def selected(history: History, view: ScreenView) -> str | None:
    """The metric that is plotted."""
    there = names(history)
    return view.metric if view.metric in there else there[0] if there else None


def draw(history: History, view: ScreenView, width: int, height: int) -> Canvas:
    """The screen of a run."""
    canvas = Canvas(width, height)
    there, name = names(history), selected(history, view)
    _head(canvas, history)
    footer = height - 1
    room = footer - 4
    rows = 0
    if name is not None and room >= LEAST_PLOT + 4:
        rows = min(len(there), max(1, (room - LEAST_PLOT - 4) // 2), max(1, room // 3))
        if room - rows - 2 < LEAST_PLOT + 3:
            rows = 0
    bottom = footer - 1 - (rows + 2 if rows else 0)
    if name is not None and bottom - 4 >= LEAST_PLOT:
        _plot(canvas, history, view, name, 4, bottom)
    elif name is not None and height >= 6:
        _values(canvas, history, name, 4)
    if rows:
        _table(canvas, history, there, name or "", bottom + 1, rows)
    _foot(canvas, history, view, footer)
    return canvas


def _head(canvas: Canvas, history: History) -> None:
    end = canvas.width - MARGIN
    after = canvas.text(0, MARGIN, history.run or "starting …", "bold", end)
    canvas.right(0, end, history.device, "dim", after + 2)

    done, left = history.progress(), history.left()
    parts = [f"epoch {history.epoch} of {history.epochs}"] if history.epochs else []
    parts += [f"{int(100 * done)}%"] if done is not None else []
    parts += [f"{duration(left)} left"] if left is not None else []
    text = "  ".join(parts)
    start = canvas.right(1, end, text, "", MARGIN)
    if done is not None and start - MARGIN > 8:
        canvas.bar(1, MARGIN, start - MARGIN - 2, done, "good")

    length = history.length()
    facts = []
    if history.batch:
        facts.append(f"{DOING[history.phase]}, batch {history.batch:,}" + (f" of {length:,}" if length else ""))
    speed = history.speed()
    if speed is not None:
        facts.append(f"{number(speed[0]) if speed[0] < 100 else f'{speed[0]:,.0f}'} {speed[1]}")
    for count, where in ((history.memory, " on the device"), (history.resident, "")):
        if count is not None:
            facts.append(f"{count / 1e6:,.0f} MB{where}")
    facts.append(f"{duration(history.elapsed())} so far")
    if history.saved is not None:
        facts.append(f"saved after epoch {history.saved}")
    column = MARGIN
    for fact in facts:
        if column + len(fact) > end:
            break
        column = canvas.text(2, column, fact, "dim", end) + 3


def _values(canvas: Canvas, history: History, name: str, row: int) -> int:
    """A metric's name and its latest values; returns the column after them."""
    metric = history.metrics[name]
    column = canvas.text(row, MARGIN, name, "bold") + 3
    for phase in PHASES:
        value = metric.latest.get(phase)
        if value is not None:
            column = canvas.text(row, column, "● ", phase)
            column = canvas.text(row, column, f"{phase} {number(value)}") + 3
    return column


def _plot(canvas: Canvas, history: History, view: ScreenView, name: str, top: int, bottom: int) -> None:
    """The metric that is selected, between two rows."""
    metric, end = history.metrics[name], canvas.width - MARGIN
    after = _values(canvas, history, name, top)
    choices = ((SCALES, view.scale), (SPANS, view.span))
    tabs = end - sum(len(text) + 2 for texts, _ in choices for text in texts) - 1
    if tabs > after:
        for texts, choice in choices:
            for text in texts:
                tabs = canvas.text(top, tabs, f" {text} ", "tab" if text == choice else "dim")
            tabs += 1

    top, height = top + 1, bottom - top - 3
    train, valid, x = _curves(metric, view.span)
    values = [v for _, v in train] + [v for at, v in valid if x[0] <= at <= x[1]]
    if view.scale == "log" and min(values, default=0.0) > 0:
        train, valid = ([(at, math.log10(v)) for at, v in points] for points in (train, valid))
        y = limits(map(math.log10, values))
        heights, texts = powers(*y, max(2, height // 3))
    else:
        y = limits(values)
        heights = ticks(*y, max(2, height // 3))
        texts = labels(heights)
    left = MARGIN + max([5, *map(len, texts)]) + 2
    width = end - left
    if width < 10:
        return
    plot = Plot(canvas, top, left, width, height, x, y)
    for value, text in zip(heights, texts, strict=True):
        row, _ = plot.cell(x[0], value)
        canvas.text(row, left, "┈" * width, "faint")
        canvas.right(row, left - 2, text, "dim")
    for row in range(top, top + height):
        canvas.text(row, left - 1, "│", "faint")
    _across(canvas, plot, top + height)

    if valid:
        last = valid[-1]
        plot.line([last, (max(x[1], last[0]), last[1])], "valid", 4)
    plot.line(columns(train, x, width) if view.span == "whole" else train, "train")
    plot.line(columns(valid, x, width), "valid")
    plot.draw()
    shown = [point for point in valid if x[0] <= point[0] <= x[1]]
    if len(shown) <= width // 3:
        for at, value in shown:
            if y[0] <= value <= y[1]:
                row, column = plot.cell(at, value)
                best = metric.best is not None and metric.best[1] == at
                canvas.text(row, column, "◆" if best else "●", "valid")


def _curves(metric: MetricHistory, span: Span) -> tuple[list[Point], list[Point], Point]:
    """The points of "train" and of "valid", and the limits of x."""
    train, valid = metric.curves["train"], metric.curves["valid"]
    if span == "recent":
        near = list(train.recent) or list(valid.recent)
        x = (near[0][0], near[-1][0]) if near else (0.0, 1.0)
        points = list(train.recent), list(valid.recent)
    else:
        points = train.whole(), valid.whole()
        first = min([p[0][0] for p in points if p], default=0.0)
        latest = [curve.recent[-1][0] for curve in (train, valid) if curve.recent]
        x = (0.0 if first < 1 or first < max(latest) / 4 else first, max(latest, default=1.0))
    return *points, (x if x[1] > x[0] else (x[0] - 0.5, x[0] + 0.5))


def _across(canvas: Canvas, plot: Plot, row: int) -> None:
    """The axis of epochs under a plot."""
    canvas.text(row, plot.column - 1, "└" + "─" * plot.width, "faint")
    places = ticks(*plot.x, max(2, plot.width // 12), integers_only=True)
    free = plot.column - 1
    end = canvas.right(row + 1, plot.column + plot.width, "epoch", "dim") - 1
    for value, text in zip(places, labels(places), strict=True):
        _, column = plot.cell(value, plot.y[0])
        start = max(plot.column, column - len(text) // 2)
        if column > plot.column:
            canvas.text(row, column, "┴", "faint")
        if start > free and start + len(text) <= end:
            free = canvas.text(row + 1, start, text, "dim") + 1


def _table(canvas: Canvas, history: History, there: list[str], name: str, top: int, rows: int) -> None:
    """The metrics with their latest and best values, as many as there is room for; the selected one among them."""
    first = max(0, min(there.index(name) - rows // 2, len(there) - rows))
    shown = there[first : first + rows]
    end = canvas.width - MARGIN
    wide = max(6, min(max(map(len, there)), max(8, end - 3 * (VALUE + 1) - 12)))
    train = MARGIN + 2 + wide + 1 + VALUE
    valid, best, epoch = train + VALUE + 1, train + 2 * (VALUE + 1), train + 2 * (VALUE + 1) + 8
    sparks = epoch + 3
    width = min(SPARK, (end - sparks - 2) // 2) if end - sparks > 16 else 0
    canvas.text(top, MARGIN + 2, "metric", "dim")
    for column, text in ((train, "train"), (valid, "valid"), (best, "best"), (epoch, "epoch")):
        if column <= end:
            canvas.right(top, column, text, "dim")
    if len(there) > rows:
        canvas.right(top, end, f"{first + 1} to {first + rows} of {len(there)}", "dim", sparks)
    for row, shown_name in enumerate(shown, top + 1):
        metric, style = history.metrics[shown_name], "bold" if shown_name == name else ""
        canvas.text(row, MARGIN, "▸ " if shown_name == name else "  ", "bold")
        canvas.text(row, MARGIN + 2, shown_name, style, MARGIN + 2 + wide)
        for phase, column in (("train", train), ("valid", valid)):
            if phase in metric.latest and column <= end:
                canvas.right(row, column, number(metric.latest[phase]), style)
        if metric.best is not None:
            if best <= end:
                canvas.right(row, best, number(metric.best[0]), style)
            if epoch <= end:
                canvas.right(row, epoch, str(metric.best[1]), "dim")
        if width:
            for phase, column in zip(PHASES, (sparks, sparks + width + 2), strict=True):
                canvas.spark(row, column, width, [v for _, v in metric.curves[phase].whole()], phase)


def _foot(canvas: Canvas, history: History, view: ScreenView, row: int) -> None:
    """The question, or what there is to say, or the keys."""
    end = canvas.width - MARGIN
    if view.asking:
        canvas.text(row, 0, " " * canvas.width, "question")
        after = canvas.text(row, MARGIN, QUESTION, "question", end)
        after = canvas.text(row, after + 3, "y yes   n no", "question", end)
        canvas.right(row, end, KEPT, "question", after + 3)
        return
    if view.stopping:
        kept = "nothing" if history.saved is None else f"epoch {history.saved}"
        after = canvas.text(row, MARGIN, "stopping after this batch …", "warning", end)
        canvas.right(row, end, f"q or Ctrl-C ends at once, and keeps {kept}", "dim", after + 3)
        return
    keys = (("↑↓", "metric"), ("←→", "whole or recent"), ("s", "scale"), ("q", "stop"))
    column = MARGIN
    for key, text in keys:
        if column + len(key) + len(text) + 1 > end:
            break
        column = canvas.text(row, column, key, "bold")
        column = canvas.text(row, column + 1, text, "dim") + 3
    note = history.note or view.message
    if note and end - column > 10:
        room = end - column
        text = note if len(note) <= room else note[: room - 1] + "…"
        canvas.right(row, end, text, "warning" if history.note else "dim")
