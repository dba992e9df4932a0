"""Writes the site: each page with the lists of parts and pages beside it, the index of the search, style and script."""

from __future__ import annotations

import json
import posixpath
import re
import shutil
from collections.abc import Callable
from html import escape
from pathlib import Path
from typing import Final

from .contents import PARTS, Page, pages
from .drawings import DRAWINGS
from .made import text_of
from .markdown import Heading, Rendered, render
from .synonyms import SYNONYMS

HERE: Final = Path(__file__).parent
ROOT: Final = HERE.parents[1]
STYLE: Final = ROOT / "demos" / "front" / "style.css"
MARK: Final = "search-index.js"
"""A folder that has this file is a site of ours, and may be overwritten."""
POLICY: Final = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; worker-src 'self'; base-uri 'none'; form-action 'none'"  # noqa: E501  # fmt: skip
ICON: Final = "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 4 4'%3E%3Cpath fill='%23e6c05a' d='M0 0h1v4H0z'/%3E%3Cpath fill='%23bd7531' d='M1 0h1v4H1z'/%3E%3Cpath fill='%2384408f' d='M2 0h1v4H2z'/%3E%3Cpath fill='%232f5eb5' d='M3 0h1v4H3z'/%3E%3C/svg%3E"  # noqa: E501  # fmt: skip
LISTED: Final = 12
"""A page with more headings of the third level than this lists these in place of those of the second."""


class DocsError(Exception):
    """A site that cannot be built; the message says why."""


def build(out: Path, say: Callable[[str], None] = print, python: str = "") -> None:
    """Build the site in a folder, which must be empty, missing, or an older site.

    python: where the demos' prompt-worker.js and python/ are, from the site's root ("../", "./"), so that the cells of
    pages can run; "" if they are not there.
    """
    if out.exists() and any(out.iterdir()) and not (out / MARK).exists():
        raise DocsError(f"{out}: holds something, and no site of ours (no {MARK}); give another folder with -o")
    shutil.rmtree(out, ignore_errors=True)
    write(out / MARK, "")  # so that a build that failed can be repeated
    links = Links()
    index: list[list[str]] = []
    for page in pages():
        links.page = page
        made = render(source_text(page), links, DRAWINGS)
        write(out / f"{page.path}.html", document(page, made, python))
        index += entries(page, made.headings)
    write(out / "index.html", front())
    write(out / MARK, f"window.SINGE_INDEX = {json.dumps(index, ensure_ascii=False, separators=(',', ':'))};\n")
    for path in (STYLE, *(HERE / name for name in ("docs.css", "docs.js", "cells.js"))):
        write(out / path.name, path.read_text("utf-8"))
    for path, name in sorted(links.files.items()):
        (out / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, out / name)
    count = sum(1 for p in out.rglob("*") if p.is_file())
    say(f"{out}: {count} files, {sum(p.stat().st_size for p in out.rglob('*') if p.is_file()) / 1e6:.1f} MB")


def source_text(page: Page) -> str:
    if page.source.startswith("made:"):
        return text_of(page.source.removeprefix("made:"))
    return (ROOT / page.source).read_text("utf-8")


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")


class Links:
    """Addresses of the Markdown files ↦ those of the site: of a page; of a copy, for other files of the repository."""

    def __init__(self) -> None:
        self.page: Page = next(pages())
        self.files: dict[Path, str] = {}
        self._pages = {p.source: p.path for p in pages() if not p.source.startswith("made:")}
        self._paths = {p.path for p in pages()}

    def __call__(self, address: str) -> str:
        name, _, heading = address.partition("#")
        if re.match(r"\w+:", address) or not name:
            return address
        here = posixpath.dirname(self.page.path)
        if self.page.source.startswith(
            "made:"
        ):  # made pages name pages of the site, and files beside the folder of pages
            target = posixpath.normpath(posixpath.join(here, name))
            if target.removesuffix(".html") in self._paths:
                return address
            place = posixpath.normpath(posixpath.join("docs", here, name))
        else:
            place = posixpath.normpath(posixpath.join(posixpath.dirname(self.page.source), name))
        if f"{place}/README.md" in self._pages:
            place += "/README.md"
        if place in self._pages:
            return self._to(f"{self._pages[place]}.html", heading)
        return self._copy(place)

    def _to(self, target: str, heading: str = "") -> str:
        here = posixpath.dirname(self.page.path)
        return posixpath.relpath(target, here or ".") + (f"#{heading}" if heading else "")

    def _copy(self, place: str) -> str:
        """A file as it is: pictures under their own names, everything else as text, which any host shows."""
        path = ROOT / place
        path = path / "README.md" if path.is_dir() and (path / "README.md").is_file() else path
        if path.is_dir():
            return self._to("index.html")
        if not path.is_file() or not path.resolve().is_relative_to(ROOT):
            raise DocsError(f"{self.page.source} links to {place}, which is no file")
        name = "files/" + path.relative_to(ROOT).as_posix()
        name += "" if path.suffix in (".svg", ".png", ".jpg") else ".txt"
        self.files[path] = name
        return self._to(name)


