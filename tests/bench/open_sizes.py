"""Time of a Program with open sizes over that of one compiled for the same sizes alone: an encoder and a convolutional net.

`python tests/bench/open_sizes.py [wasm|webgpu …]` prints a line for each network, device and set of sizes. The runs of the
two alternate, and the medians are compared.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

import singe as sg
from singe.graph import specialise
from singe.model.model import Program

sys.path.insert(0, str(Path(__file__).parents[1]))

from open_networks import convolutional, encoder

NETWORKS = {"encoder": encoder, "convolutional": convolutional}
SIZES = {
    "encoder": [{"N": 1, "L": n} for n in (1, 7, 64, 128, 512)],
    "convolutional": [{"N": 1, "H": h, "W": w} for h, w in ((160, 160), (320, 320), (640, 640))],
}
RUNS = 15
SECONDS = 3.0
"""At least 3 pairs of runs are timed, and at most RUNS or so many seconds of them."""


def arguments(name: str, sizes: Mapping[str, int]) -> list[np.ndarray]:
    """Inputs of these sizes."""
    rng = np.random.default_rng(0)
    if name == "encoder":
        shape = sizes["N"], sizes["L"]
        return [rng.integers(0, 100, shape), np.ones(shape, np.float32)]
    return [rng.standard_normal((sizes["N"], 3, sizes["H"], sizes["W"])).astype(np.float32)]


def seconds(program: Program, given: list[np.ndarray]) -> float:
    start = time.perf_counter()
    program.run(given)
    return time.perf_counter() - start


def ratio(opened: Program, fixed: Program, given: list[np.ndarray]) -> tuple[float, float]:
    """The medians of both, in seconds."""
    times: tuple[list[float], list[float]] = [], []
    for p in (opened, fixed) * 2:
        p.run(given)
    start = time.perf_counter()
    while len(times[0]) < 3 or (len(times[0]) < RUNS and time.perf_counter() - start < SECONDS):
        times[0].append(seconds(opened, given))
        times[1].append(seconds(fixed, given))
    return statistics.median(times[0]), statistics.median(times[1])


def main(devices: list[str]) -> None:
    for device in devices:
        for name, make in NETWORKS.items():
            graph = make()
            opened: Any = sg.compile(graph, device=device)
            for sizes in SIZES[name]:
                fixed: Any = sg.compile(specialise(graph, sizes), device=device)
                a, b = ratio(opened, fixed, arguments(name, sizes))
                shown = " ".join(f"{k}={v}" for k, v in sizes.items())
                print(f"{name:14} {device:7} {shown:18} open {a * 1e3:9.3f} ms  fixed {b * 1e3:9.3f} ms  {a / b:5.2f}×")


if __name__ == "__main__":
    main(sys.argv[1:] or ["wasm", "webgpu"])
