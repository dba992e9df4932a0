"""Who asks by `==` whether two dimensions are equal: Singe compares their forms, a function that is traced asks about all runs."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

_ASKING: Final[ContextVar[bool]] = ContextVar("asking", default=False)
_OURS: Final = frozenset({"singe", "singe_gpu", "singe_webgpu", "singe_wasm"})
INSTEAD: Final = (
    ", so that Python cannot choose by it: let sg.where(sg.tensor(size) > 3, x, y) choose between tensors, or give the dimension "
    "a number"
)
"""The end of the error if that depends on the run."""


@contextmanager
def asking() -> Iterator[None]:
    """A context in which Python code other than Singe's asks by `==` whether dimensions are equal in all runs, and gets an
    error if that depends on the run: `x.shape[0] == 3` in a function that is traced must not be silently False.

    Singe itself asks whether two forms are the same. Both questions may come in one call (the function calls a layer, which
    compares shapes), and by way of tuples, `in` and NumPy, so it is the module of the comparing Python code that tells them
    apart. Dicts and sets compare the forms, because unequal ones have other hashes.
    """
    token = _ASKING.set(True)
    try:
        yield
    finally:
        _ASKING.reset(token)


def asked() -> bool:
    """Whether the code that called the caller of this function asks about all runs."""
    return _ASKING.get() and sys._getframe(2).f_globals.get("__name__", "").partition(".")[0] not in _OURS
