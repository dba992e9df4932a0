"""The dashboard without a terminal: what it knows of a run, its screens, its keys, its lines of text.

The screens are compared with texts in the folder `screens`; SINGE_UPDATE_GOLDEN=1 writes them anew.
"""

from __future__ import annotations

import errno
import io
import math
import os
import sys
from pathlib import Path

import numpy as np
import pytest
from made_runs import events, history_at

from singe import nn, optim
from singe.errors import InputError
from singe.train import Learner
from singe.train.best_value import best_mode
from singe.train.events import BatchEnded, EpochBegan, EpochEnded, Note, RunBegan
from singe.train.monitor.dashboard import dashboard
from singe.train.monitor.dashboard.canvas import Canvas, Plot
from singe.train.monitor.dashboard.dashboard import press
from singe.train.monitor.dashboard.history import BUCKETS, RECENT, Curve, History
from singe.train.monitor.dashboard.plain import ProgressLines
from singe.train.monitor.dashboard.screen import ScreenView, draw
from singe.train.monitor.dashboard.terminal import keys_of
from singe.train.monitor.plot_scales import duration, labels, limits, number, powers, ticks

SCREENS = Path(__file__).parent / "screens"
CASES = {
    "start": (0.0003, ScreenView(), 80, 24),
    "first-epoch": (0.03, ScreenView(), 80, 24),
    "whole": (0.42, ScreenView(), 100, 30),
    "recent": (0.42, ScreenView(span="recent"), 100, 30),
    "log": (0.42, ScreenView(scale="log"), 100, 30),
    "other": (0.7, ScreenView(metric="accuracy"), 90, 26),
    "asking": (0.7, ScreenView(asking=True), 80, 24),
    "stopping": (0.7, ScreenView(stopping=True), 80, 24),
    "end": (1.0, ScreenView(message="a line that was printed"), 80, 24),
    "narrow": (0.42, ScreenView(), 44, 20),
    "low": (0.42, ScreenView(), 80, 10),
    "tiny": (0.42, ScreenView(), 20, 4),
}


