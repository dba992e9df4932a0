"""The Backend "remote": arrays and Programs of a device elsewhere.

A Program is sent once, with those of its blocks of weights that the server does not have, and run by its id with ids of arrays. Nothing
waits but reads, `synchronize`, `describe`, and runs whose output shapes are found in mid-run.
"""

from __future__ import annotations

import json
import math
import os
import weakref
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, cast
from urllib.parse import urlsplit

import numpy as np

from ...awaitables import IN_PAGE, MaybeAwaitable, map_result, resolve
from ...compiler.target import find_target
from ...dtypes import DType
from ...dtypes import dtype as dtype_of
from ...errors import DeviceError, FormatError, InputError
from ...program.format import header
from ...program.program import ProgramData
from ...shapes import Dim, evaluate, known
from ..device import Device
from ..devices import device, shared_device
from ..donated_inputs import check_donated
from ..memory.usage import MemoryUse
from ..recent_values import Recent
from ..registry import BackendFactory
from .connection import RemoteConnection
from .page_connection import PageConnection
from .protocol import MAX_HEADER_BYTES, NAME, PORT, TOKEN_VARIABLE, Batch, Bytes, RemoteMessage, from_wire, to_wire
from .socket import Link, connect

MAX_IDS_PER_MESSAGE: Final = 8192
MAX_SHAPES: Final = 64
"""For how many sets of input shapes a Program's output shapes are kept."""
EXAMPLE: Final = f"{NAME}:ws://127.0.0.1:{PORT}"

_tokens: Final[dict[str, str]] = {}
"""The tokens that were given for addresses."""


class RemoteArray:
    """Elements on the device elsewhere, under an id."""

    def __init__(self, backend: RemoteBackend, number: int, kind: DType, shape: tuple[int, ...]) -> None:
        self.backend: Final = backend
        self.number: Final = number
        self.dtype: DType = kind
        self.shape: tuple[int, ...] = shape

    def __del__(self) -> None:
        self.backend._freed.append(self.number)  # it may be any thread, in the middle of anything


