"""The target "wasm": Kernels and Routines in, one WebAssembly module for each level of SIMD out.

A function takes the address of each port in bytes (the scratch port last, where there is one), then its sizes as i32.
Modules import their memory as env.memory, and their function `run` makes all calls of a run: driver.py. The two levels
are "simd" and "relaxed", which needs relaxed SIMD and rounds multiply-adds once. If their code differs in nothing else,
both are linked from one printed function.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

import numpy as np

from singe.extension import Dim, DType, Kernel, Printed, Routine, Variant, collapse

from .driver import NAME, driver
from .encode import Function, module
from .kernels import contraction, depthwise, integers, planar, tiles, winograd
from .kernels.kept import keep
from .kernels.lower import MissingSize
from .kernels.memory import ELEMENTS
from .kernels.nest import print_nests
from .kernels.pieces import pieces
from .library import LIBRARY

LEVELS: Final[Mapping[str, tuple[str, ...]]] = {"relaxed": ("relaxed-simd",), "simd": ()}
"""Modules in order of preference, and what each requires."""


@dataclass(frozen=True)
class Twins:
    """A function at both levels of SIMD."""

    simd: Function
    relaxed: Function


@dataclass(frozen=True)
class _Done:
    """A Printed without its packed constants."""

    code: Twins
    sizes: tuple[Dim, ...]
    packers: Mapping[int, Callable[[np.ndarray], np.ndarray]] = field(default_factory=dict)
    scratch: Dim = 0


class WasmTarget:
    """See the module's docstring."""

    name = "wasm"
    max_ports = 24
    integers = True
    dtypes = frozenset(ELEMENTS)

    def __init__(self) -> None:
        self._printed: dict[tuple[Kernel | Routine, frozenset[int]], _Done] = {}

    def element_size(self, dtype: DType) -> int:
        return dtype.size

    def pools(self, routine: Routine, windows: Sequence[int]) -> bool:
        if routine.kind != "conv" or depthwise.takes(routine) or planar.schedule(routine) is not None:
            return False
        return winograd.pools(routine, windows)

    def print(self, kernel: Kernel | Routine, constants: Mapping[int, np.ndarray]) -> Printed:
        known = frozenset(constants) if isinstance(kernel, Routine) else frozenset()
        key = (kernel, known)
        if key not in self._printed:
            self._printed[key] = _template(kernel, known)
        done = self._printed[key]
        packed = {port: pack(constants[port]) for port, pack in done.packers.items()}
        return Printed(done.code, _variants("0"), done.sizes, packed, done.scratch)

    def print_opaque(self, *_: Any) -> None:
        """No op that is no loop nest has a function here."""

    def link(self, printed: Sequence[Printed]) -> tuple[Mapping[str, str | bytes], Sequence[Sequence[Variant]]]:
        names: dict[Twins, str] = {}
        for p in printed:
            names.setdefault(p.code, f"k{len(names)}")
        modules: dict[str, str | bytes] = {}
        for level in LEVELS:
            functions: dict[str, Function] = {name: getattr(code, level) for code, name in names.items()}
            modules[level] = module({**functions, NAME: driver(functions)}, LIBRARY, level == "relaxed")
        return modules, [_variants(names[p.code]) for p in printed]


def _variants(name: str) -> tuple[Variant, ...]:
    return tuple(Variant(f"{level}:{name}", requires) for level, requires in LEVELS.items())


def _template(kernel: Kernel | Routine, constants: frozenset[int]) -> _Done:
    """The kernel by the best template that takes it."""
    if isinstance(kernel, Routine):
        done = _ROUTINES[kernel.kind](kernel, constants)
        if done is not None:
            return done
    plain = kernel.kernel if isinstance(kernel, Routine) else kernel
    cut = pieces(collapse(keep(plain)))
    code, sizes = _with_sizes(plain, lambda sizes, relaxed: print_nests(cut, sizes), alike=True)
    return _Done(code, sizes)


def _contraction(routine: Routine, constants: frozenset[int]) -> _Done | None:
    made = contraction.schedule(routine, constants)
    if made is None:
        return None
    packers = {made.c.b.value: made.pack} if made.packed else {}
    code, sizes = _with_sizes(routine.kernel, partial(contraction.print_contraction, made))
    return _Done(code, sizes, packers, made.scratch)


def _conv(routine: Routine, constants: frozenset[int]) -> _Done | None:
    plain, folds = routine.kernel, "windows" in routine.facts
    if not folds and depthwise.takes(routine):
        code, sizes = _with_sizes(plain, lambda sizes, relaxed: depthwise.print_depthwise(routine, sizes), alike=True)
        return _Done(code, sizes)
    few = None if folds else planar.schedule(routine)
    if few is not None:
        code, sizes = _with_sizes(plain, lambda sizes, relaxed: planar.print_planar(few, sizes), alike=True)
        return _Done(code, sizes, scratch=few.scratch)
    fewer = winograd.schedule(routine)
    if fewer is not None:
        code, sizes = _with_sizes(plain, partial(tiles.print_tiles, fewer))
        return _Done(code, sizes, scratch=fewer.scratch)
    return _contraction(routine, constants)


def _integers(routine: Routine, constants: frozenset[int]) -> _Done | None:
    made = integers.schedule_integers(routine, constants)
    if made is None:
        return None
    code, sizes = _with_sizes(routine.kernel, partial(integers.print_integers, made))
    return _Done(code, sizes, {made.weights: made.pack}, made.floats.scratch)


_ROUTINES: Final = {"matmul": _contraction, "conv": _conv, "matmul_int8": _integers, "conv_int8": _integers}
"""Kind of Routine → the function that prints it, or returns None."""


def _with_sizes(
    kernel: Kernel, write: Callable[[Sequence[Dim], bool], Function], alike: bool = False
) -> tuple[Twins, tuple[Dim, ...]]:
    """A kernel's code, with all sizes that it turns out to need as parameters; alike: written once for both levels."""
    sizes: list[Dim] = list(kernel.sizes)
    while True:
        try:
            simd = write(sizes, False)
            return Twins(simd, simd if alike else write(sizes, True)), tuple(sizes)
        except MissingSize as missing:
            sizes.append(missing.dim)
