"""Watches a function while it is traced: which functions of users run, and with which objects."""

from __future__ import annotations

import pickle
import random
import sys
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from operator import is_
from types import CodeType, FrameType
from typing import Any, Final

import numpy as np

from ...errors import InputError
from ..tensor import Tensor
from .code import Reads
from .exploring import Explorer
from .places import (
    DICTS,
    LIBRARIES,
    MISSING,
    OURS,
    PLAIN,
    SEQUENCES,
    Checks,
    changed,
    is_closed,
    own_attributes,
    package,
)

Hook = Callable[[FrameType, str, Any], object]
_ARGUMENTS: Final = 0x0C
"""The flags of code that takes *args (4) and **kwargs (8)."""
BESIDE: Final = ("logging", "warnings", "importlib._bootstrap")
"""Libraries that call functions of others for a message or an import: nothing that these read is computed with."""


class Observed:
    """What a trace took from outside, as it was then."""

    def __init__(self, explorer: Explorer) -> None:
        self.generators: Final = explorer.generators
        """(name, generator of random numbers) of those that may have drawn."""
        self._roots: Final = explorer.roots
        self._checks: Checks | None = None
        self.changed()  # another thread may write to a place since it was explored

    def __len__(self) -> int:
        """How many comparisons a run makes."""
        return 0 if self._checks is None else len(self._checks)

    def holds(self) -> bool:
        """Whether all is as it was: what each run asks."""
        checks = self._checks
        return checks is not None and checks.hold()

    def changed(self) -> str | None:
        """The name of a value that is another one now; None if all are equal, also where they are in other objects."""
        checks = Checks()
        for place, holder in self._roots:
            found = changed(place, holder, checks)
            if found is not None:
                return found.label
        self._checks = checks
        return None


