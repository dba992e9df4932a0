"""The patterns by which byte-level tokenizers cut text before they merge: a closed table, by the names that GGUF gives them.

A pattern is written as in `tokenizer.json` (Oniguruma's syntax, \\p{…} is a general category of Unicode) and is one of the
table, to the letter: a pattern from a file is never compiled, because it could take exponential time. `split_by` gives the
function that cuts; what a match becomes is its `behavior`.

Python's `re` has no \\p{…}. The classes are written out for the Basic Multilingual Plane, which `re` looks up in a bitmap;
ranges beyond it would be searched one by one. A character beyond is replaced by one of its category within, and the lengths of
the pieces then cut the text itself.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from itertools import accumulate, chain, groupby
from typing import Final, TypeAlias

from ...errors import FormatError

Splitter: TypeAlias = Callable[[str], list[str]]
"""A text ↦ its pieces, which joined are the text."""

_CONTRACTIONS: Final = "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
_SPACES: Final = r"\s*[\r\n]+|\s+(?!\S)|\s+"
_LATER_SPACES: Final = r"\s+(?!\S)|\s+"
GPT2: Final = rf"'s|'t|'re|'ve|'m|'ll|'d| ?\p{{L}}+| ?\p{{N}}+| ?[^\s\p{{L}}\p{{N}}]+|{_LATER_SPACES}"
_LLAMA3: Final = (
    rf"{_CONTRACTIONS}|[^\r\n\p{{L}}\p{{N}}]?\p{{L}}+|\p{{N}}{{1,3}}| ?[^\s\p{{L}}\p{{N}}]+[\r\n]*|{_SPACES}"
)
_QWEN2: Final = _LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}")
_QWEN35: Final = (
    rf"{_CONTRACTIONS}|[^\r\n\p{{L}}\p{{N}}]?[\p{{L}}\p{{M}}]+|\p{{N}}| ?[^\s\p{{L}}\p{{M}}\p{{N}}]+[\r\n]*|{_SPACES}"
)
_UPPER, _LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"


def _cased(end: str, digits: str) -> str:
    """Words cut where capitals begin, as in GPT-4o."""
    before = r"[^\r\n\p{L}\p{N}]?"
    return rf"{before}{_UPPER}*{_LOWER}+{end}|{before}{_UPPER}+{_LOWER}*{end}|{digits}| ?[^\s\p{{L}}\p{{N}}]+[\r\n/]*|{_SPACES}"


_GPT4O: Final = _cased(_CONTRACTIONS + "?", r"\p{N}{1,3}")
_TEKKEN: Final = _cased("", r"\p{N}")
_DEEPSEEK3: Final = (
    r"\p{N}{1,3}",
    "[一-龥\u3040-ゟ゠-ヿ]+",
    r"""[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|"""
    + _SPACES,
)
_DIGIT: Final = r"\p{N}"

_DEEPSEEK_CODER: Final = (r"[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", "[一-龥\u0800-一가-\ud7ff]+", _DIGIT)
_MINICPM5: Final = _LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}+")

KINDS: Final[Mapping[str, tuple[str, ...]]] = {
    name: patterns
    for names, patterns in {
        "gpt-2 phi-2 jina-es jina-de jina-v2-de jina-v2-es jina-v2-code jina-v1-en mpt olmo trillion granite-docling gigachat jais "
        "roberta-bpe exaone4 a.x-4.0 mellum modern-bert": (GPT2,),
        "llama-bpe llama3 llama-v3 falcon3 falcon-h1 pixtral midm-2.0 lfm2 jina-v5-nano dbrx smaug-bpe chatglm-bpe glm4 glm5": (_LLAMA3,),
        "qwen2 deepseek-r1-qwen stablelm2 hunyuan megrez kormo f2llmv2 solar-open grok-2": (_QWEN2,),
        "qwen35": (_QWEN35,),
        "smollm starcoder refact command-r codeshell exaone minerva-7b mellum2": (_DIGIT, GPT2),
        "gpt-4o llama4 kanana2 talkie minimax-m2": (_GPT4O,),
        "tekken": (_TEKKEN,),
        "deepseek-v3 hunyuan-dense joyai-llm hy_v4": _DEEPSEEK3,
        "deepseek-coder": _DEEPSEEK_CODER,
        "minicpm5": (r"\p{N}{1,3}", _MINICPM5),
        "falcon": (r"[\p{P}\$\+<=>\^~\|`]+", GPT2, "[0-9][0-9][0-9]"),
    }.items()
    for name in names.split()
}  # fmt: skip
"""The names of `tokenizer.ggml.pre` ↦ the patterns that cut, one after the other."""

CLIP: Final = r"<\|startoftext\|>|<\|endoftext\|>|'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+"
KNOWN: Final[frozenset[str]] = frozenset(
    (
        *chain.from_iterable(KINDS.values()),
        CLIP,
        CLIP[CLIP.index("'s") :],
        " {2,}",
        r"\s+",
        r"\p{N}{1,3}",
        r"\n+",
        r"[^\n]+|[\n]+",
    )
)
"""The patterns that a `tokenizer.json` may have."""

STAND_INS: Final[Mapping[str, str]] = {
    "Lu": "Ā", "Ll": "ā", "Lt": "ǅ", "Lm": "ʰ", "Lo": "ƻ", "Mn": "\u0300", "Mc": "\u0903", "Me": "\u0488", "Nd": "٠",
    "Nl": "Ⅰ", "No": "²", "Pc": "‿", "Pd": "‐", "Ps": "⁅", "Pe": "⁆", "Pi": "‘", "Pf": "’", "Po": "‰", "Sm": "±",
    "Sc": "¢", "Sk": "˂", "So": "©", "Cf": "\u200b", "Cn": "\u0378", "Co": "\ue000",
}  # fmt: skip
"""General categories of characters beyond the Basic Multilingual Plane ↦ a character of the plane that no pattern names."""
SPACE: Final = r"\t-\r \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
"""What \\s means: Unicode's White_Space. (Python's has four control characters more, JavaScript's a mark of byte order.)"""
_BEYOND: Final = re.compile("[\U00010000-\U0010ffff]")
_PARTS: Final = re.compile(r"\\p\{(\w+)\}|\\s|\\S|\\.|\[\^?|\]|(.)", re.DOTALL)


@cache
def _ranges() -> Mapping[str, str]:
    """General categories, and their first letters ↦ the characters of the Basic Multilingual Plane, as within a class of `re`."""
    runs: dict[str, list[list[int]]] = {}
    for code in range(0x10000):
        category = unicodedata.category(chr(code))
        for name in (category, category[0]):
            spans = runs.setdefault(name, [])
            if spans and spans[-1][1] == code - 1:
                spans[-1][1] = code
            else:
                spans.append([code, code])
    return {name: "".join(f"\\u{a:04x}-\\u{b:04x}" for a, b in spans) for name, spans in runs.items()}


def category_class(*categories: str) -> str:
    """The characters of general categories in the Basic Multilingual Plane, as they stand in a class of `re`."""
    return "".join(_ranges()[name] for name in categories)


def in_python(pattern: str) -> str:
    """A pattern of the table as `re` writes it."""

    def parts() -> Iterator[str]:
        inside = False
        for part in _PARTS.finditer(pattern):
            text = part[0]
            if text.startswith("["):
                inside = True
            elif text == "]":
                inside = False
            if part[1]:
                text = category_class(part[1]) if inside else f"[{category_class(part[1])}]"
            elif text == r"\s":
                text = SPACE if inside else f"[{SPACE}]"
            elif text == r"\S":
                text = f"[^{SPACE}]"
            yield text

    return "".join(parts())


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(in_python(pattern))


def _plain(text: str) -> str:
    """A text of the same length, in the Basic Multilingual Plane."""
    return _BEYOND.sub(lambda m: STAND_INS[unicodedata.category(m[0])], text)


def isolate(pattern: str) -> Splitter:
    """Cuts a text into the matches of a pattern of ours and what lies between them."""
    compiled = _compiled(pattern)

    def split(text: str) -> list[str]:
        plain = _plain(text)
        pieces = compiled.findall(plain)
        if sum(map(len, pieces)) != len(text):
            return [text[start:end] for start, end, _ in _spans(compiled, plain)]
        if plain == text:
            return pieces
        ends = list(accumulate(map(len, pieces)))
        return [text[start:end] for start, end in zip([0, *ends], ends, strict=False)]

    return split


def _spans(compiled: re.Pattern[str], text: str) -> Iterator[tuple[int, int, bool]]:
    """Where matches, and what lies between, begin and end; whether it is a match."""
    at = 0
    for match in compiled.finditer(text):
        start, end = match.span()
        if start == end:
            continue
        if at < start:
            yield at, start, False
        yield start, end, True
        at = end
    if at < len(text):
        yield at, len(text), False


def split_by(pattern: str, behavior: str, invert: bool = False) -> Splitter:
    """Cuts a text at the matches of a pattern of ours: `behavior` says what becomes of a match, as in `tokenizer.json`.
    Inverted, what lies between the matches is cut out.
    """
    if behavior not in BEHAVIORS:
        raise FormatError(f"the behavior {behavior!r:.60} of a pre-tokenizer, expected one of {', '.join(BEHAVIORS)}")
    if behavior == "Isolated":
        return isolate(pattern)
    compiled = _compiled(pattern)
    join = BEHAVIORS[behavior]

    def split(text: str) -> list[str]:
        spans = [(start, end, matched != invert) for start, end, matched in _spans(compiled, _plain(text))]
        return [text[start:end] for start, end in join(spans)]

    return split


Spans: TypeAlias = list[tuple[int, int, bool]]


def _removed(spans: Spans) -> list[tuple[int, int]]:
    return [(start, end) for start, end, matched in spans if not matched]


def _merged_with_previous(spans: Spans) -> list[tuple[int, int]]:
    merged: list[tuple[int, int]] = []
    previous = False
    for start, end, matched in spans:
        if matched and merged and not previous:
            merged[-1] = merged[-1][0], end
        else:
            merged.append((start, end))
        previous = matched
    return merged


def _merged_with_next(spans: Spans) -> list[tuple[int, int]]:
    merged: list[tuple[int, int]] = []
    following = False
    for start, end, matched in reversed(spans):
        if matched and merged and not following:
            merged[-1] = start, merged[-1][1]
        else:
            merged.append((start, end))
        following = matched
    return merged[::-1]


def _contiguous(spans: Spans) -> list[tuple[int, int]]:
    return [(group[0][0], group[-1][1]) for _, span in groupby(spans, lambda s: s[2]) if (group := list(span))]


def _isolated(spans: Spans) -> list[tuple[int, int]]:
    return [(start, end) for start, end, _ in spans]


BEHAVIORS: Final[Mapping[str, Callable[[Spans], list[tuple[int, int]]]]] = {
    "Isolated": _isolated,
    "Removed": _removed,
    "MergedWithPrevious": _merged_with_previous,
    "MergedWithNext": _merged_with_next,
    "Contiguous": _contiguous,
}
"""What becomes of the matches of a pattern."""


def known(pattern: str) -> str:
    """A pattern from a file, if it is of the table. Ends of lines may be written as they are."""
    pattern = pattern.replace("\r", r"\r").replace("\n", r"\n")
    if pattern not in KNOWN:
        raise FormatError(f"the pattern {pattern!r:.300} of a tokenizer is none of the {len(KNOWN)} that Singe knows")
    return pattern
