"""The dashboard's screen as a picture: `python tests/training/runs/picture.py docs/dashboard.svg RUN` draws a run that was recorded.

Letters are text, in whatever font there is, held to their columns; lines, bars and dots are drawn as shapes, as fonts differ in them.
"""

from __future__ import annotations

import argparse
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from html import escape
from itertools import groupby
from pathlib import Path

from singe.train.events import BatchEnded, CheckpointSaved, EpochBegan, EpochEnded, Event, Phase, RunBegan
from singe.train.monitor.dashboard.canvas import BLOCKS, BRAILLE, DOTS, Canvas
from singe.train.monitor.dashboard.history import History
from singe.train.monitor.dashboard.screen import SCALES, ScreenView, draw
from singe.train.monitor.reports import RunRecord, read_run

ACROSS, DOWN = 8.4, 18.0
EDGE = 14.0
COLOURS = {
    "": "#dfe5ec", "bold": "#ffffff", "dim": "#8b97a5", "faint": "#3c4653", "train": "#4aa8ff", "valid": "#ff9440", "good": "#3fbf7f",
    "warning": "#e0a030", "tab": "#11161d", "question": "#11161d",
}  # fmt: skip
BACKS = {"tab": "#dfe5ec", "question": "#ffaf00"}
STROKES = {
    "─": "M{x} {m}h{w}",
    "│": "M{c} {y}v{h}",
    "└": "M{c} {y}V{m}H{r}",
    "┴": "M{x} {m}h{w}M{c} {m}V{y}",
    "┈": "M{x} {m}h{w}",
}
SHAPES = {
    "●": '<circle cx="{c}" cy="{m}" r="3.6" fill="{f}"/>',
    "◆": '<path d="M{c} {m}m0 -5.6l4.8 5.6l-4.8 5.6l-4.8 -5.6z" fill="{f}"/>',
    "▸": '<path d="M{x} {m}m1.5 -4.5l6 4.5l-6 4.5z" fill="{f}"/>',
}


