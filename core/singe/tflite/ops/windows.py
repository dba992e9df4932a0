"""What slides a window over the two spatial axes: its steps and its padding, and pools."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ...dtypes import float32
from ...graph import Builder, Node
from ...ops import as_dtype
from ...shapes import Dim, Shape, ceildiv, dim_max, floordiv, product
from ._call import Numbers, TfliteCall, activated, op

MAX_PADDED: Final = 2**31 - 1
"""The most elements that an input may have with its padding: kernels count in int32."""


def steps(call: TfliteCall) -> tuple[int, int]:
    """The strides along height and width."""
    strides = call.option("stride_h"), call.option("stride_w")
    if not all(1 <= s <= 1 << 16 for s in strides):
        raise call.fail(f"strides are {strides}; expected 1 or more")
    return strides


def padding(
    call: TfliteCall, space: Sequence[Dim], window: Sequence[int], strides: Sequence[int], dilations: Sequence[int]
) -> tuple[Shape, Shape]:
    """The padding before and after each spatial axis. Of SAME padding the upper end has what is left over."""
    if not all(1 <= k <= 1 << 16 for k in window):
        raise call.fail(f"the window is {tuple(window)}; expected lengths of 1 or more")
    totals = (
        [same_padding(*facts) for facts in zip(space, window, strides, dilations, strict=True)]
        if call.is_same_padded
        else [0, 0]
    )
    before = tuple(floordiv(t, 2) for t in totals)
    padded = product(d + t for d, t in zip(space, totals, strict=True))
    if isinstance(padded, int) and padded > MAX_PADDED:
        raise call.fail(f"the padded input has {padded} places; at most {MAX_PADDED} are supported")
    return before, tuple(t - lo for t, lo in zip(totals, before, strict=True))


def same_padding(d: Dim, window: int, stride: int, dilation: int = 1) -> Dim:
    """The padding that gives a window ceil(d / stride) positions."""
    return dim_max((ceildiv(d, stride) - 1) * stride + dilation * (window - 1) + 1 - d, 0)


class PoolFacts(dict[str, Shape]):
    """The attributes of the pooling rows, for every axis."""

    def __init__(self, window: Shape, strides: Shape, before: Shape, after: Shape) -> None:
        super().__init__(
            window=(1, *window, 1), strides=(1, *strides, 1), dilations=(1, 1, 1, 1), before=(0, *before, 0), after=(0, *after, 0)
        )  # fmt: skip

    @property
    def is_padded(self) -> bool:
        return any((*self["before"], *self["after"]))


def pool_facts(call: TfliteCall, x: Node) -> PoolFacts:
    window = call.option("window_h"), call.option("window_w")
    strides = steps(call)
    before, after = padding(call, x.shape[1:3], window, strides, (1, 1))
    return PoolFacts(window, strides, before, after)


@op("MAX_POOL_2D", numbers=Numbers.STORED)
def _max_pool(call: TfliteCall) -> Node:
    x = call.ranked(0, 4)
    return call.b.max_pool(x, **pool_facts(call, x))


def _counts(b: Builder, x: Node, facts: PoolFacts) -> Node:
    """How many elements each window covers: padding does not count."""
    if not facts.is_padded:
        return b.const(float(facts["window"][1] * facts["window"][2]), float32)  # pyright: ignore[reportArgumentType]
    return b.pool_sum(b.expand(b.const(1.0, float32), shape=(1, *x.shape[1:3], 1)), **facts)


@op("AVERAGE_POOL_2D", numbers=Numbers.OWN)
def _average_pool(call: TfliteCall) -> Node:
    """Of integers the mean is rounded to the nearest one, away from 0 where two are equally near."""
    b, x = call.b, call.ranked(0, 4)
    facts = pool_facts(call, x)
    counts = _counts(b, x, facts)
    sums = b.pool_sum(as_dtype(b, x, float32), **facts)
    if x.dtype.is_float:
        return activated(call, as_dtype(b, b.div(sums, counts), x.dtype), None)
    half = b.floor(b.mul(counts, b.const(0.5, float32)))
    away = b.where(b.less(sums, b.const(0.0, float32)), b.neg(half), half)
    return activated(call, b.cast(b.trunc(b.div(b.add(sums, away), counts)), to=x.dtype), call.scale(0))


@op("L2_POOL_2D")
def _l2_pool(call: TfliteCall) -> Node:
    b, x = call.b, call.ranked(0, 4)
    facts = pool_facts(call, x)
    return b.sqrt(b.div(b.pool_sum(b.mul(x, x), **facts), _counts(b, x, facts)))
