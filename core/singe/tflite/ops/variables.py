"""Variables, which live from run to run: states of the Graph. Tensors of the type "resource" stand for them."""

from __future__ import annotations

from ...graph import Node
from ._call import Numbers, TfliteCall, op


def _name(call: TfliteCall) -> str:
    """The name of the variable for which input 0 stands."""
    handle = call.op.inputs[0] if call.op.inputs else -1
    if handle not in call.handles:
        raise call.fail("input 0 stands for no variable")
    return call.handles[handle]


@op("VAR_HANDLE", numbers=Numbers.OWN)
def _handle(call: TfliteCall) -> list[Node]:
    if call.op.outputs:
        call.handles[call.op.outputs[0]] = f"{call.option('container')}/{call.option('name')}".lstrip("/") or "variable"
    return []


@op("READ_VARIABLE", numbers=Numbers.OWN)
def _read(call: TfliteCall) -> Node:
    """The value that was assigned last: in this run, or in those before."""
    return call.variables.read(call.b, _name(call), call.wanted[0])


@op("ASSIGN_VARIABLE", numbers=Numbers.OWN)
def _assign(call: TfliteCall) -> list[Node]:
    call.variables.values[_name(call)] = call.x(1)
    return []


@op("CALL_ONCE", numbers=Numbers.OWN)
def _once(call: TfliteCall) -> list[Node]:
    """A graph that gives variables what a run begins with."""
    call.variables.begin(call.option("graph"))
    return []
