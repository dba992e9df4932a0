"""The tokenizer of a GGUF file as the values of a `tokenizer.json`, by its keys `tokenizer.ggml.*`; what is unknown is refused by name.

They go further than Hugging Face's format in three things: a model `Scores` (SentencePiece's byte pairs), tokens whose score is
null, which text does not become, and `special_ids`.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias

from ...errors import FormatError
from ...files.strings import MadeSequence
from .end_of_turn import end_of_turn_ids
from .patterns import KINDS
from .spelling import UNDERLINE

Json: TypeAlias = dict[str, Any]
NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = range(1, 7)
"""The types of tokens."""
BEGUN: Final = frozenset(
    ["llama-bpe", "llama3", "llama-v3", "falcon3", "falcon-h1", "pixtral", "midm-2.0", "lfm2", "jina-v5-nano", "tekken"]
)
"""The kinds whose texts begin with the mark of a beginning unless the file says no."""
WHOLE_WORDS: Final = BEGUN | {"glm4", "glm5", "minicpm5"}
"""The kinds whose words that are tokens stay so."""
MAX_TOKENS: Final = 1 << 21


class _Keys:
    """The keys of a file, checked."""

    def __init__(self, metadata: Mapping[str, object]) -> None:
        self._metadata = metadata
        self.architecture = metadata.get("general.architecture")

    def _fault(self, key: str, expected: str) -> FormatError:
        value = self._metadata.get(f"tokenizer.ggml.{key}")
        shown = f"of {len(value)}" if isinstance(value, list | MadeSequence) else repr(value)[:60]
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

    def sequence(self, key: str, what: str = "a list of texts") -> Sequence[Any]:
        value = self._metadata.get(f"tokenizer.ggml.{key}", [])
        if not isinstance(value, list | MadeSequence):
            raise self._fault(key, what)
        return value

    def list(self, key: str, kind: type | tuple[type, ...], count: int | None = None) -> list[Any]:
        what = "a list of texts" if kind is str else "a list of numbers"
        values = [*self.sequence(key, what)]
        if not all(isinstance(v, kind) for v in values):
            raise self._fault(key, what)
        if count is not None and f"tokenizer.ggml.{key}" in self._metadata and len(values) != count:
            raise self._fault(key, f"as many as the tokens, {count}")
        return values


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

    def added(self, strip_right: bool = False) -> list[Json]:
        return [
            {"id": i, "content": token, "special": kind != USER_DEFINED, "rstrip": strip_right, "normalized": False}
            for i, (token, kind) in enumerate(zip(self.tokens, self.types, strict=True))
            if kind in (UNKNOWN, CONTROL, USER_DEFINED)
        ]

    def scores(self) -> Sequence[list[Any]]:
        """The tokens with their scores, null for those that text does not become."""
        scores = self.keys.list("scores", (int, float), len(self.tokens)) or [0.0] * len(self.tokens)
        tokens, kinds = self.tokens, self.types
        return MadeSequence(
            len(tokens), lambda k: [tokens[k], scores[k] if kinds[k] in (NORMAL, USER_DEFINED) else None]
        )

    def merges(self) -> Sequence[list[str]]:
        merges = self.keys.sequence("merges")

        def pair(k: int) -> list[str]:
            merge = merges[k]
            cut = merge.find(" ", 1) if isinstance(merge, str) else -1
            if cut < 0:
                raise FormatError(f"tokenizer.ggml.merges has {merge!r:.60}, expected two tokens with a space between")
            return [merge[:cut], merge[cut + 1 :]]

        return MadeSequence(len(merges), pair)

    def marked(self, values: Json, add_bos: bool, add_eos: bool, bos: str = "bos", eos: str = "eos") -> Json:
        """The values, and what stands before and after a text; `add_bos`, `add_eos` hold where the file says nothing."""
        first, last = self.id(bos), self.id(eos)
        before = first if self.keys.flag("add_bos_token", add_bos) else None
        after = last if self.keys.flag("add_eos_token", add_eos) else None
        named = {i for i in map(self.id, ("eos", "eot", "eom")) if i is not None}
        marks = {self.tokens[i]: i for i, kind in enumerate(self.types) if kind == CONTROL}
        single = [
            *([] if before is None else [{"SpecialToken": {"id": "before"}}]),
            {"Sequence": {"id": "A"}},
            *([] if after is None else [{"SpecialToken": {"id": "after"}}]),
        ]
        special = {name: {"ids": [i]} for name, i in (("before", before), ("after", after)) if i is not None}
        return {
            "added_tokens": self.added(),
            "post_processor": {"type": "TemplateProcessing", "single": single, "special_tokens": special},
            "special_ids": {
                "bos": self.id("bos"),
                "eos": self.id("eos"),
                "end_of_turn": sorted(end_of_turn_ids(marks, named)),
            },
            **values,
        }


def _byte_pairs(vocabulary: _Vocabulary) -> Json:
    kind = vocabulary.keys.text("pre", "")
    if kind not in KINDS:
        raise FormatError(
            f"tokenizer.ggml.pre is {kind!r:.80}, expected one of {', '.join(KINDS)}: text would be cut in the wrong places"
        )
    splits = [{"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated"} for pattern in KINDS[kind]]
    level = {"type": "ByteLevel", "add_prefix_space": False, "use_regex": False}
    values = {
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [*splits, level]},
        "decoder": level,
        "model": {
            "type": "BPE",
            "vocab": vocabulary.ids,
            "merges": vocabulary.merges(),
            "ignore_merges": kind in WHOLE_WORDS,
        },
    }
    return vocabulary.marked(values, kind in BEGUN, False)


def _underlined(prefix: bool) -> Json:
    replace = {"type": "Replace", "pattern": {"String": " "}, "content": UNDERLINE}
    steps = [{"type": "Prepend", "prepend": UNDERLINE}, replace] if prefix else [replace]
    return {"type": "Sequence", "normalizers": steps}


def _spaced(prefix: bool) -> Json:
    replace = {"type": "Replace", "pattern": {"String": UNDERLINE}, "content": " "}
    strip = [{"type": "Strip", "content": " ", "start": 1}] if prefix else []
    return {"type": "Sequence", "decoders": [replace, {"type": "ByteFallback"}, {"type": "Fuse"}, *strip]}


def _mapped(keys: _Keys) -> Json:
    """The map of characters, where a file has one, what is done to spaces, and these as ▁."""
    steps: list[Json] = []
    if codes := keys.list("precompiled_charsmap", int):
        charsmap = b64encode(bytes(code & 0xFF for code in codes)).decode()
        steps.append({"type": "Precompiled", "precompiled_charsmap": charsmap})
    if keys.flag("remove_extra_whitespaces", False):
        steps += [{"type": "Strip"}, {"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": " "}]
    spaces = _underlined(keys.flag("add_space_prefix", True))
    return {"type": "Sequence", "normalizers": [*steps, spaces]} if steps else spaces


def _sentence_piece(vocabulary: _Vocabulary) -> Json:
    prefix = vocabulary.keys.flag("add_space_prefix", True)
    values = {
        # Phi-3's marks take the spaces and ends of lines that its template writes after them.
        "added_tokens": vocabulary.added(strip_right=vocabulary.keys.architecture == "phi3"),
        "normalizer": _mapped(vocabulary.keys),
        "decoder": _spaced(prefix),
        "model": {"type": "Scores", "vocab": vocabulary.scores(), "unk_id": vocabulary.id("unknown")},
    }
    return vocabulary.marked(values, True, False)


def _raw_byte_pairs(vocabulary: _Vocabulary) -> Json:
    model = {"type": "BPE", "vocab": vocabulary.ids, "merges": vocabulary.merges(), "byte_fallback": True}
    values = {"normalizer": _underlined(False), "decoder": _spaced(False), "model": model}
    return vocabulary.marked(values, True, False)


def _unigram(vocabulary: _Vocabulary) -> Json:
    values = {
        "normalizer": _mapped(vocabulary.keys),
        "pre_tokenizer": {"type": "Split", "pattern": {"String": UNDERLINE}, "behavior": "MergedWithNext"},
        "decoder": _spaced(vocabulary.keys.flag("add_space_prefix", True)),
        "model": {"type": "Unigram", "vocab": vocabulary.scores(), "unk_id": vocabulary.id("unknown")},
    }
    return vocabulary.marked(values, False, True)


def _bert(vocabulary: _Vocabulary) -> Json:
    """BERT's words begin with ▁ in GGUF; what goes on does not."""
    spelled = {
        token if kind != NORMAL else token[1:] if token.startswith(UNDERLINE) else "##" + token: i
        for i, (token, kind) in enumerate(zip(vocabulary.tokens, vocabulary.types, strict=True))
    }
    unknown = vocabulary.id("unknown")
    if unknown is None:
        raise FormatError("tokenizer.ggml.unknown_token_id is missing, expected the token of words that have none")
    names = {i: token for token, i in spelled.items()}
    values = {
        "normalizer": {"type": "BertNormalizer"},
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "decoder": {"type": "WordPiece"},
        "model": {"type": "WordPiece", "vocab": spelled, "unk_token": names.get(unknown, "")},
    }
    first = "bos" if vocabulary.id("cls") is None else "cls"
    last = "eos" if vocabulary.id("seperator") is None else "seperator"
    return vocabulary.marked(values, True, True, first, last)


MODELS: Final[Mapping[str, Callable[[_Vocabulary], Json]]] = {
    "gpt2": _byte_pairs,
    "llama": _sentence_piece,
    "gemma4": _raw_byte_pairs,
    "t5": _unigram,
    "bert": _bert,
}
"""The names of `tokenizer.ggml.model`."""


def gguf_tokenizer_values(metadata: Mapping[str, object]) -> Json:
    """The `tokenizer.json` of the tokenizer that the metadata of a GGUF file describes."""
    values = unlisted_values(metadata)
    model = {k: [*v] if isinstance(v, MadeSequence) else v for k, v in values["model"].items()}
    if "merges" in model:  # a text in place of a list of two, which takes a page half the memory to read
        model["merges"] = [pair if any(" " in token for token in pair) else " ".join(pair) for pair in model["merges"]]
    return {**values, "model": model}


def unlisted_values(metadata: Mapping[str, object]) -> Json:
    """The same, where the longest lists are MadeSequences."""
    keys = _Keys(metadata)
    model = keys.text("model")
    if model not in MODELS:
        raise FormatError(f"tokenizer.ggml.model is {model!r:.60}, expected one of {', '.join(MODELS)}")
    return MODELS[model](_Vocabulary(keys))
