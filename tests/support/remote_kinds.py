"""The types of fixtures of tests/unit/remote."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from singe.remote import RemoteServer
from singe.runtime.eager import EagerDevice

Serve: TypeAlias = Callable[..., RemoteServer]
"""(name of a device, options) ↦ a server of it on a free port."""
Join: TypeAlias = Callable[..., EagerDevice]
"""(server, another address of it) ↦ a new client."""
