"""A sound that a formula makes, and what the makers' own code makes of it: `hearing_makers.json` is of pymicro-features 2.0.2 (integers of
33 frames), kaldi-native-fbank 1.23 (povey, 16 bands, no dither), librosa 0.11 (400 samples a frame, 16 bands), and transformers 5.24 (a
spectrogram transformer with weights of a generator)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import numpy as np

from singe.weights.safetensors import write_safetensors

MAKERS: Final[Any] = json.loads(Path(__file__).with_name("hearing_makers.json").read_text("utf-8"))
CONFIG: Final = {
    "model_type": "audio-spectrogram-transformer", "hidden_size": 8, "intermediate_size": 12, "num_hidden_layers": 2,
    "num_attention_heads": 2, "max_length": 120, "num_mel_bins": 32, "id2label": {"0": "rain", "1": "bell", "2": "dog"},
}  # fmt: skip
FEATURES: Final = {"feature_extractor_type": "ASTFeatureExtractor", "mean": -4.2677393, "std": 4.5689974}


def sound(count: int) -> np.ndarray:
    """Of 16 bits."""
    t = np.arange(count)
    x = np.sin(t * 0.07) * (1 + np.sin(t * 0.0009)) * 0.2 + np.sin(t * t * 2e-5) * 0.1
    x += np.random.default_rng(7).normal(0, 0.01, count)
    return (np.round(x * 20000) / 32768).astype(np.float32)


def transformer_folder(folder: Path) -> Path:
    """A folder of Hugging Face with the spectrogram transformer."""
    rng = np.random.default_rng(5)
    shapes = MAKERS["transformer"]["shapes"]
    weights = {name: rng.normal(0, 0.5, shapes[name]).astype(np.float32) for name in sorted(shapes)}
    folder.mkdir(exist_ok=True)
    write_safetensors(folder / "model.safetensors", weights)
    (folder / "config.json").write_text(json.dumps(CONFIG))
    (folder / "preprocessor_config.json").write_text(json.dumps(FEATURES))
    return folder


def lines(count: int, width: int = 8) -> np.ndarray:
    """Vectors of length 1, of three voices that take turns."""
    rng = np.random.default_rng(2)
    voices = np.eye(3, width)
    found = np.stack([voices[(k // 4) % 3] + rng.normal(0, 0.15, width) for k in range(count)])
    return (found / np.linalg.norm(found, axis=1, keepdims=True)).astype(np.float32)
