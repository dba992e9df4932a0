"""What a loss function takes from variables outside it. A Program has these values as constants, so they must not change."""

from __future__ import annotations

import dis
from collections.abc import Callable, Iterator
from functools import partial
from types import CellType, CodeType, FunctionType, MethodType
from typing import Any, Final

import numpy as np

from ...errors import InputError
from ...frontend.tensor import Tensor
from ...nn import Module
from ...nn._module import CONTAINERS, everything_in

NUMBERS: Final = (bool, int, float, complex, np.generic)
CONSTANTS: Final = (*NUMBERS, Tensor, Module, np.ndarray)
"""Of variables of these types the value is a constant of a Program. A function is looked into; others are left alone."""


class Outside:
    """The variables outside a function, of it and of the functions of its module that it uses, as they are now."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._was: Final = [(name, where, where()) for name, where in _variables(function, set())]

    def check(self) -> None:
        """Raise an error if a variable has another value than it had."""
        for k, (name, where, was) in enumerate(self._was):
            now = where()
            if now is not was:
                if not _same(was, now):
                    raise InputError(
                        f"the loss function takes {name!r} from outside, and that is another {type(now).__name__} now than when the "
                        "step was compiled, which has the old one as a constant: give what changes as a part of the batch, "
                        "step(x, y, value), or make another TrainStep"
                    )
                self._was[k] = (name, where, now)


def _variables(function: Any, seen: set[CodeType]) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Names, and what gives the present value of each."""
    while isinstance(function, (MethodType, partial)):
        function = function.__func__ if isinstance(function, MethodType) else function.func
    if not isinstance(function, FunctionType) or function.__code__ in seen:
        return
    seen.add(function.__code__)
    cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    places = [(name, partial(_in_cell, cell)) for name, cell in cells]
    places += [(name, partial(function.__globals__.get, name)) for name in _globals(function.__code__)]
    for name, where in places:
        value = where()
        if isinstance(value, CONSTANTS):
            yield name, where
        elif getattr(value, "__globals__", None) is function.__globals__ or name in function.__code__.co_freevars:
            yield from _variables(value, seen)


def _in_cell(cell: CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # not set yet
        return None


def _globals(code: CodeType) -> dict[str, None]:
    """The global names that code reads, and the code of functions within it."""
    found = {str(i.argval): None for i in dis.get_instructions(code) if i.opname == "LOAD_GLOBAL"}
    for part in code.co_consts:
        if isinstance(part, CodeType):
            found |= _globals(part)
    return found


def _same(was: Any, now: Any) -> bool:
    """Whether a Program that has one value would be the same with the other."""
    match was, now:
        case Tensor(), Tensor():
            return was._value is now._value
        case np.ndarray(), np.ndarray():
            return was.dtype == now.dtype and np.array_equal(was, now)
        case Module(), Module():
            before, after = ({path: x for path, x, _ in everything_in(part)} for part in (was, now))
            return before.keys() == after.keys() and all(
                type(x) is type(after[path]) if isinstance(x, CONTAINERS) else _same(x, after[path])
                for path, x in before.items()
            )
        case _ if isinstance(was, NUMBERS) and isinstance(now, NUMBERS):
            return bool(was == now)
        case _:
            return repr(was) == repr(now)
