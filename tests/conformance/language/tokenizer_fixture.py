"""The fixture of tokenizers: `tokenizers.json.gz`, read, and how its ids are summed up.

`families` has for each family its `tokenizer` (a `tokenizer.json`), the `sums` of PARTS parts of the texts, and some texts
`spelled` out with their ids. A sum goes through what Hugging Face's library gives for each text of the part: the ids with
marks parsed, those without, and the decoded text. `charsmap` is SentencePiece's map of characters, which two families share.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, Final

PATH: Final = Path(__file__).with_name("tokenizers.json.gz")
PARTS: Final = 10
TEXTS: Final = 2000
CHARSMAP: Final = "charsmap"
Json = dict[str, Any]


def read() -> Json:
    """The fixture, with the shared map in its places."""
    fixture = json.loads(gzip.decompress(PATH.read_bytes()))

    def whole(value: Any) -> Any:
        if isinstance(value, dict):
            return {k: fixture[CHARSMAP] if v == CHARSMAP else whole(v) for k, v in value.items()}
        return [whole(v) for v in value] if isinstance(value, list) else value

    for family in fixture["families"].values():
        family["tokenizer"]["normalizer"] = whole(family["tokenizer"]["normalizer"])
    return fixture


def checksum(numbers: Iterable[int], start: int = 7) -> int:
    """A sum that depends on the order, of 31 bits."""
    total = start
    for number in numbers:
        total = (total * 31 + number + 1) % 2147483647
    return total


def part_sum(texts: Sequence[str], encode: Callable[[str, bool], list[int]], decode: Callable[[list[int]], str]) -> int:
    """The sum of a part of the texts."""
    total = 7
    for text in texts:
        ids = encode(text, True)
        total = checksum(ids, total)
        total = checksum(encode(text, False), total)
        total = checksum(decode(ids).encode(), total)
    return total


def part(texts: Sequence[str], number: int) -> Sequence[str]:
    """One of the PARTS of the texts."""
    size = len(texts) // PARTS
    return texts[number * size : (number + 1) * size]
