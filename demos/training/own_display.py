"""A display of one's own while a network trains: a function that takes the events of a run.

`dashboard=None` turns off what a Learner shows, and `hooks` has functions that are called with each event instead, in the thread that trains. The one
here keeps a line: how far the epoch is, the loss as a curve of characters, and how long the rest will take; below it
stays a line for each epoch. It knows nothing of the network, so it shows any run.

    python demos/training/own_display.py [--device wasm] [--quick]
"""

from __future__ import annotations

import sys
from typing import Any, TextIO

import numpy as np
from command import run

from singe import data, metrics, nn, optim, train

LEVELS = " ▁▂▃▄▅▆▇█"
LAST = 24
"""Losses in the curve."""


class Display:
    """Shows a run in one line of a terminal, or of any file. Called with each event of singe.train."""

    def __init__(self, out: TextIO) -> None:
        self.out = out
        self.losses: list[float] = []
        self.seconds = 0.0
        self.batches: int | None = None

    def __call__(self, event: Any) -> None:
        match event:
            case train.RunBegan():
                self.batches, self.epochs = event.batches["train"], event.epochs
                self.out.write(f"{event.run} on {event.device}\n")
            case train.BatchEnded(phase="train"):
                self.losses.append(event.values["loss"])
                self.seconds += event.seconds
                self.out.write(f"\r{self.line(event)}\x1b[K")
            case train.EpochEnded():
                values = "  ".join(
                    f"{phase} {name} {x:.4f}" for phase, found in event.values.items() for name, x in found.items()
                )
                self.out.write(f"\repoch {event.epoch}  {values}{'  the best' if event.best else ''}\x1b[K\n")
            case train.Stopped():
                self.out.write(f"{event.reason} after {event.seconds:.1f} s\n")
        self.out.flush()

    def line(self, event: train.BatchEnded) -> str:
        of = f" of {self.batches}" if self.batches else ""
        left = ""
        if self.batches:
            rest = self.batches * (self.epochs - event.epoch + 1) - event.batch
            left = f"  {rest * self.seconds / len(self.losses):.0f} s left"
        return f"epoch {event.epoch} of {self.epochs}  batch {event.batch}{of}  loss {curve(self.losses[-LAST:])}{left}"


def curve(values: list[float]) -> str:
    """Numbers as bars of characters, from the least to the most."""
    least, most = min(values), max(values)
    return "".join(LEVELS[round((x - least) / ((most - least) or 1) * (len(LEVELS) - 1))] for x in values)


def main(device: str, quick: bool, out: TextIO = sys.stdout) -> dict[str, float]:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(400 if quick else 4000, 2)).astype(np.float32)
    items = data.Dataset.of((x, (np.prod(x, 1) > 0).astype(np.int64)))
    learn, valid = items.split(0.8, 0.2, seed=0)
    model = nn.Sequential(nn.Linear(2, 32, rng=rng), nn.ReLU(), nn.Linear(32, 2, rng=rng))
    learner = train.Learner(
        model, optim.AdamW(1e-2), nn.CrossEntropyLoss(), [metrics.Accuracy()], device=device, dashboard=None, hooks=[Display(out)], seed=0
    )  # fmt: skip
    learner.fit(data.Loader(learn, 32, shuffle=True, seed=0), data.Loader(valid, 100), 2 if quick else 8)
    return learner.evaluate(data.Loader(valid, 100))


if __name__ == "__main__":
    run(main, __doc__)