class RemoteBackend:
    """See the module's docstring."""

    reads_now = False
    survives_fork = False
    counts_memory = False

    def __init__(
        self,
        url: str,
        token: str,
        open_link: Callable[[str], Link] = connect,
        connection: RemoteConnection | None = None,
    ) -> None:
        self.connection: Final = connection or RemoteConnection(url, token, open_link)
        self.connection.tidy = self._tidy
        self.name: str = self.connection.name
        self.target: Any = find_target(self.connection.target, self.connection.settings)
        self._freed: Final[deque[int]] = deque()
        self._dropped: Final[deque[int]] = deque()
        self._blocks: Final[
            dict[int, tuple[int, int]]
        ] = {}  # the identity of a block ↦ its id, how many Programs hold it
        self._held: Final[dict[int, Sequence[int]]] = {}  # the id of a Program ↦ the identities of its blocks

    @property
    def lost(self) -> bool:
        return bool(self.connection.ended)

    def upload(self, array: np.ndarray) -> RemoteArray:
        with self.connection.lock:
            made = RemoteArray(self, next(self.connection.numbers), dtype_of(array.dtype), array.shape)
            self._upload(made.number, array, bytes(to_wire(array)))
            return made

    def download(self, array: RemoteArray) -> MaybeAwaitable[np.ndarray]:
        own = self.own(array, "the array")
        with self.connection.lock:
            told = self.connection.wait([self._read(own.number, own.dtype, own.shape)])
            return map_result(told, lambda found: self._value(*found))

    def prepare(self, program: ProgramData) -> RemoteExecutable:
        runs = self.target.name
        if program.target != runs:
            raise DeviceError(
                f"{self.name}: it runs programs for {runs!r}, this one is for {program.target!r}; compile it again"
            )
        with self.connection.lock:
            number = next(self.connection.numbers)
            self._register(number, program)
            return RemoteExecutable(self, number, program)

    def synchronize(self) -> MaybeAwaitable[None]:
        with self.connection.lock:
            number = self.connection.question()
            self.connection.say("sync", number)
            return map_result(self.connection.wait([number]), lambda _: None)

    def describe(self) -> Mapping[str, Any]:
        """What the server says, except in a page, which may not wait here; and what has gone to and fro: bytes, and round trips."""
        link = self.connection
        with link.lock:
            told: Mapping[str, Any] = {}
            if not IN_PAGE:
                number = link.question()
                link.say("describe", number)
                told = resolve(link.wait([number]), "")[0].values[1]
            own = {"address": link.url, "sent": link.sent, "received": link.received, "trips": link.trips}
            return {"device": link.server_device, **told, **own}

    def memory(self) -> MemoryUse:
        """What this session has on the server, as that says; it does not say more."""
        facts = self.describe()
        held, arrays = facts.get("session_bytes"), facts.get("session_arrays")
        if type(held) is not int or type(arrays) is not int:
            raise FormatError(
                f"{self.name}: the server says {held!r:.40} bytes and {arrays!r:.40} arrays, expected numbers"
            )
        return MemoryUse(in_use=held, count=arrays)

    def clean(self) -> None:
        """Have the server free what nobody here holds."""
        self.synchronize()

    def dispose(self) -> None:
        with self.connection.lock:
            self.connection.close()

    def own(self, array: Any, what: str) -> RemoteArray:
        """The array, after a check that it is of this device."""
        if not isinstance(array, RemoteArray) or array.backend is not self:
            raise DeviceError(
                f"{self.name}: {what} is a {type(array).__name__}, expected an array of this device; upload it first"
            )
        return array

    def _upload(self, number: int, array: np.ndarray, raw: Bytes) -> None:
        self.connection.say("upload", number, dtype_of(array.dtype).name, array.shape, len(raw), parts=(raw,))

    def _read(self, number: int, kind: DType, shape: tuple[int, ...] | None) -> int:
        """Ask for an array; the number of the question. shape: None if it is not known yet."""
        question = self.connection.question((kind, shape))
        self.connection.say("read", question, number)
        return question

    def _value(self, message: RemoteMessage) -> np.ndarray:
        """The array of an answer."""
        if message.name != "value" or message.parts[0] is None:
            raise FormatError(f"{self.name}: the server answered a read with {message.name!r}")
        _, kind, shape, _ = message.values
        found = from_wire(message.parts[0], kind, shape)
        return found if found.flags.writeable and found.flags.aligned else found.copy()

    def _register(self, number: int, program: ProgramData) -> None:
        """Send a Program, and those of its blocks that the server does not have."""
        while self._dropped:  # a new block may have the identity of one that they held
            self.connection.say("drop", self._no_longer_held())
        head = json.dumps(header(program), separators=(",", ":")).encode()
        codes = {n: (c.encode(), True) if isinstance(c, str) else (c, False) for n, c in program.modules.items()}
        modules = [(name, is_text, len(raw)) for name, (raw, is_text) in codes.items()]
        parts: list[Bytes] = [head, *(raw for raw, _ in codes.values())]
        blocks = []
        for start, block in program.blocks.items():
            own, users = self._blocks.get(id(block), (0, 0))
            if not users:
                own = next(self.connection.numbers)
                parts.append(np.ascontiguousarray(block).data)
            self._blocks[id(block)] = own, users + 1
            blocks.append((start, own, block.size, not users))
        self._held[number] = [id(block) for block in program.blocks.values()]
        self.connection.say("program", number, len(head), modules, blocks, parts=parts)

    def _tidy(self, batch: Batch) -> None:
        """Have the server free what nobody here holds."""
        while self._freed and batch.header_bytes < MAX_HEADER_BYTES // 2:
            batch.add("free", [self._freed.popleft() for _ in range(min(len(self._freed), MAX_IDS_PER_MESSAGE))])
        if self._dropped:
            batch.add("drop", self._no_longer_held())

    def _no_longer_held(self) -> Sequence[int]:
        """The ids of Programs that the server may drop, and with them the blocks that no other holds."""
        numbers = [self._dropped.popleft() for _ in range(min(len(self._dropped), MAX_IDS_PER_MESSAGE))]
        for number in numbers:
            for block in self._held.pop(number):
                own, users = self._blocks.pop(block)
                if users > 1:
                    self._blocks[block] = own, users - 1
        return numbers


