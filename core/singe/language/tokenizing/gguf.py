"""The tokenizer of a GGUF file, by its keys `tokenizer.ggml.*`; what is unknown is refused by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import isfinite
from typing import Any, Final, TypeAlias

from ...errors import FormatError
from .added import AddedToken
from .end_of_turn import end_of_turn_ids
from .models.cutting import word_cutter
from .models.merging import Merges, Scores
from .models.unigram import Unigram
from .models.word_pieces import WordPieces
from .patterns import Splitter, kind_splitters, split_by
from .spelling import UNDERLINE, bytes_of_alphabet, bytes_of_piece, spell_bytes, text_bytes
from .steps.charsmap import charsmap
from .steps.decoders import word_piece
from .steps.normalizers import Normalizer, bert, in_turn, same
from .steps.pre_tokenizers import bert_cut
from .tokenizer import SpecialIds, Steps, Tokenizer

Cut: TypeAlias = Callable[[str, bool], list[str]]

NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = range(1, 7)
"""The types of tokens."""
WHOLE_WORDS: Final = frozenset(
    ["llama-bpe", "llama3", "llama-v3", "falcon3", "falcon-h1", "pixtral", "midm-2.0", "lfm2", "jina-v5-nano", "tekken"]
)
"""The kinds whose words that are tokens stay so, and whose texts begin with the mark of a beginning unless the file says no."""
MAX_TOKENS: Final = 1 << 21


class _Keys:
    """The keys of a file, checked."""

    def __init__(self, metadata: Mapping[str, object]) -> None:
        self._metadata = metadata
        self.architecture = metadata.get("general.architecture")

    def _fault(self, key: str, expected: str) -> FormatError:
        value = self._metadata.get(f"tokenizer.ggml.{key}")
        shown = f"of {len(value)}" if isinstance(value, list) else repr(value)[:60]
        return FormatError(f"tokenizer.ggml.{key} is {shown}, expected {expected}")

    def text(self, key: str, default: str | None = None) -> str:
        value = self._metadata.get(f"tokenizer.ggml.{key}", default)
        if not isinstance(value, str):
            raise self._fault(key, "a text")
        return value

    def flag(self, key: str, default: bool) -> bool:
        value = self._metadata.get(f"tokenizer.ggml.{key}", default)
        if not isinstance(value, bool):
            raise self._fault(key, "true or false")
        return value

    def id(self, key: str, count: int) -> int | None:
        value = self._metadata.get(f"tokenizer.ggml.{key}")
        if value is None:
            return None
        if not isinstance(value, int) or not 0 <= value < count:
            raise self._fault(key, f"one of the {count} tokens")
        return value

    def list(self, key: str, kind: type | tuple[type, ...], count: int | None = None) -> list[Any]:
        value = self._metadata.get(f"tokenizer.ggml.{key}", [] if count is None else None)
        if value is None:
            return []
        if not isinstance(value, list) or not all(isinstance(v, kind) for v in value):
            raise self._fault(key, "a list of texts" if kind is str else "a list of numbers")
        if count is not None and len(value) != count:
            raise self._fault(key, f"as many as the tokens, {count}")
        return value


class _Vocabulary:
    """The tokens of a file with their types."""

    def __init__(self, keys: _Keys) -> None:
        self.keys = keys
        self.tokens: Sequence[str] = keys.list("tokens", str)
        if not 0 < len(self.tokens) <= MAX_TOKENS:
            raise FormatError(f"tokenizer.ggml.tokens has {len(self.tokens)} tokens, expected 1 to {MAX_TOKENS}")
        count = len(self.tokens)
        self.types: Sequence[int] = keys.list("token_type", int, count) or [NORMAL] * count
        self.ids: dict[str, int] = dict(zip(reversed(self.tokens), range(count - 1, -1, -1), strict=True))

    def id(self, key: str) -> int | None:
        return self.keys.id(f"{key}_token_id", len(self.tokens))

    def added(self, **options: bool) -> list[AddedToken]:
        return [
            AddedToken(i, token, kind != USER_DEFINED, **options)
            for i, (token, kind) in enumerate(zip(self.tokens, self.types, strict=True))
            if kind in (UNKNOWN, CONTROL, USER_DEFINED)
        ]

    def scores(self) -> dict[str, float]:
        """What text may become, with scores."""
        scores = self.keys.list("scores", (int, float), len(self.tokens)) or [0.0] * len(self.tokens)
        if not all(map(isfinite, scores)):
            raise FormatError("tokenizer.ggml.scores has numbers that are not finite")
        return {
            token: score
            for token, kind, score in zip(self.tokens, self.types, scores, strict=True)
            if kind in (NORMAL, USER_DEFINED)
        }

    def bytes(self, spelled: Callable[[str], bytes]) -> list[bytes]:
        return [
            (text_bytes if kind in (CONTROL, UNKNOWN) else spelled)(token)
            for token, kind in zip(self.tokens, self.types, strict=True)
        ]

    def special_ids(self, add_bos: bool, add_eos: bool, bos: str = "bos", eos: str = "eos") -> SpecialIds:
        """`add_bos` and `add_eos` are what holds where the file says nothing."""
        first, last = self.id(bos), self.id(eos)
        begins = self.keys.flag("add_bos_token", add_bos) and first is not None
        ends = self.keys.flag("add_eos_token", add_eos) and last is not None
        named = {i for i in map(self.id, ("eos", "eot", "eom")) if i is not None}
        marks = {self.tokens[i]: i for i, kind in enumerate(self.types) if kind == CONTROL}
        return SpecialIds(
            self.id("bos"),
            self.id("eos"),
            end_of_turn_ids(marks, named),
            (first,) if begins and first is not None else (),
            (last,) if ends and last is not None else (),
        )


def _merges(vocabulary: _Vocabulary) -> list[tuple[str, str]]:
    merges: list[tuple[str, str]] = []
    for merge in vocabulary.keys.list("merges", str):
        cut = merge.find(" ", 1)
        if cut < 0:
            raise FormatError(f"tokenizer.ggml.merges has {merge!r:.60}, expected two tokens with a space between")
        merges.append((merge[:cut], merge[cut + 1 :]))
    return merges


def _byte_pairs(vocabulary: _Vocabulary) -> Tokenizer:
    kind = vocabulary.keys.text("pre", "")
    model = Merges(vocabulary.ids, _merges(vocabulary), whole=kind in WHOLE_WORDS)
    steps = Steps(same, _by_splitters(kind_splitters(kind)), spell_bytes, model)
    ids = vocabulary.special_ids(kind in WHOLE_WORDS, False)
    return Tokenizer(steps, vocabulary.bytes(bytes_of_alphabet), vocabulary.added(), ids)


def _by_splitters(splitters: Sequence[Splitter]) -> Cut:
    first, *others = splitters

    def cut(text: str, _first: bool) -> list[str]:
        pieces = first(text)
        for splitter in others:
            pieces = [part for piece in pieces for part in splitter(piece)]
        return pieces

    return cut


def _underlined(prefix: bool) -> Normalizer:
    start = UNDERLINE if prefix else ""
    return lambda text, _first: start + text.replace(" ", UNDERLINE)


def _by_words(vocabulary: _Vocabulary) -> Cut:
    words = word_cutter(vocabulary.tokens)
    return lambda text, _first: [word for word in words(text) if word]


def _sentence_piece(vocabulary: _Vocabulary) -> Tokenizer:
    prefix = vocabulary.keys.flag("add_space_prefix", True)
    model = Scores(vocabulary.ids, vocabulary.scores(), vocabulary.id("unknown"))
    steps = Steps(_underlined(prefix), _by_words(vocabulary), str, model)
    # Phi-3's marks take the spaces and ends of lines that its template writes after them.
    added = vocabulary.added(strip_right=vocabulary.keys.architecture == "phi3")
    ids = vocabulary.special_ids(True, False)
    return Tokenizer(steps, vocabulary.bytes(bytes_of_piece), added, ids, strip_start=prefix)


def _raw_byte_pairs(vocabulary: _Vocabulary) -> Tokenizer:
    model = Merges(vocabulary.ids, _merges(vocabulary), byte_fallback=True)
    steps = Steps(_underlined(False), _by_words(vocabulary), str, model)
    return Tokenizer(
        steps, vocabulary.bytes(bytes_of_piece), vocabulary.added(), vocabulary.special_ids(True, False)
    )  # fmt: skip


def _unigram(vocabulary: _Vocabulary) -> Tokenizer:
    keys = vocabulary.keys
    prefix, tidy = keys.flag("add_space_prefix", True), keys.flag("remove_extra_whitespaces", False)
    codes = keys.list("precompiled_charsmap", int)
    normalizers = [charsmap(bytes(code & 0xFF for code in codes))] if codes else []
    if tidy:
        normalizers.append(lambda text, _first: " ".join(word for word in text.split(" ") if word))
    model = Unigram(vocabulary.ids, vocabulary.scores(), vocabulary.id("unknown"))
    before_underline = split_by(UNDERLINE, "MergedWithNext")
    steps = Steps(
        in_turn([*normalizers, _underlined(prefix)]), lambda text, _first: before_underline(text), str, model
    )  # fmt: skip
    ids = vocabulary.special_ids(False, True)
    return Tokenizer(steps, vocabulary.bytes(bytes_of_piece), vocabulary.added(), ids, strip_start=prefix)


def _bert(vocabulary: _Vocabulary) -> Tokenizer:
    """BERT's words begin with ▁ in GGUF; what goes on does not."""
    spelled = {
        i: token[1:] if token.startswith(UNDERLINE) else "##" + token
        for token, i in vocabulary.ids.items()
        if vocabulary.types[i] == NORMAL
    }
    unknown = vocabulary.id("unknown")
    if unknown is None:
        raise FormatError("tokenizer.ggml.unknown_token_id is missing, expected the token of words that have none")
    model = WordPieces({token: i for i, token in spelled.items()}, unknown)
    steps = Steps(bert(), lambda text, first: bert_cut([text], first), str, model)
    written = word_piece("##", True)
    tokens = [text_bytes(written(spelled.get(i, token))) for i, token in enumerate(vocabulary.tokens)]
    ids = vocabulary.special_ids(
        True,
        True,
        "cls" if vocabulary.id("cls") is not None else "bos",
        "seperator" if vocabulary.id("seperator") is not None else "eos",
    )
    return Tokenizer(steps, tokens, vocabulary.added(), ids, strip_start=True)


MODELS: Final[Mapping[str, Callable[[_Vocabulary], Tokenizer]]] = {
    "gpt2": _byte_pairs,
    "llama": _sentence_piece,
    "gemma4": _raw_byte_pairs,
    "t5": _unigram,
    "bert": _bert,
}
"""The names of `tokenizer.ggml.model`."""


def gguf_tokenizer(metadata: Mapping[str, object]) -> Tokenizer:
    """The tokenizer that the metadata of a GGUF file describes."""
    keys = _Keys(metadata)
    model = keys.text("model")
    if model not in MODELS:
        raise FormatError(f"tokenizer.ggml.model is {model!r:.60}, expected one of {', '.join(MODELS)}")
    return MODELS[model](_Vocabulary(keys))
