"""Writes core/singe/frontend/tensor.pyi, from which editors and type checkers know every method of Tensor.

`python tests/stubs.py` writes the file; tests/unit/frontend/test_stubs.py checks that it is current. Methods that are written
out keep their parameters; the others are rows, whose parameters are those of the functions that declare them.
"""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Callable, Sequence
from inspect import Parameter
from pathlib import Path
from typing import Any, Final

from singe.frontend import tensor as module
from singe.frontend.tensor import Tensor

STUB: Final = Path(module.__file__).with_suffix(".pyi")
HEAD: Final = '''"""What tensor.py offers, with all methods of Tensor. Written by tests/stubs.py: do not edit."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias, Union

import numpy as np

from ..dtypes import DType
from ..ir.scalar import Number
from ..runtime.device import Device, DeviceValue
from ..shapes import Dim
from .gradients import Gradients
from .methods.folds import Extremes
from .methods.order import Ordered
from .methods.selection import Places
from .nodes.shaping import Axis, Count
from .nodes.spatial import Ints, Padding, Sizes

_bool = bool
_complex = complex
_float = float
_int = int

TensorLike: TypeAlias = Union["Tensor", np.ndarray, Number]
'''
_HIDDEN: Final = re.compile(r"(?<![\w.])(bool|complex|float|int)(?!\w)")
"""Types that have the names of methods, so that annotations within the class need other names."""
_LEFT_OUT: Final = ("__getattr__",)
"""So that a type checker reports what is no method."""
_REDEFINED: Final = ("__eq__", "__ne__", "__dir__")
"""Members that object has with other types."""


def stub() -> str:
    members = {k: v for k, v in vars(Tensor).items() if callable(v) or isinstance(v, property)}
    shown = [_member(k, members[k]) for k in sorted(members) if not re.match(r"_[^_]", k) and k not in _LEFT_OUT]
    shown = [text for text in shown if text]
    doc = f'"""{inspect.cleandoc(Tensor.__doc__ or "")}"""'
    body = "\n".join([doc, "", "__array_ufunc__: None", "_device: Device", "_value: Any", "", *shown])
    functions = [_function(name, getattr(module, name)) for name in ("apply", "destination", "home_of", "value_on")]
    return "\n".join([HEAD, "class Tensor:", textwrap.indent(body, "    "), *functions])


def _member(name: str, value: Any) -> str:
    if isinstance(value, property):
        assert value.fget is not None
        return f"@property\n{_function(name, value.fget)}"
    return _function(name, value)


def _function(name: str, function: Callable[..., Any]) -> str:
    signature = inspect.signature(function)
    parameters = [p.replace(annotation=_type(p.annotation)) for p in signature.parameters.values()]
    if parameters and parameters[0].annotation in ("Tensor", "Any") and hasattr(Tensor, name):
        parameters[0] = parameters[0].replace(name="self", annotation=Parameter.empty)
    head = "async def" if inspect.iscoroutinefunction(function) else "def"
    note = "  # pyright: ignore[reportIncompatibleMethodOverride]" if name in _REDEFINED else ""
    return _definition(f"{head} {name}", parameters, _type(signature.return_annotation), function.__doc__, note)


def _definition(head: str, parameters: Sequence[Parameter], gives: str, doc: str | None, note: str = "") -> str:
    shown: list[str] = []
    for p in parameters:
        if p.kind is p.KEYWORD_ONLY and not any(s.startswith("*") for s in shown):
            shown.append("*")
        text = {p.VAR_POSITIONAL: "*", p.VAR_KEYWORD: "**"}.get(p.kind, "") + p.name
        text += "" if p.annotation is p.empty else f": {p.annotation}"
        if p.default is not p.empty:
            plain = isinstance(p.default, (bool, int, float, str, type(None)))
            text += f" = {p.default!r}" if plain else " = ..."
        shown.append(text)
    start = f"{head}({', '.join(shown)}) -> {gives}:"
    if not doc:
        return f"{start} ...{note}"
    return start + note + textwrap.indent(f'\n"""{inspect.cleandoc(doc)}"""', "    ")


def _type(annotation: Any) -> str:
    if annotation is Parameter.empty:
        return "Any"
    name = annotation if isinstance(annotation, str) else getattr(annotation, "__name__", str(annotation))
    return _HIDDEN.sub(r"_\1", name)


if __name__ == "__main__":
    STUB.write_text(stub())
