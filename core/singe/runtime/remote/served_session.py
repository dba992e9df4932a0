"""What a server does for one client: its table of ids, the messages that work on it, and its limits. It knows no sockets.

A run that fails poisons its outputs and states: whatever is computed of them fails with the same error, which the client gets when it
reads. What only a wrong client would send ends the session, with a FormatError; a limit that is reached is a DeviceError of what
exceeds it.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import field
from types import MappingProxyType
from typing import Any, Final

import numpy as np

from ...awaitables import resolve
from ...compiler.target import execution_of
from ...dtypes import string, widened
from ...errors import DeviceError, FormatError, SingeError
from ...late_dataclass import dataclass
from ...ops import find_row
from ...program.elements import aligned
from ...program.format import made
from ...program.program import Host, ProgramData
from ...shapes import evaluate, known, show
from ...time_limits import limited
from ..backend import Backend, Executable
from ..registry import target_of
from .protocol import NAME, RemoteMessage, from_wire, to_wire

TWIN: Final = "the server where engines need no await"
MAX_NAMED_STEPS: Final = 3
"""How many steps of a Program are named in an error."""
FAULTS: Final = (
    SingeError,
    KeyError,
    TypeError,
    ValueError,
    IndexError,
    AttributeError,
    RecursionError,
    ArithmeticError,
)
"""What a message that is wrong makes Python raise."""
BYTES_PER_STRING: Final = 64
BYTES_PER_CHARACTER: Final = 4
"""What strings count for; the memory that they take is Python's, and not more."""
NOT_LENT: Final[Mapping[str, str]] = {
    **dict.fromkeys(
        ("regex_full_match", "string_tokens"), "a pattern may take for ever, and nothing else runs meanwhile"
    ),
    "string_concat": "strings that are joined to themselves grow beyond what a session may have",
}
"""Ops on the host that no limit of a session bounds ↦ why."""


@dataclass(frozen=True)
class SessionLimits:
    """What one session may have: bytes of arrays, states, weights and scratch; ids of arrays; programs; seconds of computing, after
    which what it still computes is stopped."""

    bytes: int = 4 << 30
    ids: int = 1 << 20
    programs: int = 1 << 14
    seconds: float = math.inf


@dataclass(eq=False)
class _Poison:
    """In place of an array or a Program: the error that kept it from being made. told: whether the client has had it."""

    kind: str
    text: str
    told: bool = False


@dataclass(eq=False)
class _HeldBlock:
    """A block of weights, and how many Programs hold it."""

    array: np.ndarray
    users: int = 0


@dataclass(eq=False)
class _PreparedProgram:
    """A Program of the client, the ids of its blocks, and the bytes that it takes without them."""

    executable: Executable | _Poison
    blocks: Sequence[int]
    bytes: int
    label: str = ""
    scratch: dict[tuple[tuple[int, ...], ...], int] = field(default_factory=dict)


Answer = tuple[str, tuple[Any, ...], "bytes | memoryview"]
"""A reply: name, values, bytes."""


