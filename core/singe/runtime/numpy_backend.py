"""The backend "numpy": Programs whose ops are all on the host, run one by one over whole arrays, with BLAS where there is one.

An intermediate array is dropped after its last reader, or overwritten by it if no other array shares its memory. Sizes in
attributes are evaluated when they are known, and again only when they change. A state is updated in place, or its array is replaced by the computed one.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from weakref import WeakSet

import numpy as np

from .. import shapes
from ..compiler.target import ARRAYS, Target
from ..dtypes import dtype, outward
from ..errors import DeviceError, InputError, SingeError
from ..ir.arrays.numpy import NUMPY_ARRAYS, NUMPY_IN_PLACE
from ..ops import Elementwise, Opaque, Row, Update, View
from ..program.program import HOST, Bind, Check, Host, Place, ProgramData, check_found, sized_by
from ..program.words import AGAIN, COPY, LOOP, UNLESS, settle, ways
from ..shapes import Size
from .backend import HostArray, Span, Timeline
from .donated_inputs import check_donated, writable
from .host_steps import UNFIT, check, found_sizes, row_of, unfit


class NumpyBackend:
    """See the module's docstring."""

    name = "numpy"
    target_name = HOST
    preference = 10
    cpu = True
    target: Target = ARRAYS
    renews = True
    reads_now = True

    def upload(self, array: np.ndarray) -> HostArray:
        return HostArray(array, dtype(array.dtype))

    def download(self, array: HostArray) -> np.ndarray:
        return np.array(array.data)

    def prepare(self, program: ProgramData) -> NumpyExecutable:
        return NumpyExecutable(program)

    def synchronize(self) -> None:
        """There is nothing to wait for."""

    def describe(self) -> Mapping[str, Any]:
        return {"numpy": np.__version__}

    def dispose(self) -> None:
        """There is nothing to free."""


@dataclass
class _Op:
    """A prepared Host op: its row, the inputs that it may overwrite, the place whose array it may overwrite with its
    result, and the places that nothing reads afterwards."""

    at: int
    step: Host
    row: Row
    sizes: tuple[str, ...]  # the sizes that its attributes need
    spent: tuple[int, ...] = ()
    into: Place | None = None
    drops: tuple[Place, ...] = ()
    latest: tuple[tuple[int, ...], Mapping[str, Any]] | None = None

    def attrs(self, sizes: Mapping[str, int]) -> Mapping[str, Any]:
        """The attributes, which need sizes, with numbers in place of these; the latest result is cached."""
        key = tuple(sizes[s] for s in self.sizes)
        if self.latest is None or self.latest[0] != key:
            self.latest = key, {k: _fixed(v, sizes) for k, v in self.step.attrs.items()}
        return self.latest[1]


@dataclass
class _Run:
    """One run: the arrays by place, and the sizes known so far. If it is timed, the position of each group that ran, when it
    began, and when it ended."""

    values: dict[Place, np.ndarray]
    sizes: dict[str, int]
    times: list[tuple[int, float, float]] | None = None


