"""Watches a function while it is traced: which functions of users run, and with which objects."""

from __future__ import annotations

import dis
import pickle
import random
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import CodeType, FrameType, FunctionType, ModuleType
from typing import Any, Final

import numpy as np

from ...errors import InputError
from ...graph import Graph
from ...graph.structure import structure
from ..tensor import Tensor
from .callers import is_beside, is_library
from .code import Reads
from .exploring import Explorer
from .places import (
    DICTS,
    MISSING,
    OURS,
    PLAIN,
    SEQUENCES,
    ValueChecks,
    changed,
    is_closed,
    package,
)
from .sources import SEED, Sources
from .writing import LIST, Change, Snapshot, can_write, has_traced, writes_itself

Hook = Callable[[FrameType, str, Any], object]
_ARGUMENTS: Final = 0x0C
"""The flags of code that takes *args (4) and **kwargs (8)."""
SOURCE_MODULES: Final = frozenset(
    ["random", "time", "secrets", "uuid", "datetime", "numpy.random", "numpy.random._generator"]
)
SOURCE_NAMES: Final = frozenset(["urandom", "default_rng", "RandomState", "getrandbits", "getpid"])
"""Modules and names of what gives something else each time."""
MORE_TRACES: Final = 3
"""How often a function is traced again that still changes what it reads."""
FAR: Final = 720_720
"""A number that a counter reaches late, and that has many divisors: a function that waits for either shows it."""


class Observed:
    """What a trace took from outside, as it was then."""

    def __init__(self, explorer: Explorer) -> None:
        self.generators: Final = explorer.generators
        """(name, generator of random numbers) of those that may have drawn."""
        self.bytes: Final = explorer.bytes
        """Of the copies of arrays that it compares with."""
        self._roots: Final = explorer.roots
        self._checks: ValueChecks | None = None
        self.changed()  # another thread may write to a place since it was explored

    def __len__(self) -> int:
        """How many comparisons a run makes."""
        return 0 if self._checks is None else len(self._checks)

    def has_values(self) -> bool:
        """Whether there is something beside the function itself."""
        return any(
            p.parts
            or not (
                isinstance(p.value, (FunctionType, CodeType)) or (isinstance(holder, FunctionType) and p.value is None)
            )
            for p, holder in self._roots
        )

    def holds(self) -> bool:
        """Whether all is as it was: what each run asks."""
        checks = self._checks
        return checks is not None and checks.hold()

    def changed(self) -> str | None:
        """The name of a value that is another one now; None if all are equal, also where they are in other objects."""
        checks = ValueChecks()
        for place, holder in self._roots:
            found = changed(place, holder, checks)
            if found is not None:
                return found.label
        self._checks = checks
        return None


