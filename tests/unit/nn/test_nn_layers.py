"""Every layer computes what PyTorch documents: beside NumPy (nn_references.py) on random weights, eagerly, and compiled with
an open batch on each device."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from devices import NUMPY
from rows import nn_references as ref

import singe as sg
from singe import nn
from singe.nn._module import Module

RNG = np.random.default_rng(0)


def draw(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


def randomised(module: Any) -> Any:
    """The module with other weights; variances stay positive."""
    state = {
        k: (abs(draw(*t.shape)) + 0.5 if "var" in k else draw(*t.shape)) if t.dtype.is_float else t
        for k, t in module.state_dict().items()
    }
    return module.with_state(state)


@dataclass(frozen=True)
class Case:
    """A layer, inputs, and f(*inputs, weights=state dict) ↦ what the layer gives. open: whether the first axis of the inputs
    may be open."""

    module: Module
    inputs: Sequence[np.ndarray]
    wanted: Callable[..., Any]
    open: bool = True
    state: dict[str, np.ndarray] = field(default_factory=dict)

    def __post_init__(self) -> None:
        made = randomised(self.module)
        object.__setattr__(self, "module", made)
        self.state.update({k: t.numpy() for k, t in made.state_dict().items()})


X1, X2, X3 = draw(2, 4, 9), draw(2, 4, 7, 8), draw(2, 4, 5, 6, 4)
PICTURE = draw(2, 8, 4, 6)
FAR = X2 * 3
TOKENS = RNG.integers(0, 10, (3, 5))


def mean(x: np.ndarray, axes: tuple[int, ...]) -> np.ndarray:
    return x.mean(axes)


def window_means(x: np.ndarray, kernel: Sequence[int], stride: Sequence[int]) -> np.ndarray:
    rank = len(kernel)
    return ref.windows(x, kernel, stride, (1,) * rank).mean(tuple(range(-rank, 0)))


def window_maxima(
    x: np.ndarray, kernel: Sequence[int], stride: Sequence[int], pads: Sequence[int], dilation: Sequence[int]
) -> np.ndarray:
    rank = len(kernel)
    return ref.windows(ref.padded(x, pads, -np.inf), kernel, stride, dilation).max(tuple(range(-rank, 0)))


def embedding_bag(x: np.ndarray, w: np.ndarray, fold: Callable[..., Any], padding: int | None = None) -> np.ndarray:
    rows = [[w[k] for k in bag if k != padding] for bag in x]
    return np.stack([fold(np.stack(r), axis=0) if r else np.zeros(w.shape[1]) for r in rows])


def shortened(x: np.ndarray, most: float, order: float) -> np.ndarray:
    norms = (np.abs(x) ** order).sum(-1, keepdims=True) ** (1 / order)
    assert (norms > most).any()
    assert (norms < most).any()
    return x * np.where(norms > most, most / (norms + 1e-7), 1)


def rotated(x: np.ndarray, dim: int, interleaved: bool, first: int) -> np.ndarray:
    y = x.copy()
    for t in range(x.shape[-2]):
        for k in range(dim // 2):
            a, b = (2 * k, 2 * k + 1) if interleaved else (k, k + dim // 2)
            angle = (t + first) * 10000.0 ** (-2 * k / dim)
            y[..., t, a] = x[..., t, a] * np.cos(angle) - x[..., t, b] * np.sin(angle)
            y[..., t, b] = x[..., t, b] * np.cos(angle) + x[..., t, a] * np.sin(angle)
    return y


def pixel_shuffle(x: np.ndarray, r: int) -> np.ndarray:
    n, c, h, w = x.shape
    y = np.empty((n, c // (r * r), h * r, w * r), x.dtype)
    for i in range(r):
        for j in range(r):
            y[:, :, i::r, j::r] = x[:, i * r + j :: r * r]
    return y


def unfolded(
    x: np.ndarray, kernel: Sequence[int], dilation: Sequence[int], pads: Sequence[int], stride: Sequence[int]
) -> np.ndarray:
    seen = ref.windows(ref.padded(x, pads), kernel, stride, dilation)
    return seen.transpose(0, 1, 4, 5, 2, 3).reshape(len(x), x.shape[1] * kernel[0] * kernel[1], -1)


def shape_after(w: np.ndarray, rank: int) -> np.ndarray:
    return w.reshape(-1, *(1,) * rank)


def batch_normed(x: np.ndarray, weights: ref.Params) -> np.ndarray:
    w, b, m, v = (shape_after(weights[k], x.ndim - 2) for k in ("weight", "bias", "running_mean", "running_var"))
    return (x - m) / np.sqrt(v + 1e-5) * w + b


def group_normed(x: np.ndarray, weights: ref.Params, groups: int) -> np.ndarray:
    y = ref.normalised(x.reshape(len(x), groups, -1), (2,)).reshape(x.shape)
    return y * shape_after(weights["weight"], x.ndim - 2) + shape_after(weights["bias"], x.ndim - 2)


def instance_normed(x: np.ndarray, weights: ref.Params) -> np.ndarray:
    y = ref.normalised(x, tuple(range(2, x.ndim)))
    return y * shape_after(weights["weight"], x.ndim - 2) + shape_after(weights["bias"], x.ndim - 2) if weights else y


CASES: dict[str, Case] = {
    "Conv1d": Case(nn.Conv1d(4, 6, 3, 2, 1, 2, 2), [X1], lambda x, weights: ref.conv(x, weights, (2,), (1,), (2,), 2)),
    "Conv1d without a batch": Case(nn.Conv1d(4, 6, 3), [X1[0]], lambda x, weights: ref.conv(x[None], weights, (1,), (0,), (1,), 1)[0], False),
    "Conv2d": Case(nn.Conv2d(4, 6, (3, 2), (2, 1), (1, 0)), [X2], lambda x, weights: ref.conv(x, weights, (2, 1), (1, 0), (1, 1), 1)),
    "Conv2d circular": Case(
        nn.Conv2d(4, 3, 3, padding=2, padding_mode="circular"), [X2], lambda x, weights: ref.conv(x, weights, (1, 1), (2, 2), (1, 1), 1, "wrap"), False
    ),
    "Conv2d reflected, same": Case(
        nn.Conv2d(4, 3, 3, padding="same", padding_mode="reflect"), [X2], lambda x, weights: ref.conv(x, weights, (1, 1), (1, 1), (1, 1), 1, "reflect")
    ),
    "Conv3d": Case(nn.Conv3d(4, 2, 2, padding=1, bias=False), [X3], lambda x, weights: ref.conv(x, weights, (1,) * 3, (1,) * 3, (1,) * 3, 1)),
    "ConvTranspose1d": Case(
        nn.ConvTranspose1d(4, 6, 3, 2, 1, 1, 2), [X1], lambda x, weights: ref.conv_transpose(x, weights, (2,), (1,), (1,), (1,), 2)
    ),
    "ConvTranspose2d": Case(
        nn.ConvTranspose2d(4, 3, (3, 2), (2, 3), (1, 0), dilation=2), [X2],
        lambda x, weights: ref.conv_transpose(x, weights, (2, 3), (1, 0), (0, 0), (2, 2), 1),
    ),
    "ConvTranspose3d": Case(nn.ConvTranspose3d(4, 2, 2, 2), [X3], lambda x, weights: ref.conv_transpose(x, weights, (2,) * 3, (0,) * 3, (0,) * 3, (1,) * 3, 1)),
    "MaxPool1d": Case(nn.MaxPool1d(3, 2, 1), [X1], lambda x, weights: window_maxima(x, (3,), (2,), (1,), (1,))),
    "MaxPool2d": Case(nn.MaxPool2d((3, 2), 1, 1, 2), [X2], lambda x, weights: window_maxima(x, (3, 2), (1, 1), (1, 1), (2, 2))),
    "MaxPool3d": Case(nn.MaxPool3d(2), [X3], lambda x, weights: window_maxima(x, (2,) * 3, (2,) * 3, (0,) * 3, (1,) * 3)),
    "AvgPool1d": Case(nn.AvgPool1d(3, 2), [X1], lambda x, weights: window_means(x, (3,), (2,))),
    "AvgPool2d": Case(nn.AvgPool2d(2, 1, divisor_override=3), [X2], lambda x, weights: window_means(x, (2, 2), (1, 1)) * 4 / 3),
    "AvgPool3d": Case(nn.AvgPool3d(2), [X3], lambda x, weights: window_means(x, (2,) * 3, (2,) * 3)),
    "LPPool1d": Case(nn.LPPool1d(2, 3, 2), [X1], lambda x, weights: (window_means(x**2, (3,), (2,)) * 3) ** 0.5),
    "LPPool2d": Case(nn.LPPool2d(2, 2), [X2], lambda x, weights: (window_means(x**2, (2, 2), (2, 2)) * 4) ** 0.5),
    "LPPool3d": Case(nn.LPPool3d(2, 2), [X3], lambda x, weights: (window_means(x**2, (2,) * 3, (2,) * 3) * 8) ** 0.5),
    "AdaptiveAvgPool1d": Case(nn.AdaptiveAvgPool1d(4), [X1], lambda x, weights: ref.adaptive(x, (4,), np.mean)),
    "AdaptiveAvgPool2d": Case(nn.AdaptiveAvgPool2d((3, None)), [X2], lambda x, weights: ref.adaptive(x, (3, 8), np.mean)),
    "AdaptiveAvgPool2d of one axis": Case(nn.AdaptiveAvgPool2d((1, 3)), [X2], lambda x, weights: ref.adaptive(x, (1, 3), np.mean)),
    "AdaptiveAvgPool3d": Case(nn.AdaptiveAvgPool3d((2, 3, 3)), [X3], lambda x, weights: ref.adaptive(x, (2, 3, 3), np.mean)),
    "AdaptiveMaxPool1d": Case(nn.AdaptiveMaxPool1d(1), [X1], lambda x, weights: ref.adaptive(x, (1,), np.max)),
    "AdaptiveMaxPool2d": Case(nn.AdaptiveMaxPool2d((3, 5)), [X2], lambda x, weights: ref.adaptive(x, (3, 5), np.max)),
    "AdaptiveMaxPool3d": Case(nn.AdaptiveMaxPool3d((5, 2, 3)), [X3], lambda x, weights: ref.adaptive(x, (5, 2, 3), np.max)),
    "BatchNorm1d": Case(nn.BatchNorm1d(4), [X1], batch_normed),
    "BatchNorm1d of vectors": Case(nn.BatchNorm1d(4), [X1[..., 0]], batch_normed),
    "BatchNorm3d": Case(nn.BatchNorm3d(4), [X3], batch_normed),
    "BatchNorm2d by the batch": Case(
        nn.BatchNorm2d(4, affine=False, track_running_stats=False), [X2], lambda x, weights: ref.normalised(x, (0, 2, 3)), False
    ),
    "LayerNorm": Case(
        nn.LayerNorm((7, 8)), [X2], lambda x, weights: ref.normalised(x, (2, 3)) * weights["weight"] + weights["bias"]
    ),
    "RMSNorm": Case(
        nn.RMSNorm(8), [X2], lambda x, weights: x / np.sqrt((x**2).mean(-1, keepdims=True) + 2.0**-23) * weights["weight"]
    ),
    "GroupNorm": Case(nn.GroupNorm(2, 4), [X2], lambda x, weights: group_normed(x, weights, 2)),
    "InstanceNorm1d": Case(nn.InstanceNorm1d(4), [X1], instance_normed),
    "InstanceNorm2d": Case(nn.InstanceNorm2d(4, affine=True), [X2], instance_normed),
    "InstanceNorm3d": Case(nn.InstanceNorm3d(4), [X3[0]], lambda x, weights: instance_normed(x[None], weights)[0], False),
    "InstanceNorm2d by statistics": Case(nn.InstanceNorm2d(4, affine=True, track_running_stats=True), [X2], batch_normed),
    "LocalResponseNorm": Case(nn.LocalResponseNorm(4, 0.5, 0.6, 2.0), [PICTURE], lambda x, weights: ref.local_response(x, 4, 0.5, 0.6, 2.0)),
    "PReLU": Case(nn.PReLU(4), [X2], lambda x, weights: np.where(x >= 0, x, x * weights["weight"][:, None, None])),
    "RReLU": Case(nn.RReLU(0.1, 0.3), [X2], lambda x, weights: np.where(x >= 0, x, x * 0.2)),
    "GELU by tanh": Case(
        nn.GELU("tanh"), [X1], lambda x, weights: 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))
    ),
    "Softplus with beta": Case(nn.Softplus(2.0, 1.0), [X1], lambda x, weights: np.where(2 * x > 1, x, np.log1p(np.exp(2 * x)) / 2)),
    "Bilinear": Case(
        nn.Bilinear(4, 3, 5), [draw(2, 6, 4), draw(2, 6, 3)],
        lambda x, y, weights: np.einsum("nti,oij,ntj->nto", x, weights["weight"], y) + weights["bias"],
    ),
    "Embedding": Case(nn.Embedding(10, 4), [TOKENS], lambda x, weights: weights["weight"][x]),
    "Embedding with max_norm": Case(
        nn.Embedding(10, 4, max_norm=2.5, norm_type=1.5), [TOKENS], lambda x, weights: shortened(weights["weight"][x], 2.5, 1.5)
    ),
    "EmbeddingBag of sums": Case(nn.EmbeddingBag(10, 4, "sum"), [TOKENS], lambda x, weights: embedding_bag(x, weights["weight"], np.sum)),
    "EmbeddingBag of means": Case(
        nn.EmbeddingBag(10, 4, padding_idx=int(TOKENS[0, 0])), [TOKENS],
        lambda x, weights: embedding_bag(x, weights["weight"], np.mean, int(TOKENS[0, 0])),
    ),
    "EmbeddingBag of maxima": Case(
        nn.EmbeddingBag(10, 4, "max", padding_idx=int(TOKENS[0, 0])), [TOKENS],
        lambda x, weights: embedding_bag(x, weights["weight"], np.max, int(TOKENS[0, 0])),
    ),
    "Upsample": Case(nn.Upsample(scale_factor=2), [X2], lambda x, weights: x.repeat(2, 2).repeat(2, 3)),
    "UpsamplingNearest2d": Case(nn.UpsamplingNearest2d((14, 8)), [X2], lambda x, weights: x.repeat(2, 2)),
    "UpsamplingBilinear2d": Case(
        nn.UpsamplingBilinear2d(scale_factor=2), [X2[:, :, :, :1]],
        lambda x, weights: np.apply_along_axis(lambda v: np.interp(np.linspace(0, 6, 14), np.arange(7), v), 2, x).repeat(2, 3),
    ),
    "PixelShuffle": Case(nn.PixelShuffle(2), [PICTURE], lambda x, weights: pixel_shuffle(x, 2)),
    "PixelUnshuffle": Case(nn.PixelUnshuffle(2), [pixel_shuffle(PICTURE, 2)], lambda x, weights: PICTURE),
    "ChannelShuffle": Case(nn.ChannelShuffle(2), [PICTURE], lambda x, weights: x[:, [0, 4, 1, 5, 2, 6, 3, 7]]),
    "Unflatten": Case(nn.Unflatten(1, (2, -1)), [PICTURE], lambda x, weights: x.reshape(2, 2, 4, 4, 6)),
    "Unfold": Case(nn.Unfold((2, 3), (2, 1), (1, 0), (1, 2)), [X2], lambda x, weights: unfolded(x, (2, 3), (2, 1), (1, 0), (1, 2))),
    "Fold": Case(
        nn.Fold((7, 8), 2, stride=2, padding=1), [draw(2, 12, 20)],
        lambda x, weights: folded(x, (7, 8), (2, 2), (1, 1), (2, 2)),
    ),
    "CosineSimilarity": Case(
        nn.CosineSimilarity(), [X2, FAR[::-1].copy()],
        lambda x, y, weights: (x * y).sum(1) / np.sqrt((x**2).sum(1) * (y**2).sum(1)),
    ),
    "PairwiseDistance": Case(nn.PairwiseDistance(), [X1, X1[::-1].copy()], lambda x, y, weights: np.sqrt(((x - y + 1e-6) ** 2).sum(-1))),
    "SinusoidalPositions": Case(nn.SinusoidalPositions(8, 9), [X2], lambda x, weights: x + weights["pe"][:7]),
    "RotaryEmbedding": Case(nn.RotaryEmbedding(8), [X2], lambda x, weights: rotated(x, 8, False, 0)),
    "RotaryEmbedding of pairs": Case(nn.RotaryEmbedding(6, interleaved=True), [X2], lambda x, weights: rotated(x, 6, True, 0)),
}  # fmt: skip
MODES = {"Reflection": "reflect", "Replication": "edge", "Circular": "wrap", "Zero": "constant", "Constant": "constant"}
for _kind, _mode in MODES.items():
    for _rank, _x in ((1, X1), (2, X2), (3, X3)):
        _pads = [2, 1, 0, 3, 1, 2][: 2 * _rank]
        _more = {"value": 3.5} if _kind == "Constant" else {}
        _width = [(0, 0)] * 2 + list(zip(_pads[::2], _pads[1::2], strict=True))[::-1]
        _given = {"constant_values": 3.5} if _more else {}
        CASES[f"{_kind}Pad{_rank}d"] = Case(
            getattr(nn, f"{_kind}Pad{_rank}d")(_pads, **_more),
            [_x],
            lambda x, weights, width=_width, mode=_mode, given=_given: np.pad(x, width, mode, **given),
        )
CASES["ZeroPad2d that crops"] = Case(
    nn.ZeroPad2d((-1, 2, 1, -2)), [X2], lambda x, weights: np.pad(x, [(0, 0), (0, 0), (1, 0), (0, 2)])[:, :, :-2, 1:]
)


def folded(
    x: np.ndarray, size: Sequence[int], kernel: Sequence[int], pads: Sequence[int], stride: Sequence[int]
) -> np.ndarray:
    counts = [(d + 2 * p - k) // s + 1 for d, p, k, s in zip(size, pads, kernel, stride, strict=True)]
    y = np.zeros((len(x), x.shape[1] // (kernel[0] * kernel[1]), size[0] + 2 * pads[0], size[1] + 2 * pads[1]))
    parts = x.reshape(*y.shape[:2], *kernel, *counts)
    for i in range(counts[0]):
        for j in range(counts[1]):
            a, b = i * stride[0], j * stride[1]
            y[:, :, a : a + kernel[0], b : b + kernel[1]] += parts[..., i, j]
    return y[:, :, pads[0] : pads[0] + size[0], pads[1] : pads[1] + size[1]]


def close(found: Any, wanted: Any) -> None:
    scale = max(1.0, float(np.abs(wanted).max()))
    assert found.shape == wanted.shape
    np.testing.assert_allclose(found, wanted, rtol=2e-4, atol=2e-5 * scale)


@pytest.mark.parametrize("name", CASES)
def test_layers_compute_what_pytorch_documents(name: str) -> None:
    case = CASES[name]
    found = case.module(*(sg.tensor(x) for x in case.inputs))
    close(found.numpy(), case.wanted(*case.inputs, weights=case.state))


@NUMPY
@pytest.mark.parametrize("name", CASES)
def test_layers_are_compiled_with_an_open_batch(name: str, device_name: str) -> None:
    case = CASES[name]
    on = sg.device(device_name)
    shapes = {f"x{k}": ("N" if case.open else x.shape[0], *x.shape[1:]) for k, x in enumerate(case.inputs)}
    kinds = {f"x{k}": x.dtype for k, x in enumerate(case.inputs)}
    model = sg.Model.of(case.module, shapes, on, dtypes=kinds)
    close(model(*case.inputs), case.wanted(*case.inputs, weights=case.state))


def test_every_layer_is_tested() -> None:
    """Here, or where what it computes is not one tensor of others."""
    tested = {type(case.module).__name__ for case in CASES.values()}
    elsewhere = {
        "Module", "Sequential", "ModuleList", "ModuleDict", "Linear", "BatchNorm2d", "observing", "Dropout", "Dropout1d", "Dropout2d",
        "Dropout3d", "AlphaDropout", "FeatureAlphaDropout", "MaxUnpool1d", "MaxUnpool2d", "MaxUnpool3d", "RNN", "LSTM", "GRU", "RNNCell",
        "LSTMCell", "GRUCell", "MultiheadAttention", "TransformerEncoderLayer", "TransformerEncoder", "TransformerDecoderLayer",
        "TransformerDecoder", "Transformer",
        "GaussianNoise", "drawing", "init", "next_key", "LoRA", "WeightNorm", "lora", "merged", "weight_norm",
        "SpectralNorm", "spectral_norm", "DeformConv2d", "PackedLinear", "CrossMapLRN2d", "FractionalMaxPool2d", "FractionalMaxPool3d",
    }  # fmt: skip
    activations = {c.__name__ for c in nn.ReLU.__base__.__subclasses__()}  # pyright: ignore[reportOptionalMemberAccess]
    losses = {name for name in nn.__all__ if name.endswith("Loss")}  # tests/training/peers/test_losses.py
    assert set(nn.__all__) == tested | elsewhere | activations | losses


def test_an_adaptive_softmax_is_one_distribution() -> None:
    loss = nn.AdaptiveLogSoftmaxWithLoss(8, 12, [3, 7], div_value=2.0, rng=0)
    x, target = sg.tensor(np.random.default_rng(1).normal(size=(12, 8))), sg.arange(12)
    logs = loss.log_prob(x)
    np.testing.assert_allclose(logs.exp().sum(1).numpy(), 1, rtol=1e-5)
    found = loss(x, target)
    np.testing.assert_allclose(found.output.numpy(), logs.diagonal().numpy(), rtol=1e-5)
    np.testing.assert_allclose(found.loss.item(), -logs.diagonal().mean().item(), rtol=1e-5)
    np.testing.assert_array_equal(loss.predict(x).numpy(), logs.argmax(1).numpy())
    with pytest.raises(sg.OutOfRange, match="the target: got 12, expected from 0 to 11"):
        loss(x[0], sg.tensor(12))
    with pytest.raises(sg.InputError, match="increasing integers from 1 to 11"):
        nn.AdaptiveLogSoftmaxWithLoss(8, 12, [7, 3])


def test_only_lstm_projects_its_states() -> None:
    for make in (lambda: nn.GRU(4, 3, proj_size=2), lambda: nn.LSTM(4, 3, proj_size=3)):
        with pytest.raises(sg.InputError, match=r"for LSTM a number below hidden_size \(3\)"):
            make()
