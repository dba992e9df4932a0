"""Where Ray places workers: on a cluster with GPUs, and a device that is one, each gets a GPU of its own."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Final

from ..runtime.devices import VARIABLE
from ..runtime.registry import ELSEWHERE, backend_factory
from .engine import engine

CUDA: Final = ("cuda", "cuda:tf32", "cupy", "jax", "torch", "torch:cuda")
"""The devices that see no GPU but those which CUDA_VISIBLE_DEVICES names, and number these from 0."""
LIBRARY: Final = "torch"
"""The backend of which other devices than those are no GPUs that Ray counts."""


def on_gpu(device: str) -> bool:
    """Whether a worker on a device of this name is to have a GPU, if the cluster has some: that of a backend which is not the
    CPU's."""
    name = (os.environ.get(VARIABLE) or device) if device == "auto" else device
    if name == "auto" or _unnumbered(name) in CUDA:
        return True
    backend = name.partition(":")[0]
    return backend not in ("cpu", ELSEWHERE, LIBRARY) and not backend_factory(backend).cpu


def placed(device: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """The options of a worker's actor: one CPU, and one GPU where that is what it computes on, unless they say otherwise."""
    gpus = {"num_gpus": 1} if on_gpu(device) and count_of("GPU") >= 1 else {}
    return {"num_cpus": 1, **gpus, **options}


def count_of(resource: str) -> int:
    """How much of a resource the whole cluster has, which is started if there is none."""
    ray = engine()
    if not ray.is_initialized():
        ray.init()
    return int(ray.cluster_resources().get(resource, 0))


def own_device(name: str) -> str:
    """The device with which a worker computes that was to be on this one. Ray hides the GPUs of others from CUDA, so its own has the
    number 0 there; other backends see all, and take the one of Ray's number."""
    if not on_gpu(name):
        return name
    given = engine().get_runtime_context().get_accelerator_ids().get("GPU", ())
    if not given:
        return name
    kind = _unnumbered(name)
    if kind in CUDA:
        return name if kind == name else f"{kind}:0"
    plain = ":" not in kind and kind != "auto" and backend_factory(kind).choices
    return f"{kind}:{given[0]}" if plain and str(given[0]).isdecimal() else name


def _unnumbered(name: str) -> str:
    """The name of a device without the number at its end, if it has one."""
    kind, _, number = name.rpartition(":")
    return kind if number.isdecimal() else name
