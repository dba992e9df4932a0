"""What a model remembers, as inputs and outputs of its Graph: so that a sound may come in parts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from ...graph import Graph, Node
from ...graph.builder import Builder
from ...graph.node import postorder
from ...graph.transform import rebuild
from ...late_dataclass import dataclass
from ...ops.products.recurrent import OPTIONAL

_CARRIED: Final = {"gru": ("state",), "rnn": ("state",), "lstm": ("state", "cell")}
"""The rows that go over a sequence ↦ what they carry from step to step: the names of their inputs, in the order of their results after the
first."""


@dataclass(frozen=True)
class Remembered:
    """The number of an input, the name of the output that is its next value, and what it begins with, None for zeros."""

    place: int
    output: str
    initial: np.ndarray | None = None


def remembering(graph: Graph) -> tuple[Graph, Sequence[Remembered]]:
    """A copy of the graph whose states, and what its recurrent rows carry, are inputs and outputs. Rows that begin with what an input of
    the model says stay as they are."""
    leaves: list[Node] = []
    nexts: list[Node] = []
    given_to_model = set(graph.inputs)

    def rule(b: Builder, n: Node, inputs: tuple[Node, ...]) -> Node | None:
        name = n.row.name if n.row is not None else ""
        if name not in _CARRIED or n.attrs.get("direction", "forward") != "forward":
            return None
        told = dict(zip(n.attrs.get("given", ()), inputs[3:], strict=True))
        original = dict(zip(n.attrs.get("given", ()), n.inputs[3:], strict=True))
        if "lengths" in told or any(
            given_to_model & set(postorder([original[role]])) for role in _CARRIED[name] if role in original
        ):
            return None
        _, directions, batch, hidden = n.results[0][0]
        for role in _CARRIED[name]:
            told[role] = b.input(f"remembered {len(leaves)}", (directions, batch, hidden), n.results[0][1])
            leaves.append(told[role])
        roles = tuple(role for role in OPTIONAL if role in told)
        made = b.node(n.row, *inputs[:3], *(told[role] for role in roles), **{**n.attrs, "given": roles})  # pyright: ignore[reportArgumentType]
        nexts.extend(b.results_of(made)[1 : 1 + len(_CARRIED[name])])
        return made

    copy = rebuild(graph, Builder(), rule)
    leaves.extend(state.leaf for state in copy.states)
    nexts.extend(state.updated for state in copy.states)
    names = [f"remembered {k}" for k in range(len(leaves))]
    facts: dict[str, Any] = {"size_nodes": copy.size_nodes, "checks": copy.checks}
    whole = Graph((*copy.inputs, *leaves), (*copy.outputs, *nexts), (*copy.output_names, *names), **facts)
    initial = [*([None] * (len(leaves) - len(copy.states))), *(state.initial for state in copy.states)]
    kept = zip(names, initial, strict=True)
    return whole, [Remembered(len(copy.inputs) + k, name, first) for k, (name, first) in enumerate(kept)]
