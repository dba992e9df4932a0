"""The audio spectrogram transformer (AST): patches of the logarithms in bands become vectors, two of which say what is heard."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from ...errors import FormatError
from ...files.bounded import read_json_object
from ...language.files import Tensors
from ...language.layers import Norm, Projections, floats
from ...late_dataclass import dataclass
from ...model.model import Model
from ...nn import Module
from ...runtime.device import Device
from ...tensors.functions.creation import concat, tensor
from ...tensors.tensor import Tensor
from ...weights import read_weights
from ...weights.renaming import Renaming
from ...weights.stored import StoredArray

TYPE: Final = "audio-spectrogram-transformer"
MAX_LAYERS: Final = 200
MAX_SIZE: Final = 1 << 16
_BASE: Final = "audio_spectrogram_transformer."
_NAMES: Final[Mapping[str, str]] = {
    r"embeddings\.patch_embeddings\.projection": "patches",
    r"encoder\.layer\.(\d+)\.attention\.attention\.(query|key|value)": r"\1.\2",
    r"encoder\.layer\.(\d+)\.attention\.output\.dense": r"\1.output",
    r"encoder\.layer\.(\d+)\.intermediate\.dense": r"\1.up",
    r"encoder\.layer\.(\d+)\.output\.dense": r"\1.down",
    r"encoder\.layer\.(\d+)\.layernorm_before": r"\1.attention_norm",
    r"encoder\.layer\.(\d+)\.layernorm_after": r"\1.forward_norm",
    r"layernorm": "norm",
    r"classifier\.layernorm": "classes.norm",
    r"classifier\.dense": "classes.dense",
}
"""Names of Hugging Face's tensors ↦ ours, without what comes last."""


@dataclass(frozen=True)
class AudioTransformerDescription:
    """The facts of config.json, by our names."""

    width: int
    forward: int
    layers: int
    heads: int
    patch: int
    time_step: int
    band_step: int
    frames: int
    bands: int
    epsilon: float

    @property
    def grid(self) -> tuple[int, int]:
        """How many patches there are over the bands, and over time."""
        return (self.bands - self.patch) // self.band_step + 1, (self.frames - self.patch) // self.time_step + 1


_FACTS: Final[Mapping[str, tuple[str, int]]] = {
    "width": ("hidden_size", 768), "forward": ("intermediate_size", 3072), "layers": ("num_hidden_layers", 12),
    "heads": ("num_attention_heads", 12), "patch": ("patch_size", 16), "time_step": ("time_stride", 10), "band_step": ("frequency_stride", 10),
    "frames": ("max_length", 1024), "bands": ("num_mel_bins", 128),
}  # fmt: skip
"""Ours ↦ that of config.json, and what it is where nothing is said."""


def describe(config: Mapping[str, Any], name: str) -> AudioTransformerDescription:
    if config.get("model_type") != TYPE:
        raise FormatError(
            f"{name}: model_type is {config.get('model_type')!r:.60}, expected {TYPE!r}; others are read from ONNX files"
        )
    if config.get("hidden_act", "gelu") != "gelu":
        raise FormatError(f"{name}: hidden_act is {config['hidden_act']!r:.60}, expected 'gelu'")
    numbers: dict[str, Any] = {own: config.get(theirs, usual) for own, (theirs, usual) in _FACTS.items()}
    for own, value in numbers.items():
        if type(value) is not int or not 0 < value <= (MAX_LAYERS if own == "layers" else MAX_SIZE):
            raise FormatError(f"{name}: {_FACTS[own][0]} is {value!r:.40}, expected a number from 1 on")
    epsilon = config.get("layer_norm_eps", 1e-12)
    if type(epsilon) not in (int, float) or not 0 <= epsilon < 1:
        raise FormatError(f"{name}: layer_norm_eps is {epsilon!r:.40}, expected a small number")
    d = AudioTransformerDescription(**numbers, epsilon=float(epsilon))
    if d.width % d.heads or d.patch > min(d.bands, d.frames) or d.bands * d.frames > 1 << 24:
        raise FormatError(
            f"{name}: {d.width} numbers in {d.heads} heads, and patches of {d.patch} of {d.frames} × {d.bands}, do not fit"
        )
    return d


