"""Whose function a frame is: a user's, a library's, or an installed package's."""

from __future__ import annotations

import gc
from collections.abc import Mapping
from types import FrameType
from typing import Any, Final

from .places import LIBRARIES

BESIDE: Final = ("logging", "warnings", "importlib._bootstrap")
"""Libraries that call functions of others for a message or an import: nothing that these read is computed with."""
INSTALLED: Final = ("site-packages", "dist-packages")
"""Folders of packages that were installed."""


def is_library(module: Mapping[str, Any]) -> bool:
    """Whether the functions with these globals are a library's."""
    name = module.get("__name__", "")
    return isinstance(name, str) and name.partition(".")[0] in LIBRARIES


def is_installed(frame: FrameType) -> bool:
    """Whether a function is in a package that was installed."""
    return any(folder in frame.f_code.co_filename for folder in INSTALLED)


def is_beside(frame: FrameType) -> bool:
    """Whether a library of BESIDE called a function, or others that called it, or the garbage collector did."""
    collecting = [getattr(x, "__code__", None) for x in gc.callbacks]
    caller: FrameType | None = frame
    while caller is not None and not is_library(caller.f_globals):
        if caller.f_code in collecting:
            return True
        caller = caller.f_back
    return caller is not None and caller.f_globals.get("__name__") in BESIDE
