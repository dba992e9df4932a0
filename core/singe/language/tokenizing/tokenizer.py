"""Text to the numbers of tokens and back: `Tokenizer`, and the `TokenStream` that gives a text as its tokens arrive."""

from __future__ import annotations

import codecs
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain
from typing import Final, Protocol

from ...errors import InputError
from ...files.bounded import json_of
from ...late_dataclass import dataclass
from .added import AddedToken, AddedTokens

MAX_KNOWN_PIECES: Final = 1 << 16
"""Pieces of texts whose ids are kept."""
MAX_KNOWN_LENGTH: Final = 64
"""The characters of a piece whose ids are kept."""


class PieceModel(Protocol):
    """What makes tokens of a piece of text."""

    def encode(self, piece: str) -> list[int]: ...


@dataclass(frozen=True)
class Steps:
    """How text between added tokens becomes ids: normalized, cut into pieces, each of which is spelled in the characters of
    the vocabulary and encoded. The second argument of `normalize` and `cut`: whether the text is at the start.
    """

    normalize: Callable[[str, bool], str]
    cut: Callable[[str, bool], list[str]]
    spell: Callable[[str], str]
    model: PieceModel


@dataclass(frozen=True)
class SpecialIds:
    """The ids that have a meaning: the beginning and the end of a text, the ends of a model's turn, and what `encode` writes
    before and after a text; between: what stands between two, and second: the type of the second's tokens."""

    bos: int | None = None
    eos: int | None = None
    end_of_turn: frozenset[int] = frozenset()
    before: tuple[int, ...] = ()
    after: tuple[int, ...] = ()
    between: tuple[int, ...] = ()
    second: int = 0


@dataclass(frozen=True)
class TextPart:
    """A part of a text on its way to ids. source: as it stands in the text; normalized: what is cut; pieces: with the ids of each."""

    source: str
    normalized: str
    pieces: list[tuple[str, list[int]]]


class _KnownPieces(dict[str, list[int]]):
    """Pieces ↦ ids, computed when they are asked for."""

    def __init__(self, steps: Steps) -> None:
        super().__init__()
        self._spell, self._encode = steps.spell, steps.model.encode

    def __missing__(self, piece: str) -> list[int]:
        ids = self._encode(self._spell(piece))
        if len(piece) <= MAX_KNOWN_LENGTH:
            if len(self) >= MAX_KNOWN_PIECES:
                self.clear()
            self[piece] = ids
        return ids


