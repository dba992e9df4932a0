"""Times several texts of one Kernel on a device: over the same buffers, in turns."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from singe.extension import Dim, Kernel, Printed, Store, Variant, affine, known, product, scalar, symbols

from ..dialect import Dialect
from .memory import MIN_BUFFER_BYTES, Binding, Gpu, Handle, Launch
from .recording import spread

HOPELESS_RATIO: Final = 2.5
"""A text whose first run takes this many times the best one's is not timed again."""
WARM_UP_SECONDS: Final = 0.02
"""Seconds of warm-up: an idle GPU's clock has to rise first."""
TIMING_SECONDS: Final = 0.02
"""Seconds for which all texts are timed."""
TURNS: Final = (3, 15)
LEAST_SECONDS: Final = 1e-9
"""The least time: that of a launch between two equal timestamps."""
LAUNCHES_PER_WAIT: Final = 32
"""Launches per wait on a GPU without timestamps."""


def text_seconds(
    gpu: Gpu, dialect: Dialect, kernel: Kernel, printed: Sequence[Printed], sizes: Mapping[str, int]
) -> list[float]:
    """The shortest time of each text, over buffers of zeros; of hopeless texts, that of their first run.

    Sizes that are not given do not change the work, only which part of a buffer it is done on, as those of a loop around
    the kernel do: they are taken as 1.
    """
    accessed = _elements(kernel)
    sizes = dict.fromkeys(symbols([accessed, [p.sizes for p in printed]]), 1) | dict(sizes)
    counts = [
        dialect.element_size(p.dtype) * max(known(n, sizes) for n in ends)
        for p, ends in zip(kernel.ports, accessed, strict=True)
    ]
    whole = [max(16, -(-count // 4) * 4) for count in counts]
    buffers: list[Handle] = []
    try:
        for count in whole:
            buffers.append(gpu.allocate(max(MIN_BUFFER_BYTES, count)))
        bound = [Binding(b, 0, count) for b, count in zip(buffers, whole, strict=True)]
        texts = [_text_for(gpu, p) for p in printed]
        pipelines = gpu.pipelines([code for code, _ in texts])
        launches = [
            _launch(gpu, dialect, pipeline, text, p.sizes, bound, buffers, sizes)
            for pipeline, text, p in zip(pipelines, texts, printed, strict=True)
        ]
        return _in_turns(gpu, launches)
    finally:
        gpu.wait()
        for b in buffers:
            gpu.free(b)


def _elements(kernel: Kernel) -> list[list[Dim]]:
    """How many elements of each port the kernel accesses: the largest of these numbers."""
    every = product((*kernel.grid, *kernel.inner))
    indices = [(e.value, e.args[0]) for e in scalar.postorder(kernel.roots) if e.word == "load"]
    indices += [(s.port, s.index) for s in kernel.stages if isinstance(s, Store)]
    found: list[list[Dim]] = [[1] for _ in kernel.ports]
    for port, index in indices:
        most = affine.bounds(index)[1]
        found[port].append(every if most is None else most + 1)
    return found


def _text_for(gpu: Gpu, p: Printed) -> tuple[str, Variant]:
    """The code and the variant of it that the device runs."""
    return next((code, v) for code, v in zip(p.code, p.variants, strict=True) if gpu.features.issuperset(v.requires))


def _launch(
    gpu: Gpu, dialect: Dialect, pipeline: Handle, text: tuple[str, Variant], dims: Sequence[Dim], ports: Sequence[Binding],
    owned: list[Handle], sizes: Mapping[str, int],
) -> Launch:  # fmt: skip
    (code, variant), bound = text, list(ports)
    if "uniform" in dialect.bindings(code):
        row = np.zeros(-(-len(dims) // 4) * 4, np.int32)
        row[: len(dims)] = [known(d, sizes) for d in dims]
        owned.append(gpu.allocate(max(MIN_BUFFER_BYTES, row.nbytes)))
        gpu.write(owned[-1], 0, row.view(np.uint8))
        bound.append(Binding(owned[-1], 0, row.nbytes))
    groups = spread([known(d, sizes) for d in variant.groups], gpu.limits.groups, "a kernel to be timed")
    return Launch(pipeline, gpu.bind(pipeline, bound), groups)


def _in_turns(gpu: Gpu, launches: Sequence[Launch]) -> list[float]:
    best = _once(gpu, launches)
    kept = [k for k, seconds in enumerate(best) if seconds <= HOPELESS_RATIO * min(best)]
    some = [launches[k] for k in kept]
    until = time.perf_counter() + WARM_UP_SECONDS
    while time.perf_counter() < until:
        gpu.submit(some * max(1, int(WARM_UP_SECONDS / 8 / max(sum(best[k] for k in kept), 1e-6))))
        gpu.wait()
    turn = sum(_once(gpu, some))
    turns = min(max(TURNS[0], int(TIMING_SECONDS / max(turn, 1e-9))), TURNS[1])
    for number, seconds in enumerate(_once(gpu, some * turns)):
        k = kept[number % len(kept)]
        best[k] = min(best[k], seconds)
    return best


def _once(gpu: Gpu, launches: Sequence[Launch]) -> list[float]:
    """The seconds of each launch, by the GPU's own clock if it has one."""
    if gpu.has_timestamps:
        return [max(seconds, LEAST_SECONDS) for _, seconds, _ in gpu.timed(launches).commands]
    found = []
    for launch in launches:
        start = time.perf_counter()
        gpu.submit([launch] * LAUNCHES_PER_WAIT)
        gpu.wait()
        found.append((time.perf_counter() - start) / LAUNCHES_PER_WAIT)
    return found