class ServedSession:
    """See the module's docstring. `perform` is called by one thread at a time."""

    def __init__(
        self, backend: Backend, limits: SessionLimits, weights: Mapping[str, np.ndarray] = MappingProxyType({})
    ) -> None:
        self.backend: Final = backend
        self.limits: Final = limits
        self.weights: Final = weights
        self.bytes = 0
        self.seconds = 0.0
        self._keeps_arrays: Final = not execution_of(target_of(backend)).fuses
        self._coming = 0  # bytes of the batch that is on its way
        self._arrays: Final[dict[int, Any]] = {}
        self._programs: Final[dict[int, _PreparedProgram]] = {}
        self._blocks: Final[dict[int, _HeldBlock]] = {}
        self._untold: list[_Poison] = []

    def has_room(self, name: str, values: tuple[Any, ...], count: int) -> bool:
        """Whether the bytes of a message may come."""
        if name == "upload":
            _, kind, shape, _ = values
            if kind is not string and count != math.prod(shape) * kind.size:
                raise ValueError(f"{count} bytes for {kind}{show(shape)}")
        if self.bytes + self._coming + count > self.limits.bytes:
            return False
        self._coming += count
        return True

    def forget_coming(self) -> None:
        """The batch that was on its way is there, or will not come."""
        self._coming = 0

    def perform(self, batch: Sequence[RemoteMessage]) -> list[Answer]:
        """Do what a batch says; returns the answers. FormatError: it is nothing that our client says, and the session must end."""
        self.forget_coming()
        answers = []
        start, before = time.monotonic(), self.seconds
        with limited(self.seconds_left):
            for message in batch:
                try:
                    answer = _DO[message.name](self, message)
                except DeviceError:  # a limit
                    raise
                except FAULTS as e:
                    raise FormatError(f"{NAME}: {message.name}: {e!s:.400}") from None
                self.seconds = before + time.monotonic() - start
                if self.seconds_left <= 0:
                    raise self.out_of_time()
                if answer is not None:
                    answers.append(answer)
        return answers

    @property
    def seconds_left(self) -> float:
        """For which the session may compute."""
        return self.limits.seconds - self.seconds

    def out_of_time(self) -> DeviceError:
        """The error of a session that has computed for too long."""
        return DeviceError(f"the session has computed for as long as the server allows, {self.limits.seconds:g} s")

    def close(self) -> None:
        """Free all that the session has."""
        for prepared in self._programs.values():
            if not isinstance(prepared.executable, _Poison):
                prepared.executable.dispose()
        for table in (self._arrays, self._programs, self._blocks):
            table.clear()
        self.bytes = 0
        self.backend.dispose()

    # --- arrays ---

    def _upload(self, message: RemoteMessage) -> None:
        number, kind, shape, _ = message.values
        (raw,) = message.parts
        if raw is None:
            self._enter(number, self._full(math.prod(shape) * kind.size, f"an array {kind}{show(shape)}"))
            return
        array = from_wire(raw, kind, shape)
        if self._keeps_arrays or not array.flags.aligned:
            array = array.copy()
        self._enter(number, self._tried(lambda: self.backend.upload(array), f"an upload of {kind}{show(shape)}"))

    def _read(self, message: RemoteMessage) -> Answer:
        question, number = message.values
        found = self._array(number)
        if not isinstance(found, _Poison):
            array = self._tried(
                lambda: resolve(self.backend.download(found), TWIN), f"reading {found.dtype}{show(found.shape)}"
            )
            if not isinstance(array, _Poison):
                raw = to_wire(array)
                return "value", (question, found.dtype.name, array.shape, len(raw)), raw
            found = array
        return self._told(question, found)

    def _free(self, message: RemoteMessage) -> None:
        for number in message.values[0]:
            self._array(number)
            self.bytes -= bytes_of(self._arrays.pop(number))

    def _array(self, number: int) -> Any:
        if number not in self._arrays:
            raise ValueError(f"there is no array {number}")
        return self._arrays[number]

    def _enter(self, number: int, array: Any) -> None:
        if number in self._arrays:
            raise ValueError(f"there is an array {number} already")
        if len(self._arrays) >= self.limits.ids:
            raise DeviceError(f"the session has {len(self._arrays)} arrays, and the server allows {self.limits.ids}")
        self._arrays[number] = array
        self.bytes += bytes_of(array)

    # --- Programs ---

    def _program(self, message: RemoteMessage) -> None:
        number, size, modules, blocks = message.values
        if number in self._programs:
            raise ValueError(f"there is a program {number} already")
        if len(self._programs) >= self.limits.programs:
            raise DeviceError(
                f"the session has {len(self._programs)} programs, and the server allows {self.limits.programs}"
            )
        if not blocks or blocks[0][0] or len({start for start, *_ in blocks}) != len(blocks):
            raise ValueError("the blocks of a program begin at 0, and each at a place of its own")
        parts = iter(message.parts)
        head, codes = next(parts), [next(parts) for _ in modules]
        own = size + sum(n for _, _, n in modules)
        lacking = head is None
        held: dict[int, np.ndarray] = {}
        for start, block, count, follows in blocks:
            if follows:
                if block in self._blocks:
                    raise ValueError(f"there is a block {block} already")
                part = next(parts)
                self._blocks[block] = _HeldBlock(np.zeros(0, np.uint8) if part is None else in_own_memory(part))
                self.bytes += 0 if part is None else part.size
            elif block not in self._blocks:
                raise ValueError(f"there is no block {block}")
            held[start] = self._blocks[block].array
            lacking = lacking or held[start].size != count
            self._blocks[block].users += 1
        numbers = [block for _, block, *_ in blocks]
        if lacking:
            self._programs[number] = _PreparedProgram(
                self._full(sum(n for _, _, n, _ in blocks), "a program"), numbers, 0
            )
            return
        assert head is not None
        prepared = self._programs[number] = _PreparedProgram(_Poison("", ""), numbers, own)
        self.bytes += own
        texts = {
            name: bytes(code).decode() if is_text else bytes(code)
            for (name, is_text, _), code in zip(modules, codes, strict=True)
            if code is not None
        }
        weights = held.pop(0)
        fields = json.loads(bytes(head))
        refused = next(filter(None, map(_why_not_lent, _host_ops(fields))), None)
        if refused is not None:
            prepared.executable = self._poison("DeviceError", refused)
            return
        data = made(fields, texts, weights, f"{NAME}: a program", held)
        prepared.label = label(data)
        prepared.executable = self._tried(lambda: self.backend.prepare(data), f"preparing {prepared.label}")

    def _weights(self, message: RemoteMessage) -> Answer:
        question, block, key = message.values
        if block in self._blocks:
            raise ValueError(f"there is a block {block} already")
        array = self.weights.get(key)
        if array is None or self.bytes + array.size > self.limits.bytes:
            return "facts", (question, {"bytes": 0}), b""
        self._blocks[block] = _HeldBlock(array)
        self.bytes += array.size
        return "facts", (question, {"bytes": array.size}), b""

    def _drop(self, message: RemoteMessage) -> None:
        for number in message.values[0]:
            prepared = self._prepared(number)
            del self._programs[number]
            self.bytes -= prepared.bytes
            if not isinstance(prepared.executable, _Poison):
                prepared.executable.dispose()
            for block in prepared.blocks:
                held = self._blocks[block]
                held.users -= 1
                if not held.users:
                    self.bytes -= held.array.size
                    del self._blocks[block]

    def _prepared(self, number: int) -> _PreparedProgram:
        if number not in self._programs:
            raise ValueError(f"there is no program {number}")
        return self._programs[number]

    def _states(self, message: RemoteMessage) -> None:
        number, ids = message.values
        executable = self._prepared(number).executable
        made: Any = executable
        if not isinstance(executable, _Poison):
            data = executable.program
            if len(ids) != len(data.states):
                raise ValueError(f"{len(ids)} ids for {len(data.states)} states")
            wanted = sum(known(data.buffers[s.buffer].bytes, {}) for s in data.states)
            made = (
                self._full(wanted, "the states of a session")
                if self.bytes + wanted > self.limits.bytes
                else self._tried(executable.new_states, "new states")
            )
        for k, i in enumerate(ids):
            self._enter(i, made if isinstance(made, _Poison) else made[k])

    def _run(self, message: RemoteMessage) -> Answer | None:
        number, input_ids, state_ids, output_ids, question = message.values
        prepared = self._prepared(number)
        inputs, states = [self._array(i) for i in input_ids], [self._array(i) for i in state_ids]
        if len({*state_ids}) != len(state_ids) or not {*state_ids}.isdisjoint(input_ids):
            raise ValueError("a state comes twice")
        found = next((x for x in (prepared.executable, *states, *inputs) if isinstance(x, _Poison)), None)
        made, began = (found, False) if found else self._ran(prepared, inputs, states, output_ids)
        if isinstance(made, _Poison):
            if began or question is None:  # who waits for the answer knows at once that a run did not begin
                self._lose(state_ids, made)
            for i in output_ids:
                if i is not None:
                    self._enter(i, made)
            return None if question is None else self._told(question, made)
        for i, array in zip(output_ids, made, strict=True):
            if i is not None:
                self._enter(i, array)
        return None if question is None else ("shapes", (question, [list(x.shape) for x in made]), b"")

    def _ran(
        self, prepared: _PreparedProgram, inputs: Sequence[Any], states: Sequence[Any], outputs: Sequence[int | None]
    ) -> tuple[list[Any] | _Poison, bool]:
        """The outputs, and whether the run began."""
        executable = prepared.executable
        assert not isinstance(executable, _Poison)
        data = executable.program
        if [k in data.donated for k in range(len(data.outputs))] != [i is None for i in outputs]:
            raise ValueError("ids for outputs do not fit the program")
        if len(states) != len(data.states):
            raise ValueError(f"{len(states)} states for a program with {len(data.states)}")
        for s, x in zip(data.states, states, strict=True):
            b = data.buffers[s.buffer]
            if (x.dtype, x.shape) != (b.dtype, b.shape):
                raise ValueError(
                    f"the state {s.name!r:.40} is {x.dtype}{show(x.shape)}, expected {b.dtype}{show(b.shape)}"
                )
        over = ", ".join(f"{x.dtype}{show(x.shape)}" for x in inputs)
        doing = f"a run of {prepared.label}" + (f" over {over}" if over else "")

        def run() -> list[Any]:
            shapes = tuple(x.shape for x in inputs)
            if shapes not in prepared.scratch:
                sizes = data.bound(shapes, [x.dtype for x in inputs])
                program = data.at(sizes)
                taken = [evaluate(program.buffers[i].bytes, sizes) for i in program.outputs]
                prepared.scratch[shapes] = program.peak(sizes) + sum(n for n in taken if isinstance(n, int))
            wanted = prepared.scratch[shapes]
            if self.bytes + wanted > self.limits.bytes:
                raise DeviceError(self._full(wanted, "this run").text)
            nonlocal began
            began = True
            return executable.run(inputs, states)

        began = False
        made = self._tried(run, doing)
        return made, began

    def _lose(self, states: Sequence[int], error: _Poison) -> None:
        """What a run failed to change holds nothing any more."""
        text = f"{error.text}; the states that it changes are lost: reset() the session, or make a new one"
        for i in states:
            if not isinstance(self._arrays[i], _Poison):
                self.bytes -= bytes_of(self._arrays[i])
                self._arrays[i] = _Poison(error.kind, text)

    # --- the rest ---

    def _sync(self, message: RemoteMessage) -> Answer:
        (question,) = message.values
        found = self._tried(lambda: resolve(self.backend.synchronize(), TWIN), "waiting for the device")
        if not isinstance(found, _Poison):
            found = next((p for p in self._untold if not p.told), None)
        self._untold.clear()
        return ("done", (question,), b"") if found is None else self._told(question, found)

    def _describe(self, message: RemoteMessage) -> Answer:
        (question,) = message.values
        own = {
            "session_bytes": self.bytes,
            "session_arrays": len(self._arrays),
            "session_programs": len(self._programs),
        }
        facts = self._tried(self.backend.describe, "describing the device")
        if isinstance(facts, _Poison):
            return self._told(question, facts)
        return "facts", (question, {**json.loads(json.dumps(dict(facts), default=str)), **own}), b""

    def _tried(self, do: Callable[[], Any], doing: str) -> Any:
        """What it gives, or its error, which what depends on it gets."""
        try:
            return do()
        except SingeError as e:
            return self._poison(type(e).__name__, f"{Exception.__str__(e)} (on the server, in {doing})")
        except MemoryError as e:
            return self._poison("DeviceError", f"not enough memory for {doing}: {e}")
        except Exception as e:  # engines of other packages may raise anything
            return self._poison("DeviceError", f"{doing} failed: {type(e).__name__}: {e}")

    def _full(self, count: int, what: str) -> _Poison:
        text = (
            f"{what} of {count} bytes is too much: the session has {self.bytes}, and the server allows {self.limits.bytes}; "
            "free what is not needed, or start the server with a larger limit"
        )
        return self._poison("DeviceError", text)

    def _poison(self, kind: str, text: str) -> _Poison:
        self._untold = [p for p in self._untold if not p.told][:MAX_NAMED_STEPS]
        self._untold.append(_Poison(kind, text))
        return self._untold[-1]

    def _told(self, question: int, poison: _Poison) -> Answer:
        poison.told = True
        return "error", (question, poison.kind, poison.text), b""