class Seen:
    """What was seen while a function ran."""

    def __init__(self) -> None:
        self._libraries: Final[dict[int, dict[str, Any]]] = {}
        self._users: Final[dict[int, dict[str, Any]]] = {}
        """The globals of modules that were seen, by id."""
        self._codes: Final[dict[int, tuple[CodeType, dict[str, Any], Reads]]] = {}
        self._reads: Final = Reads()
        self._objects: Final[dict[int, tuple[str, Any]]] = {}
        self._calls: Final = Sources()

    def observed(self, root: Any, copied: Mapping[str, Any], written: frozenset[tuple[int, Any]]) -> Observed:
        """What there is to observe after a call of `root`. written: (id of the holder, key) of what is the function's own."""
        ran = {key: code for key, (code, _, _) in self._codes.items()}
        try:
            while (found := self._explored(root, copied, ran, written)).learned:
                pass
        except RecursionError:
            raise InputError(
                "the traced function may read values that are too deep to observe in each run, such as lists in lists: pass what "
                "it needs as arguments"
            ) from None
        for label, value in found.iterators:
            raise InputError(
                f"the traced function may read {label}, a {type(value).__name__}, which gives something else each time, and a "
                "compiled function would have what it gave first in every run: take the next item outside, and pass it as an argument"
            )
        return Observed(found)

    def _explored(
        self, root: Any, copied: Mapping[str, Any], ran: Mapping[int, CodeType], written: frozenset[tuple[int, Any]]
    ) -> Explorer:
        """The places that the functions could read."""
        found = Explorer(self._reads, ran, written)
        for _, module, own in self._codes.values():
            found.global_names(own, module)
            found.modules(own.imports)
        found.search(root)
        found.functions()
        found.object(getattr(root, "__name__", type(root).__name__), root)
        for label, value in self._objects.values():  # those that no variable led to
            found.object(label, value)
        for name, module in copied.items():
            found.containers(name, module)
        found.functions()
        return found

    def could_write(self) -> bool:
        """Whether a function that ran may write to what outlives its call."""
        return any(can_write(code) for code, _, _ in self._codes.values())

    def only_counts(self, change: Change) -> bool:
        """Whether a variable, an attribute or a list is read no more often than it is set, so that nothing is computed with it."""
        if change.holder.kind is LIST:
            name = change.holder.label.rpartition(".")[2]
            return self._reads.loads[name] <= self._reads.changes[name]
        name = change.label.rpartition(".")[2]
        return self._reads.stores[name] > 0 and self._reads.loads[name] <= self._reads.stores[name]

    def sources(self) -> Iterator[tuple[str, str]]:
        """(name, where) of what gives something else each time: calls that were seen, then as far as names tell."""
        for call in sorted(self._calls.found, key=lambda call: call.is_clock):
            yield call.name, call.where
        for code, module, own in self._codes.values():
            names = SOURCE_NAMES & (own.attributes | own.globals)
            for name in own.globals:
                value = module.get(name)
                of = getattr(value, "__module__", None) or (value.__name__ if isinstance(value, ModuleType) else None)
                if of in SOURCE_MODULES:
                    names |= {name}
            names |= own.imports & SOURCE_MODULES
            if names:
                yield next(_lines(code, lambda i, _, names=names: i.argval in names))

    def writers(self) -> Iterator[tuple[str, str]]:
        """(name, where) of what the functions set that is no variable of their own, nor an attribute of a new object."""
        for code, _, _ in self._codes.values():
            if code.co_name != "__init__":
                yield from _lines(code, writes_itself)

    def hook(self) -> Hook:
        """What the profiler calls: a few instructions for each call in a library, of which there are many."""
        libraries, users, calls = self._libraries, self._users, self._calls

        def hook(frame: FrameType, event: str, arg: Any) -> None:
            if event == "c_call":
                if arg in calls.calls:
                    calls.hook(frame, event, arg)
            elif event == "call":
                if frame.f_code is SEED:
                    calls.hook(frame, event, arg)
                module = frame.f_globals
                at = id(module)
                if at in libraries:
                    return
                if at in users or not is_library(module):
                    users[at] = module
                    if not is_beside(frame):
                        self._call(frame)
                else:
                    libraries[at] = module

        return hook

    def _call(self, frame: FrameType) -> None:
        """A function of the user is called."""
        code = frame.f_code
        if id(code) not in self._codes:
            self._codes[id(code)] = code, frame.f_globals, self._reads.add(code)
        count = code.co_argcount + code.co_kwonlyargcount + (code.co_flags & _ARGUMENTS).bit_count()
        local = frame.f_locals if count else {}
        for name in code.co_varnames[:count]:
            value = local.get(name)
            if id(value) not in self._objects and _may_change(value):
                self._objects[id(value)] = name, value


def _lines(code: CodeType, chosen: Callable[[dis.Instruction, CodeType], bool]) -> Iterator[tuple[str, str]]:
    """(name, where) of the instructions that are chosen."""
    line = code.co_firstlineno
    for i in dis.get_instructions(code):
        line = (i.positions.lineno if i.positions else None) or line
        if chosen(i, code):
            yield str(i.argval), f"{code.co_filename}, line {line}"


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
    """A context in which a hook sees each call, beside a profiler that is set already."""
    before: Any = sys.getprofile()
    profile: Hook = hook
    profiler = getattr(before, "enable", None)  # of cProfile before Python 3.12, which goes on by this
    if callable(before):

        def both(frame: FrameType, event: str, arg: Any) -> None:
            before(frame, event, arg)
            hook(frame, event, arg)

        profile = both
    sys.setprofile(profile)
    try:
        yield
    finally:
        sys.setprofile(None)
        if profiler is not None:
            profiler()
        else:
            sys.setprofile(before)


