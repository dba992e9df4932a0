"""A vector for a text: what the last layer makes of its tokens."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Final

import numpy as np

from ..errors import InputError
from ..model.session import Session
from .models import DecoderModels
from .session import chunks

POOLINGS: Final = ("mean", "last")


class TextVectors:
    """A Program that gives what the scores are made of, compiled when it is first needed."""

    def __init__(self, models: DecoderModels, width: int) -> None:
        """width: of a vector."""
        self._models: Final = models
        self._width: Final = width

    @cached_property
    def _session(self) -> Session:
        return self._models.of_text("vectors").session()

    def of(self, ids: Sequence[int], pooling: str) -> np.ndarray:
        """The vector of tokens, of length 1."""
        if pooling not in POOLINGS:
            raise InputError(f"pooling: got {pooling!r:.40}, expected one of {', '.join(POOLINGS)}")
        self._session.reset()
        total, last, used = np.zeros(self._width), np.zeros(0), 0
        for part in chunks(ids):
            used += len(part)
            rows = self._session(
                np.asarray(part, np.int32), np.empty((used, 0), np.bool_), np.empty((len(part), 0), np.bool_)
            )
            total += rows.sum(0, dtype=np.float64)
            last = rows[-1].astype(np.float64)
        found = total if pooling == "mean" else last
        length = float(np.linalg.norm(found))
        return (found / (length or 1.0)).astype(np.float32)
