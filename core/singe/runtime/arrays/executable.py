"""ArrayExecutable: Programs whose ops are all on the host, run one by one over whole arrays of some library.

An intermediate array is dropped after its last reader, or overwritten by it if no other array shares its memory and the adapter reuses arrays.
Sizes in attributes are evaluated when they are known, and again only when they change. A state is updated in place, or its array is replaced
by the computed one. What the library lacks is computed by NumPy: arrays of its missing element types are NumPy's.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeAlias
from weakref import WeakSet

import numpy as np

from ... import shapes
from ...dtypes import DType
from ...errors import DeviceError, InputError, SingeError
from ...ir.arrays.adapter import Array, ArrayAdapter
from ...ir.arrays.numpy import NUMPY_ARRAYS
from ...late_dataclass import dataclass
from ...lazy_names import LateModule
from ...ops import Elementwise, Opaque, Update, View
from ...program.program import HOST, Bind, Check, Place, ProgramData, check_found, sized_by
from ...program.words import AGAIN, COPY, LOOP, UNLESS, ways
from ...time_limits import NO_LIMIT, in_force, time_limit
from ..backend import LibraryArray, Span, Timeline
from ..donated_inputs import check_donated, writable
from ..host_steps import check, found_sizes, unfit
from .prepared import PreparedOp, closed, numbers, prepare

if TYPE_CHECKING:
    from . import joins
else:
    joins = LateModule("runtime.arrays.joins")

MOST_CLOSED: Final = 4
"""How many sets of open sizes have executables of their own: a library keeps scratch memory, and what it compiled, for each."""
MOST_MET: Final = 1024
"""How many sets of sizes that may recur are remembered: then all are forgotten, so that those that never do take no memory."""

Keep: TypeAlias = Callable[[np.ndarray, DType], Array]
"""The array of a weight ↦ the library's, or the same if the library lacks its element type."""


@dataclass
class _Run:
    """One run: the arrays by place, and the sizes known so far. If it is timed, the position of each group that ran, when it
    began, and when it ended."""

    values: dict[Place, Array]
    sizes: dict[str, int]
    times: list[tuple[int, float, float]] | None = None


