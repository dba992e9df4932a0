"""What the target "wasm" prints: Kernels and Routines in, one WebAssembly module for each level of SIMD out.

Only the code of the first level, which the device here runs, is written at once; that of the others when a module of theirs is asked for,
as a Program is saved. A function takes the address of each port in bytes (the scratch port last, where there is one), then its sizes as i32.
Modules import their memory as env.memory, and their function `run` makes all calls of a run: driver.py. If the code of
levels differs in nothing but the rounding of multiply-adds, they are linked from one printed function.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache, partial
from math import prod
from typing import Any, Final

from singe.extension import (
    Dim,
    DType,
    Kernel,
    Packer,
    Printed,
    Routine,
    Shape,
    Variant,
    attention,
    collapse,
)

from .calls import NAME
from .code.encode import Function, module
from .driver import driver
from .kernels import scatter, sorting
from .kernels.attention import print_strips
from .kernels.attention_strips import Strips
from .kernels.kept_values import keep
from .kernels.lower import SizeParameters
from .kernels.nest import print_nests
from .kernels.products import blocks, blocks_int16, contraction, depthwise, integers, lines, planar, tiles, winograd
from .kernels.split_loops import kernel_pieces
from .kernels.thread_shares import guess
from .levels import LEVELS, Level
from .library import LIBRARY
from .shared_runs import shared_runs

Names = tuple[str, ...]


MANY_TURNS: Final = 1 << 18
"""A module whose loops take so many turns lets threads share its runs: what takes fewer, shared_calls.py leaves to one thread, and the
functions for that take 1.5 ms to compile, more than a small module."""


def print_kernel(levels: Names, kernel: Kernel | Routine, constants: Collection[int]) -> Printed | None:
    if isinstance(kernel, Routine):
        write = _ROUTINES.get(kernel.kind)
        printed = None if write is None else write(levels, kernel, constants)
        return None if printed is None else _counted(printed, _turns(kernel.kernel))
    cut = kernel_pieces(collapse(keep(kernel)))
    printed = _printed(levels, kernel.sizes, lambda sizes, _: print_nests(cut, sizes), alike=True)
    return _counted(printed, _turns(kernel))


def _turns(kernel: Kernel) -> int:
    """About how many turns its innermost loop takes."""
    return prod(guess(dim) for dim in (*kernel.grid, *kernel.inner))


def _counted(printed: Printed, turns: int) -> Printed:
    """Code of a function that takes so many turns."""
    sharing = printed.sharing
    return replace(
        printed,
        code=replace(printed.code, turns=turns),
        sharing=None if sharing is None else lambda: _counted(sharing(), turns),
    )


def print_opaque(
    levels: Names,
    op: str,
    attrs: Mapping[str, Any],
    inputs: Sequence[tuple[Shape, DType]],
    results: Sequence[tuple[Shape, DType]],
) -> Printed | None:
    if op in sorting.OPS:
        sort = sorting.schedule_sort(attrs, inputs, results)
        write = partial(sorting.print_sort, sort)
        return _printed(levels, (), lambda sizes, _: write(sizes), scratch=sort.scratch, alike=True)
    if op == "attention":
        found = attention(attrs, inputs)
        return None if found is None else _attention(levels, Strips(found))
    if op in scatter.OPS:
        write = partial(scatter.print_scatter, op, attrs, inputs)
        return _printed(levels, (), lambda sizes, _: write(sizes), alike=True)
    return None


def link(levels: Names, printed: Sequence[Printed]) -> tuple[Mapping[str, str | bytes], Sequence[Sequence[Variant]]]:
    names: dict[LevelCode, str] = {}
    for p in printed:
        names.setdefault(p.code, f"k{len(names)}")
    turns = sum(p.code.turns for p in printed)
    return Modules(levels, names, turns >= MANY_TURNS), [_variants(levels, names[p.code]) for p in printed]


@dataclass(frozen=True)
class LevelCode:
    """The function of a kernel in the code of each level. Those of one kernel compute the same of the same memory, so what is equal in the
    first level is equal."""

    first: Function
    write: Callable[[str], Function] = field(compare=False)
    """The name of another level ↦ its function."""
    turns: int = field(default=0, compare=False)
    """About how many turns the function's loops take."""


class Modules(Mapping[str, "str | bytes"]):
    """The module of each level, encoded when it is first asked for. is_long: threads may share its runs."""

    def __init__(self, levels: Names, names: Mapping[LevelCode, str], is_long: bool) -> None:
        self._levels: Final = levels
        self._is_long: Final = is_long
        self._names: Final = names
        self._encoded: Final[dict[str, bytes]] = {}
        self[levels[0]]

    def __getitem__(self, level: str) -> bytes:
        if level not in self._levels:
            raise KeyError(level)
        if level not in self._encoded:
            is_first = level == self._levels[0]
            functions = {name: code.first if is_first else code.write(level) for code, name in self._names.items()}
            is_shared = self._is_long and LEVELS[level].threads
            runs = shared_runs(functions) if is_shared else {NAME: driver(functions)}
            self._encoded[level] = module({**functions, **runs}, LIBRARY, LEVELS[level].relaxed)
        return self._encoded[level]

    def __iter__(self) -> Iterator[str]:
        return iter(self._levels)

    def __len__(self) -> int:
        return len(self._levels)


