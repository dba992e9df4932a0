"""Products and distances: Einsum, CDist."""

from __future__ import annotations

from ....graph import Node
from .._call import Call, adapter


@adapter("Einsum")
def _einsum(call: Call) -> Node:
    return call.b.einsum(*call.all(), equation=call.attr("equation", ""))


@adapter("com.microsoft.CDist")
def _cdist(call: Call) -> Node:
    metric = call.attr("metric", "sqeuclidean")
    if metric not in ("euclidean", "sqeuclidean"):
        raise call.fail(f"metric is {metric!r}; expected euclidean or sqeuclidean")
    return call.b.cdist(call.x(), call.x(1), squared=metric == "sqeuclidean")
