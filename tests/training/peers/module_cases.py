"""Layers whose gradients record_modules.py records of `torch.nn`, and test_modules.py compares with those of `singe.nn`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

import numpy as np


class Case(NamedTuple):
    """A function that builds a layer of a namespace of layers, and the shapes of its inputs; integers: how many there are, for
    inputs that are numbers of rows; classes: how many there are, for a last input of targets; result: whether PyTorch's is
    recorded in place of its gradients."""

    build: Callable[[Any], Any]
    shapes: tuple[tuple[int, ...], ...]
    integers: int | None = None
    classes: int | None = None
    result: bool = False


ROWS: Final = (3, 6)
LINE, PLANE, SPACE = (2, 4, 7), (2, 4, 5, 6), (1, 2, 4, 5, 4)
WORDS: Final = (3, 2, 4)

PLAIN: Final = (
    "CELU", "ELU", "GELU", "GLU", "Hardshrink", "Hardsigmoid", "Hardswish", "Hardtanh", "Identity", "LeakyReLU", "LogSigmoid", "Mish",
    "PReLU", "ReLU", "ReLU6", "SELU", "SiLU", "Sigmoid", "Softplus", "Softshrink", "Softsign", "Tanh", "Tanhshrink",
)  # fmt: skip

CASES: Final[Mapping[str, Case]] = {
    **{name: Case(lambda nn, name=name: getattr(nn, name)(), (ROWS,)) for name in PLAIN},
    "RReLU out of training": Case(lambda nn: nn.RReLU().eval(), (ROWS,)),
    "LogSoftmax": Case(lambda nn: nn.LogSoftmax(dim=1), (ROWS,)),
    "Softmax": Case(lambda nn: nn.Softmax(dim=0), (ROWS,)),
    "Softmin": Case(lambda nn: nn.Softmin(dim=1), (ROWS,)),
    "Softmax2d": Case(lambda nn: nn.Softmax2d(), (PLANE,)),
    "Threshold": Case(lambda nn: nn.Threshold(0.1, 2.0), (ROWS,)),
    "Flatten": Case(lambda nn: nn.Flatten(), (PLANE,)),
    "Linear": Case(lambda nn: nn.Linear(6, 4), (ROWS,)),
    "Bilinear": Case(lambda nn: nn.Bilinear(6, 4, 3), (ROWS, (3, 4))),
    "CosineSimilarity": Case(lambda nn: nn.CosineSimilarity(dim=1), (ROWS, ROWS)),
    "PairwiseDistance": Case(lambda nn: nn.PairwiseDistance(), (ROWS, ROWS)),
    "Conv1d": Case(lambda nn: nn.Conv1d(4, 6, 3, padding=2, dilation=2, groups=2), (LINE,)),
    "Conv2d": Case(lambda nn: nn.Conv2d(4, 3, (3, 2), stride=(2, 1), padding=1), (PLANE,)),
    "Conv2d same": Case(lambda nn: nn.Conv2d(4, 4, 3, padding="same", groups=4), (PLANE,)),
    "Conv2d reflect": Case(lambda nn: nn.Conv2d(4, 3, 3, padding=1, padding_mode="reflect"), (PLANE,)),
    "Conv3d": Case(lambda nn: nn.Conv3d(2, 3, 2, stride=2), (SPACE,)),
    "ConvTranspose1d": Case(lambda nn: nn.ConvTranspose1d(4, 6, 3, stride=2, groups=2), (LINE,)),
    "ConvTranspose2d": Case(lambda nn: nn.ConvTranspose2d(4, 3, 3, stride=2, padding=1, output_padding=1), (PLANE,)),
    "ConvTranspose3d": Case(lambda nn: nn.ConvTranspose3d(2, 2, 2), (SPACE,)),
    "MaxPool1d": Case(lambda nn: nn.MaxPool1d(3, 2, padding=1), (LINE,)),
    "MaxPool2d": Case(lambda nn: nn.MaxPool2d(2, 2, ceil_mode=True), (PLANE,)),
    "MaxPool2d overlapping": Case(lambda nn: nn.MaxPool2d(3, 1, dilation=2), (PLANE,)),
    "MaxPool3d": Case(lambda nn: nn.MaxPool3d(2), (SPACE,)),
    "AvgPool1d": Case(lambda nn: nn.AvgPool1d(3, 2, padding=1), (LINE,)),
    "AvgPool2d": Case(lambda nn: nn.AvgPool2d((3, 2), (2, 2), padding=(1, 0), count_include_pad=False), (PLANE,)),
    "AvgPool3d": Case(lambda nn: nn.AvgPool3d(2), (SPACE,)),
    "LPPool1d": Case(lambda nn: nn.LPPool1d(2, 3), (LINE,)),
    "LPPool2d": Case(lambda nn: nn.LPPool2d(2, 2), (PLANE,)),
    "AdaptiveAvgPool1d": Case(lambda nn: nn.AdaptiveAvgPool1d(3), (LINE,)),
    "AdaptiveAvgPool2d": Case(lambda nn: nn.AdaptiveAvgPool2d((2, 4)), (PLANE,)),
    "AdaptiveAvgPool3d": Case(lambda nn: nn.AdaptiveAvgPool3d(2), (SPACE,)),
    "AdaptiveMaxPool1d": Case(lambda nn: nn.AdaptiveMaxPool1d(3), (LINE,)),
    "AdaptiveMaxPool2d": Case(lambda nn: nn.AdaptiveMaxPool2d(2), (PLANE,)),
    "CircularPad2d": Case(lambda nn: nn.CircularPad2d((1, 2, 0, 1)), (PLANE,)),
    "ConstantPad1d": Case(lambda nn: nn.ConstantPad1d((1, -1), 2.0), (LINE,)),
    "ReflectionPad2d": Case(lambda nn: nn.ReflectionPad2d((1, 2, 3, 1)), (PLANE,)),
    "ReplicationPad2d": Case(lambda nn: nn.ReplicationPad2d((1, 2, 3, 1)), (PLANE,)),
    "ZeroPad3d": Case(lambda nn: nn.ZeroPad3d(1), (SPACE,)),
    "PixelShuffle": Case(lambda nn: nn.PixelShuffle(2), (PLANE,)),
    "PixelUnshuffle": Case(lambda nn: nn.PixelUnshuffle(2), ((1, 2, 4, 6),)),
    "ChannelShuffle": Case(lambda nn: nn.ChannelShuffle(2), (PLANE,)),
    "Unfold": Case(lambda nn: nn.Unfold((2, 3), padding=1), (PLANE,)),
    "Fold": Case(lambda nn: nn.Fold((4, 5), (2, 2)), ((1, 8, 12),)),
    "Upsample nearest": Case(lambda nn: nn.Upsample(scale_factor=2), (LINE,)),
    "Upsample bilinear": Case(lambda nn: nn.Upsample(scale_factor=2, mode="bilinear"), (PLANE,)),
    "Upsample bicubic": Case(lambda nn: nn.Upsample(size=(7, 9), mode="bicubic", align_corners=True), (PLANE,)),
    "BatchNorm1d": Case(lambda nn: nn.BatchNorm1d(6), (ROWS,)),
    "BatchNorm2d": Case(lambda nn: nn.BatchNorm2d(4), (PLANE,)),
    "BatchNorm2d out of training": Case(lambda nn: nn.BatchNorm2d(4).eval(), (PLANE,)),
    "BatchNorm3d": Case(lambda nn: nn.BatchNorm3d(2), (SPACE,)),
    "GroupNorm": Case(lambda nn: nn.GroupNorm(2, 4), (PLANE,)),
    "InstanceNorm1d": Case(lambda nn: nn.InstanceNorm1d(4, affine=True), (LINE,)),
    "InstanceNorm2d": Case(lambda nn: nn.InstanceNorm2d(4, track_running_stats=True), (PLANE,)),
    "LayerNorm": Case(lambda nn: nn.LayerNorm(6), (ROWS,)),
    "RMSNorm": Case(lambda nn: nn.RMSNorm(6), (ROWS,)),
    "CrossMapLRN2d": Case(lambda nn: nn.CrossMapLRN2d(3, 0.5), ((2, 7, 2, 3),), result=True),
    "CrossMapLRN2d even": Case(lambda nn: nn.CrossMapLRN2d(4, 0.5, 0.6, 2.0), ((2, 7, 2, 3),), result=True),
    "LocalResponseNorm": Case(lambda nn: nn.LocalResponseNorm(3, 0.5), (PLANE,)),
    "Embedding": Case(lambda nn: nn.Embedding(5, 3), ((2, 4),), 5),
    "Embedding with padding": Case(lambda nn: nn.Embedding(5, 3, padding_idx=1), ((2, 4),), 5),
    "EmbeddingBag": Case(lambda nn: nn.EmbeddingBag(5, 3, mode="mean"), ((2, 4),), 5),
    "RNN": Case(lambda nn: nn.RNN(4, 3, num_layers=2, bidirectional=True), (WORDS,)),
    "RNN relu": Case(lambda nn: nn.RNN(4, 3, nonlinearity="relu"), (WORDS,)),
    "LSTM": Case(lambda nn: nn.LSTM(4, 3, batch_first=True), (WORDS,)),
    "LSTM projected": Case(lambda nn: nn.LSTM(4, 5, 2, bidirectional=True, proj_size=2), (WORDS,)),
    "LSTM projected, its result": Case(lambda nn: nn.LSTM(4, 5, proj_size=2, batch_first=True, bias=False), (WORDS,), result=True),
    "GRU": Case(lambda nn: nn.GRU(4, 3, num_layers=2), (WORDS,)),
    "RNNCell": Case(lambda nn: nn.RNNCell(4, 3), ((2, 4), (2, 3))),
    "LSTMCell": Case(lambda nn: nn.LSTMCell(4, 3), ((2, 4),)),
    "GRUCell": Case(lambda nn: nn.GRUCell(4, 3), ((2, 4), (2, 3))),
    "MultiheadAttention": Case(lambda nn: nn.MultiheadAttention(4, 2), (WORDS, WORDS, WORDS)),
    "MultiheadAttention with biases": Case(
        lambda nn: nn.MultiheadAttention(4, 2, add_bias_kv=True, kdim=3, vdim=5), (WORDS, (5, 2, 3), (5, 2, 5))
    ),
    "AdaptiveLogSoftmaxWithLoss": Case(
        lambda nn: nn.AdaptiveLogSoftmaxWithLoss(8, 12, [3, 7], div_value=2.0), ((9, 8), (9,)), classes=12
    ),
    "AdaptiveLogSoftmaxWithLoss, its result": Case(
        lambda nn: nn.AdaptiveLogSoftmaxWithLoss(8, 12, [5], head_bias=True), ((9, 8), (9,)), classes=12, result=True
    ),
    "TransformerEncoderLayer": Case(lambda nn: nn.TransformerEncoderLayer(4, 2, 6, dropout=0.0, norm_first=True), (WORDS,)),
    "TransformerDecoderLayer": Case(lambda nn: nn.TransformerDecoderLayer(4, 2, 6, dropout=0.0), (WORDS, (5, 2, 4))),
}  # fmt: skip


def inputs(case: Case) -> list[np.ndarray]:
    rng = np.random.default_rng(1)
    if case.integers is not None:
        return [rng.integers(case.integers, size=shape) for shape in case.shapes]
    arrays: list[np.ndarray] = [rng.normal(size=shape).astype(np.float32) for shape in case.shapes]
    return arrays if case.classes is None else [*arrays[:-1], rng.integers(case.classes, size=case.shapes[-1])]


def weights(shapes: Mapping[str, tuple[int, ...]]) -> dict[str, np.ndarray]:
    """Parameters of these shapes."""
    rng = np.random.default_rng(2)
    return {name: (rng.normal(size=shape) * 0.6).astype(np.float32) for name, shape in sorted(shapes.items())}


def factors(shape: tuple[int, ...]) -> np.ndarray:
    """By which the elements of a result are multiplied before they are added up."""
    return np.random.default_rng(3).normal(size=shape).astype(np.float32)