class RemoteExecutable:
    """A Program that the server has, under an id; see runtime/backend.Executable."""

    def __init__(self, backend: RemoteBackend, number: int, program: ProgramData) -> None:
        self.program = program
        self.backend: Final = backend
        self._number: Final = number
        self._shapes: Final[Recent[Sequence[tuple[int, ...] | None]]] = Recent(MAX_SHAPES)
        self._scratch = 0
        self._states: Final[weakref.WeakSet[RemoteArray]] = weakref.WeakSet()
        self._finalizer = weakref.finalize(self, backend._dropped.append, number)
        self._finalizer.atexit = False

    def run(self, inputs: Sequence[Any], states: Sequence[Any] = ()) -> list[RemoteArray]:
        backend, connection = self.backend, self.backend.connection
        with connection.lock:
            given = [backend.own(x, f"input {k}") for k, x in enumerate(inputs)]
            kept = self._checked_states(states)
            check_donated(self.program, given)
            shapes = self._output_shapes([x.shape for x in given], [x.dtype for x in given])
            question = connection.question() if None in shapes else None
            outputs = self._begin([x.number for x in given], kept, question)
            if question is not None:
                (answer,) = resolve(connection.wait([question]), "a run_async(…) with NumPy arrays")
                if answer.name != "shapes" or len(answer.values[1]) != len(outputs):
                    raise FormatError(f"{backend.name}: the server answered a run with {answer.name!r}")
                shapes = answer.values[1]
            made = []
            for k, (i, shape) in enumerate(zip(outputs, shapes, strict=True)):
                b = self.program.buffers[self.program.outputs[k]]
                made.append(
                    given[self.program.donated[k]] if i is None else RemoteArray(backend, i, b.dtype, shape or ())
                )
            return made

    def call(self, inputs: Sequence[np.ndarray], states: Sequence[Any] = ()) -> MaybeAwaitable[list[np.ndarray]]:
        """A run in one round trip."""
        backend, program = self.backend, self.program
        with backend.connection.lock:
            kept = self._checked_states(states)
            shapes = self._output_shapes([x.shape for x in inputs], [dtype_of(x.dtype) for x in inputs])
            numbers = [next(backend.connection.numbers) for _ in inputs]
            for number, x in zip(numbers, inputs, strict=True):
                backend._upload(number, x, to_wire(np.asarray(x)))
            began = backend.connection.question()
            outputs = self._begin(numbers, kept, began)
            reads = [began]
            for k, (i, shape) in enumerate(zip(outputs, shapes, strict=True)):
                kind = program.buffers[program.outputs[k]].dtype
                reads.append(backend._read(numbers[program.donated[k]] if i is None else i, kind, shape))
            backend._freed.extend((*numbers, *(i for i in outputs if i is not None)))
            return map_result(backend.connection.wait(reads), lambda found: [backend._value(m) for m in found[1:]])

    def new_states(self) -> list[RemoteArray]:
        backend, numbers = self.backend, self.backend.connection.numbers
        with backend.connection.lock:
            self._check_held()
            buffers = [self.program.buffers[s.buffer] for s in self.program.states]
            made = [RemoteArray(backend, next(numbers), b.dtype, tuple(known(d, {}) for d in b.shape)) for b in buffers]
            backend.connection.say("states", self._number, [x.number for x in made])
            self._states.update(made)
            return made

    def memory(self) -> Mapping[str, int]:
        """As far as the client knows: scratch is that of the largest run so far."""
        shared = sum(block.size for block in self.program.shared.values())
        states = sum(math.prod(x.shape) * x.dtype.size for x in self._states)
        return {"weights": self.program.weights.size, "shared": shared, "scratch": self._scratch, "states": states}

    def dispose(self) -> None:
        self._finalizer()

    def _begin(self, inputs: Sequence[int], states: Sequence[RemoteArray], question: int | None) -> list[int | None]:
        """Have a run begun; the ids of its outputs, None for those in donated inputs."""
        connection, program = self.backend.connection, self.program
        outputs = [None if k in program.donated else next(connection.numbers) for k in range(len(program.outputs))]
        connection.say("run", self._number, inputs, [x.number for x in states], outputs, question)
        return outputs

    def _checked_states(self, states: Sequence[Any]) -> Sequence[RemoteArray]:
        self._check_held()
        if len(states) != len(self.program.states):
            raise InputError(f"the program has {len(self.program.states)} states, got {len(states)}: see new_states()")
        return [self.backend.own(x, f"state {k}") for k, x in enumerate(states)]

    def _output_shapes(
        self, shapes: Sequence[tuple[int, ...]], kinds: Sequence[DType]
    ) -> Sequence[tuple[int, ...] | None]:
        """The shapes of the outputs; None for those that are found in mid-run."""

        def found() -> Sequence[tuple[int, ...] | None]:
            sizes = self.program.bound(shapes, kinds)
            program = self.program.at(sizes)
            self._scratch = max(self._scratch, program.peak(sizes))
            return [_numbers([evaluate(d, sizes) for d in program.buffers[i].shape]) for i in program.outputs]

        return self._shapes.at((tuple(shapes), tuple(kinds)), found)

    def _check_held(self) -> None:
        if not self._finalizer.alive:
            raise DeviceError(f"{self.backend.name}: this program was disposed of; compile or load it again")


