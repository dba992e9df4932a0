"""The folder in which Singe keeps files: what URLs name, and what it has compiled.

Environment: SINGE_CACHE is the folder (by default `singe` in the user's cache folder); if it is "off", or "0", "no" or "false", nothing that
was compiled is kept, and files from URLs are in the folder that is there by default.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Final

SINGE_CACHE: Final = "SINGE_CACHE"
OFF: Final = "off"
_OFF: Final = (OFF, "0", "no", "false")


def is_off() -> bool:
    """Whether nothing that was compiled is kept."""
    return os.environ.get(SINGE_CACHE, "").lower() in _OFF


def cache_folder() -> Path:
    """Where files are kept."""
    given = os.environ.get(SINGE_CACHE)
    if given and not is_off():
        return Path(given)
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA")
    else:
        base = os.environ.get("XDG_CACHE_HOME") or ("~/Library/Caches" if sys.platform == "darwin" else None)
    return Path(base or "~/.cache").expanduser() / "singe"
