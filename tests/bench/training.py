"""The time of a step of training of the MNIST network, beside PyTorch's on the CPU with one thread each.

`python tests/bench/training.py [numpy|wasm|webgpu …] [--torch PYTHON] [--batch 64]`. PYTHON is an interpreter that has PyTorch;
its runs and ours take turns, and the fastest of each are compared.
"""

from __future__ import annotations

import os

os.environ["OPENBLAS_NUM_THREADS"] = "1"  # before NumPy starts its threads

import argparse
import json
import subprocess
import sys
import time
from typing import Any

import numpy as np

import singe as sg
from singe import nn
from singe.train import TrainStep
from singe.train.examples.mnist import Digits

ROUNDS, STEPS = 6, 10
"""How often the contestants take turns, and how many steps each makes in a turn."""

PEER = """
import json, sys, time
import torch
from torch import nn
torch.set_num_threads(1)
torch.manual_seed(0)
batch = int(sys.argv[1])
def block(i, o, k, s, p):
    return [nn.Conv2d(i, o, k, s, p, bias=False), nn.BatchNorm2d(o), nn.ReLU()]
net = nn.Sequential(*block(1, 16, 5, 2, 2), *block(16, 32, 3, 1, 1), *block(32, 48, 3, 2, 1), *block(48, 64, 3, 1, 0),
                    nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10))
optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3)
x, y = torch.rand(batch, 1, 28, 28), torch.randint(0, 10, (batch,))
criterion = nn.CrossEntropyLoss()
def step():
    optimizer.zero_grad()
    loss = criterion(net((x - 0.1307) / 0.3081), y)
    loss.backward()
    optimizer.step()
    return loss.item()
step()
for line in sys.stdin:
    times = []
    for _ in range(int(line)):
        start = time.perf_counter()
        step()
        times.append(time.perf_counter() - start)
    print(min(times), flush=True)
"""


class Peer:
    """PyTorch in a process of its own."""

    def __init__(self, python: str, batch: int) -> None:
        limits = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
        self._process = subprocess.Popen(
            [python, "-c", PEER, str(batch)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=os.environ | limits
        )  # fmt: skip

    def fastest(self, steps: int) -> float:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(steps, file=self._process.stdin, flush=True)
        return float(self._process.stdout.readline())


def contestant(device: str, batch: int) -> Any:
    """A function that makes steps, and gives the time of the fastest."""
    step = TrainStep(
        Digits(np.random.default_rng(0)).train(), sg.optim.AdamW(lr=1e-3), nn.CrossEntropyLoss(), device=device
    )
    rng = np.random.default_rng(0)
    x, y = rng.random((batch, 1, 28, 28), np.float32), rng.integers(0, 10, batch)
    step(x, y)

    def fastest(steps: int) -> float:
        times = []
        for _ in range(steps):
            start = time.perf_counter()
            step(x, y)
            times.append(time.perf_counter() - start)
        return min(times)

    return fastest


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("devices", nargs="*", default=["numpy", "wasm"])
    parser.add_argument("--torch", help="a Python interpreter that has PyTorch")
    parser.add_argument("--batch", type=int, default=64)
    args = parser.parse_args()
    runs = {name: contestant(name, args.batch) for name in args.devices}
    if args.torch:
        runs["PyTorch"] = Peer(args.torch, args.batch).fastest
    best = dict.fromkeys(runs, float("inf"))
    for _ in range(ROUNDS):
        for name, run in runs.items():
            best[name] = min(best[name], run(STEPS))
    for name, seconds in best.items():
        ratio = f"{seconds / best['PyTorch']:.2f} × PyTorch" if "PyTorch" in best else ""
        print(f"{name:8} {seconds * 1e3:8.2f} ms a step of {args.batch}  {ratio}")
    print(json.dumps(best), file=sys.stderr)


if __name__ == "__main__":
    main()
