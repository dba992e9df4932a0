"""onnxruntime's arenas, which are taken and ignored: Singe's devices take memory by themselves."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ...errors import DTypeError
from ..errors import ValueKindError
from ..values import OrtMemoryInfo

_FIRST: Final = ("max_mem", "arena_extend_strategy", "initial_chunk_size_bytes", "max_dead_bytes_per_chunk")
_NAMES: Final = (*_FIRST, "initial_growth_chunk_size_bytes", "max_power_of_two_extend_bytes")


class OrtArenaCfg:
    """How an arena takes memory: four numbers, or settings by their names."""

    max_mem: int
    arena_extend_strategy: int
    initial_chunk_size_bytes: int
    max_dead_bytes_per_chunk: int
    initial_growth_chunk_size_bytes: int
    max_power_of_two_extend_bytes: int

    def __init__(self, *values: int | Mapping[str, int]) -> None:
        given: Mapping[str, int]
        if len(values) == 1 and isinstance(values[0], Mapping):
            given = values[0]
        elif len(values) == len(_FIRST):
            given = {name: value for name, value in zip(_FIRST, values, strict=True) if isinstance(value, int)}
        else:
            raise DTypeError(f"OrtArenaCfg: got {values!r:.80}, expected four whole numbers or a dict")
        for name in given:
            if name not in _NAMES:
                raise ValueKindError(f"Invalid OrtArenaCfg option: {name}; expected {', '.join(_NAMES)}")
        for name in _NAMES:
            setattr(self, name, int(given.get(name, 0 if name == "max_mem" else -1)))


def create_and_register_allocator(mem_info: OrtMemoryInfo, arena_cfg: OrtArenaCfg | None) -> None:
    """Nothing: sessions of a device share its memory."""


def create_and_register_allocator_v2(
    provider_type: str, mem_info: OrtMemoryInfo, options: Mapping[str, str], arena_cfg: OrtArenaCfg | None
) -> None:
    """Nothing: sessions of a device share its memory."""
