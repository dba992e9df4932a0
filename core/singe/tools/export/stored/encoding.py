"""Encoding: how the weights of a bundle are stored, the same for all its targets."""

from __future__ import annotations

from ....graph import Graph
from ....program.program import ProgramData
from ....program.weight_codecs import StoredPart
from .narrow import Uses, scales_in
from .storage import Channels, Kept, encode


class Encoding:
    """The dtype of the elements, and of activations; collects the arrays that stay float32."""

    def __init__(self, dtype: str, activations: str, graph: Graph) -> None:
        self.dtype = dtype
        self.activations = activations
        self.channels: Channels = {}
        self.kept: list[Kept] = []
        self._scales = scales_in(graph)

    def parts(self, program: ProgramData, uses: Uses | None = None) -> list[StoredPart]:
        """A Program's weights as they are stored."""
        parts, kept = encode(program, self.dtype, self.channels, uses, self._scales)
        self.kept += [k for k in kept if k not in self.kept]
        return parts
