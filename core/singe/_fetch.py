"""Files that a page fetches: by URL, relative ones against the page's address."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

from ._errors import InputError
from ._waiting import IN_PAGE

_URL: Final = re.compile(r"[a-z][a-z0-9+.-]+://|blob:|data:", re.IGNORECASE)


def is_url(path: str | Path) -> bool:
    """Whether it is to be fetched: a URL, or in a page what is no file of Python's own."""
    return isinstance(path, str) and (_URL.match(path) is not None or (IN_PAGE and not Path(path).exists()))


def stem_of(url: str) -> str:
    """The name of the file that a URL leads to, without its suffix."""
    return Path(unquote(urlsplit(url).path)).stem or "model"


async def fetch(url: str) -> bytes:
    """The bytes that a URL leads to."""
    if not IN_PAGE:
        raise InputError(f"{url}: URLs are fetched in pages; here, download the file and give its path")
    import js  # noqa: PLC0415  # pyright: ignore[reportMissingImports]
    from pyodide.ffi import JsException  # noqa: PLC0415  # pyright: ignore[reportMissingImports]

    try:
        response = await js.fetch(url)
        if response.ok:
            return (await response.arrayBuffer()).to_bytes()
    except JsException as e:
        raise InputError(f"cannot fetch {url}: {e}") from None
    raise InputError(f"cannot fetch {url}: the server answers {response.status}")
