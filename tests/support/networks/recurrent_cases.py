"""Graphs of the recurrent rows, with every option."""

from __future__ import annotations

from typing import Any

import numpy as np

from singe.dtypes import dtype
from singe.graph import Builder, Graph
from singe.ops import ROWS
from singe.shapes import size

GATES = {"lstm": 4, "gru": 3, "rnn": 1}


PLAIN = {
    "lstm": (("sigmoid", 0.0, 0.0), ("tanh", 0.0, 0.0), ("tanh", 0.0, 0.0)),
    "gru": (("sigmoid", 0.0, 0.0), ("tanh", 0.0, 0.0)),
    "rnn": (("tanh", 0.0, 0.0),),
}


ODD = {
    "lstm": (("hardsigmoid", 0.3, 0.4), ("elu", 0.8, 0.0), ("scaledtanh", 1.2, 0.7)),
    "gru": (("affine", 0.3, 0.2), ("thresholdedrelu", 0.1, 0.0)),
    "rnn": (("softplus", 0.0, 0.0),),
}


CASES: list[tuple[str, tuple[str, ...], dict[str, Any]]] = [
    ("lstm", (), {"activations": PLAIN["lstm"]}),
    ("lstm", ("bias", "lengths", "state", "cell", "peepholes"), {"activations": ODD["lstm"] * 2, "direction": "bidirectional", "clip": 1.5}),
    ("lstm", ("cell",), {"activations": PLAIN["lstm"], "input_forget": True, "direction": "reverse"}),
    ("lstm", ("bias", "lengths", "state", "cell", "projection"), {"activations": PLAIN["lstm"] * 2, "direction": "bidirectional"}),
    ("gru", ("bias", "state"), {"activations": PLAIN["gru"], "linear_before_reset": True}),
    ("gru", ("bias", "lengths"), {"activations": ODD["gru"] * 2, "direction": "bidirectional"}),
    ("rnn", ("lengths", "state"), {"activations": ODD["rnn"], "direction": "reverse"}),
]  # fmt: skip


LENGTH, BATCH, FEATURES, HIDDEN, SHOWN = 4, 3, 2, 5, 3


def built(op: str, given: tuple[str, ...], attrs: dict[str, Any], kind: str) -> tuple[Graph, list[np.ndarray]]:
    """A Graph of one row, and arrays for its inputs."""
    rng, b = np.random.default_rng(0), Builder()
    n, rows = 2 if attrs.get("direction") == "bidirectional" else 1, GATES[op] * HIDDEN
    T, N = size("T"), size("N")
    shown = SHOWN if "projection" in given else HIDDEN
    shapes: dict[str, tuple[Any, ...]] = {
        "x": (T, N, FEATURES), "w": (n, rows, FEATURES), "r": (n, rows, shown), "bias": (n, 2 * rows), "lengths": (N,),
        "state": (n, N, shown), "cell": (n, N, HIDDEN), "peepholes": (n, 3 * HIDDEN), "projection": (n, SHOWN, HIDDEN),
    }  # fmt: skip
    arrays, nodes = [], []
    for name in ("x", "w", "r", *given):
        shape = [{T: LENGTH, N: BATCH}.get(d, d) for d in shapes[name]]
        array = np.array([2, 4, 0], np.int32) if name == "lengths" else rng.uniform(-1, 1, shape).astype(kind)
        arrays.append(array)
        nodes.append(b.input(name, shapes[name], dtype(array.dtype)))
    results = b.apply(ROWS[op], *nodes, given=given, **attrs)
    names = tuple(f"y{k}" for k in range(len(results)))
    return Graph(tuple(nodes), results, names), arrays
