"""Makes `tokenizers.json.gz`: `python make_tokenizers.py`, with `tokenizers`, `sentencepiece` and `protobuf` installed (not Singe's).

The tokenizers are trained anew on the guides as they are now, so the file changes.
"""

from __future__ import annotations

import gzip
import json
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parents[2] / "core")]

from tokenizer_families import FAMILIES, corpus  # noqa: E402
from tokenizer_fixture import CHARSMAP, PARTS, PATH, TEXTS, part, part_sum  # noqa: E402
from tokenizer_texts import texts  # noqa: E402
from tokenizers import Tokenizer  # noqa: E402


def peer(tokenizer: Any) -> tuple[Any, Any]:
    """How Hugging Face's library encodes and decodes. A beginning that a text spells is written once, as Singe does."""
    library = Tokenizer.from_str(json.dumps(tokenizer))
    empty, one = library.encode("").ids, library.encode("a").ids
    before = empty[:1] if empty[:1] == one[:1] else []

    def encode(text: str, parse_special: bool) -> list[int]:
        library.encode_special_tokens = not parse_special
        ids = library.encode(text).ids
        plain = library.encode(text, add_special_tokens=False).ids
        doubled = parse_special and before and ids[:1] == before and plain[:1] == before
        return ids[1:] if doubled else ids

    return encode, library.decode


def main() -> None:
    guides = sorted((HERE.parents[2] / "docs" / "start").glob("*.md"))
    lines = corpus([path.read_text("utf-8") for path in guides])
    drawn = texts(TEXTS)
    families: dict[str, Any] = {}
    shared = ""
    for name, train in FAMILIES.items():
        tokenizer = train(lines)
        encode, decode = peer(tokenizer)
        families[name] = {
            "sums": [part_sum(part(drawn, number), encode, decode) for number in range(PARTS)],
            "spelled": [
                [text, encode(text, True), encode(text, False), decode(encode(text, True))] for text in drawn[:25]
            ],
            "tokenizer": tokenizer,
        }
        normalizer = tokenizer["normalizer"] or {}
        for step in (normalizer, *normalizer.get("normalizers", ())):
            if "precompiled_charsmap" in step:
                shared, step["precompiled_charsmap"] = step["precompiled_charsmap"], CHARSMAP
    data = json.dumps({CHARSMAP: shared, "families": families}, ensure_ascii=False, separators=(",", ":")).encode()
    PATH.write_bytes(gzip.compress(data, 9, mtime=0))
    print(f"{PATH.name}: {PATH.stat().st_size} bytes")


if __name__ == "__main__":
    main()
