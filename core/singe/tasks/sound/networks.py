"""Networks that hear, whose weights stand without a graph: the names that kinds give them ↦ what makes a Model of a place."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from ...errors import InputError
from ...model.model import Model
from ...runtime.device import Device
from ...speech.hearing.audio_transformer import audio_transformer
from ...speech.hearing.voice_encoder import voice_encoder
from ..places import Place
from .files import CONFIG


def _sounds(place: Place, device: str | Device) -> Model:
    if CONFIG not in place.files:
        raise InputError(
            f"{place.model}: weights without a {CONFIG} beside them, which says of what architecture they are"
        )
    return audio_transformer(place.model, place.files[CONFIG], device, place.name)


NETWORKS: Final[Mapping[str, Callable[[Place, str | Device], Model]]] = {
    "sounds": _sounds,
    "speaker": lambda place, device: voice_encoder(place.model, device, place.name),
}
