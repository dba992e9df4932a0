"""The scripts of a page that run Programs there, as Python in the page calls them.

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
from typing import Any, Final

from ..awaitables import MaybeAwaitable
from ..errors import DeviceError, DeviceLost
from ..files.assets import page_scripts
from ..files.urls import js_errors

SCRIPTS: Final = "singe_scripts"
"""The name under which singe-python.js is registered with Pyodide."""
_DESCRIPTION: Final = re.compile(r"/\*\*.*?\*/", re.S)
"""A comment of types: what it imports is not there when the script runs."""
_IMPORT: Final = re.compile(r"""((?:from|import)\s*\(?\s*)["']\./([\w.-]+\.js)["']""")


def scripts() -> MaybeAwaitable[Any]:
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


def data_url(texts: Mapping[str, str], name: str, urls: dict[str, str], way: tuple[str, ...] = ()) -> str:
    """A script as a data: URL in which its imports are data: URLs too. urls: URLs made so far; way:
    the chain of scripts that import it."""
    if name in way:
        raise DeviceError(
            f"the scripts {' → '.join((*way[way.index(name) :], name))} import one another in a circle, which data: URLs "
            f"cannot: serve singe-python.js, and register it as {SCRIPTS!r}"
        )
    if name not in urls:
        code = _DESCRIPTION.sub("", texts[name])
        whole = _IMPORT.sub(lambda found: f'{found[1]}"{data_url(texts, found[2], urls, (*way, name))}"', code)
        urls[name] = "data:text/javascript;base64," + base64.b64encode(whole.encode()).decode()
    return urls[name]


def device_error(error: Any, doing: str) -> DeviceError:
    """An error of the scripts as a DeviceError."""
    kind = DeviceLost if getattr(error, "code", None) == "lost" else DeviceError
    return kind(f"{doing}: {getattr(error, 'message', error)}")
