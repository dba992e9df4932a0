"""What two state dicts have in common, and where they differ."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from ..late_dataclass import dataclass
from ..shapes import show
from ..texts import escaped

SHOWN: Final = 12
"""The most names of a kind that a report prints."""


@dataclass(frozen=True)
class WeightsReport:
    """What `load_weights` found: the names in the module and in the file, after renaming; print it to read it."""

    loaded: tuple[str, ...]
    missing: tuple[str, ...]
    """In the module, and not in the file."""
    left_over: tuple[str, ...]
    """In the file, and not in the module."""
    misshapen: Mapping[str, tuple[Any, Any]]
    """In both, but of different shapes: name ↦ (the file's, the module's)."""

    @property
    def misfits(self) -> list[str]:
        """`misshapen`, for people."""
        return [f"{k} is {show(given)}, expected {show(own)}" for k, (given, own) in self.misshapen.items()]

    def __str__(self) -> str:
        kinds = {"missing": self.missing, "left over": self.left_over, "of another shape": self.misfits}
        lines = [f"{what}: {len(names)}{_listed(names)}" for what, names in kinds.items() if names]
        return "\n".join(
            [f"loaded: {len(self.loaded)} of {len(self.loaded) + len(self.missing) + len(self.misshapen)}", *lines]
        )


def _listed(names: Sequence[str]) -> str:
    shown = "".join(f"\n  {escaped(name)}" for name in names[:SHOWN])
    return f"{shown}\n  and {len(names) - SHOWN} more" if len(names) > SHOWN else shown


def compared(given_state: Mapping[str, Any], own: Mapping[str, Any]) -> WeightsReport:
    """What of the given arrays fits a module's own tensors."""
    shapes = {k: (tuple(given_state[k].shape), tuple(t.shape)) for k, t in own.items() if k in given_state}
    misshapen = {k: pair for k, pair in shapes.items() if pair[0] != pair[1]}
    return WeightsReport(
        tuple(k for k in shapes if k not in misshapen),
        tuple(k for k in own if k not in given_state),
        tuple(k for k in given_state if k not in own),
        misshapen,
    )
