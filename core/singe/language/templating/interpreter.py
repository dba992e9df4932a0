"""Runs the tree of a template over values of JSON: each step is counted, and no step reaches beyond the tables.

A template sees what it is given, and the functions, methods, filters and tests of closed tables; values have no other
attributes. It ends after MAX_STEPS steps, and prints MAX_OUTPUT characters at most.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from ...errors import FormatError
from .filters import FILTERS, TEST_ARGUMENTS, TESTS, compared, contains, listed
from .methods import CHANGING_METHODS, DICT_METHODS, LIST_METHODS, TEXT_METHODS, get, refuse_long
from .parser import Node
from .values import (
    MAX_NUMBER,
    CallableValue,
    NamespaceValue,
    RecordValue,
    UndefinedValue,
    Value,
    is_true,
    kind_of,
    shown,
)

MAX_STEPS: Final = 1 << 20
MAX_OUTPUT: Final = 1 << 22
MAX_CALLS: Final = 32
"""How deep macros may call each other."""
CHARACTERS: Final = 64
"""So many characters that are made or gone through are a step."""
ITEM: Final = 8
"""As many characters take the memory of an item of a list."""


class TemplateScope:
    """Names, and the scope around it."""

    def __init__(self, names: dict[str, Value], outer: TemplateScope | None = None) -> None:
        self.names, self.outer = names, outer

    def get(self, name: str) -> Value:
        scope: TemplateScope | None = self
        while scope is not None:
            if name in scope.names:
                return scope.names[name]
            scope = scope.outer
        return UndefinedValue(name)


class _LoopEnd(Exception):
    """`break` or `continue`."""


class _Break(_LoopEnd):
    pass


class _Continue(_LoopEnd):
    pass


class Interpreter:
    """One rendering of a template."""

    def __init__(self, names: Mapping[str, Value]) -> None:
        self._scope = TemplateScope(dict(names))
        self._steps = self._calls = self._printed = 0
        self._output: list[str] = []

    def run(self, nodes: Sequence[Node]) -> str:
        """The text that the statements print."""
        try:
            self._body(nodes)
        except _LoopEnd:
            raise FormatError("a template leaves a loop where there is none") from None
        return "".join(self._output)

    def charge(self, items: int) -> None:
        """Counts a step, and more for many items or characters."""
        self._steps += 1 + items // CHARACTERS
        if self._steps > MAX_STEPS:
            raise FormatError(f"a template takes more than {MAX_STEPS} steps")

    # --- statements ---------------------------------------------------------------------------------------------------

    def _body(self, nodes: Sequence[Node]) -> None:
        for node in nodes:
            self.charge(0)
            STATEMENTS[node[0]](self, node)

    def _print(self, text: str) -> None:
        self._printed += len(text)
        if self._printed > MAX_OUTPUT:
            raise FormatError(f"a template prints more than {MAX_OUTPUT} characters")
        self._output.append(text)

    def _if(self, node: Node) -> None:
        for condition, body in node[1]:
            if is_true(self.value(condition)):
                return self._body(body)
        return self._body(node[2])

    def _for(self, node: Node) -> None:
        _, target, source, condition, body, otherwise = node
        items = listed(self.value(source))
        outer = self._scope
        if condition is not None:
            kept: list[Value] = []
            for item in items:
                self._scope = TemplateScope({}, outer)
                self._assign(target, item)
                if is_true(self.value(condition)):
                    kept.append(item)
            items = kept
        changes: list[Value] = []
        for at, item in enumerate(items):
            self.charge(0)
            self._scope = TemplateScope({"loop": _loop(items, at, changes)}, outer)
            self._assign(target, item)
            try:
                self._body(body)
            except _Continue:
                continue
            except _Break:
                break
        self._scope = outer
        if not items:
            self._body(otherwise)

    def _assign(self, target: Node, value: Value) -> None:
        if target[0] == "one":
            self._scope.names[target[1]] = value
        elif target[0] == "field":
            space = self._scope.get(target[1])
            if not isinstance(space, NamespaceValue):
                raise FormatError(f"a template sets {target[2]!r:.60} of {kind_of(space)}, expected a namespace")
            space.fields[target[2]] = value
        else:
            values = listed(value)
            if len(values) != len(target[1]):
                raise FormatError(f"a template takes {len(values)} values apart into {', '.join(target[1])}")
            self._scope.names.update(zip(target[1], values, strict=True))

    def _with(self, node: Node) -> None:
        outer = self._scope
        values = [(target, self.value(value)) for target, value in node[1]]
        self._scope = TemplateScope({}, outer)
        for target, value in values:
            self._assign(target, value)
        self._body(node[2])
        self._scope = outer

    def _macro(
        self, name: str, names: Sequence[str], defaults: Sequence[Node | None], body: Sequence[Node]
    ) -> CallableValue:
        outer = self._scope

        def call(plain: list[Value], named: dict[str, Value]) -> str:
            caller = named.pop("caller", None)
            if len(plain) > len(names) or any(key not in names or key in names[: len(plain)] for key in named):
                raise FormatError(f"a template calls {name} with other arguments than {', '.join(names) or 'none'}")
            given = {**dict(zip(names, plain, strict=False)), **named, **({} if caller is None else {"caller": caller})}
            before, self._scope = self._scope, TemplateScope(given, outer)
            for key, default in zip(names, defaults, strict=True):
                if key not in given:
                    given[key] = UndefinedValue(key) if default is None else self.value(default)
            try:
                return self._captured(body)
            except _LoopEnd:
                raise FormatError(f"the macro {name} leaves a loop where there is none") from None
            finally:
                self._scope = before

        return CallableValue(name, call)

    def _captured(self, body: Sequence[Node]) -> str:
        """What statements print, as a text."""
        before, self._output = self._output, []
        try:
            self._body(body)
            return "".join(self._output)
        finally:
            self._output = before

    def _call_block(self, node: Node) -> None:
        _, call, names, defaults, body = node
        caller = self._macro("caller", names, defaults, body)
        self._print(shown(self._call(call, {"caller": caller})))

    # --- expressions --------------------------------------------------------------------------------------------------

    def value(self, node: Node) -> Value:
        """The value of an expression."""
        self.charge(0)
        return EXPRESSIONS[node[0]](self, node)

    def _dict(self, node: Node) -> Value:
        values: dict[Value, Value] = {}
        for key_node, value_node in node[1]:
            key = self.value(key_node)
            if not isinstance(key, (str, int, float, type(None))):
                raise FormatError(f"a template makes a dict with {kind_of(key)} as a key")
            values[key] = self.value(value_node)
        return values

    def attribute(self, value: Value, name: str) -> Value:
        """`value.name`: a method, or a field."""
        if isinstance(value, dict):
            if name in DICT_METHODS:
                return self._method(name, DICT_METHODS[name], value)
            return UndefinedValue(name) if name in CHANGING_METHODS else value.get(name, UndefinedValue(name))
        if isinstance(value, str) and name in TEXT_METHODS:
            return self._method(name, TEXT_METHODS[name], value)
        if isinstance(value, list) and name in LIST_METHODS:
            return self._method(name, LIST_METHODS[name], value)
        if isinstance(value, NamespaceValue):
            return value.fields.get(name, UndefinedValue(name))
        if isinstance(value, RecordValue) and name in value.fields:
            return value.fields[name]()
        if isinstance(value, UndefinedValue):
            raise FormatError(f"a template asks for {name!r:.60} of {kind_of(value)}")
        return UndefinedValue(name)

    def _method(self, name: str, method: Callable[..., Value], value: Value) -> CallableValue:
        def call(plain: list[Value], named: dict[str, Value]) -> Value:
            self.charge(len(value))
            return method(value, plain, named)

        return CallableValue(name, call)

    def item(self, value: Value, index: Value) -> Value:
        """`value[index]`."""
        if isinstance(value, (list, str)) and isinstance(index, int):
            return value[index] if -len(value) <= index < len(value) else UndefinedValue(f"item {index}")
        if isinstance(value, dict):
            found = get(value, index, self)
            if found is not self:
                return found
        if isinstance(index, str):
            return self.attribute(value, index)
        if isinstance(value, UndefinedValue):
            raise FormatError(f"a template asks for an item of {kind_of(value)}")
        return UndefinedValue("item")

    def deep_item(self, value: Value, path: Value, default: Value = None) -> Value:
        """The attribute of a filter: a name, a number, or several with dots between. What is not there is `default`, if given."""
        for part in path.split(".") if isinstance(path, str) else [path]:
            value = self.item(
                value, int(part) if isinstance(part, str) and part.isdecimal() and len(part) < 10 else part
            )
            if default is not None and isinstance(value, UndefinedValue):
                value = default
        return value

    def _slice(self, node: Node) -> Value:
        value = self.value(node[1])
        bounds = [None if bound is None else self.value(bound) for bound in node[2:]]
        if (
            not isinstance(value, (str, list))
            or not all(b is None or isinstance(b, int) for b in bounds)
            or bounds[2] == 0
        ):
            raise FormatError(f"a template takes a slice of {kind_of(value)}, or one whose bounds are no numbers")
        self.charge(len(value))
        return value[slice(*bounds)]

    def _call(self, node: Node, more: Mapping[str, Value] | None = None) -> Value:
        _, callee, plain, named, line = node
        function = self.value(callee)
        if not isinstance(function, CallableValue):
            raise FormatError(f"template, line {line}: {kind_of(function)} is called, expected a function")
        arguments = [self.value(argument) for argument in plain]
        options = {**{name: self.value(argument) for name, argument in named}, **(more or {})}
        if self._calls == MAX_CALLS:
            raise FormatError(f"template, line {line}: macros call each other more than {MAX_CALLS} deep")
        self._calls += 1
        try:
            result = function.call(arguments, options)
        finally:
            self._calls -= 1
        self._charge_for(result)
        return result

    def _charge_for(self, value: Value) -> None:
        if isinstance(value, (str, list, dict)):
            self.charge(len(value) if isinstance(value, str) else ITEM * len(value))

    def _filter(self, node: Node, subject: Value = None) -> Value:
        _, source, name, plain, named, line = node
        value = subject if source is None else self.value(source)
        if name not in FILTERS:
            raise FormatError(f"template, line {line}: the filter {name!r:.60}, expected one of {', '.join(FILTERS)}")
        options = {key: self.value(argument) for key, argument in named}
        return self.filtered(value, name, [self.value(argument) for argument in plain], options)

    def filtered(self, value: Value, name: str, plain: list[Value], named: dict[str, Value]) -> Value:
        """What a filter makes of a value."""
        if name not in FILTERS:
            raise FormatError(f"a template asks for the filter {name!r:.60}, expected one of {', '.join(FILTERS)}")
        self._charge_for(value)
        result = FILTERS[name](self, value, plain, named)
        self._charge_for(result)
        return result

    def _test(self, node: Node) -> bool:
        _, source, name, arguments, line = node
        value = self.value(source)
        if name not in TESTS:
            raise FormatError(f"template, line {line}: the test {name!r:.60}, expected one of {', '.join(TESTS)}")
        return self.tested(value, name, [self.value(argument) for argument in arguments])

    def tested(self, value: Value, name: str, arguments: list[Value]) -> bool:
        """Whether a value passes a test."""
        operators = {"==": "eq", "!=": "ne", "<": "lt", "<=": "le", ">": "gt", ">=": "ge"}
        name = operators.get(name, name)
        if name not in TESTS:
            raise FormatError(f"a template asks for the test {name!r:.60}, expected one of {', '.join(TESTS)}")
        if len(arguments) != (name in TEST_ARGUMENTS):
            raise FormatError(f"a template asks for the test {name} with {len(arguments)} arguments")
        self.charge(0)
        return TESTS[name](value, *arguments)

    def _compare(self, node: Node) -> bool:
        left = self.value(node[1])
        for operator, other in node[2]:
            right = self.value(other)
            self._charge_for(right)
            if operator in ("in", "not in"):
                if contains(right, left) != (operator == "in"):
                    return False
            elif not compared(operator, left, right):
                return False
            left = right
        return True

    def _binary(self, node: Node) -> Value:
        _, operator, left_node, right_node = node
        left, right = self.value(left_node), self.value(right_node)
        if operator == "~":
            a, b = shown(left), shown(right)
            refuse_long(len(a) + len(b))
            self.charge(len(a) + len(b))
            return a + b
        if operator == "+" and isinstance(left, str) and isinstance(right, str):
            refuse_long(len(left) + len(right))
            self.charge(len(left) + len(right))
            return left + right
        if operator == "+" and isinstance(left, list) and isinstance(right, list):
            refuse_long(len(left) + len(right))
            self.charge(ITEM * (len(left) + len(right)))
            return left + right
        if operator == "*" and isinstance(left, (str, list)) and isinstance(right, int):
            refuse_long(len(left) * max(right, 0))
            self.charge((1 if isinstance(left, str) else ITEM) * len(left) * max(right, 0))
            return left * right
        if not isinstance(left, (int, float)) or not isinstance(right, (int, float)):
            raise FormatError(f"a template computes {kind_of(left)} {operator} {kind_of(right)}")
        return self.small(_computed(operator, left, right))

    def small(self, number: Value) -> Value:
        """A number, unless it is too large to be exact in every language."""
        if isinstance(number, int) and abs(number) > MAX_NUMBER:
            raise FormatError("a template computes a number beyond 2 to the power of 53")
        return number

    def _sign(self, node: Node) -> Value:
        value = self.value(node[2])
        if not isinstance(value, (int, float)):
            raise FormatError(f"a template computes {node[1]} of {kind_of(value)}")
        return -value if node[1] == "-" else +value

    def _captured_value(self, node: Node) -> Value:
        outer, self._scope = self._scope, TemplateScope({}, self._scope)
        value: Value = self._captured(node[1])
        self._scope = outer
        for step in node[2]:
            value = self._filter(step, value)
        return value


def _computed(operator: str, left: float, right: float) -> float:
    if operator in ("/", "//", "%") and not right:
        raise FormatError("a template divides by zero")
    if operator == "**":
        if abs(left) > 1 << 20 or not 0 <= right <= 64:
            raise FormatError(f"a template computes {left} ** {right}, expected smaller numbers")
        return left**right
    if operator == "+":
        return left + right
    if operator == "-":
        return left - right
    if operator == "*":
        return left * right
    return left / right if operator == "/" else left // right if operator == "//" else left % right


def _loop(items: Sequence[Value], at: int, changes: list[Value]) -> RecordValue:
    """What `loop` is in a turn."""
    count = len(items)

    def changed(plain: list[Value], _: dict[str, Value]) -> bool:
        if changes and changes[0] == plain:
            return False
        changes[:] = [plain]
        return True

    def cycle(plain: list[Value], _: dict[str, Value]) -> Value:
        return plain[at % len(plain)] if plain else UndefinedValue("cycle")

    return RecordValue(
        {
            "index": lambda: at + 1,
            "index0": lambda: at,
            "revindex": lambda: count - at,
            "revindex0": lambda: count - at - 1,
            "first": lambda: at == 0,
            "last": lambda: at == count - 1,
            "length": lambda: count,
            "previtem": lambda: items[at - 1] if at else UndefinedValue("previtem"),
            "nextitem": lambda: items[at + 1] if at + 1 < count else UndefinedValue("nextitem"),
            "changed": lambda: CallableValue("changed", changed),
            "cycle": lambda: CallableValue("cycle", cycle),
        }
    )


def _raise(error: type[_LoopEnd]) -> None:
    raise error


STATEMENTS: Final[Mapping[str, Callable[[Interpreter, Node], None]]] = {
    "text": lambda run, node: run._print(node[1]),
    "print": lambda run, node: run._print(shown(run.value(node[1]))),
    "if": Interpreter._if,
    "for": Interpreter._for,
    "set": lambda run, node: run._assign(node[1], run.value(node[2])),
    "macro": lambda run, node: run._assign(("one", node[1]), run._macro(*node[1:])),
    "call block": Interpreter._call_block,
    "with": Interpreter._with,
    "break": lambda _run, _node: _raise(_Break),
    "continue": lambda _run, _node: _raise(_Continue),
}
"""What the statements of a tree do."""
EXPRESSIONS: Final[Mapping[str, Callable[[Interpreter, Node], Value]]] = {
    "constant": lambda _, node: node[1],
    "name": lambda run, node: run._scope.get(node[1]),
    "list": lambda run, node: [run.value(item) for item in node[1]],
    "dict": Interpreter._dict,
    "attribute": lambda run, node: run.attribute(run.value(node[1]), node[2]),
    "item": lambda run, node: run.item(run.value(node[1]), run.value(node[2])),
    "slice": Interpreter._slice,
    "call": Interpreter._call,
    "filter": Interpreter._filter,
    "test": Interpreter._test,
    "not": lambda run, node: not is_true(run.value(node[1])),
    "and": lambda run, node: run.value(node[2]) if is_true(left := run.value(node[1])) else left,
    "or": lambda run, node: left if is_true(left := run.value(node[1])) else run.value(node[2]),
    "choice": lambda run, node: (
        run.value(node[2])
        if is_true(run.value(node[1]))
        else UndefinedValue("else")
        if node[3] is None
        else run.value(node[3])
    ),
    "compare": Interpreter._compare,
    "binary": Interpreter._binary,
    "sign": Interpreter._sign,
    "captured": Interpreter._captured_value,
}
"""What the expressions of a tree are worth."""


def globals_of(now: Callable[[str], str], refuse: Callable[[str], Value]) -> dict[str, Value]:
    """The functions that every template may call."""

    def numbers(plain: list[Value], named: dict[str, Value]) -> Value:
        if (
            named
            or not 1 <= len(plain) <= 3
            or not all(isinstance(v, int) for v in plain)
            or (len(plain) == 3 and not plain[2])
        ):
            raise FormatError("a template calls range with other arguments than one to three whole numbers")
        if len(range(*plain)) > 100_000:
            raise FormatError(f"a template asks for {len(range(*plain))} numbers, expected at most 100000")
        return list(range(*plain))

    def space(plain: list[Value], named: dict[str, Value]) -> NamespaceValue:
        return NamespaceValue({**(plain[0] if plain and isinstance(plain[0], dict) else {}), **named})

    def text(plain: list[Value]) -> str:
        if len(plain) != 1 or not isinstance(plain[0], str):
            raise FormatError("a template calls a function with other arguments than a text")
        return plain[0]

    functions: Mapping[str, Callable[[list[Value], dict[str, Value]], Value]] = {
        "range": numbers,
        "namespace": space,
        "dict": lambda _, named: dict(named),
        "raise_exception": lambda plain, _: refuse(text(plain)),
        "strftime_now": lambda plain, _: now(text(plain)),
    }
    return {name: CallableValue(name, call) for name, call in functions.items()}
