"""The filters and tests of Jinja that templates of conversations use, as closed tables.

A filter takes the interpreter, the value, and the arguments; a test the value and the arguments.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from ...errors import FormatError
from .methods import DICT_METHODS, TEXT_METHODS, checked, refuse_long
from .values import MAX_NUMBER, UndefinedValue, Value, as_json, is_true, kind_of, shown

if TYPE_CHECKING:
    from .interpreter import Interpreter

Filter: TypeAlias = Callable[["Interpreter", Value, list[Value], dict[str, Value]], Value]
Test: TypeAlias = Callable[..., bool]
_ANY: Final = (object,)


def listed(value: Value) -> list[Value]:
    """What a loop goes through: a list's values, a text's characters, a dict's keys."""
    if isinstance(value, list):
        return value
    if isinstance(value, (str, dict)):
        return list(value)
    if isinstance(value, UndefinedValue):
        return []
    raise FormatError(f"a template goes through {kind_of(value)}, expected a list, a text or a dict")


def text_of(value: Value) -> str:
    if not isinstance(value, str):
        raise FormatError(f"a template takes {kind_of(value)} for a text")
    return value


def length(value: Value) -> int:
    if isinstance(value, UndefinedValue):
        return 0
    if not isinstance(value, (str, list, dict)):
        raise FormatError(f"a template asks for the length of {kind_of(value)}")
    return len(value)


def _simple(name: str, types: Mapping[str, Any], call: Callable[..., Value], required: int = 0) -> Filter:
    bound = checked(name, types, required, call)
    return lambda _, value, plain, named: bound(value, plain, named)


def _method(name: str, types: Mapping[str, Any] | None = None) -> Filter:
    method = TEXT_METHODS[name]
    return lambda _, value, plain, named: method(shown(value), plain, named)


def _default(value: Value, default_value: Value = "", boolean: Value = False) -> Value:
    missing = isinstance(value, UndefinedValue) or (is_true(boolean) and not is_true(value))
    return default_value if missing else value


def _whole(value: Value, default: Value = 0, base: int = 10) -> Value:
    try:
        number = (
            int(value, base) if isinstance(value, str) and 2 <= base <= 36 and len(value) < 32 else int(float(value))
        )
    except (TypeError, ValueError, OverflowError):
        return default
    return number if abs(number) <= MAX_NUMBER else default


def _float(value: Value, default: Value = 0.0) -> Value:
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return default


def _round(value: Value, precision: int = 0, method: str = "common") -> float:
    number = _number(value)
    if method not in ("common", "ceil", "floor") or not 0 <= precision <= 15:
        raise FormatError(f"a template rounds by {method!r:.60} to {precision} digits")
    if method == "common":
        return float(round(number, precision))
    return float((math.ceil if method == "ceil" else math.floor)(number * 10**precision) / 10**precision)


def _number(value: Value) -> int | float:
    if not isinstance(value, (int, float)):
        raise FormatError(f"a template takes {kind_of(value)} for a number")
    return value


def _indent(value: Value, width: int | str = 4, first: bool = False, blank: bool = False) -> str:
    space = width if isinstance(width, str) else " " * min(max(width, 0), 1000)
    text = shown(value)
    refuse_long(len(text) + len(space) * (text.count("\n") + 1))
    start, *rest = (text + "\n").splitlines()
    lines = [space + line if line or blank else line for line in rest]
    return "\n".join([(space if first else "") + start, *lines])


def _escape(text: str) -> str:
    refuse_long(6 * len(text))
    for old, new in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ("'", "&#39;"), ('"', "&#34;")):
        text = text.replace(old, new)
    return text


def _title(text: str) -> str:
    """Each word with a capital; words begin after spaces, hyphens and brackets."""
    parts: list[str] = []
    word = ""
    for character in text:
        if character in "-({[<" or character.isspace():
            parts += [word[:1].upper() + word[1:].lower(), character]
            word = ""
        else:
            word += character
    return "".join([*parts, word[:1].upper() + word[1:].lower()])


def _in_order(values: list[Value], reverse: bool, cased: bool) -> list[int]:
    keys = [value if cased or not isinstance(value, str) else value.lower() for value in values]
    if not all(isinstance(key, str) for key in keys) and not all(isinstance(key, (int, float)) for key in keys):
        raise FormatError("a template sorts other things than texts, or numbers")
    return sorted(range(len(keys)), key=keys.__getitem__, reverse=reverse)


def _sort(
    run: Interpreter, value: Value, reverse: bool = False, case_sensitive: bool = False, attribute: Value = None
) -> Value:
    values = listed(value)
    keys = values if attribute is None else [run.deep_item(item, attribute) for item in values]
    return [values[at] for at in _in_order(keys, reverse, case_sensitive)]


