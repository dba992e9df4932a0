"""The sizes of a tensor's shape in a function that is traced: Python code that compares them asks about all runs.

`x.shape[0] == 3` in such a function must not be silently False, so that `==` and the truth of a TracedSize are errors where
they depend on the run. Elsewhere `==` of Sizes asks whether they have one form; `same_form` asks this of TracedSizes, too. Dicts
and sets compare forms, because unequal ones have other hashes. Nodes, and what is computed of them, have plain Sizes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .sizes import INSTEAD, Size, equal, plain


class TracedSize(Size):
    """See the module's docstring. What is computed of a TracedSize is one, too."""

    __slots__ = ("_plain",)

    def __init__(self, of: Size) -> None:
        for name in Size.__slots__:
            setattr(self, name, getattr(of, name))
        self._plain = of

    @property
    def plain(self) -> Size:
        return self._plain

    __hash__ = Size.__hash__

    def __eq__(self, other: object) -> bool:
        """Whether they are equal in all runs; SizeNeeded if that depends on the run."""
        if isinstance(other, Size) and self.terms == other.terms:
            return True
        if not isinstance(other, (int, Size)):
            return False
        return equal(self.plain, plain(other), "comparison of sizes", INSTEAD)

    def __bool__(self) -> bool:
        """Whether the dimension is not 0."""
        return not equal(self.plain, 0, "truth of a size", INSTEAD)


def _traced(operator: Callable[..., Any]) -> Callable[..., Any]:
    """An operator of Sizes as one of TracedSizes."""
    return lambda *operands: traced(operator(*map(plain, operands)))


for _name in (
    "add", "radd", "sub", "rsub", "mul", "rmul", "floordiv", "rfloordiv", "mod", "rmod", "divmod", "rdivmod", "pow", "neg", "abs",
):  # fmt: skip
    setattr(TracedSize, f"__{_name}__", _traced(getattr(Size, f"__{_name}__")))


def traced(value: Any) -> Any:
    """A Size, also within a tuple, as a TracedSize; anything else as it is."""
    if isinstance(value, tuple):
        for d in value:
            if d.__class__ is not int:
                return tuple(map(traced, value))
        return value
    return TracedSize(value) if isinstance(value, Size) and not isinstance(value, TracedSize) else value


def same_form(a: Any, b: Any) -> bool:
    """Whether two dimensions, or two shapes, are the same number or expression: if not, they may still be equal in some runs."""
    return plain(a) == plain(b)
