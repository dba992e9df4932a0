"""Every layer leaves as an ONNX file: ONNX's checker has no objection, and onnxruntime computes at every batch what the layer does."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from peer import answers, session
from test_nn_layers import CASES, PICTURE, X1, X2, X3, draw, randomised

import singe as sg
from singe import nn

onnx = pytest.importorskip("onnx")
BATCHES = (2, 1, 3)
OPSETS = (17, 13, 21, 22)
"""That which is written where none is named, then others of which one is tested with each layer in turn."""


def _two(module: Any, *places: int) -> Callable[..., Any]:
    """A function of a module that gives several values: those at some places, by name."""

    def named(*inputs: Any) -> dict[str, Any]:
        found = module(*inputs)
        flat = [*found[:1], *(found[1] if isinstance(found[1], tuple) else found[1:])]
        return {f"y{k}": flat[k] for k in places}

    return named


def _unpooled(pool: Any, back: Any) -> Callable[..., Any]:
    return lambda x: back(*pool(x))


def _packed(bits: int, zeros: bool, rng: np.random.Generator) -> nn.PackedLinear:
    layer = nn.PackedLinear(48, 5, bits, 32, zeros=zeros)
    kinds = {
        "words": rng.integers(-(2**31), 2**31, layer.words.shape).astype(np.int32),
        "scale": rng.random(layer.scale.shape).astype(np.float32),
        "zero": rng.integers(0, 1 << bits, layer.zero.shape).astype(np.float32)
        + (0.5 if bits == 4 and not zeros else 0),
        "bias": rng.random(5).astype(np.float32),
    }
    return layer.with_state({name: sg.tensor(x) for name, x in kinds.items()})


RNG = np.random.default_rng(7)
SEQUENCE = draw(3, 5, 8)
ACTIVATIONS = (
    "CELU", "ELU", "GELU", "GLU", "Hardshrink", "Hardsigmoid", "Hardswish", "Hardtanh", "LeakyReLU", "LogSigmoid", "LogSoftmax", "Mish",
    "ReLU", "ReLU6", "SELU", "SiLU", "Sigmoid", "Softmax", "Softmin", "Softplus", "Softshrink", "Softsign", "Tanh", "Tanhshrink",
)  # fmt: skip
LAYERS: dict[str, tuple[Callable[..., Any], Sequence[np.ndarray], bool]] = {
    **{name: (case.module, case.inputs, case.open) for name, case in CASES.items()},
    **{name: (getattr(nn, name)(), [X2], True) for name in ACTIVATIONS},
    "Threshold": (nn.Threshold(0.2, -1.0), [X2], True),
    "Softmax2d": (nn.Softmax2d(), [X2], True),
    "Linear": (randomised(nn.Linear(8, 3)), [SEQUENCE], True),
    "BatchNorm2d": (randomised(nn.BatchNorm2d(4)).eval(), [X2], True),
    "CrossMapLRN2d": (nn.CrossMapLRN2d(4), [PICTURE], True),
    "Dropout": (nn.Dropout().eval(), [X2], True),
    "Sequential": (nn.Sequential(nn.Flatten(), nn.Identity()), [X2], True),
    "DeformConv2d": (randomised(nn.DeformConv2d(4, 3, 3, padding=1)), [X2, draw(2, 18, 7, 8)], True),
    "MaxUnpool1d": (_unpooled(nn.MaxPool1d(3, return_indices=True), nn.MaxUnpool1d(3)), [X1], True),
    "MaxUnpool2d": (_unpooled(nn.MaxPool2d(2, return_indices=True), nn.MaxUnpool2d(2)), [X2[..., :6, :]], True),
    "MaxUnpool3d": (_unpooled(nn.MaxPool3d(2, return_indices=True), nn.MaxUnpool3d(2)), [X3[:, :, :4]], True),
    "RNN": (_two(randomised(nn.RNN(8, 6, 2, batch_first=True)), 0, 1), [SEQUENCE], True),
    "GRU": (_two(randomised(nn.GRU(8, 6, batch_first=True, bidirectional=True)), 0, 1), [SEQUENCE], True),
    "LSTM": (_two(randomised(nn.LSTM(8, 6, batch_first=True, bidirectional=True)), 0, 1, 2), [SEQUENCE], True),
    "LSTM with projections": (_two(randomised(nn.LSTM(8, 6, batch_first=True, proj_size=3)), 0, 1, 2), [SEQUENCE], True),
    "RNNCell": (randomised(nn.RNNCell(8, 6)), [SEQUENCE[0], draw(5, 6)], True),
    "GRUCell": (randomised(nn.GRUCell(8, 6)), [SEQUENCE[0], draw(5, 6)], True),
    "LSTMCell": (_two(randomised(nn.LSTMCell(8, 6)), 0, 1), [SEQUENCE[0]], True),
    "MultiheadAttention": (_two(randomised(nn.MultiheadAttention(8, 2, batch_first=True)), 0, 1), [SEQUENCE] * 3, True),
    "TransformerEncoder": (randomised(nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), 2)).eval(), [SEQUENCE], True),
    "TransformerDecoder": (
        randomised(nn.TransformerDecoder(nn.TransformerDecoderLayer(8, 2, 16, batch_first=True), 1)).eval(), [SEQUENCE, SEQUENCE], True
    ),
    "Transformer": (randomised(nn.Transformer(8, 2, 1, 1, 16, batch_first=True)).eval(), [SEQUENCE, SEQUENCE], True),
    "CrossEntropyLoss": (nn.CrossEntropyLoss(), [draw(6, 4), RNG.integers(0, 4, 6)], True),
    "NLLLoss": (nn.NLLLoss(), [draw(6, 4), RNG.integers(0, 4, 6)], True),
    "MSELoss": (nn.MSELoss(), [X1, X1 * 2], True),
    "CTCLoss": (
        lambda x, y: nn.CTCLoss()(x, y, sg.tensor(np.array([4, 4])), sg.tensor(np.array([2, 3]))),
        [draw(4, 2, 5), RNG.integers(1, 5, (2, 3))], False,
    ),
    "PackedLinear of 4 bits": (_packed(4, True, RNG), [draw(3, 48)], True),
    "PackedLinear of 8 bits": (_packed(8, True, RNG), [draw(3, 48)], True),
    "PackedLinear with a fractional zero": (_packed(4, False, RNG), [draw(3, 48)], True),
    "WeightNorm": (nn.weight_norm(randomised(nn.Linear(8, 3))), [SEQUENCE], True),
    "LoRA": (nn.lora(nn.Sequential(nn.Linear(8, 3)), 2), [SEQUENCE], True),
}  # fmt: skip


def model_of(name: str) -> tuple[sg.Model, list[list[np.ndarray]]]:
    """A layer as a Model, and inputs for each batch."""
    layer, inputs, opened = LAYERS[name]
    shapes = {f"x{k}": ("N" if opened else x.shape[0], *x.shape[1:]) for k, x in enumerate(inputs)}
    model = sg.Model.of(layer, shapes, "numpy", dtypes={f"x{k}": x.dtype for k, x in enumerate(inputs)}, name=name)
    counts = BATCHES if opened else (inputs[0].shape[0],)
    return model, [
        [x[:n] if n <= len(x) else np.concatenate([x, x])[:n] for x in inputs] if opened else [*inputs] for n in counts
    ]


def check(model: sg.Model, path: Path, opset: int, runs: Sequence[Sequence[np.ndarray]]) -> None:
    """The file is valid, and onnxruntime computes of each of these inputs what the model does. (Products with weights of a few bits
    are left as they are written: onnxruntime replaces them by products of 8-bit integers.)"""
    sg.onnx.save(model, path, opset)
    onnx.checker.check_model(str(path), full_check=True)
    opened = session(path, as_written=model.name.startswith("PackedLinear"))
    names = [x.name for x in opened.get_inputs()]
    for inputs in runs:
        wanted = model(*inputs)
        wanted = wanted if isinstance(wanted, dict) else {"output": wanted}
        found = answers(
            opened, {k: x for k, x in zip((p.name for p in model.inputs), inputs, strict=True) if k in names}
        )
        assert found.keys() == wanted.keys()
        for name, theirs in found.items():
            mine = wanted[name]
            assert (theirs.shape, theirs.dtype) == (mine.shape, mine.dtype)
            scale = max(1.0, float(np.abs(mine).max(initial=0)))
            np.testing.assert_allclose(theirs, mine, rtol=1e-4, atol=2e-5 * scale)


OPS: dict[str, tuple[int, str]] = {
    "AvgPool1d": (17, "AveragePool"), "BatchNorm2d": (17, "BatchNormalization"), "Conv2d": (17, "Conv"), "ConvTranspose2d": (17, "ConvTranspose"),
    "CrossEntropyLoss": (17, "LogSoftmax NegativeLogLikelihoodLoss"), "ELU": (17, "Elu"), "Embedding": (17, "Gather"), "GELU": (20, "Gelu"),
    "GELU by tanh": (20, "Gelu"), "Hardswish": (17, "HardSwish"), "LSTM": (17, "Transpose LSTM Transpose Reshape Transpose"),
    "LayerNorm": (17, "LayerNormalization"), "Linear": (17, "MatMul Add"), "LogSoftmax": (17, "LogSoftmax"), "MaxPool2d": (17, "MaxPool"),
    "Mish": (18, "Mish"), "PackedLinear of 4 bits": (21, "Reshape DequantizeLinear MatMul Reshape Add"), "RMSNorm": (23, "RMSNormalization"),
    "ReLU6": (17, "Clip"), "Softmax": (17, "Softmax"), "Upsample": (17, "Resize"),
}  # fmt: skip
"""A layer ↦ an opset, and its ops there."""


@pytest.mark.slow
@pytest.mark.parametrize("name", OPS)
def test_a_layer_that_onnx_has_is_its_op(name: str, tmp_path: Path) -> None:
    opset, ops = OPS[name]
    sg.onnx.save(model_of(name)[0], tmp_path / "layer.onnx", opset)
    graph = onnx.load(str(tmp_path / "layer.onnx")).graph
    assert " ".join(node.op_type for node in graph.node) == ops
    if name.startswith("PackedLinear"):
        kinds = {t.data_type for t in graph.initializer if list(t.dims) == [48, 5]}
        assert kinds == {onnx.TensorProto.UINT4}


@pytest.mark.slow
@pytest.mark.parametrize("name", LAYERS)
def test_onnxruntime_computes_each_layer_as_singe_does(name: str, tmp_path: Path) -> None:
    model, runs = model_of(name)
    opset = OPSETS[sorted(LAYERS).index(name) % len(OPSETS)]
    check(model, tmp_path / "layer.onnx", opset, runs)


@pytest.mark.slow
@pytest.mark.parametrize("opset", OPSETS)
@pytest.mark.parametrize("name", LAYERS)
def test_each_layer_leaves_in_each_opset(name: str, opset: int, tmp_path: Path) -> None:
    model, runs = model_of(name)
    check(model, tmp_path / "layer.onnx", opset, runs)


def test_every_layer_is_tested() -> None:
    """Losses beyond these are of the same ops; what draws random numbers is refused."""
    tested = {type(layer).__name__ for layer, _, _ in LAYERS.values()} | set(LAYERS) | {n.split()[0] for n in LAYERS}
    others = {n for n in nn.__all__ if n.endswith("Loss")} | {
        "AlphaDropout", "Dropout1d", "Dropout2d", "Dropout3d", "FeatureAlphaDropout", "FractionalMaxPool2d", "FractionalMaxPool3d",
        "Flatten", "GaussianNoise", "Identity", "Module", "ModuleDict", "ModuleList", "SpectralNorm", "TransformerDecoderLayer", "TransformerEncoderLayer",
    }  # fmt: skip
    layers = {n for n in nn.__all__ if isinstance(getattr(nn, n), type)}
    assert layers <= tested | others, layers - tested - others
