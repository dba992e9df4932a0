"""WhisperModel: the network on a device. A window is heard once; texts about it are said token by token."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from ..model.model import Model
from ..runtime.device import Device
from ..runtime.devices import device as open_device
from ..tensors.tensor import Tensor
from .files import WhisperFiles
from .spectrogram import LENGTH, STEP, BandPowers, samples_for
from .whisper import HEAR_TYPES, SAY_TYPES, Whisper, hear_shapes, say_shapes


class WhisperModel:
    """The Models of a network, which share its weights."""

    def __init__(self, files: WhisperFiles, device: str | Device = "auto") -> None:
        self.description: Final = files.description
        self.device: Final = open_device(device)
        self._network: Final = Whisper(files.description, files.tensors())
        d = files.description
        samples = d.frames * STEP + LENGTH - STEP
        self._bands: Final = Model.of(BandPowers(d.bands), {"samples": (samples,)}, self.device, name="bands")
        self._hear: Final = Model.of(
            self._network.hear,
            hear_shapes(d),
            self.device,
            dtypes=HEAR_TYPES,
            states=self._network.heard(),
            name="hear",
        )
        self._window: Final = self._hear.session()
        self._texts: Final[dict[int, SpokenTexts]] = {}

    def powers(self, samples: np.ndarray, first: int) -> np.ndarray:
        """The spectrogram of as many frames as a window has, from a frame on."""
        return self._bands(samples_for(samples, first, self.description.frames))

    def hear(self, powers: np.ndarray, peak: float, count: int) -> None:
        """Take a window, of which the first `count` frames are of the sound."""
        self._window(powers, np.array([peak], np.float32), np.array([count], np.int32))

    def texts(self, count: int) -> SpokenTexts:
        """So many texts about the window, which have no tokens yet."""
        found = self._texts.get(count)
        if found is None:
            own = self._network.said(count)
            say = Model.of(
                self._network.say, say_shapes(self.description, count), self.device, dtypes=SAY_TYPES,
                states={**self._network.heard(), **own}, name="say",
            )  # fmt: skip
            say.share_weights(self._hear)
            room = Model.of(_kept, {"nothing": (1,)}, self.device, states=own, name="room")
            found = self._texts[count] = SpokenTexts(say.joined([self._window, room.session()]), count)
        found.used = 0
        return found


def _kept(nothing: Tensor, **states: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
    return nothing, states


class SpokenTexts:
    """Texts about a window, side by side. used: how many tokens each has."""

    def __init__(self, session: Any, count: int) -> None:
        self._session: Final = session
        self.count: Final = count
        self.used = 0

    def add(self, ids: Sequence[Sequence[int]], rows: int = 1, order: Sequence[int] | None = None) -> np.ndarray:
        """Add tokens to each text, which goes on from the one that `order` names: the scores (texts, rows, vocabulary) after the last."""
        self.used += len(ids[0])
        scores = self._session(
            np.array(ids, np.int32), np.empty((self.used, 0), np.bool_), np.empty((rows, 0), np.bool_),
            np.arange(self.count, dtype=np.int32) if order is None else np.array(order, np.int32),
        )  # fmt: skip
        return scores.reshape(self.count, rows, -1)
