"""Samples of rows that are products."""

from __future__ import annotations

from typing import Any

import numpy as np

from singe.dtypes import bool_, int8, int32, uint8

from . import Filled, N, S, Sample, positive


def conv(
    spaces: int,
    strides: Any = None,
    dilations: Any = None,
    before: Any = None,
    after: Any = None,
    group: int = 1,
    **more: Any,
) -> dict[str, Any]:
    ones, zeros = (1,) * spaces, (0,) * spaces
    return {
        "strides": strides or ones,
        "dilations": dilations or ones,
        "before": before or zeros,
        "after": after or zeros,
        "group": group,
        **more,
    }


def matrices(*shape: Any) -> Filled:
    """Matrices with pivots off the diagonal that are far from singular."""

    def make(x: np.ndarray) -> np.ndarray:
        return x / 4 + 3 * np.eye(x.shape[-1])[::-1]

    return Filled((*shape, shape[-1]), make=make)


DOT = [
    S((3, 4), (4, 5)),
    S((2, 3, 4), (2, 4, 5)),
    S((2, 1, 3, 4), (5, 4, 2)),
    S((N, 3, 4), (4, 2)),
    S((N, 4), (4, 2)),
    S((2, 0), (0, 3)),
    S((0, 3), (3, 2)),
    S((2, 0, 3), (3, 2)),
    S((3, 1), (1, 3)),
]
CONV_LAST = [
    S((2, 6, 5, 3), (3, 2, 3, 4), **conv(2)),
    S((1, 7, 7, 4), (3, 3, 1, 4), **conv(2, (2, 2), None, (1, 1), (1, 1), 4)),
    S((N, 8, 6, 4), (5, 3, 1, 4), **conv(2, (2, 1), None, (2, 0), (1, 2), 4)),
    S((1, 6, 7, 2), (3, 3, 1, 4), **conv(2, None, (2, 2), (2, 1), (2, 3), 2)),
    S((1, 6, 7, 6), (3, 2, 2, 6), **conv(2, (1, 2), (1, 3), (0, 1), (2, 2), 3)),
    S((N, 6, 6, 3), (3, 3, 3, 5), **conv(2, (2, 2), None, (0, 0), (1, 1))),
    S((2, 9, 3), (4, 3, 2), **conv(1, (3,), (2,), (1,), (2,))),
    S((1, 3, 4, 3, 2), (2, 3, 2, 2, 3), **conv(3, None, None, (1, 0, 1), (0, 1, 0))),
    S((1, 5, 5, 3), (1, 1, 3, 4), **conv(2, (2, 2))),
    S((0, 5, 5, 3), (3, 3, 3, 4), **conv(2)),
    S((0, 5, 5, 4), (3, 3, 1, 4), **conv(2, group=4)),
    S((1, 0, 4, 2), (3, 3, 2, 4), **conv(2, None, None, (2, 1), (1, 1))),
    S((1, 2, 2, 1), (3, 3, 1, 1), **conv(2, None, None, (2, 2), (2, 2))),
    S((1, 4, 4, 2), (5, 5, 1, 2), **conv(2, (3, 3), None, (4, 4), (4, 4), 2)),
]


def stored(*shape: int) -> tuple[Filled, Filled]:
    """Weights in their stored form, and scales that keep results near 1."""
    return Filled(shape, uint8, 1, 256), Filled(shape[-1:], make=lambda x: np.abs(x) / 512 + 0.001)


def conv_int8(spaces: int, *facts: Any) -> dict[str, Any]:
    return {k: v for k, v in conv(spaces, *facts).items() if k != "group"}


DOT_INT8 = [
    S((3, 4), *stored(4, 5)),
    S((2, 3, 7), *stored(7, 9)),
    S((N, 3, 4), *stored(4, 2)),
    S((N, 21), *stored(21, 40)),
    S((1, 33), *stored(33, 35)),
    S((2, 0), *stored(0, 3)),
    S((0, 3), *stored(3, 2)),
]


