"""The client's connection to a server: messages go out in batches, answers to questions come back.

Messages are collected, and sent together when something is waited for, when they are many, or soon after, by a thread.

A connection that is lost is at once an error for what waits. What is said next connects again, as long as the server keeps the session:
the arrays are still there, and all that was said before is done, once. Batches are kept until the server has done them, and those that
it has not done are sent again.
"""

from __future__ import annotations

import math
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from itertools import count
from typing import Any, Final, cast

from ...awaitables import MaybeAwaitable, finished, resolve_async
from ...dtypes import DType, string
from ...errors import DeviceError, FormatError, RemoteDisconnected
from .protocol import (
    MAX_FRAMES_UNDER_WAY,
    MAX_HEADER_BYTES,
    NAME,
    REPLIES,
    VERSION,
    Batch,
    BatchReader,
    Bytes,
    RemoteMessage,
    error_of,
)
from .socket import Link, LinkLost, connect

MAX_WAITING_MESSAGES: Final = 64
MAX_WAITING_BYTES: Final = MAX_HEADER_BYTES // 2
"""Of messages that nothing waits for, before they are sent."""
FLUSH_SECONDS: Final = 0.002
"""How long they wait for others."""
IDLE_TURNS: Final = 50
"""After so many FLUSH_SECONDS without a message, nobody looks for one until the next."""
GREETING_SECONDS: Final = 30.0
"""How long the server may take to open its device."""

Expected = tuple[DType, tuple[int, ...] | None]
"""The dtype of a value, and its shape if that is known."""


class Question:
    """A question, and its answer once it is there. batch: the number of that which asks."""

    def __init__(self, batch: int, expected: Expected | None) -> None:
        self.batch: Final = batch
        self.expected: Final = expected
        self.answer: RemoteMessage | None = None


