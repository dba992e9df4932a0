"""The lines of HTML with which a page loads a bundle in the fewest trips to the server.

Without hints a page learns of one file from another: of singe.js from the page, of model.json from singe.js, of kernels and
weights from model.json. `links` names them in the page, so that a browser asks for all at once. Addresses have the
version of the bundle as their query: a server may then say that they never change, and a second visit asks only for the
page. static/README.md, "The fewest trips", documents this for pages that are written by hand.
"""

from __future__ import annotations

import hashlib
import html
import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

from ....files.places import MANIFEST
from .scripts import EAGER, MAIN, TASKS

INDEX: Final = "index.html"
KERNELS: Final = "relaxed"
"""The module of target wasm that most browsers take. Others fetch theirs a trip later."""
FIRST_PIECES: Final = 2
"""How many files of weights are hinted at: browsers have six connections to a server, and four files are others."""


SOURCES: Final = {
    "picture": 'document.querySelector("img")',
    "sound": '"talk.wav"',
    "text": '"a text"',
    "speech": '"Good morning."',
    "hearing": '"talk.wav"',
    "moonshine": '"talk.wav"',
    "translating": '"Good morning."',
}
"""A medium ↦ what stands for a source in JavaScript."""


def source_of(manifest: Mapping[str, Any]) -> str:
    """What a task's page may give it; several models take pictures."""
    return SOURCES[manifest["task"].get("preparation", {}).get("medium", "picture")]


def version(files: Mapping[str, bytes]) -> str:
    """A name for a bundle's contents, 16 hexadecimal digits."""
    digest = hashlib.sha256()
    for name, data in sorted(files.items()):
        if name != INDEX:
            digest.update(f"{name}\0{len(data)}\0".encode())
            digest.update(data)
    return digest.hexdigest()[:16]


def links(folder: str, scripts: Collection[str], fetched: Sequence[str], query: str = "") -> str:
    """Hints for a page: the scripts that every load needs, and files that are fetched."""
    eager = [MAIN, *sorted(set(scripts) & EAGER - {MAIN})]
    lines = [f'<link rel="modulepreload" href="{_attribute(folder + name + query)}">' for name in eager]
    lines += [
        f'<link rel="preload" as="fetch" crossorigin href="{_attribute(folder + name + query)}">' for name in fetched
    ]
    return "\n".join(lines)


def snippet(folder: str, manifest: Mapping[str, Any], files: Mapping[str, bytes]) -> str:
    """A page's lines for a bundle in this folder, an address relative to the page that ends with a slash."""
    query = f"?v={version(files)}"
    device, target = next(((k, t) for k, t in sorted(manifest["targets"].items())))
    modules = target["modules"]
    kernels = modules if "file" in modules else modules.get(KERNELS, next(iter(modules.values()), None))
    fetched = [
        MANIFEST,
        *(entry["file"] for entry in (target["program"], kernels or {}) if "file" in entry),
        *(w["file"] for w in target["weights"][:FIRST_PIECES]),
    ]
    if "task" in manifest:
        script = [
            f"import {{ task }} from {_text(folder + TASKS + query)};",
            f"const ask = await task({_text(folder + query)}, {{ device: {_text(device)} }});",
            f"const answer = await ask({source_of(manifest)});",
        ]
    else:
        inputs = ", ".join(f"{json.dumps(x['name'], ensure_ascii=False)}: …" for x in manifest["inputs"])
        script = [
            f"import {{ load }} from {_text(folder + MAIN + query)};",
            f"const model = await load({_text(folder + query)}, {{ device: {_text(device)} }});",
            f"const outputs = await model.run({{ {inputs} }});",
        ]
    indented = [f"  {line}" for line in script]
    return "\n".join([links(folder, files, fetched, query), '<script type="module">', *indented, "</script>"])


def _attribute(address: str) -> str:
    return html.escape(address, quote=True)


def _text(value: str) -> str:
    """A string of a script within a page."""
    return json.dumps(value, ensure_ascii=False).replace("<", "\\u003c")
