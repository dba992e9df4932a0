"""The conversations whose keys and values a served language model keeps: as many as fit into a number of bytes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ...errors import InputError
from ...language.llm import LanguageModel
from ...language.session import LanguageSession

MAX_SESSIONS: Final = 64
"""So many texts are made at once at most, whatever their conversations take."""
WORTH_COPYING: Final = 64
"""So many tokens that a conversation in use has in common with a new one are copied rather than computed."""


class KeptSessions:
    """Sessions that are free and in use. cache: the most bytes that their keys and values may take."""

    def __init__(self, llm: LanguageModel, cache: int) -> None:
        self._llm: Final = llm
        self.most: Final = min(cache // llm.session_bytes, MAX_SESSIONS)
        """How many there may be."""
        if self.most < 1:
            raise InputError(
                f"cache: got {cache} bytes, and one conversation of {llm.context} tokens takes {llm.session_bytes}; give more, or a "
                "smaller context="
            )
        self._free: Final = list[LanguageSession]()
        """The latest used is the last."""
        self._used: Final = list[LanguageSession]()

    @property
    def has_free(self) -> bool:
        """Whether there is one to take."""
        return len(self._used) < self.most

    def taken(self, prompt: Sequence[int]) -> LanguageSession:
        """A session for a prompt, of which it has what it can."""
        nearest = max((*self._free, *self._used), key=lambda s: s.common(prompt), default=None)
        if nearest is None or nearest in self._used or 2 * nearest.common(prompt) < nearest.count:
            session = self._apart(nearest, prompt)
        else:
            session = nearest
            self._free.remove(nearest)
        self._used.append(session)
        return session

    def _apart(self, nearest: LanguageSession | None, prompt: Sequence[int]) -> LanguageSession:
        """A new session, or the one that was not used for the longest time, rather than one of which more than half would be lost."""
        oldest = self._free.pop(0) if len(self._free) + len(self._used) == self.most else None
        if nearest is None or nearest is oldest or nearest.common(prompt) < WORTH_COPYING:
            return oldest or self._llm.session()
        del oldest  # its memory is free before the copy takes some
        return nearest.copy()

    def give(self, session: LanguageSession, is_sound: bool) -> None:
        """A session that is free again; one that is not sound is dropped."""
        self._used.remove(session)
        if is_sound:
            self._free.append(session)
