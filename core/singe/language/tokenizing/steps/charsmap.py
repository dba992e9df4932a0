"""SentencePiece's compiled maps of characters, such as nmt_nfkc."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from struct import unpack_from
from typing import Final

from ....errors import FormatError
from ..patterns import category_class

MAX_UNITS: Final = 1 << 22


@cache
def _clusters() -> re.Pattern[str]:
    return re.compile(f"\r\n|[\\s\\S][{category_class('M')}\u200c\u200d\U0001f3fb-\U0001f3ff]*")


def charsmap(data: bytes) -> Callable[[str, bool], str]:
    """SentencePiece's compiled map of characters: a trie of bytes as a double array, and the texts that its leaves name.

    As in Hugging Face's library a whole cluster of characters is looked up first, if it has fewer than six bytes, and the
    shortest key that begins it decides.
    """
    if len(data) < 4:
        raise FormatError(f"a map of characters of {len(data)} bytes, expected at least 4")
    (size,) = unpack_from("<I", data)
    if size % 4 or size > len(data) - 4 or size // 4 > MAX_UNITS:
        raise FormatError(f"a map of characters whose trie has {size} bytes, {len(data) - 4} follow")
    units: tuple[int, ...] = unpack_from(f"<{size // 4}I", data, 4)
    texts = data[4 + size :]

    def target(key: bytes) -> str | None:
        """What the shortest key that begins `key` becomes."""
        if not units:
            return None
        node = 0
        unit = units[0]
        node ^= _offset(unit)
        for byte in key:
            if not byte:
                return None
            node ^= byte
            if node >= len(units):
                return None
            unit = units[node]
            if unit & 0x800000FF != byte:
                return None
            node ^= _offset(unit)
            if unit >> 8 & 1:
                if node >= len(units):
                    return None
                start = units[node] & 0x7FFFFFFF
                end = texts.find(b"\0", start)
                return texts[start : end if end >= 0 else len(texts)].decode("utf-8", "replace")
        return None

    mapped: dict[str, str] = {}

    def cluster(match: re.Match[str]) -> str:
        text = match[0]
        found = mapped.get(text)
        if found is None:
            found = _mapped(text, target)
            if len(mapped) < 1 << 16:
                mapped[text] = found
        return found

    clusters = _clusters()
    ascii_same = all(target(bytes((byte,))) is None for byte in range(0x20, 0x7F))

    def normalize(text: str, _first: bool) -> str:
        return text if ascii_same and text.isascii() and text.isprintable() else clusters.sub(cluster, text)

    return normalize


def _offset(unit: int) -> int:
    return unit >> 10 << ((unit & 1 << 9) >> 6)


def _mapped(cluster: str, target: Callable[[bytes], str | None]) -> str:
    raw = cluster.encode()
    if len(raw) < 6 and (found := target(raw)) is not None:
        return found
    parts = ((c, target(c.encode())) for c in cluster)
    return "".join(c if found is None else found for c, found in parts)