def _dictsort(value: Value, case_sensitive: bool = False, by: str = "key", reverse: bool = False) -> Value:
    if not isinstance(value, dict):
        raise FormatError(f"a template takes {kind_of(value)} for a dict")
    items = list(value.items())
    keys = [pair[0 if by == "key" else 1] for pair in items]
    return [list(items[at]) for at in _in_order(keys, reverse, case_sensitive)]


def _unique(run: Interpreter, value: Value, case_sensitive: bool = False, attribute: Value = None) -> Value:
    seen: list[Value] = []
    kept: list[Value] = []
    for item in listed(value):
        run.charge(len(seen))
        key = item if attribute is None else run.deep_item(item, attribute)
        key = key.lower() if isinstance(key, str) and not case_sensitive else key
        if key not in seen:
            seen.append(key)
            kept.append(item)
    return kept


def _join(run: Interpreter, value: Value, d: Value = "", attribute: Value = None) -> str:
    values = listed(value)
    items = [shown(v if attribute is None else run.deep_item(v, attribute)) for v in values]
    separator = shown(d)
    refuse_long(sum(map(len, items)) + len(separator) * len(items))
    return separator.join(items)


def _map(run: Interpreter, value: Value, plain: list[Value], named: dict[str, Value]) -> Value:
    if not plain and "attribute" in named:
        return [run.deep_item(item, named["attribute"], named.get("default")) for item in _listed_if_true(value)]
    if not plain:
        raise FormatError("a template maps without a filter")
    name, *rest = plain
    return [run.filtered(item, text_of(name), rest, named) for item in _listed_if_true(value)]


def _listed_if_true(value: Value) -> list[Value]:
    """These filters take what is false, such as none, for an empty list."""
    return listed(value) if is_true(value) else []


def _chosen(wanted: bool, by_attribute: bool) -> Filter:
    def choose(run: Interpreter, value: Value, plain: list[Value], named: dict[str, Value]) -> Value:
        if by_attribute and not plain:
            raise FormatError("a template selects by an attribute without naming it")
        attribute, rest = (plain[0], plain[1:]) if by_attribute else (None, plain)

        def passes(item: Value) -> bool:
            subject = run.deep_item(item, attribute) if by_attribute else item
            return run.tested(subject, text_of(rest[0]), rest[1:]) if rest else is_true(subject)

        return [item for item in _listed_if_true(value) if passes(item) == wanted]

    return choose


def _extreme(choose: Callable[..., Value]) -> Filter:
    def find(run: Interpreter, value: Value, plain: list[Value], named: dict[str, Value]) -> Value:
        values = _sort(run, value, False, False, named.get("attribute"))
        return choose(values) if values else UndefinedValue("an element of an empty list")

    return find


def _sum(run: Interpreter, value: Value, attribute: Value = None, start: Value = 0) -> Value:
    total = _number(start)
    for item in listed(value):
        total += _number(item if attribute is None else run.deep_item(item, attribute))
    return run.small(total)


def _tojson(
    value: Value,
    ensure_ascii: bool = False,
    indent: int | None = None,
    separators: Value = None,
    sort_keys: bool = False,
) -> str:
    if indent is not None and not 0 <= indent <= 16:
        raise FormatError(f"a template indents JSON by {indent}")
    if separators is not None:
        raise FormatError("a template writes JSON with separators of its own, which Singe does not")
    return as_json(value, indent, ensure_ascii, sort_keys)


def _with_run(name: str, types: Mapping[str, Any], call: Callable[..., Value]) -> Filter:
    def filtered(run: Interpreter, value: Value, plain: list[Value], named: dict[str, Value]) -> Value:
        return checked(name, types, 0, lambda v, **given: call(run, v, **given))(value, plain, named)

    return filtered


def _end(at: int) -> Callable[[Value], Value]:
    def take(value: Value) -> Value:
        values = listed(value)
        return values[at] if values else UndefinedValue("an element of an empty list")

    return take


_BY: Final = {"reverse": _ANY, "case_sensitive": _ANY, "attribute": _ANY}