class AudioTransformerLayer(Module):
    def __init__(self, d: AudioTransformerDescription, tensors: Tensors, k: int) -> None:
        names = [f"{k}.{part}" for part in ("query", "key", "value")]
        self.inputs = Projections(tensors, names, [d.width] * 3, d.width)
        self.output = Projections(tensors, [f"{k}.output"], [d.width], d.width)
        self.up = Projections(tensors, [f"{k}.up"], [d.forward], d.width)
        self.down = Projections(tensors, [f"{k}.down"], [d.width], d.forward)
        self.attention_norm, self.forward_norm = (
            Norm(tensors, f"{k}.{part}_norm", d.width, d.epsilon, True) for part in ("attention", "forward")
        )
        self.heads, self.size = d.heads, d.width // d.heads

    def forward(self, x: Tensor) -> Tensor:
        rows, tokens, width = x.shape
        parts = self.inputs(self.attention_norm(x))
        q, k, v = (y.reshape(rows, tokens, self.heads, self.size).swapaxes(1, 2) for y in parts)
        seen = q.scaled_dot_product_attention(k, v).swapaxes(1, 2).reshape(rows, tokens, width)
        x = x + self.output(seen)[0]
        (y,) = self.up(self.forward_norm(x))
        return x + self.down(y.gelu())[0]


class AudioTransformer(Module, buffers=("patches", "bias", "first", "places")):
    """The logarithms in bands (rows, frames, bands) ↦ scores of classes (rows, labels)."""

    patches: Tensor
    bias: Tensor
    first: Tensor
    places: Tensor

    def __init__(self, d: AudioTransformerDescription, tensors: Tensors, labels: int) -> None:
        self.patches = tensor(floats(tensors.take("patches.weight", (d.width, 1, d.patch, d.patch))))
        self.bias = tensor(floats(tensors.take("patches.bias", (d.width,))))
        first = [floats(tensors.take(f"{name}_token", (1, 1, d.width))) for name in ("cls", "distillation")]
        self.first = concat([tensor(x) for x in first], 1)
        over_bands, over_time = d.grid
        self.places = tensor(floats(tensors.take("position_embeddings", (1, 2 + over_bands * over_time, d.width))))
        self.layers = [AudioTransformerLayer(d, tensors, k) for k in range(d.layers)]
        self.norm = Norm(tensors, "norm", d.width, d.epsilon, True)
        self.class_norm = Norm(tensors, "classes.norm", d.width, d.epsilon, True)
        self.classes = Projections(tensors, ["classes.dense"], [labels], d.width)
        self.steps, self.width = (d.band_step, d.time_step), d.width

    def forward(self, x: Tensor) -> Tensor:
        rows = x.shape[0]
        made = x.unsqueeze(1).swapaxes(2, 3).conv2d(self.patches, self.bias, self.steps)
        made = made.reshape(rows, self.width, -1).swapaxes(1, 2)
        y = concat([self.first.expand(rows, 2, self.width), made], 1) + self.places
        for layer in self.layers:
            y = layer(y)
        y = self.norm(y)
        return self.classes(self.class_norm((y[:, 0] + y[:, 1]) * 0.5))[0]


def audio_transformer(weights: Path, config: Path, device: str | Device, name: str) -> Model:
    """A Model of a folder of Hugging Face, of one row (1, frames, bands)."""
    d = describe(read_json_object(config), str(config))
    stored = _renamed(read_weights(weights).stored, str(weights))
    head = stored.get("classes.dense.weight")
    if head is None or len(head.shape) != 2 or not 0 < head.shape[0] <= MAX_SIZE:
        raise FormatError(
            f"{weights}: no classifier.dense of up to {MAX_SIZE} classes; expected a model that classifies sounds"
        )
    tensors = Tensors(stored, str(weights))
    network = AudioTransformer(d, tensors, head.shape[0])
    tensors.check_all_taken()
    return Model.of(lambda x: {"logits": network(x)}, {"bands": (1, d.frames, d.bands)}, device, name=name)


def _renamed(tensors: Mapping[str, StoredArray], name: str) -> dict[str, StoredArray]:
    renaming = Renaming(_NAMES, TYPE, name)
    for key, array in tensors.items():
        base, _, last = key.removeprefix(_BASE).rpartition(".")
        renaming.keep(key, last if base == "embeddings" else f"{renaming.base_of(key, base)}.{last}", array)
    return renaming.stored
