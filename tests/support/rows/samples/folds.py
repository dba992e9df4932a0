"""Samples of rows that fold axes or windows."""

from __future__ import annotations

from typing import Any

from singe.dtypes import int32
from singe.ops.folds.window import numbers_of, window_size

from . import Filled, N, S, Sample, index, positive


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

RUNNING = [
    S((5,), axis=0),
    S((3, 4), axis=1, reverse=True),
    S((2, 40, 3), axis=1),
    S((N, 7), axis=0),
    S((6, N), axis=0, reverse=True),
    S((0, 3), axis=0),
    S((3, 1), axis=1),
]

PLACE = [
    S((2, 3, 4), axis=1),
    S((2, 3, 4), axis=-1, last=True),
    S((5,), axis=0),
    S((N, 4), axis=1),
    S((4, N), axis=1, last=True),
    S((0, 3), axis=1),
    S((3, 40), axis=1),
]


def pooled(s: Sample) -> tuple[Any, ...]:
    """The shape of the windows of a sample of pooling."""
    names = ("window", "strides", "dilations", "before", "after")
    return tuple(window_size(*facts) for facts in zip(s.inputs[0], *(s.attrs[k] for k in names), strict=True))


def places(shape: tuple[Any, ...], most: int) -> Filled:
    return index(shape, 0, most, int32)


def numbered(s: Sample) -> dict[str, Any]:
    return {**s.attrs, "numbers": numbers_of(s.attrs["window"])}


CLASSES = [
    S((4, 5), index((4,), 0, 5)),
    S((2, 3, 4), index((2, 4), 0, 3), reduction="none"),
    S((2, 3, 2, 3), index((2, 2, 3), 0, 3), (3,), reduction="sum", ignore_index=1),
    S((4, 3), index((4,), 0, 3), positive(3), ignore_index=2),
    S((N, 3), index((N,), 0, 3), reduction="none", ignore_index=0),
    S((N, 3), index((N,), 0, 3)),
    S((0, 3), index((0,), 0, 1), reduction="none"),
]

SAMPLES: dict[str, list[Sample]] = {
    "reduce_sum": [*REDUCE, *REDUCE_EMPTY, S((3, 40), axes=(1,))],
    "reduce_prod": [*REDUCE, *REDUCE_EMPTY],
    "reduce_max": [*REDUCE, *REDUCE_EMPTY],
    "reduce_min": [*REDUCE, *REDUCE_EMPTY],
    "reduce_mean": REDUCE,
    "softmax": [S((3, 5)), S((2, 3, 4), axis=1), S((N, 4)), S((2, 0)), S((N, 4), axis=0), S((6,))],
    "layer_norm": [
        S((3, 5)),
        S((2, 3, 4), (4,), (4,)),
        S((2, 3, 4), (3, 4), (1, 4), axis=1, epsilon=0.1),
        S((N, 5, 2), (2,), axis=0),
        S((2, N, 4), (4,), (4,)),
        S((0, 3), (3,)),
        S((2, 70), (70,), (70,)),
    ],
    "joint_norm": [S((3, 5)), S((2, 3), (), (4,), (1, 2, 2)), S((0,), (70,)), S((N, 4), (3,))],
    "rms_norm": [
        S((3, 5)),
        S((2, 3, 4), (3, 4), axis=-2),
        S((N, 6), (6,), epsilon=0.1),
        S((N, 3, 2), axis=0),
        S((0, 3)),
    ],
    "log_softmax": [S((3, 5)), S((2, 3, 4), axis=1), S((N, 4)), S((6,), axis=0)],
    "argmax": PLACE,
    "argmin": PLACE,
    "hardmax": [S((3, 5)), S((2, 3, 4), axis=1), S((N, 4)), S((4, N), axis=-1)],
    "nll_loss": CLASSES,
    "cross_entropy": CLASSES,
    "global_average_pool": [S((2, 3, 4, 5)), S((N, 2, 3)), S((1, 2))],
    "global_max_pool": [S((2, 3, 4, 5)), S((N, 2, 3)), S((1, 2))],
    "max_pool": POOL,
    "max_pool_index": [*POOL, *(S(*s.inputs, **s.attrs, column_major=True) for s in POOL[:1] + POOL[4:5])],
    "pool_sum": POOL,
    "pool_place": [S(*s.inputs, **numbered(s)) for s in POOL],
    "pool_pick": [S(*s.inputs, places(pooled(s), 4), **numbered(s)) for s in POOL],
    "unpool_pick": [S(pooled(s), places(pooled(s), 4), sizes=s.inputs[0], **numbered(s)) for s in POOL],
    "unpool_sum": [S(pooled(s), sizes=s.inputs[0], **numbered(s)) for s in POOL],
    "running_sum": RUNNING,
    "running_prod": RUNNING,
    "running_max": RUNNING,
}
