"""Writes the stubs from which editors and type checkers know every method of Tensor, core/singe/tensors/tensor.pyi, and of
NamedTensor, core/singe/tensors/named/named_tensor.pyi, every name of singe, core/singe/__init__.pyi: what its table names, and the
methods as functions, and those of singe.extension.

`python tests/stubs.py` writes the files; tests/unit/tensors/test_stubs.py checks that they are current. Methods that are
written out keep their parameters; the others are rows, whose parameters are those of the functions that declare them. Methods
with parameters that PyTorch names otherwise are shown with its names, too.
"""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Callable, Mapping, Sequence
from inspect import Parameter
from pathlib import Path
from typing import Any, Final

import singe
from singe import extension
from singe.tensors import tensor as module
from singe.tensors.named import named_tensor
from singe.tensors.tensor import Tensor

METHODS: Final = Path(module.__file__).with_suffix(".pyi")
NAMED: Final = Path(named_tensor.__file__).with_suffix(".pyi")
NAMES: Final = Path(singe.__file__).with_suffix(".pyi")
DOOR: Final = Path(extension.__file__).with_suffix(".pyi")
IMPORTS: Final = {
    "dtypes": "DType", "tensors.gradients": "Gradients", "tensors.named.named_tensor": "NamedTensor",
    "tensors.methods.folds": "Extremes", "tensors.methods.sorting": "Ordered",
    "tensors.methods.selection": "Places", "tensors.nodes.shaping": "Axis, Count", "tensors.nodes.spatial": "Ints, Padding, Sizes", "ir.scalar": "Number",
    "runtime.device": "Device, DeviceValue", "shapes": "Dim",
}  # fmt: skip
"""Modules of singe ↦ what the types of parameters need of them."""
BUILTINS: Final = ("bool", "complex", "float", "int")
"""Types that have the names of methods, so that annotations beside these need other names."""
PYTORCH: Final = {
    "axis": "dim", "axis0": "dim0", "axis1": "dim1", "axis2": "dim2", "keepdims": "keepdim", "low": "min", "high": "max", "shape": "size",
}  # fmt: skip
"""Parameters ↦ PyTorch's names of them."""
_HIDDEN: Final = re.compile(rf"(?<![\w.])({'|'.join(BUILTINS)})(?!\w)")
_OWN: Any = singe
"""With its private names, which no stub has."""
_LEFT_OUT: Final = ("__array_ufunc__", "__getattr__")
"""So that a type checker takes `array * tensor` for a Tensor, and reports what is no method."""
_REDEFINED: Final = ("__eq__", "__ne__", "__dir__")
"""Members that object has with other types."""


def stub_of_methods() -> str:
    members = {k: v for k, v in vars(Tensor).items() if callable(v) or isinstance(v, property)}
    shown = [_member(k, members[k]) for k in sorted(members) if not re.match(r"_[^_]", k) and k not in _LEFT_OUT]
    shown = [text for text in shown if text]
    doc = f'"""{inspect.cleandoc(Tensor.__doc__ or "")}"""'
    body = "\n".join([doc, "", "__array_ufunc__: None", "_device: Device", "_value: Any", "", *shown])
    functions = [_function(name, getattr(module, name)) for name in ("apply", "destination", "home_of", "value_on")]
    head = _head("What tensor.py offers, with all methods of Tensor.", "..", "tensors.")
    alias = 'TensorLike: TypeAlias = Union["Tensor", np.ndarray, Number]\n'
    return "\n".join([head, alias, "class Tensor:", textwrap.indent(body, "    "), *functions])


def stub_of_named() -> str:
    owner = named_tensor.NamedTensor
    members = {k: v for k, v in vars(owner).items() if callable(v) or isinstance(v, property)}
    hidden = (*_LEFT_OUT, "__array__", "__getitem__", "__hash__", "__rmatmul__")  # they refuse, or are object's
    shown = [_member(k, members[k]) for k in sorted(members) if not re.match(r"_[^_]", k) and k not in hidden]
    doc = f'"""{inspect.cleandoc(owner.__doc__ or "")}"""'
    body = "\n".join([doc, "", "__array_ufunc__: None", *shown])
    head = _head(
        "What named_tensor.py offers, with all members of NamedTensor.", "...", own="tensors.named.named_tensor"
    )
    imports = "import builtins\n\nfrom ..tensor import Tensor\nfrom .holder import TensorHolder\n"
    alias = 'NamedLike: TypeAlias = Union["NamedTensor", Tensor, np.ndarray, Number]\n'
    return "\n".join([head, imports, alias, "class NamedTensor(TensorHolder):", textwrap.indent(body, "    "), ""])


