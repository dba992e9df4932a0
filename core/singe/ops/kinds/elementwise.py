"""Elementwise rows: a scalar expression for every element, its derivative, and how it runs over whole arrays."""

from __future__ import annotations

import inspect
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from typing import Any, ClassVar, Final

import numpy as np

from ...dtypes import DTYPES, FLOATS, DType, bool_, int64, widened
from ...dtypes import dtype as dtype_of
from ...errors import DTypeError, ShapeError, SizeNeeded
from ...ir import scalar
from ...ir.arrays import convert
from ...ir.derivative import derivative
from ...ir.scalar import Expr, const
from ...shapes import Dim, Shape, Size, at_least, broadcast, differ, dim_max, dim_min, divides, equal, floordiv, symbols
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

    def array(self, *arrays: np.ndarray, **attrs: Any) -> np.ndarray:
        return self.array_over(arrays, (), attrs)

    def array_over(
        self, arrays: Sequence[np.ndarray], spent: Sequence[int], attrs: Attrs, into: np.ndarray | None = None
    ) -> np.ndarray:
        """Like `array`, but it may overwrite the inputs at the positions `spent`, and `into`, which has the result's shape
        and type. The result never shares memory with another input."""
        calls = self._calls_for(arrays, attrs)
        if calls is None:
            return _symbolic(self, arrays, attrs)
        if calls.plain:
            wide, owned = arrays, [False] * len(arrays)
            for i in spent:
                owned[i] = True
        else:
            wide = [widened(a) if a.dtype.names else convert(a, to) for a, to in zip(arrays, calls.takes, strict=True)]
            owned = [i in spent or w is not a for i, (w, a) in enumerate(zip(wide, arrays, strict=True))]
        result = np.asarray(calls.run(wide, owned, into))
        if result.dtype != calls.gives:
            result = convert(result, calls.gives)
        shape = arrays[0].shape if arrays else ()
        borrowed = False
        for i, a in enumerate(arrays):  # a generator would take as long as the arithmetic of a small array
            if a.shape != shape:
                shape = np.broadcast_shapes(shape, a.shape)
            borrowed = borrowed or (result is a and i not in spent)
        return np.broadcast_to(result, shape).copy() if borrowed or result.shape != shape else result

    def _calls_for(self, arrays: Sequence[np.ndarray], attrs: Attrs) -> _Calls | None:
        """The calls for arrays of these types, None if they hold sizes. Without attributes the types alone are the key, since
        this is asked for each op of a run, which for a small array takes as long as its arithmetic."""
        kinds = tuple([a.dtype for a in arrays])
        known = None if attrs else self._by_types.get(kinds)
        if known is not None:
            return known
        if any(kind.hasobject and not kind.names for kind in kinds):
            return None
        given = tuple(attrs.items())
        found = _calls(self, tuple(map(dtype_of, kinds)), given, scalar.exact(given))
        if not attrs:
            self._by_types[kinds] = found
        return found

    @cached_property
    def _by_types(self) -> dict[tuple[np.dtype[Any], ...], _Calls]:
        return {}


@dataclass(frozen=True)
class _Calls:
    """An expression as calls of functions on whole arrays. Values are numbered: parameters, then constants, then results."""

    takes: Sequence[np.dtype[Any]]
    plain: bool  # whether all arguments have these types as they are
    gives: np.dtype[Any]
    constants: Sequence[Any]
    steps: Sequence[
        tuple[Callable[..., Any], bool, tuple[int, ...], tuple[int, ...]]
    ]  # function, whether it is a ufunc, its arguments, those of them that are not needed again
    result: int
    writes_type: bool  # whether the last function gives elements of the type that the op gives

    def run(self, params: Sequence[np.ndarray], owned: list[bool], into: np.ndarray | None) -> Any:
        """The value. Owned arrays, which include temporaries, are overwritten once they are not needed again; the last
        function writes to `into`, if it gives elements of that type."""
        values: list[Any] = [*params, *self.constants]
        owned = [*owned, *[False] * len(self.constants)]
        for function, universal, places, last in self.steps:
            args = [values[i] for i in places]
            out = None
            if universal:
                if into is not None and len(values) == self.result and self.writes_type:
                    out = into
                else:
                    for i in last:
                        if owned[i] and _holds(values[i], args):
                            out = values[i]
                            break
            value = function(*args) if out is None else function(*args, out=out)
            values.append(value)
            owned.append(isinstance(value, np.ndarray) and value.ndim > 0)
        return values[self.result]


def _holds(out: np.ndarray, args: Sequence[Any]) -> bool:
    """Whether `out` has the shape of a ufunc's result. Some arguments may broadcast; all have the type of `out`."""
    shape = out.shape
    return all(
        a is out or not a.shape or a.shape == shape or np.broadcast_shapes(a.shape, shape) == shape for a in args
    )


@lru_cache(maxsize=4096)
def _calls(row: Elementwise, dtypes: tuple[DType, ...], attrs: tuple[tuple[str, Any], ...], exact: Any) -> _Calls:
    """`exact` is a key of the attributes: the cache must not take 0.0 for -0.0."""
    params = tuple(scalar.var(f"x{i}", d.compute) for i, d in enumerate(dtypes))
    given = dict(attrs)
    gives = row.result(dtypes, given)
    e = scalar.unrounded(row.value(params, gives, given), gives)
    order = scalar.postorder([e])
    constants = [x for x in order if x.word == "const"]
    number = {x: i for i, x in enumerate((*params, *constants))}
    steps = []
    final = {a: x for x in order for a in x.args}  # the last step that reads each value
    for x in order:
        if x.args:
            number[x] = len(params) + len(constants) + len(steps)
            last = {number[a] for a in x.args if final[a] is x and a.dtype is x.dtype}
            function = scalar.function(x)
            steps.append((function, isinstance(function, np.ufunc), tuple(number[a] for a in x.args), tuple(last)))
    values = [x.dtype.numpy.type(x.value) for x in constants]
    takes = [d.compute.numpy for d in dtypes]
    plain = all(d is d.compute and not d.numpy.names for d in dtypes)
    return _Calls(takes, plain, gives.numpy, values, steps, number[e], e.dtype is gives)


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
    if divides(a, b):
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
    """An elementwise op over small integer tensors that hold Sizes, as an object array."""
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
    """The gradient of an elementwise op: its derivative as one more elementwise op, summed over broadcast axes."""
    floats = [i for i, x in enumerate(inputs) if x.dtype in FLOATS]
    out: list[Any] = [None] * len(inputs)
    for i in floats:
        partial = b.apply(derivative_row(row, i), *inputs, g, **attrs)
        out[i] = sum_to(b, partial, inputs[i].shape)
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