def watched(traced: Callable[[], Graph], root: Any, copied: Mapping[str, Any]) -> tuple[Graph, Observed]:
    """The Graph of a function, and what it took from outside. traced: calls it; root: the function as users know it, behind
    which closures are looked for. copied: modules by name of which the function has copies."""
    seen = Seen()
    before = Snapshot(root, copied)
    drawn = _drawn()
    with hooked(seen.hook()):
        graph = traced()
    if _drawn() != drawn:
        _refuse_draws(traced)

    def generators() -> None:
        _refuse_generators(traced, seen.observed(root, copied, frozenset()).generators)

    written = _written(seen, before, traced, graph, root, copied, generators)
    observed = seen.observed(root, copied, written)
    if observed.generators:
        _refuse_generators(traced, observed.generators)
    return graph, observed


# --- what the function writes itself ---------------------------------------------------------------------------------


def _written(
    seen: Seen,
    before: Snapshot,
    traced: Callable[[], Graph],
    graph: Graph,
    root: Any,
    copied: Mapping[str, Any],
    generators: Callable[[], None],
) -> frozenset[tuple[int, Any]]:
    """The places that a function changes in each trace. One that computes with what it changes itself, or with what is another
    value each time, is refused: where there is reason to look, it is traced again, and must give the same Graph. generators: refuses captured ones."""
    wrote = before.changes() if seen.could_write() else []
    kept = [c for c in wrote if has_traced(c.now) and not has_traced(c.was)]
    if kept:
        for c in kept:
            c.holder.restore()
        raise InputError(
            f"the traced function keeps a Tensor in {kept[0].label}, which is there after the call, where the Tensor has no value; "
            "a compiled function would set it only when it is traced, not in each run: return the Tensor, or keep it as a state"
        )
    if not wrote and not any(seen.sources()) and not any(seen.writers()):
        return frozenset()
    read = [c for c in wrote if not seen.only_counts(c)]
    after = Snapshot(root, copied)
    key = _key(graph)

    calls = Sources()

    def check() -> list[Change]:
        """Trace again; what was changed by that."""
        try:
            with hooked(calls.hook):
                same = _key(traced()) == key
        except Exception as e:  # of any kind: the function's own
            raise _refusal(seen, read or wrote) from e
        changes = after.changes()
        if not same:
            if not wrote:
                generators()
            raise _refusal(seen, read or wrote or changes)
        if taken := calls.taken():
            raise _something_else(taken.name, taken.where)
        return changes

    try:
        again = check()
        read_again = [c for c in again if not seen.only_counts(c)]
        for _ in range(MORE_TRACES if read_again else 0):
            check()
        for c in read_again:
            if type(c.was) in (int, float) and type(c.now) in (int, float):
                for value in (FAR, FAR - (c.now - c.was)):
                    after.restore(c, type(c.now)(value))
                    check()
    finally:
        after.restore()
    calls.warn_of_clock()
    return frozenset(c.place for c in again)


def _key(graph: Graph) -> Any:
    """Equal for Graphs that compute the same."""
    return structure(graph), graph.output_names


def _refusal(seen: Seen, read: Sequence[Change]) -> InputError:
    """The error for a function that gives something else when it is traced again."""
    if read:
        c = read[0]
        was, now = ("nothing" if x is MISSING else f"{x!r:.40}" for x in (c.was, c.now))
        values = f", from {was} to {now}," if isinstance(c.now, PLAIN) or c.now is MISSING else ""
        return InputError(
            f"the traced function reads {c.label} and changes it{values} and gives something else when it is called again; a compiled "
            "function would change it only when it is traced, not in each run: pass the value as an argument, and change it outside, "
            "or keep it as a state"
        )
    for name, where in seen.sources():
        return _something_else(name, where)
    name, where = next(seen.writers(), ("something", "a function that it calls"))
    return InputError(
        f"the traced function gives something else when it is called again, and sets {name} ({where}); a compiled function would do so "
        "only when it is traced, not in each run: pass what changes as an argument, or keep it as a state"
    )


def _something_else(name: str, where: str) -> InputError:
    return InputError(
        f"the traced function takes from {name} what is something else each time ({where}), and a compiled function would have "
        "the same in every run: draw with sg.rand, sg.randn or singe.random and a key, or pass the value as an argument"
    )


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
        if is_library(frame.f_globals):
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
