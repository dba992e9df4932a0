"""A voice without the noise around it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ....tensors.functions.creation import concat, tensor
from ....tensors.tensor import Tensor
from ...answers import Arrays
from ...sound.answers import CleanSound
from ...sound.forms import SPECTRA, SoundFrame
from ...sound.medium import RATE, SOUND
from ...spec import TaskSpec
from ..base import Asked, Head, Live, Shapes, TaskKind, Tensors, only

AUDIO = "audio"


def _is_gain(shapes: Shapes, asked: Asked) -> Mapping[str, Any] | None:
    shape = only(shapes)
    return {"bins": shape[-1]} if len(shape) == 3 and shape[-1] in SPECTRA else None


def _weighed(outputs: Tensors, frame: SoundFrame, options: Mapping[str, Any]) -> dict[str, Tensor]:
    """Each frequency as loud as the model says; windows that overlap are added."""
    known = SPECTRA[options["bins"]]
    assert frame.spectrum is not None
    assert frame.memory is not None
    gain = only(outputs)[0].clip(known.floor, 1.0).unsqueeze(2)
    parts = (frame.spectrum * gain).dft(axis=1, inverse=True, onesided=True).squeeze(2)[:, : known.length]
    parts = parts * tensor(known.join)
    tails = parts[:, known.step :]
    before = concat([frame.memory.unsqueeze(0), tails], 0)[:-1]
    shared = known.length - known.step
    audio = parts[:, :shared] + before
    if shared < known.step:
        audio = concat([audio, parts[:, shared : known.step]], 1)
    return {AUDIO: audio, **frame.keep(outputs, [tails[-1]])}


def _samples(parts: Sequence[Arrays]) -> np.ndarray:
    return np.concatenate([np.zeros(0, np.float32), *(part[AUDIO].reshape(-1) for part in parts)])


def _answer(outputs: Arrays, spec: TaskSpec, sound: Any, settings: Mapping[str, Any]) -> CleanSound:
    audio = _samples([outputs] if outputs else [])[: len(sound.samples)]
    return CleanSound(spec.kind, None, audio, spec.preparation.rate, sound)


def _live(spec: TaskSpec, settings: Mapping[str, Any]) -> Live:
    given = 0

    def follow(parts: Sequence[Arrays], count: int, ends: bool) -> CleanSound:
        nonlocal given
        audio = _samples(parts)
        audio = audio[: count - given] if ends else audio
        given += len(audio)
        return CleanSound(spec.kind, None, audio, spec.preparation.rate)

    return follow


DENOISE = TaskKind(
    "denoise", "a voice without the noise around it", SOUND,
    (Head("gain", "how loud each frequency shall be, (1, rows, frequencies)", _is_gain, _weighed),), _answer,
    forms=("log power",), settings={RATE: None}, live=_live,
)  # fmt: skip
