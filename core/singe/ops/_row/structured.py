"""Rows whose elements are had by coordinates (View, Nest), and rows that are other rows put together (Composite)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ...dtypes import DType
from ...errors import DTypeError
from ...ir.scalar import Expr
from ...shapes import Shape
from .base import Attrs, Row, Shaped


@dataclass(frozen=True, kw_only=True)
class View(Row):
    """shape: the output's, from the inputs and attributes; value: an element, by its coordinates.

    whole: over whole arrays. forward, where each input element goes to exactly one output element and keeps its
    neighbours' order (reshape, transpose): coordinates in the input ↦ coordinates in the output.
    """

    shape: Callable[..., Shape]
    value: Callable[..., Expr]
    whole: Callable[..., np.ndarray]
    forward: Callable[..., Sequence[Expr]] | None = None
    index_inputs: Sequence[int] = ()  # inputs that hold indices, and so may have another dtype

    def infer(self, inputs: Sequence[Shaped], attrs: Attrs) -> tuple[Shape, DType]:
        data = [x for i, x in enumerate(inputs) if i not in self.index_inputs]
        self.check_dtypes(data)
        if len({x.dtype for x in data}) > 1:
            raise DTypeError(
                f"{self.name}: the dtypes {', '.join(x.dtype.name for x in data)} differ; cast them to one"
            )
        return self.shape(*inputs, **attrs), inputs[0].dtype

    def array(self, *arrays: np.ndarray, **attrs: Any) -> np.ndarray:
        return self.whole(*arrays, **attrs)


@dataclass(frozen=True)
class Folds:
    """A Nest at one output element: the extents of the inner loops, the folds over them, and the element from their results.

    folds: pairs (word, value) with value(inner variables, accumulators so far) an Expr.
    """

    inner: Shape
    folds: Sequence[tuple[str, Callable[[Sequence[Expr], Sequence[Expr]], Expr]]]
    result: Callable[[Sequence[Expr]], Expr] = field(default=lambda accumulators: accumulators[0])


@dataclass(frozen=True, kw_only=True)
class Nest(Row):
    """nest: the Folds of an output element, by its coordinates; routine: the template's kind, where one fits, and facts
    its facts from the inputs and attributes (None: use the plain loop nest). takes: the dtype of each input, where they
    differ; else all are of one of `dtypes`. windows: of each axis, where every element is in one window at most and
    each window within the input."""

    shape: Callable[..., Shape]
    nest: Callable[..., Folds]
    whole: Callable[..., np.ndarray]
    gives: DType | None = None
    takes: Sequence[DType] = ()
    routine: str | None = None
    facts: Callable[..., Attrs | None] = field(default=lambda *inputs, **attrs: {})
    windows: Callable[..., Sequence[int] | None] = field(default=lambda **attrs: None)

    def infer(self, inputs: Sequence[Shaped], attrs: Attrs) -> tuple[Shape, DType]:
        if self.takes:
            for k, (x, kind) in enumerate(zip(inputs, self.takes, strict=True)):
                if x.dtype is not kind:
                    raise DTypeError(f"{self.name}: input {k} is {x.dtype}, expected {kind}; cast it first")
            return self.shape(*inputs, **attrs), self.gives or inputs[0].dtype
        self.check_dtypes(inputs)
        if len({x.dtype for x in inputs}) > 1:
            raise DTypeError(
                f"{self.name}: the dtypes {', '.join(x.dtype.name for x in inputs)} differ; cast them to one"
            )
        return self.shape(*inputs, **attrs), self.gives or inputs[0].dtype

    def array(self, *arrays: np.ndarray, **attrs: Any) -> np.ndarray:
        return self.whole(*arrays, **attrs)


@dataclass(frozen=True, kw_only=True)
class Composite(Row):
    """lower: the op as other rows, built with the builder it is given."""

    lower: Callable[..., Any]
    domain: tuple[float, float] = (-4.0, 4.0)
