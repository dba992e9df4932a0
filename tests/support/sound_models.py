"""Small models of the forms that tasks of sounds know, and a sound for them."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import numpy as np

import singe as sg
from singe import nn

RATE: Final = 16000


class Gains(nn.Module):
    """As NSNet2: what it says of a row depends on those before."""

    layer: nn.GRU
    out: nn.Linear

    def __init__(self) -> None:
        self.layer = nn.GRU(161, 8, batch_first=True, rng=1)
        self.out = nn.Linear(8, 161, rng=2)

    def forward(self, x: sg.Tensor) -> sg.Tensor:
        return self.out(self.layer(x)[0]).sigmoid()


def loudness(x: sg.Tensor, h: sg.Tensor, c: sg.Tensor) -> dict[str, sg.Tensor]:
    """As Silero's model of sequences: rows in, a score for each, and a state that all rows change."""
    loud = x.square().mean(1)
    before = h.mean() + loud.cumsum(0) - loud
    return {"score": (loud * 40 - 3 - before * 0.1).sigmoid(), "hn": h + loud.sum(), "cn": c}


def keys(x: sg.Tensor) -> dict[str, sg.Tensor]:
    """As basic-pitch: windows in, frames of keys out."""
    frames = x[:, : 172 * 254, 0].reshape(-1, 172, 254)[:, :, :88].abs()
    return {"onset": frames, "note": frames * 0.5, "contour": sg.concat([frames, frames, frames], 2)}


def word(x: sg.Tensor) -> dict[str, sg.Tensor]:
    """As microWakeWord: three frames of features in, a score out."""
    return {"score": ((x.float() + 128.0).mean() * 0.05 - 2.0).sigmoid().reshape(1, 1)}


def shared_networks_in(folder: Path) -> None:
    """As the networks that openWakeWord's models share: one makes a frame of each 160 samples, but the first three, one a vector of 76."""
    bands = sg.Model.of(lambda x: x[:, 480:].reshape(1, 1, 8, 160)[..., :32], {"input": (1, 1760)}, name="bands")
    embed = sg.Model.of(lambda x: x.mean(1).tile((1, 3, 1)).reshape(1, 1, 1, 96), {"x": (1, 76, 32, 1)}, name="embed")
    sg.onnx.save(bands, folder / "melspectrogram.onnx")
    sg.onnx.save(embed, folder / "embedding_model.onnx")


def word_of_vectors() -> sg.Model:
    """As openWakeWord's models: the last vectors in, a score out."""
    return sg.Model.of(
        lambda x: (x[:, 3].mean(1, keepdims=True) * 0.001 + x[:, 0, :1] * 0.01).sigmoid(), {"x": (1, 4, 96)}
    )


def voice(x: sg.Tensor) -> dict[str, sg.Tensor]:
    """As Resemblyzer: the power in bands in, a vector out."""
    return {"vector": (x.mean(1) * 1e4 + 1.0).log()[:, :12]}


def classes(x: sg.Tensor) -> dict[str, sg.Tensor]:
    """As a spectrogram transformer: the logarithms in bands in, scores out."""
    return {"logits": x.mean(1)[:, :5] * 3.0}


def of(kind: str) -> sg.Model:
    if kind == "wake-word":
        return sg.Model.of(word, {"features": (1, 3, 40)}, dtypes={"features": "int8"}, name="word")
    if kind in ("speaker", "speakers"):
        return sg.Model.of(voice, {"bands": ("N", 160, 40)}, name="voice")
    if kind == "sounds":
        return sg.Model.of(classes, {"bands": ("N", 120, 32)}, name="classes")
    if kind == "denoise":
        return sg.Model.of(Gains(), {"input": ("N", "T", 161)}, name="gains")
    if kind == "notes":
        return sg.Model.of(keys, {"input": ("N", 43844, 1)}, name="keys")
    return sg.Model.of(loudness, {"input": ("T", 576), "h": (1, 1, 4), "c": (1, 1, 4)}, name="loudness")


def talk(seconds: float = 1.0) -> np.ndarray:
    time = np.arange(int(seconds * RATE) + 7) / RATE
    return (
        np.sin(2 * np.pi * 200 * time) * (np.sin(2 * np.pi * time) > 0) * 0.5
        + np.random.default_rng(3).normal(0, 0.01, time.shape)
    ).astype(np.float32)
