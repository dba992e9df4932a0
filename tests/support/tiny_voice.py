"""Voices of a few nodes that stand for one of Piper's and for Kokoro: their samples are the numbers of the phonemes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import singe as sg

RATE = 8000
LETTERS = "_^$ .,!abcdefghijklmnopqrstuvwxyzəˈ"
FACTS: Mapping[str, Any] = {
    "audio": {"sample_rate": RATE}, "phoneme_type": "text", "language": {"family": "en"},
    "inference": {"noise_scale": 0.5, "length_scale": 1, "noise_w": 0.8},
    "phoneme_id_map": {letter: [k] for k, letter in enumerate(LETTERS)},
}  # fmt: skip


def voice_in(folder: Path, **facts: Any) -> Path:
    """A model whose samples are the numbers of the phonemes, ten times a thousandth, times the length, with noise."""
    onnx = pytest.importorskip("onnx")
    helper, kinds = onnx.helper, onnx.TensorProto
    nodes = [
        helper.make_node("Cast", ["input"], ["x"], to=kinds.FLOAT),
        helper.make_node("RandomNormalLike", ["x"], ["chance"]),
        helper.make_node("Split", ["scales"], ["noise", "length", "breadth"], num_outputs=3),
        helper.make_node("Mul", ["chance", "noise"], ["part"]),
        helper.make_node("Mul", ["x", "length"], ["longer"]),
        helper.make_node("Add", ["longer", "part"], ["sum"]),
        helper.make_node("Constant", [], ["hundred"], value_floats=[0.01]),
        helper.make_node("Mul", ["sum", "hundred"], ["output"]),
    ]
    inputs = [
        helper.make_tensor_value_info(name, kind, shape)
        for name, kind, shape in (
            ("input", kinds.INT64, [1, "phonemes"]), ("input_lengths", kinds.INT64, [1]), ("scales", kinds.FLOAT, [3]),
        )
    ]  # fmt: skip
    output = helper.make_tensor_value_info("output", kinds.FLOAT, [1, "samples"])
    graph = helper.make_graph(nodes, "voice", inputs, [output])
    path = folder / "voice.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9), path)
    (folder / "voice.onnx.json").write_text(json.dumps({**FACTS, **facts}))
    return path


def kokoro_in(folder: Path) -> Path:
    """A network whose samples are the numbers of signs, times the style, by the speed."""
    network = sg.Model.of(
        lambda tokens, style, speed: (tokens.float() * style[:, :1] / speed).reshape(-1),
        {"tokens": (1, "signs"), "style": (1, 256), "speed": (1,)},
        dtypes={"tokens": "int64"},
    )
    sg.onnx.save(network, folder / "kokoro.onnx")
    (folder / "vocab.json").write_text(json.dumps({"vocab": {"a": 43, "b": 44, " ": 16}}))
    (folder / "voices").mkdir()
    for k, name in enumerate(("am_adam", "bf_emma")):
        styles = np.repeat(np.arange(510, dtype="<f4")[:, None] + 1000 * k + 1, 256, 1)
        (folder / "voices" / f"{name}.bin").write_bytes(styles.tobytes())
    return folder
