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

from ...language.layers import PackedTokenTable
from ...model.model import Model
from ...model.source import GraphsBySizes
from ...runtime.device import Device
from ...tensors.functions.creation import zeros
from ...tensors.tensor import Tensor
from .description import WhisperDescription
from .network import Whisper
from .spectrogram import BandPowers, sample_count

MOST_TEXTS: Final = 5
"""Side by side."""
TYPES: Final[Mapping[str, str]] = {
    "samples": "float32", "peak": "float32", "count": "int32", "ids": "int32", "keys": "bool", "rows": "bool", "order": "int32",
    "looked": "bool",
}  # fmt: skip
Outputs = tuple[dict[str, Tensor], dict[str, Tensor]]


def shapes(d: WhisperDescription) -> dict[str, Sequence[int | str]]:
    return {
        "samples": ("S",), "peak": ("P",), "count": (1,), "ids": ("T",), "keys": (f"K<={d.room}", 0), "rows": ("R", 0),
        "order": ("N",), "looked": ("L", 0),
    }  # fmt: skip


def whole(network: Whisper, device: str | Device, name: str) -> Model:
    """A network as a Model of this name. One with packed weights computes in integers of 16 bits where that is faster, as language models do."""
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

    def of(function: Callable[..., Any], sizes: Mapping[str, int]) -> Model:
        named = {
            name: tuple(sizes.get(x, x) if isinstance(x, str) else x for x in shape)
            for name, shape in shapes(d).items()
        }
        return Model.of(function, named, device, dtypes=TYPES, states=states, name=name)

    general = of(say, {})
    source = GraphsBySizes(general.graph(), [(sizes, of(function, sizes).graph()) for sizes, function in functions])
    computed = "int16" if isinstance(network.embedding, PackedTokenTable) else "float32"
    made = Model(source, general.device, name, computed, bounds=general.options.bounds)
    for sizes, _ in functions:
        made.specialise(**sizes)
    return made