class Watch:
    """What was seen while a function ran."""

    def __init__(self) -> None:
        self._libraries: Final[dict[int, dict[str, Any]]] = {}
        self._users: Final[dict[int, dict[str, Any]]] = {}
        """The globals of modules that were seen, by id."""
        self._codes: Final[dict[int, tuple[CodeType, dict[str, Any], Reads]]] = {}
        self._reads: Final = Reads()
        self._objects: Final[dict[int, tuple[str, Any]]] = {}
        self._before: Final[list[tuple[str, str, dict[str, Any], Any]]] = []
        """(what it is called, name, holder, value) of what the functions set, before they did."""
        self._cells: Final[dict[tuple[int, str], Any]] = {}
        """The same of their closures, by the id of the code."""
        self._containers: Final[dict[int, tuple[str, Any, list[Any]]]] = {}
        """The lists, dicts and sets that they reach directly, by id: what each is called, and its items before."""

    def observed(self, root: Any, copied: Any) -> Observed:
        """What there is to observe after a call of `root`."""
        self._refuse_counters()
        ran = {key: code for key, (code, _, _) in self._codes.items()}
        try:
            while (found := self._explored(root, copied, ran)).learned:
                pass
        except RecursionError:
            raise InputError(
                "the traced function may read values that are too deep to observe in each run, such as lists in lists: pass what "
                "it needs as arguments"
            ) from None
        for name, was, now in found.changed_cells:
            self._refuse_counter(name, name, was, now)
        for label, value in found.iterators:
            raise InputError(
                f"the traced function may read {label}, a {type(value).__name__}, which gives something else each time, and a "
                "compiled function would have what it gave first in every run: take the next item outside, and pass it as an argument"
            )
        return Observed(found)

    def _explored(self, root: Any, copied: Any, ran: Mapping[int, CodeType]) -> Explorer:
        """The places that the functions could read."""
        found = Explorer(self._reads, ran, self._written(), self._cells, self._altered())
        for _, module, own in self._codes.values():
            found.global_names(own.globals, module)
            found.modules(own.imports)
        found.search(root)
        found.functions()
        found.object(getattr(root, "__name__", type(root).__name__), root)
        for label, value in self._objects.values():  # those that no variable led to
            found.object(label, value)
        found.containers("model", copied)
        found.functions()
        return found

    def _written(self) -> frozenset[tuple[int, Any]]:
        return frozenset((id(of), name) for _, name, of, was in self._before if of.get(name, MISSING) is not was)

    def _altered(self) -> set[int]:
        """The containers that the functions changed. A list that they also read is refused; a dict may be a memory of results."""
        altered: set[int] = set()
        for at, (name, value, was) in self._containers.items():
            now = _items(value)
            if len(now) == len(was) and all(map(is_, now, was)):
                continue
            altered.add(at)
            last = name.rpartition(".")[2]
            if isinstance(value, list) and self._reads.loads[last] > self._reads.changes[last]:
                raise InputError(
                    f"the traced function reads the list {name} and changes it; a compiled function would change it only when it is "
                    "traced, not in each run: return what it adds, and change the list outside"
                )
        return altered

    def _refuse_counters(self) -> None:
        """Refuse a function that computes with a number which it changes itself; one that only counts is left alone."""
        for label, name, holder, was in self._before:
            self._refuse_counter(label, name, was, holder.get(name, MISSING))

    def _refuse_counter(self, label: str, name: str, was: Any, now: Any) -> None:
        numbers = type(was) in (int, float) and type(now) in (int, float)
        if numbers and was != now and self._reads.loads[name] > self._reads.stores[name]:
            raise InputError(
                f"the traced function reads {label} and changes it, from {was} to {now}; a compiled function would do so only "
                "when it is traced, not in each run: pass the number as an argument, and change it outside, or keep it as a state"
            )

    def hook(self) -> Hook:
        """What the profiler calls: a few instructions for each call in a library, of which there are many."""
        libraries, users = self._libraries, self._users

        def hook(frame: FrameType, event: str, arg: Any) -> None:
            if event == "call":
                module = frame.f_globals
                at = id(module)
                if at in libraries:
                    return
                if at in users or not _is_library(module):
                    users[at] = module
                    if not _is_beside(frame):
                        self._call(frame)
                else:
                    libraries[at] = module

        return hook

    def _call(self, frame: FrameType) -> None:
        """A function of the user is called."""
        module = frame.f_globals
        code = frame.f_code
        seen = self._codes.get(id(code))
        new = seen is None
        if seen is None:
            seen = self._codes[id(code)] = code, module, self._reads.add(code)
            for name in seen[2].stores:
                if name in code.co_freevars:
                    self._cells[id(code), name] = frame.f_locals.get(name, MISSING)
                elif name not in code.co_varnames and name in module:
                    self._before.append((name, name, module, module[name]))
        own = seen[2]
        count = code.co_argcount + code.co_kwonlyargcount + (code.co_flags & _ARGUMENTS).bit_count()
        local = frame.f_locals if count or code.co_freevars else {}
        if new:
            for name in own.globals & module.keys():
                self._keep(name, module[name])
            for name in code.co_freevars:
                self._keep(name, local.get(name))
        for name in code.co_varnames[:count]:
            value = local.get(name)
            if id(value) not in self._objects and _may_change(value):
                self._objects[id(value)] = name, value
                self._keep(name, value)
                held = own_attributes(value)
                for key in held.keys() & own.attributes:
                    self._keep(f"{name}.{key}", held[key])
                for key in own.stores:
                    if key in held:
                        self._before.append((f"{name}.{key}", key, held, held[key]))

    def _keep(self, name: str, value: Any) -> None:
        """A variable, the items of which may be changed."""
        if isinstance(value, (list, dict, set, deque)) and id(value) not in self._containers:
            self._containers[id(value)] = name, value, _items(value)


def _items(container: Any) -> list[Any]:
    return [*container, *container.values()] if isinstance(container, dict) else list(container)


def _may_change(value: Any) -> bool:
    """Whether an argument is an object of the caller's in which something may change."""
    if isinstance(value, (Tensor, *PLAIN)) or hasattr(type(value), "__next__"):
        return False
    if isinstance(value, (*SEQUENCES, *DICTS)):
        items = value.values() if isinstance(value, DICTS) else value
        return not any(isinstance(x, Tensor) for x in items)
    return is_closed(value) or package(type(value)) not in OURS


@contextmanager
def hooked(hook: Hook) -> Iterator[None]:
    """A context in which a hook is told of each call, beside a profiler that listens already."""
    before: Any = sys.getprofile()
    told: Hook = hook
    profiler = getattr(before, "enable", None)  # of cProfile before Python 3.12, which goes on by this
    if callable(before):

        def both(frame: FrameType, event: str, arg: Any) -> None:
            before(frame, event, arg)
            hook(frame, event, arg)

        told = both
    sys.setprofile(told)
    try:
        yield
    finally:
        sys.setprofile(None)
        if profiler is not None:
            profiler()
        else:
            sys.setprofile(before)


