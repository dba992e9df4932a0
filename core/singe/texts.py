"""Texts from files and from others, as they are shown.

A name in a file, of a run, a label or a host may have characters that a terminal obeys (it moves the cursor, changes the
title, hides lines) or that turn the direction of what follows. Such characters are shown as Python writes them, \\x1b or
\\u202e. It is done where text leaves Singe: in the text of a SingeError, where the command line prints (`say`), where the
dashboard draws, in lines of progress, and in pages.
"""

from __future__ import annotations

from typing import Final, TextIO

_JOINERS: Final = "\u200c\u200d"
"""They shape letters and join emoji; Unicode counts them among what controls."""
_SPACES: Final = "\u00a0\u1680\u202f\u205f\u3000" + "".join(map(chr, range(0x2000, 0x200B)))
"""All of Unicode's spaces but the ordinary one; Python does not count them among what can be printed."""


def escaped(text: str, keep: str = "") -> str:
    """A text without characters that control a terminal, end a line or turn its direction, but for those of `keep`."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in keep or _is_harmless(c) else _escape(c) for c in text)


def in_html(text: str) -> str:
    """A text as HTML, without such characters."""
    from html import escape  # noqa: PLC0415 (`import singe` needs no pages)

    return escape(escaped(text))


def with_article(noun: str) -> str:
    """A noun as it is counted: "an int", "a float"."""
    return f"{'an' if noun[:1] in tuple('aeiou') else 'a'} {noun}"


def _is_harmless(character: str) -> bool:
    return character in _JOINERS or character in _SPACES


def _escape(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")


def say(text: str = "", end: str = "\n", file: TextIO | None = None) -> None:
    """Print at once, with control characters escaped, but for ends of lines."""
    print(escaped(text, keep="\n\t"), end=end, file=file, flush=True)
