"""A Plan: a Program's words at the sizes of a run, with the words set that depend on these, and set again for others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from ..late_dataclass import dataclass
from ..shapes import MAX_ELEMENTS, Dim, evaluate, known, symbols
from .program import Check, Place, ProgramData, Stop, check_found, sized_by
from .words import COPY, JUMP, LOOP, UNLESS


@dataclass(frozen=True)
class Found:
    """What `bind` did. words: the positions that it wrote. buffers: those that the new sizes complete, without buffers of
    a negative dimension, which a later Check refuses. changed: whether a size differs from the last run's."""

    words: Sequence[int]
    buffers: Sequence[int]
    changed: bool


class Plan:
    """The words of a Program at the sizes that its inputs give; `bind` adds the sizes that a run finds to `sizes`, `refit` sets others.

    given: the names of the sizes that the inputs give. named: the positions of words that are buffers, so that a runner may
    replace these words by addresses. work: the positions of the calls, copies and stops. stops: the position of a stop ↦
    what the runner does there; a Check that holds at the sizes of the inputs is a JUMP to the next group instead. late: the
    places whose bytes depend on sizes found in mid-run. is_straight: whether all that a run does are calls and copies. strings: the
    elements of string buffers by place, which a run keeps here. functions: the heads of calls in place of kernels' numbers.
    """

    def __init__(self, program: ProgramData, sizes: Mapping[str, int], functions: Sequence[int] | None = None) -> None:
        self.program: Final = program
        self.sizes: Final = dict(sizes)
        self.words: Final = list(program.words)
        self.named: Final[list[int]] = []
        self.work: Final[list[int]] = []
        self.stops: Final[dict[int, Stop]] = {}
        self.given: Final = frozenset(sizes)
        self.strings: Final[dict[Place, np.ndarray]] = {}
        self._latest: Final[dict[str, int]] = {}  # the sizes that were found in mid-run
        self._open: Final[dict[str, list[tuple[int, Dim]]]] = {}  # such a size ↦ the words that depend on it
        self._counts: Final[set[int]] = set()  # the words that are counts of turns
        self._bounded: Final[dict[Dim, list[int]]] = {}  # a number that depends on bounded sizes ↦ its words
        self._checked: Final[list[tuple[Dim, bool]]] = []  # what does, too, and whether it is at least 0
        self._numbers: Final[dict[Dim, int]] = {}  # at the present sizes; layers have many in common
        self._sized_by: Final = sized_by(program.buffers, self.given)
        self.late: Final = frozenset(program.buffers[i].place for found in self._sized_by.values() for i in found)
        for at, head, rest, reads, _, stop in program.groups:
            if head >= 0:
                self.work.append(at)
                self.named.extend(range(at + 2, at + 2 + len(reads)))
                for k, dim in enumerate(program.kernels[head].sizes, at + 2 + len(reads)):
                    self._number(k, dim)
                if functions is not None:
                    self.words[at] = functions[head]
            elif head == COPY:
                self.work.append(at)
                self.named.extend((at + 2, at + 3))
                self._number(at + 4, program.buffers[reads[0]].bytes)
            elif head == UNLESS:
                self.named.append(at + 3)
            elif head == LOOP:
                self._counts.add(at + 3)
                self._number(at + 3, program.counts[rest[1]])
            elif stop is not None:
                holds = isinstance(stop, Check) and self._holds(stop.dim, self.sizes)
                if isinstance(stop, Check) and self._is_bounded(stop.dim):
                    self._checked.append((stop.dim, holds))
                if holds:
                    self.words[at : at + 3] = JUMP, 1, 3
                else:
                    self.work.append(at)
                    self.stops[at] = stop
        self.is_straight: Final = not self.stops and all(g.head >= COPY or g.stop is not None for g in program.groups)

    def refit(self, sizes: Mapping[str, int]) -> Mapping[int, Sequence[int]] | None:
        """Set the words for other sizes of inputs, which differ only where they are bounded: a number ↦ the positions of words that it was
        written to. None, and nothing is done, where a Check holds at the one and not at the other."""
        if all(self.sizes.get(name) == value for name, value in sizes.items()):
            return {}
        if any(self._holds(dim, sizes) != held for dim, held in self._checked):
            return None
        self.begin()
        self.resize(sizes)
        changed: dict[int, list[int]] = {}
        for dim, places in self._bounded.items():
            for at in places:
                self._set(at, dim)
                changed.setdefault(self.words[at], []).append(at)
        return changed

    def resize(self, sizes: Mapping[str, int]) -> None:
        """Set sizes; words that depend on them stay."""
        self.sizes.update(sizes)
        self._numbers.clear()

    def number(self, dim: Dim) -> int:
        """A dimension whose sizes are all known."""
        found = self._numbers.get(dim)
        if found is None:
            found = self._numbers[dim] = known(dim, self.sizes)
        return found

    def shape(self, buffer: int) -> tuple[int, ...]:
        """The shape of a buffer whose sizes are all known."""
        return tuple(map(self.number, self.program.buffers[buffer].shape))

    def bytes(self, buffer: int) -> int:
        """The bytes of a buffer whose sizes are all known."""
        return self.number(self.program.buffers[buffer].bytes)

    def texts(self, buffer: int) -> np.ndarray:
        """The elements of a buffer of strings."""
        return self.strings[self.program.buffers[buffer].place].reshape(self.shape(buffer))

    def begin(self) -> None:
        """Forget the sizes that the last run found."""
        for name in self._latest:
            self.sizes.pop(name, None)
        self._numbers.clear()

    def bind(self, sizes: Mapping[str, int]) -> Found:
        """Set sizes found in mid-run; those that are set to the same value already change nothing."""
        buffers = self.program.buffers
        sizes = {name: value for name, value in sizes.items() if self.sizes.get(name) != value}
        named = dict.fromkeys(i for name in sizes for i in self._sized_by.get(name, ()))
        sized = [i for i in named if symbols(buffers[i].shape) <= self.sizes.keys() | sizes.keys()]
        check_found(sizes, (buffers[i] for i in sized), {**self.sizes, **sizes})
        changed = any(self._latest.get(name) != value for name, value in sizes.items())
        self.resize(sizes)
        self._latest.update(sizes)
        fields = dict.fromkeys(field for name in sizes for field in self._open.get(name, ()))
        words = [at for at, dim in fields if self._set(at, dim)]
        return Found(words, [i for i in sized if min(self.shape(i)) >= 0], changed)

    def _holds(self, dim: Dim, sizes: Mapping[str, int]) -> bool:
        """Whether the sizes of the inputs make a dimension at least 0."""
        value = evaluate(dim, sizes)
        return isinstance(value, int) and value >= 0

    def _is_bounded(self, dim: Dim) -> bool:
        return not symbols(dim).isdisjoint(self.program.bounds)

    def _number(self, at: int, dim: Dim) -> None:
        """Set the word at `at` to a dimension, now or once its sizes are known."""
        if not self._set(at, dim):
            for name in symbols(dim) - self.given:
                self._open.setdefault(name, []).append((at, dim))
        elif self._is_bounded(dim):
            self._bounded.setdefault(dim, []).append(at)

    def _set(self, at: int, dim: Dim) -> bool:
        """Write a dimension if its sizes are known; returns whether they are."""
        if not symbols(dim) <= self.sizes.keys():
            return False
        value = self.number(dim)
        self.words[at] = max(0, min(value, MAX_ELEMENTS)) if at in self._counts else value
        return True
