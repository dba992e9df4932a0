"""Elementwise rows of a straight Program joined: several rows, and what only moves elements between them, computed in one pass.

`join_steps` puts off an elementwise row until another step reads its value. Then one kernel computes it, with the rows of as many elements
that it is made of and that were put off, too; of these, it also stores the values that others read. What was put off to the end, such
as the update of a weight and its moments, runs as soon as its inputs are there and no step reads the states that it overwrites.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import field, replace
from functools import cached_property
from typing import Any, Final, TypeAlias

from ...dtypes import DType
from ...ir.arrays.adapter import Array, ArrayAdapter
from ...ir.arrays.c_elements import Member, count_of_words, fits
from ...late_dataclass import dataclass
from ...ops import Elementwise, Row, View
from ...program.program import Host, Place, ProgramData

MAX_ARRAYS: Final = 24
"""Of a kernel."""
MAX_MEMBERS: Final = 64
MOVES: Final = ("reshape", "transpose")
"""Rows that only move elements."""
Move: TypeAlias = "tuple[str, tuple[int, ...]]"
"""What is done to an array before a kernel reads it: "broadcast" or "reshape" to a shape, "transpose" by a permutation."""


@dataclass(frozen=True)
class MovedValue:
    """A value that a kernel reads or writes, as an array that was moved."""

    value: int
    moves: tuple[Move, ...] = ()


@dataclass
class RowCall:
    """One row, called by itself."""

    at: int
    """The number of its group."""
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    drops: tuple[int, ...] = ()


@dataclass
class Join:
    """A kernel: its inputs, its members, and which of these are stored as which values; over: by its outputs, the states whose arrays
    they overwrite."""

    shape: tuple[int, ...]
    leaves: list[MovedValue] = field(default_factory=list["MovedValue"])
    members: list[Member] = field(default_factory=list["Member"])
    values: list[int] = field(default_factory=list[int])
    """Of the members."""
    moves: list[tuple[Move, ...]] = field(default_factory=list["tuple[Move, ...]"])
    """Of the members' arrays, to the kernel's shape."""
    stored: tuple[int, ...] = ()
    over: Mapping[int, int] = field(default_factory=dict[int, int])
    drops: tuple[int, ...] = ()

    @cached_property
    def inputs(self) -> tuple[int, ...]:
        return tuple(dict.fromkeys(leaf.value for leaf in self.leaves))

    @cached_property
    def outputs(self) -> tuple[int, ...]:
        return tuple(self.values[k] for k in self.stored)

    def output_leaves(self) -> list[MovedValue]:
        return [MovedValue(self.values[k], self.moves[k]) for k in self.stored]


Copies: TypeAlias = "Mapping[int, Sequence[tuple[Place, Place]]]"
"""Before an op of this number, a place gets what another one has."""
Step: TypeAlias = "RowCall | Join"


@dataclass
class Joined:
    """A Program's steps, over numbered values."""

    steps: list[Step]
    shapes: list[tuple[int, ...]]
    kinds: list[DType]
    initial: dict[Place, int]
    """What a run begins with."""
    outputs: list[int]
    states: list[int]
    first_states: list[int]


def join_steps(
    program: ProgramData, places: Sequence[Place], ops: Sequence[tuple[Host, Row]], copies: Copies
) -> Joined | None:
    """The steps of a Program of these ops only, whose sizes are all known; None if no rows can be joined."""
    if len(ops) < 2:  # a call of its own: to compile takes longer
        return None
    plan = _Plan(program, places, ops, copies)
    plan.walk()
    return plan.joined() if plan.kernels else None


