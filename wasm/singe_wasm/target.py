"""The target "wasm": a code generator, which printing.py is. That is imported once something is compiled: a Program that is loaded
needs none."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from singe.extension import DTYPES, DeviceError, DType, Shape, bool_

from .levels import LEVELS, PAGES

if TYPE_CHECKING:
    from singe.extension import Kernel, Printed, ProgramData, Routine, Variant


class WasmTarget:
    """See the module's docstring. levels: names of LEVELS, in order of preference; printed code is a function for each."""

    name = "wasm"
    max_ports = 24
    integers = True
    counted = 64
    networks = False
    repeated = 0
    confined = "the engine validates WebAssembly, which reaches its own memory only"
    kept_as = ""
    dtypes = tuple(d for d in DTYPES.values() if d is bool_ or d.is_int or d.is_float)

    def __init__(self, levels: Sequence[str] = PAGES) -> None:
        self.levels: Final = tuple(levels)
        if not self.levels or not set(self.levels) <= LEVELS.keys():
            raise DeviceError(f"wasm: got the levels {levels!r:.80}, expected some of {', '.join(LEVELS)}")
        self.settings: Final = {"levels": self.levels}

    def kept_part(self, program: ProgramData) -> ProgramData:
        """The code of the first level."""
        level = self.levels[0]
        kernels = tuple(
            replace(k, variants=tuple(v for v in k.variants if v.entry.startswith(f"{level}:")))
            for k in program.kernels
        )
        return replace(program, kernels=kernels, modules={level: program.modules[level]})

    def element_size(self, dtype: DType) -> int:
        return dtype.size

    def print(self, kernel: Kernel | Routine, constants: Collection[int]) -> Printed | None:
        from .printing import print_kernel  # noqa: PLC0415

        return print_kernel(self.levels, kernel, constants)

    def print_opaque(
        self,
        op: str,
        attrs: Mapping[str, Any],
        inputs: Sequence[tuple[Shape, DType]],
        results: Sequence[tuple[Shape, DType]],
    ) -> Printed | None:
        from .printing import print_opaque  # noqa: PLC0415

        return print_opaque(self.levels, op, attrs, inputs, results)

    def link(self, printed: Sequence[Printed]) -> tuple[Mapping[str, str | bytes], Sequence[Sequence[Variant]]]:
        from .printing import link  # noqa: PLC0415

        return link(self.levels, printed)
