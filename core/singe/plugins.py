"""What installed packages add to Singe, found through entry points: targets and backends are never imported by name."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any


@cache
def plugins(group: str) -> Mapping[str, Any]:
    """The entry points of a group ("singe.targets", "singe.backends") by name."""
    from importlib.metadata import entry_points  # noqa: PLC0415 (a third of the time that `import singe` may take)

    return {e.name: e for e in entry_points(group=group)}