class _Plan:
    def __init__(
        self, program: ProgramData, places: Sequence[Place], ops: Sequence[tuple[Host, Row]], copies: Copies
    ) -> None:
        self.program, self.ops = program, ops
        self.shapes: list[tuple[int, ...]] = []
        self.kinds: list[DType] = []
        self.producer: list[int] = []  # the op, or −1
        self.readers: list[list[int]] = []
        self.initial: dict[Place, int] = {}
        self.inputs: list[tuple[int, ...]] = []
        self.results: list[tuple[int, ...]] = []
        self.pending: set[int] = set()  # values
        self.keyed: list[tuple[tuple[int, int], Step]] = []
        self.position: dict[int, tuple[int, int]] = {}  # of values, where they are there
        self.kernels = 0
        self.fits: dict[Any, bool] = {}
        now: dict[Place, int] = {}

        def read(i: int) -> int:
            place = places[i]
            if place not in now:
                now[place] = self._initial_of(place, i)
            return now[place]

        number = {place: i for i, place in enumerate(places)}
        for k, (step, _) in enumerate(ops):
            for before, place in copies.get(k, ()):
                now[place] = read(number[before])
            self.inputs.append(tuple(read(i) for i in step.inputs))
            for v in self.inputs[k]:
                self.readers[v].append(k)
            made: list[int] = []
            for i in step.outputs:
                now[places[i]] = self._value(i, k)
                made.append(now[places[i]])
            self.results.append(tuple(made))
        for before, place in copies.get(len(ops), ()):
            now[place] = read(number[before])
        self.first_states = [self._initial_of(places[s.buffer], s.buffer) for s in program.states]
        self.outputs = [read(i) for i in program.outputs]
        self.states = [read(s.buffer) for s in program.states]
        self.ends = {*self.outputs, *self.states}

    def _initial_of(self, place: Place, buffer: int) -> int:
        if place not in self.initial:
            self.initial[place] = self._value(buffer, -1)
        return self.initial[place]

    def _value(self, i: int, producer: int) -> int:
        buffer = self.program.buffers[i]
        self.shapes.append(tuple(int(d) for d in buffer.shape))  # pyright: ignore[reportArgumentType]
        self.kinds.append(buffer.dtype)
        self.producer.append(producer)
        self.readers.append([])
        return len(self.shapes) - 1

    # --- which rows go together ---

    def walk(self) -> None:
        for k, (step, row) in enumerate(self.ops):
            if self._can_wait(k, step, row):
                self.pending.update(self.results[k])
                continue
            for v in self.inputs[k]:
                self.force(v, (k, 0))
            self._call(k, (k, 1))
        before = len(self.keyed)
        for v in sorted(self.ends, reverse=True):
            self.force(v, None)
        self._hoist(before)

    def _can_wait(self, k: int, step: Host, row: Row) -> bool:
        if 0 in self.shapes[self.results[k][0]]:
            return False
        if isinstance(row, View):
            return step.op in MOVES and self.inputs[k][0] in self.pending
        if not isinstance(row, Elementwise):
            return False
        kinds, gives = tuple(self.kinds[v] for v in self.inputs[k]), self.kinds[self.results[k][0]]
        key = row.name, kinds, gives, repr(step.attrs)
        if key not in self.fits:
            self.fits[key] = fits(row, kinds, gives, step.attrs)
        return self.fits[key]

    def _call(self, k: int, key: tuple[int, int]) -> None:
        self.keyed.append((key, RowCall(k, self.inputs[k], self.results[k])))
        self.position.update(dict.fromkeys(self.results[k], key))

    def force(self, value: int, key: tuple[int, int] | None) -> None:
        """Have a value computed before the step at a key; None: at the end."""
        if value not in self.pending:
            return
        k = self.producer[value]
        if isinstance(self.ops[k][1], View):
            self.force(self.inputs[k][0], key)
            self.pending.discard(value)
            self._call(k, self._after(self.inputs[k], key))
            return
        join = Join(self.shapes[value])
        self._collect(join, value, (), {}, key)
        inside = {*join.values}
        join.stored = tuple(j for j, v in enumerate(join.values) if v == value or self._needed(v, inside))
        self.pending.difference_update(join.values)
        single = len(join.members) == 1 and not any(leaf.moves for leaf in join.leaves)
        if single and not self.states_of(join) and self._is_short(join.members[0]):
            self._call(k, self._after(self.inputs[k], key))
            return
        self.kernels += 1
        count = len(join.leaves)
        join.members = [replace(m, args=tuple(count + a if a >= 0 else -1 - a for a in m.args)) for m in join.members]
        at = self._after(join.inputs, key)
        self.keyed.append((at, join))
        self.position.update(dict.fromkeys(join.outputs, at))

    def _is_short(self, member: Member) -> bool:
        """Whether the library computes it in one pass, too."""
        if any(kind.compute is not kind for kind in (*member.kinds, member.gives)):
            return False
        return count_of_words(member.row, member.kinds, member.gives, member.attrs) <= 1

    def states_of(self, join: Join) -> bool:
        return any(v in self.states for v in join.outputs)

    def _after(self, inputs: Sequence[int], key: tuple[int, int] | None) -> tuple[int, int]:
        if key is not None:
            return key
        return max((self.position.get(v, (-1, 0)) for v in inputs), default=(-1, 0))

    def _collect(
        self, join: Join, value: int, moves: tuple[Move, ...], found: dict[MovedValue, int], key: tuple[int, int] | None
    ) -> int:
        """The number of a value among a kernel's leaves (−1 − number) or members."""
        leaf = MovedValue(value, moves)
        if leaf in found:
            return found[leaf]
        source, onward = self._inlined(join, value, moves, key)
        if source is None:
            self.force(value, key)
            plain = math.prod(self.shapes[value]) == 1
            leaf = MovedValue(value, () if plain else moves)
            if leaf not in found:
                join.leaves.append(leaf)
                found[leaf] = -len(join.leaves)
            found[MovedValue(value, moves)] = found[leaf]
            return found[leaf]
        target = MovedValue(source, onward)
        if target not in found:
            k = self.producer[source]
            step, row = self.ops[k]
            assert isinstance(row, Elementwise)
            shape = self.shapes[source]
            args: list[int] = []
            for v in self.inputs[k]:
                widen: tuple[Move, ...] = ()
                if onward and self.shapes[v] != shape and math.prod(self.shapes[v]) > 1:
                    widen = (("broadcast", shape),)
                args.append(self._collect(join, v, (*widen, *onward), found, key))
            kinds = tuple(self.kinds[v] for v in self.inputs[k])
            join.members.append(Member(row, step.attrs, kinds, self.kinds[source], tuple(args)))
            join.values.append(source)
            join.moves.append(onward)
            found[target] = len(join.members) - 1
        found[leaf] = found[target]
        return found[leaf]

    def _inlined(
        self, join: Join, value: int, moves: tuple[Move, ...], key: tuple[int, int] | None
    ) -> tuple[int | None, tuple[Move, ...]]:
        """The elementwise value that a kernel computes for this one, and how that is moved; None: it reads this one."""
        count = math.prod(join.shape)
        full = not (moves and moves[0][0] == "broadcast")
        room = len(join.members) < MAX_MEMBERS and len(join.leaves) < MAX_ARRAYS
        if value not in self.pending or not room or not full or math.prod(self.shapes[value]) != count:
            return None, ()
        if not moves and self.shapes[value] != join.shape:
            return None, ()
        source = value
        while isinstance(self.ops[self.producer[source]][1], View):
            k = self.producer[source]
            step = self.ops[k][0]
            name = step.op
            moves = ((name, tuple(step.attrs["shape" if name == "reshape" else "perm"])), *moves)
            source = self.inputs[k][0]
            if source not in self.pending:
                return None, ()
        if source in join.values and MovedValue(source, moves) not in {
            MovedValue(v, m) for v, m in zip(join.values, join.moves, strict=True)
        }:
            return None, ()  # one value in two orders: the second reads it from memory
        names = [name for name, _ in moves]
        if "reshape" in names:
            if "transpose" in names[: names.index("reshape")] or "reshape" in names[names.index("reshape") + 1 :]:
                return None, ()  # the array would be a copy
            shape = self.shapes[source]
            for v in self.inputs[self.producer[source]]:
                if self.shapes[v] != shape and math.prod(self.shapes[v]) > 1:
                    return None, ()
        return source, moves

    def _needed(self, value: int, inside: set[int]) -> bool:
        """Whether a value is read by others than the members of a kernel."""
        if value in self.ends:
            return True
        for k in self.readers[value]:
            made = self.results[k][0]
            if made in inside:
                continue
            waits = isinstance(self.ops[k][1], View) and made in self.pending
            if not waits or self._needed(made, inside):
                return True
        return False

    # --- when they run ---

    def _hoist(self, first: int) -> None:
        """Put kernels that were forced at the end after the last readers of the states that they overwrite."""
        state_of = dict(zip(self.states, self.first_states, strict=True))
        readers: dict[int, list[tuple[tuple[int, int], Step]]] = {}

        def note(i: int) -> None:
            for v in self.keyed[i][1].inputs:
                readers.setdefault(v, []).append(self.keyed[i])

        def last_read(value: int) -> tuple[int, int]:
            """The key of the last step that reads a value or a view of it."""
            found = (-1, 0)
            for key, step in readers.get(value, ()):
                found = max(found, key)
                if isinstance(step, RowCall) and isinstance(self.ops[step.at][1], View):
                    found = max(found, *map(last_read, step.outputs))
            return found

        for i in range(len(self.keyed)):
            if i >= first:
                key, step = self.keyed[i]
                after = [self.position.get(v, (-1, 0)) for v in step.inputs]
                after += [last_read(state_of[v]) for v in step.outputs if v in state_of]
                self.keyed[i] = max(key, *after, (-1, 0)), step
                self.position.update(dict.fromkeys(step.outputs, self.keyed[i][0]))
            note(i)

    def joined(self) -> Joined:
        order = sorted(range(len(self.keyed)), key=lambda i: (self.keyed[i][0], i))
        steps = [self.keyed[i][1] for i in order]
        last: dict[int, int] = {}
        roots: dict[int, int] = {}  # of a view: the value whose memory it may share
        for n, step in enumerate(steps):
            for v in step.inputs:
                last[v] = last[roots.get(v, v)] = n
            if isinstance(step, RowCall) and isinstance(self.ops[step.at][1], View):
                roots.update({v: roots.get(step.inputs[0], step.inputs[0]) for v in step.outputs})
        kept = {roots.get(v, v) for v in self.ends} | self.ends
        for n, step in enumerate(steps):
            step.drops = tuple(v for v in dict.fromkeys(step.inputs) if last[v] == n and v not in self.ends)
            if isinstance(step, Join):
                step.over = self._overwritten(step, n, last, kept)
        return Joined(steps, self.shapes, self.kinds, self.initial, self.outputs, self.states, self.first_states)

    def _overwritten(self, join: Join, n: int, last: Mapping[int, int], kept: set[int]) -> dict[int, int]:
        """The stored values that may take the place of a state's array: nobody reads that later, nor at another place."""
        over: dict[int, int] = {}
        for value, first in zip(self.states, self.first_states, strict=True):
            if value not in join.outputs or value == first or first in kept or last.get(first, -1) > n:
                continue
            moves = next(leaf.moves for leaf in join.output_leaves() if leaf.value == value)
            alike = all(leaf.moves == moves for leaf in join.leaves if leaf.value == first)
            if alike and all(name == "transpose" for name, _ in moves):
                over[value] = first
        return over


