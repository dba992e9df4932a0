"""Tasks that say something, in writing or aloud: what makes each of a folder or of a row of the zoo. Their models are functions of one network,
or need what makes phonemes of texts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from ...runtime.device import Device
from ..calling import AnyTask


def _transcribe(source: str | Path, device: str | Device, weights: str | None = None) -> AnyTask:
    from .transcribe import transcribe_task  # noqa: PLC0415 (other tasks need no language models)

    return transcribe_task(source, device, weights)


def _speak(source: str | Path, device: str | Device) -> AnyTask:
    from .speak import speak_task  # noqa: PLC0415 (see above)

    return speak_task(source, device)


def _translate(source: str | Path, device: str | Device, weights: str | None = None) -> AnyTask:
    from .translate import translate_task  # noqa: PLC0415 (see above)

    return translate_task(source, device, weights)


SAYING: Final[Mapping[str, Callable[..., AnyTask]]] = {
    "transcribe": _transcribe,
    "speak": _speak,
    "translate": _translate,
}
