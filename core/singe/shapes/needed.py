"""Needed: the sizes and values that must be known before a Graph can be built."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from ..errors import ImportFailure, ShapeError, SizeNeeded, ValueNeeded
from ..late_dataclass import dataclass


@dataclass(frozen=True)
class Needed:
    """Open sizes that must become numbers, and inputs whose values must be known; each ↦ the reason."""

    sizes: Mapping[str, str] = field(default_factory=dict)
    inputs: Mapping[str, str] = field(default_factory=dict)

    @staticmethod
    def by(error: SizeNeeded | ValueNeeded) -> Needed:
        """The sizes or inputs that an error names."""
        if isinstance(error, SizeNeeded):
            return Needed(sizes=dict.fromkeys(sorted(error.sizes), str(error)))
        return Needed(inputs=dict.fromkeys(error.inputs, str(error)))

    def __bool__(self) -> bool:
        return bool(self.sizes or self.inputs)

    def __or__(self, other: Needed) -> Needed:
        return Needed({**other.sizes, **self.sizes}, {**other.inputs, **self.inputs})

    def error(self) -> ShapeError | ImportFailure:
        """The error to raise if they cannot be provided."""
        why = "; ".join(dict.fromkeys((*self.sizes.values(), *self.inputs.values())))
        return ValueNeeded(why, tuple(self.inputs)) if self.inputs else SizeNeeded(why, frozenset(self.sizes))
