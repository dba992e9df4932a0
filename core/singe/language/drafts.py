"""Drafts: guesses at the next tokens of a text, of what followed the same few tokens before. A run checks several at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

MAX_DRAFTS: Final = 15
ALIKE: Final = 3
"""How many of the latest tokens must have stood together before."""


class Drafts:
    """The tokens of a text, and what followed each few of them. most: how many are guessed at once. It begins with one, which costs a run
    little, and guesses twice as many after guesses that were right."""

    def __init__(self, most: int, tokens: Sequence[int]) -> None:
        self._most: Final = most
        self._tokens = list[int]()
        self._places = dict[tuple[int, ...], int]()
        """The latest place after some tokens."""
        self._next = 1
        for token in tokens:
            self.add(token)

    def add(self, token: int) -> None:
        """Note the token that follows those so far."""
        if len(self._tokens) >= ALIKE:
            self._places[tuple(self._tokens[-ALIKE:])] = len(self._tokens)
        self._tokens.append(token)

    def guess(self, room: int) -> tuple[int, ...]:
        """The tokens that may come next: no more than room."""
        place = self._places.get(tuple(self._tokens[-ALIKE:]))
        return () if place is None else tuple(self._tokens[place : place + min(self._next, max(room, 0))])

    def tell(self, were_right: bool) -> None:
        """Say whether all of the latest guesses were right."""
        self._next = min(2 * self._next, self._most) if were_right else 1
