"""Texts that tell tokenizers apart, drawn by a seed: the same with every version of Python."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

_WORDS: Final = (
    "the of and language model Hello don't I'LL we've THE's it'S naïve café Ünïcödé Привет мир 日本語 テキスト 漢字 한국어 العربية "
    "हिन्दी ไทย 😀 👨‍👩‍👧 🇫🇷 e\u0301 ﬁ ① ² ½ Ⅷ ٣٤ 1234567 3.14 0x1F foo_bar camelCase HTTPServer <|im_start|> <|eot_id|> </s> <s> "
    '<|end|> [MASK] [SEP] user@host http://a.b/c?d=e ... --- === !!! ?? "quoted" (x) [y] {z} $100 50% a+b=c — – “q” ‘q’ … '
    "\u200b \u00a0 \u3000 \ufeff \x1c \x85 𝒜𝓑 𐐷 𠀀 🏳️‍🌈 ʰ ǅ ß ﷺ 🧿 ▁ ## </w> <0x41> \x00 \x7f Σίσυφος ΟΔΟΣ"
)
WORDS: Final = _WORDS.split(" ")
SEPARATORS: Final = (
    " ", "", "  ", "   ", "\n", "\n\n", "\t", "\r\n", " \n ", "\n\n\n", "      ", "\n\t", ", ", ". ", "'", "_", "/", "\u3000", "\u2028",
)  # fmt: skip
LETTERS: Final = "abcdefghijklmnopqrstuvwxyzABC0123456789"
RANGES: Final = (
    (0x20, 0x7F),
    (0xA0, 0x24F),
    (0x370, 0x377),
    (0x400, 0x482),
    (0x3041, 0x3097),
    (0x4E00, 0x9FA5),
    (0xAC00, 0xD7A3),
    (0x1F300, 0x1F64F),
)
"""Characters that have been in Unicode for long, so that all engines know them."""


class Draws:
    """Numbers by a seed."""

    def __init__(self, seed: int) -> None:
        self.state = seed * 2 + 1

    def below(self, limit: int) -> int:
        """One of so many."""
        self.state = self.state * 48271 % 2147483647
        return self.state // 8 % limit


def text(seed: int) -> str:
    """The text of a seed."""
    draws = Draws(seed + 1)
    parts: list[str] = []
    for _ in range((1, 2, 3, 5, 8, 15)[draws.below(6)]):
        kind = draws.below(20)
        if kind < 15:
            parts.append(WORDS[draws.below(len(WORDS))])
        elif kind < 17:
            first, end = RANGES[draws.below(len(RANGES))]
            parts.append(chr(first + draws.below(end - first)))
        else:
            parts += [LETTERS[draws.below(len(LETTERS))] for _ in range(1 + draws.below(11))]
        if draws.below(10) < 7:
            parts.append(SEPARATORS[draws.below(len(SEPARATORS))])
    return "".join(parts)


def texts(count: int) -> Sequence[str]:
    """So many texts."""
    return [text(seed) for seed in range(count)]
