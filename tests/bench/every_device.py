"""One network trained on several devices from one seed: the loss of every tenth step on each.

    python tests/bench/every_device.py numpy wasm webgpu remote [--steps 100] [--out losses.csv]

`remote` is numpy in a server of its own. The network is that of the MNIST example; its digits are patterns with noise, so no file is
needed, and every machine makes the same. Columns of a file that is there stay, so that machines may take turns.
"""

from __future__ import annotations

import argparse
import csv
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Final

import numpy as np

import singe as sg
from singe import nn
from singe.runtime.remote.server import RemoteServer
from singe.train import TrainStep
from singe.train.examples.mnist import Digits

EVERY: Final = 10
BATCH: Final = 64


def batches(steps: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    rng = np.random.default_rng(0)
    patterns = rng.random((10, 1, 28, 28), np.float32)
    for _ in range(steps):
        labels = rng.integers(0, 10, BATCH)
        yield patterns[labels] + rng.normal(0, 0.5, (BATCH, 1, 28, 28)).astype(np.float32), labels


def losses(device: str, steps: int) -> list[float]:
    with ExitStack() as stack:
        on: sg.Device | str = device
        if device == "remote":
            server = stack.enter_context(RemoteServer("numpy", port=0))
            on = sg.Remote(server.url, token=server.token)
        model = Digits(np.random.default_rng(1)).train()
        step = TrainStep(model, sg.optim.SGD(0.05), nn.CrossEntropyLoss(), device=on, seed=0)
        return [float(step(*batch)) for batch in batches(steps)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("devices", nargs="+")
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--out", type=Path, help="a CSV file, to which the columns are added")
    args = parser.parse_args()
    table = {"step": [str(k) for k in range(0, args.steps + 1, EVERY)]}
    if args.out and args.out.is_file():
        with args.out.open(encoding="utf-8", newline="") as file:
            head, *rows = csv.reader(file)
        table = {name: [row[i] for row in rows] for i, name in enumerate(head)}
    for device in args.devices:
        found = losses(device, args.steps + 1)
        table[device] = [f"{x:.5f}" for x in found[::EVERY]]
        print(device, *table[device], flush=True)
    if args.out:
        with args.out.open("w", encoding="utf-8", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows([list(table), *zip(*table.values(), strict=True)])


if __name__ == "__main__":
    main()
