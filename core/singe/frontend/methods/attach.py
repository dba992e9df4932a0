"""The decorator that makes a function a method of Tensor.

Some parameters, such as NumPy's `axis` and `keepdims`, may be given by PyTorch's names, too: `dim` and `keepdim`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, Final, TypeVar

from ...errors import InputError
from ..tensor import Tensor

F = TypeVar("F")
C = TypeVar("C", bound=Callable[..., Any])
SPELLINGS: Final = {
    "dim": "axis",
    "keepdim": "keepdims",
    "scale_factor": "scale",
    "start_dim": "start",
    "end_dim": "end",
}
"""PyTorch's names of parameters ↦ ours."""


def method(function: F) -> F:
    """The function, or property, which becomes the member of Tensor of its name; its first argument is the tensor."""
    bare: Any = function.fget if isinstance(function, property) else function
    alias(bare.__name__, function)
    bare.__qualname__ = f"Tensor.{bare.__name__}"
    return function


def alias(name: str, function: Any) -> None:
    """Make a function, or property, the member of Tensor of this name, too."""
    setattr(Tensor, name, function if isinstance(function, property) else both_spellings(function))


def both_spellings(function: C) -> C:
    """The function, with the names of SPELLINGS for its parameters."""
    code = function.__code__
    taken = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    names = {other: own for other, own in SPELLINGS.items() if own in taken and other not in taken}
    if not names:
        return function

    @wraps(function)
    def spelled(*args: Any, **named: Any) -> Any:
        for other, own in names.items():
            if other in named:
                if own in named:
                    raise InputError(f"{function.__name__}: got {other} and {own}, which mean the same; pass one")
                named[own] = named.pop(other)
        return function(*args, **named)

    return spelled  # pyright: ignore[reportReturnType]
