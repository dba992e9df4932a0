"""Runs made up of formulas, as the events that a Learner would tell. `python tests/training/runs/made_runs.py` shows one.

With `stubborn` as an argument it does not stop when asked, only at once; with `fail` an exception ends it; with `print` it prints lines.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from singe.ending import interrupt
from singe.train.events import BatchEnded, CheckpointSaved, EpochBegan, EpochEnded, Event, Phase, RunBegan, Stopped
from singe.train.monitor.dashboard import dashboard
from singe.train.monitor.dashboard.history import History

BATCH = 64
SECONDS = 0.05


def noise(number: int) -> float:
    """Between -1 and 1, the same on every machine."""
    return (number * 2654435761 % 4294967296) / 2147483648 - 1


def loss_at(epochs: float, phase: Phase, pace: float = 0.9) -> float:
    """A loss that falls; of "valid" it rises again after a while."""
    falling = 2.3 * math.exp(-epochs * pace) + 0.12 * math.exp(-epochs * 0.08)
    return falling + (0.02 + 0.004 * epochs if phase == "valid" else 0.0)


def events(
    epochs: int = 20, batches: int = 200, *, name: str = "mnist", pace: float = 0.9, folder: Path | None = None
) -> Iterator[Event]:
    """A run. Its seconds are made up, too: `SECONDS` a batch."""
    counts: dict[Phase, int | None] = {"train": batches, "valid": batches // 5}
    settings = {"optimizer": "AdamW", "lr": 1e-3 * pace, "batch": BATCH, "seed": 0}
    shown = None if folder is None else str(folder)
    yield RunBegan(name, epochs, counts, "wasm (wasmtime 50.0.1)", folder=shown, settings=settings)
    best, step = math.inf, 0
    for epoch in range(1, epochs + 1):
        yield EpochBegan(epoch)
        sums: dict[Phase, dict[str, float]] = {"train": {}, "valid": {}}
        for phase, count in counts.items():
            for batch in range(1, (count or 0) + 1):
                step += phase == "train"
                at = epoch - 1 + (batch / batches if phase == "train" else 1)
                jitter = 0.3 * noise(step) if phase == "train" else 0.05 * noise(epoch * 1000 + batch)
                loss = loss_at(at, phase, pace) * (1 + jitter)
                values = {
                    "loss": loss,
                    "accuracy": max(0.0, 1 - loss / 4),
                    "f1": max(0.0, 0.98 - loss / 3.9),
                    "perplexity": math.exp(loss),
                }
                if phase == "train":
                    values["lr"] = 1e-3 * min(1.0, at) * (0.5 + 0.5 * math.cos(math.pi * at / epochs))
                for metric, value in values.items():
                    sums[phase][metric] = sums[phase].get(metric, 0.0) + value / (count or 1)
                yield BatchEnded(epoch, phase, batch, values, SECONDS, BATCH, 182_400_000, step)
        better = sums["valid"]["loss"] < best
        best = min(best, sums["valid"]["loss"])
        yield EpochEnded(epoch, sums, SECONDS * batches * 1.2, BATCH * batches, better, step)
        yield CheckpointSaved(epoch, f"runs/{name}/step-{step:08}.safetensors", better)
    yield Stopped("finished", epochs, SECONDS * batches * 1.2 * epochs)


def history_at(part: float, **kinds: int) -> History:
    """What a dashboard knows when a part of a run is done."""
    now = 0.0
    found = History(lambda: now)
    told = list(events(**kinds))
    for event in told[: round(part * len(told))]:
        now += SECONDS if isinstance(event, BatchEnded) else 0.0
        found(event)
    return found


def show(ways: set[str], pause: float) -> None:
    """A run on the terminal, as fast as it is told."""
    asked: list[bool] = []
    stop: Callable[[], None] = lambda: asked.append(True)
    began = time.monotonic()
    with dashboard("auto", stop, interrupt) as listener:
        for event in events():
            listener(event)
            if isinstance(event, BatchEnded):
                time.sleep(pause)
                if "print" in ways and event.batch == 1 and event.phase == "train":
                    print(f"line {event.epoch} on standard output")
                    print(f"line {event.epoch} on standard error", file=sys.stderr)
                if "fail" in ways and event.step == 20:
                    raise RuntimeError("the 20th batch fails")
                if asked and "stubborn" not in ways:
                    listener(Stopped("asked", event.epoch, time.monotonic() - began))
                    break
    print("mnist has ended")


if __name__ == "__main__":
    # A run that fails is long enough to be seen on a slow machine before it does.
    show(set(sys.argv[1:]), 0.2 if "fail" in sys.argv else 0.01)
