"""The tokenizer of a `tokenizer.json`, Hugging Face's format; what is unknown is refused by name.

Truncation and padding are the caller's matter, and are not read.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from math import isfinite
from pathlib import Path
from typing import Final

from ...errors import FormatError
from ...files.bounded import read_json_object
from ...files.strings import joined_strings
from ...late_dataclass import dataclass
from .added import AddedToken
from .end_of_turn import end_of_turn_ids
from .fields import Fields
from .models.cutting import word_cutter
from .models.merging import Merges, Scores
from .models.unigram import Unigram
from .models.word_pieces import WordPieces
from .spelling import spell_bytes
from .steps.decoders import Decoding, decoder
from .steps.normalizers import normalizer, same
from .steps.pre_tokenizers import flat, pre_tokenizer
from .tokenizer import PieceModel, SpecialIds, Steps, Tokenizer
from .vocabulary import MAX_TOKENS, ids_of, pairs_of

MAX_BYTES: Final = 1 << 28
MAX_ADDED: Final = 256
"""The characters of an added token: each place of a text where one may begin is compared with all lengths."""
MAX_WORD: Final = 257
"""More characters than a word that BERT's model looks up may have: time is quadratic in them."""


class _Model:
    """A model, with the ids of its tokens."""

    def __init__(self, ids: Mapping[str, int], model: PieceModel) -> None:
        self.ids, self.model = ids, model


def _byte_pairs(fields: Fields) -> _Model:
    ids = ids_of(fields)
    if fields.value("continuing_subword_prefix"):
        raise FormatError(
            f"{fields.place}.continuing_subword_prefix is {fields.value('continuing_subword_prefix')!r:.60}, expected none"
        )
    suffix = fields.value("end_of_word_suffix")
    model = Merges(
        ids,
        pairs_of(fields),
        whole=fields.flag("ignore_merges", False),
        byte_fallback=fields.flag("byte_fallback", False),
        unknown=_known(ids, fields.optional_text("unk_token"), fields.place),
        fuse_unknown=fields.flag("fuse_unk", False),
        suffix=fields.short_text("end_of_word_suffix") if suffix else "",
    )
    return _Model(ids, model)


def _known(ids: Mapping[str, int], token: str | None, place: str) -> str | None:
    if token is not None and token not in ids:
        raise FormatError(f"{place}.unk_token is {token!r:.60}, which is no token of the vocabulary")
    return token


def _scored(fields: Fields) -> tuple[dict[str, int], dict[str, float], int | None]:
    """The tokens of a list with scores: their ids, the scores of those that text may become, and what is unknown."""
    listed = fields.list("vocab")
    if len(listed) > MAX_TOKENS:
        raise FormatError(f"{fields.place}.vocab has {len(listed)} tokens, expected at most {MAX_TOKENS}")
    scores: dict[str, float] = {}
    ids: dict[str, int] = {}
    for i, item in enumerate(listed):
        if not isinstance(item, list) or len(item) != 2 or not isinstance(item[0], str):
            raise FormatError(f"{fields.place}.vocab[{i}] is {item!r:.80}, expected a token and its score")
        ids.setdefault(item[0], i)
        if item[1] is None:
            continue
        if type(item[1]) not in (int, float) or not isfinite(item[1]):
            raise FormatError(f"{fields.place}.vocab[{i}] has the score {item[1]!r:.60}, expected a finite number")
        scores[item[0]] = float(item[1])
    return ids, scores, fields.count("unk_id", len(listed)) if "unk_id" in fields else None


def _unigram(fields: Fields) -> _Model:
    ids, scores, unknown = _scored(fields)
    return _Model(ids, Unigram(ids, scores, unknown, fields.flag("byte_fallback", False)))


def _scores(fields: Fields) -> _Model:
    ids, scores, unknown = _scored(fields)
    return _Model(ids, Scores(ids, scores, unknown))


def _word_pieces(fields: Fields) -> _Model:
    ids = ids_of(fields)
    unknown = fields.text("unk_token", "[UNK]")
    _known(ids, unknown, fields.place)
    prefix = fields.short_text("continuing_subword_prefix", "##")
    longest = fields.count("max_input_chars_per_word", MAX_WORD, 100)
    return _Model(ids, WordPieces(ids, ids[unknown], prefix, longest))


