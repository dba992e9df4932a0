"""The time of Programs with open sizes relative to those compiled for one size: an encoder and a convolutional net.

`python tests/bench/races/open_sizes.py [wasm|webgpu …]` prints a line for each network, device and set of sizes: the time
of the open steps and of the Program for these sizes, and how many times the latter the open steps and specialised ones
take. The runs alternate, and the fastest of each are compared.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from singe.graph import specialise
from singe.model.model import Model
from singe.model.program import Program

sys.path.insert(0, str(Path(__file__).parents[2] / "support"))

from networks.open_networks import convolutional, encoder

NETWORKS = {"encoder": encoder, "convolutional": convolutional}
SIZES = {
    "encoder": [{"N": 1, "L": n} for n in (1, 7, 64, 128, 512)],
    "convolutional": [{"N": 1, "H": h, "W": w} for h, w in ((160, 160), (320, 320), (640, 640))],
}
RUNS = 30
SECONDS = 3.0
"""At least 3 runs of each are timed; at most RUNS, or as many as fit into this time."""


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


def fastest(programs: list[Program], given: list[np.ndarray]) -> list[float]:
    """The fastest run of each, in seconds."""
    for p in programs * 2:
        p.run(given)
    times: list[list[float]] = [[] for _ in programs]
    start = time.perf_counter()
    while len(times[0]) < 3 or (len(times[0]) < RUNS and time.perf_counter() - start < SECONDS):
        for p, own in zip(programs, times, strict=True):
            own.append(seconds(p, given))
    return [min(own) for own in times]


def main(devices: list[str]) -> None:
    for device in devices:
        for name, make in NETWORKS.items():
            graph = make()
            opened = Model(graph, device).program()
            for sizes in SIZES[name]:
                model = Model(graph, device)
                model.specialise(**sizes)
                fixed = Model(specialise(graph, sizes), device).program()
                a, b, c = fastest([opened, fixed, model.program()], arguments(name, sizes))
                shown = " ".join(f"{k}={v}" for k, v in sizes.items())
                times = f"open {a * 1e3:9.3f} ms  fixed {b * 1e3:9.3f} ms"
                print(
                    f"{name:14} {device:7} {shown:18} {times}  open {a / b:5.2f}×  specialised {c / b:5.2f}×",
                    flush=True,
                )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Compare Programs with open sizes with those for one size.")
    parser.add_argument("devices", metavar="DEVICE", nargs="*", default=["wasm", "webgpu"], help="default: wasm webgpu")
    main(parser.parse_args().devices)
