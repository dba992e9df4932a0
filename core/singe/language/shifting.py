"""What a conversation keeps when its context is full: its beginning, and the later half of the rest."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from ..errors import InputError
from ..late_dataclass import dataclass


@dataclass(frozen=True)
class Shift:
    """beginning: how many tokens are always kept; room: for how many there is room.

    Tokens are dropped by half of what is beside the beginning, so that a text that grows drops the same ones until it is full again,
    and what is left of it need not be read anew.
    """

    beginning: int
    room: int

    def __post_init__(self) -> None:
        if 2 * self.beginning > self.room or self.room < 2:
            raise InputError(
                f"shift: the beginning that is kept has {self.beginning} tokens, at most half of the room for {self.room}; shorten it, or "
                "load the model with a larger context="
            )

    def fitted(self, tokens: Sequence[int]) -> tuple[int, ...]:
        """The tokens that are kept of these; all, if there is room."""
        half = (self.room - self.beginning) // 2
        dropped = -(-max(len(tokens) - self.room, 0) // half) * half
        return (*tokens[: self.beginning], *tokens[self.beginning + dropped :])


def common_beginning(tokens: Sequence[int], others: Sequence[int]) -> int:
    """How many tokens two lists have in common at their beginning."""
    pairs = zip(tokens, others, strict=False)
    return sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], pairs))
