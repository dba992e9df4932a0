"""Programs assembled by hand, with conditions, loops, states and sizes found in mid-run, as bundles for both devices.

A Flow declares its buffers and steps; its kernels are compiled from one op each. `FLOWS` has the programs that
tests run, by name.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import numpy as np

from singe import __version__
from singe.compiler.compile import compile_graph
from singe.compiler.schedule.steps import Copy, Dispatch, If, Loop, Step, words_of
from singe.compiler.target import execution_of, find_target
from singe.dtypes import DType, bool_, float32, int32, int64
from singe.graph import Builder, Graph
from singe.program.container import PROGRAM as FORMAT
from singe.program.container import align, encode_dim
from singe.program.elements import aligned, stored_type
from singe.program.format import header
from singe.program.program import (
    Bind,
    Buffer,
    Check,
    Host,
    ProgramData,
    Specialised,
    State,
)
from singe.program.words import COPY
from singe.shapes import Shape, size
from singe.tools.export import bundle as export

TARGETS: Final = {"wasm": "wasm", "webgpu": "wgsl"}


@dataclass(frozen=True)
class Call:
    """An op over buffers, which becomes a dispatch of its own compiled kernel."""

    op: Callable[..., Any]  # of a Builder and nodes
    inputs: tuple[int, ...]
    output: int


@dataclass
class Flow:
    """A program that is being assembled. Buffers are numbers; `steps` may hold Calls wherever a step is allowed."""

    buffers: list[tuple[str, DType, Shape, tuple[str, int]]] = field(default_factory=list)
    inputs: list[int] = field(default_factory=list)
    outputs: list[int] = field(default_factory=list)
    states: list[tuple[str, int, np.ndarray | None]] = field(default_factory=list)
    slots: int = 0
    steps: list[Any] = field(default_factory=list)

    def _add(self, name: str, kind: DType, shape: Shape, place: tuple[str, int]) -> int:
        self.buffers.append((name, kind, shape, place))
        return len(self.buffers) - 1

    def input(self, name: str, kind: DType, *shape: Any) -> int:
        self.inputs.append(self._add(name, kind, shape, ("input", len(self.inputs))))
        return self.inputs[-1]

    def output(self, name: str, kind: DType, *shape: Any) -> int:
        self.outputs.append(self._add(name, kind, shape, ("output", len(self.outputs))))
        return self.outputs[-1]

    def slot(self, kind: DType, *shape: Any) -> int:
        self.slots += 1
        return self._add(f"s{self.slots}", kind, shape, ("slot", self.slots - 1))

    def state(self, name: str, kind: DType, *shape: int, initial: np.ndarray | None = None) -> int:
        index = self._add(name, kind, shape, ("state", len(self.states)))
        self.states.append((name, index, initial))
        return index

    def call(self, op: Callable[..., Any], *inputs: int, to: int) -> Call:
        return Call(op, inputs, to)

    def program(self, target_name: str) -> ProgramData:
        """The Program for a target."""
        target = _apart(find_target(target_name))
        calls = list(dict.fromkeys(_calls(self.steps)))
        b = Builder()
        given, results = [], []
        for k, call in enumerate(calls):
            nodes = [b.input(f"c{k}_{j}", self.buffers[i][2], self.buffers[i][1]) for j, i in enumerate(call.inputs)]
            given += nodes
            results.append(call.op(b, *nodes))
        names = tuple(f"r{k}" for k in range(len(calls)))
        compiled = compile_graph(Graph(tuple(given), tuple(results), names), target)
        buffers = [
            Buffer(name, kind, shape, target.element_size(kind), place) for name, kind, shape, place in self.buffers
        ]
        constants = {i: b for i, b in enumerate(compiled.buffers) if b.place[0] == "weights"}
        moved = dict(zip(constants, range(len(buffers), len(buffers) + len(constants)), strict=True))
        buffers += constants.values()
        dispatches = {}
        for k, call in enumerate(calls):
            made = compiled.outputs[k]
            printed = [g for g in compiled.groups if g.head >= 0 and made in g.reads]
            where = {compiled.buffers[i].name: i for i in compiled.inputs}
            known = moved | {where[f"c{k}_{j}"]: i for j, i in enumerate(call.inputs)} | {made: call.output}
            dispatches[call] = [Dispatch(g.head, tuple(known[i] for i in g.reads)) for g in printed]
        states, at = [], align(compiled.weights.size)
        blocks = [(0, compiled.weights)]
        for name, index, initial in self.states:
            own = buffers[index]
            first = None
            if initial is not None:
                first = len(buffers)
                buffers.append(replace(own, name=f"{name} at first", place=("weights", at)))
                raw = initial.astype(stored_type(own.dtype, own.size)).reshape(-1).view(np.uint8)
                blocks.append((at, raw))
                at += align(raw.size)
            states.append(State(name, index, first))
        weights = aligned(at)
        for start, raw in blocks:
            weights[start : start + raw.size] = raw
        steps = _dispatched(self.steps, dispatches)
        words, counts, stops = words_of(steps, compiled.kernels, range(len(compiled.kernels)))
        return replace(
            compiled, inputs=tuple(self.inputs), outputs=tuple(self.outputs), buffers=tuple(buffers), slots=self.slots,
            words=words, counts=counts, stops=stops, weights=weights, facts={}, states=tuple(states),
        )  # fmt: skip

    def write(self, folder: Path, name: str) -> Path:
        """The bundle, for both devices."""
        files = export._scripts(readable=False, left_out=())
        manifest: dict[str, Any] = {
            "format": FORMAT, "singe": __version__, "runner": dict(export.RUNNER), "name": name, "image": None,
            "labels": None, "facts": {}, "inputs": self._ports(self.inputs), "outputs": self._ports(self.outputs),
            "targets": {},
        }  # fmt: skip
        for device, target in TARGETS.items():
            program = self.program(target)
            raw = program.weights.tobytes()
            manifest["targets"][device] = {
                "program": header(program),
                "modules": export._modules(device, program, files, readable=False),
                "weights": [export._file(f"weights-{device}-0.bin", raw, files)] if raw else [],
            }
        files["model.json"] = export._json(manifest)
        folder.mkdir(parents=True, exist_ok=True)
        for file, data in files.items():
            (folder / file).write_bytes(data)
        return folder

    def _ports(self, numbers: list[int]) -> list[dict[str, Any]]:
        ports = [self.buffers[i] for i in numbers]
        return [{"name": n, "dtype": k.name, "shape": [encode_dim(d) for d in s]} for n, k, s, _ in ports]


def _apart(target: Any) -> Any:
    """The target without steps of several kernels: here each call has its own."""
    made = copy(target)
    made.execution = replace(execution_of(target), launches=False)
    return made


def _calls(steps: Any) -> list[Call]:
    found = []
    for s in steps:
        found += [s] if isinstance(s, Call) else []
        for inner in ("then", "otherwise", "body"):
            found += _calls(getattr(s, inner, ()))
    return found


def _dispatched(steps: Any, dispatches: dict[Call, list[Dispatch]]) -> tuple[Step, ...]:
    def step(s: Any) -> list[Step]:
        if isinstance(s, Call):
            return [*dispatches[s]]
        inner = {k: _dispatched(getattr(s, k), dispatches) for k in ("then", "otherwise", "body") if hasattr(s, k)}
        return [replace(s, **inner)]

    return tuple(x for s in steps for x in step(s))


def _plus(number: float) -> Callable[..., Any]:
    return lambda b, x: b.add(x, _like(b, x, number))


def _times(number: float) -> Callable[..., Any]:
    return lambda b, x: b.mul(x, _like(b, x, number))


def _like(b: Builder, x: Any, number: float) -> Any:
    return b.const(np.asarray(number, x.dtype.numpy))


def _add(b: Builder, x: Any, y: Any) -> Any:
    return b.add(x, y)


# --- the programs -----------------------------------------------------------------------------------------------------


def collatz() -> Flow:
    """A loop that ends only by a condition, with an If in it:
    how often x is halved, or replaced by 3x + 1, until it is 1."""
    f = Flow()
    given, found = f.input("x", int32, 1), f.output("turns", int32, 1)
    x, half, other, more, odd = f.slot(int32, 1), f.slot(int32, 1), f.slot(int32, 1), f.slot(bool_, 1), f.slot(bool_, 1)
    count, next_count = f.slot(int32, 1), f.slot(int32, 1)

    def two(b: Builder, x: Any) -> Any:
        return b.div(x, b.const(np.asarray(2, np.int32)))

    def is_odd(b: Builder, x: Any) -> Any:
        return b.equal(b.bitwise_and(x, b.const(np.asarray(1, np.int32))), b.const(np.asarray(1, np.int32)))

    def is_more(b: Builder, x: Any) -> Any:
        return b.greater(x, b.const(np.asarray(1, np.int32)))

    f.steps = [
        Copy(given, x),
        f.call(_times(0), x, to=count),
        f.call(is_more, x, to=more),
        Loop(None, more, (
            f.call(is_odd, x, to=odd),
            If(odd, (f.call(lambda b, x: b.add(b.mul(x, b.const(np.asarray(3, np.int32))), b.const(np.asarray(1, np.int32))), x, to=other), Copy(other, x)),
               (f.call(two, x, to=half), Copy(half, x))),
            f.call(_plus(1), count, to=next_count),
            Copy(next_count, count),
            f.call(is_more, x, to=more),
        )),
        Copy(count, found),
    ]  # fmt: skip
    return f


def collatz_turns(x: int) -> int:
    """The number of turns, computed in Python."""
    turns = 0
    while x > 1:
        x = 3 * x + 1 if x % 2 else x // 2
        turns += 1
    return turns


def nested() -> Flow:
    """Loops with counts: N times (add 1 to y three times, then double it if the flag is set)."""
    f = Flow()
    x, flag = f.input("x", float32, size("N"), 2), f.input("flag", bool_, 1)
    y = f.output("y", float32, size("N"), 2)
    a, b = f.slot(float32, size("N"), 2), f.slot(float32, size("N"), 2)
    f.steps = [
        Copy(x, a),
        Loop(size("N"), None, (
            Loop(3, None, (f.call(_plus(1), a, to=b), Copy(b, a))),
            If(flag, (f.call(_times(2), a, to=b), Copy(b, a)), ()),
        )),
        Copy(a, y),
    ]  # fmt: skip
    return f


def nested_case(x: np.ndarray, flag: bool) -> np.ndarray:
    y = x.copy()
    for _ in range(len(x)):
        y = (y + 3) * (2 if flag else 1)
    return y


def counter() -> Flow:
    """A state that counts from 5, and one that keeps the largest input so far, from zeros."""
    f = Flow()
    x = f.input("x", int32, 2)
    count = f.state("count", int32, 2, initial=np.array([5, 50]))
    largest = f.state("largest", int32, 2)
    counted, most = f.output("counted", int32, 2), f.output("most", int32, 2)
    f.steps = [
        f.call(_add, count, x, to=counted),
        Copy(counted, count),
        f.call(lambda b, x, y: b.maximum(x, y), largest, x, to=most),
        Copy(most, largest),
    ]
    return f


def ring(length: int = 8, width: int = 4) -> Flow:
    """A state with the last rows that were given, of which the oldest is overwritten first; the output is their sum."""
    f = Flow()
    row = f.input("row", float32, width)
    rows, at = f.state("rows", float32, length, width), f.state("at", int32, 1)
    total = f.output("total", float32, width)
    changed, moved = f.slot(float32, length, width), f.slot(int32, 1)

    def put(b: Builder, rows: Any, row: Any, at: Any) -> Any:
        numbers = b.const(np.arange(length, dtype=np.int32).reshape(length, 1))
        return b.where(b.equal(numbers, at), row, rows)

    def step(b: Builder, at: Any) -> Any:
        following = b.add(at, b.const(np.asarray(1, np.int32)))
        return b.where(
            b.equal(following, b.const(np.asarray(length, np.int32))), b.const(np.asarray(0, np.int32)), following
        )

    f.steps = [
        f.call(put, rows, row, at, to=changed),
        Copy(changed, rows),
        f.call(step, at, to=moved),
        Copy(moved, at),
        f.call(lambda b, rows: b.reduce_sum(rows, axes=(0,)), changed, to=total),
    ]
    return f


def found() -> Flow:
    """Sizes found in mid-run: M, the number of places where x is above 3, found in a loop;
    and K, the largest element of x, but at most 2."""
    f = Flow()
    n, m, k = size("N"), size("M"), size("K")
    x = f.input("x", float32, n)
    places, doubled = f.output("places", int64, 1, m), f.output("doubled", int64, k, m)
    y, less = f.slot(float32, n), f.slot(float32, n)
    where, length, rows = f.slot(int64, 1, m), f.slot(int64), f.slot(int64, k, m)

    def lower(b: Builder, y: Any) -> Any:
        return b.maximum(b.sub(y, _like(b, y, 1)), _like(b, y, 0))

    def double(b: Builder, w: Any, any_: Any) -> Any:
        return b.add(b.mul(w, _like(b, w, 2)), b.bitwise_and(any_, _like(b, any_, 0)))

    def two(b: Builder, y: Any) -> Any:
        return b.cast(b.minimum(b.reduce_max(y, axes=(0,)), _like(b, y, 2)), to=int64)

    nonzero = Host("nonzero", {}, (y,), (where,))
    f.steps = [
        Copy(x, y),
        nonzero,
        Loop(3, None, (f.call(lower, y, to=less), Copy(less, y), nonzero)),
        f.call(two, x, to=length),
        Bind("K", length),
        Check(1000 - k * m, "at most 1000 places"),
        Copy(where, places),
        f.call(double, where, rows, to=doubled),
    ]
    return f


def found_case(x: np.ndarray) -> dict[str, np.ndarray]:
    places = np.array(np.nonzero(x > 3), np.int64)
    return {"places": places, "doubled": np.repeat(2 * places, int(min(2, x.max())), axis=0)}


class Either(Flow):
    """x + 1. At N = 4 calls and copies alone, through the slot that grows in mid-run at other sizes."""

    def __init__(self) -> None:
        super().__init__()
        self.x, self.y = self.input("x", float32, size("N")), self.output("y", float32, size("N"))
        self.places = self.slot(int64, 1, size("M"))
        self.steps = [Host("nonzero", {}, (self.x,), (self.places,)), self.call(_plus(1), self.x, to=self.y)]

    def program(self, target_name: str) -> ProgramData:
        whole = super().program(target_name)
        buffers = list(whole.buffers)
        buffers[self.places] = replace(buffers[self.y], name="scratch", place=("slot", 0))
        *_, (_, head, rest, _, _, _) = whole.groups
        through = (self.places if i == self.y and k < whole.kernels[head].ports else i for k, i in enumerate(rest))
        words = (head, len(rest), *through, COPY, 3, self.y, self.places, 0)
        return replace(whole, specialised=(Specialised({"N": 4}, 1, tuple(buffers), words),))


FLOWS: Final[dict[str, Callable[[], Flow]]] = {
    "collatz": collatz, "nested": nested, "counter": counter, "ring": ring, "found": found, "either": Either,
}  # fmt: skip
