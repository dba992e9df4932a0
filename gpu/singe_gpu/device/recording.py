"""A Program at known sizes on a GPU: the commands for the words of its Plan, over the slots of its executable.

A Recording serves all runs whose commands are the same: those of equal sizes, and those of other sizes that change neither a
number of workgroups nor the bytes of a buffer. Kernels read sizes from a buffer, which is then written anew: so a text that
grows token by token needs few Recordings. If a run only dispatches and copies, all of its commands are cached together, by the
buffers that they name; since the pool returns the same buffers again, a program run in a loop creates no new bind groups.
Otherwise commands are cached one by one, and go to the device in batches: when a condition is read back, when the host has a
step to run, and at the end.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np

from singe.extension import (
    Buffer,
    Code,
    DeviceError,
    Dim,
    Found,
    HostArray,
    Place,
    Plan,
    ProgramData,
    Recent,
    Variant,
    align,
    bytes_text,
    evaluate,
    known,
    run_host_step,
    string,
    symbols,
    words,
)

from .memory import Binding, Command, Handle, Launch, Transfer, from_device, to_device
from .pool import GpuArray, Piece, Pool, SlotBuffers

MAX_CACHED_BINDINGS: Final = 8
"""The number of sets of input, output and state buffers for which a recording caches its commands."""
MAX_COMMANDS_PER_BATCH: Final = 1024
"""The most commands of a loop that are sent at once."""

MAX_UPLOAD_BYTES: Final = 1 << 22
"""The most bytes of weights in transfer to a device at once."""

Send: TypeAlias = Callable[[Sequence[Command], Sequence[int]], None]
"""Sends commands to the device, with the position of the words of each."""


class Uploads:
    """Parts of blocks of weights in device buffers; each is uploaded once for all Programs that use it."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._held: dict[tuple[int, int, int], tuple[Piece, int]] = {}  # a part ↦ its memory and the number of users

    def take(self, block: np.ndarray, start: int, end: int) -> Piece:
        """A buffer with these bytes of a block; each `take` needs a `give`."""
        key = id(block), start, end
        part, users = self._held.get(key, (None, 0))
        if part is None:
            part = self._pool.take(end - start, "a part of the weights", "weights")
            try:
                self._write(part.buffer, block, start, end)
            except DeviceError:
                self._pool.give(part)
                raise
        self._held[key] = part, users + 1
        return part

    def give(self, key: tuple[int, int, int]) -> None:
        """Give back what was taken: the identity of a block, and where the part begins and ends."""
        part, users = self._held.pop(key)
        if users > 1:
            self._held[key] = part, users - 1
        else:
            self._pool.give(part)

    def _write(self, part: Handle, block: np.ndarray, start: int, end: int) -> None:
        for at in range(start, end, MAX_UPLOAD_BYTES):
            data = block[at : min(at + MAX_UPLOAD_BYTES, end)]
            if data.size % 4:
                data = np.concatenate([data, np.zeros(-data.size % 4, np.uint8)])
            if data.size:
                self._pool.gpu.write(part, at - start, data)
            if end - start > MAX_UPLOAD_BYTES:
                self._pool.gpu.wait()  # afterwards the device's staging memory for these bytes is free again


class UploadedWeights:
    """The weights of a program. Each of its blocks is one buffer, or several if the device's limit requires it; a weight
    is never split. `bytes` counts the program's own block, `shared` the others."""

    def __init__(self, pool: Pool, uploads: Uploads, program: ProgramData) -> None:
        gpu = pool.gpu
        self._pool = pool
        self._uploads = uploads
        self._parts: list[Piece] = []
        self._taken: list[tuple[int, int, int]] = []
        self._place: dict[int, tuple[int, int]] = {}
        self.bytes = self.shared = 0
        buffers = [b for p in program.programs for b in p.buffers]
        placed = {(b.place[1], align(known(b.bytes, {}))): b for b in buffers if b.place[0] == "weights"}
        spans: list[list[int]] = []  # the start of a block, and the start and end of a part within it
        for offset, count in sorted(placed):
            if count > gpu.limits.buffer:
                b = placed[offset, count]
                raise DeviceError(
                    f"the weight {b.name!r} takes {count} bytes, a buffer of this device holds at most {gpu.limits.buffer}"
                )
            block = program.start_of(offset)
            at, whole = offset - block, program.blocks[block].size
            if not spans or spans[-1][0] != block:
                spans.append([block, 0, whole] if whole <= gpu.limits.buffer else [block, at, at])
            elif at + count - spans[-1][1] > gpu.limits.buffer:
                spans.append([block, at, at])
            spans[-1][2] = max(spans[-1][2], at + count)
            self._place[offset] = (len(spans) - 1, at - spans[-1][1])
        for start, begin, end in spans:
            try:
                self._parts.append(uploads.take(program.blocks[start], begin, end))
            except DeviceError:
                self.close()
                raise
            self._taken.append((id(program.blocks[start]), begin, end))
            size = self._parts[-1].size
            if start:
                self.shared += size
            else:
                self.bytes += size

    def binding(self, offset: int, count: int) -> Binding:
        part, start = self._place[offset]
        return Binding(self._parts[part].buffer, start, count)

    def close(self) -> None:
        while self._taken:
            self._pool.release(self._uploads.give, self._taken.pop())
        self._parts = []
        self.bytes = self.shared = 0


