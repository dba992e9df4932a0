"""The target "wasm": Kernels and Routines in, one WebAssembly module for each level of SIMD out.

A function takes the address of each port in bytes (the scratch port last, where there is one), then its sizes as i32.
Modules import their memory as env.memory, and their function `run` makes all calls of a run: driver.py. The two levels
are "simd" and "relaxed", which needs relaxed SIMD and rounds multiply-adds once. If their code differs in nothing else,
both are linked from one printed function.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache, partial
from typing import Any, Final

from singe.extension import Dim, DType, Kernel, Packer, Printed, Routine, Shape, Variant, attention, collapse

from .code.encode import Function, module
from .driver import NAME, driver
from .kernels import attention as strips
from .kernels import order, scatter
from .kernels.kept import keep
from .kernels.lower import SizeParameters
from .kernels.memory import ELEMENTS
from .kernels.nest import print_nests
from .kernels.pieces import kernel_pieces
from .kernels.products import blocks, contraction, depthwise, integers, planar, tiles, winograd
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
    integers = True
    counted = 64
    networks = False
    repeated = 0
    dtypes = frozenset(ELEMENTS)

    def element_size(self, dtype: DType) -> int:
        return dtype.size

    def print(self, kernel: Kernel | Routine, constants: Collection[int]) -> Printed | None:
        if isinstance(kernel, Routine):
            return _ROUTINES[kernel.kind](kernel, constants)
        cut = kernel_pieces(collapse(keep(kernel)))
        return _printed(kernel.sizes, lambda sizes, relaxed: print_nests(cut, sizes), alike=True)

    def print_opaque(
        self,
        op: str,
        attrs: Mapping[str, Any],
        inputs: Sequence[tuple[Shape, DType]],
        results: Sequence[tuple[Shape, DType]],
    ) -> Printed | None:
        if op in order.OPS:
            sort = order.schedule_sort(attrs, inputs, results)
            return _printed((), lambda sizes, _: order.print_sort(sort, sizes), scratch=sort.scratch, alike=True)
        if op == "attention":
            found = attention(attrs, inputs)
            return None if found is None or strips.is_short(found) else _attention(strips.Strips(found))
        if op in scatter.OPS:
            return _printed((), lambda sizes, _: scatter.print_scatter(op, attrs, inputs, sizes), alike=True)
        return None

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


@lru_cache(maxsize=256)
def _attention(cut: strips.Strips) -> Printed:
    return replace(_printed((), partial(strips.print_strips, cut), scratch=cut.scratch), flops=cut.a.flops)


def _contraction(routine: Routine, constants: Collection[int]) -> Printed | None:
    made = contraction.schedule(routine, constants)
    return None if made is None else _scheduled(routine, made)


def _scheduled(routine: Routine, made: contraction.Schedule) -> Printed:
    packers = {made.c.b.value: made.pack} if made.packed else {}
    printed = _printed(routine.kernel.sizes, partial(contraction.print_contraction, made), packers, made.scratch)
    return replace(printed, sharing=cache(partial(_scheduled, routine, made.sharing)) if made.sharing else None)


def _conv(routine: Routine, constants: Collection[int]) -> Printed | None:
    plain, folds = routine.kernel, "windows" in routine.facts
    if depthwise.takes(routine):
        write = partial(depthwise.print_depthwise, routine)
        return None if folds else _printed(plain.sizes, lambda sizes, _: write(sizes), alike=True)
    few = planar.schedule(routine)
    if few is not None:
        write = partial(planar.print_planar, few)
        return None if folds else _printed(plain.sizes, lambda sizes, _: write(sizes), scratch=few.scratch, alike=True)
    fewer = winograd.schedule(routine)
    if fewer is not None:
        return _printed(plain.sizes, partial(tiles.print_tiles, fewer), scratch=fewer.scratch)
    return _contraction(routine, constants)


def _integers(routine: Routine, constants: Collection[int]) -> Printed | None:
    made = integers.schedule_integers(routine, constants)
    if made is None:
        return None
    write = partial(integers.print_integers, made)
    return _printed(routine.kernel.sizes, write, {made.weights: made.pack}, made.floats.scratch)


def _blocks(routine: Routine, constants: Collection[int]) -> Printed | None:
    made = blocks.schedule_blocks(routine, constants)
    if made is None:
        return None
    write = partial(blocks.print_blocks, made)
    return _printed(routine.kernel.sizes, write, made.packers, made.floats.scratch)


_ROUTINES: Final = {
    "matmul": _contraction,
    "matmul_blocks": _blocks,
    "conv": _conv,
    **dict.fromkeys(("matmul_int8", "conv_int8", "matmul_integers", "conv_integers"), _integers),
}
"""Kind of Routine → the function that prints it, or returns None."""


def _printed(
    given: Sequence[Dim],
    write: Callable[[SizeParameters, bool], Function],
    packers: Mapping[int, Packer] | None = None,
    scratch: Dim = 0,
    alike: bool = False,
) -> Printed:
    """The code of a function of the given sizes, and of those that it turns out to need; alike: written once for both
    levels."""
    while True:
        sizes = SizeParameters(given)
        relaxed = write(sizes, True)  # its tiles are the larger ones, and lack more
        code = Twins(relaxed if alike or sizes.lacking else write(sizes, False), relaxed)
        if not sizes.lacking:
            return Printed(code, _variants("0"), tuple(sizes), packers or {}, scratch)
        given = (*sizes, *sizes.lacking)