def _variants(levels: Names, name: str) -> tuple[Variant, ...]:
    return tuple(Variant(f"{level}:{name}", LEVELS[level].requires) for level in levels)


@lru_cache(maxsize=256)
def _attention(levels: Names, cut: Strips) -> Printed:
    made = replace(_printed(levels, (), partial(print_strips, cut), scratch=cut.scratch), flops=cut.a.flops)
    return _counted(made, guess(cut.a.flops) // 2)


def _contraction(levels: Names, routine: Routine, constants: Collection[int]) -> Printed | None:
    made = contraction.schedule(routine, constants)
    return None if made is None else _scheduled(levels, routine, made)


def _scheduled(levels: Names, routine: Routine, schedule: contraction.ProductSchedule) -> Printed:
    packers = {schedule.c.b.value: schedule.pack} if schedule.packed else {}
    printed = _printed(
        levels, routine.kernel.sizes, partial(contraction.print_contraction, schedule), packers, schedule.scratch
    )
    places = schedule.places if schedule.packed else None
    sharing = cache(partial(_scheduled, levels, routine, schedule.sharing)) if schedule.sharing else None
    return replace(printed, sharing=sharing, places={schedule.c.b.value: places} if places else {})


def _conv(levels: Names, routine: Routine, constants: Collection[int]) -> Printed | None:
    sizes, folds = routine.kernel.sizes, "windows" in routine.facts
    if depthwise.takes(routine):
        write = partial(depthwise.print_depthwise, routine)
        return None if folds else _printed(levels, sizes, lambda given, _: write(given), alike=True)
    few = planar.schedule(routine)
    if few is not None:
        write = partial(planar.print_planar, few)
        return (
            None if folds else _printed(levels, sizes, lambda given, _: write(given), scratch=few.scratch, alike=True)
        )
    fewer = winograd.schedule(routine)
    if isinstance(fewer, winograd.SquareSchedule):
        return _printed(levels, sizes, partial(tiles.print_tiles, fewer), scratch=fewer.scratch)
    if isinstance(fewer, winograd.LineSchedule):
        return _printed(levels, sizes, partial(lines.print_lines, fewer), scratch=fewer.scratch)
    return _contraction(levels, routine, constants)


def _integers(levels: Names, routine: Routine, constants: Collection[int]) -> Printed | None:
    made = integers.schedule_integers(routine, constants)
    if made is None:
        return None
    write = partial(integers.print_integers, made)
    return _printed(levels, routine.kernel.sizes, write, {made.weights: made.pack}, made.floats.scratch)


def _blocks(levels: Names, routine: Routine, constants: Collection[int]) -> Printed | None:
    int16 = routine.kind == "matmul_blocks_int16"
    made = (blocks_int16.schedule_int16 if int16 else blocks.schedule_blocks)(routine, constants)
    if made is None:
        return None
    write = partial(blocks_int16.print_int16 if int16 else blocks.print_blocks, made)
    printed = _printed(levels, routine.kernel.sizes, write, made.packers, made.floats.scratch)
    return replace(printed, places=made.places)


_ROUTINES: Final = {
    "matmul": _contraction,
    **dict.fromkeys(("matmul_blocks", "matmul_blocks_int16"), _blocks),
    "conv": _conv,
    **dict.fromkeys(("matmul_int8", "conv_int8", "matmul_integers", "conv_integers"), _integers),
}
"""Kind of Routine → the function that prints it, or returns None, as for all other kinds."""


def _printed(
    levels: Names,
    given: Sequence[Dim],
    write: Callable[[SizeParameters, Level], Function],
    packers: Mapping[int, Packer] | None = None,
    scratch: Dim = 0,
    alike: bool = False,
) -> Printed:
    """The code of a function of the given sizes, and of those that it turns out to need; alike: written once for all
    levels."""
    while True:
        sizes = SizeParameters(given)
        first = write(sizes, LEVELS[levels[0]])
        if not sizes.lacking:
            break
        given = (*sizes, *sizes.lacking)

    def other(level: str) -> Function:
        made = first if alike else write(sizes, LEVELS[level])
        # The tiles of the first level are the largest, and lack the most.
        assert not sizes.lacking, f"the code of {level} lacks the sizes {sizes.lacking}"
        return made

    return Printed(LevelCode(first, other), _variants(levels, "0"), tuple(sizes), packers or {}, scratch)
