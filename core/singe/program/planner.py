"""The planner: turns a Program and the sizes known so far into a Plan, a flat list of int words that every runner reads.

Words come in groups. A group is a code for what to do, the count of the words that follow, and those words:

| first word | words that follow     | what a run does there                                                                  |
|------------|-----------------------|----------------------------------------------------------------------------------------|
| k ≥ 0      | buffers…, sizes…      | calls kernel k (`functions` may give another number for it) over these buffers         |
| COPY −1    | to, from, bytes       | copies so many bytes from one buffer to another                                        |
| JUMP −2    | distance              | continues `distance` words after this group's first word (before it if negative)       |
| UNLESS −3  | distance, buffer      | jumps, as JUMP does, unless the first element of a bool buffer is true                 |
| LOOP −4    | distance, count, left | left = count; jumps if that is 0                                                       |
| AGAIN −5   | distance              | decrements `left` of its LOOP, the word before the jump's target; jumps unless it is 0 |
| STOP −6    | number                | leaves `stops[number]`, a Host, Bind or Check step, to the runner, which passes the sizes found to `bind` |

A Check that holds at the sizes of the inputs is a JUMP to the next group.

After a group that does not jump comes the next one. A run starts at the first word and ends after the last group.
`left` is the only word that a run changes.

A buffer is an index into `buffers`: the Program's buffers, then one for each output that is copied from another buffer.
`named` lists the positions of words that are buffers, so that a runner may replace these words by addresses. The
positions of groups do not depend on sizes. A word that depends on sizes found in mid-run is 0 until `bind` sets it,
before the run reads it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, MutableSequence, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from ..errors import DeviceError
from ..shapes import MAX_ELEMENTS, Dim, evaluate, known, symbols
from .program import Bind, Check, Copy, Dispatch, Host, If, Place, ProgramData, Step, check_found, sized_by

COPY: Final = -1
JUMP: Final = -2
UNLESS: Final = -3
LOOP: Final = -4
AGAIN: Final = -5
STOP: Final = -6


@dataclass(frozen=True)
class Found:
    """What `bind` did. words: the positions that it wrote. buffers: those that the new sizes complete, without buffers of
    a negative dimension, which a later Check refuses. changed: whether a size differs from the last run's."""

    words: Sequence[int]
    buffers: Sequence[int]
    changed: bool


