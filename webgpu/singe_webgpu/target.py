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

from .kernels.choice import Choose, choose, print_routine
from .kernels.nest import print_kernel
from .module import SHADER_F16, element_size

FEATURES: Final = frozenset({SHADER_F16})
"""The features that the text may depend on; a Program written for some runs only where they are."""


class WgslTarget:
    """The code generator for WebGPU; see backend.Target. The code of what it prints is one text for each variant.

    features: what the devices to come are known to have, of FEATURES; by default nothing, so that the text runs
    wherever WebGPU does. A kernel whose text needs a feature says so in its variant's `requires`.
    """

    name: str = "wgsl"
    max_ports: int = 8  # WebGPU's default maxStorageBuffersPerShaderStage

    def __init__(self, features: frozenset[str] = frozenset(), choose: Choose = choose) -> None:
        unknown = features - FEATURES
        if unknown:
            raise CompileError(f"target wgsl: unknown features {sorted(unknown)}; it knows {sorted(FEATURES)}")
        self.features = features
        self.choose = choose

    def element_size(self, dtype: DType) -> int:
        return element_size(dtype, self.features)

    def print(self, kernel: Kernel | Routine, constants: Mapping[int, np.ndarray]) -> Printed:
        if len(kernel.ports) > self.max_ports:
            raise CompileError(
                f"kernel {kernel.name}: {len(kernel.ports)} buffers, WebGPU binds {self.max_ports} at most"
            )
        if isinstance(kernel, Routine):
            return print_routine(kernel, self.features, self.choose)
        return print_kernel(collapse(kernel), self.features)

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
