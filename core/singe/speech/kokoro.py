"""Kokoro as a voice of Piper's form: a Graph that takes what such voices take, so that all that speaks with these speaks with it. The style of a
speaker, which the network is given for each length of a sentence, is a table in the Graph."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import numpy as np

from .. import shapes
from ..errors import FormatError, InputError
from ..files.bounded import read_json_object
from ..graph.builder import Builder
from ..graph.transform import rebuild
from ..model.kept import kept_by_graph
from ..model.model import Model
from ..tensors.functions.creation import tensor
from ..tensors.tensor import Tensor
from ..weights.files import read_weights
from .piper import BEGIN, END, KOKORO, PAD, VoiceDescription

RATE: Final = 24_000
LENGTHS: Final = 510
"""The most signs of a sentence, for each count of which there is a style."""
WIDTH: Final = 256
VOCABULARIES: Final = ("vocab.json", "config.json", "tokenizer.json")
"""Where the numbers of signs are, under "vocab", or under "model" and "vocab"; the first file that is there counts."""
_MAX_NUMBER: Final = 1 << 16
_TOKENS: Final = ("tokens", "input_ids")


def is_kokoro(model: Model) -> bool:
    """Whether a model takes signs, a style and a speed."""
    names = {x.name for x in model.inputs}
    return any(names == {tokens, "style", "speed"} for tokens in _TOKENS)


def description_of(vocabulary: Path, speakers: Mapping[str, int]) -> VoiceDescription:
    """Of English, whose signs are those of IPA."""
    values = read_json_object(vocabulary)
    held = values.get("model", values)
    numbers: Any = held.get("vocab") if isinstance(held, dict) else None  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType]
    if not isinstance(numbers, dict) or not all(type(k) is int and 0 <= k < _MAX_NUMBER for k in numbers.values()):  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType]
        raise FormatError(f"{vocabulary}: vocab: expected the numbers of Kokoro's signs")
    signs: dict[str, tuple[int, ...]] = {str(sign): (int(k),) for sign, k in numbers.items()}  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType, reportUnknownMemberType]
    marks = {BEGIN: (0,), END: (0,), PAD: ()}
    return VoiceDescription(RATE, {**signs, **marks}, "en", False, 0.0, 1.0, 0.0, speakers, LENGTHS, KOKORO)


def read_styles(files: Mapping[str, Path]) -> Mapping[str, np.ndarray]:
    """The styles (LENGTHS, WIDTH) of speakers by name: of a file of raw float32 for each, or of archives of NumPy's that have several."""
    found: dict[str, np.ndarray] = {}
    for name, path in files.items():
        if path.stat().st_size == LENGTHS * WIDTH * 4:
            found[name] = np.fromfile(path, "<f4").reshape(LENGTHS, WIDTH)
            continue
        for own, values in read_weights(path).items():
            array = np.asarray(values)
            if array.size != LENGTHS * WIDTH or array.dtype != np.float32:
                raise FormatError(
                    f"{path}: {own!r:.60} is {array.dtype}{array.shape}, expected a style, float32({LENGTHS}, {WIDTH})"
                )
            found[own] = array.reshape(LENGTHS, WIDTH)
    return dict(sorted(found.items()))


def as_piper(model: Model, styles: Mapping[str, np.ndarray]) -> Model:
    """A Model with the inputs of Piper's voices."""
    graph = model.graph()
    tokens = next((x for x in graph.inputs if x.name in _TOKENS), None)
    if not is_kokoro(model) or model.states or tokens is None or len(tokens.shape) != 2:
        raise InputError(
            f"speak: the model takes {', '.join(map(str, model.inputs))}; expected tokens (1, count), style and speed"
        )
    table = np.stack([*styles.values()])
    dtypes = {x.name: x.dtype.name for x in graph.inputs}

    def given(input: Tensor, input_lengths: Tensor, scales: Tensor, sid: Tensor) -> dict[str, Tensor]:
        place = (input_lengths - 3).clip(0, LENGTHS - 1)  # without two marks, from 0 on
        style = tensor(table)[sid, place]
        speed = (1.0 / scales[1:2]).to(dtype=dtypes["speed"])
        return {tokens.name: input.to(dtype=tokens.dtype.name), "style": style.reshape(1, WIDTH), "speed": speed}

    size = str(tokens.shape[1])
    inputs = {"input": (1, size), "input_lengths": (1,), "scales": (3,), "sid": (1,)}
    integers: dict[str, str] = dict.fromkeys(("input", "input_lengths", "sid"), "int64")
    before = Model.of(given, inputs, "numpy", dtypes=integers).graph()
    made = dict(zip(before.output_names, before.outputs, strict=True))
    with shapes.deferring():  # the checks are those of the graph, which the copy has, too
        whole = rebuild(graph, Builder(), lambda b, n, inputs: None, {x: made[x.name] for x in graph.inputs})
    joined = replace(whole, inputs=before.inputs, outputs=whole.outputs[:1], output_names=("output",))
    return kept_by_graph(Model(joined, model.device, model.name))
