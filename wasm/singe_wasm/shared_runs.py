"""The functions by which threads share a run: WebAssembly that they all execute, over a few words at the start of the memory.

The thread of a run executes `run` (driver.py). Where the head of a call says how many parts it has, `share` offers these as tickets, takes
tickets itself, and goes on once all are done. Other threads are in `serve(number)`: they take tickets as long as the run with that number
goes on, so a thread that comes late, or that the system does not let run, delays nobody. After a run, and after a trap in it, its thread
calls `close`, which returns once no other thread works at it. A thread calls `fail` after a trap in `serve`, and the run ends in a trap, too.

A thread that waits looks again for about SPINS turns, then sleeps until another one wakes it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from .calls import (
    BUSY,
    FAILED,
    FUNCTION,
    GROUP,
    NAME,
    NUMBER,
    PARTS_BITS,
    SLEEPING,
    SPACE_BITS,
    SPACE_WORDS,
    SPACES,
    STATE,
    STRIDE,
    WAITING,
)
from .code.encode import Body, Function, atomic, get_local, i32, i64, integers, memory, ops, unsigned_leb
from .driver import driver, push_arguments

SPINS: Final = 100_000
"""Turns of waiting, which take a processor about as long as to wake a thread: 20 to 70 µs."""

_ENDED, _NONE = -2, -1
"""Instead of a ticket: the run has ended; none is left for now."""
_FOREVER: Final = i64(-1)
_BLOCK, _END, _LEAVE_BY = b"\x02\x40", b"\x0b", b"\x0e"


def shared_runs(functions: Mapping[str, Function]) -> Mapping[str, Function]:
    """The functions by name, for functions k0, k1, … in this order."""
    return {
        NAME: driver(functions, "step"), "step": _step(), "call": _call(functions), "share": _share(), "take": _take(), "work": _work(),
        "serve": _serve(), "leave": _leave(), "settle": _settle(), "close": _close(), "fail": _fail(),
    }  # fmt: skip


def _step() -> Function:
    """(group): make its call, alone or together."""
    body = Body(integers(1))
    parts = get_local(0) + memory("i32.load") + i32(PARTS_BITS) + ops("i32.shr_u")
    body.add(parts)
    with body.when():
        body.add(get_local(0) + parts)
        body.call("share")
        body.otherwise()
        body.add(get_local(0) + i32(0) + i32(1))
        body.call("call")
    return body.finish()


def _call(functions: Mapping[str, Function]) -> Function:
    """(group, part, parts): call the group's function for a part."""
    body = Body(integers(3))
    count = len(functions)
    body.add(_BLOCK * (count + 1))  # one ends where each case begins, and the last one behind them
    body.add(get_local(0) + memory("i32.load") + i32(FUNCTION) + ops("i32.and"))
    body.add(_LEAVE_BY + unsigned_leb(count) + b"".join(map(unsigned_leb, range(count + 1))) + _END)
    for name, function in functions.items():
        push_arguments(body, 0, function)
        body.get(1, 2)
        body.call(name)
        body.op("return")
        body.add(_END)
    body.op("unreachable")
    return body.finish()


def _share() -> Function:
    """(group, parts): make its call together with other threads."""
    body = Body(integers(2))
    number = i32(0) + memory("i32.load", NUMBER)
    body.add(i32(0) + get_local(0) + memory("i32.store", GROUP))
    state = number + ops("i64.extend_i32_u") + i64(32) + ops("i64.shl")
    state += get_local(1) + i32(16) + ops("i32.shl i64.extend_i32_u i64.or")
    body.add(i32(0) + state + atomic("i64.atomic.store", STATE))
    _wake(body, SLEEPING, STATE)
    body.add(number)
    body.call("work")
    body.op("drop")
    body.call("settle")
    body.add(i32(0) + atomic("i32.atomic.load", FAILED))
    with body.when():
        body.op("unreachable")
    return body.finish()


def _take() -> Function:
    """(number of the run) ↦ the next ticket, or _NONE, or _ENDED."""
    body = Body(integers(1), ["i32"])
    state, low = body.local("i64"), body.local("i32")
    with body.repeat():
        body.add(i32(0) + atomic("i64.atomic.load", STATE))
        body.tee(state)
        body.add(i64(32) + ops("i64.shr_u i32.wrap_i64") + get_local(0) + ops("i32.ne"))
        with body.when():
            body.add(i32(_ENDED) + ops("return"))
        body.add(get_local(state) + ops("i32.wrap_i64"))
        body.tee(low)
        body.add(i32(0xFFFF) + ops("i32.and") + get_local(low) + i32(16) + ops("i32.shr_u i32.ge_u"))
        with body.when():
            body.add(i32(_NONE) + ops("return"))
        one_more = get_local(state) + i64(1) + ops("i64.add")
        body.add(i32(0) + get_local(state) + one_more + atomic("i64.atomic.rmw.cmpxchg", STATE))
        body.add(get_local(state) + ops("i64.ne"))
    body.add(get_local(low) + i32(0xFFFF) + ops("i32.and"))
    return body.finish()