class ArrayExecutable:
    """A Program over the arrays of an adapter. `keep` gives the array of a weight, which is a view of the Program's block.

    A place holds one value at a time, so arrays are kept by place. Two places may share an array (a view, or a copy
    that was not made), except places that a step updates in place: these have arrays of their own.
    """

    made: type[LibraryArray] = LibraryArray

    def __init__(self, program: ProgramData, name: str, xp: ArrayAdapter, keep: Keep) -> None:
        self._name, self._xp, self._keep_weight = name, xp, keep
        if program.target != HOST:
            raise DeviceError(
                f"the backend {name!r} runs programs compiled for {HOST!r}, this one is for {program.target!r}"
                "; load it on a device of that target, or compile the model again"
            )
        self.program = program
        # An empty weight takes no bytes, so its place equals that of the next weight: its number is used instead.
        self._places: list[Place] = [
            ("weights", i) if b.place[0] == "weights" else b.place for i, b in enumerate(program.buffers)
        ]
        self._consts: dict[Place, Array] = {
            self._places[i]: keep(program.view(b).view(b.dtype.numpy).reshape(numbers(b.shape, {})), b.dtype)
            for i, b in enumerate(program.buffers)
            if b.place[0] == "weights"
        }
        self._given = program.symbols
        self._sized_by = sized_by(program.buffers, self._given)
        prepared = prepare(program, self._places, name, xp)
        self._ops, self._drops, self._dead = prepared.ops, prepared.drops, prepared.dead
        self._own, self._overwrites = prepared.own, prepared.overwrites
        self._specialised: dict[int, ArrayExecutable] = {}
        self._states: WeakSet[LibraryArray] = WeakSet()
        self._disposed = False
        self._ways = ways(program.groups)
        self._fixed = self._fixed_shapes()
        straight = len(self._ops) == len(program.groups)
        self._straight = list(self._ops.values()) if straight else None
        self._calls: list[PreparedOp] = []
        self._beside: list[PreparedOp] = []
        """What NumPy alone computes, as of keys of random numbers: no other step has to do with it."""
        self._copies: dict[int, list[tuple[Place, Place]]] = {}
        """The copies from place to place before the call of a number."""
        one_call = self._calls_alone()
        traced = xp.traced(self._compute) if one_call else None
        one_call = one_call and self._fixed is not None
        self._joined = self._joined_run() if one_call and xp.joined is not None and not self._overwrites else None
        self._traced = traced if one_call else None
        self._closes = traced is not None and bool(program.symbols) and not program.specialised
        self._met: set[tuple[int, ...]] = set()
        """The sizes of runs so far, of a Program that `_closes`."""
        self._closed: dict[tuple[int, ...], ArrayExecutable] = {}
        """The executables for sizes that recurred: the library takes these as one call, since no size of them is open."""

    def _is_beside(self, op: PreparedOp) -> bool:
        return not any(self.program.buffers[i].dtype in self._xp.dtypes for i in (*op.step.inputs, *op.step.outputs))

    def _calls_alone(self) -> bool:
        """Whether each run of the same sizes calls the same functions of the library, but for what is beside it."""
        used = {*self.program.outputs}
        for k, group in enumerate(self.program.groups):
            op = self._ops.get(k)
            if op is not None:
                (self._beside if self._is_beside(op) else self._calls).append(op)
            elif group.head == COPY:
                copy = self._places[group.reads[0]], self._places[group.writes[0]]
                self._copies.setdefault(len(self._calls), []).append(copy)
                used.update(group.reads)
            else:
                return False
        if any(op.hosted for op in self._calls):
            return False
        used.update(i for op in self._calls for i in (*op.step.inputs, *op.step.outputs))
        return all(self.program.buffers[i].dtype in self._xp.dtypes for i in used)

    def _joined_run(self) -> joins.JoinedRun | None:
        """The calls with elementwise rows joined; None if none can be."""
        rows = [(op.step, op.row) for op in self._calls]
        joined = joins.join_steps(self.program, self._places, rows, self._copies)
        views = {k for k, (_, row) in enumerate(rows) if isinstance(row, View)}
        return None if joined is None else joins.JoinedRun(joined, self._xp, self._called, views)

    def _called(self, k: int, inputs: list[Array]) -> Any:
        """What the op of a number gives."""
        op = self._calls[k]
        return self._result(op, inputs, op.step.attrs, None)

    def _compute(
        self, inputs: Sequence[Array], states: Sequence[Array], weights: Mapping[Place, Array]
    ) -> tuple[list[Array], list[Array]]:
        """The outputs, and the next values of the states."""
        p, run = self.program, _Run(dict(weights), {})
        run.values.update((self._places[i], x) for i, x in zip(p.inputs, inputs, strict=True))
        run.values.update((self._places[s.buffer], x) for s, x in zip(p.states, states, strict=True))
        if self._joined is not None:
            outputs, after = self._joined.run(run.values)
            return [x.reshape(p.buffers[i].shape) for i, x in zip(p.outputs, outputs, strict=True)], after
        for k, op in enumerate([*self._calls, None]):
            for before, place in self._copies.get(k, ()):
                self._keep(run, place, run.values[before], False)
            if op is not None:
                self._op(op, run)
        shaped = [run.values[self._places[i]].reshape(p.buffers[i].shape) for i in p.outputs]
        return shaped, [run.values[self._places[s.buffer]] for s in p.states]

    def _in_one_call(self, inputs: Sequence[Array], states: Sequence[LibraryArray]) -> list[Array] | None:
        """The outputs of `_traced`; None if a function needs the values of arrays, so that the steps must be called one by one."""
        assert self._traced is not None
        try:
            outputs, after = self._traced(list(inputs), [state.data for state in states], self._consts)
        except DeviceError:
            self._traced = None
            return None
        for state, value in zip(states, after, strict=True):
            state.data = value
        if self._beside:
            self._run_beside(inputs, states)
        return outputs

    def _run_beside(self, inputs: Sequence[Array], states: Sequence[LibraryArray]) -> None:
        p, run = self.program, _Run(dict(self._consts), {})
        run.values.update((self._places[i], x) for i, x in zip(p.inputs, inputs, strict=True))
        placed = [(self._places[s.buffer], state) for s, state in zip(p.states, states, strict=True)]
        run.values.update((place, state.data) for place, state in placed)
        for op in self._beside:
            self._op(op, run)
        for place, state in placed:
            state.data = run.values[place]

    def _fixed_shapes(self) -> list[tuple[int, ...]] | None:
        """The shapes of the inputs, if no run of these has anything to find or to check about sizes."""
        p = self.program
        known = all(type(d) is int for b in p.buffers for d in b.shape)
        if not known or p.specialised or any(isinstance(s, Check) for s in p.stops) or p.unmet({}) is not None:
            return None
        return [numbers(p.buffers[i].shape, {}) for i in p.inputs]

    def new_states(self) -> list[LibraryArray]:
        """Arrays with the initial values of the states."""
        self._check_held()
        found = []
        for s in self.program.states:
            b = self.program.buffers[s.buffer]
            if s.initial is None:
                first = self._given_array(np.zeros(numbers(b.shape, {}), b.dtype.numpy), b.dtype)
            else:
                first = self._copy(self._consts[self._places[s.initial]])
            found.append(self.made(first, b.dtype))
        self._states.update(found)
        return found

    def run(self, inputs: Sequence[LibraryArray], states: Sequence[LibraryArray] = ()) -> list[LibraryArray]:
        if self.program.donated:
            check_donated(self.program, inputs)
        return self._arrays(inputs, self._run([x.data for x in inputs], states)[0])

    def _arrays(self, inputs: Sequence[LibraryArray], outputs: Sequence[Array]) -> list[LibraryArray]:
        """The arrays that a run returns for these outputs: the donated inputs that hold them, otherwise new ones."""
        found = []
        for k, value in enumerate(outputs):
            donated = self.program.donated.get(k)
            if donated is None:
                found.append(self.made(value, self.program.buffers[self.program.outputs[k]].dtype))
            else:
                found.append(inputs[donated])
                found[-1].data = value
        return found

    def profile(self, inputs: Sequence[LibraryArray], states: Sequence[LibraryArray] = ()) -> Timeline:
        times: list[tuple[int, float, float]] = []
        start = time.perf_counter()
        outputs, sizes = self._run([x.data for x in inputs], states, times)
        seconds = time.perf_counter() - start
        spans = tuple(Span(k, begin - start, end - begin) for k, begin, end in times)
        return Timeline(self._arrays(inputs, outputs), seconds, spans, "wall clock around each step", sizes)

    def _run(
        self,
        inputs: Sequence[Array],
        states: Sequence[LibraryArray],
        times: list[tuple[int, float, float]] | None = None,
    ) -> tuple[list[Array], Mapping[str, int]]:
        """The outputs of a run, and its sizes. `times`: as in _Run."""
        self._check_held()
        p = self.program
        if len(states) != len(p.states):
            raise InputError(f"the program has {len(p.states)} states, got {len(states)}: new_states() makes them")
        try:
            if self._fixed is not None and [a.shape for a in inputs] == self._fixed:
                run = _Run({}, {}, times)
                return self._carry_out(self._writable(inputs) if p.donated else inputs, states, run), run.sizes
            sizes = p.sizes({p.buffers[i].name: tuple(a.shape) for i, a in zip(p.inputs, inputs, strict=True)})
            run = _Run({}, dict(sizes), times)
            return self._at(sizes)._carry_out(self._writable(inputs), states, run), run.sizes
        except self._xp.exhausted as e:
            raise DeviceError(
                f"{self._name}: not enough memory for this run: {e}; give smaller inputs or batches"
            ) from e

    def _writable(self, inputs: Sequence[Array]) -> Sequence[Array]:
        return writable(self.program, inputs) if self._xp.reuses else inputs

    def _at(self, sizes: Mapping[str, int]) -> ArrayExecutable:
        """The executable for these sizes: itself, one for the Program's steps that are specialised to them, or one without open sizes."""
        if self._closes:
            return self._at_closed(sizes)
        chosen = self.program.at(sizes)
        if chosen is self.program or chosen is self.program.programs[0]:
            return self
        if id(chosen) not in self._specialised:
            self._specialised[id(chosen)] = type(self)(chosen, self._name, self._xp, self._keep_weight)
        return self._specialised[id(chosen)]

    def _at_closed(self, sizes: Mapping[str, int]) -> ArrayExecutable:
        """The executable for the first few sets of sizes that recur, once they do; for others itself."""
        key = tuple(sizes[name] for name in sorted(sizes))
        if key in self._met and key not in self._closed and len(self._closed) < MOST_CLOSED:
            self._closed[key] = type(self)(closed(self.program, sizes), self._name, self._xp, self._keep_weight)
        if len(self._closed) < MOST_CLOSED:
            if len(self._met) == MOST_MET:
                self._met.clear()
            self._met.add(key)
        return self._closed.get(key, self)

    def _carry_out(
        self,
        inputs: Sequence[Array],
        states: Sequence[LibraryArray],
        run: _Run,
    ) -> list[Array]:
        p = self.program
        run.values.update(self._consts)
        for i, a in zip(p.inputs, inputs, strict=True):
            run.values[self._places[i]] = a
        for s, state in zip(p.states, states, strict=True):
            run.values[self._places[s.buffer]] = state.data
        with self._xp.scope():
            if self._traced is not None and run.times is None:
                found = self._in_one_call(inputs, states)
                if found is not None:
                    return found
            self._follow(run)
            return self._results(inputs, states, run)

    def _results(self, inputs: Sequence[Array], states: Sequence[LibraryArray], run: _Run) -> list[Array]:
        """The outputs; the states get their next values."""
        p = self.program
        for s, state in zip(p.states, states, strict=True):
            state.data = run.values[self._places[s.buffer]]
        outputs: list[Array] = []
        taken = [*inputs, *[state.data for state in states]]  # arrays that an output must not share
        for k, i in enumerate(p.outputs):
            value = run.values[self._places[i]]
            if k in p.donated:
                if self._xp.reuses:
                    if (
                        value is not inputs[p.donated[k]]
                    ):  # of a type, or by an op, that NumPy computes in an array of its own
                        np.copyto(inputs[p.donated[k]], value)
                    value = inputs[p.donated[k]]
                outputs.append(value)
                continue
            outputs.append(self._apart(value, i, run.sizes, taken))
            taken.append(outputs[-1])
        return outputs

    def _follow(self, run: _Run) -> None:
        limit = time_limit() if in_force else NO_LIMIT
        is_limited = limit is not NO_LIMIT
        if self._straight is not None:
            for op in self._straight:
                if is_limited:
                    limit.check()
                begin = time.perf_counter() if run.times is not None else 0.0
                self._op(op, run)
                if run.times is not None:
                    self._wait(run, op.step.outputs)
                    run.times.append((op.at, begin, time.perf_counter()))
            return
        groups, after = self.program.groups, self._ways
        left: dict[int, int] = {}  # the turns of loops, by where their bodies begin
        k = 0
        while k < len(groups):
            if is_limited:
                limit.check()
            for place in self._dead.get(k, ()):
                run.values.pop(place, None)
            group, there = groups[k], after[k]
            begin = time.perf_counter() if run.times is not None else 0.0
            onward = there[0]
            if group.head == COPY:
                self._keep(run, self._places[group.writes[0]], run.values[self._places[group.reads[0]]], False)
            elif group.head == UNLESS:
                onward = there[0] if self._first(run, group.reads[0]) else there[1]
            elif group.head == LOOP:
                left[k + 1] = shapes.known(self.program.counts[group.rest[1]], run.sizes)
                onward = there[0] if left[k + 1] > 0 else there[1]
            elif group.head == AGAIN:
                left[there[1]] -= 1
                onward = there[1] if left[there[1]] > 0 else there[0]
            elif k in self._ops:
                self._op(self._ops[k], run)
            elif isinstance(group.stop, Bind):
                self._bind(group.stop, run)
            elif isinstance(group.stop, Check):
                check(group.stop, run.sizes)
            for place in self._drops.get(k, ()):
                run.values.pop(place, None)
            if run.times is not None and (group.head == COPY or group.stop is not None):
                self._wait(run, self._ops[k].step.outputs if k in self._ops else ())
                run.times.append((group.at, begin, time.perf_counter()))
            k = onward

    def _wait(self, run: _Run, numbers: Sequence[int]) -> None:
        found = [run.values[self._places[i]] for i in numbers if self._places[i] in run.values]
        self._xp.wait([x for x in found if not isinstance(x, np.ndarray)])

    def _first(self, run: _Run, i: int) -> Any:
        array = run.values[self._places[i]]
        if 0 in array.shape:
            raise DeviceError(
                f"the run reads an element of {self.program.buffers[i].name!r}, which is empty: export the model again"
            )
        return array.reshape(-1)[0] if isinstance(array, np.ndarray) else self._xp.item(array)

    def _bind(self, step: Bind, run: _Run) -> None:
        if step.buffer is not None:
            found = int(self._first(run, step.buffer))
        else:
            assert step.dim is not None
            found = shapes.known(step.dim, run.sizes)
        self._go_on(run, {step.size: found})

    def _go_on(self, run: _Run, new: Mapping[str, int]) -> None:
        """Add sizes that were found to the run, and check the buffers that depend on them."""
        run.sizes.update(new)
        named = dict.fromkeys(i for name in new for i in self._sized_by.get(name, ()))
        check_found(new, (self.program.buffers[i] for i in named), run.sizes)

    def _keep(self, run: _Run, place: Place, array: Array, fresh: bool) -> None:
        """Store an array in a place. fresh: whether no other place has this array."""
        if not self._xp.reuses:
            if place[0] == "state":
                array = array.reshape(run.values[place].shape)
            run.values[place] = self._copy(array) if place in self._own or (self._overwrites and not fresh) else array
        elif place[0] == "state":
            before = run.values[place]
            if fresh and array.base is None and array.shape == before.shape and array.flags.writeable:
                run.values[place] = array
            elif array is not before:
                np.copyto(before, array.reshape(before.shape))
        else:
            run.values[place] = array if fresh or not self._own else array.copy()

    def _copy(self, array: Array) -> Array:
        """An array with the same elements that nothing else overwrites."""
        if self._xp.in_place is None:
            return array
        return array.copy() if isinstance(array, np.ndarray) else self._xp.copy(array)

    def _given_array(self, array: np.ndarray, kind: DType) -> Array:
        """NumPy's array as one of the library, if that has its element type."""
        if kind not in self._xp.dtypes:
            return array
        with self._xp.scope():
            return self._xp.asarray(array, kind)

    def _op(self, op: PreparedOp, run: _Run) -> None:
        step, row = op.step, op.row
        given = [run.values[self._places[i]] for i in step.inputs]
        attrs = op.attrs(run.sizes) if op.sizes else step.attrs
        out = self._result(op, given, attrs, None if op.into is None else run.values[op.into])
        for place in op.drops:
            del run.values[place]
        if isinstance(row, Update) and out is given[0] and not self._xp.reuses:  # overwritten
            run.values[self._places[step.outputs[0]]] = out
            return
        if isinstance(row, Opaque):
            results = zip(step.outputs, out if isinstance(out, tuple) else (out,), strict=True)
            self._go_on(run, {k: n for i, array in results for k, n in self._found(i, tuple(array.shape)).items()})
        fresh = not isinstance(row, View)
        for i, array in zip(step.outputs, out if isinstance(out, tuple) else (out,), strict=True):
            self._keep(run, self._places[i], array, fresh)

    def _result(self, op: PreparedOp, inputs: list[Array], attrs: Mapping[str, Any], into: Array | None) -> Any:
        """What an op gives for some inputs. into: the array that it may overwrite, beside those that are spent."""
        row = op.row
        try:
            if op.hosted:
                return self._on_host(op, inputs, attrs)
            if isinstance(row, Elementwise):
                return self._xp.elementwise(row, inputs, attrs, op.spent, into)
            over = isinstance(row, Update) and (op.in_place or 0 in op.spent)
            return row.run((over and self._xp.in_place) or self._xp, inputs, attrs)
        except (SingeError, *self._xp.exhausted):
            raise
        except self._xp.unfit as e:
            raise unfit(op.step, inputs, e) from e

    def _on_host(self, op: PreparedOp, inputs: Sequence[Array], attrs: Mapping[str, Any]) -> Any:
        """What NumPy computes from the inputs, as arrays of the library."""
        host = [x if isinstance(x, np.ndarray) else self._xp.host(x) for x in inputs]
        with NUMPY_ARRAYS.scope():
            out = op.row.run(NUMPY_ARRAYS, host, attrs)
        kinds = [self.program.buffers[i].dtype for i in op.step.outputs]
        results = out if isinstance(out, tuple) else (out,)
        return tuple(self._given_array(np.asarray(y), kind) for y, kind in zip(results, kinds, strict=True))

    def _found(self, i: int, shape: tuple[int, ...]) -> dict[str, int]:
        """The sizes that are found from the result of an op."""
        return found_sizes(self.program.buffers[i].shape, shape, self._given)

    def _apart(self, value: Array, number: int, sizes: Mapping[str, int], taken: Sequence[Array]) -> Array:
        """The value of a buffer in a separate array: not a view, and not one of `taken`."""
        shape: Any = self.program.buffers[number].shape
        if self._fixed is None:
            shape = numbers(shape, sizes)
        value = (NUMPY_ARRAYS if isinstance(value, np.ndarray) else self._xp).apart(value, taken)
        if value.shape == shape:
            return value
        if shapes.product(value.shape) != shapes.product(shape):
            raise DeviceError(
                f"{self._name}: output {self.program.buffers[number].name!r} has the shape {value.shape}, expected {shape}"
            )
        return value.reshape(shape)

    def memory(self) -> Mapping[str, int]:
        states = sum(x.data.nbytes for x in self._states)
        shared = sum(block.nbytes for block in self.program.shared.values())
        return {"weights": self.program.weights.nbytes, "shared": shared, "scratch": 0, "states": states}

    def _check_held(self) -> None:
        if self._disposed:
            raise DeviceError(f"{self._name}: this program was disposed of; compile or load it again")

    def dispose(self) -> None:
        self._disposed = True
        self._consts = {}
        self._specialised = {}
        self._closed = {}
