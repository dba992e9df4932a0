"""HTTP, by the package uvicorn (the extra `host`), which only this module imports, when it is used.

uvicorn waits for ever for the rest of a request's head, and for a client to take what was sent; here such connections end in time.
"""

from __future__ import annotations

import asyncio
import socket
from typing import Any, Final

from ..awaitables import IN_PAGE
from ..errors import DeviceError

HEAD_SECONDS: Final = 10.0
"""For the head of a request, from its first byte; and for the first byte of a connection."""
IDLE_SECONDS: Final = 30
"""Between requests of a connection."""
SEND_SECONDS: Final = 20.0
"""For a client to take what waits to be sent."""
END_SECONDS: Final = 10
"""For clients that still send or receive when the server stops."""
MAX_HEAD_BYTES: Final = 1 << 16
BACKLOG: Final = 1024
MAX_CONNECTIONS: Final = 4096
"""Of clients, at a time; others are answered with 503."""


class WebServer:
    """An ASGI application on a socket that listens. `run` serves until `end` is called, in any thread."""

    def __init__(self, app: Any, listener: socket.socket) -> None:
        package = uvicorn()
        self._listener: Final = listener
        self._server: Final = package.Server(package.Config(
            app, http=_timed_protocol(), ws="none", loop="asyncio", lifespan="off", log_config=None, log_level="critical",
            access_log=False, proxy_headers=False, server_header=False, h11_max_incomplete_event_size=MAX_HEAD_BYTES,
            timeout_keep_alive=IDLE_SECONDS, timeout_graceful_shutdown=END_SECONDS, backlog=BACKLOG, limit_concurrency=MAX_CONNECTIONS,
        ))  # fmt: skip
        self.loop: asyncio.AbstractEventLoop | None = None

    def run(self) -> None:
        """Serve until the end."""
        asyncio.run(self._serve())

    async def _serve(self) -> None:
        self.loop = asyncio.get_running_loop()
        await self._server.serve(sockets=[self._listener])

    def end(self) -> None:
        """Take no more connections, finish what is being answered, and return from `run`."""
        self._server.should_exit = True


def uvicorn() -> Any:
    """The package, or the error that says how to install it."""
    if IN_PAGE:
        raise DeviceError("serving models: Python in a page cannot listen for clients; serve them elsewhere")
    try:
        import uvicorn  # noqa: PLC0415
        import uvicorn.protocols.http.h11_impl  # noqa: PLC0415
    except ImportError as e:
        raise DeviceError(f"serving models needs the package uvicorn: pip install 'singe[host]' ({e})") from e
    return uvicorn


def _timed_protocol() -> Any:
    base: Any = uvicorn().protocols.http.h11_impl.H11Protocol

    class TimedProtocol(base):
        """A connection of which the head of each request must come in time, and what is sent must be taken in time."""

        head_end: asyncio.TimerHandle | None = None
        send_end: asyncio.TimerHandle | None = None

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            self.expect()

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            if self.cycle is not None and not self.cycle.response_complete:
                self.forget()
            elif self.head_end is None and self.timeout_keep_alive_task is None:  # a head has begun
                self.expect()

        def on_response_complete(self) -> None:
            super().on_response_complete()
            if self.cycle is not None and not self.cycle.response_complete:  # the next request was here already
                self.forget()

        def timeout_keep_alive_handler(self) -> None:
            super().timeout_keep_alive_handler()
            self.hurry()

        def pause_writing(self) -> None:
            super().pause_writing()
            self.hurry()

        def resume_writing(self) -> None:
            super().resume_writing()
            if self.send_end is not None:
                self.send_end.cancel()
                self.send_end = None

        def connection_lost(self, exc: Exception | None) -> None:
            self.forget()
            super().connection_lost(exc)
            if self.send_end is not None:
                self.send_end.cancel()

        def hurry(self) -> None:
            if self.send_end is None:
                self.send_end = self.loop.call_later(SEND_SECONDS, self.transport.abort)

        def expect(self) -> None:
            self.head_end = self.loop.call_later(HEAD_SECONDS, self.transport.abort)

        def forget(self) -> None:
            if self.head_end is not None:
                self.head_end.cancel()
                self.head_end = None

    return TimedProtocol
