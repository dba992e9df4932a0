"""Kernel text as C++, as gpu/README.md defines it: a shader becomes a struct, of which `main` is a method.

The types, and the functions that it calls, are declared in prelude.hpp. Lines stay lines.
"""

from __future__ import annotations

import re
from typing import Final

_TYPE: Final = r"\w+(?:<(?:[^<>;]|<(?:[^<>;]|<[^<>;]*>)*>)*>)?"
_STEPS: Final = (
    (r"\benable \w+;", ""),
    (r"@group\(0\) @binding\(\d+\) var<(?:storage, read|uniform)> (\w+): ([^;]+);", r"const \2 \1{};"),
    (r"@group\(0\) @binding\(\d+\) var<storage, read_write> (\w+): ([^;]+);", r"\2 \1;"),
    (r"@\w+(?:\([^)]*\))? ?", ""),  # of the entry point and its parameters
    (r"\bvar(?:<\w+>)? (\w+): ([^=;]+?)(?= =|;)", r"\2 \1"),
    (r"\bvar (\w+)", r"auto \1"),
    (r"\blet (\w+)", r"const auto \1"),
    (r"\b(0x[0-9a-fA-F]+|\d+)i\b", r"\1"),
    (r"\.(xy|zw)\b", r".\1()"),
)
"""Patterns, each with what replaces it, in this order."""
_FUNCTION: Final = re.compile(rf"\bfn (\w+)\(([^{{]*)\)(?: -> ({_TYPE}))? {{")
_STRUCT: Final = re.compile(r"\bstruct (\w+) \{ ([^}]*) \}")
_NAMED: Final = re.compile(rf"(\w+): ({_TYPE})")


def respelled(text: str, name: str = "Shader") -> str:
    """The struct of this name that a shader becomes."""
    for pattern, replacement in _STEPS:
        text = re.sub(pattern, replacement, text)
    return f"struct {name} {{ {_STRUCT.sub(_struct, _FUNCTION.sub(_function, text))}}};\n"


def _function(found: re.Match[str]) -> str:
    parameters = _NAMED.sub(r"const \2 \1", found[2])
    return f"{found[3] or 'void'} {found[1]}({parameters}) {{"


def _struct(found: re.Match[str]) -> str:
    fields = _NAMED.sub(r"\2 \1", found[2]).replace(",", ";")
    return f"struct {found[1]} {{ {fields}; }};"
