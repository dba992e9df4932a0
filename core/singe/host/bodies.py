"""The bodies of requests, which come in pieces: how much they may hold, alone and together, and how slowly they may come."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, Final

from .protocol import Refused

MAX_HELD_BYTES: Final = 1 << 30
"""Of all bodies that are being read or wait for their run."""
BODY_SECONDS: Final = 20.0
"""For the body of a request, beside what MIN_BYTES_PER_SECOND allows."""
MIN_BYTES_PER_SECOND: Final = 1 << 16
MAX_LEFT_BYTES: Final = 1 << 20
"""How much of a refused request's body is read, so that its client sees the answer."""


class HeldBytes:
    """What all bodies hold, of which only so much may be here."""

    def __init__(self) -> None:
        self.size = 0

    def take(self, size: int) -> None:
        """Count bytes that came."""
        if self.size + size > MAX_HELD_BYTES:
            raise Refused(503, "the bodies of other requests take all room: try again later", ((b"retry-after", b"1"),))
        self.size += size

    def give(self, size: int) -> None:
        """Count bytes that went."""
        self.size -= size


class RequestBody:
    """The body of a request, which comes in pieces."""

    def __init__(self, room: HeldBytes, receive: Callable[[], Awaitable[MutableMapping[str, Any]]]) -> None:
        self._room: Final = room
        self.receive: Final = receive
        self._held = 0
        self.is_read = False

    async def read(self, length: int | None, limit: int) -> bytearray:
        """All of it, if it is no longer than the limit, and no slower than it may be."""
        if (length or 0) > limit:
            raise Refused(413, f"the body has {length} bytes, and {limit} are allowed")
        found, start = bytearray(), time.monotonic()
        while not self.is_read:
            piece = await self._piece(start + BODY_SECONDS + len(found) / MIN_BYTES_PER_SECOND - time.monotonic())
            if len(found) + len(piece) > limit:
                raise Refused(413, f"the body has more than the {limit} bytes that are allowed")
            self._room.take(len(piece))
            self._held += len(piece)
            found += piece
        return found

    async def discard(self) -> None:
        """Take what comes for a short while, so that a client which still sends sees the answer."""
        left = MAX_LEFT_BYTES
        try:
            while not self.is_read and left > 0:
                left -= len(await self._piece(BODY_SECONDS / 4))
        except Refused:
            pass

    def release(self) -> None:
        """Its bytes are not held any more."""
        self._room.give(self._held)
        self._held = 0

    async def _piece(self, seconds: float) -> bytes:
        try:
            async with asyncio.timeout(max(seconds, 0)):
                message = await self.receive()
        except TimeoutError:
            raise Refused(408, f"the body did not come within {BODY_SECONDS:g} seconds") from None
        if message["type"] != "http.request":
            self.is_read = True
            raise Refused(400, "the client left before its body was here")
        self.is_read = not message.get("more_body", False)
        return message.get("body", b"")
