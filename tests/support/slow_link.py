"""A TCP proxy in a thread, for tests of what connections do: it delays what passes, holds it back, and cuts connections off."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any, Final


class SlowLink:
    """A proxy to a port of this machine; `port` is its own. latency: seconds that each byte takes, in each direction. refuses: whether
    new connections are cut off at once."""

    def __init__(self, port: int, latency: float = 0.0) -> None:
        self.latency = latency
        self.refuses = False
        self._to: Final = port
        self._loop: Final = asyncio.new_event_loop()
        self._writers: Final[set[asyncio.StreamWriter]] = set()
        self._open = asyncio.Event()
        self._open.set()
        self._thread: Final = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._server: Final = self._do(asyncio.start_server(self._pass, "127.0.0.1", 0))
        self.port: Final[int] = self._server.sockets[0].getsockname()[1]
        self.url: Final = f"ws://127.0.0.1:{self.port}"

    def __enter__(self) -> SlowLink:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
        self._do(self._finish())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    def hold(self) -> None:
        """Let nothing pass until `release`."""
        self._loop.call_soon_threadsafe(self._open.clear)

    def release(self) -> None:
        self._loop.call_soon_threadsafe(self._open.set)

    def cut(self) -> None:
        """Cut all connections off; what is on its way is lost. New ones are taken."""
        self._do(self._cut())

    def close(self) -> None:
        """Cut all connections off, and take no more."""
        self._do(self._cut(for_good=True))

    def _do(self, work: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(30)

    async def _cut(self, for_good: bool = False) -> None:
        if for_good:
            self._server.close()
        for writer in self._writers:
            writer.transport.abort()
        self._writers.clear()
        self._open.set()
        await asyncio.sleep(0)

    async def _finish(self) -> None:
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self.refuses:
            writer.transport.abort()
            return
        try:
            there, back = await asyncio.open_connection("127.0.0.1", self._to)
        except OSError:
            writer.close()
            return
        self._writers.update((writer, back))
        await asyncio.gather(self._forward(reader, back), self._forward(there, writer))

    async def _forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        queue: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue()

        async def deliver() -> None:
            while True:
                at, data = await queue.get()
                await asyncio.sleep(max(0, at - self._loop.time()))
                await self._open.wait()
                if not data:
                    break
                writer.write(data)
                await writer.drain()
            writer.close()

        delivering = asyncio.create_task(deliver())
        with suppress(OSError):
            while data := await reader.read(1 << 16):
                queue.put_nowait((self._loop.time() + self.latency, data))
        queue.put_nowait((self._loop.time() + self.latency, b""))
        with suppress(OSError):
            await delivering