class Tokenizer:
    """The tokenizer of a model: `encode`, `decode`, `stream`. `of_gguf` and `of_file` make one.

    `vocabulary` has the bytes of each token, as they stand in a text; `bos`, `eos`: the tokens that begin and end a text, or
    None; `end_of_turn`: those with which a model ends its answer; `before`, `after`: what `encode` writes around a text; `between`: what stands
    between two texts, and `second`, the type of the second's tokens; `special`: marks, which are no text.
    """

    def __init__(
        self,
        steps: Steps,
        vocabulary: Sequence[bytes],
        added: Sequence[AddedToken],
        ids: SpecialIds,
        *,
        strip_start: bool = False,
        tidy: Callable[[str], str] | None = None,
    ) -> None:
        self.vocabulary = vocabulary
        self.bos, self.eos, self.end_of_turn = ids.bos, ids.eos, ids.end_of_turn
        self.before, self.after, self.between, self.second = (
            list(ids.before),
            list(ids.after),
            list(ids.between),
            ids.second,
        )
        self._steps = steps
        self._known = _KnownPieces(steps)
        self._raw = AddedTokens(t for t in added if not t.normalized)
        normalized = [t for t in added if t.normalized]
        self._normalized = AddedTokens(normalized, lambda text: steps.normalize(text, True)) if normalized else None
        self.special = frozenset(t.id for t in added if t.special)
        self._strip_start, self._tidy = strip_start, tidy

    @classmethod
    def of_gguf(cls, metadata: Mapping[str, object]) -> Tokenizer:
        """The tokenizer of a GGUF file, by its metadata."""
        from .gguf import unlisted_values  # noqa: PLC0415 (only such files need it)
        from .tokenizer_json import tokenizer_of  # noqa: PLC0415 (it makes Tokenizers)

        return tokenizer_of(unlisted_values(metadata), None, "tokenizer.ggml")

    @classmethod
    def of_file(cls, path: str | os.PathLike[str], config_path: str | os.PathLike[str] | None = None) -> Tokenizer:
        """The tokenizer of a `tokenizer.json`; a `tokenizer_config.json` beside it names its marks."""
        from .tokenizer_json import read_tokenizer  # noqa: PLC0415 (it makes Tokenizers)

        return read_tokenizer(path, config_path)

    @classmethod
    def of_values(cls, values: object, name: str = "tokenizer.json") -> Tokenizer:
        """The tokenizer of the values of a `tokenizer.json`; name: how errors call it."""
        from .tokenizer_json import tokenizer_of  # noqa: PLC0415 (it makes Tokenizers)

        return tokenizer_of(values, None, name)

    @classmethod
    def of_json(cls, data: bytes, name: str = "tokenizer.json") -> Tokenizer:
        """The tokenizer of the bytes of a `tokenizer.json`; name: how errors call it."""
        from .tokenizer_json import MAX_BYTES  # noqa: PLC0415 (it makes Tokenizers)

        return cls.of_values(json_of(data, name, MAX_BYTES), name)

    def encode(self, text: str, *, add_special: bool = True, parse_special: bool = True) -> list[int]:
        """The ids of a text, with the model's marks before and after (`add_special`). Without `parse_special`, names of marks
        in the text are text like any other. A beginning that the text spells itself is not written twice.
        """
        ids: list[int] = []
        first = True
        for part in self._raw.split(_valid(text), parse_special):
            if isinstance(part, int):
                ids.append(part)
            else:
                ids += self._text_ids(part, first, parse_special)
            first = False
        if not add_special:
            return ids
        before = self.before
        spelled = parse_special and ids[: len(before)] == before
        return [*([] if spelled else before), *ids, *self.after]

    def normalized(self, text: str) -> str:
        """What a text within a longer one is cut as."""
        return self._steps.normalize(text, False)

    def parts(self, text: str) -> list[TextPart]:
        """How a text becomes the ids that `encode` gives without marks."""
        found: list[TextPart] = []
        first = True
        for part in self._raw.split(_valid(text), False):
            if isinstance(part, int):
                name = self.vocabulary[part].decode("utf-8", "replace")
                found.append(TextPart(name, name, [(name, [part])]))
            else:
                normalized = self._steps.normalize(part, first)
                pieces: list[tuple[str, list[int]]] = []
                inner = (
                    self._normalized.split(normalized, False)
                    if self._normalized
                    else [normalized]
                    if normalized
                    else []
                )
                for one in inner:
                    if isinstance(one, int):
                        pieces.append((self.vocabulary[one].decode("utf-8", "replace"), [one]))
                    else:
                        pieces += [(piece, self._known[piece]) for piece in self._steps.cut(one, first)]
                    first = False
                found.append(TextPart(part, normalized, pieces))
            first = False
        return found

    def _text_ids(self, text: str, first: bool, parse_special: bool) -> list[int]:
        steps = self._steps
        text = steps.normalize(text, first)
        if not text:
            return []
        known = self._known.__getitem__
        if self._normalized is None:
            return list(chain.from_iterable(map(known, steps.cut(text, first))))
        ids: list[int] = []
        for part in self._normalized.split(text, parse_special):
            if isinstance(part, int):
                ids.append(part)
            else:
                ids += chain.from_iterable(map(known, steps.cut(part, first)))
            first = False
        return ids

    def decode(self, ids: Iterable[int], *, skip_special: bool = True) -> str:
        """The text of ids; bytes that are no UTF-8 become U+FFFD. `skip_special` leaves the marks out."""
        text = b"".join(self._bytes(ids, skip_special)).decode("utf-8", "replace")
        if self._strip_start:
            text = text.removeprefix(" ")
        return self._tidy(text) if self._tidy else text

    def stream(self, *, skip_special: bool = True) -> TokenStream:
        """What gives the text of tokens as they come, each character as soon as it is complete."""
        return TokenStream(self, skip_special)

    def _bytes(self, ids: Iterable[int], skip_special: bool) -> list[bytes]:
        vocabulary, special = self.vocabulary, self.special
        parts: list[bytes] = []
        for i in ids:
            if not 0 <= i < len(vocabulary):
                raise InputError(f"the token {i} is none of the {len(vocabulary)} of the vocabulary")
            if not (skip_special and i in special):
                parts.append(vocabulary[i])
        return parts


class TokenStream:
    """The text of tokens that come one by one. Joined, what `feed` and `finish` give is what `decode` gives."""

    def __init__(self, tokenizer: Tokenizer, skip_special: bool) -> None:
        self._tokenizer, self._skip_special = tokenizer, skip_special
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._at_start = tokenizer._strip_start

    def feed(self, token: int) -> str:
        """The characters that a token completes."""
        data = b"".join(self._tokenizer._bytes((token,), self._skip_special))
        return self._text(self._decoder.decode(data))

    def finish(self) -> str:
        """What is left when no token follows: U+FFFD for bytes of a character that is incomplete."""
        return self._text(self._decoder.decode(b"", True))

    def _text(self, text: str) -> str:
        if self._at_start and text:
            self._at_start = False
            return text.removeprefix(" ")
        return text


def _valid(text: str) -> str:
    """A text without halves of surrogate pairs, which UTF-8 cannot write."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text
