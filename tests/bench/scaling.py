"""How the time and the memory of a step of training grow with the batch, the depth and the width of a network.

`python tests/bench/scaling.py [numpy|wasm|webgpu …] [--out docs/scaling.svg] [--rounds 3]` measures stacks of Linear and ReLU
with AdamW, one of the three at a time, each point in a process of its own and several times, of which the least counts. It
writes the plots, and prints a table in Markdown. A step is compiled once: a process that compiled again would fail. Memory is
the process's, and on webgpu that of the device, which the Program states: the driver tells nobody what it holds.
"""

from __future__ import annotations

import os

os.environ["OPENBLAS_NUM_THREADS"] = "1"  # before NumPy starts its threads

import argparse
import json
import math
import resource
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import numpy as np

import singe as sg
from singe import nn
from singe.train import TrainStep

BASE: Final = {"batch": 64, "depth": 4, "width": 256}
AXES: Final = {"batch": (8, 32, 128, 512), "depth": (2, 4, 8, 16), "width": (64, 128, 256, 512)}
STEPS: Final = 8
KEYS: Final = ("ms", "MiB")
COLOURS: Final = {"numpy": "#d9650b", "wasm": "#1f77d0", "webgpu": "#17945a"}
WIDTH, HEIGHT, LEFT, TOP = 300, 220, 52, 34


def point(device: str, batch: int, depth: int, width: int) -> dict[str, float]:
    """The time of a step (ms), the memory that it needs at most (MiB), the time of the first step (ms)."""
    rng = np.random.default_rng(0)
    layers = [layer for _ in range(depth) for layer in (nn.Linear(width, width, rng=rng), nn.ReLU())]
    x, y = rng.random((batch, width), np.float32), rng.integers(0, width, batch)
    sg.device(device)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    step = TrainStep(nn.Sequential(*layers), sg.optim.AdamW(1e-3), nn.CrossEntropyLoss(), device=device)
    compiled = step.program(x, y)
    times = []
    for _ in range(STEPS + 1):
        start = time.perf_counter()
        step(x, y)
        times.append(time.perf_counter() - start)
    assert step.program(x, y) is compiled, "a step was compiled twice"
    if device == "webgpu":
        peak = sum(compiled.memory.values()) / 2**20
    else:
        peak = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    return {"ms": min(times[1:]) * 1e3, "MiB": peak, "first": times[0] * 1e3}


def measured(device: str, sizes: dict[str, int], rounds: int) -> dict[str, float]:
    """The least of several processes."""
    command = [sys.executable, __file__, "--point", device, *map(str, sizes.values())]
    found = [json.loads(subprocess.run(command, check=True, capture_output=True).stdout) for _ in range(rounds)]
    return {key: min(each[key] for each in found) for key in found[0]}


Curves = dict[str, list[tuple[int, float]]]
"""Of each device, pairs of a size and a value."""


def panel(axis: str, unit: str, curves: Curves) -> str:
    """Curves with logarithms on both axes."""
    sizes = AXES[axis]
    values = [v for curve in curves.values() for _, v in curve]
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))

    def place(size: float, value: float) -> tuple[float, float]:
        across = (math.log2(size) - math.log2(sizes[0])) / (math.log2(sizes[-1]) - math.log2(sizes[0]))
        up = (math.log10(value) - low) / (high - low)
        return LEFT + across * (WIDTH - LEFT - 16), TOP + (1 - up) * (HEIGHT - TOP - 34)

    what = {"ms": "ms a step", "MiB": "MiB at most"}[unit]
    parts = [f'<text class="title" x="{LEFT}" y="18">{what}, by {axis}</text>']
    for power in range(low, high + 1):
        x, y = place(sizes[0], 10.0**power)
        parts.append(f'<path class="grid" d="M{x:.1f} {y:.1f}H{WIDTH - 16}"/>')
        parts.append(f'<text class="end" x="{x - 8:.1f}" y="{y + 4:.1f}">{10.0**power:g}</text>')
    for size in sizes:
        x, y = place(size, 10.0**low)
        parts.append(f'<text class="mid" x="{x:.1f}" y="{y + 18:.1f}">{size}</text>')
    for device, curve in curves.items():
        at = [place(*pair) for pair in curve]
        line = "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in at)
        parts.append(f'<path class="line" stroke="{COLOURS[device]}" d="{line}"/>')
        for (x, y), (size, value) in zip(at, curve, strict=True):
            text = f"<title>{device}, {axis} {size}: {value:.3g} {unit}</title>"
            parts.append(f'<circle fill="{COLOURS[device]}" cx="{x:.1f}" cy="{y:.1f}" r="3">{text}</circle>')
    return "".join(parts)


def picture(devices: Sequence[str], found: dict[tuple[str, str, int], dict[str, float]]) -> str:
    """All plots as one SVG, which is light or dark as the page around it."""
    whole = (WIDTH * len(AXES), HEIGHT * len(KEYS) + 24)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {whole[0]} {whole[1]}" font-family="system-ui, sans-serif" '
        'font-size="11"><style>text { fill: #5b6675 } .title { font-size: 13px; fill: #1d2430 } .end { text-anchor: end } '
        ".mid { text-anchor: middle } .grid { stroke: #8884; fill: none } .line { fill: none; stroke-width: 2 } "
        "@media (prefers-color-scheme: dark) { text { fill: #97a3b2 } .title { fill: #e4e8ee } }</style>"
    ]
    for row, unit in enumerate(KEYS):
        for column, axis in enumerate(AXES):
            curves = {d: [(size, max(found[d, axis, size][unit], 0.01)) for size in AXES[axis]] for d in devices}
            parts.append(f'<g transform="translate({column * WIDTH} {row * HEIGHT})">{panel(axis, unit, curves)}</g>')
    for k, device in enumerate(devices):
        x, y = LEFT + 90 * k, whole[1] - 10
        parts.append(
            f'<circle fill="{COLOURS[device]}" cx="{x}" cy="{y - 4}" r="4"/><text x="{x + 9}" y="{y}">{device}</text>'
        )
    return "".join([*parts, "</svg>\n"])


def main() -> None:
    parser = argparse.ArgumentParser(description="Time and memory of a step of training by batch, depth and width.")
    parser.add_argument("devices", nargs="*", default=["numpy", "wasm"])
    parser.add_argument("--out", type=Path, default=Path("docs/scaling.svg"))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--point", nargs=4, metavar=("DEVICE", *BASE), help="measure one point, and print it as JSON")
    args = parser.parse_args()
    if args.point:
        print(json.dumps(point(args.point[0], *map(int, args.point[1:]))))
        return
    found = {}
    print(
        "| device | batch | depth | width | ms a step | MiB at most | ms of the first step |\n|---|---|---|---|---|---|---|"
    )
    for device in args.devices:
        for axis, sizes in AXES.items():
            for size in sizes:
                at = BASE | {axis: size}
                one = found[device, axis, size] = measured(device, at, args.rounds)
                numbers = " | ".join(map(str, at.values()))
                print(f"| {device} | {numbers} | {one['ms']:.2f} | {one['MiB']:.1f} | {one['first']:.0f} |", flush=True)
    args.out.write_text(picture(args.devices, found), "utf-8")


if __name__ == "__main__":
    main()
