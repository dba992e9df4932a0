"""Dimensions as numbers: what they are when some or all of their sizes are known."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Final

from ..errors import ShapeError
from .sizes import Atom, Dim, Size, dim_max, dim_min, floordiv, remainder, size, symbols


def show_sizes(sizes: Mapping[str, Dim]) -> str:
    """Sizes as text for an error: "N = 1, L = 129"."""
    return ", ".join(f"{name} = {number}" for name, number in sizes.items())


def size_name(dim: Dim) -> str | None:
    """The name of the size that a dimension is; None if it is a number or computed."""
    if isinstance(dim, Size) and len(dim.terms) == 1:
        atoms, factor = dim.terms[0]
        if factor == 1 and len(atoms) == 1 and isinstance(atoms[0], str):
            return atoms[0]
    return None


def evaluate(dim: Dim, sizes: Mapping[str, Dim]) -> Dim:
    """The dimension with these sizes in place of their names; other names stay."""
    return _evaluated(dim, sizes, {})


def _evaluated(dim: Dim, sizes: Mapping[str, Dim], known: dict[Atom, Dim]) -> Dim:
    """`evaluate`, which computes an atom once however many others have it as a part."""
    if isinstance(dim, int):
        return dim
    total: Dim = 0
    for key, value in dim.terms:
        term: Dim = value
        for atom in key:
            if isinstance(atom, str):
                term = term * (sizes[atom] if atom in sizes else size(atom))
                continue
            if atom not in known:
                word, a, b = atom
                known[atom] = COMBINED[word](_evaluated(a, sizes, known), _evaluated(b, sizes, known))
            term = term * known[atom]
        total = total + term
    return total


COMBINED: Final = {"div": floordiv, "mod": remainder, "max": dim_max, "min": dim_min}
"""An opaque atom's word ↦ what it computes of two dimensions."""


def known(dim: Dim, sizes: Mapping[str, int]) -> int:
    """The dimension as a number: every name must be given."""
    value = evaluate(dim, sizes)
    if isinstance(value, int):
        return value
    raise ShapeError(f"the dimension {dim} depends on {', '.join(sorted(symbols(value)))}, which no input gives")


def guessed(dim: Dim, sizes: int | Mapping[str, int]) -> int:
    """A dimension as a number of which only the magnitude matters, with these sizes, or one number for all, in place of
    open ones. They are taken larger where short ones leave nothing that the dimension could be divided by."""
    if isinstance(dim, int):
        return dim
    sizes = dict.fromkeys(symbols(dim), sizes) if isinstance(sizes, int) else sizes
    for more in (0, 7, 17):
        with suppress(ShapeError):
            return known(dim, {name: number << more for name, number in sizes.items()})
    return 0
