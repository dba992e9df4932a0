"""Load on a server of models: many clients at a time, each with a connection that stays open and an input of its own.

The messages of HTTP are written and read here, so that little of the time is the clients'.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

TOLERANCE: Final = 1e-4


@dataclass
class Load:
    """What came back. seconds: of each answer; wrong: statuses that are not 200, and outputs that are not those of the client's input."""

    seconds: list[float] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    asked: int = 0
    wall: float = 0.0

    def add(self, other: Load) -> None:
        """Count another load's, too."""
        self.seconds += other.seconds
        self.wrong += other.wrong
        self.asked += other.asked
        self.wall += other.wall

    @property
    def lost(self) -> int:
        """Requests without a right answer."""
        return self.asked - len(self.seconds)

    def at(self, share: float) -> float:
        """Milliseconds within which this share of the answers came."""
        return float(np.quantile(self.seconds or [np.nan], share)) * 1e3

    @property
    def rate(self) -> float:
        return len(self.seconds) / self.wall


def post(path: str, body: bytes, token: str = "", **headers: str) -> bytes:
    """A request as it is sent."""
    given = {
        "Host": "127.0.0.1",
        "Content-Length": str(len(body)),
        **{k.replace("_", "-"): v for k, v in headers.items()},
    }
    if token:
        given["Authorization"] = f"Bearer {token}"
    return "\r\n".join((f"POST {path} HTTP/1.1", *(f"{k}: {v}" for k, v in given.items()), "", "")).encode() + body


def load(port: int, requests: Sequence[bytes], expected: Sequence[np.ndarray], seconds: float) -> Load:
    """Send each client's request again and again. expected: the numbers with which the body of its answer ends, as float32."""
    found = Load()

    async def client(request: bytes, right: np.ndarray, end: float) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        while (start := time.perf_counter()) < end:
            found.asked += 1
            writer.write(request)
            head = await reader.readuntil(b"\r\n\r\n")
            fields = dict(line.lower().split(b": ", 1) for line in head.split(b"\r\n")[1:-2])
            body = await reader.readexactly(int(fields[b"content-length"]))
            took = time.perf_counter() - start
            if b" 200 " not in head[:16]:
                found.wrong.append(f"{head[:30]!r} {body[:200]!r}")
            elif np.abs(np.frombuffer(body[-right.nbytes :], np.float32) - right).max() > TOLERANCE:
                found.wrong.append("the output is not that of the input")
            else:
                found.seconds.append(took)
        writer.close()

    async def work() -> None:
        start = time.perf_counter()
        await asyncio.gather(*(client(q, r, start + seconds) for q, r in zip(requests, expected, strict=True)))
        found.wall = time.perf_counter() - start

    asyncio.run(work())
    return found
