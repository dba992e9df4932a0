"""A bundle as one HTML file, which opens by a double click: scripts, kernels, weights and the page that shows the model are in it.

A page that was opened as a file may load nothing beside it. So the scripts of the bundle become modules of an import map, and `fetch`
gives the other files, which static/single.html does. The page has no connections: what is given to it stays in it.
"""

from __future__ import annotations

import base64
import gzip
import json
import re
from collections.abc import Mapping
from html import escape
from pathlib import Path
from typing import Final

from ....errors import InputError
from ....files import write
from ....files.assets import static_folder
from ....shapes import bytes_text
from .snippet import INDEX

SUFFIX: Final = ".html"

MOST_BYTES: Final = 256 << 20
"""Bytes of a page: a browser holds it as text, and its files a second time."""
TYPES: Final = {".json": "application/json", ".wasm": "application/wasm"}
POLICY: Final = (
    "default-src 'none'; script-src 'unsafe-inline' blob: 'wasm-unsafe-eval'; style-src 'unsafe-inline'; img-src data: blob:; "
    "base-uri 'none'; form-action 'none'"
)
_SCRIPT: Final = re.compile(r"""(["'])\./(singe[\w-]*\.js)(?:\?[^"']*)?\1(?:\s*\+\s*[\w$]+)?""")
"""The name of a script where another imports it, and the version that is added to it."""
_WORKER: Final = re.compile(r"new URL\(\s*$")


def is_single(path: str | Path) -> bool:
    """Whether a path names a page, not a folder."""
    return Path(path).suffix.lower() == SUFFIX


def write_single_page(files: Mapping[str, bytes], path: Path) -> int:
    """Write the files of a bundle as one page; its bytes."""
    page = single_page(files)
    if len(page) > MOST_BYTES:
        raise InputError(
            f"{path}: the page would have {bytes_text(len(page))}, the most is {bytes_text(MOST_BYTES)}; export a folder, store smaller "
            "weights (--dtype int8), or one target (--targets wasm)"
        )
    write(path, [page])
    return len(page)


def single_page(files: Mapping[str, bytes]) -> bytes:
    """The page of a bundle, with all of its files that the page loads."""
    page = files[INDEX].decode()
    page = re.sub(r'(<meta http-equiv="Content-Security-Policy" content=")[^"]*', lambda m: m[1] + escape(POLICY), page)
    page = re.sub(r'<link rel="(?:modulepreload|preload)"[^>]*>\n', "", page)
    page = re.sub(r"const QUERY = [^;]*;", 'const QUERY = "";', page)
    page = re.sub(r"  if \(location\.protocol === \"file:\"\) \{.*?\n  \}\n", "", page, flags=re.S)
    scripts = {name: _named(data.decode()) for name, data in files.items() if name.endswith(".js")}
    others = {name: data for name, data in files.items() if not name.endswith((".js", ".js.map", ".ts", SUFFIX))}
    held = [f'<script type="application/json" id="singe-scripts">{_json(scripts)}</script>']
    held += [_held(name, data) for name, data in others.items()]
    start = (static_folder() / "single.html").read_text("utf-8")
    before, module, after = page.partition('<script type="module">')
    return "".join((before, "\n".join(held), "\n", start, module, _named(after))).encode()


def _named(text: str) -> str:
    """A script that imports others by their names in the import map. A worker is none of these: such a page has no threads."""
    return _SCRIPT.sub(lambda m: m[0] if _WORKER.search(text[: m.start()][-20:]) else f'"singe/{m[2]}"', text)


def _json(data: Mapping[str, str]) -> str:
    return json.dumps(data).replace("<", "\\u003c")


def _held(name: str, data: bytes) -> str:
    """The element of a file: in gzip, if that is smaller by a tenth, and in base64."""
    packed = gzip.compress(data, 9, mtime=0)
    smaller = len(packed) < 0.9 * len(data)
    kind = TYPES.get(Path(name).suffix, "application/octet-stream")
    text = base64.b64encode(packed if smaller else data).decode()
    mark = ' data-packed="gzip"' if smaller else ""
    return f'<script type="text/plain" data-file="{escape(name)}" data-type="{kind}"{mark}>{text}</script>'
