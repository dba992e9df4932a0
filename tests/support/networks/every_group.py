"""A Program with each kind of group, of stop, and of attribute."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np

from singe.compiler.schedule.steps import Copy, Dispatch, If, Loop, words_of
from singe.dtypes import bool_, float32, int64
from singe.program.program import (
    Bind,
    Buffer,
    Check,
    Code,
    Host,
    ProgramData,
    Specialised,
    State,
    Variant,
)
from singe.program.ranges import IndexRange
from singe.shapes import evaluate, size

WORDS: Final = (
    *(0, 3, 0, 2, 0),  # 0: kernel 0 over x and t
    *(-1, 3, 3, 0, 0),  # 5: a copy of x to y
    *(-6, 1, 0),  # 10: the op
    *(-3, 2, 12, 6),  # 13: to 25 unless the flag is true
    *(-1, 3, 3, 0, 0),  # 17
    *(-2, 1, 8),  # 22: to 30
    *(-1, 3, 3, 0, 0),  # 25
    *(-4, 3, 17, 0, 0),  # 30: a loop to 47
    *(-3, 2, 12, 6),  # 35: to 47
    *(-1, 3, 2, 0, 0),  # 39
    *(-5, 1, -9),  # 44: to 35
    *(-3, 2, 7, 6),  # 47: to 54
    *(-2, 1, -4),  # 51: to 47
    *(-6, 1, 1),  # 54: M is bound
    *(-6, 1, 2),  # 57: K is bound
    *(-6, 1, 3),  # 60: K is checked
)
"""The words of `every_group`, and the positions of their groups."""


def every_group() -> ProgramData:
    """Its op is one that Singe lacks: it is never run."""
    n = size("N")
    buffers = (
        Buffer("x", float32, (n, 4), 4, ("input", 0)),
        Buffer("k", int64, (1,), 8, ("weights", 0)),
        Buffer("t", float32, ((n + 1) // 2, 4), 4, ("slot", 0)),
        Buffer("y", float32, (n, 4), 4, ("output", 0)),
        Buffer("count", int64, (1,), 8, ("state", 0)),
        Buffer("sum", float32, (2, 2), 4, ("state", 1)),
        Buffer("flag", bool_, (), 4, ("slot", 0)),
    )
    host = Host(
        "of_another_package",
        {"axes": (0, n * 2), "to": int64, "least": -np.inf, "eps": 0.5, "name": "a", "flag": True},
        (0,),
        (2,),
    )
    steps = (
        Dispatch(0, (0, 2)),
        Copy(0, 3),
        host,
        If(6, (Copy(0, 3),), (Copy(0, 3),)),
        Loop(n + 1, 6, (Copy(0, 2),)),
        Loop(None, 6, ()),
        Bind("M", buffer=1),
        Bind("K", dim=n * 2),
        Check(size("K") - 2, "K must be at least 2"),
    )
    closed = tuple(replace(b, shape=tuple(evaluate(d, {"N": 8}) for d in b.shape)) for b in buffers)
    kernel = Code("relu", "elementwise", 2, (n * 4,), (Variant("w0", ("shader-f16",), (n, 1, 1)),), n * 4, n * 32)
    modules = {"w0": "fn main() {}", "b": b"\0asm"}
    return ProgramData(
        "wgsl", (0,), (3,), buffers, 1, (kernel,), *words_of(steps, (kernel,), (0,)), modules, np.arange(256, dtype=np.uint8), {"ops": {"relu": 1}},
        (State("count", 4, 1), State("sum", 5, None)),
        ((size("N") - 1, "N must be at least 1"),),
        (Specialised({"N": 8}, 1, closed, *words_of(steps[:2], (kernel,), (0,)), ((size("M") - 1, "M must be at least 1"),)),),
        {"N": 64},
        (IndexRange(0, ((0, 2, size("N")), (0, 1, 4)), -4, size("N"), -100, "index"),),
    )  # fmt: skip
