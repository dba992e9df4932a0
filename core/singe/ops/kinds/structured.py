"""Rows that define an element by its coordinates (View, Nest), and rows composed of other rows (Composite)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field
from typing import Any, ClassVar

from ...dtypes import DType
from ...errors import DTypeError
from ...ir.arrays.adapter import Array
from ...ir.scalar import Expr
from ...late_dataclass import dataclass
from ...shapes import Shape
from .base import Attrs, Row, Shaped


@dataclass(frozen=True, kw_only=True, eq=False)
class View(Row):
    """shape: the output's shape, from the inputs and attributes. value: an output element, by its coordinates. evaluate:
    the same over whole arrays, from an ArrayAdapter, the inputs and attributes.

    forward: maps coordinates in the input to coordinates in the output. Only rows that move each input element to
    exactly one output element and reverse no axis have it (reshape, transpose). work: about how many scalar operations
    choose or compute an element, from the inputs and attributes. shares: whether the output is the memory of the first input,
    under its own shape.
    """

    declared_by: ClassVar = "shape"
    shape: Callable[..., Shape]
    value: Callable[..., Expr]
    evaluate: Callable[..., Array]
    forward: Callable[..., Sequence[Expr]] | None = None
    work: Callable[..., int] = field(default=lambda *inputs, **attrs: 0)
    index_inputs: Sequence[int] = ()  # inputs that hold indices, and so may have another dtype
    shares: bool = False

    def infer(self, inputs: Sequence[Shaped], attrs: Attrs) -> tuple[Shape, DType]:
        data = [x for i, x in enumerate(inputs) if not self.is_index(i)]
        self.check_dtypes(data)
        if len({x.dtype for x in data}) > 1:
            raise DTypeError(
                f"{self.name}: the dtypes {', '.join(x.dtype.name for x in data)} differ; cast them to one"
            )
        return self.shape(*inputs, **attrs), inputs[0].dtype

    def is_index(self, k: int) -> bool:
        return k in self.index_inputs


@dataclass(frozen=True)
class Folds:
    """How a Nest computes one output element. inner: the extents of the inner loops. folds: pairs (word, value), where
    value(inner variables, accumulators so far) is an Expr. result: the element, from the accumulators of all folds."""

    inner: Shape
    folds: Sequence[tuple[str, Callable[[Sequence[Expr], Sequence[Expr]], Expr]]]
    result: Callable[[Sequence[Expr]], Expr] = field(default=lambda accumulators: accumulators[0])


@dataclass(frozen=True, kw_only=True, eq=False)
class Nest(Row):
    """nest: the Folds of an output element, by its coordinates. evaluate: as for View. routine: the kind of Routine, if there is a template;
    facts: its facts, from the inputs and attributes (None: use the plain loop nest). argument_types: the dtype of each input, if
    they differ; otherwise all have the same one of `dtypes`. windows: the window's length along each axis, if windows
    do not overlap and lie within the input; otherwise None. over_axes: whether it folds its only input along the axes of the
    attribute `axes`, which get length 1."""

    declared_by: ClassVar = "shape"
    shape: Callable[..., Shape]
    nest: Callable[..., Folds]
    evaluate: Callable[..., Array]
    result_type: DType | None = None
    argument_types: Sequence[DType] = ()
    routine: str | None = None
    facts: Callable[..., Attrs | None] = field(default=lambda *inputs, **attrs: {})
    windows: Callable[..., Sequence[int] | None] = field(default=lambda **attrs: None)
    over_axes: bool = False
    index_inputs: Sequence[int] = ()  # inputs that hold indices, and so may have another dtype

    def infer(self, inputs: Sequence[Shaped], attrs: Attrs) -> tuple[Shape, DType]:
        if self.argument_types:
            for k, (x, kind) in enumerate(zip(inputs, self.argument_types, strict=True)):
                if x.dtype is not kind:
                    raise DTypeError(f"{self.name}: input {k} is {x.dtype}, expected {kind}; cast it first")
            return self.shape(*inputs, **attrs), self.result_type or inputs[0].dtype
        data = [x for k, x in enumerate(inputs) if not self.is_index(k)]
        self.check_dtypes(data)
        if len({x.dtype for x in data}) > 1:
            raise DTypeError(
                f"{self.name}: the dtypes {', '.join(x.dtype.name for x in data)} differ; cast them to one"
            )
        return self.shape(*inputs, **attrs), self.result_type or inputs[0].dtype

    def is_index(self, k: int) -> bool:
        return k in self.index_inputs


@dataclass(frozen=True, kw_only=True, eq=False)
class Composite(Row):
    """lower: the op as other rows, built with the builder it is given. function: targets may have a function for the whole
    op (`Target.print_opaque`). Arrays run what it is lowered to, unless the library has a native function for it."""

    declared_by: ClassVar = "lower"
    before: ClassVar = 1  # the builder
    lower: Callable[..., Any]
    function: bool = False
    domain: tuple[float, float] = (-4.0, 4.0)
