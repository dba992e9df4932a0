"""The strategies of sg.Memory beside each other: random allocations, and runs of small ops, on a device.

    python tests/bench/memory_strategies.py [--device webgpu] [--count 10000]

"pieces" takes and gives back pieces of 256 B to 4 MB, of which about 200 are held at a time: microseconds a piece, the memory that is
taken from the device over that which is in use (idle memory included, and after `clean`), and how much of it is padding. "runs" adds
tensors of random lengths, of which 64 are held: microseconds a run. At the end nothing is in use, or the script fails.
"""

from __future__ import annotations

import argparse
import gc
import random
import time
from typing import Any, Final

import numpy as np

import singe as sg
from singe.report import LEFT, RIGHT, table
from singe.runtime.eager import EagerDevice
from singe.runtime.memory.settings import STRATEGIES
from singe.runtime.registry import open_backend

HELD: Final = 200
SIZES: Final = (8, 22)
"""The logarithms of the smallest and the largest piece."""
TENSORS: Final = 64
LENGTHS: Final = 16
"""How many lengths the tensors of runs have."""


def pieces(backend: Any, count: int) -> tuple[float, sg.MemoryUse, sg.MemoryUse]:
    """Microseconds a piece, and what is held at the end, before and after `clean`."""
    rng, live = random.Random(0), []
    sizes = [int(2 ** rng.uniform(*SIZES)) for _ in range(count)]
    pool = getattr(backend, "pool", None)
    start = time.perf_counter()
    for size in sizes:
        if len(live) >= HELD:
            at = rng.randrange(HELD)
            piece, live[at] = live[at], live[-1]
            live.pop()
            pool.give(piece) if pool else backend.release(*piece, "tensors")
        live.append(pool.take(size, "a piece") if pool else (backend.take(size, lambda: "a piece"), size))
    seconds = time.perf_counter() - start
    before = backend.memory()
    backend.clean()
    after = backend.memory()
    for piece in live:
        pool.give(piece) if pool else backend.release(*piece, "tensors")
    return 1e6 * seconds / count, before, after


def runs(device: EagerDevice, count: int) -> float:
    """Microseconds a run."""
    rng = random.Random(0)
    lengths = [int(2 ** rng.uniform(6, 16)) for _ in range(LENGTHS)]
    held = {n: [sg.tensor(np.ones(n, np.float32), device=device) for _ in range(TENSORS // LENGTHS)] for n in lengths}

    def run(turns: int) -> float:
        start = time.perf_counter()
        for _ in range(turns):
            own = held[rng.choice(lengths)]
            x, y = rng.choice(own), rng.choice(own)
            own[rng.randrange(len(own))] = x - y
        device.synchronize()
        return time.perf_counter() - start

    run(20 * LENGTHS)  # compiles
    return 1e6 * run(count) / count


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="webgpu", help="default: webgpu")
    parser.add_argument("--count", type=int, default=10_000, help="pieces, and runs (default: 10000)")
    args = parser.parse_args()
    rows = []
    for strategy in STRATEGIES:
        backend: Any = open_backend(args.device)
        device = EagerDevice(backend)
        try:
            device.configure(sg.Memory(strategy))
        except sg.DeviceError as e:
            print(f"{strategy}: {e}")
            continue
        each, before, after = pieces(backend, args.count)
        held, padding, most, least = before.in_use or 1, before.padding or 0, before.reserved or 0, after.reserved or 0
        taken = runs(device, args.count)
        gc.collect()
        left = device.memory().by_kind["tensors"]
        assert (left.in_use, left.count) == (0, 0), f"{strategy}: {left} is left"
        rows.append((
            strategy, f"{each:.1f} µs", f"{padding / held:.1%}", f"{most / held:.2f}",
            f"{least / held:.2f}", f"{taken:.0f} µs",
        ))  # fmt: skip
        backend.dispose()
    facts = sg.device(args.device).describe()
    print(f"{args.device} ({facts.get('adapter') or facts.get('engine')}), {args.count} pieces and runs")
    headings = ("piece", "padding", "taken / in use", "after clean", "run")
    print(table((("strategy", LEFT), *((heading, RIGHT) for heading in headings)), rows))


if __name__ == "__main__":
    main()