MODELS: Final[Mapping[str, Callable[[Fields], _Model]]] = {
    "BPE": _byte_pairs,
    "Scores": _scores,
    "Unigram": _unigram,
    "WordPiece": _word_pieces,
}
"""The models of `tokenizer.json` by their `type`."""


def _added(fields: Fields, ids: Mapping[str, int]) -> list[AddedToken]:
    return [
        AddedToken(
            ids.get(token.text("content"), token.count("id", MAX_TOKENS)),
            token.short_text("content", limit=MAX_ADDED),
            token.flag("special", False),
            strip_left=token.flag("lstrip", False),
            strip_right=token.flag("rstrip", False),
            whole_word=token.flag("single_word", False),
            normalized=token.flag("normalized", True),
        )
        for token in (fields.nodes("added_tokens") if "added_tokens" in fields else ())
    ]


@dataclass(frozen=True)
class _Marks:
    """The ids before and after a text, and between two; second: the type of the second's tokens."""

    before: tuple[int, ...] = ()
    after: tuple[int, ...] = ()
    between: tuple[int, ...] = ()
    second: int = 0


def _marks(post_processor: Fields | None) -> _Marks:
    marks = _Marks()
    for step in flat(post_processor, "processors"):
        kind = step.text("type")
        if kind == "TemplateProcessing":
            marks = _template(step)
        elif kind in ("BertProcessing", "RobertaProcessing"):
            end = (_pair(step, "sep"),)
            of_bert = kind == "BertProcessing"
            marks = _Marks((_pair(step, "cls"),), end, end if of_bert else (*end, *end), int(of_bert))
        elif kind != "ByteLevel":
            raise FormatError(
                f"{step.place} is of the type {kind!r:.60}, expected TemplateProcessing, BertProcessing, RobertaProcessing, ByteLevel"
            )
    return marks


def _pair(step: Fields, name: str) -> int:
    value = step.list(name)
    if len(value) != 2 or type(value[1]) is not int or not 0 <= value[1] < MAX_TOKENS:
        raise FormatError(f"{step.place}.{name} is {value!r:.80}, expected a token and its id")
    return value[1]


def _template(step: Fields) -> _Marks:
    special = step.node("special_tokens")

    def sides(name: str) -> tuple[list[list[int]], int]:
        """The ids before, between and after the texts of a template; and the type of the last text's tokens."""
        found: list[list[int]] = [[]]
        kind = 0
        for item in step.nodes(name):
            if "Sequence" in item:
                found.append([])
                kind = item.node("Sequence").count("type_id", 2, 0)
                continue
            ids = special.node(item.node("SpecialToken").text("id")).list("ids")
            if len(ids) > 16 or not all(type(i) is int and 0 <= i < MAX_TOKENS for i in ids):
                raise FormatError(f"{step.place}.special_tokens has {ids!r:.80}, expected at most 16 ids")
            found[-1].extend(ids)
        return found, kind

    single, _ = sides("single")
    pair, second = sides("pair") if "pair" in step else ([[], [], []], 0)
    before, after = single[0], [i for part in single[1:] for i in part]
    return _Marks(tuple(before[:64]), tuple(after[:64]), tuple(pair[1][:64]) if len(pair) == 3 else (), second)


def _configured(config: Fields, name: str, ids: Mapping[str, int]) -> int | None:
    """The id of a token that a `tokenizer_config.json` names."""
    value = config.value(name)
    text = value.get("content") if isinstance(value, dict) else value
    return ids.get(text) if isinstance(text, str) else None


def tokenizer_of(values: object, config_values: object, place: str) -> Tokenizer:
    """The tokenizer that the values of a `tokenizer.json`, and those of a `tokenizer_config.json`, describe."""
    try:
        return _tokenizer_of(values, config_values, place)
    except RecursionError:
        raise FormatError(f"{place} is nested too deeply") from None


