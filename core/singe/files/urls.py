"""URLs in place of paths: which they are, and in a page how their bytes are fetched."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

from ..awaitables import IN_PAGE
from ..errors import InputError

ZOO: Final = "zoo:"
"""With what the name of a ready model begins; see zoo/."""
_URL: Final = rf"[a-z][a-z0-9+.-]+://|blob:|data:|{ZOO}"


def is_url(path: str | Path) -> bool:
    """Whether the path must be fetched: it is a URL, or, in a page, not a file in Python's file system."""
    if not isinstance(path, str):
        return False
    is_one = ":" in path and re.match(_URL, path, re.IGNORECASE) is not None
    return is_one or (IN_PAGE and not Path(path).exists())


def stem_of(url: str) -> str:
    """The name of the file at a URL, without its suffix; "model" where it has none, as in data: URLs."""
    parts = urlsplit(url)
    return ("" if parts.scheme == "data" else Path(unquote(parts.path)).stem) or "model"


async def fetch(url: str) -> bytes:
    """The bytes at a URL; a relative URL is resolved against that of the page."""
    if not IN_PAGE:
        raise InputError(f"{url}: only pages fetch with it; here, `singe.load(url)` keeps the file in a cache folder")
    import js  # noqa: PLC0415  # pyright: ignore[reportMissingImports]

    try:
        response = await js.fetch(url)
        if response.ok:
            return (await response.arrayBuffer()).to_bytes()
    except js_errors() as e:
        raise InputError(f"cannot fetch {url}: {e}") from None
    raise InputError(f"cannot fetch {url}: the server answers {response.status}")


def js_errors() -> type[Exception]:
    """The exception that JavaScript errors become in Python."""
    from pyodide.ffi import JsException  # noqa: PLC0415  # pyright: ignore[reportMissingImports]

    return JsException