def _numbers(shape: Sequence[Dim]) -> tuple[int, ...] | None:
    known = tuple(d for d in shape if isinstance(d, int))
    return known if len(known) == len(shape) else None


def _open(choice: str = "", token: str | None = None) -> MaybeAwaitable[RemoteBackend]:
    if not choice:
        raise DeviceError(f"a device elsewhere needs its address: {EXAMPLE}")
    try:
        parts = urlsplit(choice)
        usable = parts.scheme in ("ws", "wss") and parts.hostname and (parts.port or 1) and parts.username is None
    except ValueError:
        usable = False
    if not usable:
        raise InputError(f"{choice!r:.80} is no address of a device elsewhere, expected one as in {EXAMPLE}")
    given = token if token is not None else _tokens.get(choice, os.environ.get(TOKEN_VARIABLE, ""))
    return _open_in_page(choice, given) if IN_PAGE else RemoteBackend(choice, given)


async def _open_in_page(url: str, token: str) -> RemoteBackend:
    connection = PageConnection(url, token)
    await connection.begin()
    return RemoteBackend(url, token, connection=connection)


open_remote: Final = BackendFactory(_open, target_name="", choices=f"the address of a server, as in {EXAMPLE}")


def Remote(url: str, token: str | None = None) -> Device:
    """The device of a server elsewhere, which `sg.remote.serve` or `singe host` lends.

        device = sg.Remote("ws://127.0.0.1:3000", token="…")

    token: what the server printed; by default that of the environment's SINGE_REMOTE_TOKEN. In a page whose engine cannot suspend
    WebAssembly, `await sg.device_async("remote:ws://…")` opens it. A device that is open is shared; the server checks another token first.
    """
    name = f"{NAME}:{url}"
    if token is not None:
        shared = shared_device(name)
        if shared is not None and cast(RemoteBackend, shared.backend).connection.token != token:
            resolve(map_result(_open(url, token), RemoteBackend.dispose), f'sg.device("{name}"), which is open')
        _tokens[url] = token
    return device(name)
