"""The function `run` of every module executes a whole run in one call, including its conditions and loops.

run(at, end) executes the int32 words in memory from `at` to `end`, and returns where it stopped. The words are those of
a Plan (singe.extension.words), with addresses in place of buffers, and N for a call of the function "kN". Functions get ALONE
after their arguments. A run ends at `end`, or at a STOP, after which its caller continues. Where threads share runs, a function of
shared_runs.py makes the calls.
"""

from __future__ import annotations

from collections.abc import Mapping

from singe.extension import words

from .calls import ALONE
from .code.encode import Body, Function, get_local, i32, integers, memory, ops, unsigned_leb

_BLOCK, _END, _LEAVE, _LEAVE_IF, _LEAVE_BY = b"\x02\x40", b"\x0b", b"\x0c", b"\x0d", b"\x0e"
"""block, end, br, br_if and br_table."""
_STOP, _AGAIN, _LOOP, _UNLESS, _JUMP, _COPY, _FUNCTIONS = range(7)
"""The cases of the switch, in the order of the heads' numbers (STOP is the least); the functions' cases come last."""


def driver(functions: Mapping[str, Function], step: str = "") -> Function:
    """The function, for functions k0, k1, … in this order. step: the function that is given the address of each group that calls one, and
    makes the call."""
    body = Body(integers(2), ["i32"])
    at, end, left = 0, 1, body.local("i32")
    behind = _FUNCTIONS + (1 if step else len(functions))  # behind the cases: on to the next group
    moved = behind + 1  # `at` is the next group's already

    def word(k: int) -> bytes:
        """The group's k-th word."""
        return get_local(at) + memory("i32.load", 4 * k)

    def to(here: int, there: int) -> bytes:
        """From one case to where a later one begins."""
        return unsigned_leb(there - here - 1)

    target = get_local(at) + word(2) + i32(2) + ops("i32.shl i32.add")
    with body.block():
        body.get(at, end)
        body.op("i32.ge_u")
        body.exit_if()
        with body.repeat():
            body.add(_BLOCK * moved + _BLOCK)  # one ends where each case begins
            body.add(word(0) + i32(-words.STOP) + ops("i32.add"))
            # A number that is not a function's (only STOP is left) goes to the first case; all that are to the last one, if that is `step`.
            other = _FUNCTIONS if step else 0
            body.add(_LEAVE_BY + unsigned_leb(behind) + b"".join(map(unsigned_leb, (*range(behind), other))) + _END)
            body.add(get_local(at) + ops("return") + _END)

            body.add(target + i32(-4) + ops("i32.add"))
            body.tee(left)
            body.add(get_local(left) + memory("i32.load") + i32(1) + ops("i32.sub") + memory("i32.store"))
            body.add(get_local(left) + memory("i32.load") + _LEAVE_IF + to(_AGAIN, _JUMP))
            body.add(_LEAVE + to(_AGAIN, behind) + _END)

            body.add(get_local(at) + word(3) + memory("i32.store", 16) + word(3) + _LEAVE_IF + to(_LOOP, behind))
            body.add(_LEAVE + to(_LOOP, _JUMP) + _END)

            body.add(word(3) + memory("i32.load8_u") + _LEAVE_IF + to(_UNLESS, behind) + _END)

            body.add(target)
            body.set(at)
            body.add(_LEAVE + to(_JUMP, moved) + _END)

            body.add(word(2) + word(3) + word(4) + ops("memory.copy") + _LEAVE + to(_COPY, behind) + _END)
            for k, (name, function) in enumerate(() if step else functions.items(), _FUNCTIONS):
                push_arguments(body, at, function)
                body.add(b"".join(map(i32, ALONE)))
                body.call(name)
                body.add(_LEAVE + to(k, behind) + _END)
            if step:
                body.get(at)
                body.call(step)
                body.add(_END)
            body.add(get_local(at) + word(1) + i32(2) + ops("i32.shl i32.add") + i32(8) + ops("i32.add"))
            body.set(at)
            body.add(_END)
            body.get(at, end)
            body.op("i32.lt_u")
    body.get(at)
    return body.finish()


def push_arguments(body: Body, at: int, function: Function) -> None:
    """Push the words of the group whose address a local holds, as the arguments of a function, without its part."""
    for k in range(2, 2 + len(function.signature.params) - len(ALONE)):
        body.add(get_local(at) + memory("i32.load", 4 * k))
