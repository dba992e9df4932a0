"""The decorator that makes a function a method of Tensor."""

from __future__ import annotations

from typing import Any, TypeVar

from ..tensor import Tensor

F = TypeVar("F")


def method(function: F) -> F:
    """The function, or property, which becomes the member of Tensor of its name; its first argument is the tensor."""
    bare: Any = function.fget if isinstance(function, property) else function
    alias(bare.__name__, function)
    bare.__qualname__ = f"Tensor.{bare.__name__}"
    return function


def alias(name: str, function: Any) -> None:
    """Make a function, or property, the member of Tensor of this name, too."""
    setattr(Tensor, name, function)