def watched(
    function: Callable[[], Any], again: Callable[[], Any], root: Any, copied: Any = None
) -> tuple[Any, Observed]:
    """The result of a function that is traced by calling it, and what it took from outside. again: traces it apart, to find out
    where it draws. root: the function as users know it, behind which closures are looked for. copied: a module, or None, of
    which the function has a copy."""
    watch = Watch()
    before = _drawn()
    with hooked(watch.hook()):
        result = function()
    if _drawn() != before:
        _refuse_draws(again)
    observed = watch.observed(root, copied)
    if observed.generators:
        _refuse_generators(again, observed.generators)
    return result, observed


# --- draws of generators that are not Singe's ------------------------------------------------------------------------


def _drawn() -> tuple[Any, ...]:
    """A value that is another one after a draw of Python's or NumPy's global generator."""
    state: Any = np.random.mtrand.get_state(legacy=False)
    held = tuple(x.tobytes() if isinstance(x, np.ndarray) else x for x in state["state"].values())
    return random.getstate(), held, state["has_gauss"]


def _refuse_draws(function: Callable[[], Any]) -> None:
    """Run a function again, to find the line that drew. A draw by another thread is none of its own."""
    found: list[str] = []
    before = _drawn()
    lines: dict[FrameType, int] = {}

    def look(frame: FrameType | None) -> None:
        nonlocal before
        now = _drawn()
        if now != before and frame is not None and _names_generators(frame):
            found.append(f"{frame.f_code.co_filename}, line {lines.get(frame, frame.f_lineno)}")
        before = now

    def each_line(frame: FrameType, event: str, arg: Any) -> Any:
        look(frame)
        lines[frame] = frame.f_lineno
        return each_line

    def each_call(frame: FrameType, event: str, arg: Any) -> Any:
        if _is_library(frame.f_globals):
            return None
        look(frame.f_back)
        return each_line

    tracer = sys.gettrace()
    sys.settrace(each_call)
    try:
        function()
    finally:
        sys.settrace(tracer)
        lines.clear()  # the frames refer to this function, which refers to them
    if found:
        raise InputError(
            f"the traced function draws from Python's random or NumPy's global generator ({found[0]}), and a compiled function would "
            "have the same numbers in every run: draw with sg.rand, sg.randn or singe.random and a key, or pass what is drawn as "
            "an argument"
        )


def _refuse_generators(function: Callable[[], Any], generators: Sequence[tuple[str, Any]]) -> None:
    """Run a function again, to see which generators draw."""
    before = [pickle.dumps(generator) for _, generator in generators]
    function()
    for (name, generator), was in zip(generators, before, strict=True):
        if pickle.dumps(generator) != was:
            raise InputError(
                f"the traced function draws from {name}, a {type(generator).__name__}, and a compiled function would have the same "
                "numbers in every run: draw with sg.rand, sg.randn or singe.random and a key, or pass what is drawn as an argument"
            )


def _is_library(module: Mapping[str, Any]) -> bool:
    """Whether the functions with these globals are a library's."""
    name = module.get("__name__", "")
    return isinstance(name, str) and name.partition(".")[0] in LIBRARIES


def _is_beside(frame: FrameType) -> bool:
    """Whether a library of BESIDE called a function, or others that called it."""
    caller = frame.f_back
    while caller is not None and not _is_library(caller.f_globals):
        caller = caller.f_back
    return caller is not None and caller.f_globals.get("__name__") in BESIDE


def _names_generators(frame: FrameType) -> bool:
    """Whether a function has a name by which a global generator can be reached."""
    ours = (getattr(random, "_inst", None), getattr(np.random.mtrand, "_rand", None))
    code = frame.f_code
    values = {**frame.f_globals, **frame.f_locals}
    for name in (*code.co_names, *code.co_freevars, *code.co_varnames):
        value = values.get(name)
        if value is not None and any(
            value is x or getattr(value, "__self__", None) is x for x in (random, np, np.random, *ours)
        ):
            return True
    return False
