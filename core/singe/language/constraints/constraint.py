"""TextConstraint: which tokens may follow, so that a text matches."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from ...errors import InputError
from ..tokenizing import Tokenizer
from .automaton import DEAD, Automaton
from .grammar import Expression
from .json_schema import schema_rules
from .regular import RegularExpression

MAX_TOKEN_BYTES: Final = 64
"""Longer tokens are not written."""
MAX_MASKS: Final = 1000
"""States whose masks are kept."""


class TokenBytes:
    """The bytes of a tokenizer's tokens, in a table. Marks are no text."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        words = [b"" if i in tokenizer.special else w for i, w in enumerate(tokenizer.vocabulary)]
        lengths = np.array([len(w) if len(w) <= MAX_TOKEN_BYTES else 0 for w in words])
        self.order: Final = np.argsort(-lengths, kind="stable")[: int((lengths > 0).sum())]
        """The tokens that are text, the longest first."""
        self.lengths: Final = lengths[self.order]
        self.bytes: Final = np.zeros((int(lengths.max(initial=0)), len(self.order)), np.uint8)
        for column, token in enumerate(self.order):
            self.bytes[: len(words[token]), column] = np.frombuffer(words[token], np.uint8)
        self.count: Final = len(words)


class TextConstraint:
    """What a text must match. Masks are computed for all tokens at once, and kept by state."""

    def __init__(self, rules: dict[str, Expression], tokens: TokenBytes) -> None:
        """rules: the one that is called "" is the whole text."""
        self._automaton: Final = Automaton(rules, "")
        self._tokens: Final = tokens
        self._masks: Final = dict[int, np.ndarray]()
        self.start: Final = self._automaton.start

    @staticmethod
    def of(tokens: TokenBytes, schema: Any, regex: str | None) -> TextConstraint:
        """The constraint of a JSON schema (True for any object), or of a regular expression."""
        if schema is not None and regex is not None:
            raise InputError("schema and regex are given; give one of them")
        try:
            rules = schema_rules(schema) if regex is None else {"": RegularExpression(regex).expression}
            return TextConstraint(rules, tokens)
        except RecursionError:
            raise InputError(
                "the schema is nested too deeply; give definitions of its parts names, or a simpler one"
            ) from None

    def ends(self, state: int) -> bool:
        """Whether the text may end there."""
        return self._automaton.accepts[state]

    def is_whole(self, state: int) -> bool:
        """Whether the text must end there."""
        return self._automaton.accepts[state] and not self._automaton.row(state).any()

    def after(self, state: int, data: bytes) -> int:
        """The state after these bytes."""
        for b in data:
            state = int(self._automaton.row(state)[b])
        return state

    def mask(self, state: int) -> np.ndarray:
        """Whether each token may follow."""
        found = self._masks.get(state)
        if found is None:
            if len(self._masks) >= MAX_MASKS:
                self._masks.clear()
            found = self._masks[state] = self._masked(state)
        return found

    def _masked(self, state: int) -> np.ndarray:
        """All tokens take a byte after the other; those that are dead drop out."""
        tokens = self._tokens
        alive, states = np.arange(len(tokens.order)), np.full(len(tokens.order), state, np.int32)
        matched = np.zeros(tokens.count, np.bool_)
        for place in range(len(tokens.bytes)):
            kinds, which = np.unique(states, return_inverse=True)
            rows = (
                np.stack([self._automaton.row(int(k)) for k in kinds]) if len(kinds) else np.zeros((1, 256), np.int32)
            )
            states = rows[which, tokens.bytes[place, alive]]
            kept = states != DEAD
            alive, states = alive[kept], states[kept]
            complete = tokens.lengths[alive] == place + 1
            matched[tokens.order[alive[complete]]] = True
            alive, states = alive[~complete], states[~complete]
            if not len(alive):
                break
        return matched