def number(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")


def picture(canvas: Canvas, caption: str) -> str:
    """An SVG of a canvas."""
    width, height = number(canvas.width * ACROSS + 2 * EDGE), number(canvas.height * DOWN + 2 * EDGE)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" role="img" aria-label="{escape(caption)}">',
        f'<rect width="{width}" height="{height}" rx="10" fill="#11161d"/>',
        '<g font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, \'DejaVu Sans Mono\', monospace" font-size="13.6">',
        *_texts(canvas),
        "</g>",
        *_shapes(canvas),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _is_shape(char: str) -> bool:
    return char in STROKES or char in SHAPES or char in "━╸" or char in BLOCKS or BRAILLE <= ord(char) < BRAILLE + 256


def _texts(canvas: Canvas) -> Iterator[str]:
    for row, cells in enumerate(canvas.cells):
        top = EDGE + row * DOWN
        for (style, shape), group in groupby(
            enumerate(cells), key=lambda c: (c[1][1], not c[1][0] or _is_shape(c[1][0]))
        ):
            at = list(group)
            x, text = EDGE + at[0][0] * ACROSS, "".join(char for _, (char, _) in at)
            wide = number(len(at) * ACROSS)
            if style in BACKS:
                yield f'<rect x="{number(x)}" y="{number(top)}" width="{wide}" height="{DOWN:g}" rx="3" fill="{BACKS[style]}"/>'
            words = text.strip()
            if shape or not words:
                continue
            x += (len(text) - len(text.lstrip())) * ACROSS
            weight = ' font-weight="700"' if style in ("bold", "question") else ""
            place = f'x="{number(x)}" y="{number(top + 13.2)}" textLength="{number(len(words) * ACROSS)}"'
            yield f'<text {place} fill="{COLOURS[style]}"{weight} xml:space="preserve">{escape(words)}</text>'


def _shapes(canvas: Canvas) -> Iterator[str]:
    """One path for the dots of a colour, one for its lines, one for its bars; then what lies above them."""
    dots: dict[str, list[str]] = {}
    lines: dict[tuple[str, bool], list[str]] = {}
    bars: dict[str, list[str]] = {}
    above = []
    for row, cells in enumerate(canvas.cells):
        for column, (char, style) in enumerate(cells):
            if not char:
                continue
            x, y = EDGE + column * ACROSS, EDGE + row * DOWN
            here = {"x": x, "y": y, "c": x + ACROSS / 2, "m": y + DOWN / 2, "r": x + ACROSS, "w": ACROSS, "h": DOWN}
            spelt = {name: number(value) for name, value in here.items()} | {"f": COLOURS[style]}
            if BRAILLE <= ord(char) < BRAILLE + 256:
                for down, pair in enumerate(DOTS):
                    for across, bit in enumerate(pair):
                        if ord(char) & bit:
                            dots.setdefault(style, []).append(
                                f"M{number(x + (across + 0.5) * ACROSS / 2)} {number(y + (down + 0.5) * DOWN / 4)}h0"
                            )
            elif char in STROKES:
                lines.setdefault((style, char == "┈"), []).append(STROKES[char].format(**spelt))
            elif char in SHAPES:
                above.append(SHAPES[char].format(**spelt))
            elif char in "━╸":
                wide = ACROSS + 0.2 if char == "━" else ACROSS / 2
                bars.setdefault(style, []).append(f"M{spelt['x']} {number(y + 6.5)}h{number(wide)}v5h-{number(wide)}z")
            elif char in BLOCKS:
                high = (BLOCKS.index(char) + 1) * (DOWN - 4) / 8
                bars.setdefault(style, []).append(
                    f"M{spelt['x']} {number(y + DOWN - 2)}v-{number(high)}h{ACROSS - 0.8:g}v{number(high)}z"
                )
    for (style, dotted), found in lines.items():
        dash = ' stroke-dasharray="1.5 3"' if dotted else ""
        yield f'<path fill="none" stroke="{COLOURS[style]}"{dash} d="{"".join(found)}"/>'
    for style, found in bars.items():
        yield f'<path fill="{COLOURS[style]}" d="{"".join(found)}"/>'
    for style, found in dots.items():
        yield f'<path fill="none" stroke="{COLOURS[style]}" stroke-width="2.9" stroke-linecap="round" d="{"".join(found)}"/>'
    yield from above


# --- a run that was recorded ------------------------------------------------------------------------------------------


def events_of(run: RunRecord) -> Iterator[Event]:
    """The events of a run, as its folder tells them."""
    with closing(sqlite3.connect(run.folder / "batches.sqlite")) as file:
        lengths: dict[Phase, int | None] = {}
        for phase, most in file.execute("SELECT phase, MAX(batch) FROM batches GROUP BY phase ORDER BY phase"):
            lengths[phase] = most
        yield RunBegan(
            run.name,
            run.planned,
            lengths,
            run.device,
            best=(run.chosen, run.modes.get(run.chosen, "least")),
            modes=run.modes,
        )
        for epoch in run.epochs:
            yield EpochBegan(epoch.number)
            rows = file.execute(
                "SELECT phase, batch, step, seconds, name, value FROM batches WHERE epoch = ? ORDER BY phase, batch",
                (epoch.number,),
            )
            for (phase, batch, step, seconds), found in groupby(rows, key=lambda row: row[:4]):
                values = {name: value for *_, name, value in found if value is not None}
                yield BatchEnded(epoch.number, phase, batch, values, seconds, step=step)
            yield EpochEnded(epoch.number, epoch.values, epoch.seconds)
            yield CheckpointSaved(epoch.number, "")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("run", type=Path)
    parser.add_argument("--part", type=float, default=0.7, help="how much of the run is done")
    parser.add_argument("--metric")
    parser.add_argument("--scale", choices=SCALES, default=SCALES[0])
    parser.add_argument("--size", default="96x27")
    parser.add_argument("--batch", type=int, default=0, help="items in a batch")
    args = parser.parse_args()
    now = 0.0
    history = History(lambda: now)
    told = list(events_of(read_run(args.run)))
    for event in told[: round(args.part * len(told))]:
        if isinstance(event, BatchEnded):
            now += event.seconds
            event = BatchEnded(event.epoch, event.phase, event.batch, event.values, event.seconds, args.batch)
        history(event)
    columns, rows = map(int, args.size.split("x"))
    canvas = draw(history, ScreenView(metric=args.metric, scale=args.scale), columns, rows)
    args.out.write_text(
        picture(canvas, f"The dashboard in a terminal: {history.run}, epoch {history.epoch} of {history.epochs}"),
        "utf-8",
    )


if __name__ == "__main__":
    main()
