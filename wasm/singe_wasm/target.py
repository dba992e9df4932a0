"""The target "wasm": Kernels and Routines in, one WebAssembly module for each level of SIMD out.

A function takes the address of each port in bytes (the scratch port last, where there is one), then its sizes as i32.
Modules import their memory as env.memory. The two levels are "simd" and "relaxed", which needs relaxed SIMD and rounds
multiply-adds once; both come from one printing wherever their code differs in nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

import numpy as np
from singe._dtypes import DType
from singe._shape import Dim
from singe.backend import Printed
from singe.kernel import Kernel, Routine
from singe.program import Variant

from .encode import Function, module
from .kernels.lower import MissingSize
from .kernels.nest import print_kernel
from .library import LIBRARY

LEVELS: Final[Mapping[str, tuple[str, ...]]] = {"relaxed": ("relaxed-simd",), "simd": ()}
"""Modules in order of preference, and what each requires."""


@dataclass(frozen=True)
class Twins:
    """A function at both levels of SIMD."""

    simd: Function
    relaxed: Function


class WasmTarget:
    """See the module's docstring."""

    name = "wasm"
    max_ports = 24

    def __init__(self) -> None:
        self._printed: dict[Kernel, tuple[Twins, tuple[Dim, ...]]] = {}

    def element_size(self, dtype: DType) -> int:
        return dtype.size

    def print(self, kernel: Kernel | Routine, constants: Mapping[int, np.ndarray]) -> Printed:
        plain = kernel.kernel if isinstance(kernel, Routine) else kernel
        if plain not in self._printed:
            self._printed[plain] = _with_sizes(plain)
        code, sizes = self._printed[plain]
        return Printed(code, _variants("0"), sizes)

    def link(self, printed: Sequence[Printed]) -> tuple[Mapping[str, str | bytes], Sequence[Sequence[Variant]]]:
        names: dict[Twins, str] = {}
        for p in printed:
            names.setdefault(p.code, f"k{len(names)}")
        modules: dict[str, str | bytes] = {
            level: module({name: getattr(code, level) for code, name in names.items()}, LIBRARY, level == "relaxed") for level in LEVELS
        }
        return modules, [_variants(names[p.code]) for p in printed]


def _variants(name: str) -> tuple[Variant, ...]:
    return tuple(Variant(f"{level}:{name}", requires) for level, requires in LEVELS.items())


def _with_sizes(kernel: Kernel) -> tuple[Twins, tuple[Dim, ...]]:
    """The kernel printed with all the sizes that its code turns out to need."""
    sizes: list[Dim] = list(kernel.sizes)
    while True:
        try:
            function = print_kernel(kernel, sizes)
        except MissingSize as missing:
            sizes.append(missing.dim)
        else:
            return Twins(function, function), tuple(sizes)
