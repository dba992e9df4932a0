"""The pages that a bundle has of its own: one to run a model, one to talk with a language model, one that is a task.

Each is one file of static/, with its script and its style in it; a Content-Security-Policy allows these by their hashes, and
nothing else.
"""

from __future__ import annotations

import base64
import hashlib
import html
import re
from collections.abc import Mapping
from typing import Final

from ....files.assets import static_folder

MODEL: Final = "bundle.html"
CHAT: Final = "chat.html"
TASK: Final = "task.html"
_HINTS: Final = "<!-- hints -->"
_SITE: Final = "<!-- site -->"
_SAMPLES: Final = "<!-- samples -->"
_NONE: Final[Mapping[str, str]] = {}


def own_page(name: str, hints: str, *, folder: str = "./", site: str = "", samples: Mapping[str, str] = _NONE) -> bytes:
    """A page of static/. hints: goes into its head. folder: where its bundle lies, an address relative to the page that ends with
    a slash. site: goes before its heading, a link to the site of which it is a part. samples: addresses of pictures to try ↦ what
    they show; a task's page offers them."""
    page = (static_folder() / name).read_text("utf-8")
    page = page.replace('"./', f'"{folder}')
    for tag in ("script", "style"):
        text = re.findall(rf"<{tag}\b[^>]*>(.*?)</{tag}>", page, re.S)[0]
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        page = page.replace(f"'{tag}-hash'", f"'sha256-{digest}'")
    page = page.replace(_HINTS, hints).replace(_SITE, site)
    return page.replace(_SAMPLES, "\n".join(_sample(k, *row) for k, row in enumerate(samples.items()))).encode()


def _sample(number: int, address: str, shown: str) -> str:
    picture = f'<img src="{html.escape(address)}" alt="{html.escape(shown)}" width="72" height="72">'
    return f'<button type="button" class="sample" data-testid="sample-{number}">{picture}</button>'
