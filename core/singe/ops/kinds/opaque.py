"""Rows that are not a loop nest over one output: whole-array functions, updates, running folds, regions, results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Final

from ...dtypes import DType
from ...errors import DTypeError, ShapeError
from ...ir.arrays.adapter import Array, ArrayAdapter
from ...ir.scalar import Expr
from ...late_dataclass import dataclass
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
    data. evaluate: the results over whole arrays of any library, from an ArrayAdapter, the inputs and attributes; a tuple if there are
    several. Or on_host: the results over NumPy's arrays, from the inputs and attributes, for a row that stays on the host: of strings,
    of data that decide shapes, of a library.

    A target may have a function for the row (`Target.print_opaque`); otherwise the op is a step on the host. host: why the
    op is one by design, whatever the target.
    """

    declared_by: ClassVar = "results"
    results: Callable[..., Results]
    evaluate: Callable[..., Any] | None = None
    on_host: Callable[..., Any] | None = None
    index_inputs: Sequence[int] = ()  # inputs that hold indices, counts or flags, and so may have another dtype
    host: str = ""

    def infer_results(self, inputs: Sequence[Shaped], attrs: Attrs) -> Results:
        data = [x for i, x in enumerate(inputs) if not self.is_index(i)]
        self.check_dtypes(data)
        return self.results(*inputs, **without_sizes(attrs))

    def is_index(self, k: int) -> bool:
        return k in self.index_inputs

    @property
    def portable(self) -> bool:
        return self.on_host is None

    def run(self, xp: ArrayAdapter, arrays: Sequence[Array], attrs: Attrs) -> Any:
        if self.on_host is None:
            return super().run(xp, arrays, without_sizes(attrs))
        return self.on_host(*arrays, **without_sizes(attrs))


@dataclass(frozen=True, kw_only=True, eq=False)
class Update(Row):
    """Inputs (x, part, …): x with some of its elements replaced by those of `part`.

    where: maps the coordinates of an element of `part` to its coordinates in x, which must be within bounds;
    read(k, coordinates) gives elements of the inputs. No two elements of `part` may go to the same place. check: raises
    an error if the inputs do not fit. evaluate: x with `part` put into it, by one `put` of the ArrayAdapter, which overwrites x where that
    is not needed again.
    """

    declared_by: ClassVar = "check"
    where: Callable[..., Sequence[Expr]]
    check: Callable[..., None]
    evaluate: Callable[..., Array]

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


@dataclass(frozen=True, kw_only=True, eq=False)
class Running(Row):
    """A fold with `word` along the attribute `axis` that keeps every step; with `reverse` it begins at the end."""

    declared_by: ClassVar = "evaluate"
    before: ClassVar = 1  # the ArrayAdapter
    word: str

    def infer(self, inputs: Sequence[Shaped], attrs: Attrs) -> tuple[Shape, DType]:
        (x,) = inputs
        self.check_dtypes(inputs)
        axis_of(attrs["axis"], len(x.shape), self.name)
        return x.shape, x.dtype

    def evaluate(self, xp: ArrayAdapter, x: Array, axis: int, reverse: bool = False) -> Array:
        return xp.cumulate(self.word, x, axis, reverse)


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

    def run(self, xp: ArrayAdapter, arrays: Sequence[Any], attrs: Attrs) -> Array:
        return arrays[0][attrs["index"]]
