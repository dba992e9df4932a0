"""What every row has, and the open table of rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from functools import cached_property
from inspect import Parameter, signature
from typing import Any, ClassVar, Final, Protocol, TypeAlias

import numpy as np

from ...dtypes import ALL, DType, names
from ...errors import DTypeError
from ...ir.arrays.adapter import Array, ArrayAdapter
from ...ir.scalar import Expr
from ...late_dataclass import dataclass
from ...shapes import Dim, Shape, at_most_one


class Shaped(Protocol):
    """A value of a graph, as rows see it."""

    @property
    def shape(self) -> Shape: ...
    @property
    def dtype(self) -> DType: ...


class RowBuilder(Protocol):
    """Builds nodes. Every row is a method of it: `b.exp(x)`, `b.transpose(x, perm=(1, 0))`."""

    def const(self, value: Any, dtype: DType | None = None) -> Any: ...
    def __getattr__(self, row: str) -> Callable[..., Any]: ...


Read: TypeAlias = Callable[[int, Sequence[Expr]], Expr]
"""read(k, coordinates): the element of input k at these coordinates."""
Attrs: TypeAlias = Mapping[str, Any]
Results: TypeAlias = "Sequence[tuple[Sequence[Dim | None], DType]]"
Vjp: TypeAlias = Callable[..., "Sequence[Any]"]
"""vjp(builder, gradient of the output, inputs, output, **attrs): the gradient of each input, None if it has none."""

WHOLE_RESULT: Final = "its result is a whole number or a truth"
SIZE_RESULTS: Final = "its results are sizes"
"""Reasons of several rows why they have no gradient."""


@dataclass(frozen=True)
class Wgsl:
    """A compute shader that a user wrote for an op; it becomes one dispatch.

    code: WGSL with an entry point `main`, without bindings: these are declared before it. Inputs are read-only arrays
    with the names of the parameters of the function that gives this shader. The result is the array `out`; several are
    `out0`, `out1`, …. groups: the workgroups in x, y, z. sizes: what the code reads as `sizes.NAME`, an i32 each.
    """

    code: str
    groups: Sequence[Dim]
    sizes: Mapping[str, Dim] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, eq=False)
class Row:
    """What all rows have; a row equals itself only. onnx: the ONNX op with exactly this meaning ("domain.Op" outside ONNX's own
    domain). public: whether it is a method of Tensor; a row that serves the compiler, gradients or an importer, or of which another
    method is made, is not. also: other names of the method. reference: ignored; extensions for earlier versions give one.

    along: the method folds the attribute "axes" (axis=, or dim=: one, several, or all; keepdims=, dtype=), or goes along the attribute
    "axis" (axis=, or dim=, dtype=); both take a tensor without axes as a vector of one element. promote: what the elements become
    first: for an elementwise row the operands' common type ("same"), that or float32 if it has no fractions ("float"), or bools, true unless
    they are 0 ("bool"); for one with `along` float32 ("float") or int64 ("sum") in place of integers. numpy: NumPy's function, or its
    name, which computes on the host what `dtypes` lacks: complex numbers with `complex`, and other types of the same kinds.

    tolerance: the error that tests allow, in units in the last place of the result. floor: an absolute error that is
    always allowed. no_gradient: why there is none, for a row over floats whose results do not change smoothly with them (one
    that rounds has a gradient, which is zero). declared_by: the field whose function has the row's inputs and attributes as parameters, after
    `before` others. wgsl: the shader for inputs of these shapes and dtypes, and attributes; None if there is none for them.
    outside: whether a user's function defines it, which may take values from outside, so that it may give others later.
    """

    declared_by: ClassVar[str]
    before: ClassVar[int] = 0

    name: str
    onnx: str | None = None
    public: bool = True
    also: Sequence[str] = ()
    along: str = ""
    promote: str = ""
    numpy: str | Callable[..., Any] = ""
    complex: bool = False
    dtypes: Sequence[DType] = ALL
    vjp: Vjp | None = None
    no_gradient: str = ""
    reference: Callable[..., Any] | None = None
    tolerance: float = 4.0
    floor: float = 1e-6
    doc: str = ""
    wgsl: Callable[..., Wgsl | None] | None = None
    outside: bool = False

    @cached_property
    def parameters(self) -> tuple[Parameter, ...]:
        """The row's inputs in order, then its attributes."""
        return tuple(signature(getattr(self, self.declared_by)).parameters.values())[self.before :]

    def infer(self, inputs: Sequence[Shaped], attrs: Attrs) -> tuple[Shape, DType]:
        """The shape and dtype of the only result; ShapeError or DTypeError if the inputs do not fit."""
        raise NotImplementedError

    def infer_results(self, inputs: Sequence[Shaped], attrs: Attrs) -> Results:
        """The shape and dtype of every result. A dimension is None if only a run can find it."""
        return (self.infer(inputs, attrs),)

    @property
    def portable(self) -> bool:
        """Whether arrays of any library compute it. If not, it takes NumPy's, on the host."""
        return True

    def run(self, xp: ArrayAdapter, arrays: Sequence[Array], attrs: Attrs) -> Any:
        """The op over whole arrays of a library: one array, or a tuple of them if the row has several results."""
        native = xp.native.get(self.name)
        if native is not None:
            found = native(*arrays, **attrs)
            if found is not NotImplemented:
                return found
        evaluate: Callable[..., Any] | None = getattr(self, "evaluate", None)
        if evaluate is None:
            raise NotImplementedError(
                f"{self.name} is no function of arrays: run the rows to which its node is lowered (`Node.lowered`) or whose graphs it owns, "
                "or give the adapter a function in `native`"
            )
        return evaluate(xp, *arrays, **attrs)

    def is_index(self, k: int) -> bool:
        """Whether input k holds indices, counts or flags, and so has a type of its own."""
        return False

    def check_dtypes(self, inputs: Sequence[Shaped]) -> None:
        for x in inputs:
            if x.dtype not in self.dtypes:
                raise DTypeError(f"{self.name}: got {x.dtype}, expected one of {names(self.dtypes)}; cast it first")


