"""The pages that a bundle has of its own: one to run a model, one to talk with a language model, and for each medium one
that is a task.

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
TASK_PAGES: Final = {
    "picture": "task.html", "sound": "sounds.html", "text": "texts.html", "speech": "speech.html", "hearing": "speech.html",
    "moonshine": "speech.html", "translating": "translate.html",
}  # fmt: skip
"""A task's medium ↦ its page."""
_SHARED: Final = {"/* page.css */\n": "page.css", "/* task.css */\n": "task.css", "// task-page.js\n": "task-page.js"}
"""A comment ↦ the file whose text stands in its place: the style that all of them have, and style and script of all pages of tasks."""
_POLICIES: Final = {
    "bundle.html": ("", "img-src data:"),
    "chat.html": ("", "img-src data:"),
    "task.html": ("", "img-src 'self' data: blob:; media-src 'self' blob:"),
    "sounds.html": (" blob:", "img-src 'self' data: blob:; media-src 'self' blob:"),
    "texts.html": ("", "img-src 'self' data:"),
    "speech.html": (" blob:", "img-src 'self' data:; media-src 'self' blob:"),
    "translate.html": ("", "img-src 'self' data:"),
}
"""A page ↦ which scripts it allows beside those of its folder (what hears a microphone is made of text), and which pictures and sounds."""
_PARTS: Final = {
    "head": """\
<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; script-src 'self'{scripts} 'wasm-unsafe-eval' 'script-hash'; \
style-src 'style-hash'; connect-src 'self'; worker-src 'self' blob:; {media}; base-uri 'none'; form-action 'none'">
<link rel="icon" href="data:,">
<!-- hints -->
""",
    "opening": """\
<main>
<header>
<!-- site -->
<h1 id="name">{title}</h1>
<!-- choices -->
<label class="quiet">Device <select id="device" data-testid="backend"></select></label>
</header>
""",
    "state": """\
<progress id="progress" data-testid="progress" aria-label="Loading the model" max="1" hidden></progress>
<p id="status" role="status" class="quiet" data-testid="status" data-state="loading">Loading …</p>
<p id="time" class="quiet" data-testid="time"></p>
""",
    "end": """\
<p id="size" class="quiet" data-testid="size"></p>
<noscript>This page runs a neural network in the browser: it needs JavaScript.</noscript>
</main>
""",
}
"""A comment ↦ what stands in its place: the head of all pages, and of those of tasks the beginning (`<!-- opening: TITLE -->`), the lines that
say how far it is, and the end."""
_PART: Final = re.compile(rf"<!-- ({'|'.join(_PARTS)})(?:: (.*))? -->\n")
_HINTS: Final = "<!-- hints -->"
_SITE: Final = "<!-- site -->"
_SAMPLES: Final = "<!-- samples -->"
_CHOICES: Final = "<!-- choices -->"
_NONE: Final[Mapping[str, str]] = {}


def own_page(
    name: str, hints: str, *, folder: str = "./", site: str = "", samples: Mapping[str, str] = _NONE, choices: Mapping[str, str] = _NONE
) -> bytes:  # fmt: skip
    """A page of static/. hints: goes into its head. folder: where its bundle lies, an address relative to the page that ends with
    a slash. site: goes before its heading, a link to the site of which it is a part. samples: addresses of pictures or sounds to try ↦
    what they are; a task's page offers them; of a page of texts, texts ↦ the same. choices: folders of bundles, the page's own first ↦
    what they are, if it has several."""
    scripts, media = _POLICIES[name]
    page = _PART.sub(
        lambda mark: _PARTS[mark[1]].format(scripts=scripts, media=media, title=mark[2]),
        (static_folder() / name).read_text("utf-8"),
    )
    for comment, file in _SHARED.items():
        page = page.replace(comment, (static_folder() / file).read_text("utf-8"))
    page = page.replace('"./', f'"{folder}')
    for tag in ("script", "style"):
        text = re.findall(rf"<{tag}\b[^>]*>(.*?)</{tag}>", page, re.S)[0]
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        page = page.replace(f"'{tag}-hash'", f"'sha256-{digest}'")
    page = page.replace(_HINTS, hints).replace(_SITE, site).replace(_CHOICES, _choice(choices) if choices else "")
    return page.replace(_SAMPLES, "\n".join(_sample(k, *row) for k, row in enumerate(samples.items()))).encode()


def _choice(choices: Mapping[str, str]) -> str:
    options = "".join(
        f'<option value="{html.escape(address)}">{html.escape(told)}</option>' for address, told in choices.items()
    )
    return f'<label class="quiet">Task <select id="model" data-testid="model">{options}</select></label>'


def _sample(number: int, address: str, shown: str) -> str:
    source, told = html.escape(address), html.escape(shown)
    seen = (
        told
        if address.endswith(".wav") or address == shown
        else f'<img src="{source}" alt="{told}" width="72" height="72">'
    )
    return f'<button type="button" class="sample" data-testid="sample-{number}" value="{source}">{seen}</button>'
