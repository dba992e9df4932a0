"""Resemblyzer's encoder: 1.6 seconds of a voice, as the power in bands, become a vector that says whose it is."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from ...errors import InputError
from ...model.model import Model
from ...nn import LSTM, Linear, Module
from ...nn._report import WeightsReport
from ...runtime.device import Device
from ...tensors.tensor import Tensor
from ...weights import load_weights

RATE: Final = 16_000
FRAMES: Final = 160
BANDS: Final = 40
LENGTH: Final = 400
STEP: Final = 160
"""Samples of a frame, and from one to the next."""
_WIDTH: Final = 256
_LAYERS: Final = 3
_STATE: Final = "model_state"
"""The key of the weights in the file."""


class VoiceEncoder(Module):
    """(rows, FRAMES, BANDS) ↦ vectors (rows, _WIDTH)."""

    lstm: LSTM
    linear: Linear

    def __init__(self) -> None:
        self.lstm = LSTM(BANDS, _WIDTH, _LAYERS, batch_first=True)
        self.linear = Linear(_WIDTH, _WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        return self.linear(self.lstm(x)[0][:, -1]).relu()


def voice_encoder(weights: Path, device: str | Device, name: str) -> Model:
    """A Model of the weights of Resemblyzer, whose file is read without executing what is in it."""

    def check(report: WeightsReport) -> None:
        if report.missing or report.misshapen:
            raise InputError(
                f"{weights}: no weights of Resemblyzer's encoder of voices; others are read from ONNX files:\n{report}"
            )

    # what is left over is of training alone
    encoder = load_weights(
        VoiceEncoder(), weights, strict=False, key=_STATE if weights.suffix in (".pt", ".pth") else None, report=check
    )
    return Model.of(lambda x: {"vector": encoder(x)}, {"bands": ("rows", FRAMES, BANDS)}, device, name=name)
