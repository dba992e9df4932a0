"""Finds the files that pages need: `singe/_static` in a wheel, the repository's `static/` in an editable install."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from ..errors import InputError

_PACKAGE: Final = Path(__file__).parents[1]
_PLACES: Final = (_PACKAGE / "_static", _PACKAGE.parents[1] / "static")
_MARK: Final = "bundle.html"
"""A file that tells our `static` folder from others."""
DIST: Final = "dist"
"""The folder in `static` with the scripts of bundles, where a release built them."""
_FOLDERS: Final = re.compile(r'"(?:\.\.?/)+(?:[\w-]+/)*(singe[\w-]*\.js)"')


def static_folder() -> Path:
    """The folder of the scripts and templates that go into bundles."""
    for place in _PLACES:
        if (place / _MARK).is_file():
            return place
    raise InputError(
        f"the files for pages are missing: looked for {_MARK} in {' and '.join(map(str, _PLACES))}; install singe again"
    )


def page_scripts() -> dict[str, str]:
    """The runner's modules by name, as pages have them: all in one folder, whatever their folders in `static`."""
    found = sorted(static_folder().rglob("singe*.js"), key=lambda path: path.name)
    found = [path for path in found if path.parent.name != DIST]
    return {path.name: _FOLDERS.sub(r'"./\1"', path.read_text("utf-8")) for path in found}
