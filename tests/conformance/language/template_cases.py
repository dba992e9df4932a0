"""Templates and messages that `templates.json.gz` has with the texts that transformers makes of them.

SNIPPETS are single constructs, over VALUES; TEMPLATES are whole ones, of the kinds that families of models have.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

FOLDER: Final = Path(__file__).with_name("templates")

VALUES: Final[dict[str, Any]] = {
    "n": 7, "x": 2.5, "t": "Grüße, \"World\" 'x' <b>&", "e": "", "no": None, "yes": True, "off": False,
    "l": [3, 1, 2], "w": ["b", "A", "c", "a"], "d": {"b": 1, "a": {"c": [1, None, 2.25]}, "items": "hidden"},
    "r": [{"role": "user", "n": 2, "k": {"v": 1}}, {"role": "system", "n": 1, "k": {"v": 2}}, {"role": "user", "n": 3}],
    "s": "  padded \n text\n\nmore ", "u": "日本語 😀 é",
}  # fmt: skip
SNIPPETS: Final = (
    *(FOLDER / "expressions.txt").read_text("utf-8").splitlines(),
    "{% for i in l %}{{ loop.index }}{{ loop.index0 }}{{ loop.first }}{{ loop.last }}{{ loop.length }}{{ loop.revindex }}{{ loop.revindex0 }},{% endfor %}",
    "{% for i in l %}{{ loop.previtem }}<{{ i }}>{{ loop.nextitem }} {{ loop.cycle('a', 'b') }}{{ loop.changed(i > 1) }}{% endfor %}",
    "{% for k, v in d.items() %}{{ k }}={{ v }};{% endfor %}{% for i in [] %}x{% else %}none{% endfor %}",
    "{% for i in l if i > 1 %}{{ i }}{{ loop.index }}{% else %}x{% endfor %}{% for i in l if i > 9 %}{{ i }}{% else %}none{% endfor %}",
    "{% for i in range(9) %}{% if i == 2 %}{% continue %}{% endif %}{% if i == 5 %}{% break %}{% endif %}{{ i }}{% endfor %}",
    "{% for i in l %}{% for j in l %}{{ i }}{{ j }}{{ loop.index }}{% endfor %}{{ loop.index }}{% endfor %}",
    "{% set a = 1 %}{% for i in l %}{% set a = a + i %}{{ a }}{% endfor %}{{ a }}",
    "{% set ns = namespace(a=1, b=[]) %}{% for i in l %}{% set ns.a = ns.a + i %}{% set ns.b = ns.b + [i] %}{% endfor %}{{ ns.a }}{{ ns.b }}",
    "{% if n == 1 %}a{% elif n == 7 %}b{% else %}c{% endif %}{% if off %}a{% elif off %}b{% endif %}{% if yes %}{% set z = 5 %}{% endif %}{{ z }}",
    "{% set a, b = 1, [2] %}{{ a }}{{ b }}{% set c %}in {{ n }}{% endset %}{{ c }}{% set f | upper | trim %} x {% endset %}{{ f }}|",
    "{% macro m(a, b=2, c='z') %}({{ a }}{{ b }}{{ c }}{{ n }}){% endmacro %}{{ m(1) }}{{ m(1, 3) }}{{ m(a=1, c=4) }}{{ m() }}{{ m(1) | upper }}",
    "{% macro m(a) %}{% if a > 0 %}{{ a }}{{ m(a - 1) }}{% endif %}{% endmacro %}{{ m(4) }}{% set k = 3 %}{% macro p() %}{{ k }}{% endmacro %}{{ p() }}",
    "{% macro box(title) %}[{{ title }}: {{ caller() }}]{% endmacro %}{% call box('T') %}body {{ n }}{% endcall %}",
    "{% macro each(items) %}{% for i in items %}{{ caller(i) }};{% endfor %}{% endmacro %}{% call(v) each(l) %}<{{ v }}>{% endcall %}",
    "{% filter upper %}shout {{ n }}{% endfilter %}{% with a = 1, b = n %}{{ a }}{{ b }}{% endwith %}{{ a }}",
    "{% generation %}answer {{ n }}{% endgeneration %}{% raw %}{{ raw }} {% if %}{% endraw %}|{# comment {{ x }} #}|",
    "a  \n  {% if yes %}\n  b\n  {% endif %}\n  c\n\n{% if yes -%}\n   d   \n{%- endif %}\n  e  ",
    "  {# c #}\n  x {#- d -#}  \n y\n\t{% set a = 1 %}\nz {%+ if yes %}q{% endif +%}\nw\n",
    "{{ n -}}   \n  {{- n }} \n {{ n }}\n\n{%- if yes %}\n\n  in\n\n{%- endif -%}\n\n out\n",
    "line\r\n{% if yes %}\r\nb\r\n{% endif %}\r\n\n",
    "{{ raise_exception('stop ' ~ n) }}",
    "{{ missing.attribute }}", "{{ missing['a'] }}", "{{ missing() }}", "{{ n() }}", "{{ t + n }}", "{{ n < t }}", "{{ 1 // 0 }}", "{{ no + 1 }}",
    "{{ l.append(1) }}", "{{ d.update({}) }}", "{{ d.pop('b') }}", "{{ t.__class__ }}", "{{ t.__class__.__mro__ }}", "{{ l | nonesuch }}",
    "{% for i in n %}{% endfor %}", "{% if %}{% endif %}", "{% for %}{% endfor %}", "{% endif %}", "{% if yes %}", "{{ ", "{% include 'x' %}",
    "{{ n | }}", "{{ n is nonesuch }}", "{{ (1, 2 }}", "{{ 'a }}", "{# open", "{% set 1 = 2 %}", "{{ a b }}", "{{ n.upper() }}",
)  # fmt: skip

TEMPLATES: Final = {path.stem: path.read_text("utf-8") for path in sorted(FOLDER.glob("*.jinja"))}
_TOOL: Final = {
    "type": "function",
    "function": {
        "name": "weather",
        "description": 'The "weather" in Zürich',
        "parameters": {
            "type": "object",
            "properties": {
                "city": {"type": "string"},
                "unit": {"type": "string", "enum": ["C", "F"]},
                "days": {"type": "array", "items": {"type": "integer"}},
            },
            "required": ["city"],
        },
    },
}
_CALL: Final = {
    "id": "a1",
    "type": "function",
    "function": {"name": "weather", "arguments": {"city": "Zürich", "days": [1, 2]}},
}


def _say(role: str, content: Any, **more: Any) -> dict[str, Any]:
    return {"role": role, "content": content, **more}


CONVERSATIONS: Final[tuple[dict[str, Any], ...]] = (
    {"messages": [_say("user", "Hi")]},
    {"messages": [_say("system", " Be brief. "), _say("user", "Hi <|im_end|> \n ")]},
    {"messages": [_say("user", "a"), _say("assistant", "b 😀"), _say("user", "c\n\n'q' \"d\"")], "add_generation_prompt": False},
    {"messages": [_say("user", "a"), _say("assistant", "<think>\nhm\n</think>\n\nyes"), _say("user", "z")], "enable_thinking": False},
    {"messages": [_say("user", "w?"), _say("assistant", None, tool_calls=[_CALL]), _say("tool", {"t": 1.5})], "tools": [_TOOL]},
    {"messages": [_say("system", "S"), _say("user", "w?"), _say("assistant", "", tool_calls=[_CALL, _CALL])], "tools": [_TOOL, _TOOL]},
    {"messages": [_say("user", [{"type": "text", "text": " one "}, {"type": "image"}, {"type": "text", "text": "two"}])]},
    {"messages": [_say("user", "x"), _say("user", "again")]},
    {"messages": [_say("user", "x"), _say("assistant", "y", reasoning_content="\nwhy\n")]},
    {"messages": []},
)  # fmt: skip
