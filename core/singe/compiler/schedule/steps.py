"""Steps: what a Program does, as a tree, while it is compiled; and its words.

`words_of` writes the words of program/words.py, which a Program keeps.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeAlias

from ...errors import DeviceError
from ...late_dataclass import dataclass
from ...program.program import Code, Stop
from ...program.words import AGAIN, COPY, JUMP, LOOP, STOP, UNLESS
from ...shapes import Dim


@dataclass(frozen=True)
class Dispatch:
    """Run kernel number `kernel` over buffers, one for each port, in order."""

    kernel: int
    buffers: tuple[int, ...]


@dataclass(frozen=True)
class Copy:
    """Copy all of one buffer to another."""

    source: int
    target: int


@dataclass(frozen=True)
class If:
    """Run `then` if the first element of a bool buffer is true, `otherwise` if it is false."""

    condition: int
    then: tuple[Step, ...]
    otherwise: tuple[Step, ...]


@dataclass(frozen=True)
class Loop:
    """Run the body at most `count` times (None: no limit), as long as `condition` holds (None: always).

    The condition is the first element of a bool buffer, read before each turn.
    """

    count: Dim | None
    condition: int | None
    body: tuple[Step, ...]


Step: TypeAlias = "Dispatch | Copy | If | Loop | Stop"


Written: TypeAlias = tuple[tuple[int, ...], tuple[Dim, ...], tuple[Stop, ...]]
"""The words, counts and stops of a Program."""


def words_of(steps: Sequence[Step], kernels: Sequence[Code], numbers: Sequence[int]) -> Written:
    """The words of steps; numbers: a Dispatch's number ↦ the number of the kernel that it runs."""
    writer = _Writer(kernels, numbers)
    writer.write(steps)
    return tuple(writer.words), tuple(writer.counts), tuple(writer.stops)


class _Writer:
    def __init__(self, kernels: Sequence[Code], numbers: Sequence[int]) -> None:
        self._kernels: Final = kernels
        self._numbers: Final = numbers
        self.words: Final[list[int]] = []
        self.counts: Final[list[Dim]] = []
        self.stops: Final[list[Stop]] = []

    def write(self, steps: Sequence[Step]) -> None:
        for step in steps:
            if isinstance(step, Dispatch):
                number = self._numbers[step.kernel]
                self._group(number, *step.buffers, *[0] * len(self._kernels[number].sizes))
            elif isinstance(step, Copy):
                self._group(COPY, step.target, step.source, 0)
            elif isinstance(step, If):
                below = self._group(UNLESS, 0, step.condition)
                self.write(step.then)
                if step.otherwise:
                    behind = self._group(JUMP, 0)
                    self._land(below)
                    below = behind
                    self.write(step.otherwise)
                self._land(below)
            elif isinstance(step, Loop):
                self._loop(step)
            else:
                self._group(STOP, len(self.stops))
                self.stops.append(step)

    def _loop(self, step: Loop) -> None:
        if step.count is None and step.condition is None:
            raise DeviceError("a loop has neither a count of turns nor a condition: it would never end")
        out: list[int] = []
        if step.count is not None:
            out.append(self._group(LOOP, 0, len(self.counts), 0))
            self.counts.append(step.count)
        start = len(self.words)
        if step.condition is not None:
            out.append(self._group(UNLESS, 0, step.condition))
        self.write(step.body)
        back = self._group(JUMP if step.count is None else AGAIN, 0)
        self.words[back + 2] = start - back
        for at in out:
            self._land(at)

    def _group(self, head: int, *rest: int) -> int:
        """Add a group; returns its position."""
        at = len(self.words)
        self.words.extend((head, len(rest), *rest))
        return at

    def _land(self, at: int) -> None:
        """Make the group at `at` jump to the end of the words so far."""
        self.words[at + 2] = len(self.words) - at
