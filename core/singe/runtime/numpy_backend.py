"""The backend "numpy": Programs of host steps, run op by op over whole arrays, with BLAS where there is one.

An intermediate array is dropped after its last reader. Sizes in attributes get their numbers when the shapes of the
inputs are known, anew only when these change.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from .. import shapes
from ..compiler.target import HOST
from ..dtypes import dtype
from ..errors import DeviceError, InputError
from ..ops import Elementwise, Row, View, find_row
from ..program.program import Copy, Host, ProgramData
from ..shapes import Size
from .backend import HostArray, Span, Timeline


class NumpyBackend:
    """See the module's docstring."""

    name = "numpy"
    target_name = HOST
    preference = 10
    target = None

    def upload(self, array: np.ndarray) -> HostArray:
        return HostArray(array, dtype(array.dtype))

    def download(self, array: HostArray) -> np.ndarray:
        return np.array(array.data)

    def prepare(self, program: ProgramData) -> NumpyExecutable:
        return NumpyExecutable(program)

    def synchronize(self) -> None:
        """Nothing is ever under way."""

    def describe(self) -> Mapping[str, Any]:
        return {"numpy": np.__version__}

    def dispose(self) -> None:
        """Nothing is held."""


class NumpyExecutable:
    """A Program whose weights are views of its block."""

    def __init__(self, program: ProgramData) -> None:
        if program.target != HOST:
            raise DeviceError(
                f"the numpy backend runs programs compiled for {HOST!r}, this one is for {program.target!r}"
            )
        self.program = program
        self._rows: list[Row | None] = []
        self._drops: list[list[int]]
        readers: dict[int, int] = {}
        for number, step in enumerate(program.steps):
            if not isinstance(step, (Host, Copy)):
                raise DeviceError(f"the numpy backend cannot run a {type(step).__name__} step yet")
            self._rows.append(find_row(step.op) if isinstance(step, Host) else None)
            for i in step.inputs if isinstance(step, Host) else (step.source,):
                readers[i] = number
        self._drops = [[] for _ in program.steps]
        for i, number in readers.items():
            if program.buffers[i].place[0] == "slot":
                self._drops[number].append(i)
        shared = _shared(program)
        self._spent = [_spent(step, drops, shared) for step, drops in zip(program.steps, self._drops, strict=True)]
        self._consts = {
            i: program.view(b).view(b.dtype.numpy).reshape(_numbers(b.shape, {}))
            for i, b in enumerate(program.buffers)
            if b.place[0] == "weights"
        }
        self._latest: tuple[Mapping[str, int], list[Mapping[str, Any]]] | None = None

    def run(self, inputs: Sequence[HostArray], states: Sequence[HostArray] = ()) -> list[HostArray]:
        return self._run(inputs, states, None)

    def new_states(self) -> list[HostArray]:
        """The arrays of a new session, with their initial values."""
        made = []
        for state in self.program.states:
            b = self.program.buffers[state.buffer]
            first = 0 if state.initial is None else self._consts[state.initial]
            data = np.empty(_numbers(b.shape, {}), b.dtype.numpy)
            data[...] = first
            made.append(HostArray(data, b.dtype))
        return made

    def profile(self, inputs: Sequence[HostArray], states: Sequence[HostArray] = ()) -> Timeline:
        ends: list[float] = []
        start = time.perf_counter()
        outputs = self._run(inputs, states, ends)
        seconds = time.perf_counter() - start
        spans = tuple(Span(k, begin - start, end - begin) for k, (begin, end) in enumerate(pairwise(ends)))
        return Timeline(outputs, seconds, spans, "wall clock from step to step")

    def _run(
        self, inputs: Sequence[HostArray], states: Sequence[HostArray], ends: list[float] | None
    ) -> list[HostArray]:
        """`ends`, where given, receives when the first step began and when each ended."""
        p = self.program
        sizes = p.sizes({p.buffers[i].name: a.shape for i, a in zip(p.inputs, inputs, strict=True)})
        attrs = self._attrs_at(sizes)
        values: dict[int, np.ndarray] = dict(self._consts)
        values.update({i: a.data for i, a in zip(p.inputs, inputs, strict=True)})
        if len(states) != len(p.states):
            raise InputError(f"the program has {len(p.states)} states, got {len(states)}: see new_states()")
        values.update({s.buffer: a.data for s, a in zip(p.states, states, strict=True)})
        with np.errstate(all="ignore"):
            if ends is not None:
                ends.append(time.perf_counter())
            for step, row, given, drops, spent in zip(
                p.steps, self._rows, attrs, self._drops, self._spent, strict=True
            ):
                if isinstance(row, Elementwise) and spent:
                    assert isinstance(step, Host)
                    values[step.outputs[0]] = row.array_over([values[i] for i in step.inputs], spent, given)
                elif isinstance(step, Host):
                    assert row is not None
                    values[step.outputs[0]] = row.array(*(values[i] for i in step.inputs), **given)
                elif isinstance(step, Copy):
                    values[step.target] = values[step.source]
                for i in drops:
                    del values[i]
                if ends is not None:
                    ends.append(time.perf_counter())
        outputs = [self._output(values[i], i, sizes) for i in p.outputs]
        for s, a in zip(p.states, states, strict=True):
            if values[s.buffer] is not a.data:
                np.copyto(a.data, values[s.buffer])
        return outputs

    def _output(self, value: np.ndarray, number: int, sizes: Mapping[str, int]) -> HostArray:
        """The array of an output: never a view of something else."""
        b = self.program.buffers[number]
        value = value.reshape(_numbers(b.shape, sizes))
        return HostArray(value if value.base is None and value.flags.writeable else value.copy(), b.dtype)

    def _attrs_at(self, sizes: Mapping[str, int]) -> list[Mapping[str, Any]]:
        """The attributes of every step with numbers for sizes; those of the latest sizes are kept."""
        if self._latest is None or self._latest[0] != sizes:
            attrs: list[Mapping[str, Any]] = [
                {k: _fixed(v, sizes) for k, v in s.attrs.items()} if isinstance(s, Host) else {}
                for s in self.program.steps
            ]
            self._latest = sizes, attrs
        return self._latest[1]

    def memory(self) -> Mapping[str, int]:
        return {"weights": self.program.weights.nbytes, "scratch": 0}

    def dispose(self) -> None:
        self._consts = {}


def _shared(program: ProgramData) -> set[int]:
    """The buffers whose memory may be another's too: what views and copies read and give."""
    found: set[int] = set()
    for step in program.steps:
        if isinstance(step, Copy):
            found |= {step.source, step.target}
        elif isinstance(step, Host) and isinstance(find_row(step.op), View):
            found |= {*step.inputs, *step.outputs}
    return found


def _spent(step: Any, drops: Sequence[int], shared: set[int]) -> tuple[int, ...]:
    """The inputs of a step that are read for the last time and that no other array looks into."""
    if not isinstance(step, Host):
        return ()
    return tuple(k for k, i in enumerate(step.inputs) if i in drops and i not in shared)


def _numbers(shape: Sequence[Any], sizes: Mapping[str, int]) -> tuple[int, ...]:
    return tuple(shapes.known(d, sizes) for d in shape)


def _fixed(value: Any, sizes: Mapping[str, int]) -> Any:
    if isinstance(value, tuple):
        return tuple(_fixed(v, sizes) for v in value)
    return shapes.known(value, sizes) if isinstance(value, Size) else value
