"""The target "wgsl": Kernels and Routines in, WGSL modules out. It needs no device."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from singe._dtypes import DType
from singe._errors import CompileError
from singe.backend import Printed
from singe.kernel import Kernel, Routine, collapse
from singe.program import Variant

from .kernels.gemm import print_routine
from .kernels.matrix import print_matrix
from .kernels.nest import print_kernel
from .module import SHADER_F16, WRITTEN_SINGLY, element_size

FEATURES: Final = frozenset({SHADER_F16})
"""The features that a variant may require and that any device may have: what to ask a device for."""


class WgslTarget:
    """The code generator for WebGPU; see backend.Target. The code of what it prints is one text for each variant.

    The last variant runs wherever WebGPU does. Those before it are faster, and say in `requires` what they need.
    """

    name: str = "wgsl"
    max_ports: int = 8  # WebGPU's default maxStorageBuffersPerShaderStage

    def element_size(self, dtype: DType) -> int:
        return element_size(dtype)

    def print(self, kernel: Kernel | Routine, constants: Mapping[int, np.ndarray]) -> Printed:
        if len(kernel.ports) > self.max_ports:
            raise CompileError(
                f"kernel {kernel.name}: {len(kernel.ports)} buffers, WebGPU binds {self.max_ports} at most"
            )
        plain = _print(kernel, frozenset())
        found = [plain]
        if WRITTEN_SINGLY in plain.code[0]:
            found.insert(0, _print(kernel, FEATURES))
        if isinstance(kernel, Routine):
            matrices = print_matrix(kernel, plain.sizes)
            found[:0] = [matrices] if matrices else []
        # All variants are told the same sizes: each needs some of the first of them.
        sizes = max((p.sizes for p in found), key=len)
        return Printed(tuple(p.code[0] for p in found), tuple(p.variants[0] for p in found), sizes)

    def link(self, printed: Sequence[Printed]) -> tuple[Mapping[str, str | bytes], Sequence[Sequence[Variant]]]:
        names: dict[str, str] = {}
        variants = [
            [
                replace(v, entry=names.setdefault(text, f"w{len(names)}"))
                for text, v in zip(p.code, p.variants, strict=True)
            ]
            for p in printed
        ]
        return {name: text for text, name in names.items()}, variants


def _print(kernel: Kernel | Routine, features: frozenset[str]) -> Printed:
    """One variant, for devices of these features."""
    if isinstance(kernel, Routine):
        # One output for each point of a short window reads side by side with its neighbours.
        return print_routine(kernel, features) or print_kernel(
            collapse(kernel.kernel), features, "points" if kernel.kind == "conv" else None
        )
    return print_kernel(collapse(kernel), features)
