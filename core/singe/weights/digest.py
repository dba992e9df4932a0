"""`graph_digest(graph)`: a hash of all that a Graph says, the same in every process that makes the same Graph."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from ..dtypes import dtype
from ..files import sha256_of
from ..graph import Graph, regions
from .records import GraphWriter


def graph_digest(graph: Graph) -> str | None:
    """The SHA-256 of what a record has of a Graph, with the hash of each of its arrays. None where that is not all: the functions of
    users' ops, and results that are lists and dicts, are in no record."""
    if graph.results or _has_outside(graph):
        return None
    digests = dict[int, str]()  # by the array's id, all of which the Graph holds

    def entry(array: np.ndarray) -> dict[str, Any]:
        if id(array) not in digests:
            digests[id(array)] = sha256_of(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
        return {"dtype": dtype(array.dtype).name, "shape": array.shape, "digest": digests[id(array)]}

    writer = GraphWriter(entry)
    told = [*writer.model(graph), writer.arrays]
    return sha256_of(json.dumps(told, sort_keys=True).encode())


def _has_outside(graph: Graph) -> bool:
    return any(
        (n.row is not None and n.row.outside) or any(map(_has_outside, regions(n).values())) for n in graph.nodes
    )
