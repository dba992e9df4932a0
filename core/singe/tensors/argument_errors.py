"""What was given where a Tensor is expected: the errors of calls that failed because an argument is of another kind.

A call is not checked before it runs, which would cost each call time. Only where it fails, by whatever error, `refuse` compares
its arguments with the annotations of the function, by the table KINDS.
"""

from __future__ import annotations

import re
import reprlib
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from inspect import Parameter, signature
from types import FunctionType
from typing import Any, Final, TypeVar

import numpy as np

from ..errors import InputError, SingeError
from ..shapes import Size, show
from ..texts import with_article
from ..tracebacks import shorten
from .nodes.promotion import PLAIN
from .tensor import Tensor

C = TypeVar("C", bound=Callable[..., Any])
SHOWN: Final = 40
"""The most characters of a value that an error shows."""
ARRAYS: Final = (np.ndarray, list, tuple)
KINDS: Final[Mapping[str, tuple[tuple[type, ...], str]]] = {
    "Tensor": ((Tensor,), "a Tensor"),
    "TensorLike": ((Tensor, np.ndarray, np.generic, *PLAIN), "a Tensor, an array or a number"),
    "np.ndarray": ((np.ndarray,), "an array"),
    "Number": (PLAIN, "a number"),
    "bool": ((bool, np.bool_), "True or False"),
    "int": ((int, np.integer, Size), "an integer"),
    "float": ((int, float, np.number), "a number"),
    "complex": (PLAIN, "a number"),
    "Size": ((Size,), "a size"),
    "str": ((str,), "a string"),
    "None": ((type(None),), "None"),
}
"""Parts of annotations ↦ the types that they mean, and how errors call these."""
SEVERAL: Final = "several in a list"
_PART: Final = re.compile(r"[^|\[]+(?:\[[^\]]*\])?")
"""One of the kinds that an annotation allows."""
_SEVERAL: Final = re.compile(r"(?:Sequence|Iterable|list|tuple)\[(.*)\]")


def checked(function: C) -> C:
    """The function, which refuses what is given in place of Tensors."""

    @wraps(function)
    def called(*args: Any, **named: Any) -> Any:
        try:
            return function(*args, **named)
        except Exception as e:
            try:
                refuse(function.__name__, function, args, named, e)
                raise
            except Exception as told:
                shorten(told)
                raise

    return called  # pyright: ignore[reportReturnType]


def check_functions(module: dict[str, Any]) -> None:
    """Let the public functions that a module defines refuse what is given in place of Tensors; those that do so already are left."""
    for name, found in list(module.items()):
        own = isinstance(found, FunctionType) and found.__module__ == module["__name__"]
        if own and name[0] != "_" and not hasattr(found, "__wrapped__"):
            module[name] = checked(found)


def refuse(name: str, function: Any, args: Sequence[Any], named: Mapping[str, Any], error: Exception) -> None:
    """Raise an error of the first argument that is not of the kind which the function's annotations name, if there is one; its
    call failed by `error`."""
    try:
        given = signature(function).bind_partial(*args, **named)
    except (TypeError, ValueError):
        return
    declared = given.signature.parameters
    found = [
        ("x" if at == "self" else at, value, "Tensor" if at == "self" else str(declared[at].annotation))
        for at, values in given.arguments.items()
        if declared[at].kind is not Parameter.VAR_KEYWORD
        for value in (values if declared[at].kind is Parameter.VAR_POSITIONAL else (values,))
    ]
    # An error of Singe's says what is wrong with what need be no Tensor. Where no kind is wrong, a number or an array is blamed.
    known, own = isinstance(error, SingeError), str(error).startswith(f"{name}: ")
    for take in (_fits,) if known else (_fits, _fits_exactly):
        for at, value, annotation in found:
            kinds = [part.strip() for part in _PART.findall(annotation)]
            other = "Tensor" not in annotation or isinstance(value, Tensor) or ("int" in kinds and own)
            if (known and other) or not all(k in KINDS or _SEVERAL.fullmatch(k) for k in kinds):
                continue
            if not any(take(value, kind) for kind in kinds):
                expected = " or ".join(dict.fromkeys(KINDS[k][1] if k in KINDS else SEVERAL for k in kinds))
                raise InputError(
                    f"{name}: got {in_words(value)} as {at}, expected {expected}; {_way(value, at)}"
                ) from None


def _fits(value: Any, kind: str) -> bool:
    several = _SEVERAL.fullmatch(kind)
    if several is None:
        return isinstance(value, KINDS[kind][0])
    inner = [part.strip() for part in several[1].removesuffix(", ...").split("|")]
    known = all(part in KINDS for part in inner)
    return isinstance(value, (list, tuple)) and (not known or all(any(_fits(v, k) for k in inner) for v in value))


def _fits_exactly(value: Any, kind: str) -> bool:
    """Not all that take numbers and arrays beside Tensors do so in each place."""
    return _fits(value, "Tensor" if kind == "TensorLike" else kind)


def _way(value: Any, at: str) -> str:
    if isinstance(value, (*ARRAYS, *PLAIN, np.generic)):
        return f"pass sg.tensor({at})"
    return "pass a Tensor, such as sg.tensor([1.0, 2.0])"


def in_words(value: Any) -> str:
    """A value, for errors."""
    if isinstance(value, np.ndarray):
        return f"a NumPy array of shape {show(value.shape)}"
    if value is None:
        return "None"
    text, kind = reprlib.repr(value), type(value).__name__
    return f"{text if len(text) <= SHOWN else f'{text[:SHOWN]}…'}, {with_article(kind)},"
