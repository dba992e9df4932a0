"""Files of Singe taken apart and put together again, and damaged in every way."""

from __future__ import annotations

import copy
import hashlib
import json
import random
import struct
from collections.abc import Iterator
from typing import Any, Final

from singe.program.container import ALIGN, MAGIC

HOSTILE: Final = (
    *(None, True, -1, 0, 3, 2**31, 2**47, 10**30, 0.5, "", "x", "conv", [], [[]], [0], {}),
    *({"size": [[1, ["div", 1, 0]]]}, {"dtype": "int64"}, [[1, ["mod", 1, 0]]], [[-1, "N"]], [[1, *["N"] * 40]]),
)


def split(data: bytes) -> tuple[dict[str, Any], bytes]:
    """A file's header and its block."""
    (length,) = struct.unpack_from("<I", data, len(MAGIC))
    at = len(MAGIC) + 4
    return json.loads(data[at : at + length]), data[-(-(at + length) // ALIGN) * ALIGN :]


def joined(head: Any, block: bytes) -> bytes:
    """A file with this header and block, and the right hash."""
    if isinstance(head, dict) and "sha256" in head:
        head["sha256"] = hashlib.sha256(block).hexdigest()
    text = json.dumps(head).encode()
    start = -(-(len(MAGIC) + 4 + len(text)) // ALIGN) * ALIGN
    return (MAGIC + struct.pack("<I", len(text)) + text).ljust(start, b"\0") + block


def flipped(data: bytes, count: int, start: int = 0) -> Iterator[bytes]:
    """So many copies of a file, each with one bit flipped, from `start` on."""
    rng = random.Random(1)
    for _ in range(count):
        damaged = bytearray(data)
        damaged[rng.randrange(start, len(data))] ^= 1 << rng.randrange(8)
        yield bytes(damaged)


def with_hostile_values(data: bytes) -> Iterator[bytes]:
    """Copies of a file, each with one value of the header replaced, and the right hash: only checks notice."""
    head, block = split(data)
    for path in list(places(head))[1:]:
        for value in HOSTILE:
            changed = copy.deepcopy(head)
            inner = changed
            for key in path[:-1]:
                inner = inner[key]
            inner[path[-1]] = value
            yield joined(changed, block)


def places(data: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The path of every value in JSON data."""
    yield path
    for key, value in data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ():
        yield from places(value, (*path, key))
