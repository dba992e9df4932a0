"""A local cluster of Ray for tests: how it is started, and the end of a worker."""

from __future__ import annotations

import os
import signal
from typing import Any

from singe.cluster import RayStep

ENVIRONMENT = {"RAY_AUTH_MODE": "disabled", "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0", "RAY_USAGE_STATS_ENABLED": "0"}
"""No keys in the user's folder, the loopback interface only, and nothing told to anybody."""


def kill(ray: Any, step: RayStep, count: int) -> None:
    """End some workers as a crash does."""
    for worker in step._workers[:count]:
        pid = ray.get(worker.__ray_call__.remote(lambda self: os.getpid()))
        os.kill(pid, signal.SIGKILL)
