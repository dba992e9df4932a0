"""A vector for a text: what the last layer makes of its tokens."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Final

import numpy as np

from ..errors import InputError
from ..model.model import Model
from ..model.session import Session
from .decoder import Decoder, beside, model_of
from .session import chunks

POOLINGS: Final = ("mean", "last")


class TextVectors:
    """A Program that gives what the scores are made of, compiled when it is first needed. model: that of the scores, with which it shares
    weights."""

    def __init__(self, network: Decoder, model: Model) -> None:
        self._network, self._model = network, model

    @cached_property
    def _session(self) -> Session:
        model = model_of(self._network, self._network.vectors, self._model.device, self._model.name)
        return beside(model, self._model).session()

    def of(self, ids: Sequence[int], pooling: str) -> np.ndarray:
        """The vector of tokens, of length 1."""
        if pooling not in POOLINGS:
            raise InputError(f"pooling: got {pooling!r:.40}, expected one of {', '.join(POOLINGS)}")
        self._session.reset()
        total, last, used = np.zeros(self._network.norm.size), np.zeros(0), 0
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
