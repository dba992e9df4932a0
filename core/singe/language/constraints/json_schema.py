"""JSON schemas as grammars. A keyword that says nothing of the text (a title, a default) is not read; one that is not known is refused
by its name. Of what a schema leaves open, only a part is written: no properties that it does not name, and they are in its order."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from ...errors import InputError
from .grammar import Choice, CodeRange, Expression, Repeated, RuleName, Sequenced, complement, optional, text
from .regular import RegularExpression

MAX_VALUES: Final = 1000
"""Of an enum, or of properties, or of items and characters by count."""
ANNOTATIONS: Final = frozenset({
    "$schema", "$id", "$comment", "title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly", "$defs",
    "definitions",
})  # fmt: skip
_KEYWORDS: Final[Mapping[str, frozenset[str]]] = {
    "string": frozenset({"minLength", "maxLength", "pattern"}),
    "array": frozenset({"items", "minItems", "maxItems"}),
    "object": frozenset({"properties", "required", "additionalProperties"}),
    "number": frozenset[str](),
    "integer": frozenset[str](),
    "boolean": frozenset[str](),
    "null": frozenset[str](),
}
"""Type ↦ its keywords."""
_WHOLE: Final = ("enum", "const", "anyOf", "$ref")
"""Each says all of a value, beside a type."""
_PLAIN: Final[list[CodeRange]] = complement([(0, 0x1F), (0x22, 0x22), (0x5C, 0x5C)])
"""Characters that a string of JSON has as they are."""
_SPACE: Final = RuleName(" ")
_STARTING: Final[Mapping[str, str]] = {
    " ": r"[ \n\t]{0,20}",
    " character": r'[ !#-\[\]-\x7f]|[^\x00-\x7f]|\\["\\/bfnrt]|\\u[0-9abcefABCEF][0-9a-fA-F]{3}|\\u[dD][0-7][0-9a-fA-F]{2}',
    " integer": r"-?(0|[1-9][0-9]{0,15})",
    " number": r"-?(0|[1-9][0-9]{0,15})(\.[0-9]{1,16})?([eE][+-]?[0-9]{1,3})?",
}
"""Rules of regular expressions; no name of a schema begins with a space."""


def schema_rules(schema: Any) -> dict[str, Expression]:
    """The rules of a schema, of which the first is called ""; True for any JSON, of which the outermost is an object."""
    return _Rules(schema).rules


class _Rules:
    def __init__(self, schema: Any) -> None:
        self._root: Final = schema
        self.rules: Final = {name: RegularExpression(pattern).expression for name, pattern in _STARTING.items()}
        self.rules[" string"] = Sequenced((text('"'), Repeated(RuleName(" character"), 0, None), text('"')))
        self.rules[" object"] = self._braced(self._pair(RuleName(" string"), RuleName(" value")), "{}", 0, None)
        self.rules[" array"] = self._braced(RuleName(" value"), "[]", 0, None)
        kinds = "string", "number", "object", "array"
        words = tuple(map(text, ("true", "false", "null")))
        self.rules[" value"] = Choice((*(RuleName(f" {k}") for k in kinds), *words))
        self.rules[""] = RuleName(" object") if schema is True else self._value(schema, "schema")

    def _value(self, schema: Any, at: str) -> Expression:
        if schema is True or schema == {}:
            return RuleName(" value")
        if not isinstance(schema, dict):
            raise InputError(f"{at}: got {schema!r:.80}, expected a JSON schema as a dict")
        keywords: dict[str, Any] = {k: v for k, v in schema.items() if k not in ANNOTATIONS}
        given = keywords.pop("type", None)
        whole = [k for k in _WHOLE if k in keywords]
        if whole:
            if len(keywords) > 1:
                raise InputError(f"{at}: {', '.join(map(repr, keywords))} beside each other; give one of them")
            return self._whole(whole[0], keywords[whole[0]], at)
        types = given if isinstance(given, list) else [self._implied_type(keywords, at) if given is None else given]
        unknown = [t for t in types if not isinstance(t, str) or t not in _KEYWORDS]
        if unknown or not types:
            raise InputError(f"{at}: the type {given!r:.80}, expected {', '.join(_KEYWORDS)}")
        strange = keywords.keys() - {k for t in types for k in _KEYWORDS[t]}
        if strange:
            raise InputError(
                f"{at}: the keyword {min(strange)!r:.80} of {'/'.join(types)} is not supported; leave it out"
            )
        parts = tuple(self._typed(t, keywords, at) for t in types)
        return parts[0] if len(parts) == 1 else Choice(parts)

    def _implied_type(self, keywords: Mapping[str, Any], at: str) -> str:
        """The type to which the keywords of a schema without a type belong."""
        for kind in ("object", "array", "string"):
            if keywords.keys() & _KEYWORDS[kind]:
                return kind
        raise InputError(f"{at}: the keyword {min(keywords)!r:.80} is not supported; leave it out, or give a type")

    def _whole(self, keyword: str, value: Any, at: str) -> Expression:
        if keyword == "const":
            return _literal(value, at)
        if keyword == "$ref":
            return self._named(value, at)
        if not isinstance(value, list) or not 0 < len(value) <= MAX_VALUES:
            raise InputError(f"{at}/{keyword}: got {value!r:.80}, expected a list of 1 to {MAX_VALUES}")
        if keyword == "enum":
            return Choice(tuple(_literal(v, at) for v in value))
        return Choice(tuple(self._value(v, f"{at}/anyOf/{k}") for k, v in enumerate(value)))

    def _named(self, name: Any, at: str) -> Expression:
        """A definition of the schema, as a rule."""
        if not isinstance(name, str) or not (name == "#" or name.startswith(("#/$defs/", "#/definitions/"))):
            raise InputError(f"{at}: the $ref {name!r:.80}, expected # or one that begins with #/$defs/")
        if name not in self.rules:
            found = self._root
            for key in name.split("/")[1:]:
                found = found.get(key) if isinstance(found, dict) else None
            if found is None:
                raise InputError(f"{at}: the $ref {name!r:.80} leads nowhere; expected a name of $defs")
            self.rules[name] = Choice(())  # while it is made, it may name itself
            self.rules[name] = self._value(found, name)
        return RuleName(name)

    def _typed(self, kind: str, keywords: Mapping[str, Any], at: str) -> Expression:
        match kind:
            case "string":
                return self._string(keywords, at)
            case "array":
                least, most = _bounds(keywords, "minItems", "maxItems", at)
                return self._braced(self._value(keywords.get("items", True), f"{at}/items"), "[]", least, most)
            case "object":
                return self._object(keywords, at)
            case "boolean":
                return Choice((text("true"), text("false")))
            case "null":
                return text("null")
            case _:
                return RuleName(f" {kind}")

    def _string(self, keywords: Mapping[str, Any], at: str) -> Expression:
        least, most = _bounds(keywords, "minLength", "maxLength", at)
        if "pattern" not in keywords:
            if (least, most) == (0, None):
                return RuleName(" string")
            return Sequenced((text('"'), Repeated(RuleName(" character"), least, most), text('"')))
        if (least, most) != (0, None):
            raise InputError(f"{at}: pattern and a length beside each other; give one of them")
        pattern = RegularExpression(keywords["pattern"], _PLAIN)
        more = Repeated(RuleName(" character"), 0, None)
        before, after = (() if a else (more,) for a in pattern.anchored)
        return Sequenced((text('"'), *before, pattern.expression, *after, text('"')))

    def _object(self, keywords: Mapping[str, Any], at: str) -> Expression:
        properties, required = keywords.get("properties", {}), keywords.get("required", [])
        if not isinstance(properties, dict) or len(properties) > MAX_VALUES:
            raise InputError(f"{at}/properties: got {properties!r:.80}, expected a dict of at most {MAX_VALUES}")
        missing = [r for r in required if r not in properties] if isinstance(required, list) else [required]
        if missing:
            raise InputError(f"{at}/required: {missing[0]!r:.80} is none of the properties; name these")
        others = keywords.get("additionalProperties", not properties)
        if not properties:
            if others is False:
                return self._braced(Choice(()), "{}", 0, 0)
            return self._braced(self._pair(RuleName(" string"), self._value(others, at)), "{}", 0, None)
        pairs: list[tuple[Expression, bool]] = []
        for name, schema in properties.items():
            rule = f"{at}/{name}"
            self.rules[rule] = self._pair(_literal(name, at), self._value(schema, rule))
            pairs.append((RuleName(rule), name in required))
        return Sequenced((text("{"), _SPACE, self._pairs(pairs, at), _SPACE, text("}")))

    def _pairs(self, pairs: list[tuple[Expression, bool]], at: str) -> Expression:
        """Pairs in order, with commas between them. A rule for each place: what may follow there, first or not."""
        comma = Sequenced((_SPACE, text(","), _SPACE))
        rest: Expression = Sequenced(())
        begun: Expression = Sequenced(())
        for k in range(len(pairs) - 1, -1, -1):
            pair, needed = pairs[k]
            first = Sequenced((pair, rest))
            begun = first if needed else Choice((first, begun))
            further = Sequenced((comma, pair))
            after = Sequenced((further if needed else optional(further), rest))
            for name, value in ((f" rest {k} of {at}", after), (f" begun {k} of {at}", begun)):
                self.rules[name] = value
            rest, begun = RuleName(f" rest {k} of {at}"), RuleName(f" begun {k} of {at}")
        return begun

    def _pair(self, name: Expression, value: Expression) -> Expression:
        return Sequenced((name, _SPACE, text(":"), _SPACE, value))

    def _braced(self, part: Expression, braces: str, least: int, most: int | None) -> Expression:
        """Parts between braces, with commas between them."""
        further = Sequenced((_SPACE, text(","), _SPACE, part))
        several = Sequenced((part, Repeated(further, max(least - 1, 0), None if most is None else max(most - 1, 0))))
        inside = Sequenced(()) if most == 0 else several if least else optional(several)
        return Sequenced((text(braces[0]), _SPACE, inside, _SPACE, text(braces[1])))


def _literal(value: Any, at: str) -> Expression:
    try:
        return text(json.dumps(value, ensure_ascii=False, allow_nan=False))
    except (TypeError, ValueError, RecursionError):
        raise InputError(f"{at}: got {value!r:.80}, expected a value of JSON") from None


def _bounds(keywords: Mapping[str, Any], least: str, most: str, at: str) -> tuple[int, int | None]:
    low, high = keywords.get(least, 0), keywords.get(most)
    for name in keywords.keys() & {least, most}:
        n = keywords[name]
        if type(n) is not int or not 0 <= n <= MAX_VALUES:
            raise InputError(f"{at}/{name}: got {n!r:.40}, expected a number from 0 to {MAX_VALUES}")
    if high is not None and high < low:
        raise InputError(f"{at}: {least} is above {most}; give less")
    return low, high
