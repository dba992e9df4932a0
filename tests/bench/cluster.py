"""What a step of training over workers of Ray moves and takes: python tests/bench/cluster.py [WORKERS …]

Each worker is on a node of its own, with its own store of objects, all on this machine: what nodes send each other passes the
loopback interface, whose bytes are counted. The times are those of one machine, on which all workers compute.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from itertools import pairwise
from typing import Any

os.environ |= {"RAY_AUTH_MODE": "disabled", "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0", "RAY_USAGE_STATS_ENABLED": "0"}
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import ray
from ray.cluster_utils import Cluster

from singe import nn, optim
from singe.cluster import RayWorkers
from singe.train import DataParallel, TrainStep

BATCH = 64
STEPS = 12
WARM = 3


def network(width: int) -> nn.Module:
    sizes = [784, width, width, 10]
    layers = [part for a, b in pairwise(sizes) for part in (nn.Linear(a, b, rng=0), nn.ReLU())]
    return nn.Sequential(*layers[:-1]).train()


def loss(model: Any, x: Any, y: Any) -> Any:
    return nn.CrossEntropyLoss()(model(x), y)


def passed() -> int:
    """Bytes that the loopback interface has received."""
    with open("/proc/net/dev") as file:
        return next(int(line.split()[1]) for line in file if line.strip().startswith("lo:"))


def measure(name: str, step: Any, parameters: int) -> None:
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((BATCH, 784)).astype(np.float32), rng.integers(0, 10, BATCH)
    times, moved = [], []
    for k in range(WARM + STEPS):
        before, start = passed(), time.perf_counter()
        step(x, y)
        if k >= WARM:
            times.append(time.perf_counter() - start)
            moved.append(passed() - before)
    size = 4 * parameters / 1e6
    print(
        f"{name:<14} gradients {size:6.2f} MB   step {statistics.median(times) * 1e3:7.1f} ms   "
        f"moved {statistics.median(moved) / 1e6:7.2f} MB   of that batch {x.nbytes / 1e6:.2f} MB",
        flush=True,
    )


def main(counts: list[int]) -> None:
    for width in (128, 1500):
        model = network(width)
        parameters = sum(p.size for p in model.parameters())
        measure("one process", TrainStep(model, optim.AdamW(1e-3), loss, device="wasm"), parameters)
        measure("wasm + wasm", DataParallel(model, optim.AdamW(1e-3), loss, device=["wasm", "wasm"]), parameters)
        for count in counts:
            cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False})
            for _ in range(count):
                cluster.add_node(num_cpus=1, include_dashboard=False)
            ray.init(address=cluster.address, log_to_driver=False)
            step = RayWorkers(count).step(model, optim.AdamW(1e-3), loss, device="wasm")
            measure(f"{step.workers} workers", step, parameters)
            del step
            ray.shutdown()
            cluster.shutdown()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Measure what a step of training over workers of Ray moves and takes.")
    parser.add_argument("workers", metavar="WORKERS", type=int, nargs="*", default=[1, 2, 4], help="default: 1 2 4")
    main(parser.parse_args().workers)
