"""Ten small ops, one call at a time: Singe's Tensors on numpy beside NumPy's arrays, and PyTorch's tensors where it is installed.

    python tests/bench/races/eager.py [--elements 4,64,4096]

Prints microseconds a call: the median of rounds in which all take turns. One thread. To compare two versions of Singe, run it with
`PYTHONPATH` set to the `core` folder of each.
"""

from __future__ import annotations

import argparse
import importlib
import os
import statistics
import timeit
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"

import numpy as np

import singe as sg

ROUNDS: Final = 15
CALLS: Final = 200
Op = Callable[[Any, Any], Any]
METHODS: Final[Mapping[str, Op]] = {
    "exp": lambda x, y: x.exp(),
    "x + y": lambda x, y: x + y,
    "x * 2.5": lambda x, y: x * 2.5,
    "relu": lambda x, y: x.relu(),
    "maximum": lambda x, y: x.maximum(y),
    "sum": lambda x, y: x.sum(),
    "softmax": lambda x, y: x.softmax(0),
    "x @ y": lambda x, y: x @ y,
    "reshape": lambda x, y: x.reshape(2, -1),
    "x[1:3]": lambda x, y: x[1:3],
}
"""The calls of a Tensor, and of PyTorch's."""


def _softmax(x: np.ndarray, _: np.ndarray) -> np.ndarray:
    e = np.exp(x - x.max())
    return e / e.sum()


ARRAYS: Final[Mapping[str, Op]] = {
    **METHODS,
    "exp": lambda x, y: np.exp(x),
    "relu": lambda x, y: np.maximum(x, 0),
    "maximum": np.maximum,
    "softmax": _softmax,
}


def contestants(n: int) -> dict[str, tuple[Mapping[str, Op], Any, Any]]:
    """Who computes: its calls, and two vectors of n elements."""
    rng = np.random.default_rng(0)
    x, y = rng.random((2, n)).astype(np.float32)
    found: dict[str, tuple[Mapping[str, Op], Any, Any]] = {
        "Singe": (METHODS, sg.tensor(x, device="numpy"), sg.tensor(y, device="numpy")),
        "NumPy": (ARRAYS, x, y),
    }
    try:
        torch = importlib.import_module("torch")
    except ImportError:
        return found
    torch.set_num_threads(1)
    return {**found, "PyTorch": (METHODS, torch.tensor(x), torch.tensor(y))}


def times(op: str, who: Mapping[str, tuple[Mapping[str, Op], Any, Any]]) -> dict[str, float]:
    """Microseconds of a call of each."""
    taken: dict[str, list[float]] = {name: [] for name in who}
    for _ in range(ROUNDS):
        for name, (ops, x, y) in who.items():
            call = ops[op]
            call(x, y)
            taken[name].append(timeit.timeit(lambda call=call, x=x, y=y: call(x, y), number=CALLS) / CALLS * 1e6)
    return {name: statistics.median(values) for name, values in taken.items()}


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--elements", default="4,64,4096", help="lengths of the vectors")
    chosen = parser.parse_args(arguments)
    heading = True
    for n in map(int, chosen.elements.split(",")):
        who = contestants(n)
        for op in METHODS:
            found = times(op, who)
            if heading:
                print("elements,op," + ",".join(f'"{name}, µs"' for name in found))
                heading = False
            print(f"{n},{op}," + ",".join(f"{value:.2f}" for value in found.values()), flush=True)


if __name__ == "__main__":
    main()
