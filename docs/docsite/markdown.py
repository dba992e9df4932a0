"""Markdown to HTML: headings with names, links between pages, code with colours."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from html import escape
from typing import Final

from markdown_it import MarkdownIt
from markdown_it.token import Token
from pygments import highlight
from pygments.formatters.html import HtmlFormatter
from pygments.lexers import get_lexer_by_name

LEXERS: Final = {
    "c": "c", "console": "console", "css": "css", "html": "html", "http": "http", "js": "javascript", "json": "json", "nginx": "nginx",
    "python": "python", "rust": "rust", "sh": "bash", "toml": "toml", "ts": "typescript", "wgsl": "wgsl",
}  # fmt: skip
"""A fence's first word ↦ Pygments' name of the language; fences of other words are plain text."""

DRAWING: Final = re.compile(r"<!-- drawing (\w+): (.*?) -->\s*", re.S)
"""Where a drawing goes, with its caption."""
CELLS: Final = "<!-- cells -->\n"
"""In a page whose blocks of Python are a notebook."""


@dataclass(frozen=True)
class Heading:
    """A heading, with the plain text that follows it until the next."""

    level: int
    name: str
    text: str
    words: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Rendered:
    """A page. cells: whether its blocks of Python are a notebook."""

    html: str
    headings: list[Heading]
    cells: bool = False


def slug(text: str) -> str:
    """The name of a heading, as GitHub gives it."""
    return re.sub(r"[^\w\- ]", "", text.lower()).strip().replace(" ", "-")


def render(text: str, link: Callable[[str], str], drawings: Mapping[str, Callable[[], str]]) -> Rendered:
    """link: the address in a Markdown file ↦ the address in the site."""
    parser = MarkdownIt("commonmark", {"highlight": None}).enable(["table", "strikethrough"])
    cells = CELLS in text
    parser.add_render_rule("fence", lambda self, tokens, at, *_: _fence(tokens[at], cells))
    parser.add_render_rule("code_block", lambda self, tokens, at, *_: code(tokens[at].content, ""))
    parser.add_render_rule("table_open", lambda *_: '<div class="scroll" tabindex="0"><table>\n')
    parser.add_render_rule("table_close", lambda *_: "</table></div>\n")
    parser.add_render_rule("html_block", lambda self, tokens, at, *_: _drawing(tokens[at].content, drawings))
    tokens = parser.parse(text)
    headings = _headings(tokens)
    for token in tokens:
        for child in token.children or ():
            if child.type == "link_open":
                child.attrSet("href", link(str(child.attrGet("href"))))
            elif child.type == "image":
                child.attrSet("src", link(str(child.attrGet("src"))))
    html = re.sub(r"<th[^>]*></th>", "<td></td>", parser.renderer.render(tokens, parser.options, {}))
    return Rendered(html, headings, cells)


def code(text: str, language: str, kind: str = "") -> str:
    """A block of code, as HTML. kind: the class of its element."""
    name = LEXERS.get(language)
    shown = escape(text) if name is None else highlight(text, get_lexer_by_name(name), HtmlFormatter(nowrap=True))
    return f'<pre{f" class={kind}" if kind else ""} tabindex="0"><code>{shown.rstrip()}</code></pre>\n'


def _fence(token: Token, cells: bool) -> str:
    language, _, file = token.info.partition(" ")
    named = f'<p class="file"><code>{escape(file)}</code></p>\n' if file else ""
    return named + code(token.content, language, "cell" if cells and language == "python" else "")


def _drawing(content: str, drawings: Mapping[str, Callable[[], str]]) -> str:
    found = DRAWING.fullmatch(content)
    if not found:
        return "" if content == CELLS else content
    name, caption = found.groups()
    return f"<figure>{drawings[name]()}<figcaption>{escape(' '.join(caption.split()))}</figcaption></figure>\n"


def _headings(tokens: list[Token]) -> list[Heading]:
    """Name the headings in the tokens, and collect the text under each."""
    found: list[Heading] = []
    taken: dict[str, int] = {}
    for at, token in enumerate(tokens):
        if token.type == "heading_open":
            text = _plain(tokens[at + 1])
            name = slug(text)
            taken[name] = taken.get(name, -1) + 1
            name += f"-{taken[name]}" if taken[name] else ""
            token.attrSet("id", name)
            found.append(Heading(int(token.tag[1]), name, text))
        elif found and token.type == "inline" and tokens[at - 1].type != "heading_open":
            found[-1].words.append(_plain(token))
        elif found and token.type == "fence":
            found[-1].words.append(token.content)
    return found


def _plain(inline: Token) -> str:
    return "".join(
        c.content if c.type in ("text", "code_inline") else " "
        for c in inline.children or ()
        if c.content or c.type == "softbreak"
    )