def _tokenizer_of(values: object, config_values: object, place: str) -> Tokenizer:
    fields, config = (
        Fields(values, place),
        Fields({} if config_values is None else config_values, "tokenizer_config.json"),
    )
    model_fields = fields.node("model")
    model = _model_kind(model_fields)(model_fields)
    added = _added(fields, model.ids)
    ids = {**model.ids, **{token.text: token.id for token in added}}

    pre = flat(fields.optional_node("pre_tokenizer"), "pretokenizers")
    normalizing = fields.optional_node("normalizer")
    by_bytes = any(step.text("type") == "ByteLevel" for step in pre)
    cut = pre_tokenizer(pre)
    if isinstance(model.model, Scores) or (isinstance(model.model, Merges) and not model.model.suffix and not by_bytes):
        cut = _words_too(cut, model.ids)
    steps = Steps(
        normalizer(normalizing) if normalizing else same, cut, spell_bytes if by_bytes else str, model.model
    )  # fmt: skip

    decoding_fields = fields.optional_node("decoder")
    decoding = decoder(decoding_fields, Decoding()) if decoding_fields else _spaced()
    vocabulary = _vocabulary(model.ids, added, decoding)

    special = _special_ids(fields, config, ids, added)
    if any(i >= len(vocabulary) for i in (*special.before, *special.after, *special.between)):
        raise FormatError(f"{place}: its post-processor writes tokens beyond the {len(vocabulary)} of the vocabulary")
    tidy = (lambda text: text.removesuffix(" ")) if decoding.strip_end else None
    return Tokenizer(steps, vocabulary, added, special, strip_start=decoding.strip_start, tidy=tidy)


def _special_ids(fields: Fields, config: Fields, ids: Mapping[str, int], added: Sequence[AddedToken]) -> SpecialIds:
    marks = _marks(fields.optional_node("post_processor"))
    before, after = marks.before, marks.after
    if "special_ids" in fields:
        named = fields.node("special_ids")
        bos, eos = (named.count(key, MAX_TOKENS) if key in named else None for key in ("bos", "eos"))
        ends = [i for i in named.list("end_of_turn") if type(i) is int]
        return SpecialIds(bos, eos, frozenset(ends), before, after, marks.between, marks.second)
    bos, eos = _configured(config, "bos_token", ids), _configured(config, "eos_token", ids)
    if not before and bos is not None and config.value("add_bos_token") is True:
        before = (bos,)
    if not after and eos is not None and config.value("add_eos_token") is True:
        after = (eos,)
    named = {token.text: token.id for token in added if token.special}
    return SpecialIds(
        bos, eos, end_of_turn_ids(named, () if eos is None else (eos,)), before, after, marks.between, marks.second
    )


def _model_kind(fields: Fields) -> Callable[[Fields], _Model]:
    if "type" not in fields:  # files of old say nothing
        return MODELS[
            "Unigram" if isinstance(fields.value("vocab"), list) else "BPE" if "merges" in fields else "WordPiece"
        ]
    return fields.choose(MODELS)


def _words_too(cut: Callable[[str, bool], list[str]], tokens: Iterable[str]) -> Callable[[str, bool], list[str]]:
    words = word_cutter(tokens)
    return lambda text, first: [word for piece in cut(text, first) for word in words(piece) if word]


def _spaced() -> Decoding:
    """Without a decoder, tokens stand apart."""
    return Decoding(lambda token: " " + token, strip_start=True)


def _vocabulary(ids: Mapping[str, int], added: Sequence[AddedToken], decoding: Decoding) -> Sequence[bytes]:
    count = 1 + max(max(ids.values(), default=-1), max((token.id for token in added), default=-1))
    tokens: list[str | None] = [None] * count
    for token, i in ids.items():
        tokens[i] = token
    own = {token.id: (decoding.bytes if decoding.added_too else str.encode)(token.text) for token in added}
    plain = (own[i] if i in own else b"" if token is None else decoding.bytes(token) for i, token in enumerate(tokens))
    return joined_strings(plain)


def read_tokenizer(path: str | os.PathLike[str], config_path: str | os.PathLike[str] | None) -> Tokenizer:
    """The tokenizer of a `tokenizer.json`."""
    config = None if config_path is None else read_json_object(Path(config_path), MAX_BYTES)
    return tokenizer_of(read_json_object(Path(path), MAX_BYTES), config, Path(path).name)
