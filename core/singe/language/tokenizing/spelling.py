"""How vocabularies spell text: bytes as characters that can be printed (GPT-2's alphabet), or spaces as ▁ (SentencePiece)."""

from __future__ import annotations

from typing import Final

PRINTABLE: Final = (*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100))
"""The bytes that stand for themselves in GPT-2's alphabet; the others follow from U+0100."""
ALPHABET: Final[dict[int, str]] = {
    **{byte: chr(byte) for byte in PRINTABLE},
    **{byte: chr(0x100 + place) for place, byte in enumerate(sorted(set(range(256)) - set(PRINTABLE)))},
}
"""Bytes ↦ the characters that write them."""
_BYTES: Final[dict[int, int]] = {ord(character): byte for byte, character in ALPHABET.items()}
_LETTERS: Final = frozenset(ALPHABET.values())
UNDERLINE: Final = "▁"


def spell_bytes(text: str) -> str:
    """A text in GPT-2's alphabet of bytes."""
    return text.encode().decode("latin-1").translate(ALPHABET)


def bytes_of_alphabet(token: str) -> bytes:
    """The bytes of a token that is written in GPT-2's alphabet; a token with other characters is a text."""
    if not _LETTERS.issuperset(token):
        return text_bytes(token)
    return token.translate(_BYTES).encode("latin-1")


def text_bytes(token: str) -> bytes:
    """The bytes of a token that is a text; surrogates are bytes of a file that were no text."""
    try:
        return token.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return token.encode("utf-8", "replace")


def byte_of_name(token: str) -> bytes:
    """The byte that a token like <0x0A> names, nothing for others."""
    if len(token) == 6 and token.startswith("<0x") and token.endswith(">"):
        try:
            return bytes((int(token[3:5], 16),))
        except ValueError:
            pass
    return b""


def bytes_of_piece(token: str) -> bytes:
    """The bytes of a token of SentencePiece: ▁ is a space, <0x0A> a byte."""
    return byte_of_name(token) or text_bytes(token.replace(UNDERLINE, " "))
