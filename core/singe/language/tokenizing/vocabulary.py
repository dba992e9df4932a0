"""The tokens and merges of a `tokenizer.json`: as Hugging Face writes them, or shortened, as pages fetch them.

Shortened, `vocab` is the list of the tokens in the order of their numbers, and `merges` is {"first", "left"}: `left` has a number for
each token from `first` on, which is how many of its characters its one merge takes from the left. A page then fetches less than half
as much, and holds no text for each merge while it reads them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from ...errors import FormatError
from .fields import Fields

MAX_TOKENS: Final = 1 << 21
_LAST: Final = "\uffff"
"""The last character that JavaScript counts as one."""


def ids_of(fields: Fields) -> Mapping[str, int]:
    """The tokens of a model and their numbers, checked."""
    place = f"{fields.place}.vocab"
    if isinstance(listed := fields.value("vocab"), list):
        if not all(isinstance(token, str) for token in listed):
            raise FormatError(f"{place} has other values than tokens")
        ids = {token: i for i, token in enumerate(listed)}
    else:
        ids = fields.mapping("vocab")
    if len(ids) > MAX_TOKENS or not all(type(i) is int and 0 <= i < MAX_TOKENS for i in ids.values()):
        raise FormatError(f"{place} has other values than numbers of tokens, below {MAX_TOKENS}")
    return ids


def pairs_of(fields: Fields) -> Iterator[tuple[str, str]]:
    """The pairs that a model merges, the first ones first."""
    place = f"{fields.place}.merges"
    if isinstance(fields.value("merges"), dict):
        short = fields.node("merges")
        vocabulary, left = fields.list("vocab"), short.list("left")
        first = short.count("first", len(vocabulary) + 1)
        for k, count in enumerate(left):
            token = vocabulary[first + k] if first + k < len(vocabulary) else ""
            if type(count) is not int or not 0 < count < len(token):
                raise FormatError(f"{place}.left[{k}] is {count!r:.60}, expected a part of the token {token!r:.60}")
            yield token[:count], token[count:]
        return
    for merge in fields.list("merges"):
        pair = merge.split(" ") if isinstance(merge, str) else merge
        if not isinstance(pair, list) or len(pair) != 2 or not (isinstance(pair[0], str) and isinstance(pair[1], str)):
            raise FormatError(f"{place} has {merge!r:.80}, expected two tokens")
        yield pair[0], pair[1]


def shortened(values: Mapping[str, Any]) -> Mapping[str, Any]:
    """The values with the tokens and merges of byte pairs shortened where their order allows it."""
    if values["model"].get("type") != "BPE":
        return values
    fields = Fields(values["model"], "model")
    ids = ids_of(fields)
    tokens = sorted(ids, key=ids.__getitem__)
    if [ids[token] for token in tokens] != [*range(len(tokens))]:
        return values
    merges = _lefts(ids, tokens, [*pairs_of(fields)])
    return {**values, "model": {**values["model"], "vocab": tokens, **({} if merges is None else {"merges": merges})}}


def _lefts(ids: Mapping[str, int], tokens: Sequence[str], pairs: Sequence[tuple[str, str]]) -> Mapping[str, Any] | None:
    """Merges as lengths; None if they do not join to one token after the other."""
    if not pairs or (first := ids.get("".join(pairs[0]))) is None:
        return None
    made = tokens[first : first + len(pairs)]
    if made != ["".join(pair) for pair in pairs] or any(max(token) > _LAST for token in made):
        return None
    return {"first": first, "left": [len(left) for left, _ in pairs]}
