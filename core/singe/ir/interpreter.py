"""The slow interpreter: what a Kernel means, as whole-array NumPy over its complete iteration space.

Targets must compute the same, up to rounding and the order of sums. The interpreter needs memory for every point of the
loops, so it is meant for tests and for reading.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..shapes import known
from . import scalar
from .arrays import NUMPY, convert
from .kernel import Kernel, Reduce, Routine, Scan, Store, identity
from .scalar import Expr


def interpret(kernel: Kernel | Routine, buffers: Sequence[np.ndarray], sizes: Mapping[str, int] | None = None) -> None:
    """Run a kernel: one flat array for each port, outputs written in place."""
    if isinstance(kernel, Routine):
        kernel = kernel.kernel
    sizes = sizes or {}
    extents = [known(d, sizes) for d in (*kernel.grid, *kernel.inner)]
    rank = len(extents)
    inner_axes = tuple(range(len(kernel.grid), rank))
    env: dict[Expr, np.ndarray] = {}
    for axis, v in enumerate((*kernel.grid_vars, *kernel.inner_vars)):
        if v.word == "var":
            env[v] = np.arange(extents[axis], dtype=np.int32).reshape([-1 if a == axis else 1 for a in range(rank)])

    def evaluate(e: Expr) -> np.ndarray:
        def step(x: Expr, args: tuple[np.ndarray, ...]) -> np.ndarray:
            if x.word == "const":
                return np.full([1] * rank, x.value, x.dtype.numpy)
            if x.word == "size":
                return np.full([1] * rank, known(x.value, sizes), np.int32)
            if x.word == "var":
                return env[x]
            if x.word == "load":
                held = buffers[x.value]
                taken = held[args[0]] if held.size else np.zeros(np.shape(args[0]), held.dtype)
                return convert(taken, x.dtype.numpy)
            return np.asarray(scalar.function(x)(*args))

        return scalar.fold([e], step)[0]

    def write(stage: Store, value: np.ndarray) -> None:
        shape = extents if stage.inner else [*extents[: len(kernel.grid)], *[1] * len(kernel.inner)]
        index = np.broadcast_to(evaluate(stage.index), shape)
        out = buffers[stage.port]
        out[index] = convert(np.broadcast_to(value, shape), out.dtype)

    def fold(stage: Reduce | Scan) -> np.ndarray:
        word: Any = NUMPY[stage.word]
        value = evaluate(stage.value)
        shape = [value.shape[a] if a not in inner_axes else extents[a] for a in range(rank)]
        every = np.broadcast_to(value, shape)
        if isinstance(stage, Scan):
            return word.accumulate(every, axis=inner_axes[0], dtype=value.dtype)
        start = identity(stage.word, stage.value.dtype).value
        return word.reduce(every, axis=inner_axes, keepdims=True, initial=start, dtype=value.dtype)

    with np.errstate(all="ignore"):
        waiting: list[tuple[Store, np.ndarray]] = []
        for stage in kernel.stages:
            if isinstance(stage, Store):
                waiting.append((stage, evaluate(stage.value)))
                continue
            for store, value in waiting:
                write(store, value)
            waiting.clear()
            env[stage.accumulator] = fold(stage)
        for store, value in waiting:
            write(store, value)
