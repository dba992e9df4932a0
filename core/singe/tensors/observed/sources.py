"""Calls that give something else each time: of the system's entropy, and of the clock.

C functions have no frames, so a profiler finds the calls. One counts as the traced function's if a function of
users made it, directly or by way of the library's modules for it (`secrets.randbelow`, `uuid.uuid4`, NumPy's generators), and
not if another library or an installed package made it for itself.
"""

from __future__ import annotations

import dis
import random
import sys
import warnings
from collections.abc import Iterator
from types import FrameType
from typing import Any, Final

from ...late_dataclass import dataclass
from .callers import is_beside, is_installed, is_library

ENTROPY: Final = ("posix.urandom", "nt.urandom", "posix.getrandom", "_ssl.RAND_bytes", "_uuid.generate_time_safe")
CLOCK: Final = (
    *(f"time.{kind}{unit}" for kind in ("time", "monotonic", "perf_counter", "process_time", "thread_time") for unit in ("", "_ns")),
    "time.clock_gettime", "time.clock_gettime_ns", "time.localtime", "time.gmtime", "time.ctime", "time.asctime", "time.strftime",
    "datetime.datetime.now", "datetime.datetime.utcnow", "datetime.datetime.today", "datetime.date.today",
)  # fmt: skip
TIME_GIVEN: Final = {"localtime": 1, "gmtime": 1, "ctime": 1, "asctime": 1, "strftime": 2}
"""Functions that do not read the clock if they are called with so many arguments."""
WAYS: Final = ("random", "secrets", "uuid", "datetime")
"""Modules that read entropy or the clock for their callers."""
NUMPY: Final = frozenset(
    ["default_rng", "SeedSequence", "PCG64", "PCG64DXSM", "MT19937", "Philox", "SFC64", "RandomState"]
)
"""Names of what is seeded with entropy if it is called without a seed."""
DRAWS: Final = frozenset(["getrandbits", "randbits"])
SEED: Final[Any] = getattr(random.Random.seed, "__code__", None)
"""The code by which a generator of Python is seeded."""
_WARNED: Final[dict[Any, Any]] = {}
"""The lines that were warned of, as `warnings` keeps them."""
_SYSTEM: Final[Any] = getattr(random.SystemRandom.getrandbits, "__code__", None)


@dataclass(frozen=True)
class VaryingCall:
    """A call. name: as the caller has it; certain: that its result is something else each time."""

    name: str
    file: str
    line: int
    is_clock: bool
    certain: bool

    @property
    def where(self) -> str:
        return f"{self.file}, line {self.line}"


class Sources:
    """The calls of one trace."""

    def __init__(self) -> None:
        self.found: Final[dict[VaryingCall, None]] = {}
        self._entropy: Final = frozenset(_functions(ENTROPY))
        self.calls: Final = self._entropy | frozenset(_functions(CLOCK))

    def hook(self, frame: FrameType, event: str, arg: Any) -> None:
        """What the profiler calls."""
        if event == "c_call":
            if arg in self.calls:
                self._note(frame, arg.__name__, arg not in self._entropy)
        elif event == "call" and frame.f_code is SEED and frame.f_locals.get("a") is None:
            self._note(frame, "seed", False)

    def taken(self) -> VaryingCall | None:
        """A call of which the result is something else each time."""
        return next((s for s in self.found if s.certain), None)

    def warn_of_clock(self) -> None:
        """Name the first line that reads the clock, if one does."""
        found = next((s for s in self.found if s.is_clock), None)
        if found is not None:
            warnings.warn_explicit(
                f"the traced function reads the clock, {found.name} ({found.where}), and a compiled function has in every run what this "
                "gave when it was traced: measure times outside it, or pass the value as an argument",
                UserWarning,
                found.file,
                found.line,
                registry=_WARNED,
            )

    def _note(self, frame: FrameType, name: str, is_clock: bool) -> None:
        caller: FrameType | None = frame
        way = frame
        while caller is not None and caller.f_globals.get("__name__") in WAYS:
            caller, way = caller.f_back, caller
        if caller is None or is_library(caller.f_globals) or is_installed(caller) or is_beside(caller):
            return
        called, count = _call(caller)
        if count >= TIME_GIVEN.get(name, sys.maxsize):
            return
        certain = not is_clock
        if way.f_code is _SYSTEM:  # also what NumPy calls, which makes some generators with a seed that it does not use
            certain = called in DRAWS or (called in NUMPY and (called != "RandomState" or not count))
        label = called or (name if way is frame else way.f_code.co_name)
        found = VaryingCall(label, caller.f_code.co_filename, caller.f_lineno or 0, is_clock, certain)
        self.found.setdefault(found)


def _functions(names: tuple[str, ...]) -> Iterator[Any]:
    """The functions with these names, as far as their modules were imported and have them."""
    for name in names:
        first, *rest = name.split(".")
        value: Any = sys.modules.get(first)
        for part in rest:
            value = getattr(value, part, None)
        if value is not None:
            yield value


def _call(frame: FrameType) -> tuple[str, int]:
    """The name of what a frame calls at present, without the names that it is imported by, and the number of arguments; "" and
    0 where the code does not tell."""
    instructions = [i for i in dis.get_instructions(frame.f_code) if i.offset <= frame.f_lasti]
    count = instructions[-1].arg if instructions and instructions[-1].opname.startswith(("CALL", "PRECALL")) else None
    name = _called(instructions)
    value = {**frame.f_globals, **frame.f_locals}.get(name)
    known = getattr(value, "__name__", None)
    return (known if isinstance(known, str) and known in NUMPY | DRAWS else name), count or 0


def _called(instructions: list[dis.Instruction]) -> str:
    """The name of what the last instruction calls: the longest that begins where the call does."""
    at = instructions[-1].positions if instructions else None
    if at is None or at.col_offset is None:
        return ""
    found = ""
    for i in instructions[:-1]:
        p = i.positions
        if p and (p.lineno, p.col_offset) == (at.lineno, at.col_offset) and isinstance(i.argval, str):
            found = i.argval if i.opname.startswith("LOAD_") else found
    return found