def entries(page: Page, headings: list[Heading]) -> list[list[str]]:
    """What the search finds of a page: for each heading its page's title, its text, its address, the words under it, and, of the page
    itself, other words for it."""
    return [
        [
            page.title,
            h.text,
            f"{page.path}.html" + (f"#{h.name}" if h.level > 1 else ""),
            " ".join(" ".join(h.words).split()),
            ", ".join(SYNONYMS.get(page.path, ())) if h.level == 1 else "",
        ]
        for h in headings
    ]


# --- HTML --------------------------------------------------------------------------------------------------------------


def document(page: Page, made: Rendered, python: str) -> str:
    up = "../" * page.path.count("/")
    second = [h for h in made.headings if h.level == 2]
    third = [h for h in made.headings if h.level == 3]
    listed = third if len(third) > LISTED else second
    toc = ""
    if len(listed) > 3:
        items = "".join(f'<li><a href="#{h.name}">{escape(h.text)}</a></li>' for h in listed)
        toc = f'<details class="toc"{"" if len(listed) > LISTED else " open"}><summary>On this page</summary><ul>{items}</ul></details>'
    body = made.html.replace("</h1>\n", f"</h1>\n{toc}", 1)
    title = f"{page.title} – Singe"
    return frame(
        title,
        up,
        f'<nav class="pages" aria-label="Pages">{listing(up, page)}</nav>\n<article>{body}{turn(page)}</article>',
        "docs",
        python if made.cells else "",
    )


def listing(up: str, current: Page) -> str:
    """All pages by part; the part of the current page is open."""
    parts = []
    for part in PARTS:
        items = "".join(
            f'<li><a href="{up}{p.path}.html"{" aria-current=page" if p == current else ""}>{escape(p.title)}</a></li>'
            for p in part.pages
        )
        opened = " open" if current in part.pages else ""
        parts.append(f"<details{opened}><summary>{part.title}</summary><ul>{items}</ul></details>")
    return "".join(parts)


def turn(page: Page) -> str:
    """Links to the page before and the page after."""
    order = list(pages())
    at = order.index(page)
    up = "../" * page.path.count("/")
    before = (
        f'<a rel="prev" href="{up}{order[at - 1].path}.html">← {escape(order[at - 1].title)}</a>'
        if at
        else "<span></span>"
    )
    after = (
        f'<a rel="next" href="{up}{order[at + 1].path}.html">{escape(order[at + 1].title)} →</a>'
        if at + 1 < len(order)
        else ""
    )
    return f'<nav class="turn" aria-label="Next and previous page">{before}{after}</nav>'


def front() -> str:
    start, *others = PARTS
    doors = {
        "start/page": "Turn a model into a folder of static files, and run it in a web page.",
        "start/python": "Load, run and write models in Python, with NumPy or WebAssembly.",
        "start/gpu": "The same code on any GPU, without CUDA.",
        "start/tour": "A notebook that runs in this browser.",
    }
    cards = "".join(
        f'<a class="card" href="{p.path}.html"><h2>{escape(p.title)}</h2><p>{escape(doors[p.path])}</p></a>'
        for p in start.pages
    )
    parts = "".join(
        f'<section class="part" aria-labelledby="{part.title.lower()}"><header><h2 id="{part.title.lower()}">{part.title}</h2><p>{escape(part.text)}</p></header>'  # noqa: E501
        f'<ul class="links">{"".join(f"<li><a href={chr(34)}{p.path}.html{chr(34)}>{escape(p.title)}</a></li>" for p in part.pages)}</ul></section>'
        for part in others
    )
    opening = '<div class="opening"><h1>Singe: documentation</h1><p class="lead">Singe runs neural networks where nothing is installed: in a browser tab, in a WebAssembly sandbox, on any GPU.</p></div>'  # noqa: E501  # fmt: skip
    return frame("Singe: documentation", "", f'{opening}<div class="grid">{cards}</div>{parts}', "front")


def frame(title: str, up: str, main: str, kind: str, python: str = "") -> str:
    """A whole page. up: the way from it to the site's root. python: as for `build`, if the page has cells."""
    cells = f'\n<script type="module" src="{up}cells.js"></script>' if python else ""
    place = f' data-python="{python}"' if python else ""
    return f"""<!doctype html>
<html lang="en" data-root="{up or "./"}"{place}>
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1, viewport-fit=cover">
<meta http-equiv="Content-Security-Policy" content="{POLICY}">
<title>{escape(title)}</title>
<meta name="color-scheme" content="light dark">
<link rel="icon" href="{ICON}">
<link rel="stylesheet" href="{up}style.css">
<link rel="stylesheet" href="{up}docs.css">
<script defer src="{up}docs.js"></script>{cells}
</head>
<body>
<a class="skip" href="#main">Skip to the content</a>
<header class="site">
<a class="brand" href="{up or "./"}index.html">Singe docs</a>
<search><label class="hidden-text" for="query">Search the documentation</label>
<input id="query" type="search" placeholder="Search" autocomplete="off" spellcheck="false"><kbd>/</kbd></search>
</header>
<div id="found" role="region" aria-label="Search results" aria-live="polite" hidden></div>
<main id="main" class="{kind}" tabindex="-1">
{main}
</main>
<footer class="site"><span>Singe, MIT licence</span></footer>
</body>
</html>
"""
