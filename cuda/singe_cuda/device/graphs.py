"""Lists of commands that are submitted again and again, as graphs of the driver's, which start them with one call.

In one graph all commands run in a row, in another those run at once that do not wait for each other. Either may be faster: small kernels
that run at once use more of the card, but waiting for several costs more than for one. Both are launched in turn and timed, until one is
kept.
"""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Callable, Iterable, Sequence
from ctypes import POINTER, byref, c_float, c_int, c_size_t, c_uint64, c_void_p
from typing import Any, Final

from singe.extension import DeviceError
from singe_gpu.device.memory import Command, Launch

from .waits import Access, waits_of

LEAST_COMMANDS: Final = 2
"""A list of fewer gains nothing as a graph."""
TIMED_LAUNCHES: Final = 8
"""How often the two graphs are launched, in turn, before one is kept."""
_RELAXED: Final = 2
"""The mode of a capture that no other call disturbs, such as one that unloads what the garbage collector finds meanwhile."""
_INSTEAD: Final = 1
"""Of what the next command waits for: instead of what it was, not besides."""


class Recorded(list[Command]):
    """Commands that are submitted again and again."""

    submitted = False
    graphs: Sequence[c_void_p] = ()
    """Theirs, once they were submitted twice: two until one is kept."""
    times: Sequence[tuple[c_void_p, c_void_p]] = ()
    """Events before and after each launch of two graphs."""


class Graphs:
    """call: a function of the driver, by its name. one: submits a command to a stream. stream: where the graphs run. They are captured on
    another one, so that what else is submitted meanwhile does not become a part of them."""

    def __init__(self, call: Callable[..., None], one: Callable[[Command, c_void_p], None], stream: c_void_p) -> None:
        self._call: Final = call
        self._one: Final = one
        self._stream: Final = stream
        self._apart: Final = c_void_p()
        call("StreamCreate", byref(self._apart), 1)

    def submit(self, commands: Recorded) -> None:
        if not commands.submitted or len(commands) < LEAST_COMMANDS:
            commands.submitted = True
            for command in commands:
                self._one(command, self._stream)
            return
        if not commands.graphs:
            in_a_row = [[k - 1] if k else [] for k in range(len(commands))]
            beside = waits_of([_accesses(command) for command in commands])
            kinds = [in_a_row] if beside == in_a_row else [in_a_row, beside]
            commands.graphs = [self._graph(commands, waits) for waits in kinds]
        if len(commands.graphs) == 1:
            self._call("GraphLaunch", commands.graphs[0], self._stream)
        else:
            self._launch_in_turn(commands)

    def _launch_in_turn(self, commands: Recorded) -> None:
        number, events = len(commands.times), (self._event(), self._event())
        self._call("EventRecord", events[0], self._stream)
        self._call("GraphLaunch", commands.graphs[number % 2], self._stream)
        self._call("EventRecord", events[1], self._stream)
        commands.times = [*commands.times, events]
        if len(commands.times) == TIMED_LAUNCHES:
            self._call("EventSynchronize", events[1])
            taken = [self._milliseconds(*pair) for pair in commands.times]
            commands.times = ()
            commands.graphs = [commands.graphs[min(taken[1::2]) < min(taken[::2])]]

    def _event(self) -> c_void_p:
        event = c_void_p()
        self._call("EventCreate", byref(event), 0)
        return self._owned(event, "EventDestroy_v2")

    def _milliseconds(self, first: c_void_p, second: c_void_p) -> float:
        found = c_float()
        self._call("EventElapsedTime", byref(found), first, second)
        return found.value

    def _graph(self, commands: Recorded, waits: Sequence[Sequence[int]]) -> c_void_p:
        """The graph in which each command waits for others."""
        graph, made = c_void_p(), c_void_p()
        self._call("StreamBeginCapture_v2", self._apart, _RELAXED)
        try:
            nodes: list[list[int]] = []
            for command, before in zip(commands, waits, strict=True):
                self._wait_for(node for k in before for node in nodes[k])
                self._one(command, self._apart)
                nodes.append(self._captured())
            self._wait_for(node for found in nodes for node in found)
        finally:
            self._call("StreamEndCapture", self._apart, byref(graph))
        try:
            self._call("GraphInstantiateWithFlags", byref(made), graph, c_uint64(0))
        finally:
            self._call("GraphDestroy", graph)
        return self._owned(made, "GraphExecDestroy")

    def _wait_for(self, nodes: Iterable[int]) -> None:
        """What the next command that is captured waits for."""
        found = list(dict.fromkeys(nodes))
        given = (c_void_p * len(found))(*found)
        self._call("StreamUpdateCaptureDependencies", self._apart, given, c_size_t(len(found)), _INSTEAD)

    def _captured(self) -> list[int]:
        """The node of the last command that was captured; what it waits for, if it copies nothing."""
        status, number, graph, nodes, count = c_int(), c_uint64(), c_void_p(), POINTER(c_void_p)(), c_size_t()
        self._call("StreamGetCaptureInfo_v2", self._apart, *map(byref, (status, number, graph, nodes, count)))
        return [node for k in range(count.value) if (node := nodes[k])]

    def _owned(self, handle: c_void_p, destroy: str) -> c_void_p:
        """What is destroyed once nothing refers to it."""
        weakref.finalize(handle, self._forget, destroy, c_void_p(handle.value)).atexit = False
        return handle

    def _forget(self, destroy: str, handle: c_void_p) -> None:
        with contextlib.suppress(DeviceError):
            self._call(destroy, handle)


def _accesses(command: Command) -> list[Access]:
    """What a command reads and writes."""
    if isinstance(command, Launch):
        found = zip(command.bindings.ports, command.pipeline.written, strict=True)
        return [Access(port.data, port.data + port.bytes, written) for port, written in found]
    sides: Any = ((command.source, False), (command.target, True))
    return [Access(x.buffer.address + x.offset, x.buffer.address + x.offset + x.bytes, written) for x, written in sides]
