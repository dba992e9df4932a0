"""A Whisper of ONNX files, as exporters of Hugging Face write it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

import numpy as np

from ...errors import InputError
from ...language.encoder_decoders.onnx_files import OnnxPair, OnnxShape, OnnxTexts
from ...language.files import Tensors
from ...model.model import Model
from ...runtime.device import Device
from ...runtime.devices import device as open_device
from .description import WhisperDescription
from .network import HEAR_TYPES, Whisper, features, hear_shapes
from .spectrogram import BandPowers, sample_count, samples_for
from .whole import whole


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
        self._bands: Final = Model.of(
            BandPowers(d.bands), {"samples": (sample_count(d.frames),)}, self.device, name="bands"
        )
        self._features: Final = Model.of(features, hear_shapes(d), self.device, dtypes=HEAR_TYPES, name="features")
        shape = OnnxShape(
            d.decoder_layers, d.decoder_heads, d.width // d.decoder_heads, "input_features", (d.positions, d.room)
        )
        self._pair: Final = OnnxPair(shape, files, self.device)

    def window(self, samples: np.ndarray, first: int) -> tuple[np.ndarray, float]:
        powers = self._bands(samples_for(samples, first, self.description.frames))
        return powers, float(powers.max())

    def hear(self, window: np.ndarray, peak: float, count: int) -> None:
        found = self._features(window, np.array([peak], np.float32), np.array([count], np.int32))
        self._pair.hear(np.asarray(found))

    def texts(self, count: int) -> OnnxTexts:
        return self._pair.texts(count)

    def whole(self, name: str) -> Model:
        return whole(Whisper(self.description, self._tensors()), self.device, name)

    def align(self, ids: Sequence[int]) -> tuple[np.ndarray, np.ndarray]:
        raise InputError(
            "transcribe: ONNX files do not tell when words are said; give a folder with model.safetensors, or leave words out"
        )