FILTERS: Final[Mapping[str, Filter]] = {
    "abs": _simple("abs", {}, lambda value: abs(_number(value))),
    "capitalize": _method("capitalize"),
    "count": _simple("count", {}, length),
    "d": _simple("d", {"default_value": _ANY, "boolean": _ANY}, _default),
    "default": _simple("default", {"default_value": _ANY, "boolean": _ANY}, _default),
    "dictsort": _simple("dictsort", {"case_sensitive": (bool,), "by": (str,), "reverse": (bool,)}, _dictsort),
    "e": _simple("e", {}, lambda value: _escape(shown(value))),
    "escape": _simple("escape", {}, lambda value: _escape(shown(value))),
    "first": _simple("first", {}, _end(0)),
    "float": _simple("float", {"default": _ANY}, _float),
    "indent": _simple("indent", {"width": (int, str), "first": (bool,), "blank": (bool,)}, _indent),
    "int": _simple("int", {"default": _ANY, "base": (int,)}, _whole),
    "items": _simple("items", {}, lambda value: [] if isinstance(value, UndefinedValue) else DICT_METHODS["items"](_dict(value), [], {})),
    "join": _with_run("join", {"d": _ANY, "attribute": _ANY}, _join),
    "last": _simple("last", {}, _end(-1)),
    "length": _simple("length", {}, length),
    "list": _simple("list", {}, lambda value: list(listed(value))),
    "lower": _method("lower"),
    "map": _map,
    "max": _extreme(lambda values: values[-1]),
    "min": _extreme(lambda values: values[0]),
    "reject": _chosen(False, False),
    "rejectattr": _chosen(False, True),
    "replace": _method("replace"),
    "reverse": _simple("reverse", {}, lambda value: value[::-1] if isinstance(value, str) else listed(value)[::-1]),
    "round": _simple("round", {"precision": (int,), "method": (str,)}, _round),
    "safe": _simple("safe", {}, shown),
    "select": _chosen(True, False),
    "selectattr": _chosen(True, True),
    "sort": _with_run("sort", _BY, _sort),
    "string": _simple("string", {}, shown),
    "sum": _with_run("sum", {"attribute": _ANY, "start": _ANY}, _sum),
    "title": _simple("title", {}, lambda value: _title(shown(value))),
    "tojson": _simple(
        "tojson", {"ensure_ascii": (bool,), "indent": (int, type(None)), "separators": _ANY, "sort_keys": (bool,)}, _tojson
    ),
    "trim": _simple("trim", {"chars": (str, type(None))}, lambda value, chars=None: shown(value).strip(chars)),
    "unique": _with_run("unique", {"case_sensitive": _ANY, "attribute": _ANY}, _unique),
    "upper": _method("upper"),
    "wordcount": _simple("wordcount", {}, lambda value: len(shown(value).split())),
}  # fmt: skip
"""The filters by their names."""


def _dict(value: Value) -> dict[Value, Value]:
    if not isinstance(value, dict):
        raise FormatError(f"a template takes {kind_of(value)} for a dict")
    return value


def _is_number(value: Value) -> bool:
    return isinstance(value, (int, float))


def _within(value: Value, among: Value) -> bool:
    return contains(among, value)


def contains(among: Value, value: Value) -> bool:
    """`value in among`."""
    if isinstance(among, str):
        return text_of(value) in among
    if isinstance(among, dict):
        return isinstance(value, (str, int, float, type(None))) and value in among
    return value in listed(among)


def compared(operator: str, a: Value, b: Value) -> bool:
    """Two values beside each other, by one of the operators of comparisons."""
    if operator in ("==", "!="):
        same = a == b or (isinstance(a, UndefinedValue) and isinstance(b, UndefinedValue))
        return same == (operator == "==")
    if not ((_is_number(a) and _is_number(b)) or (isinstance(a, str) and isinstance(b, str))):
        raise FormatError(f"a template compares {kind_of(a)} with {kind_of(b)} by {operator}")
    return {"<": a < b, "<=": a <= b, ">": a > b, ">=": a >= b}[operator]


def _by(operator: str) -> Test:
    return lambda value, other: compared(operator, value, other)


def _divided(value: Value, by: int) -> int:
    if not isinstance(value, int) or not isinstance(by, int) or not by:
        raise FormatError("a template divides what is no whole number, or by zero")
    return value % by


TESTS: Final[Mapping[str, Test]] = {
    "boolean": lambda value: isinstance(value, bool),
    "defined": lambda value: not isinstance(value, UndefinedValue),
    "divisibleby": lambda value, by: _divided(value, by) == 0,
    "eq": _by("=="), "equalto": _by("=="), "ge": _by(">="), "gt": _by(">"), "greaterthan": _by(">"), "le": _by("<="), "lt": _by("<"),
    "lessthan": _by("<"), "ne": _by("!="),
    "even": lambda value: _divided(value, 2) == 0,
    "false": lambda value: value is False,
    "float": lambda value: isinstance(value, float),
    "in": _within,
    "integer": lambda value: isinstance(value, int) and not isinstance(value, bool),
    "iterable": lambda value: isinstance(value, (str, list, dict, UndefinedValue)),
    "lower": lambda value: shown(value).islower(),
    "mapping": lambda value: isinstance(value, dict),
    "none": lambda value: value is None,
    "number": _is_number,
    "odd": lambda value: _divided(value, 2) == 1,
    "sequence": lambda value: isinstance(value, (str, list, dict, UndefinedValue)),
    "string": lambda value: isinstance(value, str),
    "true": lambda value: value is True,
    "undefined": lambda value: isinstance(value, UndefinedValue),
    "upper": lambda value: shown(value).isupper(),
}  # fmt: skip
"""The tests by their names, after `is`."""
TEST_ARGUMENTS: Final = frozenset(
    {"divisibleby", "eq", "equalto", "ge", "gt", "greaterthan", "le", "lt", "lessthan", "ne", "in"}
)
"""The tests that have an argument; the others have none."""
