"""Norms in training: what record_norms.py records of PyTorch, and test_norms.py compares."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

import numpy as np

STEPS: Final = 20


class Case(NamedTuple):
    """The name of a layer, its arguments, and the shape of its inputs."""

    layer: str
    arguments: tuple[Any, ...]
    shape: tuple[int, ...]
    options: Mapping[str, Any] = {}


CASES: Final = {
    "batch 1d of rows": Case("BatchNorm1d", (3,), (5, 3)),
    "batch 1d": Case("BatchNorm1d", (3,), (4, 3, 5), {"momentum": 0.3, "eps": 1e-3}),
    "batch 2d": Case("BatchNorm2d", (3,), (2, 3, 4, 3)),
    "batch 2d, all batches alike": Case("BatchNorm2d", (3,), (2, 3, 2, 3), {"momentum": None}),
    "batch 2d, plain": Case("BatchNorm2d", (3,), (2, 3, 2, 2), {"affine": False}),
    "batch 2d without statistics": Case("BatchNorm2d", (3,), (2, 3, 2, 2), {"track_running_stats": False}),
    "batch 3d": Case("BatchNorm3d", (2,), (2, 2, 2, 3, 2)),
    "instance 1d": Case("InstanceNorm1d", (3,), (2, 3, 5), {"track_running_stats": True}),
    "instance 2d": Case("InstanceNorm2d", (3,), (2, 3, 4, 2), {"affine": True, "track_running_stats": True}),
    "instance 2d without statistics": Case("InstanceNorm2d", (3,), (2, 3, 4, 2), {"affine": True}),
    "instance 3d": Case("InstanceNorm3d", (2,), (2, 2, 2, 3, 2), {"track_running_stats": True, "momentum": 0.5}),
    "group": Case("GroupNorm", (2, 6), (2, 6, 3, 2)),
    "group, plain": Case("GroupNorm", (3, 6), (2, 6, 4), {"affine": False}),
    "layer": Case("LayerNorm", ((3, 4),), (2, 3, 4)),
    "layer without bias": Case("LayerNorm", (4,), (2, 3, 4), {"bias": False, "eps": 1e-3}),
    "rms": Case("RMSNorm", (4,), (2, 3, 4)),
    "rms, plain": Case("RMSNorm", ((3, 4),), (2, 3, 4), {"elementwise_affine": False, "eps": 1e-2}),
    "local response": Case("LocalResponseNorm", (3,), (2, 6, 4, 3), {"alpha": 0.5, "beta": 0.6, "k": 1.5}),
}


def batches(case: Case) -> Iterator[np.ndarray]:
    rng = np.random.default_rng(sum(case.shape))
    for step in range(STEPS):
        yield (rng.normal(size=case.shape) * (1 + step / 10) + step / 5).astype(np.float32)


def weights(shapes: Mapping[str, tuple[int, ...]]) -> dict[str, np.ndarray]:
    """Weights and biases of these shapes."""
    rng = np.random.default_rng(5)
    return {name: rng.uniform(0.5, 1.5, shape).astype(np.float32) for name, shape in sorted(shapes.items())}