class Plan:
    """The words of a Program at the sizes that its inputs give; `bind` adds the sizes that a run finds to `sizes`.

    given: the names of the sizes that the inputs give. step_of: the position of a group ↦ the number of its step, in the
    order of `walk`; None for the copy of an output. outputs: the buffer of each output, in memory of its own or of a
    donated input. late: the places whose bytes depend on sizes found in mid-run. is_straight: whether all groups are
    calls and copies. strings: the elements of string buffers by place, which a run keeps here.
    """

    def __init__(self, program: ProgramData, sizes: Mapping[str, int], functions: Sequence[int] | None = None) -> None:
        self.program: Final = program
        self.sizes: Final = dict(sizes)
        self.words: Final[list[int]] = []
        self.named: Final[list[int]] = []
        self.stops: Final[list[Host | Bind | Check]] = []
        self.step_of: Final[dict[int, int | None]] = {}
        self._functions: Final = range(len(program.kernels)) if functions is None else functions
        self.given: Final = frozenset(sizes)
        self.strings: Final[dict[Place, np.ndarray]] = {}
        self._latest: Final[dict[str, int]] = {}  # the sizes that were found in mid-run
        self._open: Final[dict[str, list[tuple[int, Dim]]]] = {}  # such a size ↦ the words that depend on it
        self._counts: Final[set[int]] = set()  # the words that are counts of turns
        self._steps = 0
        buffers = list(program.buffers)
        self._write(program.steps)
        self.outputs: Final[list[int]] = []
        for number, i in enumerate(program.outputs):
            if buffers[i].place != ("output", number) and number not in program.donated:
                self._copy(i, len(buffers), None)
                i = len(buffers)
                buffers.append(replace(program.buffers[program.outputs[number]], place=("output", number)))
            self.outputs.append(i)
        self.buffers: Final = tuple(buffers)
        self._sized_by: Final = sized_by(buffers, self.given)
        self.late: Final = frozenset(buffers[i].place for found in self._sized_by.values() for i in found)
        self.is_straight: Final = all(self.words[at] >= COPY for at in self.step_of)

    def shape(self, buffer: int) -> tuple[int, ...]:
        """The shape of a buffer whose sizes are all known."""
        return tuple(known(d, self.sizes) for d in self.buffers[buffer].shape)

    def bytes(self, buffer: int) -> int:
        """The bytes of a buffer whose sizes are all known."""
        return known(self.buffers[buffer].bytes, self.sizes)

    def texts(self, buffer: int) -> np.ndarray:
        """The elements of a buffer of strings."""
        return self.strings[self.buffers[buffer].place].reshape(self.shape(buffer))

    def begin(self) -> None:
        """Forget the sizes that the last run found."""
        for name in self._latest:
            self.sizes.pop(name, None)

    def bind(self, sizes: Mapping[str, int]) -> Found:
        """Set sizes found in mid-run; those that are set to the same value already change nothing."""
        sizes = {name: value for name, value in sizes.items() if self.sizes.get(name) != value}
        named = dict.fromkeys(i for name in sizes for i in self._sized_by.get(name, ()))
        buffers = [i for i in named if symbols(self.buffers[i].shape) <= self.sizes.keys() | sizes.keys()]
        check_found(sizes, (self.buffers[i] for i in buffers), {**self.sizes, **sizes})
        changed = any(self._latest.get(name) != value for name, value in sizes.items())
        self.sizes.update(sizes)
        self._latest.update(sizes)
        fields = dict.fromkeys(field for name in sizes for field in self._open.get(name, ()))
        words = [at for at, dim in fields if self._set(at, dim)]
        return Found(words, [i for i in buffers if min(self.shape(i)) >= 0], changed)

    # --- writing the words ---

    def _write(self, steps: Sequence[Step]) -> None:
        for step in steps:
            number = self._steps
            self._steps += 1
            if isinstance(step, Dispatch):
                sizes = self.program.kernels[step.kernel].sizes
                at = self._group(self._functions[step.kernel], number, *step.buffers, *[0] * len(sizes))
                self.named.extend(range(at + 2, at + 2 + len(step.buffers)))
                for k, dim in enumerate(sizes, at + 2 + len(step.buffers)):
                    self._number(k, dim)
            elif isinstance(step, Copy):
                self._copy(step.source, step.target, number)
            elif isinstance(step, Check) and self._holds(step.dim):
                self._land(self._group(JUMP, None, 0))
            elif isinstance(step, Host | Bind | Check):
                self._group(STOP, number, len(self.stops))
                self.stops.append(step)
            elif isinstance(step, If):
                below = self._unless(step.condition, number)
                self._write(step.then)
                if step.otherwise:
                    behind = self._group(JUMP, None, 0)
                    self._land(below)
                    below = behind
                    self._write(step.otherwise)
                self._land(below)
            else:
                self._loop(step.count, step.condition, step.body, number)

    def _loop(self, count: Dim | None, condition: int | None, body: Sequence[Step], number: int) -> None:
        out = []
        if count is not None:
            head = self._group(LOOP, number, 0, 0, 0)
            self._counts.add(head + 3)
            self._number(head + 3, count)
            out.append(head)
        elif condition is None:
            raise DeviceError("a loop has neither a count of turns nor a condition: it would never end")
        start = len(self.words)
        if condition is not None:
            out.append(self._unless(condition, number))
        self._write(body)
        back = self._group(JUMP if count is None else AGAIN, None, 0)
        self.words[back + 2] = start - back
        for at in out:
            self._land(at)

    def _group(self, head: int, step: int | None, *rest: int) -> int:
        """Add a group; returns its position."""
        at = len(self.words)
        self.words.extend((head, len(rest), *rest))
        if head not in (JUMP, AGAIN):
            self.step_of[at] = step
        return at

    def _copy(self, source: int, target: int, step: int | None) -> None:
        at = self._group(COPY, step, target, source, 0)
        self.named.extend((at + 2, at + 3))
        self._number(at + 4, self.program.buffers[source].bytes)

    def _unless(self, condition: int, step: int) -> int:
        at = self._group(UNLESS, step, 0, condition)
        self.named.append(at + 3)
        return at

    def _holds(self, dim: Dim) -> bool:
        """Whether the sizes of the inputs make a dimension at least 0."""
        value = evaluate(dim, self.sizes)
        return isinstance(value, int) and value >= 0

    def _land(self, at: int) -> None:
        """Make the group at `at` jump to the end of the words so far."""
        self.words[at + 2] = len(self.words) - at

    def _number(self, at: int, dim: Dim) -> None:
        """Set the word at `at` to a dimension, now or once its sizes are known."""
        if not self._set(at, dim):
            for name in symbols(dim) - self.given:
                self._open.setdefault(name, []).append((at, dim))

    def _set(self, at: int, dim: Dim) -> bool:
        """Write a dimension if its sizes are known; returns whether they are."""
        if not symbols(dim) <= self.sizes.keys():
            return False
        value = known(dim, self.sizes)
        self.words[at] = max(0, min(value, MAX_ELEMENTS)) if at in self._counts else value
        return True


def execution_order(words: MutableSequence[int], holds: Callable[[int], bool], at: int = 0) -> Iterator[int]:
    """The positions of the calls, copies and stops of a run, in order; holds(word) reads a condition's buffer."""
    end = len(words)
    while at < end:
        head, behind = words[at], at + 2 + words[at + 1]
        if head >= COPY or head == STOP:
            yield at
            at = behind
        elif head == AGAIN:
            start = at + words[at + 2]
            words[start - 1] -= 1
            at = start if words[start - 1] else behind
        elif head == LOOP:
            words[at + 4] = words[at + 3]
            at = behind if words[at + 4] else at + words[at + 2]
        else:
            at = behind if head == UNLESS and holds(words[at + 3]) else at + words[at + 2]
