"""Where scripts of a page find Singe's Python: under a symbol, a function that compiles an ONNX model. `import singe` under Pyodide
puts it there, and `singe/ort` looks for it when it is given a model that was not compiled before."""

from __future__ import annotations

from importlib import import_module
from typing import Any, Final

SYMBOL: Final = "singe.python"
"""The key of the symbol, `Symbol.for("singe.python")`, of the page's global object."""


def offer() -> None:
    """Put the function there."""
    import js  # noqa: PLC0415  # pyright: ignore[reportMissingImports]
    from pyodide.ffi import create_proxy  # noqa: PLC0415  # pyright: ignore[reportMissingImports]

    js.Reflect.set(js.globalThis, getattr(js.Symbol, "for")(SYMBOL), create_proxy(_compiled))


def _compiled(files: Any, targets: Any) -> Any:
    return import_module("singe.tools.export.in_page").compiled(files, targets)
