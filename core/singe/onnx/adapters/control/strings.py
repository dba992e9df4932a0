"""Strings: joined, split, normalised, matched. Ops that only move, compare or cast them are the same as for numbers."""

from __future__ import annotations

from ....graph import Node
from .._call import Call, adapter


@adapter("StringConcat")
def _concat(call: Call) -> Node:
    return call.b.string_concat(call.x(), call.x(1))


@adapter("StringSplit")
def _split(call: Call) -> list[Node]:
    limit = call.attr("maxsplit", 0) if "maxsplit" in call.attributes else None
    return list(call.b.string_split(call.x(), delimiter=call.attr("delimiter", ""), limit=limit))


@adapter("StringNormalizer")
def _normalise(call: Call) -> Node:
    """Changes case by Unicode's rules, whatever the locale."""
    return call.b.string_normalize(
        call.x(), case=call.attr("case_change_action", "NONE"), stopwords=call.items("stopwords", str) or (),
        sensitive=call.flag("is_case_sensitive"),
    )  # fmt: skip


@adapter("RegexFullMatch")
def _match(call: Call) -> Node:
    """Matches with Python's regular expressions, which have all of RE2's syntax except \\pN and \\z."""
    return call.b.regex_full_match(call.x(), pattern=call.attr("pattern", ""))


@adapter("com.microsoft.Tokenizer")
def _tokenizer(call: Call) -> Node:
    """Tokens that match `tokenexp`, or those between any of the `separators`."""
    separators, pattern = call.items("separators", str), call.attr("tokenexp", "")
    if (separators is None) == (not pattern):
        raise call.fail("expected separators, or a tokenexp")
    if separators is not None:
        pattern = "|".join(f"(?:{part})" for part in separators if part)
    return call.b.string_tokens(
        call.x(), pattern=pattern, between=separators is not None, least=call.attr("mincharnum", 1),
        marked=call.flag("mark"), fill=call.attr("pad_value", ""),
    )  # fmt: skip
