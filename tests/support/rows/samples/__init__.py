"""The inputs and attributes with which rows are tested: a table for each family of rows, by the row's name.

An input is a shape (filled with values of the dtype under test) or a Filled shape; N is the symbolic batch size.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from singe.dtypes import DType, int64
from singe.shapes import size

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