class JoinedRun:
    """Runs joined steps over the arrays of an adapter. call: runs the op of a number on its inputs. views: the numbers of those whose
    results may share memory with their inputs."""

    def __init__(
        self, joined: Joined, xp: ArrayAdapter, call: Callable[[int, list[Array]], Any], views: Collection[int]
    ) -> None:
        self._joined, self._xp, self._call, self._views = joined, xp, call, views

    def run(self, first: Mapping[Place, Array]) -> tuple[list[Array], list[Array]]:
        """The outputs and the next states, of the arrays that places hold at the beginning."""
        joined = self._joined
        values: dict[int, Array] = {v: first[place] for place, v in joined.initial.items()}
        over: set[int] = set()
        for step in joined.steps:
            if isinstance(step, RowCall):
                values.update(zip(step.outputs, self._called(step, values), strict=True))
            else:
                values.update(self._joined_rows(step, values))
                over.update(step.over)
            for v in step.drops:
                del values[v]
        states: list[Array] = []
        for v, before in zip(joined.states, joined.first_states, strict=True):
            own = v == before or v in over
            states.append(values[v] if own else self._xp.copy(values[v].reshape(joined.shapes[v])))
        return [values[v] for v in joined.outputs], states

    def _called(self, step: RowCall, values: Mapping[int, Array]) -> tuple[Array, ...]:
        given = [values[v] for v in step.inputs]
        found = self._call(step.at, given)
        results = found if isinstance(found, tuple) else (found,)
        if step.at in self._views:
            return results
        shared = [any(self._xp.shares(x, y) for y in given) for x in results]
        return tuple(self._xp.copy(x) if s else x for x, s in zip(results, shared, strict=True))

    def _joined_rows(self, join: Join, values: Mapping[int, Array]) -> dict[int, Array]:
        joined, xp = self._joined, self._xp
        inputs = [self._moved(values[leaf.value], leaf.moves) for leaf in join.leaves]
        made = {
            v: values[join.over[v]] if v in join.over else xp.unset(joined.shapes[v], joined.kinds[v])
            for v in join.outputs
        }
        outputs = [self._moved(made[leaf.value], leaf.moves) for leaf in join.output_leaves()]
        assert xp.joined is not None
        xp.joined(join.shape, join.members, join.stored, inputs, outputs)
        return made

    def _moved(self, x: Array, moves: Sequence[Move]) -> Array:
        for name, what in moves:
            if name == "transpose":
                x = self._xp.permute_dims(x, what)
            else:
                x = self._xp.broadcast_to(x, what) if name == "broadcast" else self._xp.reshape(x, what)
        return x
