"""What a model's text must match, and what in it is a call of a tool: cases for Python and for JavaScript."""

from __future__ import annotations

import json
from typing import Any, Final

# --- regular expressions and schemas ----------------------------------------------------------------------------------

SIGNS: Final = "aabbccxyz0129-_.$\\]é ü中文\n\U0001f600\u07ff\u0800\uffff\ue000\x7f\x80"
"""Of which texts are drawn for PATTERNS."""
PATTERNS: Final = [
    r"a+b?c{2,3}", r"[^a-c]é|ü*", r"\d{3}-\w+\.", r"(x|(?:yz)+)?", r"[\u4e00-\u9fff]{2}", r"[^x]", r".", r"^a{,2}$",
    r"[\x00-\uffff]", r"\$[]a-]+\\", r"[\s\S]{0,4}", r"(a|ab)(c|bcd)?",
]  # fmt: skip
REFUSED_PATTERNS: Final = [
    (r"(?=a)", "not supported but as"), (r"(a)\1", "not supported"), (r"\bword", "not supported"), ("a{2000}", "above 1000"),
    ("(", "too early"), ("a)", r"without its \("), ("[b-a]", "not in order"), ("*a", "nothing before it"), ("a^b", "inside"),
    ("x" * 20_000, "at most 10000"), ("(" * 60 + ")" * 60, "more than 50 groups"), ("(((a{900}){900}){9})", "more than 100000 places"),
    (r"\x+1", "without 2 digits"),
]  # fmt: skip
"""And of what the error speaks."""
PERSON: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 10},
        "age": {"type": "integer"},
        "tags": {"type": "array", "items": {"enum": ["a", "b"]}, "minItems": 1, "maxItems": 3},
        "child": {"$ref": "#"},
    },
    "required": ["name", "tags"],
}
PEOPLE: Final[list[tuple[Any, bool]]] = [
    ({"name": "x", "tags": ["a"]}, True),
    ({"name": "x", "age": -3, "tags": ["a", "b"], "child": {"name": "é", "tags": ["b"]}}, True),
    ({"name": "x"}, False),
    ({"tags": ["a"]}, False),
    ({"name": "x" * 11, "tags": ["a"]}, False),
    ({"name": "x", "tags": ["c"]}, False),
    ({"name": "x", "tags": []}, False),
    ({"name": "x", "age": 1.5, "tags": ["a"]}, False),
    ({"name": "x", "tags": ["a"], "more": 1}, False),
]
"""Values, and whether they are a PERSON."""
REFUSED_SCHEMAS: Final[list[tuple[Any, str]]] = [
    ({"type": "string", "format": "date"}, "keyword 'format' of string is not supported"),
    ({"type": "integer", "minimum": 0}, "keyword 'minimum'"),
    ({"oneOf": [{}]}, "keyword 'oneOf' is not supported"),
    ({"type": "thing"}, "the type 'thing'"),
    ({"$ref": "other.json"}, "the \\$ref"),
    ({"$ref": "#/$defs/none"}, "leads nowhere"),
    ({"type": "array", "minItems": 3, "maxItems": 2}, "minItems is above maxItems"),
    ({"type": "object", "required": ["a"]}, "none of the properties"),
    ({"enum": []}, "expected a list of 1 to"),
    ("text", "expected a JSON schema as a dict"),
    ({"type": "string", "minLength": None, "maxLength": 3}, "minLength"),
]

# --- calls of tools ---------------------------------------------------------------------------------------------------

TOOLS = [{"type": "function", "function": {"name": name, "parameters": {"type": "object"}}} for name in ("add", "now")]
TEMPLATE = "{{ messages[0].content }}{# MARK #}{{ messages[0].tool_calls | tojson }}"
ADD, NOW = ("add", {"a": [1, {"b": "\u00fc]}"}]}), ("now", {})


def written(call: tuple[str, Any], key: str = "arguments") -> str:
    return json.dumps({"name": call[0], key: call[1]}, ensure_ascii=False)


CALLS: Final = [
    ("<tool_call>", f"<tool_call>\n{written(ADD)}\n</tool_call>\n<tool_call>{written(NOW)}</tool_call>\n", [ADD, NOW]),
    ("<tool_call>", f"<tool_call>[{written(ADD)}]</tool_call>", [ADD]),
    ("<tool_call>", f"<tool_call>{written(ADD)}", [ADD]),
    ("[TOOL_CALLS]", f"[TOOL_CALLS] [{written(ADD)}, {written(NOW)}]", [ADD, NOW]),
    ("[TOOL_CALLS]", f" [{written(ADD)}]", [ADD]),
    ("<|python_tag|>", f"<|python_tag|>{written(ADD, 'parameters')}; {written(NOW, 'parameters')}", [ADD, NOW]),
    ("<|python_tag|>", written(ADD, "parameters"), [ADD]),
    ("", f"[{written(ADD)}]", [ADD]),
    ("", f"\n{written(NOW)}\n", [NOW]),
]
"""What is in the template, a text, and the calls in it."""
NO_CALLS: Final = [
    "", "  ", "hello", "a < b <tool", "{", "[]", "[1]", "{}", "null", '{"name": "add"}', '{"name": ["add"], "arguments": {}}',
    '{"name": "other", "arguments": {}}', '{"name": "add", "arguments": "a"}', '{"name": "add", "arguments": {"a": NaN}}',
    '{"name": "add", "arguments": {}} is a call', '<tool_call>{"name": "add"</tool_call>', "[TOOL_CALLS]", "[TOOL_CALLS] x",
    "<|python_tag|>print(1)", "[" * 100_000, '{"name": "add", "arguments": {"a": ' + "9" * 5000,
]  # fmt: skip
"""Texts that stay texts."""