_DO: Final[Mapping[str, Callable[[ServedSession, RemoteMessage], Answer | None]]] = {
    "upload": ServedSession._upload,
    "program": ServedSession._program,
    "weights": ServedSession._weights,
    "run": ServedSession._run,
    "states": ServedSession._states,
    "free": ServedSession._free,
    "drop": ServedSession._drop,
    "read": ServedSession._read,
    "sync": ServedSession._sync,
    "describe": ServedSession._describe,
}
"""A message ↦ what it does. The server itself takes the others, which begin and end a session."""


def in_own_memory(part: np.ndarray) -> np.ndarray:
    """A block of weights in memory of its own, where its buffers are aligned."""
    if part.flags.writeable:
        return part
    made = aligned(part.size)
    made[:] = part
    return made


def bytes_of(array: Any) -> int:
    """What an array counts for."""
    if isinstance(array, _Poison):
        return 0
    if array.dtype is not string:
        return math.prod(array.shape) * array.dtype.size
    texts = widened(array.data)  # which are on the host, on every device
    return texts.size * BYTES_PER_STRING + BYTES_PER_CHARACTER * sum(map(len, texts.flat))


def label(program: ProgramData) -> str:
    """A Program in words: its first steps."""
    names = [
        program.kernels[g.head].label if g.head >= 0 else g.stop.op if isinstance(g.stop, Host) else ""
        for g in program.groups
    ]
    names = [name for name in names if name]
    return ", ".join(names[:MAX_NAMED_STEPS]) + (", …" if len(names) > MAX_NAMED_STEPS else "") or "a program"


def _host_ops(fields: Mapping[str, Any]) -> Iterator[str]:
    """The ops that a Program leaves to the host, by its header, of which nothing is checked yet."""
    for part in (fields, *fields["specialised"]):
        for stop in part["stops"]:
            if stop["do"] == "host":
                yield stop["op"]


def _why_not_lent(op: str) -> str | None:
    """Why a Program with this op on the host is not run for a client."""
    if op in NOT_LENT:
        return f"a program runs {op!r}: {NOT_LENT[op]}, so that it is not lent; run it on a device of your own"
    with suppress(KeyError):  # the backend refuses what is no op
        if find_row(op).outside:
            return f"a program runs {op!r:.40}, an op that code of the server's process declares: only Singe's own are lent"
    return None
