"""PairModel: a network on a device, which reads a source once, and says texts about it token by token."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, Protocol

import numpy as np

from ...model.model import Model
from ...model.session import Session
from ...runtime.device import Device
from ...runtime.devices import device as open_device
from ...tensors.tensor import Tensor
from ..files import Tensors
from .description import PairDescription
from .network import SAY_TYPES, PairNetwork, say_shapes, source_room
from .search import FollowedTexts
from .sounds import MAX_SECONDS, RATE


class SourceReader(Protocol):
    """What reads a source, and says what follows the tokens of a text about it. room: positions of a source, and of a text."""

    @property
    def device(self) -> Device: ...
    @property
    def room(self) -> tuple[int, int]: ...
    def hear(self, source: Sequence[int] | np.ndarray) -> None:
        """Take a source: tokens, or samples."""
        ...

    def texts(self, count: int) -> FollowedTexts:
        """So many texts about the source, which have no tokens yet."""
        ...


class PairModel:
    """The Models of a network, which share its weights."""

    def __init__(self, description: PairDescription, tensors: Tensors, device: str | Device = "auto") -> None:
        self.description: Final = description
        self.device: Final = open_device(device)
        self.room: Final = source_room(description), description.room
        self._network: Final = PairNetwork(description, tensors)
        of_sound = description.family.rotated
        self._type: Final = "float32" if of_sound else "int32"
        size = f"N<={MAX_SECONDS * RATE}" if of_sound else f"S<={self.room[0]}"
        self._hear: Final = Model.of(
            self._network.hear, {"source": (size,)}, self.device, dtypes={"source": self._type}, states=self._network.heard(),
            name="hear",
        )  # fmt: skip
        self._source: Final = self._hear.session()
        self._texts: Final[dict[int, SaidTexts]] = {}
        self.heard = 0
        """Positions of the source."""

    def hear(self, source: Sequence[int] | np.ndarray) -> None:
        self.heard = len(self._source(np.asarray(source, self._type)))

    def texts(self, count: int) -> SaidTexts:
        found = self._texts.get(count)
        if found is None:
            own = self._network.said(count)
            say = Model.of(
                self._network.say, say_shapes(self.description, count), self.device, dtypes=SAY_TYPES,
                states={**self._network.heard(), **own}, name="say",
            )  # fmt: skip
            found = self._texts[count] = SaidTexts(said_about(self._source, self._hear, say, own), self, count)
        found.used = 0
        return found


def said_about(source: Session, hear: Model, say: Model, own: Mapping[str, Any]) -> Session:
    """A session of `say` with the weights of `hear`, whose session holds what was heard, and with states of its own."""
    say.share_weights(hear)
    room = Model.of(_kept, {"nothing": (1,)}, hear.device, states=own, name="room")
    return say.joined([source, room.session()])


def _kept(nothing: Tensor, **states: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
    return nothing, states


class SaidTexts:
    """Texts about a source, side by side. used: how many tokens each has."""

    def __init__(self, session: Any, model: PairModel, count: int) -> None:
        self._session: Final = session
        self._model: Final = model
        self.count: Final = count
        self.used = 0

    def add(self, ids: Sequence[Sequence[int]], rows: int = 1, order: Sequence[int] | None = None) -> np.ndarray:
        self.used += len(ids[0])
        scores = self._session(
            np.array(ids, np.int32), np.empty((self.used, 0), np.bool_), np.empty((rows, 0), np.bool_),
            np.empty((self._model.heard, 0), np.bool_),
            np.arange(self.count, dtype=np.int32) if order is None else np.array(order, np.int32),
        )  # fmt: skip
        return scores.reshape(self.count, rows, -1)
