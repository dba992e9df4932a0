"""What storing weights in fewer bytes, and computing in integers, changes in a model's outputs: `measure` runs it with and without."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from .... import shapes
from ....compiler.compile import compile_graph
from ....compiler.options import Options
from ....errors import SingeError
from ....graph import Graph, Node
from ....late_dataclass import dataclass
from ....model.program import Program
from ....program.weight_codecs import decode
from ....runtime.device import Device
from ....runtime.devices import DEFAULT
from ....runtime.devices import device as open_device
from .encoding import Encoding

_log: Final = logging.getLogger("singe")
SAMPLES: Final = 3
"""The number of random inputs on which the error of smaller weights is measured."""


@dataclass(frozen=True)
class Deviation:
    """How much smaller weights change the outputs, measured on sample inputs."""

    errors: Mapping[str, float | None]  # by output: the largest difference, relative to the largest float32 value
    samples: int
    random: bool  # whether the samples are random
    same_class: int | None = None  # how many samples keep their top class; None: no output of classes
    why_not: str = ""  # the reason, if nothing was measured
    device: str = DEFAULT  # on which it was measured


def measure(
    graph: Graph,
    encoding: Encoding,
    labels: Mapping[int, str] | None,
    samples: Sequence[Mapping[str, np.ndarray]],
    device: str | Device = DEFAULT,
) -> Deviation:
    """The effect of stored weights and integer activations: the graph is run with and without them, on a device."""
    on = open_device(device)
    given = [[np.asarray(s[x.name]) for x in graph.inputs] for s in samples] or _random_samples(graph)
    try:
        _log.info("measuring on %s what %s changes: compiling", on.name, encoding.dtype)
        target = on.eager.target
        whole = compile_graph(graph, target)
        smaller = compile_graph(graph, target, Options(encoding.activations if target.integers else "float32"))
        stored = replace(smaller, weights=decode(encoding.parts(smaller), smaller.weights.size))
        runs = [Program(p, on) for p in (whole, stored)]
        pairs = []
        for number, arrays in enumerate(given, 1):
            _log.info("measuring on %s what %s changes: input %d of %d", on.name, encoding.dtype, number, len(given))
            pairs.append([r.run(arrays) for r in runs])
    except (SingeError, MemoryError) as e:
        return Deviation({}, 0, not samples, why_not=str(e))
    errors = {
        name: _rounded(max(_difference(a[k], b[k]) for a, b in pairs)) for k, name in enumerate(graph.output_names)
    }
    same = None
    for k, output in enumerate(graph.outputs):
        if labels is not None and output.shape[-1:] == (max(labels, default=-1) + 1,) and output.dtype.is_float:
            same = sum(np.array_equal(a[k].argmax(-1), b[k].argmax(-1)) for a, b in pairs)
            break
    return Deviation(errors, len(pairs), not samples, same, device=on.name)


def _random_samples(graph: Graph) -> list[list[np.ndarray]]:
    """Normally distributed floats, and integers 0 and 1; open sizes are 1."""
    rng = np.random.default_rng(0)
    sizes = dict.fromkeys(graph.symbols, 1)

    def made(x: Node) -> np.ndarray:
        shape = [shapes.known(d, sizes) for d in x.shape]
        values = rng.normal(size=shape) if x.dtype.is_float else rng.integers(0, 2, shape)
        return np.asarray(values, x.dtype.numpy)

    return [[made(x) for x in graph.inputs] for _ in range(SAMPLES)]


def _difference(expected: np.ndarray, stored: np.ndarray) -> float:
    """The largest difference between two outputs, relative to the largest value."""
    a, b = expected.astype(np.float64), stored.astype(np.float64)
    with np.errstate(invalid="ignore"):
        apart = np.where((a == b) | (np.isnan(a) & np.isnan(b)), 0, np.abs(a - b))
    largest = np.abs(a[np.isfinite(a)]).max(initial=0)
    return float(apart.max(initial=0) / (largest or 1))


def _rounded(error: float) -> float | None:
    """Two digits, which are the same on every machine; None: not finite."""
    return float(f"{error:.1e}") if np.isfinite(error) else None
