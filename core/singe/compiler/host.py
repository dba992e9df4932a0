"""Where ops run: the closed list of those that run on the host by design, whatever the device, and why."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

BY_DESIGN: Final[Mapping[str, str]] = dict.fromkeys(
    ("nonzero", "unique", "compress", "non_max_suppression"), "the shape of its result depends on data"
)
"""Ops that run on the host by design ↦ the reason."""


def where_host(target: str, ops: Iterable[str]) -> dict[str, str]:
    """Why each of some ops of a Program runs on the host."""
    return {op: BY_DESIGN.get(op, f"the target {target!r} has no function for it") for op in ops}
