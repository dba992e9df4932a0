"""Runs that add a token to each of several conversations: the weights are read once for all of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

from ..model.model import Model
from .models import DecoderModels

if TYPE_CHECKING:
    from .session import LanguageSession

WIDTHS: Final = (8, 4, 2)
"""For how many conversations there are Programs, which are compiled when they are first needed."""


class SideBySide:
    """The Programs of a decoder for several conversations."""

    def __init__(self, models: DecoderModels) -> None:
        self._models: Final = models
        self._wide: Final = dict[int, Model]()

    def feed(self, sessions: Sequence[LanguageSession], tokens: Sequence[int]) -> np.ndarray:
        """Add a token to each of the sessions, which differ; the scores (sessions, vocabulary) of the ones that follow."""
        scores, at = list[np.ndarray](), 0
        while at < len(sessions):
            width = next((w for w in WIDTHS if w <= len(sessions) - at), 1)
            some, ids = sessions[at : at + width], tokens[at : at + width]
            scores.append(self._together(some, ids) if width > 1 else some[0].feed(ids)[None])
            at += width
        return np.concatenate(scores)

    def compile(self, most: int) -> None:
        """Compile the Programs for up to so many conversations now."""
        for width in WIDTHS:
            if width <= most:
                self._model_of(width).program()

    def _together(self, sessions: Sequence[LanguageSession], tokens: Sequence[int]) -> np.ndarray:
        model = self._model_of(len(sessions))
        ids = sessions[0].llm.checked(tokens)
        used = [np.empty((session.check_room(1), 0), np.bool_) for session in sessions]
        scores = model.joined([session.states for session in sessions])(ids, *used)
        for session, token in zip(sessions, ids.tolist(), strict=True):
            session.added([token])
        return scores

    def _model_of(self, width: int) -> Model:
        if width not in self._wide:
            self._wide[width] = self._models.of_several(width)
        return self._wide[width]
