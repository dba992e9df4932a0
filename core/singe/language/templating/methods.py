"""The methods of texts, dicts and lists that a template may call: closed tables, since a template has no other attributes.

Each takes the value and the arguments. Those that change a value are left out, as in Jinja's immutable sandbox.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

from ...errors import FormatError

Method: TypeAlias = Callable[..., Any]


def checked(name: str, types: Mapping[str, type | tuple[type, ...]], required: int, call: Method) -> Method:
    """A function whose arguments are bound by place or name, and of these types."""
    names = list(types)

    def bound(value: Any, plain: list[Any], named: Mapping[str, Any]) -> Any:
        if len(plain) > len(names) or any(k not in types or k in names[: len(plain)] for k in named):
            raise FormatError(f"a template calls {name} with other arguments than {', '.join(names) or 'none'}")
        given = {**dict(zip(names, plain, strict=False)), **named}
        for key, argument in given.items():
            if not isinstance(argument, types[key]):
                raise FormatError(f"a template calls {name} with {argument!r:.60} as {key}")
        if len(given) < required:
            raise FormatError(f"a template calls {name} with {len(given)} arguments, expected at least {required}")
        return call(value, **given)

    return bound


_TEXT: Final = (str,)
_NUMBER: Final = (int,)
_CHARACTERS: Final = {"chars": (str, type(None))}
_SPLIT: Final = {"sep": (str, type(None)), "maxsplit": (int,)}
_FOUND: Final = {"sub": _TEXT, "start": _NUMBER, "end": _NUMBER}
_AFFIX: Final = {"prefix": (str, list), "start": _NUMBER, "end": _NUMBER}


def _replace(text: str, old: str, new: str, count: int = -1) -> str:
    if not old:
        raise FormatError("a template replaces an empty text")
    occurrences = text.count(old) if count < 0 else min(count, text.count(old))
    refuse_long(len(text) + occurrences * (len(new) - len(old)))
    return text.replace(old, new, count)


def _join(text: str, iterable: list[Any]) -> str:
    for item in iterable:
        if not isinstance(item, str):
            raise FormatError(f"a template joins {item!r:.60}, expected texts")
    refuse_long(sum(map(len, iterable)) + len(text) * len(iterable))
    return text.join(iterable)


def refuse_long(length: int) -> None:
    """No text of a template is longer than MAX_TEXT."""
    if length > MAX_TEXT:
        raise FormatError(f"a template makes a text of {length} characters, expected at most {MAX_TEXT}")


def _affixed(way: Callable[..., bool]) -> Method:
    def test(text: str, prefix: str | list[Any], start: int = 0, end: int | None = None) -> bool:
        if isinstance(prefix, list) and not all(isinstance(p, str) for p in prefix):
            raise FormatError("a template looks for the start or end of a text in other things than texts")
        return way(text, tuple(prefix) if isinstance(prefix, list) else prefix, start, end)

    return test


def _split(text: str, sep: str | None = None, maxsplit: int = -1) -> list[str]:
    _refuse_empty(sep)
    return text.split(sep, maxsplit)


def _rsplit(text: str, sep: str | None = None, maxsplit: int = -1) -> list[str]:
    _refuse_empty(sep)
    return text.rsplit(sep, maxsplit)


def _refuse_empty(separator: str | None) -> None:
    if separator == "":
        raise FormatError("a template splits a text at an empty one")


def _index(values: list[Any], value: Any) -> int:
    if value not in values:
        raise FormatError(f"a template asks for the index of {value!r:.60}, which is not in a list")
    return values.index(value)


MAX_TEXT: Final = 1 << 22
"""The characters of a text that a template makes."""

_FIELD: Final = re.compile(r"\{\{|\}\}|\{(\w*)\}|[{}]")


def _format(text: str, plain: list[Any], named: Mapping[str, Any]) -> str:
    """`"{} {0} {name}".format(…)`, of texts and whole numbers, without further marks."""
    places = iter(range(len(plain)))
    values = {**{str(at): value for at, value in enumerate(plain)}, **named}

    def field(match: re.Match[str]) -> str:
        if match[0] in ("{{", "}}"):
            return match[0][0]
        value = values.get(match[1] or str(next(places, -1))) if match[1] is not None else None
        if not isinstance(value, (str, int)):
            raise FormatError(
                f"a template formats by {match[0]!r}, expected {{}} or {{name}} and a text or a number for it"
            )
        return str(value)

    refuse_long(
        len(text)
        + text.count("{") * max((len(str(v)) for v in values.values() if isinstance(v, (str, int))), default=0)
    )
    return _FIELD.sub(field, text)


TEXT_METHODS: Final[Mapping[str, Method]] = {
    "format": _format,
} | {
    name: checked(name, types, required, call)
    for name, types, required, call in (
        ("capitalize", {}, 0, str.capitalize),
        ("count", _FOUND, 1, lambda text, sub, start=0, end=None: text.count(sub, start, end)),
        ("endswith", {"suffix": (str, list), "start": _NUMBER, "end": _NUMBER}, 1,
         lambda text, suffix, start=0, end=None: _affixed(str.endswith)(text, suffix, start, end)),
        ("find", _FOUND, 1, lambda text, sub, start=0, end=None: text.find(sub, start, end)),
        ("isalnum", {}, 0, str.isalnum), ("isalpha", {}, 0, str.isalpha), ("isdigit", {}, 0, str.isdigit),
        ("islower", {}, 0, str.islower), ("isspace", {}, 0, str.isspace), ("isupper", {}, 0, str.isupper),
        ("join", {"iterable": (list,)}, 1, _join),
        ("lower", {}, 0, str.lower),
        ("lstrip", _CHARACTERS, 0, lambda text, chars=None: text.lstrip(chars)),
        ("partition", {"sep": _TEXT}, 1, lambda text, sep: list(text.partition(sep)) if sep else _refuse_empty(sep)),
        ("removeprefix", {"prefix": _TEXT}, 1, lambda text, prefix: text.removeprefix(prefix)),
        ("removesuffix", {"suffix": _TEXT}, 1, lambda text, suffix: text.removesuffix(suffix)),
        ("replace", {"old": _TEXT, "new": _TEXT, "count": _NUMBER}, 2, _replace),
        ("rfind", _FOUND, 1, lambda text, sub, start=0, end=None: text.rfind(sub, start, end)),
        ("rpartition", {"sep": _TEXT}, 1, lambda text, sep: list(text.rpartition(sep)) if sep else _refuse_empty(sep)),
        ("rsplit", _SPLIT, 0, _rsplit),
        ("rstrip", _CHARACTERS, 0, lambda text, chars=None: text.rstrip(chars)),
        ("split", _SPLIT, 0, _split),
        ("splitlines", {"keepends": (bool,)}, 0, lambda text, keepends=False: text.splitlines(keepends)),
        ("startswith", _AFFIX, 1, _affixed(str.startswith)),
        ("strip", _CHARACTERS, 0, lambda text, chars=None: text.strip(chars)),
        ("title", {}, 0, str.title),
        ("upper", {}, 0, str.upper),
    )
}  # fmt: skip
"""Methods of texts."""
DICT_METHODS: Final[Mapping[str, Method]] = {
    name: checked(name, types, required, call)
    for name, types, required, call in (
        ("copy", {}, 0, dict),
        ("get", {"key": (object,), "default": (object,)}, 1, lambda values, key, default=None: get(values, key, default)),
        ("items", {}, 0, lambda values: [[key, value] for key, value in values.items()]),
        ("keys", {}, 0, list),
        ("values", {}, 0, lambda values: list(values.values())),
    )
}  # fmt: skip
"""Methods of dicts."""
CHANGING_METHODS: Final = frozenset({"clear", "fromkeys", "pop", "popitem", "setdefault", "update"})
"""Methods of dicts that are not there, and hide keys of their names, as in Jinja's sandbox."""
LIST_METHODS: Final[Mapping[str, Method]] = {
    "count": checked("count", {"value": (object,)}, 1, lambda values, value: values.count(value)),
    "index": checked("index", {"value": (object,)}, 1, _index),
}
"""Methods of lists."""


def get(values: dict[Any, Any], key: Any, default: Any) -> Any:
    """An item of a dict; what cannot be a key is in none."""
    return values.get(key, default) if isinstance(key, (str, int, float, bool, type(None))) else default
