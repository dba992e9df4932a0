"""The Program: the compiled artifact, plain data that any runner can execute and that can be written to disk.

A Program lists its buffers; a runner gives each one memory (weights at an offset, scratch in a slot, inputs and outputs
owned by the caller) and does what the words say (words.py).

A slot is a piece of scratch memory that several buffers use one after the other, and is as large as the largest of
them. Slots never overlap, so a runner may give each its own GPU buffer (WebGPU forbids reading and writing one buffer
in the same dispatch) or place all of them in one memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field, fields, replace
from functools import cached_property
from typing import Any, ClassVar, Final, TypeAlias

import numpy as np

from ..dtypes import DType
from ..errors import DeviceError, InputError, ShapeError
from ..late_dataclass import dataclass
from ..shapes import (
    MAX_ELEMENTS,
    Dim,
    Shape,
    Size,
    at_least,
    evaluate,
    known,
    product,
    show,
    show_sizes,
    size_name,
    symbols,
)
from .container import align
from .ranges import IndexRange
from .words import COPY, STOP, WordGroup, groups_in, outermost

HOST: Final = "host"
"""The name of the target in Programs whose ops all run on the host, which need no code generator."""
PLACES: Final = ("weights", "slot", "input", "output", "state")
Place: TypeAlias = tuple[str, int]
"""Where a buffer lies: ("weights", byte offset), ("slot", number), ("input", number), ("output", number) or
("state", number)."""


@dataclass(frozen=True)
class Buffer:
    """A buffer: `size` is the bytes of one element in device memory, `place` where it lies."""

    name: str
    dtype: DType
    shape: Shape
    size: int
    place: Place

    @property
    def bytes(self) -> Dim:
        return product(self.shape) * self.size


@dataclass(frozen=True)
class State:
    """A value kept from run to run, in `buffer`; it starts as the weight `initial` (None: zeros).

    A runner keeps one such buffer for each session; a run reads and writes it in place. draws: None, or that it is a
    sequence of keys, of which a run takes so many: two uint32 numbers, which a runner sets to what a seed gives.
    """

    name: str
    buffer: int
    initial: int | None
    draws: int | None = None


@dataclass(frozen=True)
class Variant:
    """One version of a kernel's code: the entry to call, and the device features that it requires (all of them).

    groups: the workgroups of a GPU dispatch in x, y, z. If x exceeds the device's limit, the runner spreads it over x
    and y; the kernel computes a workgroup's number as x + y · count of x.
    """

    entry: str
    requires: tuple[str, ...] = ()
    groups: tuple[Dim, Dim, Dim] = (1, 1, 1)


@dataclass(frozen=True)
class Code:
    """A kernel of a Program: variants in order of preference, and the sizes passed to it as int32, in order.

    label is for people; flops and bytes count floating-point operations and bytes moved, as dimensions. workspace:
    whether the last port is scratch memory, of which each thread needs a copy of its own.
    """

    label: str
    kind: str
    ports: int
    sizes: tuple[Dim, ...]
    variants: tuple[Variant, ...]
    flops: Dim = 0
    bytes: Dim = 0
    workspace: bool = False


def _sizes_in(value: Any) -> Iterator[Size]:
    """The Sizes in an attribute, at any depth."""
    if isinstance(value, tuple):
        for v in value:
            yield from _sizes_in(v)
    elif isinstance(value, Size):
        yield value


@dataclass(frozen=True)
class Host:
    """Run an op on the host over whole arrays (every stop of the numpy backend; ops of data-dependent shape elsewhere)."""

    op: str
    attrs: Mapping[str, Any]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]

    @property
    def reads(self) -> tuple[int, ...]:
        return self.inputs

    @property
    def writes(self) -> tuple[int, ...]:
        return self.outputs

    @property
    def dims(self) -> tuple[Dim, ...]:
        return tuple(_sizes_in(tuple(self.attrs.values())))


@dataclass(frozen=True)
class Bind:
    """Set a size that no input gives, to the first element of an integer buffer or to a dimension."""

    size: str
    buffer: int | None = None
    dim: Dim | None = None
    writes: ClassVar[tuple[int, ...]] = ()

    @property
    def reads(self) -> tuple[int, ...]:
        return () if self.buffer is None else (self.buffer,)

    @property
    def dims(self) -> tuple[Dim, ...]:
        return () if self.dim is None else (self.dim,)


@dataclass(frozen=True)
class Check:
    """Fail with the error `text` if a dimension is negative."""

    dim: Dim
    text: str
    reads: ClassVar[tuple[int, ...]] = ()
    writes: ClassVar[tuple[int, ...]] = ()

    @property
    def dims(self) -> tuple[Dim, ...]:
        return (self.dim,)


Stop: TypeAlias = "Host | Bind | Check"
"""What a runner does itself in mid-run: the buffers that it reads and writes, and the dimensions that it needs."""


@dataclass(frozen=True)
class Specialised:
    """What a run does at particular sizes, with buffers and slots of its own.

    Inputs, outputs and states keep their numbers; kernels and weights are the Program's.
    """

    sizes: Mapping[str, int]
    slots: int
    buffers: tuple[Buffer, ...]
    words: tuple[int, ...]
    counts: tuple[Dim, ...] = ()
    stops: tuple[Stop, ...] = ()
    checks: tuple[tuple[Dim, str], ...] = ()


def sized_by(buffers: Sequence[Buffer], known_sizes: frozenset[str]) -> dict[str, list[int]]:
    """The sizes that no input gives ↦ the buffers whose bytes depend on them."""
    found: dict[str, list[int]] = {}
    for i, b in enumerate(buffers):
        for name in symbols(b.shape) - known_sizes:
            found.setdefault(name, []).append(i)
    return found


def _unmet(checks: Iterable[tuple[Dim, str]], sizes: Mapping[str, int]) -> Iterator[str]:
    for dim, text in checks:
        value = evaluate(dim, sizes)
        if isinstance(value, int) and value < 0:
            yield text


def check_found(new: Mapping[str, int], buffers: Iterable[Buffer], sizes: Mapping[str, int]) -> None:
    """Refuse sizes found in mid-run that are out of range, before memory for `buffers` of these sizes is allocated."""
    for name, value in new.items():
        if not 0 <= value <= MAX_ELEMENTS:
            raise ShapeError(f"the size {name} was found to be {value}, expected 0 to {MAX_ELEMENTS}")
    for b in buffers:
        count = evaluate(product(b.shape), sizes)
        if isinstance(count, int) and count > MAX_ELEMENTS:
            shape = show(tuple(evaluate(d, sizes) for d in b.shape))
            raise ShapeError(f"{b.name}: the shape {shape} has {count} elements, at most {MAX_ELEMENTS} are supported")


def choose_variant(code: Code, features: frozenset[str]) -> Variant:
    """The first variant that the device can run."""
    for v in code.variants:
        if features.issuperset(v.requires):
            return v
    wanted = " or ".join(", ".join(v.requires) for v in code.variants)
    raise DeviceError(
        f"kernel {code.label!r} requires {wanted}, which this device lacks; compile the model for it again"
    )


@dataclass(frozen=True)
class ProgramData:
    """See the module's docstring. `modules` holds the target's code by name: WGSL text, or WebAssembly bytes."""

    target: str
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    buffers: tuple[Buffer, ...]
    slots: int
    kernels: tuple[Code, ...]
    words: tuple[int, ...]
    counts: tuple[Dim, ...]
    stops: tuple[Stop, ...]
    modules: Mapping[str, str | bytes]
    weights: np.ndarray  # uint8, one block; buffers placed in it start at multiples of ALIGN
    facts: Mapping[str, Any] = field(default_factory=dict)  # for people: op counts, what was fused
    states: tuple[State, ...] = ()
    # (dimension of the inputs' sizes, text): a run fails with this text if the dimension is negative
    checks: tuple[tuple[Dim, str], ...] = ()
    specialised: tuple[Specialised, ...] = ()  # the first one that has the sizes of a run is used for it
    bounds: Mapping[str, int] = field(default_factory=dict)  # the most that a size may be; memory is allocated for that
    ranges: tuple[
        IndexRange, ...
    ] = ()  # what of the inputs are indices, which a run refuses where they are out of range
    # blocks of weights that other Programs hold too, by their start offset; see block.py
    shared: Mapping[int, np.ndarray] = field(default_factory=dict)
    seconds: float = field(
        default=0.0, compare=False
    )  # how long it took to compile; not saved, so that equal models give equal files

    def __repr__(self) -> str:
        held = sum(len(block) for block in (self.weights, *self.shared.values()))
        counts = {"inputs": self.inputs, "outputs": self.outputs, "states": self.states, "steps": self.steps}
        told = ", ".join(f"{what}: {len(parts)}" for what, parts in counts.items())
        return f"<program data for {self.target}: {told}, bytes of weights: {held}>"

    @cached_property
    def groups(self) -> tuple[WordGroup, ...]:
        """The groups of its words."""
        return tuple(groups_in(self.words, self.kernels, self.stops))

    @property
    def steps(self) -> tuple[WordGroup, ...]:
        """The groups that do something: calls, copies and stops."""
        return tuple(g for g in self.groups if g.head >= COPY or g.head == STOP)

    @property
    def symbols(self) -> frozenset[str]:
        """The names of the sizes that the inputs give; the others are found in mid-run."""
        return symbols([self.buffers[i].shape for i in self.inputs])

    @cached_property
    def donated(self) -> Mapping[int, int]:
        """The outputs that overwrite the memory of a donated input: number of the output ↦ number of the input."""
        places = (self.buffers[i].place for i in self.outputs)
        return {k: number for k, (kind, number) in enumerate(places) if kind == "input"}

    @cached_property
    def owners(self) -> Mapping[Place, int]:
        """The places whose memory is as large as one buffer ↦ that buffer: all others there must fit it."""
        return {
            **{("input", k): i for k, i in enumerate(self.inputs)},
            **{("output", k): i for k, i in enumerate(self.outputs) if k not in self.donated},
            **{("state", k): s.buffer for k, s in enumerate(self.states)},
        }

    @cached_property
    def programs(self) -> tuple[ProgramData, ...]:
        """The general Program, then each specialised one, all over the same weights."""
        own = replace(self, specialised=())
        given = ({f.name: getattr(s, f.name) for f in fields(s) if f.name != "sizes"} for s in self.specialised)
        return (own, *(replace(own, **changed) for changed in given))

    def at(self, sizes: Mapping[str, int]) -> ProgramData:
        """The Program that a run at these sizes executes."""
        if not self.specialised:
            return self
        for s, program in zip(self.specialised, self.programs[1:], strict=True):
            if all(sizes.get(name) == n for name, n in s.sizes.items()):
                return program
        return self.programs[0]

    def sizes(self, shapes: Mapping[str, tuple[int, ...]]) -> dict[str, int]:
        """The sizes that the shapes of the inputs give; a mismatch is an error that names the input."""
        found: dict[str, int] = {}
        wanted = [self.buffers[i] for i in self.inputs]
        missing = [b.name for b in wanted if b.name not in shapes]
        unknown = [n for n in shapes if n not in {b.name for b in wanted}]
        if missing or unknown:
            takes = ", ".join(b.name for b in wanted) or "none"
            raise InputError(
                f"inputs: missing {missing or 'none'}, unknown {unknown or 'none'}; this program takes {takes}"
            )
        for b in wanted:
            shape = shapes[b.name]
            if len(shape) != len(b.shape):
                raise ShapeError(f"input {b.name!r}: got shape {shape}, expected {show(b.shape)}")
            for given, d in zip(shape, b.shape, strict=True):
                name = size_name(d)
                if name is not None and found.setdefault(name, given) != given:
                    raise ShapeError(f"input {b.name!r}: got shape {shape}, but {d} is {found[name]} in another input")
        for b in wanted:
            if tuple(evaluate(d, found) for d in b.shape) != shapes[b.name]:
                raise ShapeError(f"input {b.name!r}: got shape {shapes[b.name]}, expected {show(b.shape)}")
        unmet = self.at(found).unmet(found)
        if unmet is not None:
            raise ShapeError(f"{unmet} (got {show_sizes(found)})")
        return found

    def unmet(self, sizes: Mapping[str, int]) -> str | None:
        """The text of the first check that fails at these sizes, or None. Checks of other sizes are skipped."""
        return next(_unmet(self._checks, sizes), None)

    def doubtful(self, sizes: Mapping[str, int]) -> tuple[str, ...]:
        """The checks within branches and loops that fail at these sizes: a run that reaches them is refused."""
        return tuple(_unmet(self._inner, sizes))

    def check_indices(self, arrays: Sequence[np.ndarray | None], named: bool = True) -> None:
        """Refuse inputs, in order, among whose elements an index is out of range; those that are None are not looked at.
        named: whether the names of inputs say something to who reads the error."""
        sizes: Mapping[str, int] = {}
        if self._ranged:
            shapes = {self.buffers[i].name: a.shape for i, a in zip(self.inputs, arrays, strict=True) if a is not None}
            sizes = self.sizes(shapes) if len(shapes) == len(arrays) else {}
        for r in self.ranges:
            array = arrays[r.input]
            if array is not None and r.sizes <= sizes.keys():
                r.check(array, sizes, self.buffers[self.inputs[r.input]].name if named else "")

    @cached_property
    def _ranged(self) -> bool:
        """Whether ranges depend on sizes."""
        return any(r.sizes for r in self.ranges)

    @cached_property
    def _inner(self) -> tuple[tuple[Dim, str], ...]:
        """The checks among the stops that depend on the inputs' sizes alone."""
        return tuple(
            (s.dim, s.text)
            for s in self.stops
            if isinstance(s, Check) and symbols(s.dim) and symbols(s.dim) <= self.symbols
        )

    @cached_property
    def _checks(self) -> tuple[tuple[Dim, str], ...]:
        """The checks, that each buffer fits its place, and that no buffer that every run uses has a negative dimension."""
        named = {*self.inputs, *self.outputs, *(i for g in outermost(self.groups) for i in (*g.reads, *g.writes))}
        own = {
            d: f"{b.name}: the dimension {d} must be at least 0"
            for b in (self.buffers[i] for i in sorted(named))
            for d in b.shape
            if not at_least(d, 0) and symbols(d) <= self.symbols
        }
        for b in self.buffers:
            if b.place in self.owners:
                gap = self.buffers[self.owners[b.place]].bytes - b.bytes
                if not at_least(gap, 0) and symbols(gap) <= self.symbols:
                    own[gap] = f"{b.name}: its {b.bytes} bytes must fit the {b.place[0]} in which it lies"
        return (*self.checks, *own.items())

    def bound(self, shapes: Sequence[tuple[int, ...]], kinds: Sequence[DType]) -> dict[str, int]:
        """Like `sizes`, for the shapes and dtypes of the inputs in order."""
        wanted = [self.buffers[i] for i in self.inputs]
        if len(shapes) != len(wanted):
            raise InputError(f"the program takes {len(wanted)} inputs, got {len(shapes)}")
        for kind, b in zip(kinds, wanted, strict=True):
            if kind is not b.dtype:
                raise InputError(f"input {b.name!r}: got {kind}, expected {b.dtype}")
        return self.sizes({b.name: shape for b, shape in zip(wanted, shapes, strict=True)})

    def slot_bytes(self, sizes: Mapping[str, int]) -> list[int]:
        """The bytes of each slot at these sizes, aligned. Buffers with a size that is not given are left out.

        A slot is at least as large as the bounds of the sizes require, so that it serves every run.
        """
        out = [0] * self.slots
        most = {**sizes, **self.bounds}
        for slot, count in self._slot_dims:
            for at in (sizes,) if most == sizes else (sizes, most):
                taken = evaluate(count, at)
                if isinstance(taken, int):
                    out[slot] = max(out[slot], align(taken))
        return out

    @cached_property
    def _slot_dims(self) -> Sequence[tuple[int, Dim]]:
        """A slot and the bytes of a buffer there, each pair once: those of equal layers are equal."""
        return tuple(dict.fromkeys((b.place[1], b.bytes) for b in self.buffers if b.place[0] == "slot"))

    def peak(self, sizes: Mapping[str, int]) -> int:
        """Bytes of scratch at these sizes."""
        return sum(self.slot_bytes(sizes))

    def copied(self, sizes: Mapping[str, int]) -> int:
        """Bytes of states and inputs that copies move in a run at these sizes: 0 if all are updated in place."""
        total = 0
        for g in self.groups:
            moved = (*g.reads, *g.writes) if g.head == COPY else ()
            if {self.buffers[i].place[0] for i in moved} & {"state", "input"}:
                total += known(self.buffers[g.writes[0]].bytes, sizes)
        return total

    def view(self, buffer: Buffer) -> np.ndarray:
        """The bytes of a buffer that lies in the weights."""
        start = self.start_of(buffer.place[1])
        at = buffer.place[1] - start
        return self.blocks[start][at : at + known(buffer.bytes, {})]

    @cached_property
    def blocks(self) -> Mapping[int, np.ndarray]:
        """All blocks of weights, its own and shared ones, by their start offset."""
        return {0: self.weights, **self.shared}

    def start_of(self, at: int) -> int:
        """The start offset of the block of weights that holds this offset."""
        return max(start for start in self.blocks if start <= at)
