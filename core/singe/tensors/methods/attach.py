"""The decorator that makes a function a method of Tensor, and what methods share: names, and what operators take.

Some parameters, such as NumPy's `axis` and `keepdims`, may be given by PyTorch's names, too: `dim` and `keepdim`. A tensor
without axes counts as a vector of one element in methods that work along an axis, as in PyTorch: `x.sum(dim=-1)`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from types import FunctionType
from typing import Any, Final, TypeVar

import numpy as np

from ...errors import DTypeError, InputError, SingeError
from ...hints import check_arguments
from ...ops import ROWS
from ...shapes import same_form
from ...texts import with_article
from ...tracebacks import shorten, shorten_class
from ..argument_errors import checked, refuse
from ..nodes.promotion import PLAIN
from ..tensor import Tensor

F = TypeVar("F")
C = TypeVar("C", bound=Callable[..., Any])
OPERANDS: Final = (Tensor, np.ndarray, np.generic, *PLAIN)
"""What the operators compute with."""
MATRICES: Final = (Tensor, np.ndarray)
"""What a @ b computes with."""
UNFIT: Final = (str, bytes, list, tuple, dict, set, type(None))
"""Types of Python that have no operators for tensors."""
SHOWN: Final = 40
"""The most characters of an operand that an error shows."""
SPELLINGS: Final = {
    "dim": "axis", "dims": "axis", "dimension": "axis", "dim0": "axis0", "dim1": "axis1", "dim2": "axis2", "keepdim": "keepdims",
    "unbiased": "correction", "ddof": "correction", "size": "shape", "indices": "index", "split_size": "sizes", "min": "low", "max": "high",
    "sorted": "ordered", "scale_factor": "scale", "start_dim": "start", "end_dim": "end", "stop": "end", "num": "steps", "input": "x",
    "other": "y", "mat2": "other", "vec2": "other", "vec": "other", "negative_slope": "alpha",
}  # fmt: skip
"""PyTorch's and NumPy's names of parameters ↦ ours."""
PASSED_BY_NUMPY: Final = ("out", "dtype")
"""What functions such as np.sum pass to the method of this name, as None."""
PARTS: Final = frozenset((
    "addmm", "amax", "amin", "broadcast_to", "full", "kthvalue", "nll_loss", "outer", "permute", "random", "reduce", "reshape",
    "running_sum", "scatter", "sort", "swapaxes", "take", "var",
))  # fmt: skip
"""Functions beside the rows of which others are made, and which errors may name in their place."""
ALONG_AXIS: Final = frozenset((
    "all", "amax", "amin", "aminmax", "any", "argmax", "argmin", "argsort", "count_nonzero", "cummax", "cummin",
    "flip", "kthvalue", "logcumsumexp", "logsumexp", "max", "median", "min", "mode", "msort", "nanmean",
    "nanmedian", "nanquantile", "nansum", "norm", "quantile", "sort", "std", "topk", "var",
))  # fmt: skip
"""Methods that take a tensor without axes as a vector of one element, beside those of rows that say `along`."""
AS_WRITTEN: Final = {
    "__abs__": "abs(a)", "__add__": "a + b", "__and__": "a & b", "__eq__": "a == b", "__floordiv__": "a // b", "__ge__": "a >= b",
    "__getitem__": "x[…]", "__gt__": "a > b", "__invert__": "~a", "__le__": "a <= b", "__lshift__": "a << b", "__lt__": "a < b",
    "__matmul__": "a @ b", "__mod__": "a % b", "__mul__": "a * b", "__ne__": "a != b", "__neg__": "-a", "__or__": "a | b",
    "__pow__": "a ** b", "__rshift__": "a >> b", "__sub__": "a - b", "__truediv__": "a / b", "__xor__": "a ^ b",
}  # fmt: skip
"""Methods that are operators ↦ what is written, which their errors name."""


def method(function: F) -> F:
    """The function, or property, which becomes the member of Tensor of its name; its first argument is the tensor."""
    bare: Any = function.fget if isinstance(function, property) else function
    alias(bare.__name__, function)
    bare.__qualname__ = f"Tensor.{bare.__name__}"
    return function


def alias(name: str, function: Any) -> None:
    """Make a function, or property, the member of Tensor of this name, too."""
    if not isinstance(function, property):
        function = accept_torch_names(function)
        function = of_numbers(function) if name in ALONG_AXIS else function
    setattr(Tensor, name, function)


def of_numbers(function: C) -> C:
    """The method along an axis, which takes a tensor without axes, too."""

    @wraps(function)
    def along(*args: Any, **named: Any) -> Any:
        # Beside a tensor, as in x.max(other), there is no axis.
        beside = any(isinstance(value, (Tensor, np.ndarray)) for value in (*args[1:], *named.values()))
        alone = not args or getattr(args[0], "ndim", 1) or beside
        try:
            found = function(*args, **named) if alone else function(args[0].reshape(1), *args[1:], **named)
        except Exception as e:
            shorten(e)
            raise
        if alone:
            return found
        if isinstance(found, Tensor):
            return _without_axis(found)
        return getattr(found, "_make", tuple)(map(_without_axis, found))

    return along  # pyright: ignore[reportReturnType]


def _without_axis(x: Tensor) -> Tensor:
    """What the added axis gave; several results, as of several quantiles, stay."""
    return x.reshape(()) if same_form(x.size, 1) else x


def accept_torch_names(function: C) -> C:
    """The function, with the names of SPELLINGS for its parameters, and that of `*parameter` for all of it; other names that
    PyTorch has are refused with what to write instead."""
    code = function.__code__
    count = code.co_argcount + code.co_kwonlyargcount
    taken = code.co_varnames[:count]
    rest = code.co_varnames[count] if code.co_flags & inspect.CO_VARARGS else ""
    names = {other: own for other, own in SPELLINGS.items() if own in (*taken, rest) and other not in taken}
    kept = taken.index("keepdims") if "keepdims" in taken else None

    @wraps(function)
    def spelled(*args: Any, **named: Any) -> Any:
        try:
            if kept is not None and len(args) > kept:
                _check_keepdims(function.__name__, args[kept])
            if not named:
                return function(*args)
            for other in names.keys() & named.keys():
                own = names[other]
                if own in named:
                    raise InputError(f"{function.__name__}: got {other} and {own}, which mean the same; pass one")
                named[own] = named.pop(other)
            if "keepdims" in named:
                _check_keepdims(function.__name__, named["keepdims"])
            if rest in named:
                args = (*args, named.pop(rest))
            unset = [name for name in PASSED_BY_NUMPY if name not in taken and named.get(name, name) is None]
            given = {name: value for name, value in named.items() if name not in unset}
            check_arguments("argument", function.__name__, given.keys() - set(taken))
            return function(*args, **given)
        except Exception as e:
            try:
                if not function.__name__.startswith("_"):  # operators check theirs, as the other operand may know how
                    refuse(function.__name__, function, args, named, e)
                if isinstance(e, SingeError):
                    let_name(e, written(function.__name__))
                raise
            except Exception as told:
                shorten(told)
                raise

    return spelled  # pyright: ignore[reportReturnType]


def written(name: str) -> str:
    """What a caller writes for the method of this name; a reflected operator is written as the operator."""
    return AS_WRITTEN.get(name) or AS_WRITTEN.get(name.replace("__r", "__", 1), name)


def takes(name: str, other: Any, kinds: tuple[type, ...] = OPERANDS) -> bool:
    """Whether an operator computes with an operand; if not, the operand may know how. One that Python made does not."""
    if isinstance(other, kinds):
        return True
    if (type(other) in UNFIT or isinstance(other, PLAIN)) and name not in ("__eq__", "__ne__"):
        given = type(other).__name__
        way = {"list": "sg.tensor(b) makes a tensor of it", "tuple": "sg.tensor(b) makes a tensor of it"}.get(given)
        way = way or ("a * b multiplies by a number" if isinstance(other, PLAIN) else "convert it first")
        expected = "a Tensor, an array or a number" if kinds is OPERANDS else "a Tensor or an array"
        raise DTypeError(
            f"{written(name)}: one operand is {a_value(other)}, {with_article(given)}; expected {expected}; {way}"
        )
    return False


def a_value(x: Any) -> str:
    """An operand, for errors."""
    text = repr(x)
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}…"


def let_name(error: SingeError, name: str) -> None:
    """Let an error name the function that was called, where it begins with that of one by which this is computed."""
    text = str(error.args[0]) if error.args else ""
    begin, colon, rest = text.partition(": ")
    if (
        colon
        and begin != name
        and not name.startswith("_")
        and (begin in ROWS or begin in PARTS or begin in AS_WRITTEN.values())
    ):
        error.args = (f"{name}: {rest.replace(f'{begin}(', f'{name}(')}", *error.args[1:])


def _check_keepdims(name: str, argument: Any) -> None:
    """Refuse what is no bool: in the same place NumPy takes a dtype."""
    if not isinstance(argument, (bool, np.bool_)):
        raise InputError(
            f"{name}: got {argument!r:.80} as keepdims, expected True or False; pass other arguments by name, as dtype=…"
        )


for _name, _own in list(vars(Tensor).items()):  # those that Tensor has itself
    if isinstance(_own, FunctionType) and _name[0] != "_" and not inspect.iscoroutinefunction(_own):
        setattr(Tensor, _name, checked(_own))
shorten_class(Tensor, leave=("__init__",))
