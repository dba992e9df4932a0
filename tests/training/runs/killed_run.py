"""A run that can be killed at any moment, for test_killed.py: python killed_run.py DEVICE FOLDER LOSSES [full STEP]

It goes on from the newest checkpoint, and appends "step loss" to LOSSES after each step, the loss exactly. Writes to the disk are
slow, so that many kills fall into them. full: after so many steps more, every file is limited to a size below a checkpoint's, as
if the disk were full; the process is then killed as well.
"""

from __future__ import annotations

import os
import resource
import sys
import time
from pathlib import Path

import numpy as np

from singe import data, metrics, nn, optim
from singe.files import local
from singe.train import BatchEnded, Checkpoints, Event, Learner

EPOCHS = 6
STEPS = 3
PAUSE = 0.004
"""Seconds that each piece of a file takes."""


class SlowFile:
    """A file that a piece takes some time to get into."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("wb", buffering=0)
        self.fileno, self.flush = self._file.fileno, self._file.flush

    def __enter__(self) -> SlowFile:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def write(self, data: bytes) -> None:
        half = len(data) // 2
        for part in (data[:half], data[half:]):
            self._file.write(part)
            time.sleep(PAUSE)


class SlowPath(type(Path())):
    def open(self, mode: str = "r", *given: object, **named: object) -> object:  # pyright: ignore
        return SlowFile(Path(self)) if mode == "wb" else super().open(mode, *given, **named)  # pyright: ignore


def main(device: str, folder: str, losses: str, full: int | None) -> None:
    write = local.write
    for module in ("singe.train.saving.checkpoints", "singe.train.monitor.logs.tables"):
        sys.modules[module].write = lambda path, *given, **named: write(SlowPath(path), *given, **named)  # pyright: ignore
    rng = np.random.default_rng(0)
    x = rng.normal(size=(60, 1, 8, 8)).astype(np.float32)
    y = (x.mean((1, 2, 3)) > 0).astype(np.int64)
    model = nn.Sequential(
        nn.Conv2d(1, 4, 3, rng=0), nn.BatchNorm2d(4), nn.ReLU(), nn.Dropout(0.1), nn.Flatten(), nn.Linear(144, 2, rng=1)
    )
    done = 0

    def hook(event: Event) -> None:
        nonlocal done
        if isinstance(event, BatchEnded) and event.phase == "train":
            with open(losses, "a") as file:
                file.write(f"{event.step} {event.values['loss'].hex()}\n")
            done += 1
            if done == full:
                resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))

    learner = Learner(
        model, optim.AdamW(optim.CosineAnnealingLR(0.01, 40)), nn.CrossEntropyLoss(), [metrics.Accuracy()], device=device,
        run=folder, checkpoints=Checkpoints(steps=STEPS), seed=7, hooks=[hook], dashboard=None,
    )  # fmt: skip
    train = data.Loader((x, y), 8, shuffle=True, seed=1, workers=1)
    learner.fit(train, data.Loader((x, y), 30), EPOCHS, resume=True)
    if full is None:
        np.savez(Path(folder) / "last.npz", **{k: t.numpy() for k, t in learner.model.state_dict().items()})


if __name__ == "__main__":
    assert os.environ["OPENBLAS_NUM_THREADS"] == "1"
    main(*sys.argv[1:4], int(sys.argv[5]) if len(sys.argv) > 4 else None)