def blocks(depth: int, n: int, bits: int, block: int, one: bool = False) -> tuple[Filled, Filled, Filled]:
    """Packed weights, their scales, and their zeros or one of them."""
    zero = () if one else (-(-depth // block), n)
    scales = Filled((-(-depth // block), n), make=lambda x: np.abs(x) / 2**bits + 0.001)
    return (
        Filled((-(-depth * bits // 32), n), int32, -(2**31), 2**31),
        scales,
        Filled(zero, make=lambda x: x + 2.0 ** (bits - 1)),
    )


DOT_BLOCKS = [
    S((3, 64), *blocks(64, 24, 4, 32), bits=4, block=32),
    S((1, 100), *blocks(100, 40, 4, 32, one=True), bits=4, block=32),
    S((2, 3, 37), *blocks(37, 9, 4, 16), bits=4, block=16),
    S((N, 48), *blocks(48, 33, 8, 16), bits=8, block=16),
    S((N, 3, 70), *blocks(70, 16, 4, 128, one=True), bits=4, block=128),
    S((9, 21), *blocks(21, 20, 8, 8), bits=8, block=8),
    S((0, 16), *blocks(16, 2, 4, 16), bits=4, block=16),
    S((2, 0), *blocks(0, 3, 4, 16), bits=4, block=16),
]
CONV_INT8 = [
    S((2, 6, 5, 3), *stored(3, 2, 3, 4), **conv_int8(2)),
    S((N, 6, 6, 3), *stored(3, 3, 3, 5), **conv_int8(2, (2, 2), None, (0, 0), (1, 1))),
    S((1, 7, 7, 8), *stored(3, 3, 8, 12), **conv_int8(2, None, (2, 1), (2, 1), (2, 1))),
    S((2, 9, 3), *stored(4, 3, 2), **conv_int8(1, (3,), (2,), (1,), (2,))),
    S((1, 3, 4, 3, 2), *stored(2, 3, 2, 2, 3), **conv_int8(3, None, None, (1, 0, 1), (0, 1, 0))),
    S((1, 5, 5, 3), *stored(1, 1, 3, 4), **conv_int8(2, (2, 2))),
    S((0, 5, 5, 3), *stored(3, 3, 3, 4), **conv_int8(2)),
    S((1, 0, 4, 2), *stored(3, 3, 2, 4), **conv_int8(2, None, None, (2, 1), (1, 1))),
]


def whole(*shape: Any) -> Filled:
    """Whole numbers in float32: bytes less 100."""
    return Filled(shape, make=lambda x: np.clip(np.rint(x * 90), -100, 155))


DOT_INTEGERS = [
    S(whole(3, 4), Filled((4, 5), int8, -128, 128)),
    S(whole(2, 3, 7), Filled((7, 9), int8, -128, 128)),
    S(whole(N, 3, 4), Filled((4, 2), int8, -128, 128)),
    S(whole(N, 21), Filled((21, 40), int8, -128, 128)),
    S(whole(1, 600), Filled((600, 35), int8, -128, 128)),
    S(whole(2, 0), Filled((0, 3), int8, -128, 128)),
    S(whole(0, 3), Filled((3, 2), int8, -128, 128)),
]
CONV_INTEGERS = [S(whole(*s.inputs[0]), Filled(s.inputs[1].shape, int8, -128, 128), **s.attrs) for s in CONV_INT8]
CONV = [
    S((2, 3, 6, 5), (4, 3, 3, 2), **conv(2)),
    S((2, 3, 6, 5), (4, 3, 3, 2), (4,), **conv(2, (2, 1), None, (1, 0), (1, 1))),
    S((N, 4, 7, 7), (4, 1, 3, 3), (4,), **conv(2, None, None, (1, 1), (1, 1), 4)),
    S((1, 4, 9), (6, 2, 3), **conv(1, (2,), (2,), (1,), (3,), 2)),
    S((N, 3, 4, 4), (2, 3, 1, 1), **conv(2)),
    S((1, 1, 3, 3, 4), (2, 1, 2, 2, 2), **conv(3)),
]


def transposed(spaces: int, sizes: Any, **facts: Any) -> dict[str, Any]:
    return {k: v for k, v in conv(spaces, **facts).items() if k != "after"} | {"sizes": sizes}


CONV_TRANSPOSE = [
    S((1, 2, 3, 3), (2, 3, 3, 3), **transposed(2, (5, 5))),
    S((2, 4, 3, 4), (4, 1, 3, 2), (2,), **transposed(2, (6, 11), strides=(2, 3), before=(1, 0), group=2)),
    S((1, 2, 4), (2, 2, 2), **transposed(1, (12,), strides=(3,), dilations=(2,))),
    S((1, 2, 4), (2, 2, 3), **transposed(1, (9,), strides=(2,), before=(1,))),
    S((N, 2, 3), (2, 1, 2), **transposed(1, (10,), strides=(3,))),
    S((1, 4, 2, 2, 2), (4, 2, 2, 1, 2), (4,), **transposed(3, (2, 3, 3), strides=(1, 2, 1), before=(1, 0, 0), group=2)),
]


def sees(*shape: Any) -> Filled:
    """A mask of bools."""
    return Filled(shape, bool_, 0, 2)


ATTENTION = [
    S((2, 3, 4), (2, 5, 4), (2, 5, 3)),
    S((2, 4, 3, 4), (2, 2, 5, 4), (2, 2, 5, 3), scale=0.3),
    S((2, 4, 3, 2), (2, 1, 4, 2), (2, 1, 4, 2), (4, 3, 4), softcap=2.0),
    S((2, 2, 3, 4), (2, 2, 3, 4), (2, 2, 3, 4), causal=True),
    S((2, 2, 3, 2), (2, 2, 5, 2), (2, 2, 5, 2), sees(2, 1, 3, 5), causal=True, past=2),
    S((1, 2, 3, 2), (1, 2, 3, 2), (1, 2, 3, 2), sees(3, 3)),
    S((2, 6, 2), (2, N, 2), (2, N, 2), (6, N)),
    S((N, 2, 3, 2), (N, 2, 4, 2), (N, 2, 4, 2), causal=True, past=1),
    S((1, 4, N, 2), (1, 2, N, 2), (1, 2, N, 2), causal=True),
    S((2, 3, 4), (2, 0, 4), (2, 0, 3)),
    S((3, 4), (5, 4), (5, 2)),
    S((2, 4, 3, 4), (2, 2, 7, 4), (2, 2, 7, 3), (3, 5), causal=True, past=2, keys=5),
]

SAMPLES: dict[str, list[Sample]] = {
    "attention": ATTENTION,
    "eight_bit_rows": [S((2, 3, 64)), S((N, 32)), S((0, 32))],
    "rotary_embedding": [
        S((2, 3, 6), (3, 3), (3, 3)),
        S((2, 3, 6), (2, 1, 2), (2, 1, 2)),
        S((N, 2, 3, 4), (3, 2), (3, 2), interleaved=True),
        S((2, N, 5), (N, 2), (N, 2), interleaved=True),
    ],
    "swiglu": [S((3, 5), (3, 5)), S((N, 4), (N, 4), alpha=1.702)],
    "dot": DOT,
    "matmul": [*DOT, S((4,), (4, 3)), S((2, 3, 4), (4,)), S((4,), (4,)), S((4,), (2, 4, 3))],
    "gemm": [
        S((3, 4), (4, 5)),
        S((4, 3), (5, 4), (5,), alpha=2.0, beta=3.0, trans_a=True, trans_b=True),
        S((N, 4), (4, 5), (1, 5)),
        S((3, 4), (4, 5), (), beta=0.0),
    ],
    "conv_last": CONV_LAST,
    "conv": CONV,
    "dot_blocks": DOT_BLOCKS,
    "dot_blocks_int16": DOT_BLOCKS,
    "dot_blocks_int8": [s for s in DOT_BLOCKS if s.attrs["bits"] == 4],
    "dot_int8": DOT_INT8,
    "conv_int8": CONV_INT8,
    "dot_integers": DOT_INTEGERS,
    "conv_integers": CONV_INTEGERS,
    "conv_transpose": CONV_TRANSPOSE,
    "batch_norm": [
        S((2, 3, 4, 4), (3,), (3,), (3,), positive(3)),
        S((N, 3), (3,), (3,), (3,), positive(3), epsilon=0.1),
        S((N, 2, 5), (2,), (2,), (2,), positive(2)),
    ],
    "einsum": [
        S((2, 3), (3, 4), equation="ij,jk"),
        S((2, 3, 4), (2, 4, 5), equation="bij, bjk -> bki"),
        S((3,), (4,), equation="i,j->ji"),
        S((3, 3), equation="ii"),
        S((2, 3, 3), equation="...ii->...i"),
        S((4, 3, 4), equation="jij->i"),
        S((2, 3), (2, 3), equation="ij,ij->"),
        S((2, 3), equation="ij->ji"),
        S((2, 3, 4), equation="...j->..."),
        S((5, 2, 3, 4), (2, 4, 3), equation="...ij,...jk"),
        S((5, 2, 3, 4), (1, 4, 3), equation="...ij,...jk->k..."),
        S((2, 3), (4, 3, 5), (2, 5), equation="bn,anm,bm->ba"),
        S((2, 3, 1), (1, 4), equation="abc,cd->ad"),
        S((2, 3, 4, 5), (5, 3, 4, 6), equation="abcd,dbce->ea"),
        S((), (2, 3), equation=",ij->j"),
        S((0, 3), (3, 2), equation="ij,jk"),
        S((N, 3), (3, 2), equation="ij,jk->ki"),
        S((N, 3, 4), (N, 4), equation="bij,bj"),
        S((2, N), (N, N), equation="ij,jj->i"),
    ],
    "det": [
        S(matrices(3)),
        S(matrices(2, 2, 4)),
        S(matrices(1)),
        S(matrices(N, 2)),
    ],
    "inverse": [
        S(matrices(3)),
        S(matrices(2, 2, 4)),
        S(matrices(N, 2)),
    ],
    "cdist": [
        S((4, 3), (5, 3)),
        S((2, 1, 3), (2, 4, 3), squared=True),
        S((4, 1), (0, 1)),
        S((N, 3), (5, 3)),
        S((3, N), (N, N)),
    ],
}
