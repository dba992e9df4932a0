"""The choices with which a Graph is compiled."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Final

from ..errors import InputError
from ..late_dataclass import dataclass

if TYPE_CHECKING:
    from ..graph import Graph
    from ..program.block import SharedBlocks

OF_PACKED_WEIGHTS: Final = ("int16", "packed_int8")
"""Activations that change products with packed weights alone."""
ACTIVATIONS: Final = ("float32", *OF_PACKED_WEIGHTS, "int8")


@dataclass(frozen=True)
class Options:
    """The choices of a caller.

    activations: one of ACTIVATIONS, the type in which products and convolutions with constant weights compute, those with
    packed weights of a few bits in "int16" and "int8" alike, and in "packed_int8" some in fewer; see rewrite/integers.py.
    fail_on_host: refuse a graph with ops that the target must leave to the host.
    specialised: sets of sizes for which the Program gets separate steps, each with the graph at these sizes; a run prefers
    the set that names more sizes.
    bounds: the largest values of sizes. Runs beyond them are refused; memory for the bounds is allocated once.
    shared: the weights of other Programs, which are not written again.
    donate: names of inputs whose memory a run may overwrite, and use for an output of the same shape and type. Names that
    are not inputs of the graph are ignored.
    layers: the fact "layers" says which layers compute each buffer, of nodes whose origins were noted. It is for one process: a file
    of the Program does not have it.
    """

    activations: str = "float32"
    fail_on_host: bool = False
    specialised: Sequence[tuple[Mapping[str, int], Graph]] = ()
    bounds: Mapping[str, int] = field(default_factory=dict)
    shared: SharedBlocks | None = None
    donate: Sequence[str] = ()
    layers: bool = False

    def __post_init__(self) -> None:
        if self.activations not in ACTIVATIONS:
            raise InputError(f"activations: got {self.activations!r}, expected one of {', '.join(ACTIVATIONS)}")


PLAIN: Final = Options()
