"""Elementwise rows: a scalar expression for every element, and its derivative."""

from __future__ import annotations

import inspect
import operator
from collections.abc import Callable, Mapping, Sequence
from functools import cache, cached_property
from typing import Any, ClassVar, Final

import numpy as np

from ...dtypes import DTYPES, FLOATS, DType, bool_, int64
from ...errors import DTypeError, ShapeError, SizeNeeded
from ...ir import scalar
from ...ir.arrays.adapter import Array, ArrayAdapter
from ...ir.derivative import derivative
from ...ir.scalar import Expr, const
from ...late_dataclass import dataclass
from ...shapes import (
    Dim,
    Shape,
    Size,
    at_least,
    broadcast,
    differ,
    dim_max,
    dim_min,
    divides,
    equal,
    floordiv,
    holds,
    symbols,
)
from .base import ROWS, Attrs, Row, Shaped, sum_to


@dataclass(frozen=True, kw_only=True, eq=False)
class Elementwise(Row):
    """body: the expression, over compute types; its keyword-only parameters are the op's attributes.

    argument_types: for each argument "T" (the common type) or the name of a fixed dtype. result_type: "T", the name of a dtype, or
    "to" if the attribute `to` decides. domain: the range from which tests sample floats. dims: the same of dimensions,
    for a body that compares what only a run knows.

    A row that says `promote` has a function in `singe.array_api`; another one takes operands of its dtypes only. unchanged: kinds of which each
    element is its own result. bools: the row that computes bools, if it is another one. operator: Python's operator, as in __add__; a
    binary one that gives no bools is reflected, too. standard: the name in the array API standard, if it is another one; "": none.
    """

    declared_by: ClassVar = "body"
    body: Callable[..., Expr]
    argument_types: Sequence[str] = ()
    result_type: str = "T"
    domain: tuple[float, float] = (-4.0, 4.0)
    dims: Callable[..., Dim] | None = None
    unchanged: Sequence[str] = ()
    bools: str = ""
    operator: str = ""
    standard: str | None = None

    @cached_property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of operands that the method takes, in the order of the table of dtypes."""
        own = {*(d.kind for d in self.dtypes), *self.unchanged}
        own |= ({"complex"} if self.complex else set()) | ({"bool"} if self.bools else set())
        own |= {"int", "uint", "float"} if self.promote == "bool" else set()
        own -= {"int", "uint"} if self.promote == "float" else set()
        return tuple(kind for kind in dict.fromkeys(d.kind for d in DTYPES.values()) if kind in own)

    @cached_property
    def arity(self) -> int:
        return sum(p.kind is p.POSITIONAL_OR_KEYWORD for p in self.parameters)

    @cached_property
    def defaults(self) -> dict[str, Any]:
        """The attributes and their defaults."""
        return {p.name: p.default for p in self.parameters if p.kind is p.KEYWORD_ONLY}

    def _kinds(self) -> Sequence[str]:
        return self.argument_types or ("T",) * self.arity

    def infer(self, inputs: Sequence[Shaped], attrs: Attrs) -> tuple[Shape, DType]:
        kinds = self._kinds()
        if len(inputs) != len(kinds):
            raise ShapeError(f"{self.name} takes {len(kinds)} inputs, got {len(inputs)}")
        unknown = attrs.keys() - self.defaults.keys()
        if unknown:
            raise DTypeError(
                f"{self.name} has no attribute {', '.join(sorted(unknown))}; it has {', '.join(self.defaults) or 'none'}"
            )
        common = [x for x, kind in zip(inputs, kinds, strict=True) if kind == "T"]
        self.check_dtypes(common)
        for x, kind in zip(inputs, kinds, strict=True):
            if kind != "T" and x.dtype.name != kind:
                raise DTypeError(f"{self.name}: got {x.dtype}, expected {kind}")
        if len({x.dtype for x in common}) > 1:
            raise DTypeError(
                f"{self.name}: the dtypes {', '.join(x.dtype.name for x in common)} differ; cast them to one"
            )
        return broadcast([x.shape for x in inputs], self.name), self.result([x.dtype for x in inputs], attrs)

    def result(self, dtypes: Sequence[DType], attrs: Attrs) -> DType:
        """The dtype of the output, from the inputs' and the attributes."""
        if self.result_type == "to":
            return attrs["to"]
        return dtypes[self._kinds().index("T")] if self.result_type == "T" else bool_

    def value(self, args: Sequence[Expr], stored: DType, attrs: Attrs) -> Expr:
        """The output element, from input elements of compute types; integers wrap to the output's dtype, `stored`."""
        return scalar.wrap(scalar.cast(self.body(*args, **attrs), stored.compute), stored)

    def run(self, xp: ArrayAdapter, arrays: Sequence[Array], attrs: Attrs) -> Array:
        return xp.elementwise(self, arrays, attrs)

    def run_over_sizes(self, arrays: Sequence[np.ndarray], attrs: Attrs) -> np.ndarray:
        """The op over small integer arrays that hold Sizes, as an object array."""
        return _symbolic(self, arrays, attrs)


def _equal(a: Any, b: Any) -> bool:
    """Lengths are compared with negative numbers, which stand for something else: those of tensors that exist are none."""
    return not (any(isinstance(d, int) and d < 0 for d in (a, b)) and differ(a, b)) and equal(a, b, "equal")


def _less(a: Any, b: Any) -> bool:
    if at_least(a - b, 0):
        return False
    if at_least(b - a, 1):
        return True
    raise SizeNeeded(f"whether {a} is below {b} depends on the run", symbols([a, b]))


