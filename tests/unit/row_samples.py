"""The inputs and attributes with which every row is tested, in a table by the row's name.

An input is a shape (filled with values of the dtype under test) or a Filled shape; N is the symbolic batch size.
Elementwise rows need no entry: they are sampled by arity, and ATTRIBUTES names their attributes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from singe.dtypes import DTYPES, DType, int32, int64, uint8
from singe.ops import ROWS, Elementwise, Opaque, Region, Result, Row
from singe.shapes import Size, known, size

N = size("N")
BATCH = 3


@dataclass(frozen=True)
class Filled:
    """An input with particular values: integers below `high` of a fixed dtype,
    or the result of `make` for random floats."""

    shape: tuple[Any, ...]
    dtype: DType | None = None
    low: int = 0
    high: int = 1
    make: Callable[[np.ndarray], np.ndarray] | None = None


@dataclass(frozen=True)
class Sample:
    """One use of a row. floats_only: skip integer dtypes,
    since truncating values close to whole numbers is ambiguous."""

    inputs: tuple[Any, ...]
    attrs: dict[str, Any]
    floats_only: bool = False

    def __str__(self) -> str:
        return f"{self.inputs} {self.attrs}"


def S(*inputs: Any, **attrs: Any) -> Sample:
    return Sample(inputs, attrs)


def index(shape: tuple[Any, ...], low: int, high: int, dtype: DType = int64) -> Filled:
    return Filled(shape, dtype, low, high)


def positive(*shape: int) -> Filled:
    return Filled(shape, make=lambda x: np.abs(x) + 0.5)


def pool(
    window: Any, strides: Any = None, dilations: Any = None, before: Any = None, after: Any = None, **more: Any
) -> dict[str, Any]:
    ones, zeros = (1,) * len(window), (0,) * len(window)
    return {
        "window": window,
        "strides": strides or ones,
        "dilations": dilations or ones,
        "before": before or zeros,
        "after": after or zeros,
        **more,
    }


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


REDUCE = [
    S((2, 3, 4), axes=(1,)),
    S((2, 3, 4), axes=(-1, 0)),
    S((2, 3), axes=()),
    S((), axes=()),
    S((N, 4), axes=(1,)),
    S((N, 4), axes=(0,)),
    S((0, 3), axes=(1,)),
    S((2, 1, 5), axes=(0, 1, 2)),
]
REDUCE_EMPTY = [S((0, 3), axes=(0,)), S((2, 0), axes=(1,))]
POOL = [
    S((1, 2, 6, 5), **pool((1, 1, 2, 2), (1, 1, 2, 2))),
    S((2, 1, 7), **pool((1, 1, 3), (1, 1, 2), before=(0, 0, 1), after=(0, 0, 2))),
    S((N, 7, 6, 2), **pool((1, 3, 2, 1), (1, 2, 1, 1), (1, 2, 3, 1), (0, 2, 0, 0), (0, 1, 2, 0))),
    S((1, 3, 4), **pool((1, 1, 4))),
    S((1, 1, 3, 3, 3), **pool((1, 1, 2, 2, 2), before=(0, 0, 1, 0, 0))),
    S((0, 2, 4), **pool((1, 1, 2))),
    S((2, 0, 4), **pool((1, 1, 2))),
]
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


def int8(*shape: int) -> tuple[Filled, Filled]:
    """Weights in their stored form, and scales that keep results near 1."""
    return Filled(shape, uint8, 1, 256), Filled(shape[-1:], make=lambda x: np.abs(x) / 512 + 0.001)


def conv_int8(spaces: int, *facts: Any) -> dict[str, Any]:
    return {k: v for k, v in conv(spaces, *facts).items() if k != "group"}


DOT_INT8 = [
    S((3, 4), *int8(4, 5)),
    S((2, 3, 7), *int8(7, 9)),
    S((N, 3, 4), *int8(4, 2)),
    S((N, 21), *int8(21, 40)),
    S((1, 33), *int8(33, 35)),
    S((2, 0), *int8(0, 3)),
    S((0, 3), *int8(3, 2)),
]
CONV_INT8 = [
    S((2, 6, 5, 3), *int8(3, 2, 3, 4), **conv_int8(2)),
    S((N, 6, 6, 3), *int8(3, 3, 3, 5), **conv_int8(2, (2, 2), None, (0, 0), (1, 1))),
    S((1, 7, 7, 8), *int8(3, 3, 8, 12), **conv_int8(2, None, (2, 1), (2, 1), (2, 1))),
    S((2, 9, 3), *int8(4, 3, 2), **conv_int8(1, (3,), (2,), (1,), (2,))),
    S((1, 3, 4, 3, 2), *int8(2, 3, 2, 2, 3), **conv_int8(3, None, None, (1, 0, 1), (0, 1, 0))),
    S((1, 5, 5, 3), *int8(1, 1, 3, 4), **conv_int8(2, (2, 2))),
    S((0, 5, 5, 3), *int8(3, 3, 3, 4), **conv_int8(2)),
    S((1, 0, 4, 2), *int8(3, 3, 2, 4), **conv_int8(2, None, None, (2, 1), (1, 1))),
]
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


def resized(
    shape: tuple[Any, ...], sizes: tuple[Any, ...], scales: tuple[float, ...] | None = None, **options: Any
) -> Sample:
    attrs = {"sizes": sizes, "scales": scales or tuple(o / d for o, d in zip(sizes, shape, strict=True)), **options}
    return Sample((shape,), attrs, floats_only="mode" in options)


CONV_TRANSPOSE = [
    S((1, 2, 3, 3), (2, 3, 3, 3), **transposed(2, (5, 5))),
    S((2, 4, 3, 4), (4, 1, 3, 2), (2,), **transposed(2, (6, 11), strides=(2, 3), before=(1, 0), group=2)),
    S((1, 2, 4), (2, 2, 2), **transposed(1, (12,), strides=(3,), dilations=(2,))),
    S((1, 2, 4), (2, 2, 3), **transposed(1, (9,), strides=(2,), before=(1,))),
    S((N, 2, 3), (2, 1, 2), **transposed(1, (10,), strides=(3,))),
    S((1, 4, 2, 2, 2), (4, 2, 2, 1, 2), (4,), **transposed(3, (2, 3, 3), strides=(1, 2, 1), before=(1, 0, 0), group=2)),
]

COORDINATES = (
    "half_pixel",
    "half_pixel_symmetric",
    "pytorch_half_pixel",
    "align_corners",
    "asymmetric",
    "tf_half_pixel_for_nn",
)
RESIZE = [
    *(
        resized((1, 2, 3, 4), (1, 2, 6, 8), nearest=n, coordinates=c)
        for n in ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")
        for c in COORDINATES[:5]
    ),
    *(resized((5, 4), (3, 7), nearest="floor", coordinates=c) for c in COORDINATES),
    *(resized((5, 4), (8, 3), mode="linear", coordinates=c) for c in COORDINATES),
    *(resized((4, 5), (7, 3), mode="cubic", coordinates=c) for c in COORDINATES[:4]),
    resized((4, 4), (3, 3), (0.8, 0.8), mode="linear"),
    resized((4, 4), (3, 3), (0.8, 0.8), mode="linear", coordinates="half_pixel_symmetric"),
    resized((8, 6), (3, 4), mode="linear", antialias=True),
    resized((8, 6), (3, 4), mode="cubic", antialias=True),
    resized((4, 4), (8, 3), mode="cubic", exclude_outside=True, cubic=-0.5),
    resized((4, 4), (1, 1), mode="linear", coordinates="pytorch_half_pixel"),
    resized(
        (4, 5), (3, 3), mode="linear", coordinates="tf_crop_and_resize", roi=(0.4, -0.2, 0.6, 1.2), extrapolation=10.0
    ),
    resized((2, 3), (2, 3), mode="linear"),
    S((N, 2, 3), sizes=(N, 4, 6), scales=(1.0, 2.0, 2.0)),
    resized((N, 2, 3), (N, 5, 2), (1.0, 2.5, 0.75), mode="linear"),
    S((N, 2), sizes=(N * 2, 2), scales=(2.0, 1.0), coordinates="asymmetric", nearest="floor"),
]

RUNNING = [
    S((5,), axis=0),
    S((3, 4), axis=1, reverse=True),
    S((2, 40, 3), axis=1),
    S((N, 7), axis=0),
    S((6, N), axis=0, reverse=True),
    S((0, 3), axis=0),
    S((3, 1), axis=1),
]
SAMPLES: dict[str, list[Sample]] = {
    "reduce_sum": [*REDUCE, *REDUCE_EMPTY, S((3, 40), axes=(1,))],
    "reduce_prod": [*REDUCE, *REDUCE_EMPTY],
    "reduce_max": [*REDUCE, *REDUCE_EMPTY],
    "reduce_min": [*REDUCE, *REDUCE_EMPTY],
    "reduce_mean": REDUCE,
    "softmax": [S((3, 5)), S((2, 3, 4), axis=1), S((N, 4)), S((2, 0)), S((N, 4), axis=0), S((6,))],
    "log_softmax": [S((3, 5)), S((2, 3, 4), axis=1), S((N, 4)), S((6,), axis=0)],
    "global_average_pool": [S((2, 3, 4, 5)), S((N, 2, 3)), S((1, 2))],
    "global_max_pool": [S((2, 3, 4, 5)), S((N, 2, 3)), S((1, 2))],
    "reshape": [
        S((2, 3, 4), shape=(4, 6)),
        S((), shape=(1, 1)),
        S((1,), shape=()),
        S((0, 3), shape=(3, 0)),
        S((2, 0, 3), shape=(0,)),
        S((6,), shape=(1, 2, 3)),
        S((5, 7), shape=(7, 5)),
        S((N, 3, 4), shape=(N, 12)),
        S((N, 12), shape=(N, 4, 3)),
        S((N, 4), shape=(4, N)),
        S((2, N, 6), shape=(N * 3, 4)),
    ],
    "transpose": [
        S((2, 3, 4), perm=(2, 0, 1)),
        S((3, 4), perm=(1, 0)),
        S((), perm=()),
        S((0, 2), perm=(1, 0)),
        S((N, 3, 2), perm=(0, 2, 1)),
        S((N, 3), perm=(1, 0)),
    ],
    "expand": [
        S((3, 1), shape=(3, 4)),
        S((), shape=(2, 3)),
        S((1,), shape=(0,)),
        S((2,), shape=(3, 1, 2)),
        S((N, 1), shape=(2, N, 4)),
    ],
    "slice": [
        S((5, 6), starts=(1, 5), steps=(1, -1), sizes=(3, 6)),
        S((7, 6), starts=(6, 0), steps=(-3, 2), sizes=(3, 3)),
        S((5,), starts=(2,), steps=(1,), sizes=(0,)),
        S((), starts=(), steps=(), sizes=()),
        S((N, 6), starts=(0, 1), steps=(1, 4), sizes=(N, 2)),
        S((N, 2), starts=(N - 1, 0), steps=(-1, 1), sizes=(N, 2)),
        S((N, 2), starts=(1, 0), steps=(1, 1), sizes=(N - 1, 2)),
    ],
    "pad": [
        S((3, 4), (), before=(1, 0), after=(0, 2), mode="constant"),
        S((3, 4), (), before=(2, 1), after=(1, 3), mode="reflect"),
        S((3, 4), (), before=(2, 1), after=(5, 0), mode="edge"),
        S((3, 4), (), before=(4, 1), after=(5, 9), mode="wrap"),
        S((4,), (), before=(2,), after=(3,), mode="reflect"),
        S((0, 2), (), before=(1, 1), after=(2, 0), mode="constant"),
        S((), (), before=(), after=(), mode="constant"),
        S((N, 2), (), before=(0, 1), after=(1, 1), mode="constant"),
        S((N, 3), (), before=(0, 1), after=(0, 2), mode="reflect"),
        S((N, 3), (), before=(1, 1), after=(2, 1), mode="edge"),
    ],
    "concat": [
        S((2, 3), (2, 1), (2, 4), axis=1),
        S((2, 3), (1, 3), axis=0),
        S((2, 3), axis=-1),
        S((0, 3), (2, 3), (0, 3), axis=0),
        S((0,), (0,), axis=0),
        S((N, 3), (N, 2), axis=1),
        S((N, 3), (2, 3), (N, 3), axis=0),
    ],
    "arange": [S((), (), count=7), S((), (), count=0), S((), (), count=1)],
    "gather": [
        S((5, 3), index((4,), -5, 5), axis=0),
        S((2, 5, 3), index((2, 2), 0, 5, int32), axis=1),
        S((2, 5), index((), -5, 5), axis=-1),
        S((6,), index((2, 3), 0, 6, uint8), axis=0),
        S((3, 2), index((0,), 0, 1), axis=0),
        S((N, 4), index((3,), -4, 4), axis=1),
        S((4, 2), index((N,), -4, 4), axis=0),
        S((N, 2), index((4,), -BATCH, BATCH), axis=0),
    ],
    "max_pool": POOL,
    "max_pool_index": [*POOL, *(S(*s.inputs, **s.attrs, column_major=True) for s in POOL[:1] + POOL[4:5])],
    "pool_sum": POOL,
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
    "dot_int8": DOT_INT8,
    "conv_int8": CONV_INT8,
    "conv_transpose": CONV_TRANSPOSE,
    "batch_norm": [
        S((2, 3, 4, 4), (3,), (3,), (3,), positive(3)),
        S((N, 3), (3,), (3,), (3,), positive(3), epsilon=0.1),
        S((N, 2, 5), (2,), (2,), (2,), positive(2)),
    ],
    "resize": RESIZE,
    "running_sum": RUNNING,
    "running_prod": RUNNING,
    "running_max": RUNNING,
    "update_slice": [
        S((5, 3), (2, 3), index((), 0, 4), index((), 0, 1)),
        S((6,), (6,), index((), 0, 9)),
        S((6,), (4,), index((), -3, 0, int32)),
        S((N, 4), (1, 4), index((), 0, BATCH), index((), 0, 1)),
        S((4, N), (4, N), index((), 0, 1), index((), 0, 1)),
        S((3, 2), (0, 2), index((), 0, 1), index((), 0, 1)),
    ],
    "scatter_elements": [
        S((5, 3), (1, 3), index((1, 3), -5, 5), axis=0),
        S((2, 6), (2, 1), index((2, 1), 0, 6, int32), axis=1),
        S((N, 4), (N, 1), index((N, 1), -4, 4), axis=1),
    ],
    "scatter_nd": [
        S((5, 3), (1, 3), index((1, 1), -5, 5)),
        S((4, 4, 2), (1, 2), index((1, 2), 0, 4, int32)),
        S((N, 3), (1,), index((1, 2), 0, BATCH)),
    ],
}
NOT_SAMPLED = (Opaque, Region, Result)
"""Kinds of row that have separate tests, because of several results, graphs, or shapes found in mid-run."""
RECURRENT = ("lstm", "gru", "rnn")
"""Rows of several results: see test_recurrent.py."""
SAMPLED: list[Row] = [row for row in ROWS.values() if not isinstance(row, NOT_SAMPLED) and row.name not in RECURRENT]

SHAPES: dict[int, list[tuple[Any, ...]]] = {
    1: [((2, 3, 5),), ((),), ((0,),), ((300,),), ((N, 4),)],
    2: [((40, 3), (40, 3)), ((2, 3), ()), ((3, 1), (1, 4)), ((), ()), ((0, 2), (2,)), ((N, 3), (3,)), ((N, 1), (N, 4))],
    3: [((4, 3), (4, 3), (4, 3)), ((3, 1), (4,), ()), ((), (), ()), ((N, 1), (3,), (N, 3)), ((0,), (1,), ())],
}
ATTRIBUTES: dict[str, list[dict[str, Any]]] = {
    "cast": [{"to": DTYPES[name]} for name in ("bool", "uint8", "int32", "int64", "float16", "float32")],
    "hard_sigmoid": [{}, {"alpha": 1 / 6, "beta": 0.4}],
    "leaky_relu": [{}, {"alpha": 0.3}],
    "elu": [{}, {"alpha": 1.7}],
}


def samples_of(row: Row) -> list[Sample]:
    """All samples of a row."""
    if isinstance(row, Elementwise) and row.name not in SAMPLES:
        return [Sample(shapes, attrs) for attrs in ATTRIBUTES.get(row.name, [{}]) for shapes in SHAPES[row.arity]]
    return SAMPLES[row.name]


def numbers(value: Any, batch: int = BATCH) -> Any:
    """Shapes and attributes with the batch size as a number."""
    if isinstance(value, (tuple, list)):
        return tuple(numbers(v, batch) for v in value)
    return known(value, {"N": batch}) if isinstance(value, Size) else value


def shape_of(given: Any) -> tuple[Any, ...]:
    return given.shape if isinstance(given, Filled) else given


def random_values(
    rng: np.random.Generator, shape: Sequence[int], dtype: DType, domain: tuple[float, float]
) -> np.ndarray:
    """Floats within a domain, some of them whole numbers or halves;
    small integers, and some at the ends of their range."""
    if dtype.is_float:
        values = rng.uniform(*domain, shape)
        halves = np.clip(np.round(values * 2) / 2, *domain)
        return np.where(rng.random(shape) < 0.1, halves, values).astype(dtype.numpy)
    if dtype.name == "bool":
        return rng.random(shape) < 0.5
    info = np.iinfo(dtype.numpy)
    small = rng.integers(max(info.min, -9), 10, shape)
    ends = rng.choice(np.array([info.min, info.max, info.max // 3], dtype.numpy), shape)
    return np.where(rng.random(shape) < 0.1, ends, small.astype(dtype.numpy))


def arrays_of(
    sample: Sample, rng: np.random.Generator, dtype: DType, row: Row, takes: Sequence[str] = ()
) -> list[np.ndarray]:
    """Values for a sample's inputs, within the row's domain."""
    domain = getattr(row, "domain", (-4.0, 4.0))
    arrays = []
    for k, given in enumerate(sample.inputs):
        shape = numbers(shape_of(given))
        kind = DTYPES[takes[k]] if takes and takes[k] != "T" else dtype
        if isinstance(given, Filled) and given.dtype is not None:
            arrays.append(rng.integers(given.low, given.high, shape).astype(given.dtype.numpy))
        else:
            values = random_values(rng, shape, kind, domain)
            arrays.append(given.make(values).astype(kind.numpy) if isinstance(given, Filled) and given.make else values)
    return arrays