ROWS: Final[dict[str, Row]] = {}
"""Every row by name: the open table."""


PROMOTIONS: Final = ("", "same", "float", "bool", "sum")
"""What the field `promote` may say."""


def register(*rows: Row) -> None:
    """Add rows to the table; a name that is already taken, here or of ONNX's, is an error."""
    for row in rows:
        if row.name in ROWS:
            raise ValueError(f"a row named {row.name!r} is already there")
        same = [other.name for other in ROWS.values() if other.onnx == row.onnx] if row.onnx else ()
        if same:
            raise ValueError(f"{row.name}: the row {same[0]!r} is ONNX's {row.onnx!r} already")
        if row.promote not in PROMOTIONS:
            raise ValueError(
                f"{row.name}: got promote={row.promote!r}, expected one of {', '.join(map(repr, PROMOTIONS))}"
            )
        if isinstance(row.numpy, str) and not hasattr(np, row.numpy or "ndarray"):
            raise ValueError(f"{row.name}: NumPy has no {row.numpy!r}; give a function of arrays, or leave it out")
        ROWS[row.name] = row


def as_dtype(b: Any, x: Any, kind: DType) -> Any:
    """The value as another element type; the value itself if it has that type already."""
    return x if x.dtype is kind else b.cast(x, to=kind)


def constants_like(b: Any, x: Any, *values: float) -> tuple[Any, ...]:
    """Scalars of the element type of x."""
    return tuple(b.const(v, x.dtype) for v in values)


def matrix_transpose(b: Any, x: Any) -> Any:
    """The value with its last two axes exchanged."""
    rank = len(x.shape)
    return b.transpose(x, perm=(*range(rank - 2), rank - 1, rank - 2))


def sum_to(b: Any, x: Any, shape: Shape) -> Any:
    """The gradient of broadcasting: the sum over the axes along which `shape` was repeated."""
    if x.shape == shape:
        return x
    extra = len(x.shape) - len(shape)
    axes = (*range(extra), *(i + extra for i, d in enumerate(shape) if at_most_one(d) and x.shape[i + extra] != d))
    return b.reshape(b.reduce_sum(x, axes=axes), shape=shape)
