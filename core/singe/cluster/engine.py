"""Ray, imported when it is used. Only this module needs it (the extra `cluster`)."""

from __future__ import annotations

from typing import Any

from ..errors import DeviceError, DeviceLost


class PeerLost(DeviceLost):
    """Another worker, with which this one exchanges gradients, went away or did not come."""


def engine() -> Any:
    """The package ray. Ray connects to the cluster that the program or the environment (RAY_ADDRESS) names, or starts one on
    this machine, when it is first used."""
    try:
        import ray  # noqa: PLC0415  # pyright: ignore[reportMissingImports]
        import ray.util  # noqa: PLC0415  # pyright: ignore[reportMissingImports]
    except ImportError as e:
        raise DeviceError(
            f"training and inference on several machines need the package ray: pip install 'singe[cluster]' ({e})"
        ) from e
    return ray


def serve() -> Any:
    """The package ray.serve."""
    engine()
    try:
        import ray.serve  # noqa: PLC0415  # pyright: ignore[reportMissingImports]
    except ImportError as e:
        raise DeviceError(f"serving models by Ray needs Ray Serve: pip install 'singe[serve]' ({e})") from e
    return ray.serve


def is_lost(e: Any) -> bool:
    """Whether an error of Ray is the end of a process or of a machine, and not an error of the code that ran there."""
    errors = engine().exceptions
    cause = e.cause if isinstance(e, errors.RayTaskError) else e
    lost = isinstance(cause, (errors.RayError, PeerLost))
    return lost and not isinstance(cause, errors.RayTaskError)
