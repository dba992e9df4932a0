"""Functions of the module onnxruntime that concern the process: its version, its logger, its seed."""

from __future__ import annotations

from typing import Any, Final

from ...texts import say
from ..errors import ValueKindError
from .providers import get_available_providers
from .stand_in import VERSION

MOST_SEVERE: Final = 4
"""The highest level of logging."""


def get_version_string() -> str:
    """The version of onnxruntime whose interface this is."""
    return VERSION


def get_build_info() -> str:
    """What computes."""
    return f"ORT Build Info: the interface of onnxruntime {VERSION}, by Singe"


def print_debug_info() -> None:
    """Print what helps to find a fault."""
    say(get_build_info())
    say(f"providers: {', '.join(get_available_providers())}")


def set_seed(seed: int) -> None:
    """Begin the random numbers of a seed, for ops that draw."""
    from ...random import manual_seed  # noqa: PLC0415 (a session pays for no Tensors)

    manual_seed(seed)


def set_default_logger_severity(severity: int) -> None:
    """How much onnxruntime logs, from 0 to 4; Singe has no such logger."""
    if not 0 <= severity <= MOST_SEVERE:
        raise ValueKindError(f"set_default_logger_severity: got {severity}, expected 0 to {MOST_SEVERE}")


def set_default_logger_verbosity(verbosity: int) -> None:
    """How much onnxruntime logs; Singe has no such logger."""


def enable_telemetry_events() -> None:
    """Nothing: Singe sends nothing anywhere."""


def disable_telemetry_events() -> None:
    """Nothing: Singe sends nothing anywhere."""


def set_global_thread_pool_sizes(intra_op_num_threads: int, inter_op_num_threads: int) -> None:
    """How many threads onnxruntime uses; Singe's devices decide that themselves."""


def preload_dlls(cuda: bool = True, cudnn: bool = True, msvc: bool = True, directory: str | None = None) -> None:
    """Nothing: Singe finds the libraries of a GPU when it opens its device."""


def has_collective_ops() -> bool:
    """Whether there are ops for several processes: there are none."""
    return False


def get_ep_devices() -> list[Any]:
    """The devices of plugins of onnxruntime: there are none."""
    return []