class NumpyExecutable:
    """A Program whose weights are views of its block.

    A place holds one value at a time, so arrays are kept by place. Two places may share an array (a view, or a copy
    that was not made), except places that a step updates in place: these have arrays of their own.
    """

    def __init__(self, program: ProgramData) -> None:
        if program.target != HOST:
            raise DeviceError(
                f"the numpy backend runs programs compiled for {HOST!r}, this one is for {program.target!r}"
                "; load it on a device of that target, or compile the model again"
            )
        self.program = program
        # An empty weight takes no bytes, so its place equals that of the next weight: its number is used instead.
        self._places: list[Place] = [
            ("weights", i) if b.place[0] == "weights" else b.place for i, b in enumerate(program.buffers)
        ]
        self._consts: dict[Place, np.ndarray] = {
            self._places[i]: program.view(b).view(b.dtype.numpy).reshape(_numbers(b.shape, {}))
            for i, b in enumerate(program.buffers)
            if b.place[0] == "weights"
        }
        self._given = program.symbols
        self._sized_by = sized_by(program.buffers, self._given)
        self._ops: dict[int, _Op] = {}  # by the number of the group
        self._drops: dict[int, tuple[Place, ...]] = {}  # the places that a group other than an op is the last to read
        self._dead: dict[
            int, tuple[Place, ...]
        ] = {}  # those that some way to a group leaves, and nothing reads from there
        self._own: set[Place] = {self._places[s.buffer] for s in program.states}
        self._specialised: dict[int, NumpyExecutable] = {}
        self._states: WeakSet[HostArray] = WeakSet()
        self._disposed = False
        self._ways = ways(program.groups)
        self._fixed = self._fixed_shapes()
        self._prepare()
        self._drop()
        straight = len(self._ops) == len(program.groups)
        self._straight = list(self._ops.values()) if straight else None

    def _fixed_shapes(self) -> list[tuple[int, ...]] | None:
        """The shapes of the inputs, if no run of these has anything to find or to check about sizes."""
        p = self.program
        known = all(type(d) is int for b in p.buffers for d in b.shape)
        if not known or p.specialised or any(isinstance(s, Check) for s in p.stops) or p.unmet({}) is not None:
            return None
        return [_numbers(p.buffers[i].shape, {}) for i in p.inputs]

    def _prepare(self) -> None:
        for k, group in enumerate(self.program.groups):
            step = group.stop
            if group.head >= 0:
                raise DeviceError("the numpy backend cannot call a kernel")
            if not isinstance(step, Host):
                continue
            row, into = row_of(step), self._places[step.outputs[0]]
            op = self._ops[k] = _Op(group.at, step, row, tuple(sorted(shapes.symbols(step.dims))))
            if isinstance(row, Update) and self._in_place(step):
                self._own.add(into)
            over = [number for number, i in enumerate(step.inputs) if self._places[i] == into]
            if isinstance(row, Elementwise) and len(over) == 1:
                op.spent = tuple(over)
                self._own.add(into)
            elif isinstance(row, Elementwise) and into[0] == "input":
                op.into = into
                self._own.add(into)

    def _in_place(self, step: Host) -> bool:
        return self._places[step.inputs[0]] == self._places[step.outputs[0]]

    def _drop(self) -> None:
        """Find the values that each group is the last to read, and those that it may overwrite."""
        groups, end = self.program.groups, len(self._ways)
        before: list[list[int]] = [[] for _ in range(end + 1)]
        for k, there in enumerate(self._ways):
            for to in there:
                before[to].append(k)
        slots = [
            tuple(frozenset(p for i in named if (p := self._places[i])[0] == "slot") for named in (g.reads, g.writes))
            for g in groups
        ]
        # Whether a group's results share no array with what it reads.
        fresh = [
            not isinstance(self._ops[k].row, View) if k in self._ops else g.head != COPY for k, g in enumerate(groups)
        ]

        def needed(k: int, later: frozenset[Place]) -> frozenset[Place]:
            """The places that are read from a group on, if those in `later` are read after it."""
            return later if k == end else (later - slots[k][1]) | slots[k][0]

        def share(k: int, shared: frozenset[Place]) -> frozenset[Place]:
            """The places whose arrays others may share after a group, if those in `shared` may before it."""
            reads, writes = slots[k]
            return shared - writes if fresh[k] else shared | reads | writes

        nothing: frozenset[Place] = frozenset()
        # The ways from the end, in numbers from there.
        back = [[end - to for to in before[end - k]] for k in range(end)]
        ahead = settle(back, nothing, lambda k, later: needed(end - k, later), frozenset.union)
        read = [later or nothing for later in ahead][::-1]
        shared = [places or nothing for places in settle(self._ways, nothing, share, frozenset.union)]
        for k in range(end):
            reads, writes = slots[k]
            last = {p for p in reads if p not in read[k] or p in writes}
            op = self._ops.get(k)
            if op is not None:
                op.drops = tuple(last)
                alone = last - shared[k] if fresh[k] else nothing
                op.spent = (
                    *op.spent,
                    *(j for j, i in enumerate(op.step.inputs) if self._places[i] in alone and j not in op.spent),
                )
            elif last - writes:
                self._drops[k] = tuple(last - writes)
            left = nothing.union(*(read[b] for b in before[k])) - needed(k, read[k])
            if left:
                self._dead[k] = tuple(left)

    def new_states(self) -> list[HostArray]:
        """Arrays with the initial values of the states."""
        self._check_held()
        found = []
        for s in self.program.states:
            b = self.program.buffers[s.buffer]
            zeros = np.zeros(_numbers(b.shape, {}), b.dtype.numpy)
            found.append(
                HostArray(zeros if s.initial is None else self._consts[self._places[s.initial]].copy(), b.dtype)
            )
        self._states.update(found)
        return found

    def run(self, inputs: Sequence[HostArray], states: Sequence[HostArray] = ()) -> list[HostArray]:
        if self.program.donated:
            check_donated(self.program, inputs)
        return self._arrays(inputs, self._run([x.data for x in inputs], states)[0])

    def call(self, inputs: Sequence[np.ndarray], states: Sequence[HostArray] = ()) -> list[np.ndarray]:
        return [outward(x) for x in self._run(inputs, states)[0]]

    def _arrays(self, inputs: Sequence[HostArray], outputs: Sequence[np.ndarray]) -> list[HostArray]:
        """The arrays that a run returns for these outputs: the donated inputs that hold them, otherwise new ones."""
        found = []
        for k, value in enumerate(outputs):
            donated = self.program.donated.get(k)
            if donated is None:
                found.append(HostArray(value, self.program.buffers[self.program.outputs[k]].dtype))
            else:
                found.append(inputs[donated])
                found[-1].data = value
        return found

    def profile(self, inputs: Sequence[HostArray], states: Sequence[HostArray] = ()) -> Timeline:
        times: list[tuple[int, float, float]] = []
        start = time.perf_counter()
        outputs, sizes = self._run([x.data for x in inputs], states, times)
        seconds = time.perf_counter() - start
        spans = tuple(Span(k, begin - start, end - begin) for k, begin, end in times)
        return Timeline(self._arrays(inputs, outputs), seconds, spans, "wall clock around each step", sizes)

    def _run(
        self,
        inputs: Sequence[np.ndarray],
        states: Sequence[HostArray],
        times: list[tuple[int, float, float]] | None = None,
    ) -> tuple[list[np.ndarray], Mapping[str, int]]:
        """The outputs of a run, and its sizes. `times`: as in _Run."""
        self._check_held()
        p = self.program
        if len(states) != len(p.states):
            raise InputError(f"the program has {len(p.states)} states, got {len(states)}: new_states() makes them")
        try:
            if self._fixed is not None and [a.shape for a in inputs] == self._fixed:
                run = _Run({}, {}, times)
                return self._carry_out(writable(p, inputs) if p.donated else inputs, states, run), run.sizes
            sizes = p.sizes({p.buffers[i].name: a.shape for i, a in zip(p.inputs, inputs, strict=True)})
            run = _Run({}, dict(sizes), times)
            return self._at(sizes)._carry_out(writable(p, inputs), states, run), run.sizes
        except MemoryError as e:
            raise DeviceError(f"numpy: not enough memory for this run: {e}; give smaller inputs or batches") from e

    def _at(self, sizes: Mapping[str, int]) -> NumpyExecutable:
        """The executable for these sizes: itself, or one for the Program's steps that are specialised to them."""
        chosen = self.program.at(sizes)
        if chosen is self.program or chosen is self.program.programs[0]:
            return self
        if id(chosen) not in self._specialised:
            self._specialised[id(chosen)] = NumpyExecutable(chosen)
        return self._specialised[id(chosen)]

    def _carry_out(
        self,
        inputs: Sequence[np.ndarray],
        states: Sequence[HostArray],
        run: _Run,
    ) -> list[np.ndarray]:
        p = self.program
        run.values.update(self._consts)
        for i, a in zip(p.inputs, inputs, strict=True):
            run.values[self._places[i]] = a
        for s, state in zip(p.states, states, strict=True):
            run.values[self._places[s.buffer]] = state.data
        with np.errstate(all="ignore"):
            self._follow(run)
        for s, state in zip(p.states, states, strict=True):
            state.data = run.values[self._places[s.buffer]]
        outputs: list[np.ndarray] = []
        taken = [*inputs, *[state.data for state in states]]  # arrays that an output must not share
        for k, i in enumerate(p.outputs):
            value = run.values[self._places[i]]
            if k in p.donated:
                if (
                    value is not inputs[p.donated[k]]
                ):  # of a type, or by an op, that NumPy computes in an array of its own
                    np.copyto(inputs[p.donated[k]], value)
                outputs.append(inputs[p.donated[k]])
                continue
            outputs.append(self._apart(value, i, run.sizes, taken))
            taken.append(outputs[-1])
        return outputs

    def _follow(self, run: _Run) -> None:
        if self._straight is not None:
            for op in self._straight:
                begin = time.perf_counter() if run.times is not None else 0.0
                self._op(op, run)
                if run.times is not None:
                    run.times.append((op.at, begin, time.perf_counter()))
            return
        groups, after = self.program.groups, self._ways
        left: dict[int, int] = {}  # the turns of loops, by where their bodies begin
        k = 0
        while k < len(groups):
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
                run.times.append((group.at, begin, time.perf_counter()))
            k = onward

    def _first(self, run: _Run, i: int) -> Any:
        array = run.values[self._places[i]]
        if array.size == 0:
            raise DeviceError(
                f"the run reads an element of {self.program.buffers[i].name!r}, which is empty: export the model again"
            )
        return array.reshape(-1)[0]

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

    def _keep(self, run: _Run, place: Place, array: np.ndarray, fresh: bool) -> None:
        """Store an array in a place. fresh: whether no other place has this array."""
        if place[0] == "state":
            before = run.values[place]
            if fresh and array.base is None and array.shape == before.shape and array.flags.writeable:
                run.values[place] = array
            elif array is not before:
                np.copyto(before, array.reshape(before.shape))
        else:
            run.values[place] = array if fresh or not self._own else array.copy()

    def _op(self, op: _Op, run: _Run) -> None:
        step, row = op.step, op.row
        given = [run.values[self._places[i]] for i in step.inputs]
        attrs = op.attrs(run.sizes) if op.sizes else step.attrs
        try:
            if isinstance(row, Elementwise):
                into = None if op.into is None else run.values[op.into]
                out: Any = NUMPY_ARRAYS.elementwise(row, given, attrs, op.spent, into)
            else:
                over = isinstance(row, Update) and (self._in_place(step) or 0 in op.spent)
                out = row.run(NUMPY_IN_PLACE if over else NUMPY_ARRAYS, given, attrs)
        except SingeError:
            raise
        except UNFIT as e:
            raise unfit(step, given, e) from e
        for place in op.drops:
            del run.values[place]
        if isinstance(row, Opaque):
            results = zip(step.outputs, out if isinstance(out, tuple) else (out,), strict=True)
            self._go_on(run, {k: n for i, array in results for k, n in self._found(i, array.shape).items()})
        fresh = not isinstance(row, View)
        for i, array in zip(step.outputs, out if isinstance(out, tuple) else (out,), strict=True):
            self._keep(run, self._places[i], array, fresh)

    def _found(self, i: int, shape: tuple[int, ...]) -> dict[str, int]:
        """The sizes that are found from the result of an op."""
        return found_sizes(self.program.buffers[i].shape, shape, self._given)

    def _apart(
        self, value: np.ndarray, number: int, sizes: Mapping[str, int], taken: Sequence[np.ndarray]
    ) -> np.ndarray:
        """The value of a buffer in a separate array: not a view, and not one of `taken`."""
        shape: Any = self.program.buffers[number].shape
        if self._fixed is None:
            shape = _numbers(shape, sizes)
        own = value.base is None and value.flags.carray
        for x in taken:
            own = own and value is not x
        value = value if own else np.array(value, order="C")
        if value.shape == shape:
            return value
        if value.size != shapes.product(shape):
            raise DeviceError(
                f"numpy: output {self.program.buffers[number].name!r} has the shape {value.shape}, expected {shape}"
            )
        return value.reshape(shape)

    def memory(self) -> Mapping[str, int]:
        states = sum(x.data.nbytes for x in self._states)
        shared = sum(block.nbytes for block in self.program.shared.values())
        return {"weights": self.program.weights.nbytes, "shared": shared, "scratch": 0, "states": states}

    def _check_held(self) -> None:
        if self._disposed:
            raise DeviceError("numpy: this program was disposed of; compile or load it again")

    def dispose(self) -> None:
        self._disposed = True
        self._consts = {}
        self._specialised = {}


def _numbers(shape: Sequence[Any], sizes: Mapping[str, int]) -> tuple[int, ...]:
    return tuple(shapes.known(d, sizes) for d in shape)


def _fixed(value: Any, sizes: Mapping[str, int]) -> Any:
    if isinstance(value, tuple):
        return tuple(_fixed(v, sizes) for v in value)
    return shapes.known(value, sizes) if isinstance(value, Size) else value
