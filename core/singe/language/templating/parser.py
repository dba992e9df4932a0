"""Templates as trees: Jinja's statements and expressions, as far as templates of conversations use them.

A node is a tuple of its kind and its parts; `Interpreter` has a method for each kind. What is not here (imports, inheritance,
recursive loops, extensions) is refused by name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias

from ...errors import FormatError
from .lexer import TemplatePart, TemplateToken, template_parts

Node: TypeAlias = tuple[Any, ...]
MAX_DEPTH: Final = 40
"""How deep statements, and expressions within each other, may stand."""
COMPARISONS: Final = ("==", "!=", "<", "<=", ">", ">=")
LEVELS: Final = (("+", "-"), ("~",), ("*", "/", "//", "%"), ("**",))
"""Binary operators, the loosest first."""
CONSTANTS: Final[Mapping[str, Any]] = {
    "true": True, "True": True, "false": False, "False": False, "none": None, "None": None,
}  # fmt: skip


def parse_template(source: str) -> Sequence[Node]:
    """The statements of a template."""
    return _StatementReader(template_parts(source)).body(())[0]


class _ExpressionReader:
    """Reads an expression from the tokens of a part."""

    def __init__(self, part: TemplatePart) -> None:
        self._tokens, self._at, self._depth, self._line = part.tokens, 0, 0, part.line

    def fault(self, expected: str) -> FormatError:
        found = repr(self._tokens[self._at].value)[:60] if self._at < len(self._tokens) else "the end"
        return FormatError(f"template, line {self.line}: {found}, expected {expected}")

    @property
    def line(self) -> int:
        return self._tokens[self._at].line if self._at < len(self._tokens) else self._line

    @property
    def ended(self) -> bool:
        return self._at >= len(self._tokens)

    def end(self) -> None:
        if not self.ended:
            raise self.fault("the end of the statement")

    def peek(self, kind: str, *values: str) -> bool:
        if self._at >= len(self._tokens):
            return False
        token = self._tokens[self._at]
        return token.kind == kind and (not values or token.value in values)

    def take(self, kind: str, *values: str) -> TemplateToken | None:
        if not self.peek(kind, *values):
            return None
        self._at += 1
        return self._tokens[self._at - 1]

    def need(self, kind: str, *values: str) -> str:
        token = self.take(kind, *values)
        if token is None:
            raise self.fault(" or ".join(values) or f"a {kind}")
        return token.value

    def tuple(self, condition: bool = True) -> Node:
        """One expression, or several with commas between."""
        read = self.expression if condition else self._either
        items = [read()]
        comma = False
        while self.take("operator", ","):
            comma = True
            if self.ended or self.peek("operator", ")", "=") or self.peek("name", "in", "if"):
                break
            items.append(read())
        return ("list", items) if comma else items[0]

    def expression(self) -> Node:
        """`a if b else c`, and all that binds more closely."""
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise self.fault(f"at most {MAX_DEPTH} expressions within each other")
        node = self._either()
        while self.take("name", "if"):
            condition = self._either()
            other = self.expression() if self.take("name", "else") else None
            node = ("choice", condition, node, other)
        self._depth -= 1
        return node

    def _either(self) -> Node:
        node = self._both()
        while self.take("name", "or"):
            node = ("or", node, self._both())
        return node

    def _both(self) -> Node:
        node = self._negation()
        while self.take("name", "and"):
            node = ("and", node, self._negation())
        return node

    def _negation(self) -> Node:
        count = 0
        while self.take("name", "not"):
            count += 1
        node = self._comparison()
        for _ in range(2 - count % 2 if count else 0):
            node = ("not", node)
        return node

    def _comparison(self) -> Node:
        first = self._binary(0)
        others: list[tuple[str, Node]] = []
        while True:
            if operator := self.take("operator", *COMPARISONS):
                others.append((operator.value, self._binary(0)))
            elif self.take("name", "in"):
                others.append(("in", self._binary(0)))
            elif self.peek("name", "not") and self._next_is_in():
                self._at += 2
                others.append(("not in", self._binary(0)))
            else:
                return ("compare", first, others) if others else first

    def _next_is_in(self) -> bool:
        after = self._tokens[self._at + 1 : self._at + 2]
        return bool(after) and after[0].kind == "name" and after[0].value == "in"

    def _binary(self, level: int) -> Node:
        if level == len(LEVELS):
            return self._unary(True)
        node = self._binary(level + 1)
        while operator := self.take("operator", *LEVELS[level]):
            node = ("binary", operator.value, node, self._binary(level + 1))
        return node

    def _unary(self, filters: bool) -> Node:
        if sign := self.take("operator", "-", "+"):
            self._depth += 1
            if self._depth > MAX_DEPTH:
                raise self.fault(f"at most {MAX_DEPTH} signs and brackets within each other")
            node: Node = ("sign", sign.value, self._unary(False))
            self._depth -= 1
        else:
            node = self._primary()
        node = self._postfix(node)
        return self._filters(node) if filters else node

    def _primary(self) -> Node:
        if name := self.take("name"):
            return ("constant", CONSTANTS[name.value]) if name.value in CONSTANTS else ("name", name.value)
        if self.peek("text"):
            parts = []
            while token := self.take("text"):
                parts.append(token.value)
            return ("constant", "".join(parts))
        if number := self.take("integer"):
            if len(number.value) > 15:
                raise self.fault("a number of at most 15 digits")
            return ("constant", int(number.value))
        if number := self.take("float"):
            return ("constant", float(number.value.replace("_", "")))
        if self.take("operator", "("):
            if self.take("operator", ")"):
                return ("list", [])
            node = self.tuple()
            self.need("operator", ")")
            return node
        if self.take("operator", "["):
            return ("list", self._items("]", self.expression))
        if self.take("operator", "{"):
            return ("dict", self._items("}", self._pair))
        raise self.fault("a value")

    def _pair(self) -> tuple[Node, Node]:
        key = self.expression()
        self.need("operator", ":")
        return key, self.expression()

    def _items(self, end: str, read: Callable[[], Any]) -> list[Any]:
        items: list[Any] = []
        while not self.take("operator", end):
            if items:
                self.need("operator", ",")
                if self.take("operator", end):
                    break
            items.append(read())
        return items

    def _postfix(self, node: Node) -> Node:
        while True:
            if self.take("operator", "."):
                if index := self.take("integer"):
                    node = ("item", node, ("constant", int(index.value[:9])))
                else:
                    node = ("attribute", node, self.need("name"))
            elif self.take("operator", "["):
                node = self._subscript(node)
            elif self.peek("operator", "("):
                node = ("call", node, *self.arguments(), self.line)
            else:
                return node

    def _subscript(self, node: Node) -> Node:
        bounds: list[Node | None] = [None]
        while not self.take("operator", "]"):
            if self.take("operator", ":"):
                bounds.append(None)
            else:
                if bounds[-1] is not None:
                    raise self.fault("]")
                bounds[-1] = self.expression()
        if len(bounds) > 3 or bounds == [None]:
            raise self.fault("an index, or a slice of at most three numbers")
        return ("item", node, bounds[0]) if len(bounds) == 1 else ("slice", node, *bounds, *[None] * (3 - len(bounds)))

    def arguments(self) -> tuple[list[Node], list[tuple[str, Node]]]:
        """The arguments of a call, and those with names."""
        self.need("operator", "(")
        plain: list[Node] = []
        named: list[tuple[str, Node]] = []
        first = True
        while not self.take("operator", ")"):
            if not first:
                self.need("operator", ",")
                if self.take("operator", ")"):
                    break
            first = False
            after = self._tokens[self._at + 1 : self._at + 2]
            if self.peek("name") and after and after[0].kind == "operator" and after[0].value == "=":
                name = self.need("name")
                self._at += 1
                named.append((name, self.expression()))
            elif named:
                raise self.fault("an argument with a name")
            else:
                plain.append(self.expression())
        return plain, named

    def _filters(self, node: Node) -> Node:
        while True:
            if self.take("operator", "|"):
                node = self.filter(node)
            elif self.take("name", "is"):
                node = self._test(node)
            elif self.peek("operator", "("):
                node = ("call", node, *self.arguments(), self.line)
            else:
                return node

    def filter(self, node: Node | None) -> Node:
        """A filter after its |."""
        line, name = self.line, self.need("name")
        return ("filter", node, name, *(self.arguments() if self.peek("operator", "(") else ([], [])), line)

    def _test(self, node: Node) -> Node:
        negated = self.take("name", "not") is not None
        line, name = self.line, self.need("name")
        arguments: list[Node] = []
        if self.peek("operator", "("):
            arguments, named = self.arguments()
            if named:
                raise self.fault("arguments without names")
        elif (
            self.peek("text") or self.peek("integer") or self.peek("float") or self.peek("operator", "[", "{")
            or (self.peek("name") and not self.peek("name", "else", "or", "and", "is", "if", "not", "in"))
        ):  # fmt: skip
            arguments = [self._postfix(self._primary())]
        tested: Node = ("test", node, name, arguments, line)
        return ("not", tested) if negated else tested

    def target(self) -> Node:
        """What a value is given to: a name, several, or a field of a namespace."""
        names = [self.need("name")]
        if self.take("operator", "."):
            return ("field", names[0], self.need("name"))
        return self._names(names)

    def loop_target(self) -> Node:
        bracket = self.take("operator", "(")
        target = self._names([self.need("name")])
        if bracket:
            self.need("operator", ")")
        return target

    def _names(self, names: list[str]) -> Node:
        comma = False
        while self.take("operator", ","):
            comma = True
            if not self.peek("name"):
                break
            names.append(self.need("name"))
        return ("names", names) if comma else ("one", names[0])

    def parameters(self) -> tuple[list[str], list[Node | None]]:
        """The parameters of a macro, and what those are that are not given."""
        names: list[str] = []
        defaults: list[Node | None] = []
        self.need("operator", "(")
        while not self.take("operator", ")"):
            if names:
                self.need("operator", ",")
                if self.take("operator", ")"):
                    break
            names.append(self.need("name"))
            defaults.append(self.expression() if self.take("operator", "=") else None)
        return names, defaults


class _StatementReader:
    """Reads statements from the parts of a template."""

    def __init__(self, parts: Sequence[TemplatePart]) -> None:
        self._parts, self._at, self._depth = parts, 0, 0

    def body(self, ends: Sequence[str]) -> tuple[list[Node], str, _ExpressionReader]:
        """The statements up to one of these ends, its name, and what follows the name."""
        self._depth += 1
        nodes: list[Node] = []
        while self._at < len(self._parts):
            part = self._parts[self._at]
            self._at += 1
            if self._depth > MAX_DEPTH:
                raise FormatError(
                    f"template, line {part.line}: statements stand {MAX_DEPTH} deep in each other, expected less"
                )
            if part.kind == "text":
                nodes.append(("text", part.text))
                continue
            reader = _ExpressionReader(part)
            if part.kind == "expression":
                nodes.append(("print", reader.tuple()))
                reader.end()
                continue
            name = reader.need("name")
            if name in ends:
                self._depth -= 1
                return nodes, name, reader
            if name not in STATEMENTS:
                raise FormatError(
                    f"template, line {part.line}: the statement {name!r:.60}, expected one of {', '.join((*STATEMENTS, *ends))}"
                )
            nodes.append(STATEMENTS[name](self, reader))
        if ends:
            raise FormatError(f"the template ends where {' or '.join(ends)} is expected")
        self._depth -= 1
        return nodes, "", _ExpressionReader(TemplatePart("statement", "", (), 0))

    def inner(self, end: str) -> list[Node]:
        nodes, _, rest = self.body((end,))
        rest.take("name")
        rest.end()
        return nodes

    def if_(self, reader: _ExpressionReader) -> Node:
        branches: list[tuple[Node, list[Node]]] = []
        while True:
            condition = reader.tuple()
            reader.end()
            nodes, end, reader = self.body(("elif", "else", "endif"))
            branches.append((condition, nodes))
            if end != "elif":
                break
        reader.end()
        return ("if", branches, self.inner("endif") if end == "else" else [])

    def for_(self, reader: _ExpressionReader) -> Node:
        target = reader.loop_target()
        reader.need("name", "in")
        items = reader.tuple(condition=False)
        condition = reader.expression() if reader.take("name", "if") else None
        if reader.peek("name", "recursive"):
            raise reader.fault("no recursive loop: Singe runs none")
        reader.end()
        nodes, end, rest = self.body(("else", "endfor"))
        rest.end()
        return ("for", target, items, condition, nodes, self.inner("endfor") if end == "else" else [])

    def set_(self, reader: _ExpressionReader) -> Node:
        target = reader.target()
        if reader.take("operator", "="):
            value = reader.tuple()
            reader.end()
            return ("set", target, value)
        filters = self._filters(reader)
        return ("set", target, ("captured", self.inner("endset"), filters))

    def _filters(self, reader: _ExpressionReader) -> list[Node]:
        filters: list[Node] = []
        while reader.take("operator", "|"):
            filters.append(reader.filter(None))
        reader.end()
        return filters

    def macro(self, reader: _ExpressionReader) -> Node:
        name = reader.need("name")
        names, defaults = reader.parameters()
        reader.end()
        return ("macro", name, names, defaults, self.inner("endmacro"))

    def call(self, reader: _ExpressionReader) -> Node:
        names, defaults = reader.parameters() if reader.peek("operator", "(") else ([], [])
        call = reader.expression()
        reader.end()
        if call[0] != "call":
            raise reader.fault("a call of a macro")
        return ("call block", call, names, defaults, self.inner("endcall"))

    def filter(self, reader: _ExpressionReader) -> Node:
        filters = [reader.filter(None)]
        return ("print", ("captured", self.inner("endfilter"), [*filters, *self._filters(reader)]))

    def with_(self, reader: _ExpressionReader) -> Node:
        assigned: list[tuple[Node, Node]] = []
        while not reader.ended:
            if assigned:
                reader.need("operator", ",")
            target = ("one", reader.need("name"))
            reader.need("operator", "=")
            assigned.append((target, reader.expression()))
        return ("with", assigned, self.inner("endwith"))

    def generation(self, reader: _ExpressionReader) -> Node:
        reader.end()
        return ("with", [], self.inner("endgeneration"))

    def leave(self, kind: str) -> Callable[[_ExpressionReader], Node]:
        def read(reader: _ExpressionReader) -> Node:
            reader.end()
            return (kind,)

        return read


STATEMENTS: Final[Mapping[str, Callable[[_StatementReader, _ExpressionReader], Node]]] = {
    "if": _StatementReader.if_,
    "for": _StatementReader.for_,
    "set": _StatementReader.set_,
    "macro": _StatementReader.macro,
    "call": _StatementReader.call,
    "filter": _StatementReader.filter,
    "with": _StatementReader.with_,
    "generation": _StatementReader.generation,
    "break": lambda template, reader: template.leave("break")(reader),
    "continue": lambda template, reader: template.leave("continue")(reader),
}
"""The statements by their first names."""
