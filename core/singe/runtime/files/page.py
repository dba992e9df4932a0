"""Access of Python in a page to the page: its files, and the scripts that run Programs there.

The scripts are imported from the package itself, as data: URLs, so that a page only has to install Singe. If the page's
Content-Security-Policy forbids this, the page must import singe-python.js by its URL and register it:
`pyodide.registerJsModule("singe_scripts", await import("./singe-python.js"))`. start.js does so.
"""

from __future__ import annotations

import base64
import re
import sys
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote, urlsplit

from ...errors import DeviceError, DeviceLost, InputError
from ..waiting import IN_PAGE, Later
from .assets import page_scripts

SCRIPTS: Final = "singe_scripts"
"""The name under which singe-python.js is registered with Pyodide."""
_URL: Final = re.compile(r"[a-z][a-z0-9+.-]+://|blob:|data:", re.IGNORECASE)
_IMPORT: Final = re.compile(r"""((?:from|import)\s*\(?\s*)["']\./([\w.-]+\.js)["']""")


# --- files -----------------------------------------------------------------------------------------------------------


def is_url(path: str | Path) -> bool:
    """Whether the path must be fetched: it is a URL, or, in a page, not a file in Python's file system."""
    return isinstance(path, str) and (_URL.match(path) is not None or (IN_PAGE and not Path(path).exists()))


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


# --- scripts ---------------------------------------------------------------------------------------------------------


def scripts() -> Later[Any]:
    """The module singe-python.js: the registered one, otherwise the package's own."""
    try:
        return import_module(SCRIPTS)
    except ModuleNotFoundError:
        return _imported()


async def _imported() -> Any:
    import pyodide_js  # noqa: PLC0415  # pyright: ignore[reportMissingImports]
    from pyodide.code import run_js  # noqa: PLC0415  # pyright: ignore[reportMissingImports]

    try:
        module = await run_js("(url) => import(url)")(data_url(page_scripts(), "singe-python.js", {}))
    except js_errors() as e:
        raise DeviceError(
            f"this page's Content-Security-Policy forbids the scripts of the package ({e}): serve singe-python.js, and "
            f'call pyodide.registerJsModule("{SCRIPTS}", await import("./singe-python.js"))'
        ) from None
    if SCRIPTS not in sys.modules:
        pyodide_js.registerJsModule(SCRIPTS, module)
    return module


def data_url(texts: Mapping[str, str], name: str, made: dict[str, str], way: tuple[str, ...] = ()) -> str:
    """A script as a data: URL in which its imports are data: URLs too. made: URLs made so far; way:
    the chain of scripts that import it."""
    if name in way:
        raise DeviceError(
            f"the scripts {' → '.join((*way[way.index(name) :], name))} import one another in a circle, which data: URLs "
            f"cannot: serve singe-python.js, and register it as {SCRIPTS!r}"
        )
    if name not in made:
        whole = _IMPORT.sub(lambda found: f'{found[1]}"{data_url(texts, found[2], made, (*way, name))}"', texts[name])
        made[name] = "data:text/javascript;base64," + base64.b64encode(whole.encode()).decode()
    return made[name]


def js_errors() -> type[Exception]:
    """The exception that JavaScript errors become in Python."""
    from pyodide.ffi import JsException  # noqa: PLC0415  # pyright: ignore[reportMissingImports]

    return JsException


def device_error(error: Any, doing: str) -> DeviceError:
    """An error of the scripts as a DeviceError."""
    kind = DeviceLost if getattr(error, "code", None) == "lost" else DeviceError
    return kind(f"{doing}: {getattr(error, 'message', error)}")
