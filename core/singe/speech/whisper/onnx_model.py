"""A Whisper of ONNX files, as exporters of Hugging Face write it: an encoder, and a decoder that is given keys and values, and gives them.

The decoder is one file that serves the first tokens and later ones (`decoder_model_merged.onnx`), or two.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from ...errors import FormatError, InputError
from ...language.files import Tensors
from ...model.files import load
from ...model.model import Model
from ...runtime.device import Device
from ...runtime.devices import device as open_device
from .description import WhisperDescription
from .network import HEAR_TYPES, Whisper, features, hear_shapes
from .spectrogram import LENGTH, STEP, BandPowers, samples_for
from .whole import whole

ENCODER: Final = "encoder_model.onnx"
MERGED: Final = "decoder_model_merged.onnx"
FIRST, LATER = "decoder_model.onnx", "decoder_with_past_model.onnx"
FILES: Final = (ENCODER, MERGED, FIRST, LATER)
_PAST, _PRESENT = "past_key_values.", "present."
_HEARD: Final = ".encoder."
"""In names of keys and values of the window, which stay the same."""
_CACHED: Final = "use_cache_branch"


def is_onnx(files: Mapping[str, Path]) -> bool:
    return ENCODER in files and (MERGED in files or (FIRST in files and LATER in files))


class OnnxWhisper:
    """Such a model on a device: a SpeechModel."""

    def __init__(
        self,
        description: WhisperDescription,
        files: Mapping[str, Path],
        tensors: Callable[[], Tensors],
        device: str | Device = "auto",
    ) -> None:
        """tensors: the weights of the files."""
        self.description: Final = description
        self._tensors: Final = tensors
        self.device: Final = open_device(device)
        d = description
        samples = d.frames * STEP + LENGTH - STEP
        self._bands: Final = Model.of(BandPowers(d.bands), {"samples": (samples,)}, self.device, name="bands")
        self._features: Final = Model.of(features, hear_shapes(d), self.device, dtypes=HEAR_TYPES, name="features")
        self._encoder: Final = load(files[ENCODER], self.device)
        names = (MERGED, MERGED) if MERGED in files else (FIRST, LATER)
        self.first: Final = load(files[names[0]], self.device)
        self.later: Final = self.first if names[0] == names[1] else load(files[names[1]], self.device)
        _expect(self._encoder, {"input_features"}, files[ENCODER])
        _expect(self.first, {"input_ids", "encoder_hidden_states"}, files[names[0]])
        _expect(self.later, {"input_ids", *_pasts(d)}, files[names[1]])
        self.heard: np.ndarray = np.zeros((1, d.positions, d.width), np.float32)
        """What the encoder makes of the window."""

    def powers(self, samples: np.ndarray, first: int) -> np.ndarray:
        return self._bands(samples_for(samples, first, self.description.frames))

    def hear(self, powers: np.ndarray, peak: float, count: int) -> None:
        found = self._features(powers, np.array([peak], np.float32), np.array([count], np.int32))
        made = self._encoder({"input_features": np.asarray(found)})
        self.heard = made if isinstance(made, np.ndarray) else next(iter(made.values()))

    def texts(self, count: int) -> OnnxTexts:
        return OnnxTexts(self, count)

    def whole(self, name: str) -> Model:
        return whole(Whisper(self.description, self._tensors()), self.device, name)

    def align(self, ids: Sequence[int]) -> tuple[np.ndarray, np.ndarray]:
        raise InputError(
            "transcribe: ONNX files do not tell when words are said; give a folder with model.safetensors, or leave words out"
        )


class OnnxTexts:
    """Texts about its window, with their keys and values."""

    def __init__(self, model: OnnxWhisper, count: int) -> None:
        self._model: Final = model
        self.count: Final = count
        self.used = 0
        self._kept: dict[str, np.ndarray] = {}

    def add(self, ids: Sequence[Sequence[int]], rows: int = 1, order: Sequence[int] | None = None) -> np.ndarray:
        model = self._model.later if self.used else self._model.first
        given: dict[str, Any] = {"input_ids": np.array(ids, np.int64)}
        names = {x.name: x for x in model.inputs}
        d = self._model.description
        if _CACHED in names:
            given[_CACHED] = np.array([self.used > 0])
        if "encoder_hidden_states" in names:
            given["encoder_hidden_states"] = np.repeat(self._model.heard, self.count, 0)
        for name in names.keys() & set(_pasts(d)):
            past = self._kept.get(name)
            if past is None:
                length = d.positions if _HEARD in name else 0
                past = np.zeros((self.count, d.decoder_heads, length, d.width // d.decoder_heads), np.float32)
            elif order is not None and _HEARD not in name:
                past = past[list(order)]
            given[name] = past
        found: Mapping[str, np.ndarray] = model(given)
        for name, value in found.items():
            if name.startswith(_PRESENT) and not (self.used and _HEARD in name):
                self._kept[_PAST + name.removeprefix(_PRESENT)] = value
        self.used += len(ids[0])
        return found["logits"][:, -rows:]


def _pasts(d: WhisperDescription) -> list[str]:
    return [
        f"{_PAST}{k}.{part}.{what}"
        for k in range(d.decoder_layers)
        for part in ("decoder", "encoder")
        for what in ("key", "value")
    ]


def _expect(model: Model, names: set[str], path: Path) -> None:
    there = {x.name for x in model.inputs}
    if lacking := names - there:
        raise FormatError(
            f"{path}: takes {', '.join(sorted(there))}; expected {', '.join(sorted(lacking))}, too: export it with past"
        )
