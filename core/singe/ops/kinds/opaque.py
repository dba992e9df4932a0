"""Rows that are not a loop nest over one output: whole-array functions, updates, running folds, regions, results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final

import numpy as np

from ...dtypes import DType
from ...errors import DTypeError, ShapeError
from ...ir.scalar import Expr
from ...shapes import Shape, axis_of
from .base import Attrs, Results, Row, Shaped

SIZES: Final = "found"
"""The attribute that names the sizes that only a run can find. For every dimension of all results in turn it has the
name of such a size, or "". The Builder chooses the names."""


OPEN_RESULT: Final = "the shape of its result depends on data"
GIVES_SHAPES: Final = "shapes depend on the values that it reads"
"""Reasons for `Opaque.host`."""


def without_sizes(attrs: Attrs) -> Attrs:
    """A node's attributes without SIZES."""
    return {k: v for k, v in attrs.items() if k != SIZES}


@dataclass(frozen=True, kw_only=True, eq=False)
class Opaque(Row):
    """results: the shape and dtype of each result, from the inputs and attributes; None for a dimension that depends on
    data. whole: the results over whole arrays; a tuple if there are several.

    A target may have a function for the row (`Target.print_opaque`); otherwise the op is a step on the host. host: why the
    op is one by design, whatever the target.
    """

    declared_by: ClassVar = "results"
    results: Callable[..., Results]
    whole: Callable[..., Any]
    index_inputs: Sequence[int] = ()  # inputs that hold indices, counts or flags, and so may have another dtype
    host: str = ""

    def infer_results(self, inputs: Sequence[Shaped], attrs: Attrs) -> Results:
        data = [x for i, x in enumerate(inputs) if not self.is_index(i)]
        self.check_dtypes(data)
        return self.results(*inputs, **without_sizes(attrs))

    def is_index(self, k: int) -> bool:
        return k in self.index_inputs

    def array(self, *arrays: np.ndarray, **attrs: Any) -> Any:
        return self.whole(*arrays, **without_sizes(attrs))


@dataclass(frozen=True, kw_only=True, eq=False)
class Update(Row):
    """Inputs (x, part, …): x with some of its elements replaced by those of `part`.

    where: maps the coordinates of an element of `part` to its coordinates in x, which must be within bounds;
    read(k, coordinates) gives elements of the inputs. No two elements of `part` may go to the same place. check: raises
    an error if the inputs do not fit. into: writes `part` into a whole array, in place.
    """

    declared_by: ClassVar = "check"
    where: Callable[..., Sequence[Expr]]
    check: Callable[..., None]
    into: Callable[..., None]

    def infer(self, inputs: Sequence[Shaped], attrs: Attrs) -> tuple[Shape, DType]:
        x, part, *rest = inputs
        self.check_dtypes(inputs[:2])
        if x.dtype is not part.dtype:
            raise DTypeError(f"{self.name}: the dtypes {x.dtype} and {part.dtype} differ; cast them to one")
        for k, index in enumerate(rest):
            if not index.dtype.is_int:
                raise DTypeError(f"{self.name}: input {k + 2} is {index.dtype}, expected an integer type")
        self.check(*inputs, **attrs)
        return x.shape, x.dtype

    def is_index(self, k: int) -> bool:
        return k >= 2

    def array(self, *arrays: np.ndarray, **attrs: Any) -> np.ndarray:
        out = np.array(arrays[0])
        self.into(out, *arrays[1:], **attrs)
        return out


@dataclass(frozen=True, kw_only=True, eq=False)
class Running(Row):
    """A fold with `word` along the attribute `axis` that keeps every step; with `reverse` it begins at the end."""

    declared_by: ClassVar = "whole"
    word: str
    whole: Callable[..., np.ndarray] = field(kw_only=True)

    def infer(self, inputs: Sequence[Shaped], attrs: Attrs) -> tuple[Shape, DType]:
        (x,) = inputs
        self.check_dtypes(inputs)
        axis_of(attrs["axis"], len(x.shape), self.name)
        return x.shape, x.dtype

    def array(self, *arrays: np.ndarray, **attrs: Any) -> np.ndarray:
        return self.whole(*arrays, **attrs)


@dataclass(frozen=True, kw_only=True, eq=False)
class Region(Row):
    """An op that has Graphs among its attributes. results: what they are, like Row.infer_results.

    The graphs read outer values only through the inputs of the node.
    """

    declared_by: ClassVar = "results"
    public: bool = False
    results: Callable[..., Results]

    def infer_results(self, inputs: Sequence[Shaped], attrs: Attrs) -> Results:
        return self.results(*inputs, **without_sizes(attrs))


@dataclass(frozen=True, kw_only=True, eq=False)
class Result(Row):
    """Result number `index` of a node that has several."""

    public: bool = False

    def infer(self, inputs: Sequence[Any], attrs: Attrs) -> tuple[Shape, DType]:
        (node,) = inputs
        index = attrs["index"]
        if len(node.results) == 1:
            raise ShapeError(f"result: {node!r} has only one value: use the node itself")
        if not 0 <= index < len(node.results):
            raise ShapeError(f"result: got index {index}, but {node!r} has {len(node.results)} results")
        return node.results[index]

    def array(self, *arrays: Any, **attrs: Any) -> np.ndarray:
        return arrays[0][attrs["index"]]
