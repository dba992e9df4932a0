"""A device elsewhere beside the same device here: times, bytes and trips, on loopback and with latency added.

`python tests/bench/remote.py [numpy|wasm|webgpu …] [--minilm FILE.onnx] [--latency 20]` starts `singe host` for each device, and
prints a table in Markdown. Here and there take turns; the least and the median of each count. "Sent" is what the second call sends
beside its inputs. With latency, a proxy delays each direction by half of it.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any, Final
from urllib.parse import urlsplit

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))
from slow_link import SlowLink

import singe as sg
from singe import nn
from singe.runtime.remote.client import RemoteBackend
from singe.train.examples.mnist import Digits

SECONDS: Final = 10.0
"""For each race."""
Inputs = Mapping[str, np.ndarray]
Race = Callable[[sg.Device], tuple[Callable[[], object], int]]
"""A device ↦ what is timed, and the bytes of its inputs."""


def drawn(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).normal(size=shape).astype(np.float32)


def mnist(device: sg.Device) -> tuple[Callable[[], object], int]:
    x, y = drawn(64, 1, 28, 28), np.random.default_rng(0).integers(0, 10, 64)
    step = sg.train.TrainStep(
        Digits(np.random.default_rng(0)), sg.optim.AdamW(1e-3), nn.CrossEntropyLoss(), device=device, seed=0
    )
    return lambda: step(x, y), x.nbytes + y.nbytes


def transformer(device: sg.Device) -> tuple[Callable[[], object], int]:
    layers = [nn.TransformerEncoderLayer(128, 4, 512, dropout=0.0, batch_first=True, rng=k) for k in range(4)]
    x = drawn(8, 64, 128)
    model = sg.Model.of(nn.Sequential(*layers), {"x": x.shape}, device=device)
    return lambda: model(x), x.nbytes


def minilm(path: str) -> Race:
    def race(device: sg.Device) -> tuple[Callable[[], object], int]:
        model = sg.load(path, device=device)
        ids = np.random.default_rng(0).integers(1000, 20_000, (8, 128))
        given = {x.name: ids if x.name == "input_ids" else np.full_like(ids, "mask" in x.name) for x in model.inputs}
        return lambda: model(given), sum(x.nbytes for x in given.values())

    return race


@contextmanager
def host(device: str) -> Iterator[tuple[str, str]]:
    """The address and the token of a server in a process of its own."""
    command = [sys.executable, "-m", "singe", "host", "--device", device, "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        try:
            assert process.stdout is not None
            (url,) = re.findall(r"ws://\S+", process.stdout.readline())
            yield url, process.stdout.readline().split()[1]
        finally:
            process.kill()


def raced(race: Race, here: sg.Device, there: Any) -> str:
    (own, _), (other, size) = race(here), race(there)
    for work in (own, other):
        work()
    link = there.backend.connection
    sent, trips = link.sent, link.trips
    other()
    sent, trips = link.sent - sent - size, link.trips - trips
    times: tuple[list[float], list[float]] = [], []
    end = time.perf_counter() + SECONDS
    while time.perf_counter() < end or len(times[1]) < 5:
        for work, found in zip((own, other), times, strict=True):
            start = time.perf_counter()
            work()
            found.append((time.perf_counter() - start) * 1e3)
    a, b = map(min, times)
    c, d = map(median, times)
    return f"{a:.1f} ({c:.1f}) | {b:.1f} ({d:.1f}) | {b / a:.2f} ({d / c:.2f}) | {sent} | {trips}"


def pipelined(there: Any) -> tuple[float, float]:
    """Milliseconds of one run that is read, and of ten of which the last is."""
    x = drawn(8, 16)
    executable = sg.Model.of(lambda x: x * 0.5 + 1, {"x": x.shape}, device=there).program().executable
    found = []
    for count in (1, 1, 10):
        start = time.perf_counter()
        value = there.upload(x)
        for _ in range(count):
            (value,) = executable.run([value])
        there.download(value)
        found.append((time.perf_counter() - start) * 1e3)
    return found[1], found[2]


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("devices", nargs="*", default=["numpy", "wasm"])
    options.add_argument("--minilm", help="an ONNX file of MiniLM")
    options.add_argument("--latency", type=float, default=20, help="milliseconds of a round trip that a proxy adds")
    args = options.parse_args()
    races: dict[str, Race] = {"mnist training step, 64": mnist, "transformer, 8 × 64": transformer}
    if args.minilm:
        races["MiniLM, 8 × 128"] = minilm(args.minilm)
    print("| device | what | ms here, least (median) | ms elsewhere | ratio | bytes sent | trips |")
    print("|---|---|---|---|---|---|---|")
    for name in args.devices:
        with host(name) as (url, token):
            there: Any = sg.Remote(url, token)
            for what, race in races.items():
                print(f"| {name} | {what} | {raced(race, sg.device(name), there)} |", flush=True)
            with SlowLink(urlsplit(url).port or 0, args.latency / 2000) as far:
                backend = RemoteBackend(far.url, token)
                away: Any = type(there)(backend)
                one, ten = pipelined(away)
                print(f"\n{name}, {args.latency:g} ms added: a run {one:.1f} ms, ten {ten:.1f} ms\n", flush=True)
                backend.dispose()
            there.backend.dispose()


if __name__ == "__main__":
    main()