def stub_of_names() -> str:
    imports = _imports(".", _OWN._DEFINED)
    listed = "".join(f'    "{name}",\n' for name in sorted(singe.__all__))
    return "\n".join([
        _head("The public names of Singe, with all methods of Tensor as functions.", "."),
        *imports,
        *(f"from . import {name} as {name}" for name in _OWN._SUBMODULES),
        *(f"from .random import {name} as {name}" for name in _OWN._RANDOM),
        "from .tensors.tensor import TensorLike",
        f"\n__version__: str\n\n__all__ = [\n{listed}]\n",
        *(f"{name}: DType" for name in _OWN._SHORT),
        "",
        *(_called(name, getattr(Tensor, name), method=False) for name in _OWN._functions()),
    ])  # fmt: skip


def stub_of_door() -> str:
    doc = '"""The interface for packages that extend Singe. Written by tests/stubs.py: do not edit."""'
    return "\n".join([doc, "", *_imports("..", vars(extension)["_DEFINED"]), ""])


def _imports(up: str, defined: Mapping[str, str]) -> list[str]:
    """Imports of the names that modules define. up: how the stub names singe."""
    return [f"from {up}{module} import {name} as {name}" for module, names in defined.items() for name in names.split()]


def _head(doc: str, up: str, here: str = "", own: str = "") -> str:
    """The first lines of a stub. up: how it names singe; here: its own folder; own: the module of IMPORTS that it is."""
    others = {k: v for k, v in IMPORTS.items() if k != own}
    names = {f".{k.removeprefix(here)}" if here and k.startswith(here) else up + k: v for k, v in others.items()}
    return "\n".join([
        f'"""{doc} Written by tests/stubs.py: do not edit."""\n',
        *(f"from builtins import {name} as _{name}" for name in BUILTINS),
        "from collections.abc import Callable, Iterator, Sequence",
        "from typing import Any, TypeAlias, Union, overload\n",
        "import numpy as np\n",
        *(f"from {where} import {what}" for where, what in names.items()),
        "",
    ])  # fmt: skip


def _member(name: str, value: Any) -> str:
    if isinstance(value, property):
        assert value.fget is not None
        return f"@property\n{_called(name, value.fget)}"
    return _called(name, value)


def _called(name: str, function: Callable[..., Any], method: bool = True) -> str:
    """A method, or a method as a function."""
    parameters = list(inspect.signature(function).parameters.values())
    first = parameters[0]
    if first.name == "self" or _type(first.annotation) in ("Tensor", "Any"):
        kind = Parameter.empty if method else "TensorLike" if hasattr(function, "row") else "Tensor"
        free = first.name == "self" and "x" not in (p.name for p in parameters)
        called = "self" if method else "x" if free else first.name
        parameters[0] = first.replace(name=called, annotation=kind)
    own = _function(name, function, parameters)
    renamed = [p if p.kind is p.VAR_POSITIONAL else p.replace(name=PYTORCH.get(p.name, p.name)) for p in parameters]
    names = [p.name for p in renamed]
    if name.startswith("_") or renamed == parameters or len({*names}) < len(names):
        return own
    return f"@overload\n{own}\n@overload\n{_function(name, function, renamed)}"


def _function(name: str, function: Callable[..., Any], parameters: Sequence[Parameter] | None = None) -> str:
    signature = inspect.signature(function)
    found = signature.parameters.values() if parameters is None else parameters
    shown = [p.replace(annotation=_type(p.annotation)) if p.name != "self" else p for p in found]
    head = "async def" if inspect.iscoroutinefunction(function) else "def"
    note = "  # pyright: ignore[reportIncompatibleMethodOverride]" if name in _REDEFINED else ""
    return _definition(f"{head} {name}", shown, _type(signature.return_annotation), function.__doc__, note)


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
    METHODS.write_text(stub_of_methods())
    NAMED.write_text(stub_of_named())
    NAMES.write_text(stub_of_names())
    DOOR.write_text(stub_of_door())