@dataclass(frozen=True)
class Kernels:
    """A Program's kernels on a device: the variant of each, its pipeline, and the kinds of its bindings."""

    variants: Sequence[Variant]
    pipelines: Sequence[Handle]
    access: Sequence[Sequence[str]]


@dataclass(frozen=True)
class _SizedDispatch:
    """A dispatch at known sizes: its buffers with the bytes of each."""

    kernel: int
    buffers: tuple[tuple[int, int], ...]
    groups: tuple[int, int, int]


@dataclass(frozen=True)
class _Move:
    source: tuple[int, int]
    target: tuple[int, int]


class Extents:
    """What the commands of a Program depend on besides its words: numbers of workgroups and of bytes, as dimensions of its sizes."""

    def __init__(self, program: ProgramData, variants: Sequence[Variant]) -> None:
        heads = [g.head for g in program.groups if g.head >= 0]
        dims = [d for head in dict.fromkeys(heads) for d in variants[head].groups]
        dims += [
            program.buffers[i].bytes for i in dict.fromkeys(i for g in program.groups for i in (*g.reads, *g.writes))
        ]
        self._dims: Final = [d for d in dict.fromkeys(dims) if not isinstance(d, int)]
        self._has_only_calls: Final = all(g.head >= words.COPY for g in program.groups)

    def at(self, sizes: Mapping[str, int]) -> tuple[Any, ...]:
        """Equal for sizes at which the commands are the same."""
        return tuple(known(d, sizes) for d in self._dims) if self._has_only_calls else tuple(sorted(sizes.items()))


