"""Gradients of layers: what record_grads.py records of PyTorch, and test_grads.py compares."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

import numpy as np


class Case(NamedTuple):
    """The name of a layer, its arguments, and its inputs: shapes of floats, arrays of integers, or tuples of these.
    spread: the width of the range of the floats. training: whether it is in training mode."""

    layer: str
    arguments: tuple[Any, ...]
    inputs: tuple[Any, ...]
    options: Mapping[str, Any] = {}
    spread: float = 3.0
    training: bool = False


FLAT, LINE, PICTURE, SOLID = (3, 5), (2, 4, 7), (2, 4, 6, 5), (1, 4, 5, 4, 6)
BY_RANK: Final = {1: LINE, 2: PICTURE, 3: SOLID}
TOKENS: Final = np.array([[1, 4, 1], [0, 3, 4]])
PLAIN: Final[Mapping[str, tuple[tuple[Any, ...], Mapping[str, Any]]]] = {
    **dict.fromkeys(("ReLU", "ReLU6", "Sigmoid", "SiLU", "Mish", "GELU", "SELU", "Tanh", "Softplus", "Softsign"), ((), {})),
    **dict.fromkeys(("Tanhshrink", "Hardswish", "Hardsigmoid", "Hardtanh", "LogSigmoid", "Identity", "Flatten"), ((), {})),
    "ELU": ((0.7,), {}), "CELU": ((0.7,), {}), "LeakyReLU": ((0.2,), {}), "PReLU": ((5,), {}), "RReLU": ((), {}),
    "GLU": ((0,), {}), "Softmax": ((1,), {}), "Softmin": ((1,), {}), "LogSoftmax": ((0,), {}), "Softshrink": ((0.4,), {}),
    "Hardshrink": ((0.6,), {}), "Threshold": ((0.3, 2.0), {}),
}  # fmt: skip


def _spatial() -> Iterator[tuple[str, Case]]:
    for rank, shape in BY_RANK.items():
        halves, threes = (2,) * rank, (3,) * rank
        yield f"conv {rank}d", Case(f"Conv{rank}d", (4, 6, threes), (shape,), {"padding": 1})
        yield (
            f"conv {rank}d with steps",
            Case(f"Conv{rank}d", (4, 3, halves), (shape,), {"stride": 2, "dilation": 2, "padding": 1}),
        )
        yield (
            f"conv {rank}d in groups",
            Case(f"Conv{rank}d", (4, 8, threes), (shape,), {"groups": 4, "bias": False, "padding": 1}),
        )
        yield f"conv {rank}d to points", Case(f"Conv{rank}d", (4, 3, 1), (shape,))
        yield f"transposed conv {rank}d", Case(f"ConvTranspose{rank}d", (4, 3, threes), (shape,))
        yield (
            f"transposed conv {rank}d with steps",
            Case(
                f"ConvTranspose{rank}d",
                (4, 6, threes),
                (shape,),
                {"stride": 2, "padding": 1, "output_padding": 1, "groups": 2},
            ),
        )
        yield f"max pool {rank}d", Case(f"MaxPool{rank}d", (2,), (shape,))
        yield f"max pool {rank}d, overlapping", Case(f"MaxPool{rank}d", (3, 2, 1), (shape,), {"ceil_mode": True})
        yield f"mean pool {rank}d", Case(f"AvgPool{rank}d", (2,), (shape,))
        yield (
            f"mean pool {rank}d, overlapping",
            Case(f"AvgPool{rank}d", (3, 2, 1), (shape,), {"count_include_pad": False}),
        )
        yield f"power pool {rank}d", Case(f"LPPool{rank}d", (2, 2), (shape,))
        yield f"adaptive mean {rank}d", Case(f"AdaptiveAvgPool{rank}d", (2,), (shape,))
        yield f"adaptive max {rank}d", Case(f"AdaptiveMaxPool{rank}d", (2,), (shape,))
        for kind in ("Zero", "Reflection", "Replication", "Circular"):
            yield f"{kind.lower()} pad {rank}d", Case(f"{kind}Pad{rank}d", ((1, 2) * rank,), (shape,))
        yield f"constant pad {rank}d", Case(f"ConstantPad{rank}d", ((2, 0) * rank, 1.5), (shape,))
        yield f"batch norm {rank}d", Case(f"BatchNorm{rank}d", (4,), (shape,))
        yield f"instance norm {rank}d", Case(f"InstanceNorm{rank}d", (4,), (shape,), {"affine": True})


def _recurrent() -> Iterator[tuple[str, Case]]:
    steps, state = (4, 2, 3), (1, 2, 5)
    for kind in ("LSTM", "GRU", "RNN"):
        first = (state, state) if kind == "LSTM" else state
        cell = ((2, 5), (2, 5)) if kind == "LSTM" else (2, 5)
        yield kind, Case(kind, (3, 5), (steps,))
        yield f"{kind} of a state", Case(kind, (3, 5), (steps, first), {"bias": False})
        yield (
            f"{kind} of two layers",
            Case(kind, (3, 4), (steps,), {"num_layers": 2, "bidirectional": True, "batch_first": True}),
        )
        yield f"{kind} cell", Case(f"{kind}Cell", (3, 5), ((2, 3), cell))


_SMALL: Final = {"dropout": 0.0, "batch_first": True}
CASES: Final[dict[str, Case]] = {
    **{name: Case(name, arguments, ((4, 5),), options) for name, (arguments, options) in PLAIN.items()},
    "GELU by tanh": Case("GELU", (), (FLAT,), {"approximate": "tanh"}),
    "softmax of pictures": Case("Softmax2d", (), (PICTURE,)),
    "linear": Case("Linear", (5, 4), (FLAT,)),
    "linear without bias": Case("Linear", (7, 3), (LINE,), {"bias": False}),
    "bilinear": Case("Bilinear", (5, 3, 4), (FLAT, (3, 3))),
    "embedding": Case("Embedding", (6, 4), (TOKENS,)),
    "embedding with padding": Case("Embedding", (6, 4), (TOKENS,), {"padding_idx": 1}, training=True),
    **{f"embedding bag {m}": Case("EmbeddingBag", (6, 4), (TOKENS,), {"mode": m}) for m in ("mean", "sum", "max")},
    "layer norm": Case("LayerNorm", ((4, 7),), (LINE,)),
    "rms norm": Case("RMSNorm", (7,), (LINE,)),
    "group norm": Case("GroupNorm", (2, 4), (PICTURE,)),
    "local response": Case("LocalResponseNorm", (3,), (PICTURE,), {"alpha": 0.5}),
    "cosine similarity": Case("CosineSimilarity", (), (FLAT, FLAT)),
    "pairwise distance": Case("PairwiseDistance", (), (FLAT, FLAT)),
    "pairwise distance of order 3": Case("PairwiseDistance", (3.0,), (FLAT, FLAT)),
    "pixel shuffle": Case("PixelShuffle", (2,), (PICTURE,)),
    "pixel unshuffle": Case("PixelUnshuffle", (2,), ((2, 3, 4, 6),)),
    "channel shuffle": Case("ChannelShuffle", (2,), (PICTURE,)),
    "unfold": Case("Unfold", ((2, 3),), (PICTURE,), {"stride": 2, "padding": 1}),
    "fold": Case("Fold", ((5, 6), (2, 3)), ((2, 12, 8),), {"padding": (0, 0), "stride": (1, 1), "dilation": (1, 2)}),
    "unflatten": Case("Unflatten", (1, (2, 2)), (LINE,)),
    **{f"upsample {mode}": Case("Upsample", (), (PICTURE,), {"scale_factor": 2, "mode": mode})
       for mode in ("nearest", "bilinear", "bicubic")},
    "upsample to a size": Case("Upsample", (), (PICTURE,), {"size": (7, 9), "mode": "bilinear", "align_corners": True}),
    "upsample nearest": Case("UpsamplingNearest2d", (), (PICTURE,), {"size": (9, 7)}),
    "upsample bilinear 2d": Case("UpsamplingBilinear2d", (), (PICTURE,), {"scale_factor": 2}),
    "attention": Case("MultiheadAttention", (8, 2), ((2, 3, 8), (2, 5, 8), (2, 5, 8)), _SMALL),
    "encoder layer": Case("TransformerEncoderLayer", (8, 2, 12), ((2, 3, 8),), _SMALL),
    "encoder layer, norm first": Case("TransformerEncoderLayer", (8, 2, 12), ((2, 3, 8),), {**_SMALL, "norm_first": True, "activation": "gelu"}),
    "decoder layer": Case("TransformerDecoderLayer", (8, 2, 12), ((2, 3, 8), (2, 4, 8)), _SMALL),
    "transformer": Case("Transformer", (8, 2, 1, 1, 12), ((2, 3, 8), (2, 4, 8)), _SMALL),
    **dict(_spatial()),
    **dict(_recurrent()),
}  # fmt: skip


def values(case: Case) -> tuple[Any, ...]:
    """The inputs. Floats are distinct, so that none is at a kink or a tie."""
    rng = np.random.default_rng(len(case.layer))

    def made(given: Any) -> Any:
        if isinstance(given, np.ndarray):
            return given
        if isinstance(given[0], tuple):
            return tuple(map(made, given))
        count = int(np.prod(given))
        return ((rng.permutation(count) + 0.37) / count - 0.5).reshape(given).astype(np.float32) * np.float32(
            case.spread
        )

    return tuple(map(made, case.inputs))


def weights(shapes: Mapping[str, tuple[int, ...]]) -> dict[str, np.ndarray]:
    """Parameters of these shapes."""
    rng = np.random.default_rng(5)
    return {name: rng.uniform(-0.7, 0.9, shape).astype(np.float32) for name, shape in sorted(shapes.items())}


def seed(shape: tuple[int, ...]) -> np.ndarray:
    """The factors of a result's elements in the number that is differentiated."""
    return np.sin(np.arange(int(np.prod(shape))) * 0.7 + 0.3).reshape(shape).astype(np.float32)
