"""The client's connection of Python in a page, by the browser's own WebSocket.

A page has one thread, which may not block: frames are taken when they come, and what waits is awaited.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterator, Sequence
from typing import Any, Final

from ...awaitables import MaybeAwaitable
from ...errors import FormatError, RemoteDisconnected, SingeError
from ...files.urls import js_errors
from .connection import FLUSH_SECONDS, RemoteConnection
from .protocol import MAX_FRAMES_UNDER_WAY, Batch, Bytes, RemoteMessage
from .socket import OPEN_SECONDS, Link, LinkLost


class PageLink:
    """A browser's WebSocket."""

    def __init__(self, url: str) -> None:
        import js  # noqa: PLC0415  # pyright: ignore[reportMissingImports]
        from pyodide.ffi import create_proxy, to_js  # noqa: PLC0415  # pyright: ignore[reportMissingImports]

        if not hasattr(js, "WebSocket"):
            raise LinkLost("this engine has no WebSocket")
        try:
            self._socket: Final[Any] = js.WebSocket.new(url)
        except js_errors() as e:  # such as a page of https, which may use wss alone
            raise LinkLost(getattr(e, "message", str(e))) from None
        self._socket.binaryType = "arraybuffer"
        self._to_js: Final = to_js
        self._page: Final[str] = getattr(js.location, "origin", "")
        self._is_open = False
        self._lost = ""
        self._frames: Final[deque[bytes]] = deque()
        self._news = asyncio.Event()
        heard = {"open": self._on_open, "message": self._on_message, "close": self._on_close}
        self._proxies: Final = {name: create_proxy(do) for name, do in heard.items()}
        for name, proxy in self._proxies.items():
            self._socket.addEventListener(name, proxy)

    async def opened(self) -> Link:
        while not self._is_open:
            try:
                await self._wait(OPEN_SECONDS)
            except TimeoutError:
                self.close()
                raise LinkLost("it does not open the connection") from None
        return self

    def send(self, frame: Bytes) -> None:
        self._socket.send(self._to_js(frame))

    async def receive(self, timeout: float | None = None) -> bytes:
        while not self._frames:
            await self._wait(timeout)
        return self._frames.popleft()

    def close(self, reason: str = "") -> None:
        self._end(reason or "it was closed")
        self._socket.close()

    async def _wait(self, timeout: float | None) -> None:
        if self._lost:
            raise LinkLost(self._lost)
        self._news.clear()
        await asyncio.wait_for(self._news.wait(), timeout)

    def _on_open(self, _: Any) -> None:
        self._is_open = True
        self._news.set()

    def _on_message(self, event: Any) -> None:
        if isinstance(event.data, str):
            self._end("the peer sent text")
            return
        self._frames.append(event.data.to_bytes())
        self._news.set()

    def _on_close(self, event: Any) -> None:
        unsaid = f"it was closed with code {event.code}"
        if not self._is_open:
            unsaid = f"the browser does not tell why; if a server is there, it may need --origin {self._page}"
        self._end(event.reason or unsaid)

    def _end(self, why: str) -> None:
        self._lost = self._lost or why
        for name, proxy in self._proxies.items():
            self._socket.removeEventListener(name, proxy)
            proxy.destroy()
        self._proxies.clear()
        self._news.set()


class PageConnection(RemoteConnection):
    """See the module's docstring. It has a session after `begin`."""

    def __init__(self, url: str, token: str) -> None:
        super().__init__(url, token, lambda to: PageLink(to).opened())
        self._outgoing: Final[deque[Iterator[Bytes]]] = deque()
        self._turn: Final = asyncio.Lock()
        self._news = asyncio.Event()
        self._is_sent_soon = False
        self._listening: asyncio.Future[None] | None = None

    def _start(self) -> None:
        pass

    def wait(self, numbers: Sequence[int]) -> MaybeAwaitable[list[RemoteMessage]]:
        return self._waited([self._questions[n] for n in numbers])

    # --- sending and receiving ---

    def _send_soon(self) -> None:
        if not self._is_sent_soon:
            self._is_sent_soon = True
            asyncio.get_event_loop().call_later(FLUSH_SECONDS, self._flush)

    def _flush(self) -> None:
        self._is_sent_soon = False
        if not self.ended:
            self._send()

    def _send(self) -> None:
        batch = self._next_batch()
        if batch is not None and self._link is not None:  # otherwise it is sent when the session is there again
            self._pass_on(batch)

    def _pass_on(self, batch: Batch) -> None:
        self._outgoing.append(batch.frames())
        self._pass_on_some()

    def _pass_on_some(self) -> None:
        """Send as many frames as may be under way."""
        while self._link is not None and self._outgoing and self._frames - self._taken < MAX_FRAMES_UNDER_WAY:
            frame = next(self._outgoing[0], None)
            if frame is None:
                self._outgoing.popleft()
                continue
            self._link.send(frame)
            self._frames += 1
            self.sent += len(frame)

    async def _receive_next(self) -> None:
        if self._link is None:
            async with self._turn:
                if self._link is None:
                    await self._come_back()
        else:
            await self._news.wait()

    def _receive(self, timeout: float | None = None) -> MaybeAwaitable[None]:
        return self._receive_next()

    async def _greet(self) -> Any:
        found = await super()._greet()
        assert self._link is not None
        self._listening = asyncio.ensure_future(self._listen(self._link))
        return found

    async def _listen(self, link: Any) -> None:
        """Take what comes by a link, as long as it is there."""
        try:
            while self._link is link:
                self._take(await link.receive())
                self._pass_on_some()
                self._wake_all()
        except LinkLost as e:
            if self._link is link:
                self._stop_waiting(self._lost(e))
        except FormatError as e:
            self._end(str(e))
        except SingeError:
            pass  # the session has ended, and who waits knows why

    def _wake_all(self) -> None:
        self._news.set()
        self._news = asyncio.Event()

    def _cut(self) -> None:
        super()._cut()
        self._outgoing.clear()

    def _leave_unanswered(self, why: str) -> None:
        why = why.removeprefix(f"{self.name}: ")
        for question in self._questions.values():
            question.answer = RemoteMessage("error", (0, RemoteDisconnected.__name__, why))
        super()._leave_unanswered(why)
        self._wake_all()
