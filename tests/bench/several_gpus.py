"""A step of training on 1, 2, 4 … GPUs: python tests/bench/several_gpus.py [GPUS …] [--device torch:cuda] [--exchange auto]

A transformer of six layers, each GPU with a batch of its own size, so that the items of a second should grow with the GPUs. Printed
are the card, how gradients are exchanged, the time of a step, the items of a second beside those of one GPU, and the largest difference
of the losses to those of one GPU with the same batches. A machine without GPUs runs it with --device numpy --small.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from typing import Any, Final

os.environ |= {"RAY_AUTH_MODE": "disabled", "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0", "RAY_USAGE_STATS_ENABLED": "0"}

import numpy as np
import ray

import singe as sg
from singe import nn
from singe.cluster import RayWorkers
from singe.train import TrainStep
from singe.train.examples.gpt import GPT, GptConfig

WORDS: Final = 1000
STEPS, WARM, COMPARED = 20, 5, 6


def loss(model: Any, x: Any, y: Any) -> Any:
    return nn.CrossEntropyLoss()(model(x).reshape(-1, WORDS), y.reshape(-1))


def batches(items: int, length: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    return rng.integers(0, WORDS, (items, length)), rng.integers(0, WORDS, (items, length))


def timed(step: Any, batch: tuple[np.ndarray, np.ndarray]) -> float:
    """The median seconds of a step."""
    times = []
    for k in range(WARM + STEPS):
        start = time.perf_counter()
        step(*batch)
        if k >= WARM:
            times.append(time.perf_counter() - start)
    return statistics.median(times)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("gpus", nargs="*", type=int, default=[1, 2, 4])
    parser.add_argument("--device", default="torch:cuda")
    parser.add_argument("--exchange", default="auto", choices=("auto", "objects", "nccl", "gloo"))
    parser.add_argument("--batch", type=int, default=64, help="the items of each GPU")
    parser.add_argument("--small", action="store_true", help="a small network, to try the script")
    args = parser.parse_args()
    length = 16 if args.small else 128
    config = GptConfig(length=length, width=64 if args.small else 512, layers=6, heads=8, dropout=0.0)
    given: Any = GPT(WORDS, config).train(), sg.optim.AdamW(lr=1e-4), loss
    print(f"{sg.device(args.device).describe()}; {args.batch} texts of {length} words a GPU", flush=True)
    one = TrainStep(*given, device=args.device, seed=0)
    first = args.batch / timed(one, batches(args.batch, length))
    print(f"one process     {args.batch / first * 1e3:8.1f} ms   {first:9.1f} items/s", flush=True)
    ray.init(include_dashboard=False, log_to_driver=False)
    for count in args.gpus:
        batch = batches(args.batch * count, length)
        wanted = TrainStep(*given, device=args.device, seed=0)
        losses = [wanted(*batch) for _ in range(COMPARED)]
        del wanted
        options = {} if ray.cluster_resources().get("GPU") else {"num_cpus": 0.5}
        step = RayWorkers(count, options, exchange=args.exchange).step(*given, device=args.device, seed=0)
        off = max(abs(step(*batch) / loss - 1) for loss in losses)
        rate = args.batch * count / (seconds := timed(step, batch))
        print(
            f"{step.workers:>2} workers       {seconds * 1e3:8.1f} ms   {rate:9.1f} items/s   {rate / first:5.2f} × one   "
            f"exchange: {step.exchange}   losses differ by {off:.1e} at most",
            flush=True,
        )
        step.close()


if __name__ == "__main__":
    main()