def _work() -> Function:
    """(number of the run) ↦ _NONE or _ENDED: take and do tickets until there is none."""
    body = Body(integers(1), ["i32"])
    ticket, group, head, space = (body.local("i32") for _ in range(4))
    with body.block(), body.repeat():
        body.get(0)
        body.call("take")
        body.tee(ticket)
        body.add(i32(0) + ops("i32.lt_s") + b"\x0d\x01")
        body.add(i32(0) + memory("i32.load", GROUP))
        body.tee(group)
        body.add(memory("i32.load"))
        body.tee(head)
        # The word of the workspace, of which each ticket but the first has its own, and a copy of the group that says where.
        body.add(i32(SPACE_BITS) + ops("i32.shr_u") + i32((1 << PARTS_BITS - SPACE_BITS) - 1) + ops("i32.and"))
        body.set(space)
        body.add(get_local(ticket) + i32(0) + get_local(space) + ops("select"))
        with body.when():
            copy = body.local("i32")
            word = lambda offset: i32(0) + memory("i32.load", offset)
            body.add(word(SPACES) + get_local(ticket) + i32(1) + ops("i32.sub") + word(STRIDE) + ops("i32.mul i32.add"))
            body.tee(copy)
            body.add(get_local(group) + get_local(group) + memory("i32.load", 4) + i32(2) + ops("i32.add"))
            body.add(i32(2) + ops("i32.shl memory.copy"))
            body.add(get_local(copy) + get_local(space) + i32(2) + ops("i32.shl i32.add"))
            body.add(get_local(copy) + i32(4 * SPACE_WORDS) + ops("i32.add") + memory("i32.store"))
            body.get(copy)
            body.set(group)
        body.add(get_local(group) + get_local(ticket) + get_local(head) + i32(PARTS_BITS) + ops("i32.shr_u"))
        body.call("call")
        body.add(i32(1))
    body.get(ticket)
    return body.finish()


def _serve() -> Function:
    """(number of a run): help until it has ended."""
    body = Body(integers(1))
    left, state = body.local("i32"), body.local("i64")
    with body.repeat():
        body.add(i32(0) + i32(1) + atomic("i32.atomic.rmw.add", BUSY) + ops("drop"))
        body.get(0)
        body.call("work")
        body.call("leave")
        body.add(i32(_ENDED) + ops("i32.eq"))
        with body.when():
            body.op("return")
        body.add(i32(SPINS))
        body.set(left)
        with body.block():
            with body.repeat():
                body.add(i32(0) + atomic("i64.atomic.load", STATE))
                body.tee(state)
                body.add(i64(32) + ops("i64.shr_u i32.wrap_i64") + get_local(0) + ops("i32.ne"))
                with body.when():
                    body.op("return")
                body.add(
                    get_local(state) + i64(0xFFFF) + ops("i64.and") + get_local(state) + i64(16) + ops("i64.shr_u")
                )
                body.add(i64(0xFFFF) + ops("i64.and i64.lt_u") + b"\x0d\x01")
                body.increase(left, -1)
                body.get(left)
            body.add(i32(0) + i32(1) + atomic("i32.atomic.rmw.add", SLEEPING) + ops("drop"))
            body.add(i32(0) + get_local(state) + _FOREVER + atomic("memory.atomic.wait64", STATE) + ops("drop"))
            body.add(i32(0) + i32(1) + atomic("i32.atomic.rmw.sub", SLEEPING) + ops("drop"))
        body.add(i32(1))
    return body.finish()


def _leave() -> Function:
    """One thread less is at work."""
    body = Body([])
    body.add(i32(0) + i32(1) + atomic("i32.atomic.rmw.sub", BUSY) + i32(1) + ops("i32.eq"))
    with body.when():
        _wake(body, WAITING, BUSY)
    return body.finish()


def _settle() -> Function:
    """Wait until no other thread is at work."""
    body = Body([])
    left, busy = body.local("i32"), body.local("i32")
    body.add(i32(SPINS))
    body.set(left)
    with body.repeat():
        body.add(i32(0) + atomic("i32.atomic.load", BUSY))
        body.tee(busy)
        body.op("i32.eqz")
        with body.when():
            body.op("return")
        body.add(get_local(left))
        with body.when():
            body.increase(left, -1)
            body.otherwise()
            body.add(i32(0) + i32(1) + atomic("i32.atomic.store", WAITING))
            body.add(i32(0) + get_local(busy) + _FOREVER + atomic("memory.atomic.wait32", BUSY) + ops("drop"))
            body.add(i32(0) + i32(0) + atomic("i32.atomic.store", WAITING))
        body.add(i32(1))
    return body.finish()


def _close() -> Function:
    """End a run."""
    body = Body([])
    body.add(i32(0) + i64(0) + atomic("i64.atomic.store", STATE))
    _wake(body, SLEEPING, STATE)
    body.call("settle")
    return body.finish()


def _fail() -> Function:
    """Let the run fail whose ticket this thread has."""
    body = Body([])
    body.add(i32(0) + i32(1) + atomic("i32.atomic.store", FAILED))
    body.call("leave")
    return body.finish()


def _wake(body: Body, sleepers: int, word: int) -> None:
    """Wake the threads that wait for a word to change, if there are any."""
    body.add(i32(0) + atomic("i32.atomic.load", sleepers))
    with body.when():
        body.add(i32(0) + i32(-1) + atomic("memory.atomic.notify", word) + ops("drop"))
