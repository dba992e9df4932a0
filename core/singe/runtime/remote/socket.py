"""WebSockets, by the package websockets (the extra `remote`), which only this module imports, when it is used.

A socket carries frames, and pings its peer; one that does not answer for some time is taken for lost.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final, Protocol
from urllib.parse import urlsplit

from ...awaitables import IN_PAGE, MaybeAwaitable
from ...errors import DeviceError
from .protocol import MAX_FRAME_BYTES, MAX_FRAMES_UNDER_WAY, NAME, Bytes

HEARTBEAT_SECONDS: Final = 20.0
"""Between pings, and for an answer to one."""
OPEN_SECONDS: Final = 5.0
CLOSE_SECONDS: Final = 1.0
QUEUED_FRAMES: Final = MAX_FRAMES_UNDER_WAY + 16
"""How many frames wait in memory; a peer that sends more is not read from. Ours never does, so that its pings are always answered."""
MAX_REASON_BYTES: Final = 120
"""Of the reason in the frame that closes a socket."""


class LinkLost(Exception):
    """The connection is gone; the text says why, as far as the peer told."""


class Link(Protocol):
    """A connection that carries frames."""

    def send(self, frame: Bytes) -> None:
        """Send a frame; LinkLost if the connection is gone."""
        ...

    def receive(self, timeout: float | None = None) -> MaybeAwaitable[bytes]:
        """The next frame; LinkLost if the connection is gone, TimeoutError if nothing comes."""
        ...

    def close(self, reason: str = "") -> None: ...


class SocketLink:
    """A WebSocket."""

    def __init__(self, socket: Any) -> None:
        self._socket: Final = socket
        self._closed: Final = _websockets().exceptions.ConnectionClosed

    def send(self, frame: Bytes) -> None:
        try:
            self._socket.send(frame)
        except self._closed as e:
            raise LinkLost(_reason(e)) from None
        except OSError as e:
            raise LinkLost(str(e)) from None

    def receive(self, timeout: float | None = None) -> bytes:
        try:
            frame = self._socket.recv(timeout)
        except self._closed as e:
            raise LinkLost(_reason(e)) from None
        if isinstance(frame, str):
            raise LinkLost("the peer sent text")
        return frame

    def close(self, reason: str = "") -> None:
        with suppress(Exception):  # it may be gone already, in any state
            self._socket.close(reason=reason.encode()[:MAX_REASON_BYTES].decode(errors="ignore"))


def connect(url: str) -> SocketLink:
    """A connection to a server's address, ws://… or wss://…."""
    package = _websockets()
    local = urlsplit(url).hostname in ("127.0.0.1", "localhost", "::1")
    try:
        opened = package.sync.client.connect(
            url, compression=None, open_timeout=OPEN_SECONDS, close_timeout=CLOSE_SECONDS, max_size=MAX_FRAME_BYTES,
            ping_interval=HEARTBEAT_SECONDS, ping_timeout=HEARTBEAT_SECONDS, max_queue=QUEUED_FRAMES,
            **({"proxy": None} if local else {}),
        )  # fmt: skip
        made = opened.__enter__()  # left by `close`
    except (OSError, TimeoutError, package.exceptions.WebSocketException) as e:
        raise LinkLost(str(e) or type(e).__name__) from e
    return SocketLink(made)


def listen(
    host: str, port: int, take: Callable[[SocketLink], None], refuse: Callable[[str | None, str | None], str]
) -> Any:
    """A server that listens, with a thread for each connection, in which `take` gets it. refuse: (Host, Origin) of a request ↦ why
    it is not answered, or "". It has `serve_forever`, `shutdown` and `socket`."""
    package = _websockets()

    def check(connection: Any, request: Any) -> Any:
        given = [request.headers.get_all(name) for name in ("Host", "Origin")]
        doubt = any(len(values) > 1 for values in given)
        why = "a header comes twice" if doubt else refuse(*(values[0] if values else None for values in given))
        return connection.respond(403, f"{why}\n") if why else None

    def handle(connection: Any) -> None:
        take(SocketLink(connection))

    return package.sync.server.serve(
        handle, host, port, compression=None, process_request=check, server_header=None, open_timeout=OPEN_SECONDS,
        close_timeout=CLOSE_SECONDS, max_size=MAX_FRAME_BYTES, ping_interval=HEARTBEAT_SECONDS,
        ping_timeout=HEARTBEAT_SECONDS, max_queue=QUEUED_FRAMES,
    )  # fmt: skip


def _reason(e: Any) -> str:
    frame = e.rcvd or e.sent
    return (frame.reason or f"it was closed with code {frame.code}") if frame else "it was cut off"


def _websockets() -> Any:
    if IN_PAGE:
        raise DeviceError(
            f"{NAME}: Python in a page cannot lend a device, since no other may connect to a page; lend one of a machine"
        )
    try:
        import websockets  # noqa: PLC0415
        import websockets.sync.client  # noqa: PLC0415
        import websockets.sync.server  # noqa: PLC0415
    except ImportError as e:
        raise DeviceError(f"{NAME}: it needs the package websockets: pip install 'singe[remote]' ({e})") from e
    return websockets