class RemoteConnection:
    """See the module's docstring. The caller of its methods holds the lock.

    tidy: adds messages to a batch before it is sent, about what is not needed any more. server_device, target, settings: the name of the
    server's device, that of its target, and that one's settings. sent, received: bytes. trips: how often something was waited for.

    What waits is a coroutine, which natively runs to its end at once; PageConnection has those of a page.
    """

    server_device: str
    target: str
    settings: Mapping[str, Any]

    def __init__(self, url: str, token: str, open_link: Callable[[str], MaybeAwaitable[Link]] = connect) -> None:
        self.url: Final = url
        self.name: Final = f"{NAME}:{url}"
        self.lock: Final = threading.RLock()
        self.numbers: Final = count(1)
        self.ended = ""
        """Why there is no session any more."""
        self.sent = self.received = self.trips = 0
        self.tidy: Callable[[Batch], None] = lambda batch: None
        self.token: Final = token
        self._open_link: Final = open_link
        self._batch = Batch()
        self._batches = 0  # that were sent, or tried to
        self._done = 0  # of them
        self._log: Final[deque[tuple[int, Batch]]] = deque()  # those that may not be done yet
        self._questions: Final[dict[int, Question]] = {}
        self._link: Link | None = None
        self._frames = self._taken = 0  # that this link has sent, and of which the server says that it has them
        self._session, self._grace, self._lost_at = "", 0.0, 0.0
        self._flusher: threading.Thread | None = None
        self._wake: Final = threading.Event()
        self._start()

    def _start(self) -> None:
        finished(self.begin())

    async def begin(self) -> None:
        """Begin the session."""
        try:
            self.server_device, self.target, self.settings = await self._greet()
        except LinkLost as e:
            raise DeviceError(
                f"{NAME}: no server answers at {self.url}: {e}; start one there: singe host --device webgpu"
            ) from None

    def say(self, name: str, *values: Any, parts: Iterable[Bytes] = ()) -> None:
        """Have a message sent, soon. The bytes of its parts must not change afterwards; those of one that is waited for, not before that
        ends."""
        if self.ended:
            raise RemoteDisconnected(self.ended)
        self._batch.add(name, *values, parts=parts)
        if (
            len(self._batch) >= MAX_WAITING_MESSAGES
            or self._batch.bytes + self._batch.header_bytes >= MAX_WAITING_BYTES
        ):
            self._send()
        else:
            self._send_soon()

    def _send_soon(self) -> None:
        if not self._wake.is_set():
            self._wake.set()
            if self._flusher is None:
                given = weakref.ref(self), self._wake
                self._flusher = threading.Thread(target=_flushing, args=given, name="singe remote", daemon=True)
                self._flusher.start()

    def question(self, expected: Expected | None = None) -> int:
        """The number of a new question, to which the next message asks for an answer. expected: of a value."""
        number = next(self.numbers)
        self._questions[number] = Question(self._batches + 1, expected)
        return number

    def wait(self, numbers: Sequence[int]) -> MaybeAwaitable[list[RemoteMessage]]:
        """The answers to questions; the first that is an error is raised."""
        return finished(self._waited([self._questions[n] for n in numbers]))

    async def _waited(self, asked: Sequence[Question]) -> list[RemoteMessage]:
        try:
            self._send()
            self.trips += 1
            while any(q.answer is None for q in asked):
                await resolve_async(self._receive())
        except LinkLost as e:
            self._stop_waiting(self._lost(e))
            raise RemoteDisconnected(f"{self.name}: {self._lost(e)}") from None
        except FormatError as e:
            self._end(str(e))
            raise
        except BaseException:  # such as KeyboardInterrupt, in the middle of a frame
            self._stop_waiting("the wait was interrupted")
            raise
        found = []
        for q in asked:
            assert q.answer is not None
            if q.answer.name == "error":
                _, kind, text = q.answer.values
                raise error_of(kind, f"{self.name}: {text}")
            found.append(q.answer)
        return found

    def close(self) -> None:
        """End the session."""
        if self.ended:
            return
        self._batch.add("leave")
        with suppress(DeviceError, FormatError):  # it may be gone already
            if self._link is not None:
                self._send()
        self._end(f"{self.name} was disposed of")

    # --- sending and receiving ---

    def _next_batch(self) -> Batch | None:
        """What waits to be sent, which from now on is sent until it is done."""
        self.tidy(self._batch)
        if not self._batch:
            return None
        batch, self._batch = self._batch, Batch()
        self._batches += 1
        self._log.append((self._batches, batch))
        return batch

    def _send(self) -> None:
        """Send what waits."""
        batch = self._next_batch()
        if batch is None:
            return
        if self._link is not None:
            try:
                self._pass_on(batch)
                return
            except LinkLost:
                with suppress(LinkLost, TimeoutError):  # the last words may say why
                    while True:
                        self._receive(0)
                self._cut()
            except BaseException:  # such as KeyboardInterrupt, in the middle of a batch
                self._cut()
                raise
        finished(self._come_back())

    def _pass_on(self, batch: Batch) -> None:
        for frame in batch.frames():
            while self._frames - self._taken >= MAX_FRAMES_UNDER_WAY:
                self._receive()
            assert self._link is not None
            self._link.send(frame)
            self._frames += 1
            self.sent += len(frame)

    def _receive(self, timeout: float | None = None) -> MaybeAwaitable[None]:
        """Wait for one frame of the server, and take it."""
        assert self._link is not None
        self._take(cast(bytes, self._link.receive(timeout)))

    def _take(self, frame: bytes) -> None:
        self.received += len(frame)
        for message in self._reader.feed(frame) or ():
            self._hear(message)

    def _hear(self, message: RemoteMessage) -> None:
        match message.name, message.values:
            case "ack", (done, taken):
                self._taken = taken
                self._forget(done)
            case "bye", (kind, text):
                self._end(f"{self.name}: the session has ended: {text}")
                raise RemoteDisconnected(self.ended) if kind == "DeviceError" else error_of(kind, self.ended)
            case "ready", _:
                raise FormatError(f"{self.name}: the server began the session twice")
            case _, (number, *_):
                question = self._questions.pop(number, None)
                if question is not None:
                    question.answer = message

    def _forget(self, done: int) -> None:
        """So many batches are done."""
        self._done = done
        while self._log and self._log[0][0] <= done:
            self._log.popleft()

    def _has_room(self, name: str, values: tuple[Any, ...], size: int) -> bool:
        """Whether bytes of the server are what was asked for."""
        number, given, own, _ = values
        question = self._questions.get(number)
        if question is None or question.expected is None:
            return False
        kind, shape = question.expected
        if given is not kind or (shape is not None and own != shape):
            raise ValueError(f"{given}{list(own)} in answer to a read of {kind}{list(shape or ())}")
        if kind is not string and size != math.prod(own) * kind.size:
            raise ValueError(f"{size} bytes for {kind}{list(own)}")
        return True

    # --- the link ---

    async def _greet(self) -> tuple[str, str, Mapping[str, Any]]:
        """Connect, and begin the session or come back to it; the server's device, its target, and that one's settings."""
        link = await resolve_async(self._open_link(self.url))
        self._reader: BatchReader = BatchReader(REPLIES, self._has_room, "server")
        hello = Batch()
        hello.add("hello", VERSION, self.token, self._session)
        try:
            for frame in hello.frames():
                link.send(frame)
            first, *_ = self._reader.feed(await resolve_async(link.receive(GREETING_SECONDS))) or [None]
            if first is not None and first.name == "bye":
                raise DeviceError(f"{self.name}: {first.values[1]}")
            if first is None or first.name != "ready":
                raise FormatError(f"{self.name}: this is no server of Singe's devices")
        except TimeoutError:
            link.close()
            raise LinkLost("it says nothing") from None
        except BaseException:
            link.close()
            raise
        self._session, device, target, settings, self._grace, done = first.values
        self._link, self._frames, self._taken = link, 0, 0
        self._forget(done)
        return device, target, settings

    def _cut(self) -> None:
        """The link is gone."""
        if self._link is not None:
            self._link.close()
            self._lost_at = time.monotonic()
        self._link = None

    def _lost(self, why: LinkLost) -> str:
        again = f"the next call connects again, for {self._grace:g} s, and what was called before is done then, once"
        return f"the connection was lost: {why}; {again}"

    def _leave_unanswered(self, why: str) -> None:
        """No question so far is answered."""
        self._questions.clear()

    def _stop_waiting(self, why: str) -> None:
        """Cut the link, on which an answer may be half read. The next call connects again, and no memory of the caller is needed for it."""
        self._cut()
        self._leave_unanswered(why)
        for _, batch in self._log:
            batch.keep()

    def _end(self, reason: str) -> None:
        """The session is gone, too."""
        self.ended = reason
        self._cut()
        self._leave_unanswered(reason)
        self._log.clear()

    async def _come_back(self) -> None:
        """Connect to the session again, and send what it has not done."""
        if self.ended:
            raise RemoteDisconnected(self.ended)
        try:
            await self._greet()
            for _, batch in list(self._log):
                self._pass_on(batch)
        except LinkLost as e:
            self._cut()
            self._leave_unanswered(str(e))
            if time.monotonic() - self._lost_at > self._grace:
                self._end(f"{self.name}: the connection was lost, and so is the session: {e}")
                raise RemoteDisconnected(self.ended) from None
            raise RemoteDisconnected(
                f"{self.name}: the connection was lost, and cannot be made again yet: {e}"
            ) from None
        except (DeviceError, FormatError) as e:
            self._end(f"{e}; what was on the device is lost: upload it again")
            raise RemoteDisconnected(self.ended) from None
        if any(q.answer is None and q.batch <= self._done for q in self._questions.values()):
            why = "an answer was lost with the connection, which is there again; what was called is done"
            self._leave_unanswered(why)
            raise RemoteDisconnected(f"{self.name}: {why}")


def _flushing(of: weakref.ref[RemoteConnection], wake: threading.Event) -> None:
    """Send, in a thread of its own, what waits and nothing else sends."""
    idle = 0
    while True:
        wake.wait()
        time.sleep(FLUSH_SECONDS)
        connection = of()
        if connection is None or connection.ended:
            return
        if connection.lock.acquire(blocking=False):
            try:
                idle = 0 if connection._batch else idle + 1
                if idle >= IDLE_TURNS:
                    idle = 0
                    wake.clear()
                elif connection._link is not None and connection._frames - connection._taken < MAX_FRAMES_UNDER_WAY:
                    connection._send()
            except (DeviceError, FormatError):
                pass  # the next call tells
            finally:
                connection.lock.release()
        del connection
