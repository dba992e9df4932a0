"""An encoder and a decoder of ONNX files, as exporters of Hugging Face write them: the decoder is given keys and values, and gives them.

The decoder is one file that serves the first tokens and later ones (`decoder_model_merged.onnx`), or two.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from ...errors import FormatError
from ...late_dataclass import dataclass
from ...model.files import load
from ...model.model import Model
from ...onnx.model import OnnxGraph, OnnxNode, read_model
from ...runtime.device import Device
from ...runtime.devices import device as open_device
from ...weights.stored import StoredArray, present
from .running import SourceReader

ENCODER: Final = "encoder_model.onnx"
MERGED: Final = "decoder_model_merged.onnx"
FIRST, LATER = "decoder_model.onnx", "decoder_with_past_model.onnx"
ONNX_FILES: Final = (ENCODER, MERGED, FIRST, LATER)
_ROUNDED: Final = "_quantized"
"""What names of files whose weights were rounded have before their end."""
_COPY: Final = re.compile(r"_merged_\d+$")
_PRODUCT: Final = re.compile(r"/(.+)/MatMul(?:_quant)?")
_ENCODER: Final = "model.encoder."
_OF_ENCODERS: Final[Mapping[str, tuple[str, int]]] = {
    r"/Add(_\d+)?": ("embed_positions.weight", 2),
    r"/groupnorm/Mul": ("groupnorm.weight", 1),
    r"/groupnorm/Add": ("groupnorm.bias", 1),
}
"""Nodes of encoders ↦ names of the tensors that they are given, and how many axes these have."""
_PAST, _PRESENT = "past_key_values.", "present."
_HEARD: Final = ".encoder."
"""In names of keys and values of the source, which stay the same."""
_CACHED: Final = "use_cache_branch"
_SOURCE: Final = ("encoder_hidden_states", "encoder_attention_mask")


@dataclass(frozen=True)
class OnnxShape:
    """Of the decoder: its layers, their heads, and the size of one; source: the input of the encoder. room: positions of a source, and of a
    text."""

    layers: int
    heads: int
    size: int
    source: str
    room: tuple[int, int]


def onnx_files_in(folder: Path) -> dict[str, Path]:
    """Those of ONNX_FILES that a folder has, also in `onnx/`, and with rounded weights where it has no others."""
    places = [place / name for place in (folder, folder / "onnx") for name in ONNX_FILES]
    rounded = [path.with_stem(path.stem + _ROUNDED) for path in places]
    found = dict[str, Path]()
    for path, name in zip((*places, *rounded), ONNX_FILES * 4, strict=True):
        if name not in found and path.is_file():
            found[name] = path
    return found


def is_onnx(files: Mapping[str, Path]) -> bool:
    return ENCODER in files and (MERGED in files or (FIRST in files and LATER in files))


class OnnxPair:
    """Such a model on a device: a SourceReader."""

    def __init__(
        self, shape: OnnxShape, files: Mapping[str, Path], device: str | Device = "auto", network: Callable[[], SourceReader] | None = None
    ) -> None:  # fmt: skip
        """network: the same by its weights, of which a page is made."""
        self._network: Final = network
        self.shape: Final = shape
        self.device: Final = open_device(device)
        self._encoder: Final = load(files[ENCODER], self.device)
        names = (MERGED, MERGED) if MERGED in files else (FIRST, LATER)
        self.first: Final = _decoder(files[names[0]], self.device)
        self.later: Final = self.first if names[0] == names[1] else _decoder(files[names[1]], self.device)
        _expect(self._encoder, {shape.source}, files[ENCODER])
        _expect(self.first, {"input_ids", _SOURCE[0]}, files[names[0]])
        _expect(self.later, {"input_ids", *self.pasts}, files[names[1]])
        self._types: Final = {x.name: x.dtype.numpy for x in self._encoder.inputs}
        self.heard: np.ndarray = np.zeros((1, 0, 1), np.float32)
        """What the encoder makes of the source (1, positions, width)."""
        self.length = 0
        """Tokens, or samples, of the source."""

    @property
    def room(self) -> tuple[int, int]:
        return self.shape.room

    @property
    def pasts(self) -> Sequence[str]:
        parts = ((part, what) for part in ("decoder", "encoder") for what in ("key", "value"))
        return [f"{_PAST}{k}.{part}.{what}" for part, what in parts for k in range(self.shape.layers)]

    def hear(self, source: Sequence[int] | np.ndarray) -> None:
        given = np.asarray(source, self._types[self.shape.source])
        given = given if given.ndim > 1 else given[None]
        told = {name: np.ones_like(given, dtype) for name, dtype in self._types.items() if name != self.shape.source}
        self.length = given.shape[-1]
        made = self._encoder({self.shape.source: given, **told})
        self.heard = made if isinstance(made, np.ndarray) else next(iter(made.values()))

    def texts(self, count: int) -> OnnxTexts:
        return OnnxTexts(self, count)

    def whole(self, name: str, texts: int) -> Model:
        assert self._network is not None, "a Whisper has its own"
        return self._network().whole(name, texts)


class OnnxTexts:
    """Texts about its source, with their keys and values."""

    def __init__(self, pair: OnnxPair, count: int) -> None:
        self._pair: Final = pair
        self.count: Final = count
        self.used = 0
        self._kept: dict[str, np.ndarray] = {}

    def add(self, ids: Sequence[Sequence[int]], rows: int = 1, order: Sequence[int] | None = None) -> np.ndarray:
        pair, shape = self._pair, self._pair.shape
        model = pair.later if self.used else pair.first
        given: dict[str, Any] = {"input_ids": np.array(ids, np.int64)}
        names = {x.name: x for x in model.inputs}
        if _CACHED in names:
            given[_CACHED] = np.array([self.used > 0])
        positions = pair.heard.shape[1]
        source = np.repeat(pair.heard, self.count, 0), np.ones((self.count, pair.length), np.int64)
        given |= {name: x for name, x in zip(_SOURCE, source, strict=True) if name in names}
        for name in names.keys() & set(pair.pasts):
            past = self._kept.get(name)
            if past is None:
                length = positions if _HEARD in name else 0
                past = np.zeros((self.count, shape.heads, length, shape.size), np.float32)
            elif order is not None and _HEARD not in name:
                past = past[list(order)]
            given[name] = past
        found: Mapping[str, np.ndarray] = model(given)
        for name, value in found.items():
            if name.startswith(_PRESENT) and not (self.used and _HEARD in name):
                self._kept[_PAST + name.removeprefix(_PRESENT)] = value
        self.used += len(ids[0])
        return found["logits"][:, -rows:]


def _decoder(path: Path, device: Device) -> Model:
    """A decoder. Its mask of the source has a size of its own: it is of the samples of a sound, though files say that it is as long as what the
    encoder makes of them."""
    model = load(path, device)
    mask = next((x.shape for x in model.inputs if x.name == _SOURCE[1]), None)
    if not mask or isinstance(mask[-1], int):
        return model
    others = [d if isinstance(d, int) else str(d) for d in mask[:-1]]
    return load(path, device, {_SOURCE[1]: (*others, "source")})


def _expect(model: Model, names: set[str], path: Path) -> None:
    there = {x.name for x in model.inputs}
    if lacking := names - there:
        raise FormatError(
            f"{path}: takes {', '.join(sorted(there))}; expected {', '.join(sorted(lacking))}, too: export it with past"
        )


def onnx_weights(files: Mapping[str, Path]) -> dict[str, StoredArray]:
    """The weights of an encoder and of a decoder, under the names of Hugging Face's model: exporters leave the names of biases, and those of the
    layers in the names of nodes. Those that were rounded to 8 bits are floats again. A FormatError if they are of another form."""
    found: dict[str, StoredArray] = {}
    for path, prefix in ((files[ENCODER], _ENCODER), (files[MERGED if MERGED in files else FIRST], "")):
        graph = read_model(path).graph
        arrays = {name: x for name, x in graph.initializers.items() if x.dtype.kind == "f" and x.ndim} | _of_8_bits(
            graph
        )
        found |= {
            f"{prefix}{_COPY.sub('', name)}": present(x)
            for name, x in arrays.items()
            if "::" not in name and "/" not in name
        }
        for node in _nodes(graph):
            names = [name.replace(_ROUNDED, "") for name in node.inputs]
            given = [arrays[name] for name in names if name in arrays]
            named = _PRODUCT.fullmatch(node.name)
            if node.op_type in ("MatMul", "MatMulInteger") and named is not None and given:
                found[f"{prefix}{named[1].replace('/', '.')}.weight"] = present(np.ascontiguousarray(given[0].T))
            elif prefix and given and given[0].ndim == 2 and (of := _of_encoder(node.name)):
                name, rank = of
                found[f"{prefix}{name}"] = present(given[0] if rank > 1 else given[0].reshape(-1))
            elif node.op_type in ("ConvInteger", "MatMulNBits", "GatherBlockQuantized"):
                raise FormatError(
                    f"{path}: has the op {node.op_type}: weights are taken of files with plain floats; give those, or model.safetensors"
                )
    return found


def _of_encoder(node: str) -> tuple[str, int] | None:
    return next((of for pattern, of in _OF_ENCODERS.items() if re.fullmatch(pattern, node)), None)


def _of_8_bits(graph: OnnxGraph) -> dict[str, np.ndarray]:
    """Matrices of 8 bits as floats: one scale and one zero for all, or for each column."""
    found = dict[str, np.ndarray]()
    for key, x in graph.initializers.items():
        name = key.replace(_ROUNDED, "")
        scale, zero = (graph.initializers.get(f"{name}_{what}") for what in ("scale", "zero_point"))
        if name == key or x.dtype.itemsize != 1 or x.ndim != 2 or scale is None or zero is None:
            continue
        if {scale.size, zero.size} - {1, x.shape[1]}:
            raise FormatError(f"{name}: {scale.size} scales of {x.shape[1]} columns")
        zero, scale = (given.reshape(-1).astype(np.float32) for given in (zero, scale))
        found[name] = (x.astype(np.float32) - zero) * scale
    return found


def _nodes(graph: OnnxGraph) -> Iterator[OnnxNode]:
    """Those of a graph, and of its branches."""
    for node in graph.nodes:
        yield node
        for value in node.attributes.values():
            if isinstance(value, OnnxGraph):
                yield from _nodes(value)
