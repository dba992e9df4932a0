"""The function `run` of every module: all calls of a run by one call from outside.

run(at, end): from `at` to `end` lie int32 words in the memory. For each call these are the number of a function, k in
"kN", or COPY, whose arguments are to, from and a count of bytes; how many arguments it is given; and the arguments.
Functions take ALONE after theirs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from .encode import Body, Function, get_local, i32, integers, memory, ops, unsigned

NAME: Final = "run"
COPY: Final = -1
ALONE: Final = (0, 1)
"""The part of a step that a caller by itself carries out, and the count of parts."""
_BLOCK, _END, _LEAVE, _LEAVE_BY, _MOVE = b"\x02\x40", b"\x0b", b"\x0c", b"\x0e", b"\xfc\x0a\x00\x00"
"""block, end, br, br_table and memory.copy."""


def function_number(entry: str) -> int:
    """The number of the function of an entry "module:kN"."""
    return int(entry.rpartition(":k")[2])


def driver(functions: Mapping[str, Function]) -> Function:
    """The function, for functions k0, k1, … in this order."""
    body = Body(integers(2))
    at, end = 0, 1

    def give(count: int) -> None:
        for k in range(count):
            body.add(get_local(at) + memory("i32.load", 8 + 4 * k))

    with body.block():
        body.get(at, end)
        body.op("i32.ge_u")
        body.exit_if()
        with body.repeat():
            last = len(functions)
            body.add(_BLOCK * (last + 2))  # one around all cases, and one that ends where each begins
            body.add(get_local(at) + memory("i32.load"))
            # What is no function's number, COPY alone, comes to the last case.
            body.add(_LEAVE_BY + unsigned(last) + b"".join(map(unsigned, range(last + 1))) + _END)
            for k, (name, function) in enumerate(functions.items()):
                give(len(function.signature.params) - len(ALONE))
                body.add(b"".join(map(i32, ALONE)))
                body.call(name)
                body.add(_LEAVE + unsigned(last - k) + _END)
            give(3)
            body.add(_MOVE + _END)
            body.get(at)
            body.add(get_local(at) + memory("i32.load", 4) + i32(2) + ops("i32.shl i32.add") + i32(8) + ops("i32.add"))
            body.tee(at)
            body.get(end)
            body.op("i32.lt_u")
    return body.finish()
