"""Writes the tables and plots of these pages from the figures in data/.

`python docs/measurements/draw.py` rewrites, in each page here, what stands between `<!-- table NAME -->` and `<!-- end -->`
by data/NAME.csv, with the line of data/runs.csv that says where and how it was measured; and it draws PLOTS.
tests/docs/test_measurements.py checks that the files are current. In a CSV file, the column "X least" has the least of what
column X has the median of; both are shown in one.
"""

from __future__ import annotations

import argparse
import csv
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Final

HERE: Final = Path(__file__).parent
TABLE: Final = re.compile(r"<!-- table ([\w-]+) -->\n.*?<!-- end -->", re.S)
LEAST: Final = " least"

STYLE: Final = (
    "text { fill: #5b6675 } .title { font-size: 13px; fill: #1d2430 } .end { text-anchor: end } .grid { stroke: #8884 } "
    ".c0 { fill: #2f5eb5 } .c1 { fill: #bd7531 } .c2 { fill: #84408f } "
    "@media (prefers-color-scheme: dark) { text { fill: #97a3b2 } .title { fill: #e4e8ee } "
    ".c0 { fill: #7da2e8 } .c1 { fill: #e0a05a } .c2 { fill: #c58bd0 } }"
)
WIDTH: Final = 480
LABELS: Final = 150
"""The width of a plot, and of the names at its left, in pixels."""
BAR: Final = 12
TOP: Final = 50
"""The height of a bar, and of what is above the bars."""


@dataclass(frozen=True)
class Plot:
    """Bars of some columns of a table, a group for each row. mark: a value with a line of its own, such as a bound."""

    table: str
    title: str
    columns: Sequence[str]
    mark: float | None = None


@dataclass(frozen=True)
class Curves:
    """A line for each column of a table over its first column. The lines lie on each other, the first widest, so that all are seen."""

    table: str
    title: str


PLOTS: Final[Mapping[str, Plot | Curves]] = {
    "device-losses": Curves("device-losses", "Loss by step, one network and one seed, on each device"),
    "language-context": Curves("language-context", "SmolLM2-135M, tokens a second by the tokens before, one thread"),
    "language-batch": Curves("language-batch", "SmolLM2-135M, tokens a second by conversations, one thread"),
    "language-sizes": Plot("language-sizes", "Tokens a second by the model, one thread", ("writes", "reads 128")),
    "page-cpu": Plot(
        "page-cpu-models",
        "Time of a run over onnxruntime-web's, WebAssembly",
        ("1 thread: ratio", "2 threads: ratio"),
        mark=1,
    ),
    "page-gpu": Plot("page-gpu-models", "Time of a run over onnxruntime-web's, WebGPU on an H200", ("H200: ratio",), mark=1),
    "first-answer": Plot(
        "first-answer",
        "First answer of mnist_cnn on the first visit, ms, by latency",
        ("first visit: 0 ms", "first visit: 100 ms", "first visit: 300 ms"),
    ),
    "wasm-products": Plot(
        "wasm-products",
        "Products on WebAssembly, GFLOP/s (line: the bound of registers)",
        ("relaxed SIMD", "onnxruntime-web"),
        mark=59.3,
    ),
}  # fmt: skip