def _quotient(a: Any, b: Any) -> Any:
    """The quotient, rounded toward zero as integer division is at run time."""
    if isinstance(a, int) and isinstance(b, int):
        return scalar.div(const(a, int64), const(b, int64)).value
    if divides(a, b) or (at_least(b, 0) and holds(a)):
        return floordiv(a, b)
    if at_least(b, 0):
        return floordiv(dim_max(a, 0), b) - floordiv(dim_max(-a, 0), b)
    raise SizeNeeded(f"{a} / {b} depends on the sign of a size", symbols([a, b]))


def _size(a: Any) -> Any:
    return abs(a) if isinstance(a, int) else dim_max(a, -a)


_SYMBOLIC: Final[Mapping[str, Callable[..., Any]]] = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "div": _quotient, "neg": operator.neg, "abs": _size,
    "min": dim_min, "max": dim_max, "eq": _equal, "lt": _less, "le": lambda a, b: not _less(b, a),
    "and": lambda a, b: a and b, "or": lambda a, b: a or b, "not": operator.not_, "select": lambda c, a, b: a if c else b,
}  # fmt: skip
_LOGIC: Final = ("and", "or", "not")
"""Words that can be evaluated here for bools, but not for the bits of a dimension."""


def _symbolic(row: Elementwise, arrays: Sequence[np.ndarray], attrs: Attrs) -> np.ndarray:
    params = tuple(scalar.var(f"x{i}", bool_ if a.dtype == bool else int64) for i, a in enumerate(arrays))
    e = row.body(*params, **attrs)
    shape = np.broadcast_shapes(*(a.shape for a in arrays))
    whole = [np.broadcast_to(a, shape).ravel().tolist() for a in arrays]
    out = np.empty(int(np.prod(shape)), object)
    for i in range(out.size):
        if row.dims is not None:
            out[i] = row.dims(*(values[i] for values in whole))
            continue

        def step(x: Expr, args: tuple[Any, ...], i: int = i) -> Any:
            if x.word == "const":
                return x.value
            if x.word == "var":
                return whole[params.index(x)][i]
            if x.word == "cast":
                if not x.dtype.is_int:
                    raise SizeNeeded(f"{row.name}: an open size cannot be converted to {x.dtype}", symbols(whole))
                return args[0]
            if x.word not in _SYMBOLIC or (x.word in _LOGIC and x.dtype is not bool_):
                raise SizeNeeded(f"{row.name} cannot be computed with open sizes", symbols(whole))
            return _SYMBOLIC[x.word](*args)

        out[i] = scalar.fold([e], step)[0]
    return out.reshape(shape)


def narrow(values: np.ndarray, to: np.dtype[Any]) -> np.ndarray:
    """An object array of dimensions as plain numbers; unchanged if one of them is symbolic."""
    return values if any(isinstance(v, Size) for v in values.ravel()) else values.astype(to)


def elementwise_vjp(b: Any, row: Elementwise, g: Any, inputs: Sequence[Any], attrs: Attrs) -> list[Any]:
    """The gradient of an elementwise op: its derivative as one more elementwise op, summed over broadcast axes. Inputs that the
    derivative does not read are zeros, so that they are not kept for it."""
    floats = [i for i, x in enumerate(inputs) if x.dtype in FLOATS]
    shape = broadcast([x.shape for x in inputs], row.name)
    g = g if g.shape == shape else b.expand(g, shape=shape)
    out: list[Any] = [None] * len(inputs)
    for i in floats:
        by = derivative_row(row, i)
        *_, given = params = [scalar.var(f"x{k}", x.dtype.compute) for k, x in enumerate((*inputs, g))]
        # The derivative of a sum is the gradient as it is: no op, and no copy of it.
        partial = by.body(*params, **attrs)
        read = set(scalar.postorder([partial]))
        needed = [x if p in read else b.const(0, x.dtype) for x, p in zip(inputs, params, strict=False)]
        same = g.dtype is inputs[i].dtype and partial is given
        out[i] = sum_to(b, g if same else b.apply(by, *needed, g, **attrs), inputs[i].shape)
    return out


@cache
def derivative_row(row: Elementwise, argument: int) -> Elementwise:
    """The op (inputs…, gradient) ↦ gradient of one input."""

    def body(*args: Expr, **attrs: Any) -> Expr:
        params = [scalar.var(f"x{i}", a.dtype) for i, a in enumerate(args)]
        partial = derivative(row.body(*params[:-1], **attrs), [params[argument]], params[-1])[0]
        return scalar.substitute(partial, dict(zip(params, args, strict=True)))

    kinds = tuple(row.argument_types or ("T",) * row.arity)
    parameters = [inspect.Parameter(f"x{i}", inspect.Parameter.POSITIONAL_OR_KEYWORD) for i in range(len(kinds) + 1)]
    parameters += [inspect.Parameter(k, inspect.Parameter.KEYWORD_ONLY, default=v) for k, v in row.defaults.items()]
    body.__signature__ = inspect.Signature(parameters)  # pyright: ignore[reportFunctionMemberAccess]
    return Elementwise(name=f"{row.name}_d{argument}", body=body, argument_types=(*kinds, "T"), dtypes=FLOATS)


def find_row(name: str) -> Row:
    """The row of that name; "NAME_dK" is the derivative of the elementwise row NAME by its argument K."""
    if name in ROWS:
        return ROWS[name]
    base, _, argument = name.rpartition("_d")
    if base and argument.isdigit():
        row = find_row(base)
        if isinstance(row, Elementwise) and int(argument) < row.arity:
            return derivative_row(row, int(argument))
    raise KeyError(f"there is no op named {name!r}")
