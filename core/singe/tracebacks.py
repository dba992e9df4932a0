"""Tracebacks that end in the user's line: where an error leaves a public function, the frames of Singe are taken out of it.

An error that is raised on purpose says by its message what to do, and where: in the line that called Singe. What lies behind it,
twenty frames of ours, is left out, as are frames of Singe's between those of the user: a `forward` stays, what called it goes. An error
of another kind stays whole unless the user's own code raised it: then it is a fault of ours, whose frames a report needs. With
SINGE_TRACEBACK=full in the environment, which is read at each error, nothing is left out.

An `except` that calls `shorten` ends in a bare `raise`, which adds no frame of its own. Methods of Tensor and layers have such an
`except` anyway, so that they cost no more than before while no error is raised; other public functions get a wrapper.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Collection, Iterator, MutableMapping
from enum import Enum
from functools import lru_cache, wraps
from inspect import iscoroutinefunction
from pathlib import Path
from types import FunctionType, TracebackType
from typing import Any, Final, TypeVar

from .errors import SingeError

C = TypeVar("C", bound=Callable[..., Any])
T = TypeVar("T")
SWITCH: Final = "SINGE_TRACEBACK"
FULL: Final = "full"
HERE: Final = Path(__file__).parent
"""The folder of this package; those of its targets are beside it, under names that begin with its name."""
PACKAGE: Final = f"{__package__}."
BELOW: Final = frozenset((*sys.stdlib_module_names, "numpy", "wgpu", "wasmtime", "websockets"))
"""Packages that Singe calls, and which do not call the user's code except for Singe."""
CALLS: Final = frozenset((
    "__array__", "__bool__", "__call__", "__complex__", "__float__", "__format__", "__getitem__", "__index__", "__init__", "__int__",
    "__len__", "__new__",
))  # fmt: skip
"""The methods that users call without their names."""


@lru_cache(maxsize=1024)
def is_ours(file: str) -> bool:
    """Whether a file of code is Singe's, or one of a package beside it."""
    parents = Path(file).parents
    return HERE in parents or any(p.name.startswith(f"{HERE.name}_") for p in parents)


def shorten(error: BaseException) -> None:
    """Take the frames of Singe out of the traceback of an error that is about to leave it, and out of those of its causes."""
    if os.environ.get(SWITCH) == FULL:
        return
    if isinstance(error, SingeError):
        for each in _with_causes(error):
            if isinstance(each.__cause__, SingeError) and str(each.__cause__) in str(each):
                each.__cause__ = None  # it would say the same twice
            each.__traceback__ = _joined(_of_user(each))
        return
    begin, own = error.__traceback__, _of_user(error)
    if own and own[-1].tb_next is None:
        error.__traceback__ = _joined(own)
    elif isinstance(error, TypeError) and begin is not None and begin.tb_next is None:
        error.__traceback__ = None  # the arguments do not fit: the function was not entered


def shorten_all(names: MutableMapping[str, Any]) -> None:
    """Make the errors of a package's public names end in the user's line: of functions, and of classes' public methods."""
    for name, found in list(names.items()):
        if name[0] != "_":
            names[name] = shortened(found)


def shortened(found: T) -> T:
    """A function or a class of Singe's, whose errors end in the user's line; anything else as it is. The function takes the place of
    the other in its module, too, so that it can be pickled. A class with a metaclass of ours, a layer, sees to it itself."""
    if not str(getattr(found, "__module__", "")).startswith(PACKAGE):
        return found
    if isinstance(found, type):
        if not type(found).__module__.startswith(PACKAGE):
            shorten_class(found)
        return found
    if not isinstance(found, FunctionType) or hasattr(found, "__wrapped__"):
        return found
    home = found.__globals__
    there: Any = home.get(found.__name__)
    if getattr(there, "__wrapped__", None) is found:
        return there
    made = _short(found)
    if there is found:
        home[found.__name__] = made
    return made  # pyright: ignore[reportReturnType]


def shorten_class(kind: type, leave: Collection[str] = ()) -> None:
    """Make the errors of a class's public methods end in the user's line, those of its bases too. leave: methods that do so already,
    or are called by others only."""
    if issubclass(kind, (BaseException, Enum, tuple)):
        return
    for base in kind.__mro__:
        if not base.__module__.startswith(PACKAGE) or "_shortened" in vars(base):
            continue
        base._shortened = True  # pyright: ignore[reportAttributeAccessIssue]
        for name, member in list(vars(base).items()):
            if name in leave or (name[0] == "_" and name not in CALLS):
                continue
            if isinstance(member, FunctionType) and not hasattr(member, "__wrapped__"):
                setattr(base, name, _short(member))
            elif isinstance(member, (staticmethod, classmethod)):
                setattr(base, name, type(member)(_short(member.__func__)))


def _short(function: C) -> C:
    """The function, whose errors end in the line that calls it."""
    if iscoroutinefunction(function):

        @wraps(function)
        async def awaited(*args: Any, **named: Any) -> Any:
            try:
                return await function(*args, **named)
            except Exception as e:
                shorten(e)
                raise

        return awaited  # pyright: ignore[reportReturnType]

    @wraps(function)
    def called(*args: Any, **named: Any) -> Any:
        try:
            return function(*args, **named)
        except Exception as e:
            shorten(e)
            raise

    return called  # pyright: ignore[reportReturnType]


def _with_causes(error: BaseException) -> Iterator[BaseException]:
    seen: set[int] = set()
    todo: list[BaseException | None] = [error]
    while todo:
        each = todo.pop()
        if each is not None and id(each) not in seen:
            seen.add(id(each))
            yield each
            todo += (each.__cause__, each.__context__ if isinstance(each.__context__, SingeError) else None)


def _of_user(error: BaseException) -> list[TracebackType]:
    """The entries of a traceback that are neither Singe's nor of what Singe calls."""
    kept: list[TracebackType] = []
    inside = False
    entry = error.__traceback__
    while entry is not None:
        frame = entry.tb_frame
        top = str(frame.f_globals.get("__name__", "")).partition(".")[0]
        inside = is_ours(frame.f_code.co_filename) or (inside and top in BELOW)
        if not inside:
            kept.append(entry)
        entry = entry.tb_next
    return kept


def _joined(entries: list[TracebackType]) -> TracebackType | None:
    """A traceback of these entries alone, which are not changed."""
    made = None
    for entry in reversed(entries):
        made = TracebackType(made, entry.tb_frame, entry.tb_lasti, entry.tb_lineno)
    return made
