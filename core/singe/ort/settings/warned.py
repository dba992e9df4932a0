"""Warnings that are given once."""

from __future__ import annotations

import warnings
from typing import Final

_told: Final[set[str]] = set()


def warn_once(text: str) -> None:
    """Warn of what is not done as it was asked for; the same text is said once in a process."""
    if text not in _told:
        _told.add(text)
        warnings.warn(f"singe.ort: {text}", UserWarning, stacklevel=3)
