"""Ops that read elements at places that the model computes: gathered elements, sampled pictures and regions."""

from __future__ import annotations

from ...graph import Node
from ._call import Call, adapter


@adapter("GatherElements")
def _gather_elements(call: Call) -> Node:
    x = call.x()
    return call.b.gather_elements(x, call.x(1), axis=call.axis(0, len(x.shape)))


@adapter("GatherND")
def _gather_nd(call: Call) -> Node:
    return call.b.gather_nd(call.x(), call.x(1), batch=call.attr("batch_dims", 0))
