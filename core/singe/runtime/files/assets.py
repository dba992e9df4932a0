"""Finds the files that pages need: `singe/_static` in a wheel, the repository's `static/` in an editable install."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from ...errors import InputError

_PACKAGE: Final = Path(__file__).parents[2]
_PLACES: Final = (_PACKAGE / "_static", _PACKAGE.parents[1] / "static")
_MARK: Final = "bundle.html"
"""A file that tells our `static` folder from others."""


def static_folder() -> Path:
    """The folder of the scripts and templates that go into bundles."""
    for place in _PLACES:
        if (place / _MARK).is_file():
            return place
    raise InputError(
        f"the files for pages are missing: looked for {_MARK} in {' and '.join(map(str, _PLACES))}; install singe again"
    )
