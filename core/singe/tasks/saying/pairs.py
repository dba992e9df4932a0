"""What tasks of encoders with a decoder share: their settings, and the model in a bundle of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ...errors import FormatError, InputError
from ...files.urls import ZOO
from ...language.encoder_decoders.generating import MAX_BEAMS, GenerationRules
from ...language.encoder_decoders.running import MOST_TEXTS, WholePair
from ...model.files import load
from ...runtime.device import Device
from .bundles import MOST, BundleFacts


def whole_pair(bundle: BundleFacts, device: str | Device) -> tuple[WholePair, int]:
    """The encoder and decoder of a bundle, and how many tokens it scores."""
    room: Any = bundle.preparation.get("room")
    if not isinstance(room, list) or len(room) != 2 or not all(type(x) is int and 0 < x <= MOST for x in room):
        raise FormatError(f"{bundle.folder}: its room is {room!r:.60}, expected two numbers")
    model = load(bundle.folder, device, name=bundle.name)
    reader = WholePair(model, (room[0], room[1]), bundle.number("texts", MAX_BEAMS), str(bundle.folder))
    return reader, bundle.number("vocabulary", 1 << 22)


def most_texts(rules: GenerationRules) -> int:
    """How many texts a page follows side by side."""
    return max(MOST_TEXTS, rules.beams)


def plain_name(source: str) -> str:
    """The name of a model's folder, or of its row in the zoo."""
    return Path(source.removeprefix(ZOO)).name


def checked_beams(kind: str, beams: Any) -> int | None:
    if beams is not None and (type(beams) is not int or not 0 < beams <= MAX_BEAMS):
        raise InputError(f"{kind}: beams {beams!r:.40}, expected a number from 1 to {MAX_BEAMS}")
    return beams
