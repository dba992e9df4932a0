"""SpeechModel: what hears a window once, and says texts about it token by token; WhisperModel: the network as one, on a device."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, Protocol

import numpy as np

from ...language.encoder_decoders.running import said_about
from ...language.encoder_decoders.search import FollowedTexts
from ...language.files import Tensors
from ...model.kept import kept_by_graph
from ...model.model import Model
from ...runtime.device import Device
from ...runtime.devices import device as open_device
from .description import WhisperDescription
from .network import HEAR_TYPES, SAY_TYPES, Whisper, hear_shapes, say_shapes
from .spectrogram import BandPowers, sample_count, samples_for
from .whole import whole


class SpeechSizes(Protocol):
    """positions: of the encoder, each two frames; room: of the decoder; vocabulary: tokens that it scores; frames: of a window."""

    @property
    def positions(self) -> int: ...
    @property
    def room(self) -> int: ...
    @property
    def vocabulary(self) -> int: ...
    @property
    def frames(self) -> int: ...


class SpeechModel(Protocol):
    """What hears a window, and says what follows the tokens of a text about it."""

    @property
    def description(self) -> SpeechSizes: ...
    @property
    def device(self) -> Device: ...
    def window(self, samples: np.ndarray, first: int) -> tuple[np.ndarray, float]:
        """Of as many frames as a window has, from a frame on: what `hear` takes, and the largest logarithm of a power."""
        ...

    def hear(self, window: np.ndarray, peak: float, count: int) -> None:
        """Take a window, of which the first `count` frames are of the sound."""
        ...

    def texts(self, count: int) -> FollowedTexts:
        """So many texts about the window, which have no tokens yet."""
        ...

    def whole(self, name: str) -> Model:
        """All of it as one Model of this name: see whole.py."""
        ...

    def align(self, ids: Sequence[int]) -> tuple[np.ndarray, np.ndarray]:
        """Of all tokens of a text about the window: what `Whisper.say` tells of what they look at, and the scores after each."""
        ...


class WhisperModel:
    """The Models of a network, which share its weights."""

    def __init__(self, description: WhisperDescription, tensors: Tensors, device: str | Device = "auto") -> None:
        self.description: Final = description
        self.device: Final = open_device(device)
        self._network: Final = Whisper(description, tensors)
        d = description
        bands = Model.of(BandPowers(d.bands), {"samples": (sample_count(d.frames),)}, self.device, name="bands")
        hear = Model.of(
            self._network.hear,
            hear_shapes(d),
            self.device,
            dtypes=HEAR_TYPES,
            states=self._network.heard(),
            name="hear",
        )
        self._bands: Final = kept_by_graph(bands)
        self._hear: Final = kept_by_graph(hear)
        self._window: Final = self._hear.session()
        self._texts: Final[dict[int, SpokenTexts]] = {}

    def window(self, samples: np.ndarray, first: int) -> tuple[np.ndarray, float]:
        powers = self._bands(samples_for(samples, first, self.description.frames))
        return powers, float(powers.max())

    def hear(self, window: np.ndarray, peak: float, count: int) -> None:
        self._window(window, np.array([peak], np.float32), np.array([count], np.int32))

    def texts(self, count: int) -> SpokenTexts:
        found = self._texts.get(count)
        if found is None:
            own = self._network.said(count)
            say = Model.of(
                self._network.say, say_shapes(self.description, count), self.device, dtypes=SAY_TYPES,
                states={**self._network.heard(), **own}, name="say",
            )  # fmt: skip
            found = self._texts[count] = SpokenTexts(
                said_about(self._window, self._hear, kept_by_graph(say), own), count
            )
        found.used = 0
        return found

    def whole(self, name: str) -> Model:
        return whole(self._network, self.device, name)

    def align(self, ids: Sequence[int]) -> tuple[np.ndarray, np.ndarray]:
        scores, seen = self.texts(1).run([ids], len(ids), looked=len(ids))
        return seen, scores


class SpokenTexts:
    """Texts about a window, side by side. used: how many tokens each has."""

    def __init__(self, session: Any, count: int) -> None:
        self._session: Final = session
        self.count: Final = count
        self.used = 0

    def add(self, ids: Sequence[Sequence[int]], rows: int = 1, order: Sequence[int] | None = None) -> np.ndarray:
        return self.run(ids, rows, order)[0].reshape(self.count, rows, -1)

    def run(
        self, ids: Sequence[Sequence[int]], rows: int, order: Sequence[int] | None = None, looked: int = 0
    ) -> tuple[np.ndarray, np.ndarray]:
        """What `Whisper.say` gives for tokens that are added."""
        self.used += len(ids[0])
        scores, seen = self._session(
            np.array(ids, np.int32), np.empty((self.used, 0), np.bool_), np.empty((rows, 0), np.bool_),
            np.arange(self.count, dtype=np.int32) if order is None else np.array(order, np.int32),
            np.empty((looked, 0), np.bool_),
        ).values()  # fmt: skip
        return scores, seen
