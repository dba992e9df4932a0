"""The levels of SIMD: for which engines a module's code is written, and how."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final, NamedTuple


class Level(NamedTuple):
    """requires: features of the engine, all of them. relaxed: relaxed SIMD, whose multiply-adds round once. fours: products
    read rows four elements at a time (kernels/products/product.py). threads: the module lets threads share a run (shared_runs.py)."""

    requires: tuple[str, ...]
    relaxed: bool
    fours: bool
    threads: bool


LEVELS: Final[Mapping[str, Level]] = {
    "wasmtime": Level(("relaxed-simd", "wasmtime"), relaxed=True, fours=True, threads=True),
    "relaxed": Level(("relaxed-simd",), relaxed=True, fours=False, threads=False),
    "simd": Level((), relaxed=False, fours=False, threads=False),
}
"""In order of preference."""
PAGES: Final = ("relaxed", "simd")
"""The levels of a bundle: a page takes the first that its browser has."""


def levels_of(features: Collection[str]) -> tuple[str, ...]:
    """The best level for an engine with these features, and the one that every engine runs."""
    best = next(name for name, level in LEVELS.items() if set(level.requires) <= set(features))
    return tuple(dict.fromkeys((best, "simd")))
