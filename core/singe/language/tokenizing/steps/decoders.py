"""How tokens are written as text: the decoders of a `tokenizer.json`, as the bytes of each token and a rule for the ends."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final

from ....errors import FormatError
from ....late_dataclass import dataclass
from ..fields import Fields
from ..spelling import UNDERLINE, byte_of_name, bytes_of_alphabet, text_bytes


@dataclass(frozen=True)
class Decoding:
    """What a token stands for: `change` writes it as a text, of which `to_bytes` makes bytes. A text that begins with a space
    loses it (`strip_start`), one that ends with one too (`strip_end`). `added_too`: added tokens are written so as well.
    """

    change: Callable[[str], str] = lambda token: token
    to_bytes: Callable[[str], bytes] = text_bytes
    strip_start: bool = False
    strip_end: bool = False
    added_too: bool = True

    def bytes(self, token: str) -> bytes:
        """The bytes of a token."""
        return self.to_bytes(self.change(token))


Step = Callable[[Fields, Decoding], Decoding]


def _then(decoding: Decoding, change: Callable[[str], str]) -> Decoding:
    before = decoding.change
    return replace(decoding, change=lambda token: change(before(token)))


def _replace(fields: Fields, decoding: Decoding) -> Decoding:
    old, new = fields.node("pattern").short_text("String"), fields.short_text("content", "")
    return _then(decoding, lambda token: token.replace(old, new) if old else token)


def _strip(fields: Fields, decoding: Decoding) -> Decoding:
    start, stop = fields.count("start", 2, 0), fields.count("stop", 2, 0)
    if fields.text("content") != " ":
        raise FormatError(f"{fields.place} strips {fields.text('content')!r:.60}, expected a space")
    return replace(decoding, strip_start=start == 1, strip_end=stop == 1)


def _metaspace(fields: Fields, decoding: Decoding) -> Decoding:
    mark = fields.short_text("replacement", UNDERLINE)
    never = not fields.flag("add_prefix_space", True) or fields.text("prepend_scheme", "always") == "never"
    return replace(_then(decoding, lambda token: token.replace(mark, " ")), strip_start=not never)


TIDIED: Final = (
    (" .", "."), (" ?", "?"), (" !", "!"), (" ,", ","), (" ' ", "'"), (" n't", "n't"), (" 'm", "'m"),
    (" do not", " don't"), (" 's", "'s"), (" 've", "'ve"), (" 're", "'re"),
)  # fmt: skip
"""What stands without a space before it, in BERT's texts."""


def word_piece(prefix: str, tidy: bool) -> Callable[[str], str]:
    """A token of BERT: with a space before it, unless it goes on."""

    def change(token: str) -> str:
        text = token.removeprefix(prefix) if token.startswith(prefix) else " " + token
        for old, new in TIDIED if tidy else ():
            text = text.replace(old, new)
        return text

    return change


def _word_piece(fields: Fields, decoding: Decoding) -> Decoding:
    change = word_piece(fields.short_text("prefix", "##"), fields.flag("cleanup", True))
    return replace(_then(decoding, change), strip_start=True)


def _word_ends(fields: Fields, decoding: Decoding) -> Decoding:
    suffix = fields.short_text("suffix", "</w>")
    return replace(_then(decoding, lambda token: token.replace(suffix, " ") if suffix else token), strip_end=True)


def _sequence(fields: Fields, decoding: Decoding) -> Decoding:
    for step in fields.nodes("decoders"):
        decoding = decoder(step, decoding)
    return decoding


KINDS: Final[Mapping[str, Step]] = {
    "BPEDecoder": _word_ends,
    "ByteFallback": lambda _, decoding: replace(decoding, to_bytes=lambda text: byte_of_name(text) or text_bytes(text)),
    "ByteLevel": lambda _, decoding: replace(decoding, to_bytes=bytes_of_alphabet, added_too=False),
    "Fuse": lambda _, decoding: decoding,
    "Metaspace": _metaspace,
    "Replace": _replace,
    "Sequence": _sequence,
    "Strip": _strip,
    "WordPiece": _word_piece,
}
"""The decoders of `tokenizer.json` by their `type`."""


def decoder(fields: Fields, decoding: Decoding) -> Decoding:
    """What a decoder of a `tokenizer.json` adds to those before it."""
    return fields.choose(KINDS)(fields, decoding)