class Recording:
    """See the module's docstring."""

    def __init__(
        self, pool: Pool, slots: SlotBuffers, kernels: Kernels, weights: UploadedWeights, program: ProgramData,
        sizes: Mapping[str, int],
    ) -> None:  # fmt: skip
        self.plan: Final = Plan(program, sizes)
        self._gpu: Final = pool.gpu
        self._pool: Final = pool
        self._kernels: Final = kernels
        self._weights: Final = weights
        self._slots: Final = slots
        self._memory: Final[dict[Place, Piece]] = {}
        self._rows: Final = _Rows(pool, program, kernels, sizes)
        self._work: Final[dict[int, _SizedDispatch | _Move | None]] = {}
        self._groups: Final[dict[int, tuple[list[Handle], Handle]]] = {}
        self._whole: Final[Recent[tuple[Sequence[Command], list[Handle]]]] = Recent(MAX_CACHED_BINDINGS)
        if self.plan.is_straight:
            self._work.update({at: self._resolve(at) for at in self.plan.work})
        self._steps: Final = [at for at in self.plan.work if self._work.get(at) is not None]

    def resize(self, sizes: Mapping[str, int]) -> None:
        """Make it serve other sizes, at which the commands are the same."""
        if sizes != self.plan.sizes and self.plan.is_straight:
            self.plan.resize(sizes)
            self._rows.resize(self.plan.sizes)

    def run(
        self, inputs: Sequence[GpuArray | HostArray], states: Sequence[GpuArray], send: Send
    ) -> list[GpuArray | HostArray]:
        """Submit a run. If it has steps on the host, the work before them is done on return. Strings are in HostArrays."""
        strings = self.plan.strings
        strings.clear()
        self._memory.clear()
        donated = self.plan.program.donated
        if self._pool.must_part:
            bound = [x for x in (*inputs, *states) if isinstance(x, GpuArray)]
            for j in donated.values():
                if isinstance(x := inputs[j], GpuArray):
                    x.part_from(bound)
        for kind, arrays in (("input", inputs), ("state", states)):
            for k, array in enumerate(arrays):
                if isinstance(array, HostArray):
                    strings[kind, k] = array.data
                else:
                    self._memory[kind, k] = array.piece
        outputs: list[Any] = [
            inputs[donated[k]] if k in donated else None for k in range(len(self.plan.program.outputs))
        ]
        self.plan.begin()
        self._make_outputs(outputs, self.plan.program.outputs)
        if self.plan.is_straight:
            pieces = [x.piece for x in (*inputs, *states, *outputs) if isinstance(x, GpuArray)]
            # The buffers are kept with the commands, so that their ids are not reused.
            commands, _ = self._whole.at(
                tuple([(id(p.buffer), p.offset) for p in pieces]),
                lambda: (self._gpu.record(self._all_commands()), [p.buffer for p in pieces]),
            )
            send(commands, self._steps)
        else:
            self._walk(outputs, send)
        pairs = zip(self.plan.program.outputs, outputs, strict=True)
        return [
            HostArray(self.plan.texts(i), string) if self.plan.program.buffers[i].dtype is string else x
            for i, x in pairs
        ]

    def _make_outputs(self, outputs: list[Any], buffers: Sequence[int]) -> None:
        """Allocate the outputs in these buffers whose sizes are known and that have memory of their own."""
        for i in buffers:
            b = self.plan.program.buffers[i]
            own = b.place[0] == "output" and b.dtype is not string
            if own and symbols(b.shape) <= self.plan.sizes.keys():
                apart = [piece.buffer for piece in self._memory.values()] if self._pool.must_part else ()
                array = GpuArray(self._pool, self.plan.shape(i), b.dtype, b.size, apart=apart)
                outputs[b.place[1]] = array
                self._memory[b.place] = array.piece

    def _all_commands(self) -> list[Command]:
        return [command for at in self.plan.work if (command := self._command(at)) is not None]

    # --- runs with conditions, loops and steps of the host ---

    def _walk(self, outputs: list[Any], send: Send) -> None:
        plan = self.plan
        waiting: list[Command] = []
        steps: list[int] = []

        def hand_over() -> None:
            if waiting:
                send(list(waiting), list(steps))
                waiting.clear()
                steps.clear()

        def holds(buffer: int) -> bool:
            hand_over()
            return bool(self._read_bytes(buffer, plan.program.buffers[buffer].size).any())

        def found(sizes: Found) -> None:
            if sizes.changed:
                self._work.clear()
            self._rows.write(plan.sizes)
            for i in sizes.buffers:
                if plan.program.buffers[i].place[0] == "slot":
                    self._slots.grow(plan.program.buffers[i].place[1], align(plan.bytes(i)))
            self._make_outputs(outputs, [i for i in sizes.buffers if i in plan.program.outputs])

        for at in words.execution_order(plan.words, holds):
            if at in plan.stops:
                hand_over()
                run_host_step(plan, plan.stops[at], self._read, self._write, found)
                continue
            command = self._command(at)
            if command is not None:
                waiting.append(command)
                steps.append(at)
            if len(waiting) >= MAX_COMMANDS_PER_BATCH:
                hand_over()
        hand_over()

    def _read_bytes(self, buffer: int, count: int) -> np.ndarray:
        if not count:
            return np.zeros(0, np.uint8)
        b = self._binding(buffer, count)
        return self._gpu.read(b.buffer, count, b.offset)

    def _read(self, buffer: int) -> np.ndarray:
        b = self.plan.program.buffers[buffer]
        return from_device(self._read_bytes(buffer, self.plan.bytes(buffer)), self.plan.shape(buffer), b.dtype, b.size)

    def _write(self, buffer: int, array: np.ndarray) -> None:
        b = self.plan.program.buffers[buffer]
        if array.size:
            piece = self._piece(b.place)
            self._gpu.write(piece.buffer, piece.offset, to_device(array, b.size))

    # --- words as commands ---

    def _resolve(self, at: int) -> _SizedDispatch | _Move | None:
        """The call or copy at a word; None if there is nothing to do."""
        plan, own = self.plan, self.plan.words
        if own[at] == words.COPY:
            target, source, count = own[at + 2 : at + 5]
            return _Move((source, count), (target, count)) if count else None
        number = own[at]
        code = plan.program.kernels[number]
        wanted = [plan.number(d) for d in self._kernels.variants[number].groups]
        groups = spread(wanted, self._gpu.limits.groups, code.label)
        if 0 in groups:
            return None
        buffers = tuple((i, plan.bytes(i)) for i in own[at + 2 : at + 2 + code.ports])
        for i, count in buffers:
            self._check_binding(plan.program.buffers[i], count, code)
        _no_aliases([plan.program.buffers[i].place for i, _ in buffers], self._kernels.access[number], code)
        return _SizedDispatch(number, buffers, groups)

    def _check_binding(self, buffer: Buffer, count: int, code: Code) -> None:
        limit = self._gpu.limits.binding
        if count > limit:
            raise DeviceError(
                f"kernel {code.label!r} binds {buffer.name!r} with {count} bytes ({bytes_text(count)}), "
                f"this device binds at most {limit} ({bytes_text(limit)})"
            )

    def _command(self, at: int) -> Command | None:
        """The command at a word, over the buffers of this run; the latest bind group of each call is kept."""
        if at not in self._work:
            self._work[at] = self._resolve(at)
        work = self._work[at]
        if work is None:
            return None
        if isinstance(work, _Move):
            return Transfer(self._binding(*work.source), self._binding(*work.target))
        bindings = [self._binding(i, count) for i, count in work.buffers]
        sizes = self._rows.binding.get(work.kernel)
        if sizes is not None:
            bindings.append(sizes)
        pipeline = self._kernels.pipelines[work.kernel]
        kept = self._groups.get(at)
        if kept is None or kept[0] != bindings:
            kept = self._groups[at] = bindings, self._gpu.bind(pipeline, bindings)
        return Launch(pipeline, kept[1], work.groups)

    def _binding(self, buffer: int, count: int) -> Binding:
        place = self.plan.program.buffers[buffer].place
        count = max(16, -(-count // 4) * 4)
        if place[0] == "weights":
            return self._weights.binding(place[1], count)
        piece = self._piece(place)
        return Binding(piece.buffer, piece.offset, count)

    def _piece(self, place: Place) -> Piece:
        return self._slots[place[1]] if place[0] == "slot" else self._memory[place]

    def close(self) -> None:
        self._rows.close()
        self._memory.clear()
        self._whole.clear()
        self._groups.clear()


class _Rows:
    """The sizes of all kernels whose texts use some, in one uniform buffer.

    Kernels with the same sizes share a row. Kernels with sizes found in mid-run have separate rows, which `write` updates as
    soon as all sizes of a row are known, after all work that was submitted before.
    """

    def __init__(self, pool: Pool, program: ProgramData, kernels: Kernels, sizes: Mapping[str, int]) -> None:
        self._pool: Final = pool
        self._program: Final = program
        self._late: Final[dict[int, int]] = {}  # a kernel's number ↦ the start of its row
        self._written: Final[dict[int, list[Any]]] = {}
        self._shared: Final[dict[tuple[Dim, ...], int]] = {}  # the dimensions of a row ↦ where it starts
        starts: dict[int, int] = {}
        end = 0
        for number in dict.fromkeys(g.head for g in program.groups if g.head >= 0):
            code = program.kernels[number]
            if not code.sizes or "uniform" not in kernels.access[number]:
                continue
            is_late = bool(symbols(code.sizes) - sizes.keys())
            start = end if is_late else self._shared.setdefault(code.sizes, end)
            if is_late:
                self._late[number] = end
            starts[number] = start
            if start == end:
                end += align(16 * -(-len(code.sizes) // 4))
        self._piece: Final = pool.take(end, "the sizes of kernels", "scratch") if starts else None
        self._end: Final = end
        self.binding: Final[dict[int, Binding]] = {}
        if self._piece is not None:
            for number, start in starts.items():
                count = 16 * -(-len(program.kernels[number].sizes) // 4)
                self.binding[number] = Binding(self._piece.buffer, self._piece.offset + start, count)
            self.resize(sizes)

    def resize(self, sizes: Mapping[str, int]) -> None:
        """Write the rows that kernels share."""
        data = np.zeros(self._end // 4, np.int32)
        for dims, start in self._shared.items():
            data[start // 4 : start // 4 + len(dims)] = [known(d, sizes) for d in dims]
        self._write(data, 0)

    def write(self, sizes: Mapping[str, int]) -> None:
        for number, start in self._late.items():
            row = [evaluate(d, sizes) for d in self._program.kernels[number].sizes]
            if not symbols(row) and self._written.get(number) != row:
                self._written[number] = row
                self._write(np.array(row, np.int32), start)

    def _write(self, numbers: np.ndarray, start: int) -> None:
        if self._piece is not None:
            self._pool.gpu.write(self._piece.buffer, self._piece.offset + start, numbers.view(np.uint8))

    def close(self) -> None:
        if self._piece is not None:
            self._pool.release(self._pool.give, self._piece)


def _no_aliases(named: Sequence[Place], access: Sequence[str], code: Code) -> None:
    """Devices reject a dispatch that reads and writes one buffer through two bindings."""
    written = [place for place, kind in zip(named, access, strict=False) if kind == "storage, read_write"]
    places = [place for place in named if place[0] != "weights"]
    twice = [place for place in written if places.count(place) > 1]
    if twice:
        place = " ".join(map(str, twice[0]))
        raise DeviceError(
            f"kernel {code.label!r} reads and writes {place} through two bindings; the device needs two buffers: plan without in-place steps"
        )


def spread(groups: Sequence[int], limit: int, label: str) -> tuple[int, int, int]:
    """The workgroups of a dispatch; x is spread over x and y if it exceeds the device's limit."""
    x, y, z = groups
    if x > limit and y == 1:
        y = -(-x // limit)
        x = -(-x // y)
    if max(x, y, z) > limit:
        raise DeviceError(
            f"kernel {label!r} needs {groups[0]} × {groups[1]} × {groups[2]} workgroups, this device runs at most {limit} in each direction"
        )
    return x, y, z
