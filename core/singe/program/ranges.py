"""Ranges of inputs: integers that a Program uses as indices as they are given, so that a run can refuse what lies outside."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

import numpy as np

from ..errors import OutOfRange
from ..late_dataclass import dataclass
from ..shapes import Dim, known, symbols


@dataclass(frozen=True)
class IndexRange:
    """Elements of an input that must be from `least` to `most`, or the number `ignored`.

    part: a start, a step and a count along each axis of the input, if only these elements are indices. text: what they index,
    for errors.
    """

    input: int
    part: tuple[tuple[Dim, int, Dim], ...] | None
    least: Dim
    most: Dim
    ignored: int | None
    text: str

    @cached_property
    def sizes(self) -> frozenset[str]:
        """The sizes on which it depends."""
        return symbols([self.least, self.most, *(d for axis in self.part or () for d in axis)])

    def check(self, array: np.ndarray, sizes: Mapping[str, int], name: str = "") -> None:
        """Refuse an array of the input with an element outside; OutOfRange names the input, if it has a name."""
        least, most = known(self.least, sizes), known(self.most, sizes)
        if self.part is not None:
            array = array[tuple(_slice(known(a, sizes), step, known(n, sizes)) for a, step, n in self.part)]
        if not array.size or (array.min() >= least and array.max() <= most):
            return
        outside = array[(array < least) | (array > most)]
        if self.ignored is not None:
            outside = outside[outside != self.ignored]
        if outside.size:
            where = f"input {name!r}: " if name else ""
            beside = "" if self.ignored is None else f", or {self.ignored} for places that do not count"
            raise OutOfRange(f"{where}{self.text}: got {outside.flat[0]}, expected from {least} to {most}{beside}")


def _slice(start: int, step: int, count: int) -> slice:
    """The slice of these elements of an axis."""
    end = start + step * count
    return slice(start, end if end >= 0 else None, step)
