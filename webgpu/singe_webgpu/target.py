"""The target "wgsl": Kernels and Routines in, shaders out. It needs no device."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from singe.extension import CompileError, DType, Kernel, Printed, Routine, Variant, collapse

from .elements import ELEMENTS
from .kernels.choice import Choose, choose, has_template, print_routine
from .kernels.nest import print_kernel
from .shader import Shader, Text, element_size
from .variants import variants


class WgslTarget:
    """The code generator for WebGPU; see compiler/target.py. The code of what it prints is one text for each variant.

    choose: what says how products are cut.
    """

    name: str = "wgsl"
    max_ports: int = 8  # WebGPU's default maxStorageBuffersPerShaderStage
    integers: bool = False
    counted: int = 4096
    networks: bool = True
    dtypes: frozenset[DType] = frozenset(ELEMENTS)

    def __init__(self, choose: Choose = choose) -> None:
        self.choose = choose

    def element_size(self, dtype: DType) -> int:
        return element_size(dtype)

    def print(self, kernel: Kernel | Routine, constants: Collection[int]) -> Printed | None:
        if len(kernel.ports) > self.max_ports:
            raise CompileError(
                f"kernel {kernel.name}: {len(kernel.ports)} buffers, WebGPU binds {self.max_ports} at most"
            )
        if isinstance(kernel, Routine) and not has_template(kernel):
            return None

        def write(shader: Shader) -> Text:
            if isinstance(kernel, Routine):
                return print_routine(kernel, shader, self.choose)
            return print_kernel(collapse(kernel), shader)

        return variants(kernel.ports, write)

    def print_opaque(self, *_: Any) -> None:
        """No op that is no loop nest has a function here."""

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
