"""Modules in sequence, in lists and in dicts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Self, overload

from ._module import Module


class Sequential(Module, inline="layers"):
    """Applies layers one after the other. They are named by their numbers, or by the keys of a dict. A slice is a Sequential."""

    layers: tuple[Module, ...] | dict[str, Module]

    def __init__(self, *layers: Module | Mapping[str, Module]) -> None:
        first = layers[0] if len(layers) == 1 else None
        self.layers = dict(first) if isinstance(first, Mapping) else layers  # pyright: ignore[reportAttributeAccessIssue]

    def forward(self, x: Any) -> Any:
        for layer in self:
            x = layer(x)
        return x

    def __iter__(self) -> Iterator[Module]:
        return iter(self.layers.values() if isinstance(self.layers, dict) else self.layers)

    def __len__(self) -> int:
        return len(self.layers)

    @overload
    def __getitem__(self, index: int) -> Module: ...
    @overload
    def __getitem__(self, index: slice) -> Self: ...
    def __getitem__(self, index: int | slice) -> Module:
        if not isinstance(index, slice):
            return list(self)[index]
        some = dict(list(self.layers.items())[index]) if isinstance(self.layers, dict) else self.layers[index]
        return self.replace(layers=some)


class ModuleList(list[Module]):
    """A list, under PyTorch's name: any list in a field is one."""


class ModuleDict(dict[str, Module]):
    """A dict, under PyTorch's name: any dict in a field is one."""
