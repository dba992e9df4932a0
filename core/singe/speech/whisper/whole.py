"""A Whisper as one Model, as a page has it: the sizes of its inputs say which of its functions a run computes.

| function | sizes | gives |
|---|---|---|
| loudness of a window | S: its samples, P: 0 | loudest |
| hear a window | S: its samples, P: 1 | loudest; the states hold the window |
| say | S, P, N: 0; T tokens that follow, of which there are K then | scores after the last R, seen by the last L |
| say side by side | N: MOST_TEXTS, T: as many, one of each text | scores after each |

Inputs of other functions are empty; the words of the functions are those for particular sizes of one Program, over the same states and weights.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from ...errors import FormatError
from ...language.encoder_decoders.running import MOST_TEXTS, WholeTexts, by_sizes, computing
from ...late_dataclass import dataclass
from ...model.model import Model
from ...runtime.device import Device
from ...tensors.functions.creation import zeros
from ...tensors.tensor import Tensor
from .description import WhisperDescription
from .network import Whisper
from .spectrogram import BandPowers, sample_count, samples_for

TYPES: Final[Mapping[str, str]] = {
    "samples": "float32", "peak": "float32", "count": "int32", "ids": "int32", "keys": "bool", "rows": "bool", "order": "int32",
    "looked": "bool",
}  # fmt: skip
Outputs = tuple[dict[str, Tensor], dict[str, Tensor]]
_NOTHING: Final = np.zeros(0, np.float32)


def shapes(d: WhisperDescription) -> dict[str, Sequence[int | str]]:
    return {
        "samples": ("S",), "peak": ("P",), "count": (1,), "ids": ("T",), "keys": (f"K<={d.room}", 0), "rows": ("R", 0),
        "order": ("N",), "looked": ("L", 0),
    }  # fmt: skip


def whole(network: Whisper, device: str | Device, name: str) -> Model:
    """A network as a Model of this name."""
    d = network.description
    bands = BandPowers(d.bands)
    heads = len(d.following)

    def nothing_said() -> dict[str, Tensor]:
        return {"scores": zeros(0, d.vocabulary), "seen": zeros(heads, 0, d.positions)}

    def loudness(samples: Tensor, *_: Tensor, **states: Tensor) -> Outputs:
        return {"loudest": bands(samples).max().reshape(1), **nothing_said()}, states

    def hear(samples: Tensor, peak: Tensor, count: Tensor, *_: Tensor, **states: Tensor) -> Outputs:
        powers = bands(samples)
        peak = peak.maximum(powers.max())
        heard = {name: states[name] for name in network.heard()}
        updated = network.hear(powers, peak, count, **heard)[1]
        return {"loudest": peak.reshape(1), **nothing_said()}, {**states, **updated}

    def say(
        samples: Tensor, peak: Tensor, count: Tensor, ids: Tensor, keys: Tensor, rows: Tensor, order: Tensor, looked: Tensor,
        **states: Tensor,
    ) -> Outputs:  # fmt: skip
        texts = order.shape[0] if isinstance(order.shape[0], int) and order.shape[0] else 1
        (scores, seen), updated = network.say(ids.reshape(texts, -1), keys, rows, order, looked, **states)
        return {"loudest": zeros(1), "scores": scores, "seen": seen}, updated

    window = {"S": sample_count(d.frames)}
    functions: list[tuple[Mapping[str, int], Callable[..., Any]]] = [
        ({**window, "P": 0}, loudness), ({**window, "P": 1}, hear), ({"N": 0, "T": 1, "R": 1, "L": 0}, say),
        ({"N": MOST_TEXTS, "T": MOST_TEXTS, "R": 1, "L": 0}, say),
    ]  # fmt: skip
    states = {**network.heard(), **network.said(MOST_TEXTS)}
    return by_sizes(say, functions, shapes(d), TYPES, states, device, name, computing(network))


@dataclass(frozen=True)
class BundleSizes:
    """Those of a bundle: see SpeechSizes. texts: the most side by side."""

    positions: int
    room: int
    vocabulary: int
    texts: int

    @property
    def frames(self) -> int:
        return 2 * self.positions


class WholeWhisper:
    """Such a Model of a bundle: a SpeechModel."""

    def __init__(self, model: Model, sizes: BundleSizes, name: str) -> None:
        if (names := [x.name for x in model.inputs]) != list(TYPES):
            raise FormatError(f"{name}: its model takes {', '.join(names)}; expected {', '.join(TYPES)}")
        self.model: Final = model
        self.description: Final = sizes
        self._session: Final = model.session()

    @property
    def device(self) -> Device:
        return self.model.device

    def window(self, samples: np.ndarray, first: int) -> tuple[np.ndarray, float]:
        given = samples_for(samples, first, self.description.frames)
        return given, float(self._run(samples=given)["loudest"][0])

    def hear(self, window: np.ndarray, peak: float, count: int) -> None:
        self._run(samples=window, peak=np.array([peak], np.float32), count=count)

    def texts(self, count: int) -> WholeTexts:
        return WholeTexts(self._said, self.description.texts, count)

    def _said(self, ids: Sequence[int], used: int, rows: int, order: Sequence[int]) -> np.ndarray:
        return self._run(ids=ids, used=used, rows=rows, order=order)["scores"]

    def whole(self, name: str) -> Model:
        return self.model

    def align(self, ids: Sequence[int]) -> tuple[np.ndarray, np.ndarray]:
        found = self._run(ids=ids, used=len(ids), rows=len(ids), looked=len(ids))
        return found["seen"], found["scores"]

    def _run(
        self, samples: np.ndarray = _NOTHING, peak: np.ndarray = _NOTHING, count: int = 0, ids: Sequence[int] = (), used: int = 0,
        rows: int = 0, order: Sequence[int] = (), looked: int = 0,
    ) -> Mapping[str, np.ndarray]:  # fmt: skip
        keys, last, seen = (np.empty((size, 0), np.bool_) for size in (used, rows, looked))
        counts, tokens, sources = (np.array(x, np.int32) for x in ([count], ids, order))
        return self._session(samples, peak, counts, tokens, keys, last, sources, seen)
