"""Products: Einsum."""

from __future__ import annotations

from ...graph import Node
from ._call import Call, adapter


@adapter("Einsum")
def _einsum(call: Call) -> Node:
    return call.b.einsum(*call.all(), equation=call.attr("equation", ""))