def rows_of(name: str) -> list[list[str]]:
    """The lines of data/NAME.csv, of which the first has the names of the columns."""
    with (HERE / "data" / f"{name}.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.reader(file))


def table_text(name: str) -> str:
    """A table in Markdown, and the line that says where and how it was measured."""
    head, *rows = rows_of(name)
    names = [f"{h} (least)" if f"{h}{LEAST}" in head else h for h in head if not _is_least(h, head)]
    lines = [f"| {' | '.join(names)} |", "|---" * len(names) + "|", *(_line(head, row) for row in rows)]
    (run,) = (run for run in rows_of("runs") if run[0] == name)
    _, machine, date, command = run
    how = f"`{command}`" if command else "by a script that is not kept"
    return "\n".join([*lines, "", f"*On {machine}; {date}; {how}.*"])


def _is_least(name: str, head: Sequence[str]) -> bool:
    return name.endswith(LEAST) and name.removesuffix(LEAST) in head


def _line(head: Sequence[str], cells: Sequence[str]) -> str:
    """A row of a table; the least of a value follows it in brackets."""
    shown: list[str] = []
    for name, cell in zip(head, cells, strict=True):
        if not _is_least(name, head):
            shown.append(cell)
        elif cell:
            shown[-1] += f" ({cell})"
    return f"| {' | '.join(shown)} |"


def page_text(text: str) -> str:
    """A page with its tables as the data has them."""
    return TABLE.sub(lambda m: f"<!-- table {m[1]} -->\n\n{table_text(m[1])}\n\n<!-- end -->", text)


def plot_text(plot: Plot) -> str:
    """A plot, as SVG."""
    head, *rows = rows_of(plot.table)
    at = [head.index(column) for column in plot.columns]
    rows = [row for row in rows if all(_number(row[i]) is not None for i in at)]
    most = max([plot.mark or 0, *(_number(row[i]) or 0 for row in rows for i in at)])
    scale = (WIDTH - LABELS - 40) / most
    group = BAR * len(at) + 8
    height = TOP + group * len(rows) + 10
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}" '
        'font-family="system-ui, sans-serif" font-size="12">',
        f'<style>{STYLE}</style><text class="title" x="8" y="18">{escape(plot.title)}</text>',
    ]
    for i, column in enumerate(plot.columns if len(at) > 1 else ()):
        x = 8 + i * 155
        parts.append(
            f'<rect class="c{i}" x="{x}" y="28" width="10" height="10"/><text x="{x + 15}" y="37">{escape(column)}</text>'
        )
    for r, row in enumerate(rows):
        y = TOP + r * group
        middle = y + BAR * len(at) / 2 + 4
        parts.append(f'<text class="end" x="{LABELS - 8}" y="{middle:.1f}">{escape(_short(row[0]))}</text>')
        for i, column in enumerate(at):
            value = _number(row[column]) or 0
            top = y + i * BAR
            parts.append(f'<rect class="c{i}" x="{LABELS}" y="{top}" width="{value * scale:.1f}" height="{BAR - 1}"/>')
            parts.append(f'<text x="{LABELS + value * scale + 4:.1f}" y="{top + BAR - 2}">{escape(row[column])}</text>')
    if plot.mark is not None:
        parts.append(f'<path class="grid" d="M{LABELS + plot.mark * scale:.1f} {TOP - 4}V{height - 8}"/>')
    return "\n".join([*parts, "</svg>\n"])


def curves_text(plot: Curves) -> str:
    """A plot of curves, as SVG."""
    head, *rows = rows_of(plot.table)
    table = [[float(cell) for cell in row] for row in rows]
    most, last = max(max(row[1:]) for row in table), table[-1][0]
    left, top, tall, wide = 40, 64 + 16 * (len(head) // 4), 200, WIDTH - 60
    count = len(head) - 1
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{top + tall + 30}" '
        f'viewBox="0 0 {WIDTH} {top + tall + 30}" font-family="system-ui, sans-serif" font-size="12">',
        f'<style>{STYLE}</style><text class="title" x="8" y="18">{escape(plot.title)}</text>',
    ]
    for k in range(5):
        y = top + tall * k / 4
        parts.append(f'<path class="grid" d="M{left} {y:.1f}h{wide}"/>')
        parts.append(f'<text class="end" x="{left - 6}" y="{y + 4:.1f}">{most * (4 - k) / 4:.3g}</text>')
    for k in range(0, len(table), 2):
        label = f"{table[k][0]:g}"
        x = left + wide * table[k][0] / last - 4 * len(label)
        parts.append(f'<text x="{x:.1f}" y="{top + tall + 18}">{label}</text>')
    for i in range(count):
        points = [f"{left + wide * row[0] / last:.1f} {top + tall * (1 - row[i + 1] / most):.1f}" for row in table]
        hue, width = 360 * i // count, 1 + 1.5 * (count - 1 - i)
        colour = f"hsl({hue} 60% 50%)"
        parts.append(f'<path d="M{"L".join(points)}" fill="none" stroke="{colour}" stroke-width="{width:g}"/>')
        x, y = 8 + i % 4 * 118, 38 + i // 4 * 16
        parts.append(
            f'<rect fill="{colour}" x="{x}" y="{y - 9}" width="10" height="10"/><text x="{x + 15}" y="{y}">{escape(head[i + 1])}</text>'
        )
    return "\n".join([*parts, "</svg>\n"])


def _number(cell: str) -> float | None:
    try:
        return float(cell.replace(",", ""))
    except ValueError:
        return None


def _short(name: str) -> str:
    return name if len(name) <= 24 else f"{name[:23]}…"


def files() -> Iterator[tuple[Path, str]]:
    """The pages and plots, as the data has them."""
    for path in sorted(HERE.glob("*.md")):
        yield path, page_text(path.read_text("utf-8"))
    for name, plot in PLOTS.items():
        yield HERE / f"{name}.svg", plot_text(plot) if isinstance(plot, Plot) else curves_text(plot)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.parse_args()
    for path, text in files():
        path.write_text(text, "utf-8")