@pytest.mark.parametrize("name", CASES)
def test_screens(name: str) -> None:
    part, view, width, height = CASES[name]
    found = draw(history_at(part), view, width, height).plain() + "\n"
    path = SCREENS / f"{name}.txt"
    if os.environ.get("SINGE_UPDATE_GOLDEN"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(found, "utf-8")
    assert found == path.read_text("utf-8"), f"{path}: SINGE_UPDATE_GOLDEN=1 writes it anew"


@pytest.mark.parametrize("part", [0.0, 0.0003, 0.02, 0.5, 1.0])
def test_a_screen_of_any_size_has_just_its_cells(part: float) -> None:
    history = history_at(part, epochs=3, batches=20)
    for width in (*range(1, 60, 3), 200):
        for height in (*range(1, 30, 2), 80):
            for view in (ScreenView(), ScreenView("accuracy", "recent", "log", asking=True)):
                cells = draw(history, view, width, height).cells
                assert len(cells) == height
                assert all(len(row) == width for row in cells)


def test_texts_keep_to_their_cells_whatever_their_characters() -> None:
    canvas = Canvas(8, 1)
    assert canvas.text(0, 0, "模型\x1b[2Jé") == 8
    assert canvas.plain() == "模型\\x1b"
    assert canvas.text(0, 6, "模模") == 8
    assert canvas.plain().endswith("模")


def test_a_curve_is_kept_in_bounded_memory() -> None:
    curve = Curve()
    for n in range(200_000):
        curve.add(n / 1000, float(n))
    whole = curve.whole()
    assert len(curve.recent) == RECENT
    assert BUCKETS // 2 <= len(whole) <= BUCKETS + 1
    assert all(y == pytest.approx(1000 * x) for x, y in whole)
    assert whole == sorted(whole)


def test_values_that_are_not_finite_have_no_place_in_a_plot() -> None:
    history = history_at(0.01)
    for value in (math.nan, math.inf, -math.inf):
        history(BatchEnded(1, "train", 50, {"loss": value}, 0.1))
    text = draw(history, ScreenView(), 80, 24).plain()
    assert "train nan" in text


def test_what_is_left_is_estimated_of_what_was_trained_here() -> None:
    now = 0.0
    history = History(lambda: now)
    history(RunBegan("a", 10, {"train": 10}, "numpy", epoch=6))
    assert history.progress() == 0.5
    assert history.left() is None
    history(EpochBegan(6))
    for batch in range(1, 6):
        now += 2.0
        history(BatchEnded(6, "train", batch, {"loss": 1.0}, 2.0, items=8))
    assert history.progress() == pytest.approx(0.55)
    assert history.left() == pytest.approx(90.0)
    assert history.speed() == (4.0, "items/s")


def test_a_run_of_unknown_length_has_no_end_to_wait_for() -> None:
    history = History()
    history(RunBegan("a", 0, {"train": None}, "numpy"))
    history(EpochBegan(1))
    history(BatchEnded(1, "train", 1, {"loss": 1.0}, 2.0))
    assert history.progress() is None
    assert history.left() is None
    assert "batch 1 " in draw(history, ScreenView(), 80, 24).plain()


@pytest.mark.parametrize(
    ("name", "way"),
    [
        ("loss", "least"), ("valid_loss", "least"), ("rmse", "least"), ("perplexity", "least"), ("accuracy", "most"),
        ("lr", None), ("grad_norm", None), ("auroc", "most"), ("chosen", "least"),
    ],
)  # fmt: skip
def test_the_best_of_a_metric_is_judged_by_its_name(name: str, way: str | None) -> None:
    assert best_mode(name, {"chosen": "least"}) == way


def test_keys_choose_what_is_shown_and_ask_before_they_stop() -> None:
    history, view, stops, ends = history_at(0.3), ScreenView(), [], []

    def pressed(keys: str) -> None:
        for key in keys_of(keys):
            press(key, history, view, lambda: stops.append(True), lambda: ends.append(True))

    pressed("\x1b[B\x1b[C")
    assert (view.metric, view.span) == ("accuracy", "recent")
    pressed("\x1bOA\x1b[As\x1b[D")
    assert (view.metric, view.span, view.scale) == ("lr", "whole", "log")
    pressed("q")
    assert view.asking
    pressed("n")
    assert not view.asking
    pressed("q\x1b[24~\x1b")
    assert not view.asking
    assert not stops
    pressed("qy")
    assert (view.stopping, view.asking, stops, ends) == (True, False, [True], [])
    pressed("q")
    assert (view.asking, stops, ends) == (False, [True], [True])


def test_lines_of_text_tell_each_epoch_once() -> None:
    stream = io.StringIO()
    with ProgressLines(stream, lambda: 0.0) as show:
        for event in events(3, 10):
            show(event)
        show(Note("the disk is full"))
    lines = stream.getvalue().splitlines()
    assert lines[0] == "mnist: 3 epochs on wasm (wasmtime 50.0.1)"
    assert [line[:12] for line in lines[1:4]] == ["epoch 1 of 3", "epoch 2 of 3", "epoch 3 of 3"]
    assert lines[1].startswith("epoch 1 of 3  train loss 1.5")
    assert lines[1].endswith("0.6 s  1,067 items/s  best so far")
    assert lines[4:] == ["note: the disk is full"]


class Full(io.StringIO):
    """A stream on a disk that is full."""

    def write(self, text: str, /) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")


def test_training_does_not_end_where_its_lines_cannot_be_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", Full())
    layer = nn.Linear(2, 1, rng=0)
    learner = Learner(layer, optim.SGD(0.1), nn.MSELoss(), device="numpy", dashboard="plain")
    batch = np.zeros((4, 2), np.float32), np.zeros((4, 1), np.float32)
    assert learner.fit([batch], epochs=2).reason == "finished"


def test_without_a_terminal_there_are_lines() -> None:
    assert isinstance(dashboard("auto", lambda: None, lambda: None), ProgressLines)
    with pytest.raises(InputError, match=r'needs a terminal.*"plain"'):
        dashboard("terminal", lambda: None, lambda: None)
    with pytest.raises(InputError, match="expected"):
        dashboard("web", lambda: None, lambda: None)  # pyright: ignore[reportArgumentType]


def test_a_run_that_goes_on_says_where() -> None:
    stream = io.StringIO()
    with ProgressLines(stream, lambda: 0.0) as show:
        show(RunBegan("a", 2, {"train": 1}, "numpy", folder="runs/a", epoch=2))
        show(EpochEnded(2, {"train": {"loss": 1.0}}, 1.0))
    assert (
        stream.getvalue()
        == "a: 2 epochs on numpy, from epoch 2; folder runs/a\nepoch 2 of 2  train loss 1.0000  1.0 s\n"
    )


# --- lines, and axes --------------------------------------------------------------------------------------------------


def test_a_line_is_drawn_from_edge_to_edge_and_no_further() -> None:
    canvas = Canvas(4, 2)
    plot = Plot(canvas, 0, 0, 4, 2, (0, 1), (0, 1))
    plot.line([(-1, -1), (2, 2)], "train")
    plot.line([(5, 5), (6, 7)], "train")
    plot.draw()
    assert canvas.plain() == "  ⡠⠊\n⡠⠊⠁"


@pytest.mark.parametrize(("low", "high"), [(0, 1), (0.93, 0.9312), (-5, 1e6), (1e-9, 2e-9), (0, 7), (99.99, 100.01)])
@pytest.mark.parametrize("count", [2, 3, 5, 12])
def test_ticks_are_few_even_and_between_the_limits(low: float, high: float, count: int) -> None:
    found = ticks(low, high, count)
    assert 1 <= len(found) <= count
    assert all(low - 1e-6 * (high - low) <= v <= high + 1e-6 * (high - low) for v in found)
    texts = labels(found)
    assert len(set(texts)) == len(texts)
    assert all(
        float(t.replace(",", "")) == pytest.approx(v, rel=1e-3, abs=1e-12) for t, v in zip(texts, found, strict=True)
    )


def test_axes_cut_off_a_few_values_far_from_the_others() -> None:
    values = [math.sin(n) for n in range(200)]
    assert limits([*values, 1e6])[1] < 20
    assert limits([3.0, 1e6]) == (3.0, 1e6)
    low, high = limits([2.0, 2.0])
    assert low < 2 < high
    assert limits([]) == (0.0, 1.0)


def test_logarithms_have_round_numbers_beside_them() -> None:
    assert powers(-2, 0.31, 8)[1] == ["0.01", "0.02", "0.05", "0.1", "0.2", "0.5", "1", "2"]
    assert powers(-3, 3, 7)[1] == ["0.001", "0.01", "0.1", "1", "10", "100", "1000"]
    assert powers(0.01, 0.02, 3)[1]


def test_numbers_are_short() -> None:
    cases = {
        0.0: "0",
        0.12345: "0.1235",
        1.0: "1.0000",
        12.3456: "12.346",
        1234.5: "1,234.5",
        98765.4: "98,765",
        1e-5: "1.00e-5",
        1.2e9: "1.200e9",
    }
    assert {value: number(value) for value in cases} == cases
    assert [duration(s) for s in (0.4, 75, 3671, 100_000)] == ["0:00", "1:15", "1:01:11", "1 d 3 h"]
