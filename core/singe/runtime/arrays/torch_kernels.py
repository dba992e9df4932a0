"""Kernels of joined elementwise rows on PyTorch's tensors, compiled by PyTorch's own NVRTC or HIPRTC."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache, lru_cache
from typing import Any, Final

import torch  # pyright: ignore[reportMissingImports]

from ...dtypes import DTYPES
from ...ir.arrays.adapter import Array
from ...ir.arrays.c_elements import Member, kernel_text, layout_of, width_of

THREADS: Final = 256
"""Of a block."""
OPTIONS: Final = [] if torch.version.hip else ["--fmad=false"]
"""So that the numbers are those of one row after another."""


def joined_rows(
    shape: tuple[int, ...], members: Sequence[Member], stored: Sequence[int], inputs: Sequence[Array], outputs: Sequence[Array]
) -> None:  # fmt: skip
    """See ArrayAdapter.joined."""
    arrays = [(x.reshape(()) if x.numel() == 1 else x).expand(shape) for x in inputs]
    arrays += outputs
    axes = sorted(range(len(shape)), key=lambda axis: -outputs[0].stride(axis))
    layout = layout_of([shape[a] for a in axes], [[x.stride(a) for a in axes] for x in arrays])
    width = width_of(layout)
    if any(x.data_ptr() % (width * x.element_size()) for x in arrays):
        width = 1
    kinds = [DTYPES[str(x.dtype).removeprefix("torch.")] for x in inputs]
    kernel = _compiled(kernel_text(kinds, members, stored, layout, width), outputs[0].device.index)
    threads = math.prod(shape) // width
    kernel(grid=(-(-threads // THREADS), 1, 1), block=(THREADS, 1, 1), args=[*arrays, threads])


@cache
def compiles(device: torch.device) -> bool:
    """Whether PyTorch compiles kernels for a device here: on NVIDIA's and AMD's GPUs, if it finds CUDA's folder (CUDA_HOME)."""
    if device.type != "cuda":
        return False
    try:
        _compiled('extern "C" __global__ void joined(int n) {}', device.index or 0)
    except Exception:  # what is private in PyTorch may be missing, or raise anything
        return False
    return True


@lru_cache(maxsize=4096)
def _compiled(text: str, device: int) -> Any:
    with torch.cuda.device(device):
        return torch.cuda._compile_kernel(text, "joined", nvcc_options=[*OPTIONS])  # pyright: ignore[reportPrivateUsage]
