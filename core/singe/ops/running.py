"""Rows that fold along an axis and keep every step: running sums, products and maxima."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..dtypes import NUMBERS, dtype
from ..ir import scalar
from ..ir.scalar import COMPUTE
from . import _reference as reference
from ._row import Running, register


def _whole(word: str) -> Callable[..., np.ndarray]:
    function: Any = scalar.NUMPY[word]

    def whole(x: np.ndarray, axis: int, reverse: bool = False) -> np.ndarray:
        wide = scalar.convert(x, COMPUTE[dtype(x.dtype)].numpy)
        wide = np.flip(wide, axis) if reverse else wide
        out = function.accumulate(wide, axis=axis, dtype=wide.dtype)
        return np.ascontiguousarray(scalar.convert(np.flip(out, axis) if reverse else out, x.dtype))

    return whole


def _sum_vjp(b: Any, g: Any, inputs: Sequence[Any], y: Any, axis: int, reverse: bool = False) -> list[Any]:
    return [b.running_sum(g, axis=axis, reverse=not reverse)]


register(
    Running(name="running_sum", doc="the sum of all elements up to each one along an axis", word="add", whole=_whole("add"),
            dtypes=NUMBERS, vjp=_sum_vjp, reference=reference.running(np.cumsum), tolerance=64, floor=1e-5),
    Running(name="running_prod", doc="the product of all elements up to each one along an axis", word="mul", whole=_whole("mul"),
            dtypes=NUMBERS, reference=reference.running(np.cumprod), tolerance=64, floor=1e-5),
    Running(name="running_max", doc="the largest element up to each one along an axis", word="max", whole=_whole("max"),
            dtypes=NUMBERS, reference=reference.running(np.maximum.accumulate)),
)  # fmt: skip
